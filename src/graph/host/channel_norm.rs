//! Normalisation of each channel over time, with the curve that follows it.

use std::ops::Range;

use multiversion::multiversion;

use super::{HostOp, Operand, Output, Share, sine::sin_squared};
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

/// Channels that are worked on together: two cache lines.
const PANEL: usize = 32;
/// Channels in a vector.
const LANES: usize = 16;
/// Rows that are summed in f32 before the sum goes on in f64.
const ROWS: usize = 64;

// SAFETY: a job is a range of channels, and no two jobs overlap.
unsafe impl HostOp for ChannelNorm {
    fn run(&self, inputs: &[Operand], output: &Output, share: Share) {
        let channels = output.ne[0];
        for panel in share.of_jobs(channels.div_ceil(PANEL)) {
            self.channels(
                inputs,
                output,
                panel * PANEL..((panel + 1) * PANEL).min(channels),
            );
        }
    }
}

impl ChannelNorm {
    /// The channels `range` of the result, which nobody else writes to.
    fn channels(&self, inputs: &[Operand], output: &Output, range: Range<usize>) {
        let rows = output.ne[1];
        let vector = |i: usize| &inputs[i].row_f32(0, 0, 0)[range.clone()];
        let span = Span {
            from: inputs[0].row_f32(0, 0, 0)[range.clone()].as_ptr(),
            line: inputs[0].nb[1] / size_of::<f32>(),
            // SAFETY: by the caller's promise.
            to: unsafe { output.row([0, 0, 0], range.clone()) }.as_mut_ptr(),
            width: output.ne[0],
            rows,
            channels: range.len(),
        };
        let (mean, mut scale) = statistics(&span, self.eps);
        let gains = vector(1).iter();
        scale
            .iter_mut()
            .zip(gains)
            .for_each(|(scale, gain)| *scale *= gain);
        // Less the mean first: as one factor and one summand, a mean that is many deviations from
        // zero would cost precision.
        let line = [&mean, &scale, vector(2)].map(lanes);
        match self.bend {
            Bend::Leaky(slope) => leaky(&span, &line, slope),
            Bend::Snake => {
                let inverse: Vec<f32> = vector(3).iter().map(|a| 1.0 / a).collect();
                snake(&span, &line, &[vector(3), &inverse].map(lanes));
            }
        }
    }
}

/// A value for each channel of a job, in vectors.
type Lanes = [[f32; LANES]; PANEL / LANES];

fn lanes(values: &[f32]) -> Lanes {
    let mut lanes = Lanes::default();
    lanes.as_flattened_mut()[..values.len()].copy_from_slice(values);
    lanes
}

/// Some neighbouring channels, a job's own, of all rows.
struct Span {
    from: *const f32,
    /// Values from row to row.
    line: usize,
    to: *mut f32,
    width: usize,
    rows: usize,
    /// At most [`PANEL`].
    channels: usize,
}

impl Span {
    /// Channels `c..c + N` of row `t`.
    ///
    /// # Safety
    /// They lie inside the span.
    #[inline(always)]
    unsafe fn at<const N: usize>(&self, t: usize, c: usize) -> &[f32; N] {
        // SAFETY: by the caller's promise.
        unsafe { &*self.from.add(t * self.line + c).cast() }
    }

    /// `f` of every value and the vector and place in it of its channel: whole vectors, then the
    /// rest one by one.
    #[inline(always)]
    fn each(&self, f: impl Fn(usize, usize, f32) -> f32) {
        for t in 0..self.rows {
            for v in 0..PANEL / LANES {
                let first = v * LANES;
                let here = self.channels.saturating_sub(first);
                // SAFETY: the channels are inside the span, and their places this job's own.
                unsafe {
                    let to = self.to.add(t * self.width + first);
                    if here >= LANES {
                        let from = self.at::<LANES>(t, first);
                        let mut values = [0.0; LANES];
                        for (i, value) in values.iter_mut().enumerate() {
                            *value = f(v, i, from[i]);
                        }
                        to.cast::<[f32; LANES]>().write(values);
                    } else {
                        for i in 0..here {
                            to.add(i).write(f(v, i, self.at::<1>(t, first + i)[0]));
                        }
                    }
                }
            }
        }
    }
}

/// Mean of each channel, and one over its deviation.
fn statistics(span: &Span, eps: f32) -> (Vec<f32>, Vec<f32>) {
    let (mut sums, mut squares) = ([0f64; PANEL], [0f64; PANEL]);
    // SAFETY: there is a row.
    let value = |c| unsafe { span.at::<1>(0, c) }[0];
    let first: Vec<f32> = (0..span.channels).map(value).collect();
    // Counted from the first value, so that squares do not drown small deviations.
    let from = lanes(&first);
    for start in (0..span.rows).step_by(ROWS) {
        let rows = start..(start + ROWS).min(span.rows);
        let [sum, square] = add_rows(span, rows, &from);
        let both = sum.as_flattened().iter().zip(square.as_flattened());
        for (c, (sum, square)) in both.enumerate() {
            sums[c] += f64::from(*sum);
            squares[c] += f64::from(*square);
        }
    }
    let n = span.rows as f64;
    let both = first.iter().enumerate().map(|(c, first)| {
        let mean = sums[c] / n;
        let variance = (squares[c] / n - mean * mean).max(0.0);
        let scale = 1.0 / (variance + f64::from(eps)).sqrt();
        ((mean + f64::from(*first)) as f32, scale as f32)
    });
    both.unzip()
}

/// Sums of the distances from `from`, and of their squares.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
fn add_rows(span: &Span, rows: Range<usize>, from: &Lanes) -> [Lanes; 2] {
    let [mut sums, mut squares] = [Lanes::default(); 2];
    for v in 0..PANEL / LANES {
        let first = v * LANES;
        let here = span.channels.saturating_sub(first);
        let (mut sum, mut square) = ([0.0; LANES], [0.0; LANES]);
        for t in rows.clone() {
            if here >= LANES {
                // SAFETY: the channels are inside the span.
                let row = unsafe { span.at::<LANES>(t, first) };
                for i in 0..LANES {
                    let x = row[i] - from[v][i];
                    sum[i] += x;
                    square[i] += x * x;
                }
            } else {
                for i in 0..here {
                    // SAFETY: as above.
                    let x = unsafe { span.at::<1>(t, first + i) }[0] - from[v][i];
                    sum[i] += x;
                    square[i] += x * x;
                }
            }
        }
        (sums[v], squares[v]) = (sum, square);
    }
    [sums, squares]
}

/// `line`: what is taken away, the factor of the rest, and what is added to that.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
fn leaky(span: &Span, line: &[Lanes; 3], slope: f32) {
    span.each(|v, i, x| {
        let y = (x - line[0][v][i]) * line[1][v][i] + line[2][v][i];
        if y > 0.0 { y } else { slope * y }
    });
}

/// As [`leaky`], with the factors inside of the sine, and one over them.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
fn snake(span: &Span, line: &[Lanes; 3], a: &[Lanes; 2]) {
    span.each(|v, i, x| {
        let y = (x - line[0][v][i]) * line[1][v][i] + line[2][v][i];
        y + a[1][v][i] * sin_squared(a[0][v][i] * y)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Device, Graph};

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
