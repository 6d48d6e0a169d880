//! The last step of iSTFTNet (Kaneko et al. 2022, <https://arxiv.org/abs/2203.02395>): from
//! predicted spectra to samples.

use crate::audio::{Complex32, Error, Spectrogram, Stft, StftConfig};

/// Turns logarithms of magnitudes and phases into samples, on the CPU.
#[derive(Clone)]
pub struct IstftHead {
    stft: Stft,
}

impl IstftHead {
    /// For spectra of `n_fft` samples, `hop` apart, under a Hann window.
    ///
    /// # Errors
    /// Sizes that make no transform.
    pub fn new(n_fft: usize, hop: usize) -> Result<IstftHead, Error> {
        Ok(IstftHead {
            stft: Stft::new(StftConfig::new(n_fft, hop))?,
        })
    }

    /// Values of a frame: two for each bin.
    pub fn width(&self) -> usize {
        2 * self.stft.half_bins()
    }

    /// Frames `[n, width]`, of each all log magnitudes, then values whose sines are the phases in
    /// radians -> `(n - 1) hop` samples.
    ///
    /// # Errors
    /// Fewer than two frames, or windows that leave gaps.
    pub fn samples(&self, frames: &[f32]) -> Result<Vec<f32>, Error> {
        let bins = self.stft.half_bins();
        let mut data = Vec::with_capacity(frames.len() / 2);
        for frame in frames.chunks_exact(2 * bins) {
            let (logs, phases) = frame.split_at(bins);
            let bin = |(log, phase): (&f32, &f32)| Complex32::from_polar(log.exp(), phase.sin());
            data.extend(logs.iter().zip(phases).map(bin));
        }
        let frames = data.len() / bins;
        self.stft.inverse(&Spectrogram { data, frames, bins }, None)
    }

    /// What such a network is told of a signal: frames `[samples / hop + 1, width]`, of each all
    /// magnitudes, then all phases in radians.
    ///
    /// # Errors
    /// A signal of half a window or less.
    pub fn analyse(&self, signal: &[f32]) -> Result<Vec<f32>, Error> {
        let bins = self.stft.half_bins();
        let even = self.stft.config().n_fft.is_multiple_of(2);
        let mut frames = Vec::with_capacity(self.stft.frames(signal.len()) * 2 * bins);
        self.stft.for_each_frame(signal, |_, spectrum| {
            frames.extend(spectrum.iter().map(|bin| bin.norm()));
            // Real bins are exactly real, with the phase 0 or π: not -π by the sign of a zero.
            frames.extend(spectrum.iter().enumerate().map(|(k, bin)| {
                let real = k == 0 || even && k + 1 == bins;
                let im = if real { 0.0 } else { bin.im };
                im.atan2(bin.re)
            }));
        })?;
        Ok(frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_overlapped_inverse_transforms() {
        let head = IstftHead::new(20, 5).unwrap();
        let signal: Vec<f32> = (0..605).map(|i| (i as f32 * 0.37).sin() * 0.5).collect();
        let frames = head.analyse(&signal).unwrap();
        assert_eq!((head.width(), frames.len()), (22, 122 * 22));
        // As if they were what a network gave; the signal itself does not matter.
        let log_and_sine = frames.chunks_exact(22).flat_map(|frame| {
            let (sizes, phases) = frame.split_at(11);
            let logs = sizes.iter().map(|x| x.max(1e-20).ln());
            logs.chain(phases.iter().copied()).collect::<Vec<f32>>()
        });
        let frames: Vec<f32> = log_and_sine.collect();
        let samples = head.samples(&frames).unwrap();
        assert_eq!(samples.len(), 605);
        // Against the definition: overlapped windowed inverse transforms over the squared windows.
        let window = |i: usize| 0.5 - 0.5 * (std::f64::consts::TAU * i as f64 / 20.0).cos();
        for at in [30usize, 301, 580] {
            let (mut sum, mut weight) = (0.0, 0.0);
            for t in 0..122 {
                let Some(i) = (at + 10).checked_sub(5 * t).filter(|&i| i < 20) else {
                    continue;
                };
                let mut value = 0.0;
                for k in 0..11 {
                    let size = f64::from(frames[t * 22 + k]).exp();
                    let phase = f64::from(frames[t * 22 + 11 + k]).sin();
                    let angle = std::f64::consts::TAU * (k * i) as f64 / 20.0;
                    let bin = size * (angle + phase).cos();
                    value += match k {
                        0 | 10 => size * phase.cos() * angle.cos(),
                        _ => 2.0 * bin,
                    };
                }
                sum += value / 20.0 * window(i);
                weight += window(i).powi(2);
            }
            let off = (f64::from(samples[at]) - sum / weight).abs();
            assert!(off < 1e-5, "sample {at}: off by {off:.1e}");
        }
        assert!(head.samples(&[]).is_err());
    }
}
