//! From a stream of samples to frames of bins, and back.

use audiocpp::audio::{Complex32, Padding, Result, Stft, StftConfig, Window};

use crate::size::{BINS, HOP, WINDOW};

/// A frame reaches this far beyond the next one's start.
const REACH: usize = WINDOW - HOP;

/// The transform: frames start every [`HOP`] samples, the first [`WINDOW`] samples before the sound.
///
/// # Errors
/// None for these sizes.
pub fn transform() -> Result<Stft> {
    Stft::new(StftConfig {
        n_fft: WINDOW,
        hop: HOP,
        win_length: WINDOW,
        window: Window::Hann,
        center: false,
        padding: Padding::Zeros,
        normalized: false,
        onesided: true,
    })
}

/// Samples of one channel on their way to frames.
pub struct Analysis {
    /// From the start of the next frame on.
    samples: Vec<f32>,
}

impl Default for Analysis {
    fn default() -> Self {
        Analysis {
            samples: vec![0.0; WINDOW],
        }
    }
}

impl Analysis {
    /// Takes samples.
    pub fn push(&mut self, samples: impl Iterator<Item = f32>) {
        self.samples.extend(samples);
    }

    /// Frames that are complete.
    pub fn frames(&self) -> usize {
        match self.samples.len().checked_sub(WINDOW) {
            Some(rest) => rest / HOP + 1,
            None => 0,
        }
    }

    /// Takes the end of the sound: what begins before it becomes frames, filled up with zeros.
    pub fn finish(&mut self) {
        let frames = self.samples.len().div_ceil(HOP);
        let whole = (frames * HOP + REACH).max(self.samples.len());
        self.samples.resize(whole, 0.0);
    }

    /// The next `count` frames `[count, BINS]`, fewer if there are not as many.
    ///
    /// # Errors
    /// None for these sizes.
    pub fn take(&mut self, stft: &Stft, count: usize) -> Result<Vec<Complex32>> {
        let count = count.min(self.frames());
        if count == 0 {
            return Ok(Vec::new());
        }
        let spectrogram = stft.forward(&self.samples[..(count - 1) * HOP + WINDOW])?;
        self.samples.drain(..count * HOP);
        Ok(spectrogram.data)
    }
}

/// Frames of one channel on their way back to samples.
pub struct Synthesis {
    /// What earlier frames give to the samples that come next.
    carry: Vec<f32>,
    /// Samples that come before the sound.
    before: usize,
}

impl Default for Synthesis {
    fn default() -> Self {
        Synthesis {
            carry: vec![0.0; REACH],
            before: WINDOW,
        }
    }
}

impl Synthesis {
    /// The sum of a Hann window's squares at steps of a quarter.
    const SQUARES: f32 = 1.5;

    /// Takes frames `[count, BINS]` and gives the samples that no later frame reaches.
    ///
    /// # Errors
    /// None for whole frames.
    pub fn push(&mut self, stft: &Stft, frames: &[Complex32]) -> Result<Vec<f32>> {
        let count = frames.len() / BINS;
        if count == 0 {
            return Ok(Vec::new());
        }
        let (mut sum, _) = stft.overlap_add(frames, count)?;
        for (sample, earlier) in sum.iter_mut().zip(&self.carry) {
            *sample += earlier;
        }
        self.carry = sum.split_off(count * HOP);
        let before = self.before.min(sum.len());
        self.before -= before;
        sum.drain(..before);
        sum.iter_mut().for_each(|sample| *sample /= Self::SQUARES);
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_lead_back_to_the_samples_however_they_come() {
        let stft = transform().unwrap();
        for length in [1, 1023, 1024, 5000, 40_000] {
            let sound: Vec<f32> = (0..length).map(|i| (i as f32 * 0.37).sin()).collect();
            let (mut analysis, mut synthesis) = (Analysis::default(), Synthesis::default());
            let (mut out, mut frames) = (Vec::new(), 0);
            for part in sound.chunks(777) {
                analysis.push(part.iter().copied());
                let taken = analysis.take(&stft, 3).unwrap();
                frames += taken.len() / BINS;
                out.extend(synthesis.push(&stft, &taken).unwrap());
            }
            analysis.finish();
            let taken = analysis.take(&stft, usize::MAX).unwrap();
            frames += taken.len() / BINS;
            out.extend(synthesis.push(&stft, &taken).unwrap());
            assert_eq!(frames, (length + WINDOW).div_ceil(HOP));
            assert!(out.len() >= length, "{} of {length}", out.len());
            let worst = out.iter().zip(&sound).map(|(a, b)| (a - b).abs());
            assert!(worst.fold(0.0, f32::max) < 1e-5, "{length}");
        }
    }
}
