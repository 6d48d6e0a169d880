//! Convolutions of each channel by itself.

use crate::{
    graph::{DeviceTensor, Tensor},
    weights::{LoadError, Weights},
};

/// A convolution along time that does not mix channels; zeros around the input, so that the output
/// is as long.
#[derive(Debug, Clone)]
pub struct Depthwise {
    /// `[kernel, channels]`.
    weight: DeviceTensor,
    bias: DeviceTensor,
}

impl Depthwise {
    /// Reads `weight` `[channels, 1, kernel]` and `bias` `[channels]`.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(weights: &Weights, channels: usize, kernel: usize) -> Result<Depthwise, LoadError> {
        let stored = [channels, 1, kernel];
        let parts = [("weight", &stored[..])];
        Ok(Depthwise {
            bias: weights.get_f32(&[channels], "bias")?,
            weight: weights.get_with(&[kernel, channels], "weight", parts, move |[w]| {
                w.reshape(&[channels, kernel]).transpose()
            })?,
        })
    }

    /// `[1, time, channels]` -> `[1, time, channels]`, with `dilation` steps between taps.
    ///
    /// One product for each tap: kernels this short are not worth more.
    pub fn forward<'g>(&self, x: Tensor<'g>, dilation: usize) -> Tensor<'g> {
        let [_, time, _] = x.dims();
        let taps = x.scope().stored(&self.weight);
        let kernel = taps.dim(0);
        let reach = (kernel - 1) * dilation;
        let padded = x.pad(1, reach / 2, reach - reach / 2);
        let tap = |k: usize| padded.slice(1, k * dilation, time) * taps.slice(0, k, 1);
        (1..kernel).fold(tap(0), |sum, k| sum + tap(k)) + &self.bias
    }
}
