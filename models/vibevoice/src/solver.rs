//! DPM-Solver++ of second order (Lu et al. 2022, <https://arxiv.org/abs/2211.01095>), midpoint, over
//! a cosine schedule of 1000 steps, for a network that predicts velocity.

/// Steps that the network was trained with.
const TRAINED: usize = 1000;

/// One step: what the network sees, and how its answer is used. With the latent `x` and the velocity
/// `v`, the clean latent is `x0 = signal x - noise v`, and the next latent is
/// `keep x + clean x0 + before x0'`, x0' being that of the step before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Which of the trained steps it is.
    pub time: f32,
    /// Share of the clean latent in x.
    pub signal: f32,
    /// Share of noise in x.
    pub noise: f32,
    /// Factor of x.
    pub keep: f32,
    /// Factor of x0.
    pub clean: f32,
    /// Factor of the x0 of the step before; 0 in the first and the last step.
    pub before: f32,
}

/// The products of 1 - beta up to each trained step.
fn signal_shares() -> Vec<f64> {
    let bar = |t: usize| {
        let angle = (t as f64 / TRAINED as f64 + 0.008) / 1.008 * std::f64::consts::FRAC_PI_2;
        angle.cos().powi(2)
    };
    let beta = |t: usize| (1.0 - bar(t + 1) / bar(t)).min(0.999);
    let mut product = 1.0;
    (0..TRAINED)
        .map(|t| {
            product *= 1.0 - beta(t);
            product
        })
        .collect()
}

/// A noise level, as shares of the clean latent and of noise.
#[derive(Clone, Copy)]
struct Level {
    signal: f64,
    noise: f64,
}

impl Level {
    /// Half the logarithm of the ratio of powers; infinite without noise.
    fn log_ratio(self) -> f64 {
        self.signal.ln() - self.noise.ln()
    }
}

/// The steps of a path of `count` steps (1 to 999) from noise to a clean latent.
pub fn steps(count: usize) -> Vec<Step> {
    let shares = signal_shares();
    let last = (TRAINED - 1) as f64;
    let times: Vec<usize> = (1..=count)
        .rev()
        .map(|i| (last * i as f64 / count as f64).round_ties_even() as usize)
        .collect();
    let mut levels: Vec<Level> = times
        .iter()
        .map(|&t| Level {
            signal: shares[t].sqrt(),
            noise: (1.0 - shares[t]).sqrt(),
        })
        .collect();
    levels.push(Level {
        signal: 1.0,
        noise: 0.0,
    });
    let step = |i: usize| {
        let (now, next) = (levels[i], levels[i + 1]);
        let h = next.log_ratio() - now.log_ratio();
        let moved = -next.signal * (-h).exp_m1();
        // Of the slope of x0 from the step before; none at the ends, where there is no slope yet,
        // or no noise any more.
        let bend = match i.checked_sub(1).filter(|_| i + 1 < count) {
            None => 0.0,
            Some(before) => 0.5 * h / (now.log_ratio() - levels[before].log_ratio()),
        };
        Step {
            time: times[i] as f32,
            signal: now.signal as f32,
            noise: now.noise as f32,
            keep: (next.noise / now.noise) as f32,
            clean: (moved * (1.0 + bend)) as f32,
            before: (-moved * bend) as f32,
        }
    };
    (0..count).map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[derive(serde::Deserialize)]
    struct Path {
        timesteps: Vec<f32>,
        trail: Vec<f32>,
    }

    #[test]
    fn paths_are_those_of_diffusers() {
        let data = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/data/vibevoice/schedule.json"
        );
        let json = std::fs::read(data).unwrap();
        let paths: BTreeMap<usize, Path> = serde_json::from_slice(&json).unwrap();
        assert_eq!(paths.len(), 5);
        for (count, path) in paths {
            let (mut x, mut before) = (1.3f32, 0.0);
            for (i, step) in steps(count).iter().enumerate() {
                assert_eq!(step.time, path.timesteps[i]);
                let v = 0.8 * x + 0.3 * x.sin() - 0.1;
                let clean = step.signal * x - step.noise * v;
                x = step.keep * x + step.clean * clean + step.before * before;
                before = clean;
                let wanted = path.trail[i];
                assert!(
                    (x - wanted).abs() < 2e-5,
                    "{i} of {count}: {x} for {wanted}"
                );
            }
        }
    }
}
