//! From samples to normalised bins, and back.

use audiocpp::audio::{Complex32, Padding, Result, Stft, StftConfig, Window};

/// Mean and deviation of values, and the values less them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// Mean.
    pub mean: f32,
    /// Deviation, of a sample.
    pub deviation: f32,
}

impl Level {
    /// Added to the deviation that values are divided by.
    const EPS: f32 = 1e-5;

    /// Normalises `values` in place.
    pub fn take(values: &mut [f32]) -> Level {
        let count = values.len() as f64;
        let mean = values.iter().map(|&x| f64::from(x)).sum::<f64>() / count.max(1.0);
        let squares = values.iter().map(|&x| (f64::from(x) - mean).powi(2));
        let variance = squares.sum::<f64>() / (count - 1.0).max(1.0);
        let level = Level {
            mean: mean as f32,
            deviation: variance.sqrt() as f32,
        };
        let factor = 1.0 / (Self::EPS + level.deviation);
        values
            .iter_mut()
            .for_each(|x| *x = (*x - level.mean) * factor);
        level
    }

    /// The value that was normalised to `value`.
    pub fn restore(&self, value: f32) -> f32 {
        value * self.deviation + self.mean
    }
}

/// The transform of a network: frames every quarter of its length, cut so that there is one for
/// every `hop` samples.
pub struct Spectrum {
    stft: Stft,
    nfft: usize,
}

impl Spectrum {
    /// The sum of a Hann window's squares at steps of a quarter.
    const SQUARES: f32 = 1.5;

    /// With transforms of `nfft` samples.
    ///
    /// # Errors
    /// A length that makes no transform.
    pub fn new(nfft: usize) -> Result<Spectrum> {
        let stft = Stft::new(StftConfig {
            n_fft: nfft,
            hop: nfft / 4,
            win_length: nfft,
            window: Window::Hann,
            center: false,
            padding: Padding::Reflect,
            normalized: true,
            onesided: true,
        })?;
        Ok(Spectrum { stft, nfft })
    }

    /// Frequencies: all but the highest.
    pub fn rows(&self) -> usize {
        self.nfft / 2
    }

    /// Frames of `length` samples.
    pub fn frames(&self, length: usize) -> usize {
        length.div_ceil(self.nfft / 4)
    }

    /// Zeros and mirrored samples before the sound, in samples.
    fn before(&self) -> usize {
        self.nfft / 8 * 3
    }

    /// Interleaved frames of sound to bins `[frequency, frame, channel * 2]`, real before imaginary.
    ///
    /// # Errors
    /// None for whole frames.
    pub fn forward(&self, samples: &[f32], channels: usize) -> Result<Vec<f32>> {
        let length = samples.len() / channels;
        let (rows, frames, width) = (self.rows(), self.frames(length), 2 * channels);
        let mut out = vec![0.0; rows * frames * width];
        for c in 0..channels {
            let own = samples.iter().skip(c).step_by(channels).copied();
            let padded = self.mirrored(own.collect(), frames);
            self.stft.for_each_frame(&padded, |t, bins| {
                for (row, bin) in bins.iter().take(rows).enumerate() {
                    let at = (row * frames + t) * width + 2 * c;
                    out[at] = bin.re;
                    out[at + 1] = bin.im;
                }
            })?;
        }
        Ok(out)
    }

    /// The samples with their mirror images at both ends; those that are too short for it have
    /// zeros first.
    fn mirrored(&self, mut samples: Vec<f32>, frames: usize) -> Vec<f32> {
        let hop = self.nfft / 4;
        let mut before = self.before();
        let mut after = before + frames * hop - samples.len();
        let most = before.max(after);
        if samples.len() <= most {
            let extra = most - samples.len() + 1;
            let right = extra.min(after);
            let left = extra - right;
            samples.splice(0..0, std::iter::repeat_n(0.0, left));
            samples.resize(samples.len() + right, 0.0);
            (before, after) = (before - left, after - right);
        }
        let last = samples.len() - 1;
        let mut out = Vec::with_capacity(before + samples.len() + after);
        out.extend((1..=before).rev().map(|i| samples[i]));
        out.extend_from_slice(&samples);
        out.extend((1..=after).map(|i| samples[last - i]));
        out
    }

    /// One channel of a stem, `length` samples: the bins at `first` of each place of
    /// `[frequency, frame, width]`, restored to `level`.
    ///
    /// # Errors
    /// None for whole frames.
    pub fn inverse(
        &self,
        bins: &[f32],
        [width, first]: [usize; 2],
        level: Level,
        length: usize,
    ) -> Result<Vec<f32>> {
        let (rows, frames) = (self.rows(), self.frames(length));
        let mut data = vec![Complex32::default(); frames * (rows + 1)];
        for row in 0..rows {
            for t in 0..frames {
                let at = (row * frames + t) * width + first;
                let (re, im) = (level.restore(bins[at]), level.restore(bins[at + 1]));
                data[t * (rows + 1) + row] = Complex32::new(re, im);
            }
        }
        let (mut sum, _) = self.stft.overlap_add(&data, frames)?;
        sum.drain(..self.before());
        sum.truncate(length);
        sum.iter_mut().for_each(|x| *x /= Self::SQUARES);
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_lead_back_to_the_samples() {
        let spectrum = Spectrum::new(64).unwrap();
        for length in [3usize, 24, 25, 160, 1000] {
            let samples: Vec<f32> = (0..2 * length).map(|i| (i as f32 * 0.11).sin()).collect();
            let bins = spectrum.forward(&samples, 2).unwrap();
            assert_eq!(bins.len(), 32 * length.div_ceil(16) * 4);
            let level = Level {
                mean: 0.0,
                deviation: 1.0,
            };
            for c in 0..2 {
                let found = spectrum.inverse(&bins, [4, 2 * c], level, length).unwrap();
                assert_eq!(found.len(), length);
                let wanted = samples.iter().skip(c).step_by(2);
                // Slow waves have nothing at the highest frequency, which is left out. Near the ends
                // half of the frames that hold a sample are cut off, as in the original.
                let inner = 32..length.saturating_sub(32).max(32);
                let pairs = found.iter().zip(wanted).enumerate();
                let worst = pairs.filter(|(i, _)| inner.contains(i));
                let worst = worst.map(|(_, (a, b))| (a - b).abs());
                assert!(worst.fold(0.0, f32::max) < 0.02, "{length}");
            }
        }
    }

    #[test]
    fn a_level_is_taken_and_restored() {
        let mut values = [1.0, 2.0, 3.0, 6.0];
        let level = Level::take(&mut values);
        assert_eq!(level.mean, 3.0);
        assert!((level.deviation - (14f32 / 3.0).sqrt()).abs() < 1e-6);
        assert!((level.restore(values[3]) - 6.0).abs() < 1e-4);
    }
}
