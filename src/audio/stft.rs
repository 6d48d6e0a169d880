//! Short-time Fourier transform and its inverse, with the conventions of `torch.stft`.
use super::{Error, Result};
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex, num_complex::Complex32};
use std::{f64::consts::TAU, sync::Arc};

/// Window functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Window {
    /// Periodic Hann, the default of most models.
    #[default]
    Hann,
    /// Periodic Hamming.
    Hamming,
    /// All ones.
    Rectangular,
}

impl Window {
    /// The window's `len` values.
    pub fn values(self, len: usize) -> Vec<f32> {
        let cosine = |a: f64, i: usize| a - (1.0 - a) * (TAU * i as f64 / len as f64).cos();
        (0..len)
            .map(|i| match self {
                Self::Hann => cosine(0.5, i) as f32,
                Self::Hamming => cosine(0.54, i) as f32,
                Self::Rectangular => 1.0,
            })
            .collect()
    }
}

/// What lies beyond the ends of the signal when frames are centred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Padding {
    /// The signal mirrored at its first and last sample.
    #[default]
    Reflect,
    /// Zeros.
    Zeros,
}

/// The numbers of a transform; `Stft::new` checks them.
#[derive(Debug, Clone, PartialEq)]
pub struct StftConfig {
    /// Length of the Fourier transform.
    pub n_fft: usize,
    /// Samples between frames.
    pub hop: usize,
    /// Length of the window, centred in `n_fft`.
    pub win_length: usize,
    /// The window function.
    pub window: Window,
    /// Whether frame `t` is centred on sample `t * hop` (with padding) or starts there.
    pub center: bool,
    /// Padding of centred frames.
    pub padding: Padding,
    /// Whether to divide by `sqrt(n_fft)`.
    pub normalized: bool,
    /// Whether to keep only the `n_fft / 2 + 1` bins that a real signal needs.
    pub onesided: bool,
}

impl StftConfig {
    /// Centred, reflected, one-sided, Hann over the whole of `n_fft`.
    pub fn new(n_fft: usize, hop: usize) -> Self {
        Self {
            n_fft,
            hop,
            win_length: n_fft,
            window: Window::Hann,
            center: true,
            padding: Padding::Reflect,
            normalized: false,
            onesided: true,
        }
    }
}

/// Complex bins, time-major: `[frames, bins]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Spectrogram {
    /// `frames * bins` values.
    pub data: Vec<Complex32>,
    /// Number of frames.
    pub frames: usize,
    /// Bins a frame.
    pub bins: usize,
}

/// A planned transform; plan once, use for any number of signals, from any thread.
#[derive(Clone)]
pub struct Stft {
    config: StftConfig,
    /// The window, padded to `n_fft` on both sides.
    window: Vec<f32>,
    forward: Arc<dyn RealToComplex<f32>>,
    backward: Arc<dyn ComplexToReal<f32>>,
}

impl Stft {
    /// Plans a transform.
    pub fn new(config: StftConfig) -> Result<Self> {
        let window = config.window.values(config.win_length);
        Self::with_window(config, &window)
    }

    /// Plans a transform with a window of one's own, `win_length` long.
    pub fn with_window(config: StftConfig, window: &[f32]) -> Result<Self> {
        let StftConfig {
            n_fft,
            hop,
            win_length,
            ..
        } = config;
        if n_fft < 2 || hop == 0 || win_length == 0 || win_length > n_fft {
            return Err(Error::Invalid(format!(
                "STFT of n_fft {n_fft}, hop {hop}, window {win_length}: wanted n_fft of at least \
                 2, hop of at least 1, and a window of 1 to n_fft"
            )));
        }
        if window.len() != win_length {
            return Err(Error::Invalid(format!(
                "STFT window has {} values, wanted win_length = {win_length}",
                window.len()
            )));
        }
        let mut padded = vec![0.0; n_fft];
        let left = (n_fft - win_length) / 2;
        padded[left..left + win_length].copy_from_slice(window);
        let mut planner = RealFftPlanner::new();
        Ok(Self {
            forward: planner.plan_fft_forward(n_fft),
            backward: planner.plan_fft_inverse(n_fft),
            window: padded,
            config,
        })
    }

    /// The numbers this transform was planned with.
    pub fn config(&self) -> &StftConfig {
        &self.config
    }

    /// Bins of a frame that are computed: `n_fft / 2 + 1`.
    pub fn half_bins(&self) -> usize {
        self.config.n_fft / 2 + 1
    }

    /// Frames that a signal of `len` samples gives.
    pub fn frames(&self, len: usize) -> usize {
        let padded = if self.config.center {
            len + self.config.n_fft / 2 * 2
        } else {
            len
        };
        match padded.checked_sub(self.config.n_fft) {
            Some(rest) => rest / self.config.hop + 1,
            None => 0,
        }
    }

    /// Calls `each` with the half spectrum (`n_fft / 2 + 1` bins) of every frame in turn.
    ///
    /// Errors if the signal is too short: reflection needs more than `n_fft / 2` samples, frames
    /// that are not centred need `n_fft`.
    pub fn for_each_frame(
        &self,
        signal: &[f32],
        mut each: impl FnMut(usize, &[Complex32]),
    ) -> Result<()> {
        let StftConfig {
            n_fft,
            hop,
            center,
            padding,
            normalized,
            ..
        } = self.config;
        let half = n_fft / 2;
        let shortest = match (center, padding) {
            (true, Padding::Reflect) => half + 1,
            (true, Padding::Zeros) => 1,
            (false, _) => n_fft,
        };
        if signal.len() < shortest {
            return Err(Error::Invalid(format!(
                "STFT of {} samples: n_fft {n_fft} wants at least {shortest}",
                signal.len()
            )));
        }
        let scale = if normalized {
            1.0 / (n_fft as f32).sqrt()
        } else {
            1.0
        };
        let mut frame = self.forward.make_input_vec();
        let mut bins = self.forward.make_output_vec();
        let mut scratch = self.forward.make_scratch_vec();
        let left = if center { half as isize } else { 0 };
        for t in 0..self.frames(signal.len()) {
            let start = (t * hop) as isize - left;
            fill(&mut frame, signal, start, padding);
            for (sample, w) in frame.iter_mut().zip(&self.window) {
                *sample *= w * scale;
            }
            self.forward
                .process_with_scratch(&mut frame, &mut bins, &mut scratch)
                .map_err(|e| Error::Invalid(format!("STFT failed: {e}")))?;
            each(t, &bins);
        }
        Ok(())
    }

    /// The spectrogram of a signal; see [`Stft::for_each_frame`] for the shortest signal.
    pub fn forward(&self, signal: &[f32]) -> Result<Spectrogram> {
        let frames = self.frames(signal.len());
        let half = self.half_bins();
        let bins = if self.config.onesided {
            half
        } else {
            self.config.n_fft
        };
        let mut data = Vec::with_capacity(frames * bins);
        self.for_each_frame(signal, |_, spectrum| {
            data.extend_from_slice(spectrum);
            // The upper bins of a real signal are the lower ones mirrored and conjugated.
            data.extend((half..bins).map(|k| spectrum[self.config.n_fft - k].conj()));
        })?;
        Ok(Spectrogram { data, frames, bins })
    }

    /// The signal of a spectrogram: overlapped frames divided by the summed squared windows.
    /// `length` cuts or zero-extends the result; without it the end is where the frames end.
    ///
    /// Errors if the number of bins is wrong or the windows leave a sample uncovered.
    pub fn inverse(&self, spectrogram: &Spectrogram, length: Option<usize>) -> Result<Vec<f32>> {
        let StftConfig {
            n_fft,
            hop,
            center,
            onesided,
            ..
        } = self.config;
        let bins = if onesided { self.half_bins() } else { n_fft };
        let Spectrogram { data, frames, .. } = spectrogram;
        if spectrogram.bins != bins || data.len() != frames * bins || *frames == 0 {
            return Err(Error::Invalid(format!(
                "ISTFT of {} values as {frames} frames of {} bins: wanted at least one frame of \
                 {bins} bins",
                data.len(),
                spectrogram.bins
            )));
        }
        let (signal, weight) = self.overlap_add(data, *frames)?;
        let total = signal.len();
        let start = if center { n_fft / 2 } else { 0 };
        let end = match length {
            Some(length) => start.saturating_add(length).min(total),
            None => total - start,
        };
        let covered = weight.get(start..end).unwrap_or_default();
        if let Some(hole) = covered.iter().position(|&w| w < 1e-11) {
            return Err(Error::Invalid(format!(
                "ISTFT windows leave sample {hole} uncovered: hop {hop} is too long for the window"
            )));
        }
        let mut out: Vec<f32> = signal[start..end.max(start)]
            .iter()
            .zip(covered)
            .map(|(s, w)| s / w)
            .collect();
        if let Some(length) = length {
            out.resize(length, 0.0);
        }
        Ok(out)
    }

    /// The windowed frames of `data` (`[frames, bins]`) summed in place, and the squared windows
    /// likewise: `hop * (frames - 1) + n_fft` values each, from the start of the first frame on.
    /// For streams, which divide when all frames of a stretch are there.
    ///
    /// Errors if `data` is not `frames` rows of the transform's bins, or there is no frame.
    pub fn overlap_add(&self, data: &[Complex32], frames: usize) -> Result<(Vec<f32>, Vec<f32>)> {
        let StftConfig { n_fft, hop, .. } = self.config;
        let row = data.len().checked_div(frames).unwrap_or(0);
        if row < self.half_bins() || row * frames != data.len() {
            return Err(Error::Invalid(format!(
                "ISTFT of {} values as {frames} frames of {} bins or more",
                data.len(),
                self.half_bins()
            )));
        }
        let total = n_fft + hop * (frames - 1);
        let (mut signal, mut weight) = (vec![0.0f32; total], vec![0.0f32; total]);
        let scale = match self.config.normalized {
            true => 1.0 / (n_fft as f32).sqrt(),
            false => 1.0 / n_fft as f32,
        };
        let mut spectrum = self.backward.make_input_vec();
        let mut frame = self.backward.make_output_vec();
        let mut scratch = self.backward.make_scratch_vec();
        for (t, row) in data.chunks_exact(row).enumerate() {
            spectrum.copy_from_slice(&row[..self.half_bins()]);
            // A real signal has no imaginary part at 0 and at the Nyquist frequency.
            spectrum[0].im = 0.0;
            if n_fft % 2 == 0 {
                spectrum[n_fft / 2].im = 0.0;
            }
            self.backward
                .process_with_scratch(&mut spectrum, &mut frame, &mut scratch)
                .map_err(|e| Error::Invalid(format!("ISTFT failed: {e}")))?;
            let at = t * hop..t * hop + n_fft;
            let out = signal[at.clone()].iter_mut().zip(&mut weight[at]);
            for ((out, sum), (sample, w)) in out.zip(frame.iter().zip(&self.window)) {
                *out += sample * w * scale;
                *sum += w * w;
            }
        }
        Ok((signal, weight))
    }
}

/// Copies the samples from `start` on into `frame`, with padding beyond the ends.
fn fill(frame: &mut [f32], signal: &[f32], start: isize, padding: Padding) {
    let len = signal.len() as isize;
    if start >= 0 && start + frame.len() as isize <= len {
        frame.copy_from_slice(&signal[start as usize..start as usize + frame.len()]);
        return;
    }
    for (at, sample) in (start..).zip(frame) {
        *sample = match padding {
            _ if (0..len).contains(&at) => signal[at as usize],
            Padding::Reflect => signal[(if at < 0 { -at } else { 2 * (len - 1) - at }) as usize],
            Padding::Zeros => 0.0,
        };
    }
}
