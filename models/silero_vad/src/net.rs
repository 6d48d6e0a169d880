//! The network, down to the gates of its cell.

use audiocpp::{
    graph::{Conv1d, DeviceTensor, Tensor},
    weights::{HostTensor, LoadError, Weights},
};

use crate::{cell::Cell, names::STFT};

/// Values of the cell's state.
pub const HIDDEN: usize = 128;
/// Channels after each convolution.
const CHANNELS: [usize; 4] = [128, 64, 64, 128];
/// Steps between the outputs of each convolution.
const STRIDES: [usize; 4] = [1, 2, 2, 1];

/// What the sampling rate decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Samples a second.
    pub rate: u32,
    /// Taps of the short-time Fourier transform.
    pub taps: usize,
}

impl Size {
    /// Of a transform `[2 bins, 1, taps]`, if it is one of the two that were trained.
    pub fn of(transform: &[usize]) -> Option<Size> {
        match transform {
            [258, 1, 256] => Some(Size {
                rate: 16_000,
                taps: 256,
            }),
            [130, 1, 128] => Some(Size {
                rate: 8_000,
                taps: 128,
            }),
            _ => None,
        }
    }

    /// Samples that get one probability: 32 ms.
    pub fn frame(&self) -> usize {
        2 * self.taps
    }

    /// Samples of the frame before that are heard again; as many are mirrored at the end.
    pub fn context(&self) -> usize {
        self.taps / 4
    }

    /// Samples that the network reads for one frame.
    pub fn row(&self) -> usize {
        self.frame() + 2 * self.context()
    }

    fn bins(&self) -> usize {
        self.taps / 2 + 1
    }
}

/// A convolution and its rectifier.
#[derive(Debug, Clone)]
struct Layer {
    weight: DeviceTensor,
    bias: DeviceTensor,
    shape: Conv1d,
}

#[derive(Debug, Clone)]
pub struct Net {
    pub size: Size,
    /// Cosines, then sines, under a window: `[2 bins, taps]`.
    transform: DeviceTensor,
    encoder: Vec<Layer>,
    /// From the encoder to the cell's gates `[4 hidden, hidden]`, with the sum of both biases.
    gates: DeviceTensor,
    gates_bias: DeviceTensor,
    pub(crate) cell: Cell,
}

impl Net {
    /// Reads the network of `size`.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(weights: &Weights, size: Size) -> Result<Net, LoadError> {
        let mut encoder = Vec::with_capacity(CHANNELS.len());
        let mut inputs = size.bins();
        for (i, (out, stride)) in CHANNELS.into_iter().zip(STRIDES).enumerate() {
            let weights = weights.pp(format!("encoder.{i}.reparam_conv"));
            let shape = Conv1d {
                stride,
                ..Conv1d::same(3)
            };
            encoder.push(Layer {
                weight: weights.conv1d(out, inputs, 3, "weight")?,
                bias: weights.get(&[out], "bias")?,
                shape,
            });
            inputs = out;
        }
        let rnn = weights.pp("decoder.rnn");
        let gates = [4 * HIDDEN];
        let biases = [("bias_ih", &gates[..]), ("bias_hh", &gates[..])];
        let sum = |[a, b]: [HostTensor; 2]| {
            let sums = a.data.iter().zip(&b.data).map(|(a, b)| a + b);
            HostTensor::new(&[4 * HIDDEN], sums.collect())
        };
        let last = weights.pp("decoder.decoder.2");
        Ok(Net {
            size,
            transform: weights.conv1d(2 * size.bins(), 1, size.taps, STFT)?,
            encoder,
            gates: rnn.get(&[4 * HIDDEN, HIDDEN], "weight_ih")?,
            gates_bias: rnn.get_with(&gates, "bias_ih", biases, sum)?,
            cell: Cell {
                recurrent: rnn.host(&[4 * HIDDEN, HIDDEN], "weight_hh")?.data,
                weight: last.host(&[1, HIDDEN, 1], "weight")?.data,
                bias: last.host(&[1], "bias")?.data[0],
            },
        })
    }

    /// Samples of many frames `[frames, row]` to what the cell's gates get from them
    /// `[frames, 4 hidden]`.
    pub fn forward<'g>(&self, samples: Tensor<'g>) -> Tensor<'g> {
        let [frames, row] = samples.dims();
        let hop = Conv1d {
            kernel: self.size.taps,
            stride: self.size.taps / 2,
            dilation: 1,
            padding: (0, 0),
        };
        let x = samples.reshape(&[frames, row, 1]);
        let x = x.conv1d(&self.transform, None, hop); // [frames, 4, 2 bins]
        let [real, imaginary] = x.split::<2>(-1);
        let magnitudes = (real.sqr() + imaginary.sqr()).sqrt(); // [frames, 4, bins]
        let encode = |x: Tensor<'g>, layer: &Layer| {
            x.conv1d(&layer.weight, Some(&layer.bias), layer.shape)
                .relu()
        };
        let x = self.encoder.iter().fold(magnitudes, encode); // [frames, 1, hidden]
        let x = x.reshape(&[frames, HIDDEN]);
        x.linear(&self.gates, Some(&self.gates_bias)) // [frames, 4 hidden]
    }
}
