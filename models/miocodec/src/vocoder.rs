//! The vocoder of the mel variant: from mel spectra to samples, without aliases.
//!
//! ```text
//!   mel [1, frame, mel]
//!      |  conv 7 ------------------------------ p
//!   for each rate r:                            |
//!      |  low-pass of x with r - 1 zeros        |  conv 7 of p with zeros up to the rate so far,
//!      |  after each value                      |  less its low-pass
//!      + ---------------------------------------'
//!      |  conv 1; mean of residual blocks (kernels 3, 7, 11)
//!   activation, conv 7, clamp
//! ```

use audiocpp::{
    graph::{Device, GraphError, Tensor},
    nn::{Beyond, Conv, ConvSize, Fir, Linear, constant},
    weights::{HostTensor, LoadError, Weights},
};
use serde_json::Value;

use crate::{
    activation::{Activation, Resampling},
    net::Tap,
};

/// Taps of the convolutions outside of the residual blocks.
const TAPS: usize = 7;
/// Samples of a low-pass filter on either side, for each step of its rate.
const LOBES: usize = 8;
/// Largest size that any part may have.
const MOST: u64 = 1 << 14;

/// Sizes of a [`Vocoder`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VocoderConfig {
    /// Mel bins.
    pub mels: usize,
    /// Factors of the stages.
    pub rates: Vec<usize>,
    /// Channels before the first stage; each halves them.
    pub channels: usize,
    /// Taps of the residual blocks of a stage.
    pub kernels: Vec<usize>,
    /// Dilations of the layers of each.
    pub dilations: Vec<Vec<usize>>,
}

impl VocoderConfig {
    /// Reads `vocoder_config.json`; what is wrong with it is told in a few words.
    ///
    /// # Errors
    /// No JSON, another generator, missing or impossible sizes.
    pub fn parse(text: &str) -> Result<VocoderConfig, String> {
        let root: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let generator = &root["model"]["generator"];
        if generator.as_str() != Some("pupuvocoder") {
            return Err(format!(
                "`model.generator` is {generator}, wanted `pupuvocoder`"
            ));
        }
        let model = &root["model"]["pupuvocoder"];
        if model["resblock"].as_str() != Some("1") {
            let found = &model["resblock"];
            return Err(format!(
                "`resblock` is {found}, wanted `1`: the other is not supported"
            ));
        }
        let size = |value: &Value| value.as_u64().filter(|n| (1..=MOST).contains(n));
        let sizes = |value: &Value| -> Option<Vec<usize>> {
            let list = value
                .as_array()
                .filter(|list| !list.is_empty() && list.len() <= 16)?;
            list.iter().map(|v| size(v).map(|n| n as usize)).collect()
        };
        let wrong = |key: &str| format!("`{key}` is missing or has impossible sizes");
        let dilations = model["resblock_dilation_sizes"].as_array();
        let dilations = dilations.and_then(|rows| rows.iter().map(sizes).collect());
        let config = VocoderConfig {
            mels: size(&root["preprocess"]["n_mel"]).ok_or_else(|| wrong("n_mel"))? as usize,
            rates: sizes(&model["upsample_rates"]).ok_or_else(|| wrong("upsample_rates"))?,
            channels: size(&model["upsample_initial_channel"])
                .ok_or_else(|| wrong("upsample_initial_channel"))? as usize,
            kernels: sizes(&model["resblock_kernel_sizes"])
                .ok_or_else(|| wrong("resblock_kernel_sizes"))?,
            dilations: dilations.ok_or_else(|| wrong("resblock_dilation_sizes"))?,
        };
        let stages = config.rates.len();
        let fits = config.rates.iter().all(|r| (2..=64).contains(r))
            && config.rates.first().is_some_and(|&r| r >= TAPS)
            && config.channels.is_multiple_of(1 << stages)
            && config.kernels.len() == config.dilations.len()
            && config.kernels.iter().all(|k| k % 2 == 1 && *k <= 64);
        match fits {
            true => Ok(config),
            false => Err(format!(
                "rates {:?}, {} channels and kernels {:?} make no vocoder; wanted rates of 2 to \
                 64 (the first at least {TAPS}), channels that halve with each, odd kernels with \
                 dilations",
                config.rates, config.channels, config.kernels
            )),
        }
    }

    /// Samples for each frame.
    pub fn hop(&self) -> usize {
        self.rates.iter().product()
    }
}

pub struct Vocoder {
    pre: Conv,
    stages: Vec<Stage>,
    post_activation: Activation,
    post: Conv,
    resampling: Resampling,
}

struct Stage {
    rate: usize,
    low: LowPass,
    noise: Noise,
    mix: Linear,
    blocks: Vec<Block>,
}

impl Vocoder {
    /// Below `weights`, or below `model` there.
    pub fn load(
        weights: &Weights,
        config: &VocoderConfig,
        device: &Device,
        short: bool,
    ) -> Result<Self, LoadError> {
        let inner = weights.pp("model");
        let w = match inner.pp("conv_pre").has("bias") {
            true => &inner,
            false => weights,
        };
        let count = config.kernels.len();
        let stage = |i: usize| {
            let (inputs, out) = (config.channels >> i, config.channels >> (i + 1));
            let (rate, at) = (config.rates[i], w.pp("ups").pp(i));
            let sofar = config.rates[..=i].iter().product();
            let block = |k: usize| {
                let at = w.pp("resblocks").pp(i * count + k);
                Block::load(&at, out, config.kernels[k], &config.dilations[k], short)
            };
            Ok(Stage {
                rate,
                low: LowPass::new(device, rate)?,
                noise: Noise::load(
                    &at.pp("convolution_noise"),
                    [config.channels, inputs],
                    sofar,
                )?,
                mix: Linear::load(&at.pp("convolution_after"), out, inputs)?,
                blocks: (0..count).map(block).collect::<Result<_, LoadError>>()?,
            })
        };
        let last = config.channels >> config.rates.len();
        Ok(Vocoder {
            pre: Conv::load(
                &w.pp("conv_pre"),
                ConvSize::new(config.mels, config.channels, TAPS),
                short,
            )?,
            stages: (0..config.rates.len())
                .map(stage)
                .collect::<Result<_, LoadError>>()?,
            post_activation: Activation::load(&w.pp("activation_post.act"), last)?,
            post: Conv::load(&w.pp("conv_post"), ConvSize::new(last, 1, TAPS), short)?,
            resampling: Resampling::new(device)?,
        })
    }

    /// `[1, frame, mel]` -> `[1, frame * hop, 1]`.
    pub fn forward<'g>(&self, mel: Tensor<'g>, tap: Tap<'_, 'g>) -> Tensor<'g> {
        let pre = self.pre.forward(mel); // [1, frame, channels]
        tap("pre", pre);
        let mut x = pre;
        for (i, stage) in self.stages.iter().enumerate() {
            let raised = stage.low.raised(x, stage.rate); // [1, time * rate, c]
            let noise = stage.noise.forward(pre); // the same
            let noise = noise - stage.low.level(noise);
            x = stage.mix.forward(raised + noise); // [1, time * rate, c / 2]
            tap(&format!("up{i}"), x);
            let mut blocks = stage.blocks.iter().enumerate().map(|(k, block)| {
                let name = format!("up{i}_block{k}");
                let y = block.forward(x, &self.resampling, &|part, y| {
                    tap(&format!("{name}_{part}"), y);
                });
                tap(&name, y);
                y
            });
            let first = blocks.next().unwrap_or(x);
            x = blocks
                .fold(first, |sum, y| sum + y)
                .scale(1.0 / stage.blocks.len() as f32);
        }
        let x = self.post_activation.forward(x, &self.resampling);
        tap("post_activation", x);
        let x = self.post.forward(x);
        tap("post", x);
        x.clamp(-1.0, 1.0)
    }
}

/// Layers of x + conv(act(conv(act(x)))), the first convolution dilated.
struct Block {
    layers: Vec<([Activation; 2], [Conv; 2])>,
}

impl Block {
    fn load(
        weights: &Weights,
        channels: usize,
        kernel: usize,
        dilations: &[usize],
        short: bool,
    ) -> Result<Self, LoadError> {
        let layer = |(i, &dilation): (usize, &usize)| {
            let size = ConvSize::new(channels, channels, kernel);
            let conv = |name: &str, size| Conv::load(&weights.pp(name).pp(i), size, short);
            let activation =
                |n: usize| Activation::load(&weights.pp("activations").pp(n).pp("act"), channels);
            Ok((
                [activation(2 * i)?, activation(2 * i + 1)?],
                [
                    conv("convs1", size.dilated(dilation))?,
                    conv("convs2", size)?,
                ],
            ))
        };
        let layers = dilations.iter().enumerate().map(layer);
        Ok(Block {
            layers: layers.collect::<Result<_, LoadError>>()?,
        })
    }

    /// `[1, time, channel]` -> `[1, time, channel]`.
    fn forward<'g>(
        &self,
        mut x: Tensor<'g>,
        resampling: &Resampling,
        tap: Tap<'_, 'g>,
    ) -> Tensor<'g> {
        for (i, (activations, convs)) in self.layers.iter().enumerate() {
            let mut y = x;
            for (n, (activation, conv)) in activations.iter().zip(convs).enumerate() {
                y = activation.forward(y, resampling);
                tap(&format!("activation{}", 2 * i + n), y);
                y = conv.forward(y);
            }
            x = x + y;
        }
        x
    }
}

/// A convolution over values with zeros between them: a few outputs beside each value, and the bias
/// everywhere.
struct Noise {
    /// `[TAPS * out, in]`, from the first output that a value reaches to the last.
    beside: Linear,
    bias: audiocpp::graph::DeviceTensor,
    rate: usize,
}

impl Noise {
    fn load(weights: &Weights, [inputs, out]: [usize; 2], rate: usize) -> Result<Self, LoadError> {
        let whole = [out, inputs, TAPS];
        let parts = [("weight_g", &[out, 1, 1][..]), ("weight_v", &whole[..])];
        // An output d steps after a value takes it through tap TAPS / 2 - d.
        let turned = move |w: HostTensor| {
            let mut rows = HostTensor::zeros(&[TAPS * out, inputs]);
            for (i, value) in w.data.iter().enumerate() {
                let (o, c, k) = (i / TAPS / inputs, i / TAPS % inputs, i % TAPS);
                rows.data[((TAPS - 1 - k) * out + o) * inputs + c] = *value;
            }
            rows
        };
        let shape = [TAPS * out, inputs];
        let weight = match weights.has("weight_g") {
            true => weights.get_with(&shape, "weight", parts, move |[gain, v]| {
                turned(v.weight_norm(&gain))
            })?,
            false => weights.get_with(&shape, "weight", [("weight", &whole[..])], move |[w]| {
                turned(w)
            })?,
        };
        Ok(Noise {
            beside: Linear { weight, bias: None },
            bias: weights.get_f32(&[out], "bias")?,
            rate,
        })
    }

    /// `[1, frame, in]` -> `[1, frame * rate, out]`.
    fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let [_, frames, _] = x.dims();
        let beside = self.beside.forward(x); // [1, frame, TAPS * out]
        let out = beside.dim(2) / TAPS;
        let spread = beside.pad(2, 0, (self.rate - TAPS) * out);
        let spread = spread.reshape(&[1, frames * self.rate, out]);
        // The first outputs of a value lie before it.
        let early = TAPS / 2;
        spread.pad(1, 0, early).slice(1, early, frames * self.rate) + &self.bias
    }
}

/// Filters that let the lower 1 / rate of the band through.
struct LowPass {
    /// Over values with zeros between them.
    raise: Fir,
    /// What the first value adds as if it were repeated before the first.
    before: Vec<f32>,
    level: Fir,
}

impl LowPass {
    fn new(device: &Device, rate: usize) -> Result<LowPass, GraphError> {
        let half = LOBES * rate;
        let taps = windowed_sinc(0.5 / rate as f64, half);
        let tap = |distance: isize| {
            let at = usize::try_from(distance + half as isize).ok();
            at.and_then(|at| taps.get(at)).copied().unwrap_or(0.0)
        };
        let r = rate as isize;
        Ok(LowPass {
            raise: Fir::new(device, [1, rate], [LOBES, LOBES], |i, j| tap(i - j * r))?,
            before: (0..half)
                .map(|n| taps[half + n + 1..].iter().sum::<f64>() as f32)
                .collect(),
            level: Fir::new(device, [1, 1], [half, half], |i, j| tap(i - j))?,
        })
    }

    /// `[1, time, channel]` -> `[1, time * rate, channel]`, with zeros after each value, then
    /// filtered.
    fn raised<'g>(&self, x: Tensor<'g>, rate: usize) -> Tensor<'g> {
        let [_, time, channels] = x.dims();
        let long = time * rate;
        let x = x.reshape(&[time, channels]).transpose().contiguous(); // [channel, time]
        let y = self.raise.forward(x, Beyond::Zeros, long);
        let count = self.before.len().min(long);
        let before = constant(x.scope(), &[1, count], &self.before[..count]);
        let first = x.slice(1, 0, 1).broadcast(&[channels, count]) * before;
        let y = y + first.pad(1, 0, long - count);
        y.transpose().contiguous().reshape(&[1, long, channels])
    }

    /// `[1, time, channel]` -> `[1, time, channel]`, filtered.
    fn level<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let [_, time, channels] = x.dims();
        let x = x.reshape(&[time, channels]).transpose().contiguous();
        let y = self.level.forward(x, Beyond::Edge, time);
        y.transpose().contiguous().reshape(&[1, time, channels])
    }
}

/// The taps of a low-pass at `cutoff` (of the rate), `half` on either side of the middle, under a
/// Hann window; their sum is 1.
fn windowed_sinc(cutoff: f64, half: usize) -> Vec<f64> {
    let tap = |i: usize| {
        let t = i as f64 - half as f64;
        let angle = std::f64::consts::PI * 2.0 * cutoff * t;
        let sinc = if t == 0.0 { 1.0 } else { angle.sin() / angle };
        let window = 0.5 - 0.5 * (std::f64::consts::PI * i as f64 / half as f64).cos();
        sinc * window
    };
    let taps: Vec<f64> = (0..=2 * half).map(tap).collect();
    let sum: f64 = taps.iter().sum();
    taps.into_iter().map(|tap| tap / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = include_str!("../../../tests/data/miocodec/vocoder_config.json");

    #[test]
    fn sizes_are_read_and_impossible_ones_are_refused() {
        let config = VocoderConfig::parse(CONFIG).unwrap();
        assert_eq!((config.mels, config.channels, config.hop()), (16, 32, 512));
        assert_eq!(config.kernels, [3, 7, 11]);
        let refused = |from: &str, to: &str, says: &str| {
            assert!(CONFIG.contains(from), "{from}");
            let error = VocoderConfig::parse(&CONFIG.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(says), "{error}");
        };
        refused("\"pupuvocoder\"", "\"hifigan\"", "model.generator");
        refused(
            "\"upsample_initial_channel\": 32",
            "\"upsample_initial_channel\": 33",
            "halve",
        );
        refused(
            "\"upsample_initial_channel\": 32",
            "\"upsample_initial_channel\": -1",
            "initial",
        );
        refused("\"n_mel\": 16", "\"n_mel\": \"x\"", "n_mel");
        assert!(VocoderConfig::parse("{").is_err());
    }

    #[test]
    fn a_low_pass_keeps_a_constant() {
        let taps = windowed_sinc(0.25, 16);
        assert_eq!(taps.len(), 33);
        assert!((taps.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(taps[0].abs() < 1e-12 && taps[16] > 0.49 && taps[18].abs() < 1e-9);
    }
}
