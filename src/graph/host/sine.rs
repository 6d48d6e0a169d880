//! The sine, as code that a compiler makes vectors of.

/// sin x up to its sign, and sin x / x; within 3e-7 of the true values for |x| up to 1000.
#[inline(always)]
pub(super) fn sine(x: f32) -> (f32, f32) {
    let (n, r, bent) = reduced(x);
    let ratio = 1.0 + bent;
    // The sign of an odd n.
    let half = (0.5 * n + ROUND) - ROUND;
    let odd = (n - 2.0 * half).abs();
    let along = if n == 0.0 { 1.0 } else { r / x };
    (r * ratio, (1.0 - 2.0 * odd) * ratio * along)
}

/// sin² x, within 4e-7 of the true value for |x| up to 1000.
#[inline(always)]
pub(super) fn sin_squared(x: f32) -> f32 {
    let (_, r, bent) = reduced(x);
    let sine = r + r * bent;
    sine * sine
}

/// Added and taken away again, rounds to a whole number: 1.5 * 2^23.
const ROUND: f32 = 12_582_912.0;

/// n and r with x = n π + r and |r| <= π / 2, and sin r / r - 1.
#[inline(always)]
fn reduced(x: f32) -> (f32, f32, f32) {
    let n = (x * std::f32::consts::FRAC_1_PI + ROUND) - ROUND;
    // π in three parts, the first two exact in products with small numbers.
    let r = x - n * 3.140_625;
    let r = r - n * 9.675_026e-4;
    let r = r - n * 1.509_958e-7;
    // The Taylor series of the sine; its next term is below 6e-8.
    let s = r * r;
    let p = -1.0 / 39_916_800.0;
    let p = p * s + 1.0 / 362_880.0;
    let p = p * s - 1.0 / 5040.0;
    let p = p * s + 1.0 / 120.0;
    let p = p * s - 1.0 / 6.0;
    (n, r, s * p)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sin_squared_is_exact_to_rounding() {
        for i in -100_000..100_000 {
            let x = i as f32 * 0.01;
            let wanted = f64::from(x).sin().powi(2);
            let error = (f64::from(sin_squared(x)) - wanted).abs();
            assert!(error < 4e-7, "{x}: {error:.1e}");
        }
    }

    #[test]
    fn sines_are_exact_to_rounding() {
        for i in -100_000..=100_000 {
            let x = i as f32 * 0.01;
            let (found, sinc) = sine(x);
            let wanted = f64::from(x).sin();
            assert!((f64::from(found).abs() - wanted.abs()).abs() < 3e-7, "{x}");
            let wanted = if i == 0 { 1.0 } else { wanted / f64::from(x) };
            assert!(
                (f64::from(sinc) - wanted).abs() < 3e-7,
                "{x}: {sinc} {wanted}"
            );
        }
    }
}
