//! Mel filter banks (as librosa computes them) and the log-mel front end of speech models.
use super::{Error, Result, Stft, StftConfig};

/// The mapping from hertz to mels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MelScale {
    /// Slaney's: linear below 1 kHz, logarithmic above; librosa's default.
    #[default]
    Slaney,
    /// `2595 * log10(1 + f / 700)`.
    Htk,
}

impl MelScale {
    /// Mels of a frequency in hertz.
    pub fn from_hz(self, hz: f64) -> f64 {
        match self {
            Self::Htk => 2595.0 * (1.0 + hz / 700.0).log10(),
            Self::Slaney if hz < 1000.0 => hz * 3.0 / 200.0,
            Self::Slaney => 15.0 + (hz / 1000.0).ln() * 27.0 / 6.4f64.ln(),
        }
    }

    /// Frequency in hertz of a number of mels.
    pub fn to_hz(self, mel: f64) -> f64 {
        match self {
            Self::Htk => 700.0 * (10f64.powf(mel / 2595.0) - 1.0),
            Self::Slaney if mel < 15.0 => mel * 200.0 / 3.0,
            Self::Slaney => 1000.0 * ((mel - 15.0) * 6.4f64.ln() / 27.0).exp(),
        }
    }
}

/// The scaling of each filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MelNorm {
    /// Every filter has the same area.
    #[default]
    Slaney,
    /// Every filter peaks at 1.
    None,
}

/// A bank of triangular filters over the bins of a real spectrum.
#[derive(Debug, Clone, PartialEq)]
pub struct MelBank {
    /// Frames a second of the signal.
    pub rate: u32,
    /// Length of the Fourier transform.
    pub n_fft: usize,
    /// Number of filters.
    pub n_mels: usize,
    /// Lower edge of the first filter, in hertz.
    pub f_min: f64,
    /// Upper edge of the last filter, in hertz.
    pub f_max: f64,
    /// The mel scale.
    pub scale: MelScale,
    /// The scaling of each filter.
    pub norm: MelNorm,
}

impl MelBank {
    /// The weights, `[n_mels, n_fft / 2 + 1]`.
    pub fn weights(&self) -> Vec<f32> {
        let bins = self.n_fft / 2 + 1;
        let (low, high) = (
            self.scale.from_hz(self.f_min),
            self.scale.from_hz(self.f_max),
        );
        let step = (high - low) / (self.n_mels + 1) as f64;
        let edges: Vec<f64> = (0..self.n_mels + 2)
            .map(|i| self.scale.to_hz(low + step * i as f64))
            .collect();
        let mut weights = Vec::with_capacity(self.n_mels * bins);
        for edge in edges.windows(3) {
            let area = match self.norm {
                MelNorm::Slaney => 2.0 / (edge[2] - edge[0]),
                MelNorm::None => 1.0,
            };
            for bin in 0..bins {
                let hz = bin as f64 * f64::from(self.rate) / self.n_fft as f64;
                let rise = (hz - edge[0]) / (edge[1] - edge[0]);
                let fall = (edge[2] - hz) / (edge[2] - edge[1]);
                weights.push((rise.min(fall).max(0.0) * area) as f32);
            }
        }
        weights
    }
}

/// The logarithm taken of each mel value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Log {
    /// `log10(max(x, floor))`.
    Log10 {
        /// Smallest value that is kept.
        floor: f32,
    },
    /// `ln(max(x, floor))`.
    Ln {
        /// Smallest value that is kept.
        floor: f32,
    },
    /// `ln(x + offset)`.
    LnAdd {
        /// What is added before the logarithm.
        offset: f32,
    },
}

impl Log {
    fn of(self, x: f32) -> f32 {
        match self {
            Self::Log10 { floor } => x.max(floor).log10(),
            Self::Ln { floor } => x.max(floor).ln(),
            Self::LnAdd { offset } => (x + offset).ln(),
        }
    }
}

/// All numbers of a log-mel front end.
#[derive(Debug, Clone, PartialEq)]
pub struct LogMelConfig {
    /// The Fourier transform.
    pub stft: StftConfig,
    /// The filters.
    pub bank: MelBank,
    /// 2 for power spectra, 1 for magnitudes.
    pub power: u8,
    /// The logarithm.
    pub log: Log,
    /// Raises everything to at least the loudest value minus this.
    pub range: Option<f32>,
    /// Adds the first, then multiplies by the second number.
    pub affine: (f32, f32),
    /// Whether the last frame, centred beyond the end of the samples, is left out.
    pub drop_last: bool,
}

impl LogMelConfig {
    /// Whisper's: 16 kHz, 25 ms windows every 10 ms, 80 or 128 mels.
    pub fn whisper(n_mels: usize) -> Self {
        Self {
            stft: StftConfig::new(400, 160),
            bank: MelBank {
                rate: 16_000,
                n_fft: 400,
                n_mels,
                f_min: 0.0,
                f_max: 8000.0,
                scale: MelScale::Slaney,
                norm: MelNorm::Slaney,
            },
            power: 2,
            log: Log::Log10 { floor: 1e-10 },
            range: Some(8.0),
            affine: (4.0, 0.25),
            drop_last: true,
        }
    }
}

/// One filter without the zeros around it.
struct Filter {
    first: usize,
    weights: Vec<f32>,
}

/// A planned log-mel front end; plan once, use for any number of windows, from any thread.
pub struct LogMel {
    config: LogMelConfig,
    stft: Stft,
    filters: Vec<Filter>,
}

impl LogMel {
    /// Plans a front end.
    pub fn new(config: LogMelConfig) -> Result<Self> {
        let bank = &config.bank;
        if bank.n_fft != config.stft.n_fft || !matches!(config.power, 1 | 2) {
            return Err(Error::Invalid(format!(
                "log-mel of power {} with filters for n_fft {} over an STFT of {}: wanted power 1 \
                 or 2 and one n_fft",
                config.power, bank.n_fft, config.stft.n_fft
            )));
        }
        if bank.n_mels == 0 || bank.rate == 0 || !(0.0..bank.f_max).contains(&bank.f_min) {
            return Err(Error::Invalid(format!(
                "{} mel filters from {} to {} Hz at {} Hz: wanted at least one over a rising range",
                bank.n_mels, bank.f_min, bank.f_max, bank.rate
            )));
        }
        let filters = bank
            .weights()
            .chunks_exact(bank.n_fft / 2 + 1)
            .map(|row| {
                let first = row.iter().position(|&w| w != 0.0).unwrap_or(0);
                let last = row.iter().rposition(|&w| w != 0.0).map_or(0, |i| i + 1);
                Filter {
                    first,
                    weights: row[first..last.max(first)].to_vec(),
                }
            })
            .collect();
        Ok(Self {
            stft: Stft::new(config.stft.clone())?,
            config,
            filters,
        })
    }

    /// The numbers this front end was planned with.
    pub fn config(&self) -> &LogMelConfig {
        &self.config
    }

    /// Number of mels a frame.
    pub fn n_mels(&self) -> usize {
        self.filters.len()
    }

    /// Features of one window of exactly `frames` frames, `[frames, n_mels]`: the samples (mono,
    /// at the bank's rate) are cut or extended with zeros to `frames * hop`.
    pub fn window(&self, samples: &[f32], frames: usize) -> Result<Vec<f32>> {
        let len = frames * self.config.stft.hop;
        if samples.len() >= len {
            return self.compute(&samples[..len]);
        }
        let mut padded = samples.to_vec();
        padded.resize(len, 0.0);
        self.compute(&padded)
    }

    /// Features of all frames of `samples`, `[frames, n_mels]`. The range is taken from the
    /// loudest value of this call. Errors if the signal is shorter than the transform allows.
    pub fn compute(&self, samples: &[f32]) -> Result<Vec<f32>> {
        let all = self.stft.frames(samples.len());
        let frames = if self.config.drop_last {
            all.saturating_sub(1)
        } else {
            all
        };
        let mut features = Vec::with_capacity(frames * self.n_mels());
        let mut power = vec![0.0f32; self.stft.half_bins()];
        self.stft.for_each_frame(samples, |t, bins| {
            if t == frames {
                return;
            }
            for (p, bin) in power.iter_mut().zip(bins) {
                *p = bin.norm_sqr();
            }
            if self.config.power == 1 {
                power.iter_mut().for_each(|p| *p = p.sqrt());
            }
            features.extend(self.filters.iter().map(|filter| {
                let band = &power[filter.first..filter.first + filter.weights.len()];
                let mel = band.iter().zip(&filter.weights).map(|(p, w)| p * w).sum();
                self.config.log.of(mel)
            }));
        })?;
        self.scale(&mut features);
        Ok(features)
    }

    fn scale(&self, features: &mut [f32]) {
        let loudest = features.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let floor = self
            .config
            .range
            .map_or(f32::NEG_INFINITY, |range| loudest - range);
        let (add, times) = self.config.affine;
        for x in features {
            *x = (x.max(floor) + add) * times;
        }
    }
}
