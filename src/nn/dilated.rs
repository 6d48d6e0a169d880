//! Depthwise-separable convolutions, dilated more and more.

use crate::{
    graph::{DeviceTensor, Tensor},
    weights::{LoadError, Weights},
};

use super::{LayerNorm, Linear};

/// Layers of `x + gelu(norm(pointwise(gelu(norm(depthwise(x))))))`, where layer i has `kernel^i`
/// steps between the taps of its depthwise convolution.
#[derive(Debug, Clone)]
pub struct DilatedStack {
    layers: Vec<Layer>,
    kernel: usize,
}

#[derive(Debug, Clone)]
struct Layer {
    /// `[kernel, channels]`.
    depthwise: DeviceTensor,
    bias: DeviceTensor,
    norm1: LayerNorm,
    pointwise: Linear,
    norm2: LayerNorm,
}

impl DilatedStack {
    /// Reads `convs_sep`, `convs_1x1`, `norms_1` and `norms_2` of `layers` layers.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(
        weights: &Weights,
        channels: usize,
        kernel: usize,
        layers: usize,
    ) -> Result<DilatedStack, LoadError> {
        let layer = |i: usize| {
            let part = |name: &str| weights.pp(name).pp(i);
            let (depthwise, stored) = (part("convs_sep"), [channels, 1, kernel]);
            let parts = [("weight", &stored[..])];
            Ok(Layer {
                bias: depthwise.get_f32(&[channels], "bias")?,
                depthwise: depthwise.get_with(&[kernel, channels], "weight", parts, {
                    move |[w]| w.reshape(&[channels, kernel]).transpose()
                })?,
                norm1: LayerNorm::load(&part("norms_1"), channels)?,
                pointwise: Linear::load(&part("convs_1x1"), channels, channels)?,
                norm2: LayerNorm::load(&part("norms_2"), channels)?,
            })
        };
        Ok(DilatedStack {
            layers: (0..layers).map(layer).collect::<Result<_, LoadError>>()?,
            kernel,
        })
    }

    /// `[1, time, channels]` -> `[1, time, channels]`.
    pub fn forward<'g>(&self, mut x: Tensor<'g>) -> Tensor<'g> {
        for (i, layer) in self.layers.iter().enumerate() {
            let dilation = self.kernel.saturating_pow(i as u32);
            let y = layer.norm1.forward(layer.depthwise(x, dilation)).gelu();
            x = x + layer.norm2.forward(layer.pointwise.forward(y)).gelu();
        }
        x
    }
}

impl Layer {
    /// One product for each tap: kernels this short are not worth more.
    fn depthwise<'g>(&self, x: Tensor<'g>, dilation: usize) -> Tensor<'g> {
        let [_, time, _] = x.dims();
        let taps = x.scope().stored(&self.depthwise);
        let kernel = taps.dim(0);
        let reach = (kernel - 1) * dilation;
        let padded = x.pad(1, reach / 2, reach - reach / 2);
        let tap = |k: usize| padded.slice(1, k * dilation, time) * taps.slice(0, k, 1);
        (1..kernel).fold(tap(0), |sum, k| sum + tap(k)) + &self.bias
    }
}
