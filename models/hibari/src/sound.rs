//! From predicted spectra to samples, on the CPU: pulses at the pitch, seen through a transform,
//! are sized and turned bin by bin; noise and a part with free phases are added.

use std::f64::consts::TAU;

use audiocpp::{
    audio::{Complex32, Error, Spectrogram, Stft, StftConfig},
    sampling::TorchRandom,
};

/// Samples a second.
pub const RATE: u32 = 24_000;
/// Samples from one spectrum to the next.
pub const HOP: usize = 300;
/// Samples that a spectrum is of.
const TAPS: usize = 4 * HOP;
/// A pitch at or below this is none, in Hz.
const LEAST_PITCH: f32 = 40.0;
/// No harmonic is higher, in Hz.
const HIGHEST: f32 = 11_000.0;
/// Logarithms of sizes are cut here.
const MOST_LOG: f32 = 7.0;

/// Makes samples of spectra.
pub struct Sounder {
    stft: Stft,
}

impl Sounder {
    /// The one that there is.
    ///
    /// # Errors
    /// None that a test would not find.
    pub fn new() -> Result<Sounder, Error> {
        Ok(Sounder {
            stft: Stft::new(StftConfig::new(TAPS, HOP))?,
        })
    }

    /// Bins of a spectrum.
    pub fn bins(&self) -> usize {
        self.stft.half_bins()
    }

    /// Frames `[n, 5 bins]` as the network gives them, and a pitch in Hz for each, to `n` [`HOP`]
    /// samples; without `random` there is no noise.
    ///
    /// # Errors
    /// Fewer than three frames.
    pub fn samples(
        &self,
        frames: &[f32],
        pitch: &[f32],
        mut random: Option<&mut TorchRandom>,
    ) -> Result<Vec<f32>, Error> {
        let bins = self.bins();
        let mut data = Vec::with_capacity(pitch.len() * bins);
        let mut rows = frames.chunks_exact(5 * bins);
        // A cosine of size one has half the window's sum in its bin.
        let scale = 2.0 / TAPS as f32 * 2.0;
        self.stft.for_each_frame(&pulses(pitch), |_, pulses| {
            if let Some(row) = rows.next() {
                let noise = random.as_deref_mut().map(|random| random.randn(2 * bins));
                shape(row, pulses, noise.as_deref(), scale, &mut data);
            }
        })?;
        let spectrogram = Spectrogram {
            frames: data.len() / bins,
            data,
            bins,
        };
        self.stft.inverse(&spectrogram, Some(pitch.len() * HOP))
    }
}

/// One spectrum: the pulses' bins sized and turned, noise sized, the rest by size and phase.
fn shape(
    row: &[f32],
    pulses: &[Complex32],
    noise: Option<&[f32]>,
    scale: f32,
    out: &mut Vec<Complex32>,
) {
    let bins = row.len() / 5;
    let part = |i: usize| &row[i * bins..(i + 1) * bins];
    let [size, turn, noise_size, rest, phase] = [0, 1, 2, 3, 4].map(part);
    let exp = |log: f32| log.min(MOST_LOG).exp();
    for k in 0..bins {
        let turn = std::f32::consts::PI * turn[k].tanh();
        let mut bin = pulses[k] * Complex32::from_polar(exp(size[k]) * scale, turn);
        bin += Complex32::from_polar(exp(rest[k]), phase[k]);
        if let Some(noise) = noise {
            bin += Complex32::new(noise[2 * k], noise[2 * k + 1]) * exp(noise_size[k]);
        }
        out.push(bin);
    }
}

/// A sum of cosines at the pitch and all its multiples below `HIGHEST`, each of size one; zero
/// where there is no pitch. One pitch for each [`HOP`] samples, joined by straight lines.
pub fn pulses(pitch: &[f32]) -> Vec<f32> {
    let mut samples = Vec::with_capacity(pitch.len() * HOP);
    let mut turns = 0.0f64;
    for at in 0..pitch.len() * HOP {
        let place = (at % HOP) as f32 + 0.5;
        let frame = at / HOP;
        let near = |step: isize| {
            let index = frame.saturating_add_signed(step).min(pitch.len() - 1);
            pitch[index]
        };
        // Pitches stand in the middles of their frames.
        let along = place / HOP as f32 - 0.5;
        let hz = match along < 0.0 {
            true => near(-1) * -along + near(0) * (1.0 + along),
            false => near(0) * (1.0 - along) + near(1) * along,
        };
        let steady = hz.max(LEAST_PITCH);
        turns = (turns + f64::from(steady) / f64::from(RATE)).fract();
        samples.push(match hz > LEAST_PITCH {
            true => harmonics((turns * TAU) as f32, (HIGHEST / steady).floor()),
            false => 0.0,
        });
    }
    samples
}

/// Σ cos(h t) for h = 1..=n, in its closed form.
fn harmonics(t: f32, n: f32) -> f32 {
    let twice = 2.0 * (0.5 * t).sin();
    let half = n + 0.5;
    match twice.abs() <= 2e-3 {
        true => half - 0.5,
        false => (half * t).sin() / twice - 0.5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pulses_are_sums_of_cosines() {
        for t in [0.0005f32, 0.3, 1.0, 3.0, 6.2] {
            let wanted: f64 = (1..=50).map(|h| (f64::from(t) * f64::from(h)).cos()).sum();
            let found = f64::from(harmonics(t, 50.0));
            assert!((found - wanted).abs() < 0.02, "{t}: {found} {wanted}");
        }
        let samples = pulses(&[100.0; 8]);
        assert_eq!(samples.len(), 8 * HOP);
        // 100 Hz: a pulse every 240 samples, as high as there are harmonics.
        let peaks: Vec<usize> = (0..samples.len()).filter(|&i| samples[i] > 100.0).collect();
        assert_eq!(peaks, (1..=10).map(|i| 240 * i - 1).collect::<Vec<_>>());
        assert!(pulses(&[30.0; 3]).iter().all(|x| *x == 0.0));
    }

    #[test]
    fn a_plain_spectrum_gives_the_pulses_back() {
        let sounder = Sounder::new().unwrap();
        let bins = sounder.bins();
        let pitch = [120.0f32; 12];
        // The bins of the transform itself: a size of 300 undoes the scale.
        let row = [
            vec![(HOP as f32).ln(); bins],
            vec![0.0; bins],
            vec![-99.0; bins],
            vec![-99.0; bins],
            vec![0.0; bins],
        ]
        .concat();
        let samples = sounder.samples(&row.repeat(12), &pitch, None).unwrap();
        let wanted = pulses(&pitch);
        assert_eq!(samples.len(), wanted.len());
        let off = samples.iter().zip(&wanted).map(|(a, b)| (a - b).abs());
        let worst = off.fold(0.0, f32::max);
        assert!(worst < 1e-2, "off by {worst}");
        assert!(sounder.samples(&[], &[], None).is_err());
    }
}
