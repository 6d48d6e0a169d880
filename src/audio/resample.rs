//! Resampling by FFT blocks (rubato): streaming and whole clips give the same samples.
use super::{Error, Result};
use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{Fft, FixedSync, Resampler as _};

/// Rates outside this range are taken for damage, not for sound.
pub const RATES: std::ops::RangeInclusive<u32> = 1_000..=768_000;

/// Length that the shorter side of an FFT block has at least, in frames. With 1024 the pass band
/// reaches 97 % of the lower Nyquist frequency and the stop band starts just above it.
const MIN_BLOCK: usize = 1024;

/// Streaming resampler for interleaved frames. The filter's delay is taken out and its tail
/// flushed, so `n` frames in become exactly `round(n * to / from)` frames out, in time.
pub struct Resampler {
    from: u32,
    to: u32,
    channels: usize,
    /// `None` when both rates are equal: samples pass unchanged.
    fft: Option<Fft<f32>>,
    /// Frames that do not fill a block yet, interleaved.
    input: Vec<f32>,
    /// One block of output, interleaved.
    block: Vec<f32>,
    /// Output frames still to drop before the first one that matters.
    delay: usize,
    frames_in: u64,
    frames_out: u64,
}

impl Resampler {
    /// A resampler from rate `from` to rate `to` (both 1 to 768 kHz) for `channels` channels.
    pub fn new(from: u32, to: u32, channels: u16) -> Result<Self> {
        for rate in [from, to] {
            if !RATES.contains(&rate) {
                return Err(Error::Invalid(format!(
                    "cannot resample {from} Hz to {to} Hz: rates must lie within {} and {} Hz",
                    RATES.start(),
                    RATES.end()
                )));
            }
        }
        if channels == 0 {
            return Err(Error::Invalid("cannot resample 0 channels".into()));
        }
        let channels = usize::from(channels);
        let fft = (from != to).then(|| plan(from, to, channels)).transpose()?;
        let (delay, block) = fft.as_ref().map_or((0, 0), |fft| {
            (fft.output_delay(), fft.output_frames_max() * channels)
        });
        Ok(Self {
            from,
            to,
            channels,
            fft,
            input: Vec::new(),
            block: vec![0.0; block],
            delay,
            frames_in: 0,
            frames_out: 0,
        })
    }

    /// Takes interleaved frames and appends what is ready to `out`.
    pub fn push(&mut self, frames: &[f32], out: &mut Vec<f32>) -> Result<()> {
        self.frames_in += (frames.len() / self.channels) as u64;
        let Some(fft) = &self.fft else {
            out.extend_from_slice(frames);
            return Ok(());
        };
        let block = fft.input_frames_next() * self.channels;
        self.input.extend_from_slice(frames);
        let input = std::mem::take(&mut self.input);
        let mut blocks = input.chunks_exact(block);
        for frames in &mut blocks {
            self.process(frames, u64::MAX, out)?;
        }
        self.input.extend_from_slice(blocks.remainder());
        Ok(())
    }

    /// Ends the stream: appends the frames still owed to `out`.
    pub fn finish(&mut self, out: &mut Vec<f32>) -> Result<()> {
        let Some(fft) = &self.fft else { return Ok(()) };
        let block = fft.input_frames_next() * self.channels;
        let owed = resampled_len(self.frames_in, self.from, self.to);
        let mut last = std::mem::take(&mut self.input);
        while self.frames_out < owed {
            last.resize(block, 0.0);
            self.process(&last, owed, out)?;
            last.clear();
        }
        Ok(())
    }

    /// Resamples one block and appends its frames up to a total of `limit`.
    fn process(&mut self, frames: &[f32], limit: u64, out: &mut Vec<f32>) -> Result<()> {
        let Some(fft) = &mut self.fft else {
            return Ok(());
        };
        let invalid = |e: &dyn std::fmt::Display| Error::Invalid(format!("resampling failed: {e}"));
        // The transforms end the process over what is no number.
        if let Some(bad) = frames.iter().find(|x| !x.is_finite()) {
            return Err(invalid(&format!("a sample is {bad}")));
        }
        let width = self.channels;
        let input =
            InterleavedSlice::new(frames, width, frames.len() / width).map_err(|e| invalid(&e))?;
        let room = self.block.len() / width;
        let mut output =
            InterleavedSlice::new_mut(&mut self.block, width, room).map_err(|e| invalid(&e))?;
        let (_, made) = fft
            .process_into_buffer(&input, &mut output, None)
            .map_err(|e| invalid(&e))?;
        let skip = made.min(self.delay);
        self.delay -= skip;
        let take = ((made - skip) as u64).min(limit - self.frames_out) as usize;
        out.extend_from_slice(&self.block[skip * width..(skip + take) * width]);
        self.frames_out += take as u64;
        Ok(())
    }
}

/// Plans the FFT blocks: both sides even, so that the delay is a whole number of frames.
fn plan(from: u32, to: u32, channels: usize) -> Result<Fft<f32>> {
    let common = gcd(from, to);
    let (unit_in, unit_out) = ((from / common) as usize, (to / common) as usize);
    let units = MIN_BLOCK
        .div_ceil(unit_in.min(unit_out))
        .next_multiple_of(2);
    Fft::new_custom(
        from as usize,
        to as usize,
        units * unit_in,
        1,
        channels,
        rubato::WindowFunction::BlackmanHarris2,
        FixedSync::Both,
    )
    .map_err(|e| Error::Invalid(format!("cannot resample {from} Hz to {to} Hz: {e}")))
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Frames that `frames` frames at rate `from` become at rate `to`: `round(frames * to / from)`.
pub fn resampled_len(frames: u64, from: u32, to: u32) -> u64 {
    let (from, to) = (u128::from(from.max(1)), u128::from(to));
    ((u128::from(frames) * to + from / 2) / from) as u64
}

/// Resamples a whole interleaved clip; see [`Resampler`].
pub fn resample(interleaved: &[f32], channels: u16, from: u32, to: u32) -> Result<Vec<f32>> {
    let mut resampler = Resampler::new(from, to, channels)?;
    let frames = (interleaved.len() / usize::from(channels)) as u64;
    let len = resampled_len(frames, from, to) as usize * usize::from(channels);
    let mut out = Vec::with_capacity(len);
    resampler.push(interleaved, &mut out)?;
    resampler.finish(&mut out)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;

    fn tone(hz: f64, rate: u32, frames: usize) -> Vec<f32> {
        (0..frames)
            .map(|i| (TAU * hz * i as f64 / f64::from(rate)).sin() as f32)
            .collect()
    }

    /// Level in dB of the middle of a clip against a full-scale sine.
    fn level(samples: &[f32]) -> f64 {
        let middle = &samples[samples.len() / 4..samples.len() * 3 / 4];
        let power = middle.iter().map(|&s| f64::from(s).powi(2)).sum::<f64>() / middle.len() as f64;
        10.0 * (2.0 * power + 1e-30).log10()
    }

    #[test]
    fn what_is_no_number_is_an_error() {
        for bad in [f32::NAN, f32::INFINITY] {
            let mut samples = vec![0.5; 5000];
            samples[3000] = bad;
            let error = resample(&samples, 1, 16_000, 24_000).unwrap_err();
            assert!(error.to_string().contains("a sample is"), "{error}");
        }
    }

    #[test]
    fn pass_band_is_kept_and_aliases_are_gone() {
        let keep = level(&resample(&tone(7000.0, 48_000, 96_000), 1, 48_000, 16_000).unwrap());
        let alias = level(&resample(&tone(9000.0, 48_000, 96_000), 1, 48_000, 16_000).unwrap());
        assert!(keep.abs() < 0.1, "7 kHz tone changed by {keep:.3} dB");
        assert!(alias < -60.0, "9 kHz tone left at {alias:.1} dB");
    }

    #[test]
    fn tones_stay_in_time_from_the_first_to_the_last_frame() {
        for (from, to) in [
            (8000, 16_000),
            (44_100, 16_000),
            (16_000, 24_000),
            (48_000, 22_050),
        ] {
            let out = resample(&tone(440.0, from, from as usize), 1, from, to).unwrap();
            let want = tone(440.0, to, to as usize);
            assert_eq!(out.len(), want.len());
            let edge = to as usize / 20;
            let inner = edge..want.len() - edge;
            let worst = inner.map(|i| (out[i] - want[i]).abs()).fold(0.0, f32::max);
            assert!(worst < 1e-3, "{from} -> {to}: off by {worst}");
        }
    }

    #[test]
    fn every_rate_gives_the_exact_length() {
        for from in [
            4000, 7919, 8000, 11_025, 22_050, 32_000, 44_100, 47_999, 96_000, 192_000,
        ] {
            for to in [8000, 16_000, 22_050, 24_000, 44_100, 48_000] {
                for frames in [0usize, 1, 777, 20_011] {
                    let out = resample(&vec![0.1; frames * 2], 2, from, to).unwrap();
                    let want = (frames as f64 * f64::from(to) / f64::from(from)).round() as usize;
                    assert_eq!(out.len(), want * 2, "{frames} frames, {from} -> {to}");
                }
            }
        }
    }

    #[test]
    fn channels_do_not_leak_into_each_other() {
        let mut both = Vec::new();
        for s in tone(300.0, 44_100, 44_100) {
            both.extend([s, 0.0]);
        }
        let out = resample(&both, 2, 44_100, 16_000).unwrap();
        let right = out
            .iter()
            .skip(1)
            .step_by(2)
            .fold(0.0, |m: f32, s| m.max(s.abs()));
        assert_eq!(right, 0.0);
    }

    #[test]
    fn impossible_rates_are_refused_by_name() {
        for (from, to) in [(0, 16_000), (16_000, 0), (4_000_000_000, 16_000)] {
            let err = Resampler::new(from, to, 1)
                .err()
                .expect("refused")
                .to_string();
            assert!(err.contains(&format!("{from} Hz to {to} Hz")), "{err}");
        }
        assert!(Resampler::new(8000, 16_000, 0).is_err());
    }
}
