//! Causal convolutions with state, so that sound can be made and heard frame by frame.
//!
//! Each layer with a memory keeps its last input steps in one tensor. A pass without a [`Past`] is
//! the beginning of a sound: zeros lie before it.

use audiocpp::{
    backend::FastPath,
    graph::{Conv1d, DeviceTensor, Tensor},
    nn::{Linear, RmsNorm},
    weights::{HostTensor, LoadError, Weights},
};

use crate::config::KERNEL;

/// The memories of a network's layers, in the order in which they are used.
pub struct Past<'a>(Option<std::slice::Iter<'a, DeviceTensor>>);

impl<'a> Past<'a> {
    /// None: the sound begins here.
    pub fn none() -> Past<'a> {
        Past(None)
    }

    /// These, each `[1, steps, channels]` as [`Memory`] says.
    pub fn of(states: &'a [DeviceTensor]) -> Past<'a> {
        Past(Some(states.iter()))
    }

    /// The last `steps` steps before x `[1, time, channels]`, then x; they are kept for next time.
    fn join<'g>(&mut self, x: Tensor<'g>, steps: usize) -> Tensor<'g> {
        let Some(state) = self.0.as_mut().and_then(Iterator::next) else {
            return x.pad(1, steps, 0);
        };
        let scope = x.scope();
        let joined = scope.stored(state).concat(x, 1);
        // Of as many steps as x has, and `steps` before them, the last.
        scope.store(state, joined.slice(1, x.dim(1), steps));
        joined
    }
}

/// Steps and channels that a layer keeps.
pub type Memory = [usize; 2];

/// A convolution that sees nothing ahead.
#[derive(Debug, Clone)]
pub struct CausalConv {
    /// `[out, kernel * in]`, taps outermost.
    linear: Linear,
    kernel: usize,
    stride: usize,
    inputs: usize,
}

impl CausalConv {
    /// Reads `weight` `[out, in, kernel]` and `bias` `[out]`.
    pub fn load(
        weights: &Weights,
        [inputs, out]: [usize; 2],
        kernel: usize,
        stride: usize,
    ) -> Result<CausalConv, LoadError> {
        let weight = weights.conv1d(out, inputs, kernel, "weight")?;
        let bias = Some(weights.get_f32(&[out], "bias")?);
        Ok(CausalConv {
            linear: Linear { weight, bias },
            kernel,
            stride,
            inputs,
        })
    }

    /// What it keeps.
    pub fn memory(&self) -> Memory {
        [self.kernel - self.stride, self.inputs]
    }

    /// `[1, time, in]` -> `[1, time / stride, out]`.
    pub fn forward<'g>(&self, x: Tensor<'g>, past: &mut Past) -> Tensor<'g> {
        let shape = Conv1d {
            kernel: self.kernel,
            stride: self.stride,
            dilation: 1,
            padding: (0, 0),
        };
        let joined = past.join(x, self.kernel - self.stride);
        self.linear.conv1d(joined, shape)
    }
}

/// A transposed convolution, kernel twice the stride, that gives what is complete: each step of the
/// input makes `stride` steps together with the one before it.
///
/// It is a convolution of two taps whose outputs are the `stride` steps side by side.
#[derive(Debug, Clone)]
pub struct CausalUpsample {
    /// `[stride * out, 2 in]`.
    linear: Linear,
    inputs: usize,
    out: usize,
    stride: usize,
}

impl CausalUpsample {
    /// Reads `weight` `[in, out, 2 stride]` and `bias` `[out]`.
    pub fn load(
        weights: &Weights,
        [inputs, out]: [usize; 2],
        stride: usize,
    ) -> Result<CausalUpsample, LoadError> {
        let turn = move |w: HostTensor| {
            // Output step j of an input step takes tap j of it, and tap stride + j of the one
            // before, which lies first in the window.
            let w = w.reshape(&[inputs, out, 2, stride]).permute(&[3, 1, 2, 0]);
            let mut w = w.reshape(&[stride * out, 2 * inputs]);
            for row in w.data.chunks_exact_mut(2 * inputs) {
                let (now, before) = row.split_at_mut(inputs);
                now.swap_with_slice(before);
            }
            w
        };
        let stored = [inputs, out, 2 * stride];
        let parts = [("weight", &stored[..])];
        let weight =
            weights.get_with(&[stride * out, 2 * inputs], "weight", parts, move |[w]| {
                turn(w)
            })?;
        let bias = weights.get_with(&[stride * out], "bias", [("bias", &[out])], move |[b]| {
            HostTensor::new(&[stride * out], b.data.repeat(stride))
        })?;
        Ok(CausalUpsample {
            linear: Linear {
                weight,
                bias: Some(bias),
            },
            inputs,
            out,
            stride,
        })
    }

    /// What it keeps.
    pub fn memory(&self) -> Memory {
        [1, self.inputs]
    }

    /// `[1, time, in]` -> `[1, time * stride, out]`.
    pub fn forward<'g>(&self, x: Tensor<'g>, past: &mut Past) -> Tensor<'g> {
        let time = x.dim(1);
        let shape = Conv1d {
            kernel: 2,
            stride: 1,
            dilation: 1,
            padding: (0, 0),
        };
        let y = self.linear.conv1d(past.join(x, 1), shape); // [1, time, stride * out]
        y.reshape(&[1, time * self.stride, self.out])
    }
}

/// A convolution of each channel by itself, times a gain.
#[derive(Debug, Clone)]
pub struct Mixer {
    /// `[kernel * channels]`, taps outermost, the gain in them.
    taps: DeviceTensor,
    bias: DeviceTensor,
    channels: usize,
}

impl Mixer {
    /// Reads `mixer.conv.conv.conv` (`weight` `[channels, 1, kernel]`, `bias`) and `gamma`.
    fn load(weights: &Weights, channels: usize) -> Result<Mixer, LoadError> {
        let (stored, gain) = ([channels, 1, KERNEL], ("gamma", &[channels][..]));
        let parts = [("mixer.conv.conv.conv.weight", &stored[..]), gain];
        // As a vector, which stays f32.
        let taps = weights.get_with(&[KERNEL * channels], "mixer", parts, move |[w, gain]| {
            let mut w = w.reshape(&[channels, KERNEL]).transpose();
            for row in w.data.chunks_exact_mut(channels) {
                row.iter_mut().zip(&gain.data).for_each(|(w, g)| *w *= g);
            }
            w.reshape(&[KERNEL * channels])
        })?;
        let parts = [("mixer.conv.conv.conv.bias", &[channels][..]), gain];
        let bias = weights.get_with(&[channels], "mixer.bias", parts, move |[b, gain]| {
            let scaled = b.data.iter().zip(&gain.data).map(|(b, g)| b * g);
            HostTensor::new(&[channels], scaled.collect())
        })?;
        Ok(Mixer {
            taps,
            bias,
            channels,
        })
    }

    /// `[1, time, channels]` -> `[1, time, channels]`.
    fn forward<'g>(&self, x: Tensor<'g>, past: &mut Past) -> Tensor<'g> {
        let (scope, time) = (x.scope(), x.dim(1));
        let joined = past.join(x, KERNEL - 1);
        let taps = scope.stored(&self.taps).reshape(&[KERNEL, self.channels]);
        let one = scope.device().fast_path(FastPath::DepthwiseConv1d) && self.channels > 2;
        let y = match one {
            true => joined.depthwise(taps),
            false => {
                let tap = |k: usize| joined.slice(1, k, time) * taps.slice(0, k, 1);
                (1..KERNEL).fold(tap(0), |sum, k| sum + tap(k))
            }
        };
        y + &self.bias
    }
}

/// A ConvNeXt block (Liu et al. 2022, <https://arxiv.org/abs/2201.03545>).
#[derive(Debug, Clone)]
pub struct Block {
    norm: RmsNorm,
    mixer: Mixer,
    ffn_norm: RmsNorm,
    linear1: Linear,
    linear2: Linear,
    ffn_gamma: DeviceTensor,
}

impl Block {
    /// Reads a block of `channels`.
    pub fn load(weights: &Weights, channels: usize, eps: f32) -> Result<Block, LoadError> {
        let ffn = weights.pp("ffn");
        let linear = |name, out, inputs| -> Result<Linear, LoadError> {
            let part = ffn.pp(name);
            Ok(Linear {
                weight: part.get(&[out, inputs], "weight")?,
                bias: Some(part.get_f32(&[out], "bias")?),
            })
        };
        Ok(Block {
            norm: RmsNorm::load(&weights.pp("norm"), channels, eps)?,
            mixer: Mixer::load(weights, channels)?,
            ffn_norm: RmsNorm::load(&weights.pp("ffn_norm"), channels, eps)?,
            linear1: linear("linear1", 4 * channels, channels)?,
            linear2: linear("linear2", channels, 4 * channels)?,
            ffn_gamma: weights.get_f32(&[channels], "ffn_gamma")?,
        })
    }

    /// What it keeps.
    pub fn memory(&self) -> Memory {
        [KERNEL - 1, self.mixer.channels]
    }

    /// `[1, time, channels]` -> `[1, time, channels]`.
    pub fn forward<'g>(&self, x: Tensor<'g>, past: &mut Past) -> Tensor<'g> {
        let x = x + self.mixer.forward(self.norm.forward(x), past);
        let h = self.linear1.forward(self.ffn_norm.forward(x)).gelu(); // [1, time, 4 channels]
        x + self.linear2.forward(h) * &self.ffn_gamma
    }
}
