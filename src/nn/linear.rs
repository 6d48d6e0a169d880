//! Affine maps of the last axis.

use crate::graph::{Conv1d, DeviceTensor, Tensor};

/// y = x Wᵀ + b.
#[derive(Debug, Clone)]
pub struct Linear {
    /// `[out, in]`; for a convolution `[out, kernel * in]`, taps outermost.
    pub weight: DeviceTensor,
    /// `[out]`.
    pub bias: Option<DeviceTensor>,
}

impl Linear {
    /// `[.., in]` -> `[.., out]`.
    pub fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        x.linear(&self.weight, self.bias.as_ref())
    }

    /// As a convolution along time: `[batch, time, in]` -> `[batch, time', out]`.
    pub fn conv1d<'g>(&self, x: Tensor<'g>, shape: Conv1d) -> Tensor<'g> {
        x.conv1d(&self.weight, self.bias.as_ref(), shape)
    }
}
