//! Normalisation of whole rows of a plane, with what follows it, in two passes.

use super::{HostOp, Operand, Output, Share};
use crate::{
    graph::{DType, DeviceTensor, Glu, Tensor, shape::Shape},
    simd,
};

/// What follows a normalisation of rows.
#[derive(Clone, Copy)]
pub enum RowCurve<'p, 'g> {
    /// Nothing.
    Line,
    /// GELU.
    Gelu,
    /// plus + scale a sigmoid(b), where the channels are all a, then all b; scale `[channel / 2]`.
    ScaledGlu {
        /// Factor of each channel.
        scale: &'p DeviceTensor,
        /// Added to the result, of its shape.
        plus: Tensor<'g>,
    },
}

/// Values that one piece of a row's statistics is made of, about.
const PIECE: usize = 1 << 16;
/// Most pieces of a row.
const MOST_PIECES: usize = 64;

impl<'g> Tensor<'g> {
    /// Each row of `[1, row, step, channel]` less its mean over steps and channels, over its
    /// deviation (with `eps` added to the variance), times `gain` plus `bias`, both `[channel]`;
    /// then `curve`.
    pub fn row_norm(
        self,
        gain: &DeviceTensor,
        bias: &DeviceTensor,
        eps: f32,
        curve: RowCurve<'_, 'g>,
    ) -> Tensor<'g> {
        let [batch, rows, steps, channels] = self.dims();
        let halves = [batch, rows, steps, channels / 2];
        let vector = |t: &DeviceTensor, n: usize| t.shape() == [n] && t.dtype() == DType::F32;
        let curved = match curve {
            RowCurve::ScaledGlu { scale, plus } => {
                channels.is_multiple_of(2) && vector(scale, channels / 2) && plus.shape() == halves
            }
            _ => true,
        };
        let fits = batch == 1
            && self.dtype() == DType::F32
            && vector(gain, channels)
            && vector(bias, channels)
            && curved
            && eps.is_finite()
            && eps >= 0.0;
        let out = match curve {
            RowCurve::ScaledGlu { .. } => Shape::new(&halves),
            _ => Some(self.extents()),
        };
        let Some(out) = out.filter(|_| fits) else {
            return self.scope().mistake(
                "row_norm",
                format!("{self:?} with {gain:?} and {bias:?}, eps {eps}"),
            );
        };
        if !self.scope().device().is_cpu() {
            return plainly(self, gain, bias, eps, curve);
        }
        let scope = self.scope();
        let x = self.contiguous();
        let pieces = (steps * channels)
            .div_ceil(PIECE)
            .clamp(1, MOST_PIECES)
            .min(steps);
        let Some(statistics) = Shape::new(&[rows, pieces, 2]) else {
            return scope.mistake("row_norm", format!("{self:?}"));
        };
        let statistics = scope.host_op(statistics, &[x], Moments);
        let mut inputs = vec![x, statistics, scope.stored(gain), scope.stored(bias)];
        let kind = match curve {
            RowCurve::Line => Kind::Line,
            RowCurve::Gelu => Kind::Gelu,
            RowCurve::ScaledGlu { scale, plus } => {
                inputs.extend([scope.stored(scale), plus.contiguous()]);
                Kind::ScaledGlu
            }
        };
        scope.host_op(out, &inputs, RowNorm { eps, kind })
    }
}

/// The same from the operators that every device has.
fn plainly<'g>(
    x: Tensor<'g>,
    gain: &DeviceTensor,
    bias: &DeviceTensor,
    eps: f32,
    curve: RowCurve<'_, 'g>,
) -> Tensor<'g> {
    let [_, rows, steps, channels] = x.dims();
    let y = x.reshape(&[rows, steps * channels]).norm(eps);
    let y = y.reshape(&[1, rows, steps, channels]) * gain + bias;
    match curve {
        RowCurve::Line => y,
        RowCurve::Gelu => y.gelu(),
        RowCurve::ScaledGlu { scale, plus } => plus + y.glu(Glu::Sigmoid) * scale,
    }
}

/// Steps of piece `piece` of `pieces`.
fn steps_of(piece: usize, pieces: usize, steps: usize) -> std::ops::Range<usize> {
    steps * piece / pieces..steps * (piece + 1) / pieces
}

/// Packed values of steps of a row.
fn values(x: &Operand, row: usize, steps: std::ops::Range<usize>) -> &[f32] {
    let channels = x.ne[0];
    assert!(x.dtype == DType::F32 && steps.end <= x.ne[1] && !steps.is_empty());
    // SAFETY: the tensor is packed, so steps follow each other; those lie inside the row.
    unsafe {
        let first = x.row(steps.start, row, 0).cast::<f32>();
        std::slice::from_raw_parts(first, steps.len() * channels)
    }
}

/// Mean, and sum of squared distances from it, of the pieces of each row: `[row, piece, 2]`.
struct Moments;

// SAFETY: a job is a piece, which has a place of its own in the result.
unsafe impl HostOp for Moments {
    fn run(&self, inputs: &[Operand], output: &Output, share: Share) {
        let x = &inputs[0];
        let [_, pieces, rows, _] = output.ne;
        for job in share.of_jobs(rows * pieces) {
            let (row, piece) = (job / pieces, job % pieces);
            let (mean, squares) = simd::moments(values(x, row, steps_of(piece, pieces, x.ne[1])));
            // SAFETY: this job's own place.
            let out = unsafe { output.row([piece, row, 0], 0..2) };
            out.copy_from_slice(&[mean, squares]);
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Line,
    Gelu,
    ScaledGlu,
}

struct RowNorm {
    eps: f32,
    kind: Kind,
}

impl RowNorm {
    /// Mean of a row, and one over its deviation, from its pieces.
    fn level(&self, x: &Operand, statistics: &Operand, row: usize) -> (f32, f32) {
        let pieces = statistics.ne[1];
        let (mut count, mut mean, mut squares) = (0.0f64, 0.0f64, 0.0f64);
        for piece in 0..pieces {
            let [m, s] = statistics.row_f32(piece, row, 0)[..] else {
                continue;
            };
            let more = (steps_of(piece, pieces, x.ne[1]).len() * x.ne[0]) as f64;
            let apart = f64::from(m) - mean;
            let all = count + more;
            mean += apart * more / all;
            squares += f64::from(s) + apart * apart * count * more / all;
            count = all;
        }
        let variance = squares / count.max(1.0);
        (
            mean as f32,
            (1.0 / (variance + f64::from(self.eps)).sqrt()) as f32,
        )
    }
}

// SAFETY: a job is some steps of a row, which have places of their own in the result.
unsafe impl HostOp for RowNorm {
    fn run(&self, inputs: &[Operand], output: &Output, share: Share) {
        let (x, statistics) = (&inputs[0], &inputs[1]);
        let [channels, steps, rows, _] = x.ne;
        let (gain, bias) = (inputs[2].row_f32(0, 0, 0), inputs[3].row_f32(0, 0, 0));
        let each = (PIECE / channels.max(1)).clamp(1, steps);
        let blocks = steps.div_ceil(each);
        let width = output.ne[0];
        for job in share.of_jobs(rows * blocks) {
            let (row, block) = (job / blocks, job % blocks);
            let (mean, factor) = self.level(x, statistics, row);
            let gain: Vec<f32> = gain.iter().map(|gain| gain * factor).collect();
            let line = simd::Line {
                mean,
                gain: &gain,
                bias,
            };
            let range = block * each..((block + 1) * each).min(steps);
            let from = values(x, row, range.clone());
            // SAFETY: the result is packed, so steps follow each other; this job's own ones.
            let out = unsafe {
                let first = output.row([range.start, row, 0], 0..width).as_mut_ptr();
                std::slice::from_raw_parts_mut(first, range.len() * width)
            };
            match self.kind {
                Kind::Line => simd::line(from, line, out),
                Kind::Gelu => {
                    simd::line(from, line, out);
                    simd::gelu(out);
                }
                Kind::ScaledGlu => {
                    let scale = inputs[4].row_f32(0, 0, 0);
                    simd::line_glu(from, line, scale, values(&inputs[5], row, range), out);
                }
            }
        }
    }
}
