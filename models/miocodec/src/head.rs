//! From log magnitudes and phases to samples, on the CPU: Vocos (Siuzdak 2023,
//! <https://arxiv.org/abs/2306.00814>) with as many samples as frames times the hop.

use audiocpp::audio::{Complex32, Error, Stft, StftConfig};

/// Largest magnitude of a bin.
const LOUDEST: f32 = 100.0;

/// The inverse transform.
#[derive(Clone)]
pub struct Head {
    stft: Stft,
}

impl Head {
    /// For transforms of `n_fft` samples, `hop` apart.
    ///
    /// # Errors
    /// Sizes that make no transform.
    pub fn new(n_fft: usize, hop: usize) -> Result<Head, Error> {
        Ok(Head {
            stft: Stft::new(StftConfig::new(n_fft, hop))?,
        })
    }

    /// Frames `[n, n_fft + 2]`, of each all log magnitudes, then all phases -> `n * hop` samples.
    ///
    /// # Errors
    /// No frames.
    pub fn samples(&self, frames: &[f32]) -> Result<Vec<f32>, Error> {
        let bins = self.stft.half_bins();
        let mut data = Vec::with_capacity(frames.len() / 2);
        for frame in frames.chunks_exact(2 * bins) {
            let (logs, phases) = frame.split_at(bins);
            let bin =
                |(log, phase): (&f32, &f32)| Complex32::from_polar(log.exp().min(LOUDEST), *phase);
            data.extend(logs.iter().zip(phases).map(bin));
        }
        let (signal, weight) = self.stft.overlap_add(&data, data.len() / bins)?;
        let config = self.stft.config();
        let cut = (config.n_fft - config.hop) / 2;
        let kept = cut..signal.len() - cut;
        let pairs = signal[kept.clone()].iter().zip(&weight[kept]);
        Ok(pairs.map(|(x, w)| x / w).collect())
    }
}
