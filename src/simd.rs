//! Functions of many f32 values at once, compiled for several instruction sets; the processor's
//! best is taken when they are called.
//!
//! The loops are plain Rust that the compiler turns into vector code, so every set gives the same
//! values up to the rounding of fused multiplication.

use multiversion::multiversion;

/// e^x, within 2e-7 of the true value (relative) for x in -87..=88. Below that the result is 0
/// or nearly so, above infinity or nearly so.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // x = n ln 2 + r with |r| <= ln 2 / 2. Adding 1.5 * 2^23 rounds to an integer, which then
    // stands in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.4, 88.8);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    // ln 2 in two parts, the first exact in products with small integers.
    let r = x - n * (355.0 / 512.0);
    let r = r + n * 2.121_944_4e-4;
    // The Taylor series; its next term is below 1.2e-8 of the sum.
    let p = 1.0 / 5040.0;
    let p = p * r + 1.0 / 720.0;
    let p = p * r + 1.0 / 120.0;
    let p = p * r + 1.0 / 24.0;
    let p = p * r + 1.0 / 6.0;
    let p = p * r + 0.5;
    let p = p * r + 1.0;
    let p = p * r + 1.0;
    let exponent = shifted.to_bits().wrapping_shl(23);
    f32::from_bits(p.to_bits().wrapping_add(exponent))
}

/// x Φ(x), Φ the normal distribution's function; within 5e-7 of the true value.
#[inline(always)]
fn gelu_of(x: f32) -> f32 {
    // The tail Φ(-|x|) is e^(-x²/2) times a smooth function, here a polynomial in 1 / (1 + c|x|)
    // with a relative error of 2e-8 (least squares on |x| <= 14, worst error evened out).
    const TAIL: [f32; 9] = [
        0.083_711_58,
        0.085_068_84,
        0.069_192_3,
        0.124_872_24,
        -0.093_924_11,
        0.349_399_5,
        -0.330_252_1,
        0.283_588,
        -0.071_656_2,
    ];
    let a = x.abs().min(14.0);
    let t = 1.0 / (1.0 + 0.21 * a);
    let mut tail = TAIL[8];
    for k in (0..8).rev() {
        tail = tail * t + TAIL[k];
    }
    let y = x.max(0.0) - a * (exp(-0.5 * a * a) * (tail * t));
    // `max` and `min` lose it.
    if x.is_nan() { x } else { y }
}

/// Replaces each value by its GELU in the exact form; not a number stays one.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
pub fn gelu(values: &mut [f32]) {
    for x in values {
        *x = gelu_of(*x);
    }
}

/// As [`gelu`] of `values + bias`, for a row and the bias of its layer.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
pub fn add_gelu(values: &mut [f32], bias: &[f32]) {
    for (x, b) in values.iter_mut().zip(bias) {
        *x = gelu_of(*x + b);
    }
}

/// Adds `bias` to `values`.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
pub fn add(values: &mut [f32], bias: &[f32]) {
    for (x, b) in values.iter_mut().zip(bias) {
        *x += b;
    }
}

/// Adds the product of a matrix `[to, x]` and the vector `x` to `to`.
///
/// # Panics
/// If the sizes do not agree.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
pub fn add_products(matrix: &[f32], x: &[f32], to: &mut [f32]) {
    assert_eq!(matrix.len(), x.len() * to.len());
    let (columns, x_rest) = x.as_chunks::<16>();
    // Four rows at a time: each value of x is read once for all, and no sum waits for itself.
    for (to, rows) in to.chunks_mut(4).zip(matrix.chunks((4 * x.len()).max(1))) {
        let mut lanes = [[0.0f32; 16]; 4];
        for (lanes, row) in lanes.iter_mut().zip(rows.chunks_exact(x.len())) {
            for (row, x) in row.as_chunks::<16>().0.iter().zip(columns) {
                for i in 0..16 {
                    lanes[i] += row[i] * x[i];
                }
            }
        }
        for ((to, lanes), row) in to.iter_mut().zip(lanes).zip(rows.chunks_exact(x.len())) {
            let rest = row[columns.len() * 16..].iter().zip(x_rest);
            *to += lanes.iter().sum::<f32>() + rest.map(|(w, x)| w * x).sum::<f32>();
        }
    }
}

/// The largest value; minus infinity if there is none.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
pub fn max(values: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; 16];
    let chunks = values.chunks_exact(16);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = if x > *lane { x } else { *lane };
        }
    }
    lanes
        .iter()
        .chain(rest)
        .fold(f32::NEG_INFINITY, |a, &b| if b > a { b } else { a })
}

/// Σ exp(x - offset).
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
pub fn sum_exp(values: &[f32], offset: f32) -> f32 {
    let mut lanes = [0.0f32; 16];
    let chunks = values.chunks_exact(16);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane += exp(x - offset);
        }
    }
    lanes.iter().sum::<f32>() + rest.iter().map(|x| exp(x - offset)).sum::<f32>()
}

/// Makes `values` their softmax; zeros where all are minus infinity.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
pub fn softmax(values: &mut [f32]) {
    let most = max(values);
    if most == f32::NEG_INFINITY {
        values.fill(0.0);
        return;
    }
    let mut lanes = [0.0f32; 16];
    let (chunks, rest) = values.as_chunks_mut::<16>();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *x = exp(*x - most);
            *lane += *x;
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *x = exp(*x - most);
        *lane += *x;
    }
    let share = 1.0 / lanes.iter().sum::<f32>();
    for x in values {
        *x *= share;
    }
}

/// log Σ exp(x); minus infinity for no values, or where all are minus infinity.
pub fn log_sum_exp(values: &[f32]) -> f32 {
    let most = max(values);
    match most == f32::NEG_INFINITY {
        true => most,
        false => most + sum_exp(values, most).ln(),
    }
}

/// Σ leaky(x) w, where leaky(x) is x for x > 0, else `slope` x.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
pub fn leaky_dot(x: &[f32], w: &[f32], slope: f32) -> f32 {
    let mut lanes = [0.0f32; 16];
    let (x, x_rest) = x.as_chunks::<16>();
    let (w, w_rest) = w.as_chunks::<16>();
    for (x, w) in x.iter().zip(w) {
        for i in 0..16 {
            lanes[i] += leaky(x[i], slope) * w[i];
        }
    }
    let rest = x_rest.iter().zip(w_rest);
    lanes.iter().sum::<f32>() + rest.map(|(x, w)| leaky(*x, slope) * w).sum::<f32>()
}

/// leaky(x) with the slope `slope` (1 for x itself) of a row.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
pub fn leaky_copy(row: &[f32], slope: f32, out: &mut [f32]) {
    for (x, out) in row.iter().zip(out) {
        *out = leaky(*x, slope);
    }
}

#[inline(always)]
fn leaky(x: f32, slope: f32) -> f32 {
    if x > 0.0 { x } else { slope * x }
}

/// tanh(a) σ(b), where a row holds all a, then all b; the result is half as long.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
pub fn gated_tanh(row: &[f32], out: &mut [f32]) {
    let (a, b) = row.split_at(row.len() / 2);
    for ((a, b), out) in a.iter().zip(b).zip(out) {
        // tanh is 1 to rounding beyond 10.
        let twice = exp(2.0 * a.clamp(-10.0, 10.0));
        let other = exp(-b);
        *out = (twice - 1.0) / ((twice + 1.0) * (1.0 + other));
    }
}

/// One step of an LSTM: gates before their curves (all input gates, then forget gates, new values,
/// output gates), the cells, which change, and the step's output.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
pub fn lstm_cell(gates: &[f32], cells: &mut [f32], out: &mut [f32]) {
    let h = out.len();
    let (input, rest) = gates.split_at(h);
    let (forget, rest) = rest.split_at(h);
    let (new, output) = rest.split_at(h);
    let (cells, output) = (&mut cells[..h], &output[..h]);
    for j in 0..h {
        let cell = cells[j] / (1.0 + exp(-forget[j])) + tanh(new[j]) / (1.0 + exp(-input[j]));
        cells[j] = cell;
        out[j] = tanh(cell) / (1.0 + exp(-output[j]));
    }
}

/// Hyperbolic tangent, within 2e-7.
#[inline(always)]
fn tanh(x: f32) -> f32 {
    // 1 to rounding beyond 10.
    let twice = exp(2.0 * x.clamp(-10.0, 10.0));
    (twice - 1.0) / (twice + 1.0)
}

/// Mean of the values, and the sum of their squared distances from it.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
pub fn moments(values: &[f32]) -> (f32, f32) {
    let mean = (sum_of(values, |x| x) / values.len().max(1) as f64) as f32;
    let squares = sum_of(values, |x| (x - mean) * (x - mean));
    (mean, squares as f32)
}

/// Σ of(x), in f32 for a run of values and in f64 over the runs.
#[inline(always)]
fn sum_of(values: &[f32], of: impl Fn(f32) -> f32) -> f64 {
    const RUN: usize = 4096;
    let mut sum = 0.0;
    for run in values.chunks(RUN) {
        let mut lanes = [0.0f32; 16];
        let (chunks, rest) = run.as_chunks::<16>();
        for chunk in chunks {
            for (lane, &x) in lanes.iter_mut().zip(chunk) {
                *lane += of(x);
            }
        }
        for (lane, &x) in lanes.iter_mut().zip(rest) {
            *lane += of(x);
        }
        sum += lanes.iter().map(|&x| f64::from(x)).sum::<f64>();
    }
    sum
}

/// Values of channels to a line for each: `(x - mean) gain + bias`.
#[derive(Clone, Copy)]
pub struct Line<'a> {
    /// What is taken from each value.
    pub mean: f32,
    /// Factor of each channel.
    pub gain: &'a [f32],
    /// Added to each channel.
    pub bias: &'a [f32],
}

/// Rows of channels, each value on the line of its channel.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
pub fn line(values: &[f32], line: Line<'_>, out: &mut [f32]) {
    let n = line.gain.len().max(1);
    let Line { mean, gain, bias } = line;
    for (row, out) in values.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
        for (((x, g), b), out) in row.iter().zip(gain).zip(bias).zip(out) {
            *out = (x - mean) * g + b;
        }
    }
}

/// plus + scale a σ(b), where each row of values, on the lines of their channels, holds all a, then
/// all b.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
pub fn line_glu(values: &[f32], line: Line<'_>, scale: &[f32], plus: &[f32], out: &mut [f32]) {
    let n = scale.len().max(1);
    let Line { mean, gain, bias } = line;
    let ((gain, gate_gain), (bias, gate_bias)) = (gain.split_at(n), bias.split_at(n));
    let rows = values.chunks_exact(2 * n).zip(plus.chunks_exact(n));
    for ((row, plus), out) in rows.zip(out.chunks_exact_mut(n)) {
        let (a, b) = row.split_at(n);
        let (a, b, out) = (&a[..n], &b[..n], &mut out[..n]);
        for j in 0..n {
            let value = (a[j] - mean) * gain[j] + bias[j];
            let gate = (b[j] - mean) * gate_gain[j] + gate_bias[j];
            out[j] = plus[j] + scale[j] * value / (1.0 + exp(-gate));
        }
    }
}

/// a σ(b), where a row holds all a, then all b; the result is half as long.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
pub fn glu(row: &[f32], out: &mut [f32]) {
    let (a, b) = row.split_at(row.len() / 2);
    for ((a, b), out) in a.iter().zip(b).zip(out) {
        *out = a / (1.0 + exp(-b));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Φ(x) by its integral, in steps small enough for f64.
    fn phi(x: f64) -> f64 {
        let steps = 4000;
        let h = x / f64::from(steps);
        let density = |t: f64| (-0.5 * t * t).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let simpson = |i: i32| {
            let t = h * f64::from(i);
            h / 6.0 * (density(t) + 4.0 * density(t + h / 2.0) + density(t + h))
        };
        0.5 + (0..steps).map(simpson).sum::<f64>()
    }

    #[test]
    fn gelu_is_exact() {
        for i in -1200..=1200 {
            let x = i as f32 / 100.0;
            let mut values = [x; 19];
            gelu(&mut values);
            let wanted = f64::from(x) * phi(f64::from(x));
            for value in values {
                let error = (f64::from(value) - wanted).abs();
                assert!(
                    error < 5e-7 * wanted.abs().max(1.0),
                    "{x}: {value}, wanted {wanted}"
                );
            }
        }
    }

    #[test]
    fn moments_and_lines_of_any_length() {
        for n in [1, 3, 48, 5000, 70_001] {
            let x: Vec<f32> = (0..n).map(|i| 5.0 + (i as f32 * 0.7).sin()).collect();
            let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / n as f64;
            let squares: f64 = x.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum();
            let (m, s) = moments(&x);
            assert!((f64::from(m) - mean).abs() < 1e-6, "{n}: {m} {mean}");
            assert!(
                (f64::from(s) - squares).abs() < 1e-5 * squares + 1e-9,
                "{n}"
            );
        }
        let (gain, bias) = ([2.0, 0.5, 1.0, -1.0], [0.0, 1.0, 0.5, 3.0]);
        let about = Line {
            mean: 1.0,
            gain: &gain,
            bias: &bias,
        };
        let values = [1.0, 3.0, 2.0, 0.0, 0.0, 5.0, 1.0, 2.0];
        let mut out = [0.0; 8];
        line(&values, about, &mut out);
        assert_eq!(out, [0.0, 2.0, 1.5, 4.0, -2.0, 3.0, 0.5, 2.0]);
        let mut gated = [0.0; 4];
        line_glu(&values, about, &[1.0, 10.0], &[7.0; 4], &mut gated);
        let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
        let wanted = [
            7.0,
            7.0 + 20.0 * sigmoid(4.0),
            7.0 - 2.0 * sigmoid(0.5),
            7.0 + 30.0 * sigmoid(2.0),
        ];
        for (found, wanted) in gated.iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-5, "{gated:?} {wanted:?}");
        }
        let mut plain = [0.0; 2];
        glu(&[3.0, 4.0, 0.0, 100.0], &mut plain);
        assert_eq!(plain, [1.5, 4.0]);
    }

    #[test]
    fn gelu_of_extremes() {
        let mut values = [
            f32::NEG_INFINITY,
            -1e30,
            -0.0,
            1e30,
            f32::INFINITY,
            f32::NAN,
        ];
        gelu(&mut values);
        assert!(values[0].abs() < 1e-30 && values[1].abs() < 1e-30);
        assert_eq!(values[2..5], [0.0, 1e30, f32::INFINITY]);
        assert!(values[5].is_nan());
    }

    #[test]
    fn log_sum_exp_is_close_to_f64() {
        let values: Vec<f32> = (0..1003).map(|i| (i as f32 * 0.37).sin() * 30.0).collect();
        let exact: f64 = values.iter().map(|&x| f64::from(x).exp()).sum::<f64>().ln();
        assert!((f64::from(log_sum_exp(&values)) - exact).abs() < 1e-5);
        assert_eq!(log_sum_exp(&[]), f32::NEG_INFINITY);
        assert_eq!(log_sum_exp(&[f32::NEG_INFINITY; 40]), f32::NEG_INFINITY);
        assert_eq!(log_sum_exp(&[f32::NEG_INFINITY, 3.0]), 3.0);
    }

    #[test]
    fn softmax_of_any_length() {
        for n in [1, 15, 16, 33, 1500] {
            let x: Vec<f32> = (0..n).map(|i| (i as f32 * 1.7).cos() * 20.0).collect();
            let sum: f64 = x.iter().map(|&x| f64::from(x).exp()).sum();
            let mut found = x.clone();
            softmax(&mut found);
            for (&x, found) in x.iter().zip(found) {
                let wanted = f64::from(x).exp() / sum;
                assert!(
                    (f64::from(found) - wanted).abs() < 1e-6,
                    "{n}: {found}, {wanted}"
                );
            }
        }
        let mut closed = [f32::NEG_INFINITY; 20];
        softmax(&mut closed);
        assert_eq!(closed, [0.0; 20]);
        let mut broken = [1.0, f32::NAN, 2.0];
        softmax(&mut broken);
        assert!(broken.iter().all(|x| x.is_nan()));
    }

    #[test]
    fn products_of_any_size_are_added() {
        for (rows, n) in [(1, 1), (4, 16), (7, 19), (512, 128), (3, 0)] {
            let wave = |count: usize, f: f32| -> Vec<f32> {
                (0..count).map(|i| (i as f32 * f).sin()).collect()
            };
            let (matrix, x) = (wave(rows * n, 0.7), wave(n, 0.3));
            let mut to = wave(rows, 0.1);
            let wanted: Vec<f64> = (0..rows)
                .map(|r| {
                    let row = matrix[r * n..(r + 1) * n].iter().zip(&x);
                    f64::from(to[r]) + row.map(|(w, x)| f64::from(*w) * f64::from(*x)).sum::<f64>()
                })
                .collect();
            add_products(&matrix, &x, &mut to);
            for (found, wanted) in to.iter().zip(wanted) {
                assert!((f64::from(*found) - wanted).abs() < 1e-5, "{rows} {n}");
            }
        }
    }

    #[test]
    fn an_lstm_step_is_its_definition() {
        let gates = [0.5f32, -20.0, -1.0, 3.0, 2.0, 0.25, 0.1, 15.0];
        let (mut cells, mut out) = ([0.7f32, -0.4], [0.0f32; 2]);
        lstm_cell(&gates, &mut cells, &mut out);
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let g = gates.map(f64::from);
        for (j, before) in [f64::from(0.7f32), f64::from(-0.4f32)]
            .into_iter()
            .enumerate()
        {
            let cell = sigmoid(g[2 + j]) * before + sigmoid(g[j]) * g[4 + j].tanh();
            assert!((f64::from(cells[j]) - cell).abs() < 1e-6);
            assert!((f64::from(out[j]) - sigmoid(g[6 + j]) * cell.tanh()).abs() < 1e-6);
        }
    }

    #[test]
    fn exp_is_exact_to_rounding() {
        for i in -8700..=8800 {
            let x = i as f32 / 100.0;
            let wanted = f64::from(x).exp();
            let error = (f64::from(exp(x)) - wanted).abs() / wanted;
            assert!(error < 2e-7, "{x}: {} wanted {wanted}", exp(x));
        }
        assert!(exp(f32::NEG_INFINITY) < 2e-38);
    }
}
