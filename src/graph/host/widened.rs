//! An affine map to many channels, its normalisation over whole rows and the gate after it, without
//! the wide values ever lying in memory: their mean and deviation follow from the narrow ones'.

use std::cell::RefCell;

use super::{
    HostOp, Operand, Output, Share,
    panels::{self, Packed},
};
use crate::{
    graph::{DType, DeviceTensor, RowCurve, Tensor, shape::Shape},
    simd,
};

/// What [`Tensor::widened_glu`] makes of its input.
#[derive(Clone, Copy)]
pub struct Widened<'p, 'g> {
    /// `[2 channel, narrow]`, and its bias `[2 channel]`.
    pub map: [&'p DeviceTensor; 2],
    /// Gain and bias of the normalisation, `[2 channel]`.
    pub norm: [&'p DeviceTensor; 2],
    /// Added to the variance.
    pub eps: f32,
    /// Factor of the gated values, `[channel]`.
    pub scale: &'p DeviceTensor,
    /// Added to the result, of its shape.
    pub plus: Tensor<'g>,
}

impl<'g> Tensor<'g> {
    /// `[1, row, step, narrow]` -> plus + scale a sigmoid(b), `[1, row, step, channel]`, where
    /// `[.., a, b]` are all channels of the map, normalised over steps and channels of each row.
    pub fn widened_glu(self, how: Widened<'_, 'g>) -> Tensor<'g> {
        let scope = self.scope();
        let [batch, rows, steps, narrow] = self.dims();
        let [weight, bias] = how.map;
        let wide = bias.shape().first().copied().unwrap_or(0);
        let vector = |t: &DeviceTensor, n: usize| t.shape() == [n] && t.dtype() == DType::F32;
        let whole = [batch, rows, steps, wide / 2];
        let fits = batch == 1
            && self.dtype() == DType::F32
            && weight.shape() == [wide, narrow]
            && wide.is_multiple_of(2)
            && [bias, how.norm[0], how.norm[1]]
                .iter()
                .all(|t| vector(t, wide))
            && vector(how.scale, wide / 2)
            && how.plus.shape() == whole
            && how.eps.is_finite()
            && how.eps >= 0.0;
        let shapes = Shape::new(&whole).zip(Shape::new(&[rows, 1, narrow * (narrow + 1)]));
        let Some((whole, moments)) = shapes.filter(|_| fits) else {
            return scope.mistake("widened_glu", format!("{self:?} by {weight:?}, {bias:?}"));
        };
        let halves = matches!(weight.dtype(), DType::F32 | DType::F16 | DType::BF16);
        if !scope.device().is_cpu() || !halves {
            let [gain, shift] = how.norm;
            let (scale, plus) = (how.scale, how.plus);
            let curve = RowCurve::ScaledGlu { scale, plus };
            let y = self.linear(weight, Some(bias));
            return y.row_norm(gain, shift, how.eps, curve);
        }
        let x = self.contiguous();
        let moments = scope.host_op(moments, &[x], Moments);
        let mut inputs = vec![x, moments, how.plus.contiguous()];
        let stored = [weight, bias, how.norm[0], how.norm[1], how.scale];
        inputs.extend(stored.map(|t| scope.stored(t)));
        scope.host_op(whole, &inputs, WidenedGlu { eps: how.eps })
    }
}

/// Packed values of some steps of a row.
fn values(x: &Operand, row: usize, steps: std::ops::Range<usize>) -> &[f32] {
    assert!(x.dtype == DType::F32 && steps.end <= x.ne[1] && !steps.is_empty());
    // SAFETY: the tensor is packed, so steps follow each other; those lie inside the row.
    unsafe {
        let first = x.row(steps.start, row, 0).cast::<f32>();
        std::slice::from_raw_parts(first, steps.len() * x.ne[0])
    }
}

/// Mean of each channel over a row's steps, then the covariance of each two:
/// `[row, 1, channel + channel * channel]`.
struct Moments;

/// Steps whose sums are in f32.
const STEPS: usize = 128;

// SAFETY: a job is a row, which has a place of its own in the result.
unsafe impl HostOp for Moments {
    fn run(&self, inputs: &[Operand], output: &Output, share: Share) {
        let x = &inputs[0];
        let [n, steps, rows, _] = x.ne;
        // A row alone is not shared out: its sums are few beside all else.
        for row in share.of_jobs(rows) {
            let (mut sums, mut products) = (vec![0f64; n], vec![0f64; n * n]);
            let first = values(x, row, 0..1);
            let (mut sum, mut product) = (vec![0f32; n], vec![0f32; n * n]);
            let mut apart = vec![0f32; n];
            for start in (0..steps).step_by(STEPS) {
                sum.fill(0.0);
                product.fill(0.0);
                let block = values(x, row, start..(start + STEPS).min(steps));
                gather(block, first, &mut apart, &mut sum, &mut product);
                let more = |to: &mut [f64], from: &[f32]| {
                    to.iter_mut()
                        .zip(from)
                        .for_each(|(to, x)| *to += f64::from(*x));
                };
                more(&mut sums, &sum);
                more(&mut products, &product);
            }
            // SAFETY: this job's own place.
            let out = unsafe { output.row([0, row, 0], 0..n * (n + 1)) };
            let (means, covariances) = out.split_at_mut(n);
            sums.iter_mut().for_each(|sum| *sum /= steps as f64);
            for (i, line) in covariances.chunks_exact_mut(n).enumerate() {
                for (j, out) in line.iter_mut().enumerate() {
                    let product = products[i.max(j) * n + i.min(j)];
                    *out = (product / steps as f64 - sums[i] * sums[j]) as f32;
                }
            }
            for ((mean, sum), first) in means.iter_mut().zip(&sums).zip(first) {
                *mean = (sum + f64::from(*first)) as f32;
            }
        }
    }
}

/// Adds the distances from `first`, and the products of each two (below the diagonal and on it).
#[multiversion::multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
fn gather(block: &[f32], first: &[f32], apart: &mut [f32], sum: &mut [f32], product: &mut [f32]) {
    let n = first.len();
    for step in block.chunks_exact(n) {
        for ((apart, x), first) in apart.iter_mut().zip(step).zip(first) {
            *apart = x - first;
        }
        for (sum, apart) in sum.iter_mut().zip(apart.iter()) {
            *sum += apart;
        }
        for (i, line) in product.chunks_exact_mut(n).enumerate() {
            let x = apart[i];
            for (product, other) in line[..=i].iter_mut().zip(apart.iter()) {
                *product += x * other;
            }
        }
    }
}

struct WidenedGlu {
    eps: f32,
}

#[derive(Default)]
struct Scratch {
    packed: Packed,
    wide: Vec<f32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Wide values that are in the cache at a time (256 KiB).
const BLOCK_VALUES: usize = 1 << 16;

/// What the wide values' mean and deviation follow from.
struct Level {
    /// Sums of the products of each two columns of the map, `[narrow, narrow]`.
    squares: Vec<f64>,
}

impl Level {
    /// Of a map `[wide, narrow]`.
    fn of(map: &[f32], narrow: usize) -> Level {
        let mut squares = vec![0f64; narrow * narrow];
        for line in map.chunks_exact(narrow) {
            for (sums, &x) in squares.chunks_exact_mut(narrow).zip(line) {
                for (sum, &other) in sums.iter_mut().zip(line) {
                    *sum += f64::from(x) * f64::from(other);
                }
            }
        }
        Level { squares }
    }

    /// Mean and variance of all wide values of a row.
    fn measure(&self, map: &[f32], bias: &[f32], moments: &[f32]) -> (f64, f64) {
        let narrow = self.squares.len().isqrt();
        let (means, covariances) = moments.split_at(narrow);
        let wide = bias.len() as f64;
        let (mut sum, mut squares) = (0f64, 0f64);
        let centre = |line: &[f32], bias: &f32| {
            let pairs = line.iter().zip(means);
            f64::from(*bias) + pairs.map(|(w, m)| f64::from(w * m)).sum::<f64>()
        };
        for (line, bias) in map.chunks_exact(narrow).zip(bias) {
            let centre = centre(line, bias);
            sum += centre;
            squares += centre * centre;
        }
        let pairs = self.squares.iter().zip(covariances);
        let within: f64 = pairs.map(|(s, c)| s * f64::from(*c)).sum();
        let mean = sum / wide;
        let variance = within / wide + (squares / wide - mean * mean);
        (mean, variance.max(0.0))
    }
}

// SAFETY: a job is some steps of a row, which have places of their own in the result.
unsafe impl HostOp for WidenedGlu {
    fn run(&self, inputs: &[Operand], output: &Output, share: Share) {
        let [x, moments, plus, weight, bias, gain, shift, scale] = inputs else {
            return;
        };
        let [bias, gain, shift, scale] = [bias, gain, shift, scale].map(|t| t.row_f32(0, 0, 0));
        let [narrow, steps, rows, _] = x.ne;
        let (wide, width) = (bias.len(), output.ne[0]);
        let each = (BLOCK_VALUES / wide).clamp(1, steps);
        let blocks = steps.div_ceil(each);
        SCRATCH.with_borrow_mut(|Scratch { packed, wide: held }| {
            let [map, panels] = packed.both(weight);
            let level = Level::of(map, narrow);
            let mut of = None;
            let mut gains = vec![0.0; wide];
            let mut mean = 0.0;
            // A thread's blocks follow each other, so that a row is measured once.
            for job in share.of_range(rows * blocks) {
                let (row, block) = (job / blocks, job % blocks);
                if of != Some(row) {
                    let (centre, variance) = level.measure(map, bias, moments.row_f32(0, row, 0));
                    let factor = 1.0 / (variance + f64::from(self.eps)).sqrt();
                    let pairs = gains.iter_mut().zip(gain);
                    pairs.for_each(|(to, gain)| *to = (f64::from(*gain) * factor) as f32);
                    (of, mean) = (Some(row), centre as f32);
                }
                let range = block * each..((block + 1) * each).min(steps);
                held.resize(each * wide, 0.0);
                let held = &mut held[..range.len() * wide];
                // SAFETY: these steps' narrow values, and as many lines of wide ones.
                unsafe {
                    panels::multiply(
                        [range.len(), wide, narrow],
                        (held.as_mut_ptr(), wide),
                        (values(x, row, range.clone()).as_ptr(), narrow),
                        panels,
                        1.0,
                    );
                }
                held.chunks_exact_mut(wide)
                    .for_each(|line| simd::add(line, bias));
                let line = simd::Line {
                    mean,
                    gain: &gains,
                    bias: shift,
                };
                // SAFETY: the result is packed, so steps follow each other; this job's own ones.
                let out = unsafe {
                    let first = output.row([range.start, row, 0], 0..width).as_mut_ptr();
                    std::slice::from_raw_parts_mut(first, range.len() * width)
                };
                simd::line_glu(held, line, scale, values(plus, row, range), out);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        graph::{Device, Graph},
        weights::{Computed, Loader, Policy},
    };

    #[test]
    fn it_is_the_map_the_norm_and_the_gate() {
        let device = Device::cpu(2).unwrap();
        let value = |i: usize| ((i * i * 37 % 1009) as f32 - 500.0) / 500.0;
        for [rows, steps, narrow, channels] in [[3, 50, 6, 48], [1, 700, 24, 32], [2, 9, 5, 7]] {
            let source = Computed::new(move |name, shape| {
                let count = shape.iter().product();
                // Means far from zero beside the deviations.
                let offset = if name == "bias" { 20.0 } else { 0.3 };
                (0..count).map(|i| value(i + name.len()) + offset).collect()
            });
            let loader = Loader::new(&source, &device, Policy::Native);
            let root = loader.root();
            let wide = 2 * channels;
            let weight = root.get(&[wide, narrow], "weight").unwrap();
            let vector = |n: usize, name: &str| root.get_f32(&[n], name).unwrap();
            let (bias, gain, shift) = (vector(wide, "bias"), vector(wide, "g"), vector(wide, "sh"));
            let scale = vector(channels, "scale");
            loader.finish().unwrap();
            let mut graph = Graph::build(&device, |g| {
                let x = g.input("x", DType::F32, &[1, rows, steps, narrow]);
                let plus = g.input("plus", DType::F32, &[1, rows, steps, channels]);
                let how = Widened {
                    map: [&weight, &bias],
                    norm: [&gain, &shift],
                    eps: 1e-5,
                    scale: &scale,
                    plus,
                };
                g.output("found", x.widened_glu(how));
                let curve = RowCurve::ScaledGlu {
                    scale: &scale,
                    plus,
                };
                let y = x.linear(&weight, Some(&bias));
                g.output("wanted", y.row_norm(&gain, &shift, 1e-5, curve));
                Ok(())
            })
            .unwrap();
            let x: Vec<f32> = (0..rows * steps * narrow).map(|i| 1.0 + value(i)).collect();
            let plus: Vec<f32> = (0..rows * steps * channels).map(value).collect();
            graph.write("x", &x).unwrap();
            graph.write("plus", &plus).unwrap();
            graph.compute().unwrap();
            let [found, wanted] = ["found", "wanted"].map(|y| graph.read::<f32>(y).unwrap());
            let worst = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs());
            assert!(worst.fold(0.0, f32::max) < 2e-4, "{rows} {steps} {narrow}");
        }
    }
}
