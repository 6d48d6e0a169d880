//! Loudness: measuring it, setting it, and a limiter that keeps peaks below a ceiling.

use std::collections::VecDeque;

use super::{Audio, Error, Result};

/// How far the limiter looks ahead, in seconds.
const AHEAD_S: f64 = 0.005;

/// How long it takes to let go, in seconds.
const RELEASE_S: f64 = 0.08;

/// The ceiling that [`Limiter::new`] is usually given: 0.3 dB below full scale.
pub const CEILING: f32 = 0.966;

/// A gain in decibels as a factor.
pub fn from_decibels(decibels: f64) -> f32 {
    10f64.powf(decibels / 20.0) as f32
}

/// Scales a clip so that its largest sample is `peak` (1 is full scale); silence stays.
pub fn set_peak(audio: &mut Audio, peak: f32) {
    let now = audio.peak();
    if now > 0.0 && now.is_finite() {
        scale(audio, peak / now);
    }
}

/// Integrated loudness of a clip in LUFS (EBU R 128); `None` for silence and clips that are too
/// short to measure.
pub fn loudness(audio: &Audio) -> Result<Option<f64>> {
    let failed =
        |error: ebur128::Error| Error::Invalid(format!("cannot measure loudness: {error}"));
    let mut meter = ebur128::EbuR128::new(audio.channels.into(), audio.rate, ebur128::Mode::I)
        .map_err(failed)?;
    meter.add_frames_f32(&audio.samples).map_err(failed)?;
    let loudness = meter.loudness_global().map_err(failed)?;
    Ok(loudness.is_finite().then_some(loudness))
}

/// Scales a clip to a loudness in LUFS; peaks beyond the ceiling are left to a [`Limiter`]. Clips
/// that cannot be measured stay.
pub fn set_loudness(audio: &mut Audio, target: f64) -> Result<()> {
    if let Some(now) = loudness(audio)? {
        scale(audio, from_decibels(target - now));
    }
    Ok(())
}

fn scale(audio: &mut Audio, gain: f32) {
    audio.samples.iter_mut().for_each(|sample| *sample *= gain);
}

/// Keeps the samples of a stream within a ceiling by lowering the gain before they come. Sound
/// that stays within it passes unchanged, bit for bit.
pub struct Limiter {
    ceiling: f32,
    channels: usize,
    /// Frames that it looks ahead.
    ahead: usize,
    release: f32,
    /// Frames that wait for their gain, interleaved.
    waiting: VecDeque<f32>,
    /// Gains that the waiting frames need, least of the window first, with their place.
    least: VecDeque<(u64, f32)>,
    /// The last gains that were held, for their mean.
    held: VecDeque<f32>,
    frames: u64,
    gain: f32,
}

impl Limiter {
    /// A limiter for interleaved frames.
    pub fn new(ceiling: f32, rate: u32, channels: u16) -> Self {
        let ahead = ((AHEAD_S * f64::from(rate)) as usize).max(1);
        Limiter {
            ceiling,
            channels: channels.max(1).into(),
            ahead,
            release: 1.0 - (-1.0 / (RELEASE_S * f64::from(rate))).exp() as f32,
            waiting: VecDeque::new(),
            least: VecDeque::new(),
            held: VecDeque::from(vec![1.0; ahead]),
            frames: 0,
            gain: 1.0,
        }
    }

    /// Appends to `out` what is ready after `samples`; the last few milliseconds wait.
    pub fn push(&mut self, samples: &[f32], out: &mut Vec<f32>) {
        for frame in samples.chunks_exact(self.channels) {
            let peak = frame.iter().fold(0.0f32, |peak, s| peak.max(s.abs()));
            let need = if peak > self.ceiling {
                self.ceiling / peak
            } else {
                1.0
            };
            self.waiting.extend(frame);
            self.step(need, out);
        }
    }

    /// Appends the frames that are left.
    pub fn finish(mut self, out: &mut Vec<f32>) {
        while !self.waiting.is_empty() {
            self.step(1.0, out);
        }
    }

    /// One frame further: `need` is the gain of the newest frame, the oldest one leaves.
    fn step(&mut self, need: f32, out: &mut Vec<f32>) {
        while self.least.back().is_some_and(|(_, gain)| *gain >= need) {
            self.least.pop_back();
        }
        self.least.push_back((self.frames, need));
        // A frame is covered from `ahead` before it comes until it has left.
        while self
            .least
            .front()
            .is_some_and(|(at, _)| at + self.ahead as u64 <= self.frames)
        {
            self.least.pop_front();
        }
        self.frames += 1;
        let target = self.least.front().map_or(1.0, |(_, gain)| *gain);
        self.gain = if target < self.gain {
            target
        } else {
            (self.gain + (1.0 - self.gain) * self.release).min(target)
        };
        // Within a rounding of one it is one, so that quiet sound is not touched.
        if self.gain > 1.0 - 1e-6 {
            self.gain = 1.0;
        }
        self.held.pop_front();
        self.held.push_back(self.gain);
        if self.frames >= self.ahead as u64 {
            let untouched = self.held.iter().all(|gain| *gain == 1.0);
            let mean = if untouched {
                1.0
            } else {
                self.held.iter().sum::<f32>() / self.held.len() as f32
            };
            for sample in self.waiting.drain(..self.channels.min(self.waiting.len())) {
                let limited = (sample * mean).clamp(-self.ceiling, self.ceiling);
                out.push(if sample.abs() <= self.ceiling && untouched {
                    sample
                } else {
                    limited
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(samples: &[f32], parts: usize) -> Vec<f32> {
        let mut limiter = Limiter::new(0.9, 16_000, 1);
        let mut out = Vec::new();
        samples
            .chunks(parts)
            .for_each(|part| limiter.push(part, &mut out));
        limiter.finish(&mut out);
        out
    }

    #[test]
    fn quiet_sound_is_untouched_and_loud_sound_is_held() {
        let tone = |level: f32| {
            (0..8000)
                .map(|i| level * (i as f32 * 0.2).sin())
                .collect::<Vec<f32>>()
        };
        let quiet = tone(0.8);
        assert_eq!(limited(&quiet, 333), quiet);
        let loud = limited(&tone(3.0), 333);
        assert_eq!(loud.len(), 8000);
        assert!(loud.iter().all(|sample| sample.abs() <= 0.9));
        // The shape stays that of a tone: it is scaled, not cut.
        let power = loud[2000..6000].iter().map(|s| s * s).sum::<f32>() / 4000.0;
        assert!((power - 0.405).abs() < 0.03, "{power}");
        assert_eq!(limited(&tone(3.0), 8000), loud, "parts do not matter");
    }

    #[test]
    fn gain_returns_after_a_peak_without_steps() {
        let mut samples = vec![0.3; 16_000];
        samples[4000] = 5.0;
        let out = limited(&samples, 777);
        assert!(out[4000] <= 0.9 && (out[15_000] - 0.3).abs() < 1e-3);
        let steps = out
            .windows(2)
            .enumerate()
            .filter(|(i, _)| !(3998..4002).contains(i));
        let largest = steps.map(|(_, w)| (w[1] - w[0]).abs()).fold(0.0, f32::max);
        assert!(largest < 0.01, "{largest}");
    }

    #[test]
    fn peak_and_loudness_are_set() {
        let samples = (0..48_000).map(|i| 0.1 * (i as f32 * 0.13).sin()).collect();
        let mut audio = Audio::new(samples, 48_000, 1).unwrap();
        set_peak(&mut audio, 0.5);
        assert!((audio.peak() - 0.5).abs() < 1e-6);
        set_loudness(&mut audio, -16.0).unwrap();
        assert!((loudness(&audio).unwrap().unwrap() + 16.0).abs() < 0.1);
        let mut silent = Audio::new(vec![0.0; 48_000], 48_000, 1).unwrap();
        set_loudness(&mut silent, -16.0).unwrap();
        set_peak(&mut silent, 1.0);
        assert_eq!((silent.peak(), loudness(&silent).unwrap()), (0.0, None));
    }
}
