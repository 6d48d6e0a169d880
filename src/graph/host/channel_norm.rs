//! Normalisation of each channel over time, with the curve that follows it.

use multiversion::multiversion;

use super::{HostOp, Operand, Output, Share};
use crate::graph::{DType, Tensor};

/// What is done to normalised values.
#[derive(Clone, Copy)]
pub enum Curve<'g> {
    /// Nothing.
    Line,
    /// x for x > 0, else this many times x.
    Leaky(f32),
    /// x + sin²(a x) / a (Ziyin et al. 2020, <https://arxiv.org/abs/2006.08195>), a `[channels]`
    /// without zeros.
    Snake(Tensor<'g>),
}

impl<'g> Tensor<'g> {
    /// Each channel of `[1, time, channels]` less its mean, over its deviation (with `eps` added
    /// to the variance), times `gain` plus `bias`, both `[channels]`; then `curve`.
    pub fn channel_norm(
        self,
        gain: Tensor<'g>,
        bias: Tensor<'g>,
        eps: f32,
        curve: Curve<'g>,
    ) -> Tensor<'g> {
        let [batch, _, channels] = self.dims();
        let fits = |t: Tensor| t.shape() == [channels] && t.dtype() == DType::F32;
        let curved = match curve {
            Curve::Snake(a) => fits(a),
            _ => true,
        };
        let all = batch == 1 && self.dtype() == DType::F32 && fits(gain) && fits(bias) && curved;
        if !all || !eps.is_finite() || eps < 0.0 {
            return self.scope().mistake(
                "channel_norm",
                format!("{self:?} with {gain:?} and {bias:?}, eps {eps}"),
            );
        }
        if !self.scope().device().is_cpu() {
            return plainly(self, gain, bias, eps, curve);
        }
        let mut inputs = vec![self.packed_rows(), gain.contiguous(), bias.contiguous()];
        let bend = match curve {
            Curve::Line => Bend::Leaky(1.0),
            Curve::Leaky(slope) => Bend::Leaky(slope),
            Curve::Snake(a) => {
                inputs.push(a.contiguous());
                Bend::Snake
            }
        };
        self.scope()
            .host_op(self.extents(), &inputs, ChannelNorm { eps, bend })
    }
}

/// The same from the operators that every device has.
fn plainly<'g>(
    x: Tensor<'g>,
    gain: Tensor<'g>,
    bias: Tensor<'g>,
    eps: f32,
    curve: Curve<'g>,
) -> Tensor<'g> {
    let normed = x.transpose().norm(eps).transpose().contiguous();
    let x = normed * gain + bias;
    match curve {
        Curve::Line => x,
        Curve::Leaky(slope) => x.leaky_relu(slope),
        Curve::Snake(a) => x + (x * a).sin().sqr() / a,
    }
}

#[derive(Clone, Copy)]
enum Bend {
    Leaky(f32),
    Snake,
}

struct ChannelNorm {
    eps: f32,
    bend: Bend,
}

/// Channels that are worked on together: one cache line.
const PANEL: usize = 16;
/// Rows that are summed in f32 before the sum goes on in f64.
const ROWS: usize = 64;

// SAFETY: shares are disjoint ranges of channels.
unsafe impl HostOp for ChannelNorm {
    fn run(&self, inputs: &[Operand], output: &Output, share: Share) {
        let [channels, time, _, _] = output.ne;
        let panels = share.of_range(channels.div_ceil(PANEL));
        let range = panels.start * PANEL..(panels.end * PANEL).min(channels);
        if range.is_empty() {
            return;
        }
        let row = |t: usize| &inputs[0].row_f32(t, 0, 0)[range.clone()];
        let vector = |i: usize| &inputs[i].row_f32(0, 0, 0)[range.clone()];
        let (mean, mut scale) = statistics(row, time, self.eps);
        let gains = vector(1).iter();
        scale
            .iter_mut()
            .zip(gains)
            .for_each(|(scale, gain)| *scale *= gain);
        // Less the mean first: as one factor and one summand, a mean that is many deviations from
        // zero would cost precision.
        let line = [&mean[..], &scale, vector(2)];
        let inverse: Vec<f32> = match self.bend {
            Bend::Snake => vector(3).iter().map(|a| 1.0 / a).collect(),
            Bend::Leaky(_) => Vec::new(),
        };
        for t in 0..time {
            // SAFETY: each share has its own channels.
            let out = unsafe { output.row([t, 0, 0], range.clone()) };
            match self.bend {
                Bend::Leaky(slope) => leaky(row(t), line, slope, out),
                Bend::Snake => snake(row(t), line, vector(3), &inverse, out),
            }
        }
    }
}

/// Mean of each channel, and one over its deviation.
fn statistics<'x>(row: impl Fn(usize) -> &'x [f32], time: usize, eps: f32) -> (Vec<f32>, Vec<f32>) {
    let first = row(0);
    let width = first.len();
    let (mut sums, mut squares) = (vec![0f64; width], vec![0f64; width]);
    let (mut sum, mut square) = (vec![0f32; width], vec![0f32; width]);
    for start in (0..time).step_by(ROWS) {
        sum.fill(0.0);
        square.fill(0.0);
        for t in start..(start + ROWS).min(time) {
            // Counted from the first value, so that squares do not drown small deviations.
            add_row(row(t), first, &mut sum, &mut square);
        }
        for c in 0..width {
            sums[c] += f64::from(sum[c]);
            squares[c] += f64::from(square[c]);
        }
    }
    let n = time as f64;
    let both = (0..width).map(|c| {
        let mean = sums[c] / n;
        let variance = (squares[c] / n - mean * mean).max(0.0);
        let scale = 1.0 / (variance + f64::from(eps)).sqrt();
        ((mean + f64::from(first[c])) as f32, scale as f32)
    });
    both.unzip()
}

#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
fn add_row(row: &[f32], from: &[f32], sum: &mut [f32], square: &mut [f32]) {
    for (((x, from), sum), square) in row.iter().zip(from).zip(sum).zip(square) {
        let x = x - from;
        *sum += x;
        *square += x * x;
    }
}

/// `line`: what is taken away, the factor of the rest, and what is added to that.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
fn leaky(row: &[f32], line: [&[f32]; 3], slope: f32, out: &mut [f32]) {
    let n = out.len();
    let (row, [mean, scale, bias]) = (&row[..n], line.map(|x| &x[..n]));
    for c in 0..n {
        let y = (row[c] - mean[c]) * scale[c] + bias[c];
        out[c] = if y > 0.0 { y } else { slope * y };
    }
}

#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
fn snake(row: &[f32], line: [&[f32]; 3], a: &[f32], inverse: &[f32], out: &mut [f32]) {
    let n = out.len();
    let (row, [mean, scale, bias]) = (&row[..n], line.map(|x| &x[..n]));
    let (a, inverse) = (&a[..n], &inverse[..n]);
    for c in 0..n {
        let y = (row[c] - mean[c]) * scale[c] + bias[c];
        out[c] = y + inverse[c] * sin_squared(a[c] * y);
    }
}

/// sin² x, within 4e-7 of the true value for |x| up to 1000.
#[inline(always)]
fn sin_squared(x: f32) -> f32 {
    // x = n π + r with |r| <= π / 2; adding 1.5 * 2^23 rounds to a whole number.
    const ROUND: f32 = 12_582_912.0;
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
    let sine = r + r * s * p;
    sine * sine
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Device, Graph};

    #[test]
    fn sin_squared_is_exact_to_rounding() {
        for i in -100_000..100_000 {
            let x = i as f32 * 0.01;
            let wanted = f64::from(x).sin().powi(2);
            let error = (f64::from(sin_squared(x)) - wanted).abs();
            assert!(error < 4e-7, "{x}: {error:.1e}");
        }
    }

    /// Straight from the definition, in f64.
    fn defined(x: &[f32], channels: usize, [gain, bias, a]: [&[f32]; 3], which: usize) -> Vec<f32> {
        let time = x.len() / channels;
        let mut out = vec![0.0; x.len()];
        for c in 0..channels {
            let at = |t: usize| f64::from(x[t * channels + c]);
            let mean = (0..time).map(at).sum::<f64>() / time as f64;
            let variance = (0..time).map(|t| (at(t) - mean).powi(2)).sum::<f64>() / time as f64;
            for t in 0..time {
                let y = (at(t) - mean) / (variance + 1e-5).sqrt();
                let y = y * f64::from(gain[c]) + f64::from(bias[c]);
                let a = f64::from(a[c]);
                let y = match which {
                    0 => y,
                    1 => y.max(0.2 * y),
                    _ => y + (a * y).sin().powi(2) / a,
                };
                out[t * channels + c] = y as f32;
            }
        }
        out
    }

    #[test]
    fn channels_are_normalised_and_bent() {
        for (threads, time, channels) in [(1, 1000, 40), (3, 77, 22), (2, 1, 16), (4, 130, 1)] {
            let device = Device::cpu(threads).unwrap();
            let wave =
                |n: usize, f: f32| (0..n).map(|i| (i as f32 * f).sin()).collect::<Vec<f32>>();
            let mut x = wave(time * channels, 0.731);
            x.iter_mut()
                .enumerate()
                .for_each(|(i, x)| *x = *x * 0.3 + (i % channels) as f32);
            let gain: Vec<f32> = wave(channels, 0.9).iter().map(|x| 1.5 + x).collect();
            let bias = wave(channels, 0.4);
            let a: Vec<f32> = wave(channels, 0.3).iter().map(|x| 2.0 + x).collect();
            for which in 0..3 {
                let mut graph = Graph::build(&device, |g| {
                    let vector = |name| g.input(name, DType::F32, &[channels]);
                    let x = g.input("x", DType::F32, &[1, time, channels]);
                    let (gain, bias, a) = (vector("gain"), vector("bias"), vector("a"));
                    let curve = [Curve::Line, Curve::Leaky(0.2), Curve::Snake(a)][which];
                    g.output("fast", x.channel_norm(gain, bias, 1e-5, curve));
                    g.output("plain", plainly(x, gain, bias, 1e-5, curve));
                    Ok(())
                })
                .unwrap();
                for (name, values) in [("x", &x), ("gain", &gain), ("bias", &bias), ("a", &a)] {
                    graph.write(name, values).unwrap();
                }
                graph.compute().unwrap();
                let wanted = defined(&x, channels, [&gain, &bias, &a], which);
                for form in ["fast", "plain"] {
                    let found: Vec<f32> = graph.read(form).unwrap();
                    for (i, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
                        let off = (found - wanted).abs();
                        // Means of up to 39 are rounded to f32, over deviations of 0.2.
                        assert!(
                            off < 5e-5,
                            "{form}, {time} x {channels}, {which}: {i} off by {off:.1e}"
                        );
                    }
                }
            }
        }
    }
}
