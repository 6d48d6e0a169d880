//! Normalisation layers with their learned parameters.

use crate::{
    graph::{DeviceTensor, Tensor},
    weights::{LoadError, Weights},
};

/// Layer normalisation over the last axis, with gain and bias `[width]`.
#[derive(Debug, Clone)]
pub struct LayerNorm {
    /// Multiplies the normalised values.
    pub gain: DeviceTensor,
    /// Added after that.
    pub bias: DeviceTensor,
    /// Added to the variance.
    pub eps: f32,
}

impl LayerNorm {
    /// Reads `weight` and `bias`, or `gamma` and `beta`, `[width]`; eps is PyTorch's, 1e-5.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(weights: &Weights, width: usize) -> Result<LayerNorm, LoadError> {
        let [gain, bias] = match weights.has("gamma") {
            true => ["gamma", "beta"],
            false => ["weight", "bias"],
        };
        Ok(LayerNorm {
            gain: weights.get_f32(&[width], gain)?,
            bias: weights.get_f32(&[width], bias)?,
            eps: 1e-5,
        })
    }

    /// `[.., width]` -> `[.., width]`.
    pub fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        x.layer_norm(&self.gain, &self.bias, self.eps)
    }
}

/// Root mean square normalisation over the last axis with a gain `[width]`
/// (Zhang and Sennrich 2019, <https://arxiv.org/abs/1910.07467>).
#[derive(Debug, Clone)]
pub struct RmsNorm {
    /// Multiplies the normalised values.
    pub gain: DeviceTensor,
    /// Added to the mean of squares.
    pub eps: f32,
}

impl RmsNorm {
    /// Reads `weight` `[width]`.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(weights: &Weights, width: usize, eps: f32) -> Result<RmsNorm, LoadError> {
        let gain = weights.get_f32(&[width], "weight")?;
        Ok(RmsNorm { gain, eps })
    }

    /// `[.., width]` -> `[.., width]`.
    pub fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        x.rms_norm(self.eps) * &self.gain
    }
}
