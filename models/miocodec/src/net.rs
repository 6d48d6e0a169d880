//! The two halves of the codec: from sound to latents and a global vector, and from codes and a
//! global vector to spectra.

use audiocpp::{
    graph::{Conv1d, Tensor},
    nn::{Conv, ConvSize, LayerNorm, Linear, Upsample, UpsampleSize, WavLm},
    weights::{LoadError, Weights},
};

use crate::{
    config::{Config, DecoderConfig, DecoderKind},
    global_encoder::GlobalEncoder,
    layers::{ResNet, Upsampler, stretched},
    transformer::Transformer,
};

/// Is shown what a network makes on the way, by name.
pub type Tap<'t, 'g> = &'t dyn Fn(&str, Tensor<'g>);

/// From samples to what becomes tokens, and the global vector.
pub struct Encoder {
    pub wavlm: WavLm,
    local_encoder: Transformer,
    downsample: Linear,
    to_latents: Linear,
    global_encoder: GlobalEncoder,
    config: Config,
}

impl Encoder {
    /// `wavlm` has been read from a file of its own.
    pub fn load(
        weights: &Weights,
        wavlm: WavLm,
        config: &Config,
        short: bool,
    ) -> Result<Self, LoadError> {
        let (dim, factor) = (config.local_encoder.output(), config.downsample);
        let down = weights.pp("conv_downsample");
        let quantizer = weights.pp("local_quantizer");
        Ok(Encoder {
            wavlm,
            local_encoder: Transformer::load(&weights.pp("local_encoder"), &config.local_encoder)?,
            downsample: Linear {
                weight: down.conv1d(dim, dim, factor, "weight")?,
                bias: down.get_opt(&[dim], "bias")?,
            },
            to_latents: Linear::load(&quantizer.pp("proj_in"), config.quantizer.width(), dim)?,
            global_encoder: GlobalEncoder::load(
                &weights.pp("global_encoder"),
                &config.global,
                short,
            )?,
            config: config.clone(),
        })
    }

    /// Samples `[1, n, 1]` at 16 kHz -> latents `[1, token, levels]`, global vector `[1, global]`.
    pub fn forward<'g>(&self, samples: Tensor<'g>, tap: Tap<'_, 'g>) -> [Tensor<'g>; 2] {
        let count = self.config.ssl_layers();
        let layers = self.wavlm.forward(samples, count, &within("wavlm", tap)); // [1, step, width]
        for (i, layer) in layers.iter().enumerate() {
            tap(&format!("wavlm.layer{}", i + 1), *layer);
        }
        let local = mean(&layers, &self.config.local_layers);
        tap("local", local);
        let local = match self.config.normalize {
            true => standardized(local),
            false => local,
        };
        tap("standardized", local);
        let x = self
            .local_encoder
            .forward(local, None, &within("local_encoder", tap));
        tap("encoded", x);
        let factor = self.config.downsample;
        let shape = Conv1d {
            kernel: factor,
            stride: factor,
            dilation: 1,
            padding: (0, 0),
        };
        let x = self.downsample.conv1d(x, shape); // [1, token, dim]
        tap("downsampled", x);
        let latents = self.to_latents.forward(x); // [1, token, levels]
        [latents, self.global(&layers, tap)]
    }

    /// The global vector alone, which needs few layers of WavLM: `[1, n, 1]` -> `[1, global]`.
    pub fn voice<'g>(&self, samples: Tensor<'g>) -> Tensor<'g> {
        let count = self.config.global_layers.iter().copied().max().unwrap_or(0);
        let layers = self.wavlm.forward(samples, count, &|_, _| {});
        self.global(&layers, &|_, _| {})
    }

    fn global<'g>(&self, layers: &[Tensor<'g>], tap: Tap<'_, 'g>) -> Tensor<'g> {
        let x = mean(layers, &self.config.global_layers);
        tap("global", x);
        self.global_encoder.forward(x, tap)
    }
}

fn within<'t, 'g>(place: &'t str, tap: Tap<'t, 'g>) -> impl Fn(&str, Tensor<'g>) + 't {
    move |name, x| tap(&format!("{place}.{name}"), x)
}

/// The mean of some layers, counted from 1.
fn mean<'g>(layers: &[Tensor<'g>], which: &[usize]) -> Tensor<'g> {
    let chosen = which[1..].iter().map(|i| layers[i - 1]);
    let sum = chosen.fold(layers[which[0] - 1], |sum, layer| sum + layer);
    sum.scale(1.0 / which.len() as f32)
}

/// Each channel of `[1, time, channel]` less its mean, over its deviation (of a sample: by one step
/// less).
fn standardized(x: Tensor<'_>) -> Tensor<'_> {
    let [_, time, _] = x.dims();
    let x = x.transpose().contiguous(); // [1, channel, time]
    let x = x - x.mean_last();
    let variance = x.sqr().sum_last().scale(1.0 / (time.max(2) - 1) as f32);
    (x / variance.sqrt().scale_add(1.0, 1e-8))
        .transpose()
        .contiguous()
}

/// From codes and the global vector to frames of spectra.
pub struct Decoder {
    from_codes: Linear,
    prenet: Transformer,
    upsample: Upsample,
    /// None in the mel variant.
    prior: Vec<ResNet>,
    decoder: Transformer,
    rest: Rest,
}

enum Rest {
    Wave(Box<WaveRest>),
    /// The post-net of the mel variant.
    Mel(Vec<(Conv, LayerNorm)>),
}

struct WaveRest {
    post: Vec<ResNet>,
    upsampler: Option<Upsampler>,
    head: Linear,
}

impl Decoder {
    pub fn load(weights: &Weights, config: &Config, short: bool) -> Result<Self, LoadError> {
        let DecoderConfig {
            prenet,
            upsample,
            decoder,
            kind,
        } = &config.decoder;
        let name = match kind {
            DecoderKind::Wave { .. } => "wave",
            DecoderKind::Mel { .. } => "mel",
        };
        let at = |part: &str| weights.pp(format!("{name}_{part}"));
        let (width, quantizer) = (prenet.output(), weights.pp("local_quantizer"));
        let size = UpsampleSize {
            inputs: width,
            out: width,
            kernel: *upsample,
            stride: *upsample,
        };
        let (prior, rest) = match kind {
            DecoderKind::Wave {
                blocks,
                kernel,
                groups,
                upsampler,
            } => {
                let size = [width, *kernel, *groups];
                let stack = |at: Weights| -> Result<Vec<ResNet>, LoadError> {
                    let blocks = (0..*blocks).map(|i| at.pp("blocks").pp(i));
                    blocks.map(|at| ResNet::load(&at, size, short)).collect()
                };
                let up = || Upsampler::load(&at("upsampler"), size, upsampler, short);
                let head = weights.pp("istft_head.out");
                let rest = WaveRest {
                    post: stack(at("post_net"))?,
                    upsampler: (!upsampler.is_empty()).then(up).transpose()?,
                    head: Linear::load(&head, config.n_fft + 2, width)?,
                };
                (stack(at("prior_net"))?, Rest::Wave(Box::new(rest)))
            }
            DecoderKind::Mel {
                channels,
                kernel,
                layers,
            } => {
                let mels = decoder.output();
                let layer = |i: usize| {
                    let at = at("postnet").pp("convolutions").pp(i);
                    let ends = [i == 0, i + 1 == *layers];
                    let [inputs, out] = ends.map(|end| if end { mels } else { *channels });
                    let size = ConvSize::new(inputs, out, *kernel);
                    let norm = LayerNorm::load(&at.pp("1.norm"), out)?;
                    Ok((Conv::load(&at.pp(0), size, short)?, norm))
                };
                let layers = (0..*layers).map(layer);
                let post = layers.collect::<Result<_, LoadError>>()?;
                (Vec::new(), Rest::Mel(post))
            }
        };
        let levels = config.quantizer.width();
        Ok(Decoder {
            from_codes: Linear::load(&quantizer.pp("proj_out"), config.content, levels)?,
            prenet: Transformer::load(&at("prenet"), prenet)?,
            upsample: Upsample::load(&at("conv_upsample"), size, short)?,
            prior,
            decoder: Transformer::load(&at("decoder"), decoder)?,
            rest,
        })
    }

    /// Codes `[1, token, levels]`, global vector `[1, global]` -> `[1, frame, n]`: of each of
    /// `frames` frames (times the up-sampler's factor) log magnitudes and phases, or a mel spectrum.
    pub fn forward<'g>(
        &self,
        codes: Tensor<'g>,
        global: Tensor<'g>,
        frames: usize,
        tap: Tap<'_, 'g>,
    ) -> Tensor<'g> {
        let x = self.from_codes.forward(codes); // [1, token, content]
        tap("content", x);
        let x = self.prenet.forward(x, None, &within("prenet", tap)); // [1, token, width]
        tap("prenet", x);
        let x = self.upsample.forward(x, 1.0); // [1, token * upsample, width]
        tap("upsampled", x);
        let mut x = stretched(x, frames); // [1, frame, width]
        tap("stretched", x);
        for (i, block) in self.prior.iter().enumerate() {
            x = block.forward(x);
            tap(&format!("prior{i}"), x);
        }
        let inner = within("decoder", tap);
        let x = self.decoder.forward(x, Some(global), &inner);
        tap("decoder", x);
        match &self.rest {
            Rest::Wave(rest) => rest.forward(x, tap),
            Rest::Mel(post) => {
                let mut y = x;
                for (i, (conv, norm)) in post.iter().enumerate() {
                    y = norm.forward(conv.forward(y));
                    tap(&format!("postnet{i}"), y);
                    y = if i + 1 < post.len() { y.tanh() } else { y };
                }
                x + y // [1, frame, mel]
            }
        }
    }
}

impl WaveRest {
    /// `[1, frame, width]` -> `[1, frame * factors, n_fft + 2]`.
    fn forward<'g>(&self, x: Tensor<'g>, tap: Tap<'_, 'g>) -> Tensor<'g> {
        let mut x = self.post.iter().fold(x, |x, block| block.forward(x));
        tap("post", x);
        if let Some(upsampler) = &self.upsampler {
            x = upsampler.forward(x, tap);
        }
        self.head.forward(x)
    }
}
