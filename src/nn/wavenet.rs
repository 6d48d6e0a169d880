//! The gated, dilated residual stack of WaveNet, as VITS and its kin use it.

use crate::{
    graph::Tensor,
    weights::{LoadError, Weights},
};

use super::{Conv, ConvSize, Linear, Turn};

/// Sizes of a [`WaveNet`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaveNetSize {
    /// Channels in, out and between.
    pub channels: usize,
    /// Taps of the gated convolutions.
    pub kernel: usize,
    /// Layer i has `dilation_rate^i` steps between its taps.
    pub dilation_rate: usize,
    /// Layers.
    pub layers: usize,
    /// Channels of the conditioning vector; 0 for none.
    pub condition: usize,
}

/// Layers of `x + R(gate(conv(x) + condition))`, whose skip outputs are summed up.
#[derive(Debug, Clone)]
pub struct WaveNet {
    layers: Vec<Layer>,
    /// For each layer its part of the conditioning projection.
    conditions: Vec<Linear>,
    channels: usize,
}

#[derive(Debug, Clone)]
struct Layer {
    gate: Conv,
    /// To what is added to x; the last layer has none.
    residual: Option<Linear>,
    skip: Linear,
}

impl WaveNet {
    /// Reads `in_layers`, `res_skip_layers` and `cond_layer`.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(weights: &Weights, size: WaveNetSize, short: bool) -> Result<WaveNet, LoadError> {
        let c = size.channels;
        let layer = |i: usize| {
            let conv = ConvSize::new(c, 2 * c, size.kernel)
                .dilated(size.dilation_rate.saturating_pow(i as u32).max(1));
            let both = weights.pp("res_skip_layers").pp(i);
            let last = i + 1 == size.layers;
            let rows = if last { c } else { 2 * c };
            Ok(Layer {
                gate: Conv::load(&weights.pp("in_layers").pp(i), conv, short)?,
                residual: match last {
                    true => None,
                    false => Some(Linear::load_part(&both, [rows, c], 0..c, Turn::Keep)?),
                },
                skip: Linear::load_part(&both, [rows, c], rows - c..rows, Turn::Keep)?,
            })
        };
        let condition = |i: usize| {
            let (rows, part) = (2 * c * size.layers, 2 * c * i..2 * c * (i + 1));
            Linear::load_part(
                &weights.pp("cond_layer"),
                [rows, size.condition],
                part,
                Turn::Keep,
            )
        };
        let conditions = match size.condition {
            0 => Vec::new(),
            _ => (0..size.layers)
                .map(condition)
                .collect::<Result<_, LoadError>>()?,
        };
        Ok(WaveNet {
            layers: (0..size.layers)
                .map(layer)
                .collect::<Result<_, LoadError>>()?,
            conditions,
            channels: c,
        })
    }

    /// x `[1, time, c]`, condition `[1, 1, k]` -> the sum of skips `[1, time, c]`.
    pub fn forward<'g>(&self, mut x: Tensor<'g>, condition: Option<Tensor<'g>>) -> Tensor<'g> {
        let mut sum: Option<Tensor<'g>> = None;
        for (i, layer) in self.layers.iter().enumerate() {
            let mut gates = layer.gate.forward(x); // [1, time, 2 c]
            if let (Some(condition), Some(linear)) = (condition, self.conditions.get(i)) {
                gates = gates + linear.forward(condition);
            }
            let y = gates.gated_tanh(); // [1, time, c]
            let skip = layer.skip.forward(y);
            sum = Some(sum.map_or(skip, |sum| sum + skip));
            if let Some(residual) = &layer.residual {
                x = x + residual.forward(y);
            }
        }
        sum.unwrap_or(x)
    }

    /// Channels in and out.
    pub fn channels(&self) -> usize {
        self.channels
    }
}
