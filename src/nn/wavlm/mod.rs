//! WavLM (Chen et al. 2021, WavLM: Large-Scale Self-Supervised Pre-Training for Full Stack Speech
//! Processing, <https://arxiv.org/abs/2110.13900>), of the kind of the base models: what speech
//! sounds like at each of its layers.
//!
//! ```text
//!   samples, 16 kHz
//!      |  7 convolutions (the first normalised), GELU: 320 samples to a step
//!   norm, linear
//!      |  + grouped convolution over 128 steps, GELU; norm
//!   layers: x = norm(x + attention(x)); x = norm(x + linear(gelu(linear(x))))
//!           where scores of attention get a bias by distance, through a gate for each query
//! ```

mod attention;
mod positions;
mod size;

use crate::{
    graph::{Conv1d, Curve, DeviceTensor, Tensor},
    nn::{LayerNorm, Linear, constant},
    weights::{HostTensor, LoadError, Weights},
};

pub use self::size::WavLmSize;
use self::{
    attention::{BUCKETS, GatedAttention, by_position},
    positions::PositionConv,
    size::Names,
};

/// Taps and stride of the convolutions over samples.
const CONVS: [[usize; 2]; 7] = [[10, 5], [3, 2], [3, 2], [3, 2], [3, 2], [2, 2], [2, 2]];

/// The network.
pub struct WavLm {
    convs: Vec<DeviceTensor>,
    /// Gain and bias after the first convolution, of each channel over time.
    first_norm: [DeviceTensor; 2],
    projection_norm: LayerNorm,
    projection: Linear,
    positions: PositionConv,
    norm: LayerNorm,
    /// Bias of each bucket and head `[buckets, head]`.
    distances: HostTensor,
    layers: Vec<Layer>,
    size: WavLmSize,
}

impl WavLm {
    /// Reads the names of torchaudio or of transformers, below `weights`.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(weights: &Weights, size: WavLmSize) -> Result<WavLm, LoadError> {
        let names = Names::of(&|name| weights.has(name));
        let convs = weights.pp("feature_extractor.conv_layers");
        let conv = |(i, [taps, _]): (usize, &[usize; 2])| {
            let inputs = if i == 0 { 1 } else { size.features };
            let at = convs.pp(i).pp("conv");
            at.conv1d(size.features, inputs, *taps, "weight")
        };
        let first = convs.pp("0.layer_norm");
        let projection = weights.pp(names.projection);
        let encoder = weights.pp(names.encoder);
        let layers = encoder.pp("layers");
        Ok(WavLm {
            convs: CONVS
                .iter()
                .enumerate()
                .map(conv)
                .collect::<Result<_, _>>()?,
            first_norm: [
                first.get_f32(&[size.features], "weight")?,
                first.get_f32(&[size.features], "bias")?,
            ],
            projection_norm: LayerNorm::load(&projection.pp("layer_norm"), size.features)?,
            projection: Linear::load(&projection.pp("projection"), size.width, size.features)?,
            positions: PositionConv::load(&encoder.pp("pos_conv_embed.conv"), &size)?,
            norm: LayerNorm::load(&encoder.pp("layer_norm"), size.width)?,
            distances: layers.host(&[BUCKETS, size.heads], "0.attention.rel_attn_embed.weight")?,
            layers: (0..size.layers)
                .map(|i| Layer::load(&layers.pp(i), &size))
                .collect::<Result<_, _>>()?,
            size,
        })
    }

    /// Samples that give exactly so many steps, none to spare.
    pub fn samples_for(steps: usize) -> usize {
        CONVS
            .iter()
            .rev()
            .fold(steps.max(1), |n, [taps, stride]| (n - 1) * stride + taps)
    }

    /// Samples `[1, n, 1]` at 16 kHz -> what each of the first `count` layers makes of them,
    /// `[1, step, width]`. `tap` is shown the values in between, by name.
    pub fn forward<'g>(
        &self,
        samples: Tensor<'g>,
        count: usize,
        tap: &dyn Fn(&str, Tensor<'g>),
    ) -> Vec<Tensor<'g>> {
        let scope = samples.scope();
        let mut x = samples;
        for (i, (weight, [taps, stride])) in self.convs.iter().zip(CONVS).enumerate() {
            x = x.conv1d(weight, None, strided(taps, stride)); // [1, step, feature]
            if i == 0 {
                let [gain, bias] = self.first_norm.each_ref().map(|t| scope.stored(t));
                x = x.channel_norm(gain, bias, 1e-5, Curve::Line);
            }
            x = x.gelu();
            tap(&format!("conv{i}"), x);
        }
        let x = self.projection.forward(self.projection_norm.forward(x)); // [1, step, width]
        tap("projection", x);
        let positions = self.positions.forward(x);
        tap("positions", positions);
        let mut x = self.norm.forward(x + positions);
        tap("encoder_in", x);
        let steps = x.dim(1);
        let shape = [self.size.heads, steps, steps];
        let bias = constant(scope, &shape, &by_position(&self.distances, steps));
        tap("bias", bias);
        let mut outputs = Vec::with_capacity(self.layers.len());
        for (i, layer) in self.layers.iter().take(count).enumerate() {
            let heard = layer.attention.forward(x, bias);
            tap(&format!("layer{}_attention", i + 1), heard);
            x = layer.after(x + heard);
            outputs.push(x);
        }
        outputs
    }
}

fn strided(kernel: usize, stride: usize) -> Conv1d {
    Conv1d {
        kernel,
        stride,
        dilation: 1,
        padding: (0, 0),
    }
}

struct Layer {
    attention: GatedAttention,
    norm: LayerNorm,
    hidden: [Linear; 2],
    final_norm: LayerNorm,
}

impl Layer {
    fn load(weights: &Weights, size: &WavLmSize) -> Result<Layer, LoadError> {
        let (width, hidden) = (size.width, size.hidden);
        let dense = weights.pp("feed_forward");
        Ok(Layer {
            attention: GatedAttention::load(&weights.pp("attention"), size)?,
            norm: LayerNorm::load(&weights.pp("layer_norm"), width)?,
            hidden: [
                Linear::load(&dense.pp("intermediate_dense"), hidden, width)?,
                Linear::load(&dense.pp("output_dense"), width, hidden)?,
            ],
            final_norm: LayerNorm::load(&weights.pp("final_layer_norm"), width)?,
        })
    }

    /// What follows attention: `[1, step, width]` -> `[1, step, width]`.
    fn after<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let x = self.norm.forward(x);
        let [first, second] = &self.hidden;
        self.final_norm
            .forward(x + second.forward(first.forward(x).gelu()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_take_320_samples_each_and_80_more() {
        assert_eq!(WavLm::samples_for(1), 400);
        assert_eq!(WavLm::samples_for(73), 72 * 320 + 400);
    }
}
