//! From features of speech to one vector for the whole of it.

use audiocpp::{
    graph::{DeviceTensor, Tensor},
    nn::{Conv, ConvSize, Depthwise, LayerNorm, Linear},
    weights::{LoadError, Weights},
};

use crate::{config::GlobalConfig, net::Tap};

/// ConvNeXt blocks (Liu et al. 2022, <https://arxiv.org/abs/2201.03545>) and pooling that attends
/// to where each channel says most.
pub struct GlobalEncoder {
    embed: Conv,
    norm: LayerNorm,
    blocks: Vec<ConvNext>,
    final_norm: LayerNorm,
    attention: [Linear; 2],
    project: Linear,
    out_norm: LayerNorm,
}

struct ConvNext {
    depthwise: Depthwise,
    norm: LayerNorm,
    hidden: [Linear; 2],
    gamma: DeviceTensor,
}

/// Taps of the convolutions of the global encoder.
const TAPS: usize = 7;
/// Width of the pooling's attention.
const POOLING: usize = 128;

impl GlobalEncoder {
    pub fn load(weights: &Weights, config: &GlobalConfig, short: bool) -> Result<Self, LoadError> {
        let (backbone, pooling) = (weights.pp("backbone"), weights.pp("pooling"));
        let dim = config.dim;
        let norm = |at: &Weights| {
            Ok::<_, LoadError>(LayerNorm {
                eps: 1e-6,
                ..LayerNorm::load(at, dim)?
            })
        };
        let block = |i: usize| {
            let at = backbone.pp("convnext").pp(i);
            Ok(ConvNext {
                depthwise: Depthwise::load(&at.pp("dwconv"), dim, TAPS)?,
                norm: norm(&at.pp("norm"))?,
                hidden: [
                    Linear::load(&at.pp("pwconv1"), config.hidden, dim)?,
                    Linear::load(&at.pp("pwconv2"), dim, config.hidden)?,
                ],
                gamma: at.get_f32(&[dim], "gamma")?,
            })
        };
        let embed = ConvSize::new(config.input, dim, TAPS);
        Ok(GlobalEncoder {
            embed: Conv::load(&backbone.pp("embed"), embed, short)?,
            norm: norm(&backbone.pp("norm"))?,
            blocks: (0..config.layers)
                .map(block)
                .collect::<Result<_, LoadError>>()?,
            final_norm: norm(&backbone.pp("final_layer_norm"))?,
            attention: [
                Linear::load(&pooling.pp("attn.0"), POOLING, dim)?,
                Linear::load(&pooling.pp("attn.2"), dim, POOLING)?,
            ],
            project: Linear::load(&pooling.pp("proj"), config.output, 2 * dim)?,
            out_norm: LayerNorm::load(&pooling.pp("norm"), config.output)?,
        })
    }

    /// `[1, step, width]` -> `[1, global]`.
    pub fn forward<'g>(&self, x: Tensor<'g>, tap: Tap<'_, 'g>) -> Tensor<'g> {
        let x = self.embed.forward(x); // [1, step, dim]
        tap("global.embed", x);
        let mut x = self.norm.forward(x);
        tap("global.norm", x);
        for (i, block) in self.blocks.iter().enumerate() {
            let [first, second] = &block.hidden;
            let y = block.norm.forward(block.depthwise.forward(x, 1));
            x = x + second.forward(first.forward(y).gelu()) * &block.gamma;
            tap(&format!("global.block{i}"), x);
        }
        let x = self.final_norm.forward(x);
        tap("global.backbone", x);
        let [first, second] = &self.attention;
        let scores = second.forward(first.forward(x).tanh()); // [1, step, dim]
        let share = scores.transpose().softmax(1.0, None); // [1, dim, step]
        tap("global.share", share);
        let x = x.transpose().contiguous();
        let mean = (share * x).sum_last(); // [1, dim, 1]
        let variance = (share * x.sqr()).sum_last() - mean.sqr();
        let both = mean.concat(variance.clamp(1e-4, 1e4).sqrt(), 1);
        let both = both.reshape(&[1, both.dim(1)]); // [1, 2 dim]
        tap("global.pooled", both);
        self.out_norm.forward(self.project.forward(both))
    }
}
