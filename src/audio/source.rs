//! Streams of sound: the trait, the clip in memory, and the mono view at a wanted rate.
use super::{Error, Resampler, Result};

/// Frames asked of an inner source at a time: small enough to keep memory flat, large enough to
/// make the per-call cost vanish.
const BLOCK: usize = 16 * 1024;

/// A stream of interleaved `f32` frames at one rate and channel count.
pub trait AudioSource: Send {
    /// Frames a second, never 0.
    fn rate(&self) -> u32;
    /// Samples a frame, never 0.
    fn channels(&self) -> u16;
    /// Length in seconds where the container states one; a hint, not a promise.
    fn duration_hint(&self) -> Option<f64>;
    /// Appends at most `max_frames` interleaved frames to `out`; returns how many, 0 at the end.
    fn read(&mut self, out: &mut Vec<f32>, max_frames: usize) -> Result<usize>;
    /// Takes the warnings gathered since the last call (damaged packets, cut file, ...).
    fn warnings(&mut self) -> Vec<String>;
}

impl<S: AudioSource + ?Sized> AudioSource for Box<S> {
    fn rate(&self) -> u32 {
        (**self).rate()
    }
    fn channels(&self) -> u16 {
        (**self).channels()
    }
    fn duration_hint(&self) -> Option<f64> {
        (**self).duration_hint()
    }
    fn read(&mut self, out: &mut Vec<f32>, max_frames: usize) -> Result<usize> {
        (**self).read(out, max_frames)
    }
    fn warnings(&mut self) -> Vec<String> {
        (**self).warnings()
    }
}

impl<S: AudioSource + ?Sized> AudioSource for &mut S {
    fn rate(&self) -> u32 {
        (**self).rate()
    }
    fn channels(&self) -> u16 {
        (**self).channels()
    }
    fn duration_hint(&self) -> Option<f64> {
        (**self).duration_hint()
    }
    fn read(&mut self, out: &mut Vec<f32>, max_frames: usize) -> Result<usize> {
        (**self).read(out, max_frames)
    }
    fn warnings(&mut self) -> Vec<String> {
        (**self).warnings()
    }
}

/// A whole clip in memory: interleaved samples that travel with their rate and channel count.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Audio {
    /// Interleaved samples, full scale at +-1.
    pub samples: Vec<f32>,
    /// Frames a second.
    pub rate: u32,
    /// Samples a frame.
    pub channels: u16,
}

impl Audio {
    /// Binds samples to their rate and channel count; both must be at least 1, and a last
    /// incomplete frame is refused.
    pub fn new(samples: Vec<f32>, rate: u32, channels: u16) -> Result<Self> {
        if rate == 0 || channels == 0 || !samples.len().is_multiple_of(usize::from(channels)) {
            return Err(Error::Invalid(format!(
                "{} samples at {rate} Hz do not make whole frames of {channels} channels",
                samples.len()
            )));
        }
        Ok(Self {
            samples,
            rate,
            channels,
        })
    }

    /// Decodes a whole file (see [`super::Reader::open`]) and drops its warnings.
    pub fn open(path: impl AsRef<std::path::Path>) -> Result<Self> {
        Self::from_source(&mut super::Reader::open(path)?, None)
    }

    /// Reads a source to its end; more than `limit_s` seconds is an error that holds no memory.
    pub fn from_source(source: &mut dyn AudioSource, limit_s: Option<f64>) -> Result<Self> {
        let (rate, channels) = (source.rate(), source.channels());
        let mut samples = Vec::new();
        let mut frames = 0usize;
        loop {
            let n = source.read(&mut samples, BLOCK)?;
            if n == 0 {
                return Self::new(samples, rate, channels);
            }
            frames += n;
            if let Some(limit_s) = limit_s.filter(|&limit| frames as f64 > limit * f64::from(rate))
            {
                return Err(Error::TooLong {
                    name: "audio".into(),
                    limit_s,
                });
            }
        }
    }

    /// Number of frames.
    pub fn frames(&self) -> usize {
        self.samples.len() / usize::from(self.channels.max(1))
    }

    /// Length in seconds.
    pub fn duration(&self) -> f64 {
        self.frames() as f64 / f64::from(self.rate.max(1))
    }

    /// Largest absolute sample, 0 for an empty clip.
    pub fn peak(&self) -> f32 {
        self.samples.iter().fold(0.0, |peak, s| peak.max(s.abs()))
    }

    /// One channel that is the mean of all.
    pub fn to_mono(&self) -> Audio {
        let mut samples = Vec::new();
        downmix(&self.samples, self.channels, &mut samples);
        Audio {
            samples,
            rate: self.rate,
            channels: 1,
        }
    }

    /// One channel of the clip, counted from 0; empty when there is no such channel.
    pub fn channel(&self, index: u16) -> Vec<f32> {
        let (step, index) = (usize::from(self.channels.max(1)), usize::from(index));
        if index >= step {
            return Vec::new();
        }
        self.samples
            .iter()
            .skip(index)
            .step_by(step)
            .copied()
            .collect()
    }

    /// The clip at another rate, exactly `round(frames * rate / self.rate)` frames long.
    pub fn resampled(&self, rate: u32) -> Result<Audio> {
        let samples = super::resample(&self.samples, self.channels, self.rate, rate)?;
        Ok(Audio {
            samples,
            rate,
            channels: self.channels,
        })
    }

    /// The clip as a stream from its first frame.
    pub fn into_source(self) -> Clip {
        Clip {
            audio: self,
            next: 0,
        }
    }
}

/// A clip in memory as an [`AudioSource`].
#[derive(Debug, Clone)]
pub struct Clip {
    audio: Audio,
    next: usize,
}

impl AudioSource for Clip {
    fn rate(&self) -> u32 {
        self.audio.rate
    }
    fn channels(&self) -> u16 {
        self.audio.channels
    }
    fn duration_hint(&self) -> Option<f64> {
        Some(self.audio.duration())
    }
    fn read(&mut self, out: &mut Vec<f32>, max_frames: usize) -> Result<usize> {
        let width = usize::from(self.audio.channels);
        let rest = &self.audio.samples[self.next..];
        let take = rest.len().min(max_frames.saturating_mul(width));
        out.extend_from_slice(&rest[..take]);
        self.next += take;
        Ok(take / width)
    }
    fn warnings(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// Appends the mean of each frame's channels to `out`.
pub fn downmix(interleaved: &[f32], channels: u16, out: &mut Vec<f32>) {
    match channels {
        0 | 1 => out.extend_from_slice(interleaved),
        2 => out.extend(interleaved.chunks_exact(2).map(|f| 0.5 * (f[0] + f[1]))),
        n => {
            let scale = 1.0 / f32::from(n);
            let frames = interleaved.chunks_exact(usize::from(n));
            out.extend(frames.map(|f| f.iter().sum::<f32>() * scale));
        }
    }
}

/// Any source as one channel at `rate`: the mean of its channels, resampled as it streams.
pub fn mono_at<S: AudioSource>(source: S, rate: u32) -> Result<MonoAt<S>> {
    let resampler = Resampler::new(source.rate(), rate, 1)?;
    Ok(MonoAt {
        source,
        rate,
        resampler,
        raw: Vec::new(),
        mono: Vec::new(),
        ready: Vec::new(),
        next: 0,
        ended: false,
    })
}

/// See [`mono_at`]. Memory does not depend on the length of the stream.
pub struct MonoAt<S> {
    source: S,
    rate: u32,
    resampler: Resampler,
    /// Interleaved frames of the inner source.
    raw: Vec<f32>,
    /// The same, one channel.
    mono: Vec<f32>,
    /// Resampled samples, of which those before `next` were handed out.
    ready: Vec<f32>,
    next: usize,
    ended: bool,
}

impl<S: AudioSource> MonoAt<S> {
    fn refill(&mut self) -> Result<()> {
        self.ready.drain(..self.next);
        self.next = 0;
        self.raw.clear();
        if self.source.read(&mut self.raw, BLOCK)? == 0 {
            self.ended = true;
            return self.resampler.finish(&mut self.ready);
        }
        self.mono.clear();
        downmix(&self.raw, self.source.channels(), &mut self.mono);
        self.resampler.push(&self.mono, &mut self.ready)
    }
}

impl<S: AudioSource> AudioSource for MonoAt<S> {
    fn rate(&self) -> u32 {
        self.rate
    }
    fn channels(&self) -> u16 {
        1
    }
    fn duration_hint(&self) -> Option<f64> {
        self.source.duration_hint()
    }
    fn read(&mut self, out: &mut Vec<f32>, max_frames: usize) -> Result<usize> {
        let mut done = 0;
        while done < max_frames {
            if self.next == self.ready.len() {
                if self.ended {
                    break;
                }
                self.refill()?;
                continue;
            }
            let take = (self.ready.len() - self.next).min(max_frames - done);
            out.extend_from_slice(&self.ready[self.next..self.next + take]);
            self.next += take;
            done += take;
        }
        Ok(done)
    }
    fn warnings(&mut self) -> Vec<String> {
        self.source.warnings()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn noise(len: usize) -> Vec<f32> {
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..len).map(|_| next()).collect()
    }

    fn drain(source: &mut dyn AudioSource, sizes: &[usize]) -> Vec<f32> {
        let mut out = Vec::new();
        for &size in sizes.iter().cycle() {
            if source.read(&mut out, size).unwrap() == 0 {
                return out;
            }
        }
        out
    }

    #[test]
    fn downmix_is_the_mean_of_every_channel() {
        let mut out = Vec::new();
        downmix(&[1.0, 0.0, -1.0, 0.5, 0.5, 0.5], 3, &mut out);
        downmix(&[0.25, 0.75], 2, &mut out);
        assert_eq!(out, [0.0, 0.5, 0.5]);
    }

    #[test]
    fn a_clip_must_have_whole_frames_and_a_rate() {
        assert!(Audio::new(vec![0.0; 3], 8000, 2).is_err());
        assert!(Audio::new(vec![], 0, 1).is_err());
        let clip = Audio::new(vec![0.0, 1.0, 2.0, 3.0], 2, 2).unwrap();
        assert_eq!((clip.frames(), clip.duration()), (2, 1.0));
        assert_eq!(clip.channel(1), [1.0, 3.0]);
        assert_eq!(clip.channel(2), [0.0; 0]);
    }

    #[test]
    fn a_source_longer_than_its_limit_is_refused() {
        let clip = Audio::new(vec![0.0; 48_000 * 3], 48_000, 1).unwrap();
        assert!(Audio::from_source(&mut clip.clone().into_source(), Some(3.0)).is_ok());
        let err = Audio::from_source(&mut clip.into_source(), Some(2.0)).unwrap_err();
        assert!(err.to_string().contains("allowed 2 s"), "{err}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn read_sizes_do_not_change_the_samples(
            sizes in prop::collection::vec(1usize..5000, 1..6),
            frames in 0usize..9000,
            rate in prop::sample::select(vec![8000u32, 11_025, 16_000, 44_100, 48_000]),
        ) {
            let clip = Audio::new(noise(frames * 2), rate, 2).unwrap();
            let whole = clip.to_mono().resampled(16_000).unwrap().samples;
            let mut stream = mono_at(clip.into_source(), 16_000).unwrap();
            prop_assert_eq!(drain(&mut stream, &sizes), whole);
        }
    }
}
