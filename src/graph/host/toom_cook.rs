//! Short convolutions with fewer products: Toom and Cook's scheme, known from Winograd's
//! convolutions. `outputs` values of a convolution with `taps` taps are had with
//! `points = outputs + taps - 1` products instead of `outputs * taps`: both sides are seen as
//! polynomials, evaluated at `points` places, and multiplied there.

/// The places: zero, pairs of opposite numbers, and infinity. Numbers near 1, spread evenly, keep
/// the rounding errors small: relative to the result (root mean square) 6e-7 for 8 points, 1.5e-6
/// for 10, 4e-6 for 12, against 1.5e-7 of the plain sum.
const PAIRS: [&[f64]; 3] = [
    &[1.0, 0.5, 2.0],
    &[0.4, 0.75, 1.25, 2.5],
    &[0.375, 0.625, 1.0, 1.6, 8.0 / 3.0],
];

/// The matrices of one scheme. Points are in the order 0, a, -a, b, -b, .., infinity.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToomCook {
    pub points: usize,
    pub outputs: usize,
    /// `[points][taps]`: from taps to their values at the points.
    pub kernel: Vec<Vec<f64>>,
    /// `[points][points]`: from inputs to their values at the points.
    pub input: Vec<Vec<f64>>,
    /// `[outputs][points]`: from products back to outputs.
    pub output: Vec<Vec<f64>>,
}

impl ToomCook {
    /// For `taps` taps at 8, 10 or 12 points (more taps than 8 leave too few outputs).
    pub fn new(points: usize, taps: usize) -> ToomCook {
        let pairs = PAIRS[(points - 8) / 2];
        let outputs = points + 1 - taps;
        let mut places = vec![0.0];
        places.extend(pairs.iter().flat_map(|&a| [a, -a]));
        let powers = |count: usize| -> Vec<Vec<f64>> {
            let row = |p: &f64| (0..count as i32).map(|i| p.powi(i)).collect();
            let mut rows: Vec<Vec<f64>> = places.iter().map(row).collect();
            rows.push(
                (0..count)
                    .map(|i| f64::from(u8::from(i + 1 == count)))
                    .collect(),
            );
            rows
        };
        let mut kernel = powers(taps);
        // Row p: the polynomial that is 1 at place p and 0 at the others; the last: the one that
        // is 0 at all of them.
        let mut input: Vec<Vec<f64>> = (0..points).map(|p| lagrange(&places, p)).collect();
        // Values at a point may be scaled on one side if the other side is scaled back.
        for (kernel, input) in kernel.iter_mut().zip(&mut input) {
            let most = input.iter().fold(0.0f64, |most, x| most.max(x.abs()));
            input.iter_mut().for_each(|x| *x /= most);
            kernel.iter_mut().for_each(|x| *x *= most);
        }
        let values = powers(outputs);
        let output = (0..outputs)
            .map(|j| (0..points).map(|p| values[p][j]).collect())
            .collect();
        ToomCook {
            points,
            outputs,
            kernel,
            input,
            output,
        }
    }
}

/// Coefficients, lowest first, of the product of (x - q) over all places but the one numbered
/// `p`, divided by its value there; of the whole product if there is no such place.
fn lagrange(places: &[f64], p: usize) -> Vec<f64> {
    let mut polynomial = vec![1.0];
    let mut value = 1.0;
    for (_, &q) in places.iter().enumerate().filter(|(i, _)| *i != p) {
        polynomial.push(0.0);
        for i in (0..polynomial.len()).rev() {
            let lower = i.checked_sub(1).map_or(0.0, |i| polynomial[i]);
            polynomial[i] = lower - q * polynomial[i];
        }
        if let Some(place) = places.get(p) {
            value *= place - q;
        }
    }
    polynomial.resize(places.len() + 1, 0.0);
    polynomial.iter_mut().for_each(|x| *x /= value);
    polynomial
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_is_a_convolution() {
        for points in [8, 10, 12] {
            for taps in 2..=7 {
                let scheme = ToomCook::new(points, taps);
                let x: Vec<f64> = (0..points).map(|i| (i as f64 * 1.3).sin()).collect();
                let w: Vec<f64> = (0..taps).map(|i| (i as f64 * 0.7).cos()).collect();
                let dot =
                    |row: &[f64], v: &[f64]| -> f64 { row.iter().zip(v).map(|(a, b)| a * b).sum() };
                let products: Vec<f64> = (0..points)
                    .map(|p| dot(&scheme.kernel[p], &w) * dot(&scheme.input[p], &x))
                    .collect();
                for j in 0..scheme.outputs {
                    let wanted = dot(&w, &x[j..j + taps]);
                    let found = dot(&scheme.output[j], &products);
                    assert!((found - wanted).abs() < 1e-11, "{points} {taps} {j}");
                }
            }
        }
    }

    #[test]
    fn opposite_points_differ_in_the_sign_of_odd_coefficients() {
        let scheme = ToomCook::new(12, 7);
        for pair in scheme.input[1..11].chunks(2) {
            for (i, (a, b)) in pair[0].iter().zip(&pair[1]).enumerate() {
                let sign = if i % 2 == 0 { 1.0 } else { -1.0 };
                assert!((a - sign * b).abs() < 1e-12);
            }
        }
        assert!(scheme.input[0].iter().skip(1).step_by(2).all(|x| *x == 0.0));
        assert!(scheme.input[11].iter().step_by(2).all(|x| x.abs() < 1e-12));
    }
}
