//! Finite scalar quantisation (Mentzer et al. 2023, <https://arxiv.org/abs/2309.15505>): a vector
//! of a few bounded values, each rounded to one of a few levels, is one number.

/// How far the bounded values stay inside the outermost levels' rounding edges.
const MARGIN: f64 = 1e-3;

/// A quantiser, on the CPU: the numbers it gives must not depend on the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fsq {
    levels: Vec<usize>,
}

impl Fsq {
    /// With so many levels for each value; none if a value has fewer than 2, or there are more
    /// numbers than fit in 31 bits.
    pub fn new(levels: &[usize]) -> Option<Fsq> {
        let product = levels
            .iter()
            .try_fold(1usize, |n, &l| n.checked_mul(l).filter(|_| l > 1));
        let fits = !levels.is_empty() && product.is_some_and(|n| n <= i32::MAX as usize);
        fits.then(|| Fsq {
            levels: levels.to_vec(),
        })
    }

    /// Values of a vector.
    pub fn width(&self) -> usize {
        self.levels.len()
    }

    /// Different numbers.
    pub fn size(&self) -> usize {
        self.levels.iter().product()
    }

    /// Latents `[.., width]` moved into the range of the levels.
    pub fn bounded(&self, latents: &[f32]) -> Vec<f32> {
        let levels = self.levels.iter().cycle();
        let each = latents.iter().zip(levels);
        each.map(|(&z, &levels)| bound(z, levels)).collect()
    }

    /// The number of each latent `[n, width]` -> `[n]`. Halves are rounded to even; what is no
    /// number counts as zero.
    pub fn indices(&self, latents: &[f32]) -> Vec<i32> {
        let index = |latent: &[f32]| {
            let mut basis = 1;
            let mut index = 0;
            for (&z, &levels) in latent.iter().zip(&self.levels) {
                let digit = bound(z, levels).round_ties_even() as i32 + (levels / 2) as i32;
                index += digit.clamp(0, levels as i32 - 1) * basis;
                basis *= levels as i32;
            }
            index
        };
        latents.chunks_exact(self.width()).map(index).collect()
    }

    /// The vectors that numbers stand for, each value about -1 to 1: `[n]` -> `[n, width]`.
    pub fn codes(&self, indices: &[i32]) -> Vec<f32> {
        let mut codes = Vec::with_capacity(indices.len() * self.width());
        for &index in indices {
            let mut rest = usize::try_from(index).unwrap_or(0);
            for &levels in &self.levels {
                let half = (levels / 2) as f32;
                codes.push(((rest % levels) as f32 - half) / half);
                rest /= levels;
            }
        }
        codes
    }
}

/// tanh(z + s) h - o, which lies between the outermost levels; with an even count the middle lies
/// half a level lower, and s brings a zero back to zero (nearly: it is the tangent).
fn bound(z: f32, levels: usize) -> f32 {
    let half = (levels as f64 - 1.0) * (1.0 - MARGIN) / 2.0;
    let offset = if levels.is_multiple_of(2) { 0.5 } else { 0.0 };
    let shift = (offset / half).tan();
    (z + shift as f32).tanh() * half as f32 - offset as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_vectors_go_both_ways() {
        let fsq = Fsq::new(&[8, 8, 8, 5, 5]).unwrap();
        assert_eq!((fsq.size(), fsq.width()), (12_800, 5));
        let all: Vec<i32> = (0..12_800).collect();
        let codes = fsq.codes(&all);
        assert_eq!(codes[..5], [-1.0, -1.0, -1.0, -1.0, -1.0]);
        assert_eq!(codes[12_799 * 5..], [0.75, 0.75, 0.75, 1.0, 1.0]);
        // Back through the curve that bounds them.
        let latents: Vec<f32> = codes
            .iter()
            .zip([8usize, 8, 8, 5, 5].iter().cycle())
            .map(|(code, &levels)| {
                let half = (levels as f64 - 1.0) * (1.0 - MARGIN) / 2.0;
                let offset = if levels == 8 { 0.5 } else { 0.0 };
                let value = f64::from(*code) * (levels / 2) as f64 + offset;
                // The outermost levels lie just beyond the curve.
                ((value / half).clamp(-0.9999, 0.9999).atanh() - (offset / half).tan()) as f32
            })
            .collect();
        assert_eq!(fsq.indices(&latents), all);
        let far = fsq.indices(&[f32::INFINITY, -1e30, f32::NAN, 1e30, -1e30]);
        assert_eq!(far, [7 + 4 * 64 + 4 * 512]);
    }

    #[test]
    fn a_quantiser_needs_levels() {
        for bad in [&[][..], &[1], &[8, 0], &[1 << 20, 1 << 20]] {
            assert_eq!(Fsq::new(bad), None);
        }
    }
}
