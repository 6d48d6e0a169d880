//! Normalisation whose gain and bias come from a style vector.

use super::{Conv, ConvSize};
use crate::{
    graph::{Curve, DeviceTensor, Tensor},
    weights::{LoadError, Weights},
};

const EPS: f32 = 1e-5;

/// Gain (less 1) and bias of `width` values from a style `[1, style]`.
#[derive(Debug, Clone)]
struct Affine(Conv);

impl Affine {
    fn load(
        weights: &Weights,
        style: usize,
        width: usize,
        short: bool,
    ) -> Result<Affine, LoadError> {
        let size = ConvSize::new(style, 2 * width, 1);
        Ok(Affine(Conv::load(&weights.pp("fc"), size, short)?))
    }

    /// `[1, style]` -> gain and bias `[width]` each.
    fn forward<'g>(&self, style: Tensor<'g>) -> [Tensor<'g>; 2] {
        let [one, values] = style.dims();
        let both = self.0.forward(style.reshape(&[1, one, values])); // [1, 1, 2 width]
        let width = both.dim(-1) / 2;
        let [gain, bias] = both.reshape(&[2 * width]).split::<2>(0);
        [gain.contiguous() + 1.0, bias.contiguous()]
    }
}

/// Adaptive instance normalisation (Huang and Belongie 2017, <https://arxiv.org/abs/1703.06868>):
/// each channel is normalised over time.
#[derive(Debug, Clone)]
pub struct AdaIn {
    /// Own gain and bias before those of the style, which some checkpoints have.
    own: Option<[DeviceTensor; 2]>,
    style: Affine,
}

impl AdaIn {
    /// Reads `fc` and, where they are, `norm.weight` and `norm.bias`. With `short`, in the form of
    /// [`FastPath::ShortConv`](crate::backend::FastPath::ShortConv).
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(
        weights: &Weights,
        style: usize,
        channels: usize,
        short: bool,
    ) -> Result<AdaIn, LoadError> {
        let norm = weights.pp("norm");
        let own = match norm.has("weight") {
            true => Some([
                norm.get_f32(&[channels], "weight")?,
                norm.get_f32(&[channels], "bias")?,
            ]),
            false => None,
        };
        Ok(AdaIn {
            own,
            style: Affine::load(weights, style, channels, short)?,
        })
    }

    /// x `[1, time, channels]`, style `[1, style]` -> `[1, time, channels]`, bent by `curve`.
    pub fn forward<'g>(&self, x: Tensor<'g>, style: Tensor<'g>, curve: Curve<'g>) -> Tensor<'g> {
        let [mut gain, mut bias] = self.style.forward(style);
        if let Some([weight, offset]) = &self.own {
            bias = gain * offset + bias;
            gain = gain * weight;
        }
        x.channel_norm(gain, bias, EPS, curve)
    }
}

/// Adaptive layer normalisation: each step is normalised over its channels.
#[derive(Debug, Clone)]
pub struct AdaLayerNorm(Affine);

impl AdaLayerNorm {
    /// Reads `fc`. With `short`, as [`AdaIn::load`].
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(
        weights: &Weights,
        style: usize,
        width: usize,
        short: bool,
    ) -> Result<AdaLayerNorm, LoadError> {
        Ok(AdaLayerNorm(Affine::load(weights, style, width, short)?))
    }

    /// x `[1, time, width]`, style `[1, style]` -> `[1, time, width]`.
    pub fn forward<'g>(&self, x: Tensor<'g>, style: Tensor<'g>) -> Tensor<'g> {
        let [gain, bias] = self.0.forward(style);
        x.norm(EPS) * gain + bias
    }
}
