//! Resampling by a windowed sinc, with the conventions of torchaudio: for networks that were
//! trained behind it. For sound that people hear, [`resample`](super::resample) is better.

/// Zero crossings of the sinc on either side.
const CROSSINGS: usize = 6;
/// Where the pass band ends, as part of the lower Nyquist frequency.
const ROLLOFF: f64 = 0.99;

/// A resampler of one channel between two rates.
#[derive(Debug, Clone, PartialEq)]
pub struct SincResampler {
    /// The rates without their common divisor.
    from: usize,
    to: usize,
    /// Inputs before the first one of a step that its outputs see.
    before: usize,
    /// For each output of a step, its weights.
    taps: Vec<Vec<f32>>,
}

impl SincResampler {
    /// From rate `from` to rate `to`; none if a rate is 0.
    pub fn new(from: u32, to: u32) -> Option<SincResampler> {
        let divisor = common_divisor(from, to);
        let (from, to) = (
            from.checked_div(divisor)? as usize,
            to.checked_div(divisor)? as usize,
        );
        if from == 0 || to == 0 {
            return None;
        }
        let base = from.min(to) as f64 * ROLLOFF;
        let before = (CROSSINGS as f64 * from as f64 / base).ceil() as usize;
        let reach = CROSSINGS as f64;
        let tap = |phase: usize, i: usize| {
            let steps = (i as f64 - before as f64) / from as f64 - phase as f64 / to as f64;
            let t = (steps * base).clamp(-reach, reach);
            let angle = t * std::f64::consts::PI;
            let sinc = if t == 0.0 { 1.0 } else { angle.sin() / angle };
            let window = (angle / reach / 2.0).cos().powi(2);
            (sinc * window * base / from as f64) as f32
        };
        let count = 2 * before + from;
        let taps = (0..to).map(|phase| (0..count).map(|i| tap(phase, i)).collect());
        Some(SincResampler {
            from,
            to,
            before,
            taps: taps.collect(),
        })
    }

    /// The weights of each output of a step, `[to, count]` for the reduced rate `to`.
    pub fn taps(&self) -> &[Vec<f32>] {
        &self.taps
    }

    /// Number of outputs for `n` inputs.
    pub fn len(&self, n: usize) -> usize {
        match self.from == self.to {
            true => n,
            false => (n * self.to).div_ceil(self.from),
        }
    }

    /// The samples at the other rate.
    pub fn process(&self, samples: &[f32]) -> Vec<f32> {
        if self.from == self.to {
            return samples.to_vec();
        }
        let count = self.len(samples.len());
        let mut out = Vec::with_capacity(count + self.to);
        for step in 0..count.div_ceil(self.to) {
            let first = (step * self.from) as isize - self.before as isize;
            for taps in &self.taps {
                let skip = first.min(0).unsigned_abs().min(taps.len());
                let start = first.max(0) as usize;
                let seen = samples.get(start..).unwrap_or_default();
                out.push(dot(&taps[skip..], seen));
            }
        }
        out.truncate(count);
        out
    }
}

/// The sum of products, as far as both go.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 8;
    let n = a.len().min(b.len());
    let (a, a_rest) = a[..n].as_chunks::<LANES>();
    let (b, b_rest) = b[..n].as_chunks::<LANES>();
    let mut sums = [0.0f32; LANES];
    for (a, b) in a.iter().zip(b) {
        for i in 0..LANES {
            sums[i] += a[i] * b[i];
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(a, b)| a * b);
    sums.into_iter().chain(rest).sum()
}

fn common_divisor(a: u32, b: u32) -> u32 {
    match b {
        0 => a,
        b => common_divisor(b, a % b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_wave_stays_and_a_fast_one_goes() {
        let resampler = SincResampler::new(24_000, 16_000).unwrap();
        assert_eq!((resampler.taps.len(), resampler.taps[0].len()), (2, 23));
        let wave = |hertz: f64, rate: f64, n: usize| -> Vec<f32> {
            let angle = std::f64::consts::TAU * hertz / rate;
            (0..n).map(|i| (angle * i as f64).sin() as f32).collect()
        };
        let slow = resampler.process(&wave(500.0, 24e3, 2400));
        let wanted = wave(500.0, 16e3, 1600);
        assert_eq!(slow.len(), 1600);
        // The ends see zeros beyond them.
        for (found, wanted) in slow.iter().zip(wanted).skip(20).take(1560) {
            assert!((found - wanted).abs() < 2e-3, "{found} {wanted}");
        }
        let fast = resampler.process(&wave(11_500.0, 24e3, 2400));
        let peak = fast[20..1580].iter().fold(0.0f32, |m, x| m.max(x.abs()));
        assert!(peak < 0.01, "{peak}");
    }

    #[test]
    fn lengths_are_rounded_up_and_equal_rates_change_nothing() {
        let resampler = SincResampler::new(44_100, 16_000).unwrap();
        assert_eq!((resampler.from, resampler.to), (441, 160));
        assert_eq!(resampler.process(&[0.5; 442]).len(), 161);
        assert!(resampler.process(&[]).is_empty());
        let same = SincResampler::new(16_000, 16_000).unwrap();
        assert_eq!(same.process(&[0.25, -1.0]), [0.25, -1.0]);
        assert_eq!(SincResampler::new(0, 16_000), None);
    }
}
