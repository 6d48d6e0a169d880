//! Depthwise-separable convolutions, dilated more and more.

use crate::{
    graph::Tensor,
    weights::{LoadError, Weights},
};

use super::{Depthwise, LayerNorm, Linear};

/// Layers of `x + gelu(norm(pointwise(gelu(norm(depthwise(x))))))`, where layer i has `kernel^i`
/// steps between the taps of its depthwise convolution.
#[derive(Debug, Clone)]
pub struct DilatedStack {
    layers: Vec<Layer>,
    kernel: usize,
}

#[derive(Debug, Clone)]
struct Layer {
    depthwise: Depthwise,
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
            Ok(Layer {
                depthwise: Depthwise::load(&part("convs_sep"), channels, kernel)?,
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
            let y = layer.depthwise.forward(x, dilation);
            let y = layer.norm1.forward(y).gelu();
            x = x + layer.norm2.forward(layer.pointwise.forward(y)).gelu();
        }
        x
    }
}
