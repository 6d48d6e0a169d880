//! Monotonic rational-quadratic splines (Durkan et al. 2019, <https://arxiv.org/abs/1906.04032>).

/// Least width and height of a bin, as parts of the whole.
const LEAST_BIN: f32 = 1e-3;
/// Least slope at a knot.
const LEAST_SLOPE: f32 = 1e-3;

/// A spline over `-bound ..= bound`, the identity outside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spline {
    /// Bins between knots.
    pub bins: usize,
    /// Where it ends on both sides.
    pub bound: f32,
}

impl Spline {
    /// Parameters of one spline: widths and heights of the bins (before a softmax), slopes at the
    /// inner knots (before a softplus).
    pub fn parameters(&self) -> usize {
        3 * self.bins - 1
    }

    /// The x whose value is `y`, for the spline with `parameters`.
    pub fn inverse(&self, y: f32, parameters: &[f32]) -> f32 {
        if !(-self.bound..=self.bound).contains(&y) || parameters.len() != self.parameters() {
            return y;
        }
        let (widths, rest) = parameters.split_at(self.bins);
        let (heights, slopes) = rest.split_at(self.bins);
        let (xs, ys) = (self.knots(widths), self.knots(heights));
        let bin = (1..self.bins).take_while(|&i| y >= ys[i]).count();
        let (width, height) = (xs[bin + 1] - xs[bin], ys[bin + 1] - ys[bin]);
        // The slope at the ends is 1, as outside.
        let slope = |knot: usize| match knot {
            0 => 1.0,
            knot if knot == self.bins => 1.0,
            knot => LEAST_SLOPE + softplus(slopes[knot - 1]),
        };
        let (left, right, mean) = (slope(bin), slope(bin + 1), height / width);
        let over = y - ys[bin];
        let bend = over * (left + right - 2.0 * mean);
        let a = height * (mean - left) + bend;
        let b = height * left - bend;
        let c = -mean * over;
        let root = 2.0 * c / (-b - (b * b - 4.0 * a * c).max(0.0).sqrt());
        root * width + xs[bin]
    }

    /// The knots that bins of these sizes have.
    fn knots(&self, sizes: &[f32]) -> Vec<f32> {
        let most = sizes.iter().fold(f32::NEG_INFINITY, |most, &x| most.max(x));
        let sum: f32 = sizes.iter().map(|x| (x - most).exp()).sum();
        let mut at = 0.0;
        let mut knots = vec![-self.bound];
        for size in sizes {
            let part = (size - most).exp() / sum;
            at += LEAST_BIN + (1.0 - LEAST_BIN * self.bins as f32) * part;
            knots.push(2.0 * self.bound * at - self.bound);
        }
        knots[self.bins] = self.bound;
        knots
    }
}

fn softplus(x: f32) -> f32 {
    if x > 20.0 { x } else { x.exp().ln_1p() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPLINE: Spline = Spline {
        bins: 4,
        bound: 5.0,
    };

    /// Value of the spline at x, straight from the paper's formula (4).
    fn value(x: f64, parameters: &[f32]) -> f64 {
        let soft = |v: &[f32]| -> Vec<f64> {
            let e: Vec<f64> = v.iter().map(|x| f64::from(*x).exp()).collect();
            let sum: f64 = e.iter().sum();
            e.iter().map(|x| 1e-3 + (1.0 - 4e-3) * x / sum).collect()
        };
        let (w, h) = (soft(&parameters[..4]), soft(&parameters[4..8]));
        let mut d = vec![1.0];
        d.extend(
            parameters[8..]
                .iter()
                .map(|x| 1e-3 + f64::from(*x).exp().ln_1p()),
        );
        d.push(1.0);
        let (mut x0, mut y0, mut k) = (-5.0, -5.0, 0);
        while k < 3 && x >= x0 + 10.0 * w[k] {
            (x0, y0, k) = (x0 + 10.0 * w[k], y0 + 10.0 * h[k], k + 1);
        }
        let (w, h) = (10.0 * w[k], 10.0 * h[k]);
        let (s, t) = (h / w, (x - x0) / w);
        let top = h * (s * t * t + d[k] * t * (1.0 - t));
        y0 + top / (s + (d[k + 1] + d[k] - 2.0 * s) * t * (1.0 - t))
    }

    #[test]
    fn the_inverse_undoes_the_formula() {
        let parameters = [0.3, -1.0, 0.9, 0.2, -0.5, 0.8, 0.1, -0.2, 0.4, -1.2, 2.0];
        for i in -49..=49 {
            let x = f64::from(i) / 10.0;
            let found = f64::from(SPLINE.inverse(value(x, &parameters) as f32, &parameters));
            assert!((found - x).abs() < 2e-5, "{x}: {found}");
        }
    }

    #[test]
    fn the_outside_stays() {
        let parameters = [0.7; 11];
        for y in [-5.1, 5.1, 100.0] {
            assert_eq!(SPLINE.inverse(y, &parameters), y);
        }
        assert!(SPLINE.inverse(f32::NAN, &parameters).is_nan());
        assert_eq!(SPLINE.inverse(1.0, &[0.0]), 1.0, "parameters are missing");
    }
}
