//! The U-Net of one stem.

use audiocpp::{
    graph::{Conv2d, DeviceTensor, Tensor},
    nn::{PlaneConv, PlaneUpsample, PlaneUpsampleSize},
    weights::{HostTensor, LoadError, Weights},
};

use crate::size::FILTERS;

pub struct UNet {
    pub down: Vec<Down>,
    pub up: Vec<Up>,
    /// Conv 4x4, dilated.
    pub last: PlaneConv,
    pub elu: bool,
}

/// Conv 5x5 / 2, then norm; the activation is not stored.
pub struct Down {
    pub conv: PlaneConv,
    pub norm: BatchNorm,
}

/// Up 5x5 * 2, activation, norm.
pub struct Up {
    pub conv: PlaneUpsample,
    pub norm: BatchNorm,
}

/// Normalisation by means and variances of training: gain and bias `[channel]`.
pub struct BatchNorm {
    gain: DeviceTensor,
    bias: DeviceTensor,
}

impl BatchNorm {
    const EPS: f32 = 1e-3;

    fn load(weights: &Weights, channels: usize) -> Result<BatchNorm, LoadError> {
        let shape = [channels];
        let gain = |w: &HostTensor, variance: &HostTensor| -> Vec<f32> {
            let pairs = w.data.iter().zip(&variance.data);
            pairs.map(|(w, v)| w / (v + Self::EPS).sqrt()).collect()
        };
        let parts = [("weight", &shape[..]), ("running_var", &shape[..])];
        let scale = weights.get_with(&shape, "gain", parts, move |[w, v]| {
            HostTensor::new(&w.shape, gain(&w, &v))
        })?;
        let parts = ["weight", "running_var", "bias", "running_mean"].map(|n| (n, &shape[..]));
        let bias = weights.get_with(&shape, "shift", parts, move |[w, v, bias, mean]| {
            let moved = gain(&w, &v).into_iter().zip(&mean.data);
            let shift = bias.data.iter().zip(moved).map(|(b, (g, m))| b - g * m);
            HostTensor::new(&bias.shape, shift.collect())
        })?;
        Ok(BatchNorm { gain: scale, bias })
    }

    fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        x * &self.gain + &self.bias
    }
}

impl UNet {
    /// Reads the tensors of one network.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(weights: &Weights, elu: bool) -> Result<UNet, LoadError> {
        let halved = Conv2d {
            kernel: [5, 5],
            stride: [2, 2],
            dilation: [1, 1],
            padding: [(1, 2), (1, 2)],
        };
        let down = |i: usize| {
            let inputs = if i == 0 { 2 } else { FILTERS[i - 1] };
            let layer = |part: &str| weights.pp(format!("down{}_{part}", i + 1));
            Ok(Down {
                conv: PlaneConv::load(&layer("conv").pp(1), [FILTERS[i], inputs], halved)?,
                norm: BatchNorm::load(&layer("act").pp(0), FILTERS[i])?,
            })
        };
        let up = |i: usize| {
            let deepest = FILTERS.len() - 1;
            // From the second on, the layer of the same size on the way down comes along.
            let inputs = FILTERS[deepest - i] * if i == 0 { 1 } else { 2 };
            let out = if i == deepest {
                1
            } else {
                FILTERS[deepest - i - 1]
            };
            let layer = weights.pp(format!("up{}", i + 1));
            let size = PlaneUpsampleSize {
                inputs,
                out,
                kernel: [5, 5],
                stride: [2, 2],
            };
            Ok(Up {
                conv: PlaneUpsample::load(&layer.pp(0), size)?,
                norm: BatchNorm::load(&layer.pp(3), out)?,
            })
        };
        let dilated = Conv2d {
            kernel: [4, 4],
            stride: [1, 1],
            dilation: [2, 2],
            padding: [(3, 3), (3, 3)],
        };
        Ok(UNet {
            down: (0..FILTERS.len())
                .map(down)
                .collect::<Result<_, LoadError>>()?,
            up: (0..FILTERS.len())
                .map(up)
                .collect::<Result<_, LoadError>>()?,
            last: PlaneConv::load(&weights.pp("up7").pp(0), [2, 1], dilated)?,
            elu,
        })
    }

    /// Magnitudes `[1, frame, bin, 2]` -> logits `[1, frame, bin, 2]`.
    pub fn forward<'g>(&self, magnitudes: Tensor<'g>) -> Tensor<'g> {
        let mut x = magnitudes;
        let mut halves = Vec::new();
        for layer in &self.down {
            let y = layer.conv.forward(x); // [1, frame / 2, bin / 2, channel]
            halves.push(y);
            let y = layer.norm.forward(y);
            x = if self.elu { y.elu() } else { y.leaky_relu(0.2) };
        }
        // The deepest layer goes on as it was before its norm.
        let mut skips = halves.into_iter().rev();
        x = skips.next().unwrap_or(x);
        for (i, layer) in self.up.iter().enumerate() {
            if i > 0
                && let Some(skip) = skips.next()
            {
                x = skip.concat(x, 3);
            }
            let extent = [2 * x.dim(1), 2 * x.dim(2)];
            let y = layer.conv.cropped(x, [1, 1], extent); // [1, frame * 2, bin * 2, channel]
            let y = if self.elu { y.elu() } else { y.relu() };
            x = layer.norm.forward(y);
        }
        self.last.forward(x)
    }
}
