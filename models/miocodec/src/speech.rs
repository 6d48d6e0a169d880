//! Whole recordings: encoded and decoded in stretches that see a little of their neighbours.

use std::ops::Range;

use audiocpp::{
    audio::{Audio, AudioSource, mono_at},
    engine::{
        Codec, CodecRequest, Codes, Convert, ConvertRequest, Error, ErrorClass, Result, RunContext,
        Scope, Sound, Unit,
    },
};

use crate::{machine::Machine, model::OPTIONS};

/// Tokens of a stretch, and those that it sees beside its own: 24 s and 3 s.
const STRETCH: [usize; 2] = [600, 75];
/// Longest recording, in seconds.
const LONGEST: f64 = 1800.0;
/// Shortest and longest recording of a voice, in seconds.
const REFERENCE: [f64; 2] = [0.5, 120.0];
/// Peak below which a recording counts as silent: -80 dB.
const SILENT: f32 = 1e-4;
/// Samples read at a time.
const BLOCK: usize = 1 << 16;

/// A session: codes speech, and gives it other voices.
pub struct Speech {
    machine: Machine,
}

impl Speech {
    pub(crate) fn new(machine: Machine) -> Speech {
        Speech { machine }
    }

    fn rate(&self) -> usize {
        self.machine.config().sample_rate as usize
    }

    /// Samples of a token.
    fn token_samples(&self) -> usize {
        (self.rate() * self.machine.config().downsample / 50).max(1)
    }

    /// The recording as one channel at the codec's rate, its largest sample at 1.
    fn read(
        &self,
        audio: &mut dyn AudioSource,
        longest: f64,
        what: &str,
        context: &RunContext,
    ) -> Result<Vec<f32>> {
        let rate = self.rate() as f64;
        let too_long = |seconds: f64| {
            Error::new(
                ErrorClass::TooLarge,
                format!("{what} is {seconds:.0} s long or more; at most {longest:.0} s are taken"),
            )
        };
        if let Some(seconds) = audio.duration_hint().filter(|s| *s > longest + 1.0) {
            return Err(too_long(seconds));
        }
        let mut mono = mono_at(audio, self.rate() as u32)?;
        let mut samples = Vec::new();
        loop {
            context.check()?;
            let read = mono.read(&mut samples, BLOCK);
            if read.map_err(|error| Error::from(error).context(what))? == 0 {
                break;
            }
            let seconds = samples.len() as f64 / rate;
            if seconds > longest {
                return Err(too_long(seconds));
            }
        }
        if let Some(bad) = samples.iter().find(|x| !x.is_finite()) {
            return Err(Error::bad_input(format!("{what}: a sample is {bad}")));
        }
        let peak = samples.iter().fold(0.0f32, |peak, x| peak.max(x.abs()));
        if samples.is_empty() || peak < SILENT {
            let found = if samples.is_empty() {
                "empty"
            } else {
                "silent"
            };
            return Err(Error::bad_input(format!(
                "{what} is {found}; wanted a recording of speech"
            )));
        }
        samples.iter_mut().for_each(|x| *x /= peak + 1e-8);
        Ok(samples)
    }

    /// Tokens and global vector of samples. That of a recording of several stretches is their mean.
    fn encode_samples(
        &mut self,
        samples: &[f32],
        context: &RunContext,
    ) -> Result<(Vec<i32>, Vec<f32>)> {
        let each = self.token_samples();
        let parts = stretches(samples.len().div_ceil(each));
        let (mut tokens, mut global) = (Vec::new(), Mean::default());
        for (seen, kept) in &parts {
            context.check()?;
            let range = seen.start * each..(seen.end * each).min(samples.len());
            let made = context.timed("encode", || self.machine.encode(&samples[range]))?;
            let last = made.tokens.len();
            let end = if kept.end == seen.end {
                last
            } else {
                kept.end - seen.start
            };
            let start = (kept.start - seen.start).min(end);
            tokens.extend_from_slice(&made.tokens[start..end.min(last)]);
            global.add(&made.global, kept.len());
            self.report("encode", kept.end * each, samples.len(), context);
        }
        Ok((tokens, global.take()))
    }

    /// The sound of tokens, as long as so many samples usually are.
    fn decode_tokens(
        &mut self,
        tokens: &[i32],
        global: &[f32],
        samples: usize,
        context: &RunContext,
    ) -> Result<Sound> {
        let (each, frame) = (self.token_samples(), self.machine.frame_samples());
        let frames = (samples / frame).max(1);
        let n = tokens.len();
        // Where the frames of a token begin; those of the last stretch fit the wanted length.
        let boundary = |token: usize| match token == n {
            true => frames,
            false => (token * each / frame).min(frames),
        };
        let mut spectra = Vec::new();
        for (seen, kept) in stretches(n) {
            context.check()?;
            let [start, from, to, end] = [seen.start, kept.start, kept.end, seen.end].map(boundary);
            if to == from {
                continue;
            }
            let part = &tokens[seen];
            let made =
                context.timed("decode", || self.machine.spectra(part, global, end - start))?;
            let row = made.len() / (end - start);
            spectra.extend_from_slice(&made[(from - start) * row..(to - start) * row]);
            self.report("decode", to * frame, samples, context);
        }
        let machine = &mut self.machine;
        let sound = context.timed("vocode", || machine.samples(&spectra, || context.check()))?;
        Ok(Sound {
            audio: Audio::new(sound, self.rate() as u32, 1)?,
            warnings: Vec::new(),
        })
    }

    fn report(&self, stage: &str, done: usize, total: usize, context: &RunContext) {
        let seconds = |n: usize| n as f64 / self.rate() as f64;
        let done = seconds(done.min(total));
        context.progress(stage, done, Some(seconds(total)), Unit::Seconds);
    }
}

impl Codec for Speech {
    fn encode(
        &mut self,
        request: &CodecRequest,
        audio: &mut dyn AudioSource,
        context: &RunContext,
    ) -> Result<Codes> {
        request.options.check("miocodec", OPTIONS, Scope::Request)?;
        let samples = self.read(audio, LONGEST, "the recording", context)?;
        let steps = (samples.len() * 50).div_ceil(self.rate());
        if steps < self.machine.config().downsample {
            return Err(Error::bad_input(
                "the recording is shorter than a token: wanted 0.04 s or more",
            ));
        }
        let (tokens, global) = self.encode_samples(&samples, context)?;
        Ok(Codes {
            family: "miocodec".into(),
            sample_rate: self.rate() as u32,
            samples: samples.len() as u64,
            codebooks: vec![self.machine.config().quantizer.size() as u32],
            tokens: tokens.into_iter().map(|token| token as u32).collect(),
            global,
        })
    }

    fn decode(
        &mut self,
        request: &CodecRequest,
        codes: &Codes,
        context: &RunContext,
    ) -> Result<Sound> {
        request.options.check("miocodec", OPTIONS, Scope::Request)?;
        codes.check()?;
        let (config, rate) = (self.machine.config(), self.rate());
        let size = config.quantizer.size();
        let problem = if codes.family != "miocodec" {
            format!("they are of the family `{}`, not `miocodec`", codes.family)
        } else if codes.codebooks != [size as u32] {
            format!(
                "their codebooks have {:?} tokens, this model's one has {size}",
                codes.codebooks
            )
        } else if codes.tokens.is_empty() {
            "there are none".to_owned()
        } else if codes.steps() * self.token_samples() > (LONGEST * rate as f64) as usize {
            format!(
                "they are {} steps, longer than {LONGEST:.0} s",
                codes.steps()
            )
        } else {
            String::new()
        };
        if !problem.is_empty() {
            return Err(Error::bad_input(format!(
                "these tokens cannot be decoded: {problem}"
            )));
        }
        // Other variants have the same tokens at another rate.
        let samples = codes.samples as f64 * rate as f64 / f64::from(codes.sample_rate);
        let usual = self.machine.usual_samples(codes.steps());
        let slack = 0.1 * usual as f64 + 0.2 * rate as f64;
        if (samples - usual as f64).abs() > slack {
            return Err(Error::bad_input(format!(
                "these tokens cannot be decoded: {} steps are about {:.2} s, the file says {:.2} s",
                codes.steps(),
                usual as f64 / rate as f64,
                codes.samples as f64 / f64::from(codes.sample_rate)
            )));
        }
        let tokens: Vec<i32> = codes.tokens.iter().map(|&token| token as i32).collect();
        self.decode_tokens(&tokens, &codes.global, samples as usize, context)
    }

    fn voice(&mut self, reference: &Audio, context: &RunContext) -> Result<Vec<f32>> {
        let [shortest, longest] = REFERENCE;
        let mut source = reference.clone().into_source();
        let samples = self.read(&mut source, longest, "the reference of the voice", context)?;
        let seconds = samples.len() as f64 / self.rate() as f64;
        if seconds < shortest {
            return Err(Error::bad_input(format!(
                "the reference of the voice is {seconds:.2} s long; wanted {shortest} s to \
                 {longest:.0} s of speech"
            )));
        }
        let each = self.token_samples();
        let mut mean = Mean::default();
        for (seen, kept) in stretches(samples.len().div_ceil(each)) {
            context.check()?;
            let range = seen.start * each..(seen.end * each).min(samples.len());
            let voice = context.timed("voice", || self.machine.voice(&samples[range]))?;
            mean.add(&voice, kept.len());
        }
        Ok(mean.take())
    }
}

impl Convert for Speech {
    fn convert(
        &mut self,
        request: &ConvertRequest,
        audio: &mut dyn AudioSource,
        target: &Audio,
        context: &RunContext,
    ) -> Result<Sound> {
        request.options.check("miocodec", OPTIONS, Scope::Request)?;
        let voice = self.voice(target, context)?;
        let coding = CodecRequest::default();
        let mut codes = self.encode(&coding, audio, context)?;
        codes.global = voice;
        let mut sound = self.decode(&coding, &codes, context)?;
        sound.warnings.extend(audio.warnings());
        if request.seed.is_some() {
            sound
                .warnings
                .push("the seed is not used: nothing here is random".into());
        }
        Ok(sound)
    }
}

/// A mean of vectors by weight.
#[derive(Default)]
struct Mean {
    sum: Vec<f64>,
    weight: f64,
}

impl Mean {
    fn add(&mut self, values: &[f32], weight: usize) {
        self.sum.resize(values.len(), 0.0);
        let each = self.sum.iter_mut().zip(values);
        each.for_each(|(sum, x)| *sum += f64::from(*x) * weight as f64);
        self.weight += weight as f64;
    }

    fn take(self) -> Vec<f32> {
        let weight = self.weight.max(1.0);
        self.sum.iter().map(|sum| (sum / weight) as f32).collect()
    }
}

/// The stretches of `n` tokens: what each sees, and what is kept of it.
fn stretches(n: usize) -> Vec<(Range<usize>, Range<usize>)> {
    let [most, beside] = STRETCH;
    if n <= most + 2 * beside {
        return vec![(0..n, 0..n)];
    }
    let stretch = |start: usize| {
        let end = (start + most).min(n);
        let seen = start.saturating_sub(beside)..(end + beside).min(n);
        (seen, start..end)
    };
    (0..n).step_by(most).map(stretch).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_keep_every_token_once() {
        for n in [1, 749, 750, 751, 1200, 1201, 3000, 3599] {
            let parts = stretches(n);
            let kept: Vec<usize> = parts.iter().flat_map(|(_, kept)| kept.clone()).collect();
            assert_eq!(kept, (0..n).collect::<Vec<_>>(), "{n}");
            for (seen, kept) in parts {
                assert!(seen.start <= kept.start && kept.end <= seen.end && seen.end <= n);
                assert!(seen.len() <= 750, "{n}");
            }
        }
        assert_eq!(stretches(750), [(0..750, 0..750)]);
        assert_eq!(stretches(1200)[1], (525..1200, 600..1200));
    }

    #[test]
    fn a_mean_counts_by_length() {
        let mut mean = Mean::default();
        mean.add(&[1.0, 4.0], 1);
        mean.add(&[5.0, 0.0], 3);
        assert_eq!(mean.take(), [4.0, 1.0]);
    }
}
