//! Snakes at twice the rate, so that what they add above the band is filtered out again
//! (Karras et al. 2021, <https://arxiv.org/abs/2106.12423>; Lee et al. 2022, BigVGAN,
//! <https://arxiv.org/abs/2206.04658>).

use audiocpp::{
    backend::FastPath,
    graph::{Device, DeviceTensor, GraphError, Tensor},
    nn::{Beyond, Fir},
    weights::{LoadError, Weights},
};

/// Taps of the filters around an activation.
const TAPS: usize = 12;
/// Where the filters' band ends, and half the width of the slope there, as parts of the rate.
const CUTOFF: f64 = 0.25;
const HALF_WIDTH: f64 = 0.3;

/// To twice the rate and back.
pub struct Resampling {
    up: Fir,
    down: Fir,
    filter: [f32; TAPS],
}

impl Resampling {
    /// # Errors
    /// A device without room.
    pub fn new(device: &Device) -> Result<Resampling, GraphError> {
        let taps = filter();
        let tap = |k: isize| {
            let at = usize::try_from(k).ok().and_then(|k| taps.get(k));
            at.copied().unwrap_or(0.0)
        };
        let (early, late) = (TAPS as isize / 2 - 1, TAPS as isize / 2);
        Ok(Resampling {
            filter: taps.map(|tap| tap as f32),
            // A sum over inputs that lie at every other output, which doubles the level back.
            up: Fir::new(device, [1, 2], [late as usize / 2; 2], |i, j| {
                2.0 * tap(i - 2 * j + early)
            })?,
            down: Fir::new(device, [2, 1], [early as usize, late as usize], |i, j| {
                tap(j - 2 * i + early)
            })?,
        })
    }
}

/// A low-pass of a sinc under a Kaiser window; the sum of its taps is 1.
pub fn filter() -> [f64; TAPS] {
    let half = TAPS as f64 / 2.0;
    let attenuation = 2.285 * (half - 1.0) * std::f64::consts::PI * 4.0 * HALF_WIDTH + 7.95;
    let beta = match attenuation {
        a if a > 50.0 => 0.1102 * (a - 8.7),
        a if a >= 21.0 => 0.5842 * (a - 21.0).powf(0.4) + 0.07886 * (a - 21.0),
        _ => 0.0,
    };
    let taps: [f64; TAPS] = std::array::from_fn(|i| {
        let along = 2.0 * i as f64 / (TAPS - 1) as f64 - 1.0;
        let window = bessel(beta * (1.0 - along * along).max(0.0).sqrt()) / bessel(beta);
        let angle = std::f64::consts::PI * 2.0 * CUTOFF * (i as f64 - half + 0.5);
        window * angle.sin() / angle
    });
    let sum: f64 = taps.iter().sum();
    taps.map(|tap| tap / sum)
}

/// The modified Bessel function of the first kind of order 0.
fn bessel(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    let terms = (1..64).scan(1.0, |term, k| {
        *term *= quarter / f64::from(k * k);
        Some(*term)
    });
    1.0 + terms.sum::<f64>()
}

/// The mean of a snake x + sin²(a x) / b over the way from each value to the next.
pub struct Activation {
    /// a, and 1 / (2 b), `[channel]`.
    a: DeviceTensor,
    share: DeviceTensor,
}

impl Activation {
    /// Reads logarithms of a and b, `alpha` and `beta`.
    pub fn load(weights: &Weights, channels: usize) -> Result<Self, LoadError> {
        let of = |name: &str, make: fn(f32) -> f32| {
            weights.get_with(&[channels], name, [(name, &[channels])], move |[mut t]| {
                t.data.iter_mut().for_each(|x| *x = make(*x));
                t
            })
        };
        Ok(Activation {
            a: of("alpha", f32::exp)?,
            share: of("beta", |b| 0.5 / (b.exp() + 1e-9))?,
        })
    }

    /// `[1, time, channel]` -> `[1, time, channel]`.
    pub fn forward<'g>(&self, x: Tensor<'g>, resampling: &Resampling) -> Tensor<'g> {
        if x.scope().device().fast_path(FastPath::AliasFreeSnake) {
            return x.alias_free_snake(&self.a, &self.share, resampling.filter);
        }
        let [_, time, channels] = x.dims();
        let x = x.reshape(&[time, channels]).transpose().contiguous();
        let x = resampling.up.forward(x, Beyond::Edge, 2 * time); // [channel, 2 time]
        let y = self.snake(x);
        let y = resampling.down.forward(y, Beyond::Edge, time);
        y.transpose().contiguous().reshape(&[1, time, channels])
    }

    /// `[channel, time]` -> `[channel, time]`; before the first value there is a zero.
    fn snake<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let [channels, time] = x.dims();
        let column = |t: &DeviceTensor| x.scope().stored(t).reshape(&[channels, 1]);
        let (a, share) = (column(&self.a), column(&self.share));
        let x = x.contiguous();
        let before = x.pad(1, 1, 0).slice(1, 0, time).contiguous();
        let sum = x + before;
        // The sinc is even, and has no values at exactly zero this way.
        let step = ((x - before) * a).sqr().scale_add(1.0, 1e-12).sqrt();
        let wave = (sum * a).cos() * (step.sin() / step);
        sum.scale(0.5) + wave.scale_add(-1.0, 1.0) * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_is_even_and_passes_a_constant() {
        let taps = filter();
        assert!((taps.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        for i in 0..TAPS / 2 {
            assert!((taps[i] - taps[TAPS - 1 - i]).abs() < 1e-12);
        }
        assert!(taps[5] > 0.4 && taps[0] < 0.01);
        assert!((bessel(1.0) - 1.266_065_877_752_008_4).abs() < 1e-12);
    }
}
