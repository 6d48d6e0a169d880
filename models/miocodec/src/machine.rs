//! The networks at work: one graph for each length.

use std::sync::Arc;

use audiocpp::{
    audio::SincResampler,
    engine::{Error, Result},
    graph::{DType, Device, Graph, Kept, Tensor},
    nn::WavLm,
};

use crate::{
    config::{Config, DecoderKind},
    head::Head,
    net::{Decoder, Encoder},
    vocoder::{Vocoder, VocoderConfig},
};

/// Samples per second that WavLM hears.
const HEARD_RATE: u32 = 16_000;
/// Graphs of each kind that are kept: stretches of one length, and a last one of another.
const KEPT: usize = 2;
/// Frames that the vocoder takes at a time, and those it sees beside them: all that its filters and
/// kernels reach.
const VOCODER_FRAMES: [usize; 2] = [256, 40];

/// The networks of a codec.
pub struct Networks {
    /// Absent where there is no WavLM.
    pub encoder: Option<Encoder>,
    /// From codes to spectra.
    pub decoder: Decoder,
    /// From mel spectra to samples; present in the mel variant.
    pub vocoder: Option<(Vocoder, VocoderConfig)>,
    /// Sizes.
    pub config: Config,
}

/// What sound becomes.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// Before they are quantised, `[token, levels]`.
    pub latents: Vec<f32>,
    /// `[token]`.
    pub tokens: Vec<i32>,
    /// The global vector.
    pub global: Vec<f32>,
}

/// The networks with graphs of their own.
pub struct Machine {
    nets: Arc<Networks>,
    device: Device,
    resampler: SincResampler,
    head: Head,
    encoder: Kept<usize>,
    voice: Kept<usize>,
    decoder: Kept<[usize; 2]>,
    vocoder: Kept<usize>,
    traced: bool,
}

impl Machine {
    /// For `nets` on the device that holds their weights.
    ///
    /// # Errors
    /// A transform that cannot be.
    pub fn new(device: &Device, nets: Arc<Networks>) -> Result<Machine> {
        let config = &nets.config;
        let rate = config.sample_rate;
        Ok(Machine {
            resampler: SincResampler::new(rate, HEARD_RATE)
                .ok_or_else(|| Error::model(format!("{rate} samples per second")))?,
            head: Head::new(config.n_fft, config.hop)?,
            nets,
            device: device.clone(),
            encoder: Kept::new(KEPT),
            voice: Kept::new(KEPT),
            decoder: Kept::new(KEPT),
            vocoder: Kept::new(KEPT),
            traced: false,
        })
    }

    /// Keeps what the networks make on the way, for [`stage`](Self::stage).
    pub fn trace(&mut self) {
        self.traced = true;
    }

    /// The sizes.
    pub fn config(&self) -> &Config {
        &self.nets.config
    }

    /// Zeros on both sides that `count` samples get, so that WavLM makes a step of every 20 ms.
    pub fn padding(&self, count: usize) -> usize {
        let rate = u64::from(self.config().sample_rate);
        let steps = (count as u64 * 50).div_ceil(rate) as usize;
        let heard = WavLm::samples_for(steps) as u64;
        let needed = (heard * rate).div_ceil(u64::from(HEARD_RATE)) as usize;
        needed.saturating_sub(count).div_ceil(2)
    }

    /// Samples as WavLM hears them: padded, at 16 kHz.
    pub fn heard(&self, samples: &[f32]) -> Vec<f32> {
        let padding = self.padding(samples.len());
        let mut padded = vec![0.0; padding];
        padded.extend_from_slice(samples);
        padded.resize(samples.len() + 2 * padding, 0.0);
        self.resampler.process(&padded)
    }

    /// Tokens and global vector of samples at the codec's rate; at least one sample.
    ///
    /// # Errors
    /// A package without WavLM; a device without room.
    pub fn encode(&mut self, samples: &[f32]) -> Result<Encoded> {
        let heard = self.heard(samples);
        let (nets, n, traced) = (self.nets.clone(), heard.len(), self.traced);
        let encoder = with_encoder(&nets)?;
        let graph = self.encoder.get(n, || {
            Graph::build_exact(&self.device, |g| {
                let samples = g.input("samples", DType::F32, &[1, n, 1]);
                let [latents, global] = encoder.forward(samples, &|name, x| trace(traced, name, x));
                g.output("latents", latents);
                g.output("voice", global);
                Ok(())
            })
        })?;
        graph.write("samples", &heard)?;
        graph.compute()?;
        let latents: Vec<f32> = graph.read("latents")?;
        Ok(Encoded {
            tokens: nets.config.quantizer.indices(&latents),
            latents,
            global: graph.read("voice")?,
        })
    }

    /// The global vector alone.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn voice(&mut self, samples: &[f32]) -> Result<Vec<f32>> {
        let heard = self.heard(samples);
        let (nets, n) = (self.nets.clone(), heard.len());
        let encoder = with_encoder(&nets)?;
        let graph = self.voice.get(n, || {
            Graph::build_exact(&self.device, |g| {
                let samples = g.input("samples", DType::F32, &[1, n, 1]);
                g.output("voice", encoder.voice(samples));
                Ok(())
            })
        })?;
        graph.write("samples", &heard)?;
        graph.compute()?;
        Ok(graph.read("voice")?)
    }

    /// Samples that so many tokens usually stand for.
    pub fn usual_samples(&self, tokens: usize) -> usize {
        let config = self.config();
        let heard = WavLm::samples_for(config.downsample * tokens) as u64;
        let rate = u64::from(config.sample_rate);
        (heard * rate).div_ceil(u64::from(HEARD_RATE)) as usize
    }

    /// Samples that a frame of the decoder becomes.
    pub fn frame_samples(&self) -> usize {
        let factor = match &self.config().decoder.kind {
            DecoderKind::Wave { upsampler, .. } => upsampler.iter().map(|[f, _]| f).product(),
            DecoderKind::Mel { .. } => 1,
        };
        self.config().hop * factor
    }

    /// Spectra of tokens: `frames` frames (times the up-sampler's factor) of log magnitudes and
    /// phases, or of mel bins.
    ///
    /// # Errors
    /// A global vector of another width; a device without room.
    pub fn spectra(&mut self, tokens: &[i32], global: &[f32], frames: usize) -> Result<Vec<f32>> {
        let (nets, n, traced) = (self.nets.clone(), tokens.len(), self.traced);
        let (config, levels) = (&nets.config, nets.config.quantizer.width());
        if global.len() != config.global.output {
            return Err(Error::bad_input(format!(
                "a global vector of {} values, this codec has {}",
                global.len(),
                config.global.output
            )));
        }
        let graph = self.decoder.get([n, frames], || {
            Graph::build_exact(&self.device, |g| {
                let codes = g.input("codes", DType::F32, &[1, n, levels]);
                let global = g.input("global", DType::F32, &[1, config.global.output]);
                let tap = |name: &str, x| trace(traced, name, x);
                g.output("spectra", nets.decoder.forward(codes, global, frames, &tap));
                Ok(())
            })
        })?;
        graph.write("codes", &config.quantizer.codes(tokens))?;
        graph.write("global", global)?;
        graph.compute()?;
        Ok(graph.read("spectra")?)
    }

    /// Samples of what [`spectra`](Self::spectra) gives; mel spectra a stretch at a time, with
    /// `each` before every stretch.
    ///
    /// # Errors
    /// A device without room; what `each` reports.
    pub fn samples(
        &mut self,
        spectra: &[f32],
        mut each: impl FnMut() -> Result<()>,
    ) -> Result<Vec<f32>> {
        let Some(mels) = self.config().mels() else {
            return Ok(self.head.samples(spectra)?);
        };
        let (frames, [most, beside]) = (spectra.len() / mels, VOCODER_FRAMES);
        let mut samples = Vec::new();
        for start in (0..frames).step_by(most) {
            each()?;
            let end = (start + most).min(frames);
            let seen = start.saturating_sub(beside)..(end + beside).min(frames);
            let wave = self.vocode(&spectra[seen.start * mels..seen.end * mels])?;
            let hop = wave.len() / seen.len();
            samples.extend_from_slice(&wave[(start - seen.start) * hop..(end - seen.start) * hop]);
        }
        Ok(samples)
    }

    /// Samples of mel spectra `[frame, mel]` as one stretch.
    ///
    /// # Errors
    /// A package without vocoder; a device without room.
    pub fn vocode(&mut self, mel: &[f32]) -> Result<Vec<f32>> {
        let (nets, traced) = (self.nets.clone(), self.traced);
        let Some((vocoder, config)) = &nets.vocoder else {
            return Err(Error::model(
                "this codec makes mel spectra and its package has no vocoder: wanted \
                 vocoder_config.json, and tensors below `vocoder.`",
            ));
        };
        let frames = mel.len() / config.mels;
        let graph = self.vocoder.get(frames, || {
            Graph::build_exact(&self.device, |g| {
                let mel = g.input("mel", DType::F32, &[1, frames, config.mels]);
                g.output(
                    "wave",
                    vocoder.forward(mel, &|name, x| trace(traced, name, x)),
                );
                Ok(())
            })
        })?;
        graph.write("mel", mel)?;
        graph.compute()?;
        Ok(graph.read("wave")?)
    }

    /// What the last run made on the way under this name, if [`trace`](Self::trace) was asked for.
    ///
    /// # Errors
    /// Nothing of this name.
    pub fn stage(&self, name: &str) -> Result<Vec<f32>> {
        let last = [
            self.encoder.iter().last(),
            self.decoder.iter().last(),
            self.vocoder.iter().last(),
        ];
        let mut graphs = last.into_iter().flatten();
        let found = graphs.find_map(|graph| graph.read(name).ok());
        found.ok_or_else(|| Error::not_found(format!("no stage `{name}`")))
    }
}

fn trace(traced: bool, name: &str, x: Tensor<'_>) {
    if traced {
        x.keep(name);
    }
}

fn with_encoder(nets: &Networks) -> Result<&Encoder> {
    nets.encoder.as_ref().ok_or_else(|| {
        Error::model(
            "this package has no WavLM, without which sound cannot be encoded: put the folder or \
             file `wavlm-base-plus` into it, or name one with --load-option wavlm=PATH",
        )
    })
}
