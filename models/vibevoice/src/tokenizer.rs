//! The convolutional tokenizers: samples to latents and back.

use audiocpp::{
    graph::Tensor,
    weights::{LoadError, Weights},
};

use crate::{
    config::{KERNEL, TokenizerSize},
    layers::{Block, CausalConv, CausalUpsample, Memory, Past},
};

/// A convolution that changes the rate, and the blocks behind it.
#[derive(Debug, Clone)]
struct Stage<C> {
    conv: C,
    blocks: Vec<Block>,
}

/// Samples to latents.
#[derive(Debug, Clone)]
pub struct Encoder {
    stages: Vec<Stage<CausalConv>>,
    head: CausalConv,
}

/// Latents to samples.
#[derive(Debug, Clone)]
pub struct Decoder {
    stem: Stage<CausalConv>,
    stages: Vec<Stage<CausalUpsample>>,
    head: CausalConv,
}

fn blocks(
    weights: &Weights,
    stage: usize,
    count: usize,
    channels: usize,
    eps: f32,
) -> Result<Vec<Block>, LoadError> {
    let stage = weights.pp(format_args!("stages.{stage}"));
    (0..count)
        .map(|i| Block::load(&stage.pp(i), channels, eps))
        .collect()
}

fn run<'g>(blocks: &[Block], x: Tensor<'g>, past: &mut Past) -> Tensor<'g> {
    blocks.iter().fold(x, |x, block| block.forward(x, past))
}

impl Encoder {
    /// Reads `downsample_layers`, `stages` and `head`.
    pub fn load(weights: &Weights, size: &TokenizerSize) -> Result<Encoder, LoadError> {
        let stage = |i: usize, depth: usize| -> Result<Stage<CausalConv>, LoadError> {
            let conv = weights.pp(format_args!("downsample_layers.{i}.0.conv.conv"));
            let channels = size.filters << i;
            let conv = match i.checked_sub(1) {
                None => CausalConv::load(&conv, [1, channels], KERNEL, 1)?,
                Some(before) => {
                    let ratio = size.ratios[before];
                    CausalConv::load(&conv, [channels / 2, channels], 2 * ratio, ratio)?
                }
            };
            Ok(Stage {
                conv,
                blocks: blocks(weights, i, depth, channels, size.eps)?,
            })
        };
        let stages = size.depths.iter().enumerate().map(|(i, &n)| stage(i, n));
        let last = size.filters << size.ratios.len();
        let head = weights.pp("head.conv.conv");
        Ok(Encoder {
            stages: stages.collect::<Result<_, _>>()?,
            head: CausalConv::load(&head, [last, size.latent], KERNEL, 1)?,
        })
    }

    /// What its layers keep, in their order.
    pub fn memories(&self) -> Vec<Memory> {
        let stage = |stage: &Stage<CausalConv>| {
            let blocks = stage.blocks.iter().map(Block::memory);
            [stage.conv.memory()]
                .into_iter()
                .chain(blocks)
                .collect::<Vec<_>>()
        };
        let stages = self.stages.iter().flat_map(stage);
        stages.chain([self.head.memory()]).collect()
    }

    /// Samples `[1, frames * hop, 1]` -> latents `[1, frames, latent]`.
    pub fn forward<'g>(&self, samples: Tensor<'g>, mut past: Past) -> Tensor<'g> {
        let past = &mut past;
        let x = self.stages.iter().fold(samples, |x, stage| {
            let x = stage.conv.forward(x, past); // [1, time / ratio, 2 channels]
            run(&stage.blocks, x, past)
        });
        self.head.forward(x, past)
    }
}

impl Decoder {
    /// Reads `upsample_layers`, `stages` and `head`; `depths` count from the latents on.
    pub fn load(
        weights: &Weights,
        size: &TokenizerSize,
        depths: &[usize],
    ) -> Result<Decoder, LoadError> {
        let (count, first) = (size.ratios.len(), size.filters << size.ratios.len());
        let stem = weights.pp("upsample_layers.0.0.conv.conv");
        let stage = |(i, &depth): (usize, &usize)| -> Result<Stage<CausalUpsample>, LoadError> {
            let conv = weights.pp(format_args!("upsample_layers.{i}.0.convtr.convtr"));
            let (channels, ratio) = (first >> i, size.ratios[count - i]);
            Ok(Stage {
                conv: CausalUpsample::load(&conv, [2 * channels, channels], ratio)?,
                blocks: blocks(weights, i, depth, channels, size.eps)?,
            })
        };
        let stages = depths.iter().enumerate().skip(1).map(stage);
        let stem = Stage {
            conv: CausalConv::load(&stem, [size.latent, first], KERNEL, 1)?,
            blocks: blocks(
                weights,
                0,
                depths.first().copied().unwrap_or(0),
                first,
                size.eps,
            )?,
        };
        let head = weights.pp("head.conv.conv");
        Ok(Decoder {
            stem,
            stages: stages.collect::<Result<_, _>>()?,
            head: CausalConv::load(&head, [size.filters, 1], KERNEL, 1)?,
        })
    }

    /// What its layers keep, in their order.
    pub fn memories(&self) -> Vec<Memory> {
        let blocks = |blocks: &[Block]| blocks.iter().map(Block::memory).collect::<Vec<_>>();
        let mut all = vec![self.stem.conv.memory()];
        all.extend(blocks(&self.stem.blocks));
        for stage in &self.stages {
            all.push(stage.conv.memory());
            all.extend(blocks(&stage.blocks));
        }
        all.push(self.head.memory());
        all
    }

    /// Latents `[1, frames, latent]` -> samples `[1, frames * hop, 1]`.
    pub fn forward<'g>(&self, latents: Tensor<'g>, mut past: Past) -> Tensor<'g> {
        let past = &mut past;
        let x = self.stem.conv.forward(latents, past); // [1, frames, channels]
        let x = run(&self.stem.blocks, x, past);
        let x = self.stages.iter().fold(x, |x, stage| {
            let x = stage.conv.forward(x, past); // [1, time * ratio, channels / 2]
            run(&stage.blocks, x, past)
        });
        self.head.forward(x, past)
    }
}
