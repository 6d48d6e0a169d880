//! Normalisation layers with their learned parameters.

use crate::graph::{DeviceTensor, Tensor};

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
    /// `[.., width]` -> `[.., width]`.
    pub fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        x.layer_norm(&self.gain, &self.bias, self.eps)
    }
}
