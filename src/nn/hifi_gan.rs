//! The HiFi-GAN vocoder (Kong et al. 2020, <https://arxiv.org/abs/2010.05646>).

use crate::{
    graph::{Around, ResidualLayer, Tensor},
    weights::{LoadError, Weights},
};

use super::{Conv, ConvSize, Linear, Upsample, UpsampleSize};

/// Slope of the leaky rectifiers within.
const SLOPE: f32 = 0.1;
/// Slope of the last one, PyTorch's default.
const LAST_SLOPE: f32 = 0.01;
/// Taps of the first and the last convolution.
const ENDS: usize = 7;

/// Sizes of a [`HifiGan`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HifiGanSize {
    /// Channels of a frame.
    pub inputs: usize,
    /// Channels before the first upsampling; each halves them.
    pub channels: usize,
    /// Factor and kernel of each upsampling.
    pub upsamples: Vec<(usize, usize)>,
    /// Kernel and dilations of each residual block behind an upsampling.
    pub blocks: Vec<(usize, Vec<usize>)>,
    /// Whether each dilated convolution is followed by a plain one (blocks of type 1).
    pub double: bool,
    /// Channels of the conditioning vector; 0 for none.
    pub condition: usize,
}

impl HifiGanSize {
    /// Samples for each frame.
    pub fn hop(&self) -> usize {
        self.upsamples.iter().map(|(factor, _)| factor).product()
    }

    /// Frames on each side of a frame that can change its samples.
    pub fn reach(&self) -> usize {
        let block = |(kernel, dilations): &(usize, Vec<usize>)| {
            let dilated: usize = dilations.iter().map(|d| (kernel - 1) / 2 * d).sum();
            let plain = usize::from(self.double) * dilations.len() * (kernel / 2);
            dilated + plain
        };
        let blocks = self.blocks.iter().map(block).max().unwrap_or(0);
        // From the samples back to the frames.
        let mut reach = ENDS / 2;
        for (factor, kernel) in self.upsamples.iter().rev() {
            reach = (reach + blocks).div_ceil(*factor) + kernel.div_ceil(*factor);
        }
        reach + ENDS / 2
    }
}

/// Frames to samples: upsampling by transposed convolutions, each followed by residual blocks of
/// several widths side by side.
#[derive(Debug, Clone)]
pub struct HifiGan {
    first: Conv,
    condition: Option<Linear>,
    stages: Vec<(Upsample, Vec<ResidualBlock>)>,
    last: Conv,
}

/// Dilated convolutions with residual connections.
#[derive(Debug, Clone)]
struct ResidualBlock(Vec<(Conv, Option<Conv>)>);

impl HifiGan {
    /// Reads `conv_pre`, `cond`, `ups.N`, `resblocks.N.{convs1,convs2}.M` (or `convs.M`) and
    /// `conv_post`.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(weights: &Weights, size: &HifiGanSize, short: bool) -> Result<HifiGan, LoadError> {
        let conv = |name: &str, inputs, out| {
            Conv::load(&weights.pp(name), ConvSize::new(inputs, out, ENDS), short)
        };
        let stage = |(i, &(stride, kernel)): (usize, &(usize, usize))| {
            let (inputs, out) = (size.channels >> i, size.channels >> (i + 1));
            let up = UpsampleSize {
                inputs,
                out,
                kernel,
                stride,
            };
            let up = Upsample::load(&weights.pp("ups").pp(i), up, short)?;
            let block = |(j, (kernel, dilations)): (usize, &(usize, Vec<usize>))| {
                let weights = weights.pp("resblocks").pp(i * size.blocks.len() + j);
                ResidualBlock::load(&weights, out, *kernel, dilations, size.double, short)
            };
            let blocks = size.blocks.iter().enumerate().map(block);
            Ok((up, blocks.collect::<Result<Vec<_>, LoadError>>()?))
        };
        let stages = size.upsamples.iter().enumerate().map(stage);
        Ok(HifiGan {
            first: conv("conv_pre", size.inputs, size.channels)?,
            condition: match size.condition {
                0 => None,
                k => Some(Linear::load(&weights.pp("cond"), size.channels, k)?),
            },
            stages: stages.collect::<Result<_, LoadError>>()?,
            last: conv("conv_post", size.channels >> size.upsamples.len(), 1)?,
        })
    }

    /// Frames `[1, time, inputs]`, condition `[1, 1, k]` -> samples `[1, time * hop, 1]` in
    /// -1..=1.
    pub fn forward<'g>(&self, frames: Tensor<'g>, condition: Option<Tensor<'g>>) -> Tensor<'g> {
        let mut x = self.first.forward(frames);
        if let (Some(linear), Some(condition)) = (&self.condition, condition) {
            x = x + linear.forward(condition);
        }
        for (up, blocks) in &self.stages {
            x = mean_of(blocks, up.forward(x, SLOPE)); // [1, time * stride, channels / 2]
        }
        let around = Around {
            slope: LAST_SLOPE,
            ..Around::default()
        };
        self.last.around(x, around).tanh()
    }
}

/// The mean of the blocks' results: `[1, time, channels]` -> the same.
fn mean_of<'g>(blocks: &[ResidualBlock], x: Tensor<'g>) -> Tensor<'g> {
    let short: Option<Vec<_>> = blocks.iter().map(ResidualBlock::short).collect();
    if let Some(short) = short {
        return x.residual_blocks(&short, SLOPE);
    }
    let mut sum = None;
    for (j, block) in blocks.iter().enumerate() {
        let scale = match j + 1 == blocks.len() {
            true => 1.0 / blocks.len() as f32,
            false => 1.0,
        };
        sum = Some(block.forward(x, sum, scale));
    }
    sum.unwrap_or(x)
}

impl ResidualBlock {
    /// Its layers, where all of them have been loaded in the short form.
    fn short(&self) -> Option<Vec<ResidualLayer<'_>>> {
        fn layer((first, second): &(Conv, Option<Conv>)) -> Option<ResidualLayer<'_>> {
            Some(ResidualLayer {
                first: first.short()?,
                second: match second {
                    Some(second) => Some(second.short()?),
                    None => None,
                },
            })
        }
        self.0.iter().map(layer).collect()
    }

    fn load(
        weights: &Weights,
        channels: usize,
        kernel: usize,
        dilations: &[usize],
        double: bool,
        short: bool,
    ) -> Result<ResidualBlock, LoadError> {
        let plain = ConvSize::new(channels, channels, kernel);
        let layer = |(m, &dilation): (usize, &usize)| {
            let (one, two) = match double {
                true => ("convs1", Some("convs2")),
                false => ("convs", None),
            };
            let two = two.map(|name| Conv::load(&weights.pp(name).pp(m), plain, short));
            let one = Conv::load(&weights.pp(one).pp(m), plain.dilated(dilation), short)?;
            Ok((one, two.transpose()?))
        };
        let layers = dilations.iter().enumerate().map(layer);
        Ok(ResidualBlock(layers.collect::<Result<_, LoadError>>()?))
    }

    /// `scale (block(x) + sum)`: x and sum `[1, time, channels]`.
    fn forward<'g>(&self, mut x: Tensor<'g>, sum: Option<Tensor<'g>>, scale: f32) -> Tensor<'g> {
        for (m, (one, two)) in self.0.iter().enumerate() {
            let last = m + 1 == self.0.len();
            let mut plus = vec![x];
            plus.extend(sum.filter(|_| last));
            let end = Around {
                slope: SLOPE,
                plus: &plus,
                scale: if last { scale } else { 1.0 },
            };
            let leaky = Around {
                slope: SLOPE,
                ..Around::default()
            };
            x = match two {
                Some(two) => two.around(one.around(x, leaky), end),
                None => one.around(x, end),
            };
        }
        x
    }
}
