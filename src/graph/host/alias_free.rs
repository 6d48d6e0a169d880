//! Snakes at twice the rate, with the filters around them, a stretch of time at a time.

use std::cell::RefCell;

use multiversion::multiversion;

use super::{HostOp, Operand, Output, Share, sine::sine};
use crate::graph::{DType, DeviceTensor, Tensor};

/// Taps of the filters.
const TAPS: usize = 12;
/// Rows of a stretch.
const STRETCH: usize = 64;

impl<'g> Tensor<'g> {
    /// x `[1, time, channels]` filtered to twice the rate, there the mean of x + sin²(a x) / b over
    /// the way from each value to the next (before the first there is a zero), and filtered back to
    /// the rate: the same shape. `a` and `share` (1 / (2 b)) are `[channels]`; `filter` is a low-pass
    /// whose taps sum up to 1; the ends are repeated. For the CPU: ask for
    /// [`FastPath::AliasFreeSnake`](crate::backend::FastPath::AliasFreeSnake).
    pub fn alias_free_snake(
        self,
        a: &DeviceTensor,
        share: &DeviceTensor,
        filter: [f32; TAPS],
    ) -> Tensor<'g> {
        let [batch, _, channels] = self.dims();
        let vector = |t: &DeviceTensor| t.shape() == [channels] && t.dtype() == DType::F32;
        let fits = batch == 1
            && self.dtype() == DType::F32
            && self.scope().device().is_cpu()
            && vector(a)
            && vector(share);
        if !fits {
            return self.scope().mistake(
                "alias_free_snake",
                format!("{self:?} with {a:?} and {share:?}, on a CPU"),
            );
        }
        let scope = self.scope();
        let inputs = [self.packed_rows(), scope.stored(a), scope.stored(share)];
        scope.host_op(self.extents(), &inputs, AliasFreeSnake { filter })
    }
}

struct AliasFreeSnake {
    filter: [f32; TAPS],
}

thread_local! {
    static SCRATCH: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

// SAFETY: a job is a stretch of rows, and no two jobs overlap.
unsafe impl HostOp for AliasFreeSnake {
    fn run(&self, inputs: &[Operand], output: &Output, share: Share) {
        let [width, time, _, _] = output.ne;
        let [a, factor] = [1, 2].map(|i| inputs[i].row_f32(0, 0, 0));
        let row = |j: isize| {
            let j = j.clamp(0, time as isize - 1) as usize;
            inputs[0].row_f32(j, 0, 0)
        };
        let last = 2 * time as isize - 1;
        SCRATCH.with_borrow_mut(|scratch| {
            for job in share.of_jobs(time.div_ceil(STRETCH)) {
                let rows = job * STRETCH..((job + 1) * STRETCH).min(time);
                // Steps at twice the rate that the rows see, and one before them.
                let first = (2 * rows.start as isize - 5).max(0);
                let end = (2 * rows.end as isize + 4).min(last);
                let count = (end - first + 1) as usize;
                scratch.clear();
                scratch.resize((count + 1) * width, 0.0);
                for (i, out) in scratch.chunks_exact_mut(width).enumerate() {
                    let n = first + i as isize - 1;
                    if n >= 0 {
                        self.raise(n, row, out);
                    }
                }
                for i in (1..=count).rev() {
                    let (before, here) = scratch.split_at_mut(i * width);
                    snake(&before[(i - 1) * width..], a, factor, &mut here[..width]);
                }
                for t in rows {
                    // SAFETY: each job has its own rows.
                    let out = unsafe { output.row([t, 0, 0], 0..width) };
                    let seen = |k: usize| {
                        let n = (2 * t as isize + k as isize - 5).clamp(0, last);
                        let at = (n - first + 1) as usize * width;
                        &scratch[at..at + width]
                    };
                    weigh(&self.filter, std::array::from_fn(seen), out);
                }
            }
        });
    }
}

impl AliasFreeSnake {
    /// Step n at twice the rate, from 6 rows: every other tap meets a value.
    fn raise<'x>(&self, n: isize, row: impl Fn(isize) -> &'x [f32], out: &mut [f32]) {
        let (middle, odd) = (n.div_euclid(2), n.rem_euclid(2));
        let first = middle - 3 + odd;
        let taps: [f32; TAPS / 2] =
            std::array::from_fn(|i| 2.0 * self.filter[TAPS - 1 - odd as usize - 2 * i]);
        weigh(&taps, std::array::from_fn(|i| row(first + i as isize)), out);
    }
}

/// A weighted sum of rows.
#[inline]
fn weigh<const N: usize>(taps: &[f32; N], rows: [&[f32]; N], out: &mut [f32]) {
    match N {
        6 => weigh_six(&taps[..], &rows[..], out),
        _ => weigh_all(&taps[..], &rows[..], out),
    }
}

#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
fn weigh_six(taps: &[f32], rows: &[&[f32]], out: &mut [f32]) {
    let n = out.len();
    let rows: [&[f32]; 6] = std::array::from_fn(|k| &rows[k][..n]);
    for c in 0..n {
        let mut sum = 0.0;
        for k in 0..6 {
            sum += taps[k] * rows[k][c];
        }
        out[c] = sum;
    }
}

#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
fn weigh_all(taps: &[f32], rows: &[&[f32]], out: &mut [f32]) {
    let n = out.len();
    let rows: [&[f32]; TAPS] = std::array::from_fn(|k| &rows[k][..n]);
    for c in 0..n {
        let mut sum = 0.0;
        for k in 0..TAPS {
            sum += taps[k] * rows[k][c];
        }
        out[c] = sum;
    }
}

/// The mean of the snake on the way from `before` to `here`, which it replaces.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2+fma"))]
fn snake(before: &[f32], a: &[f32], share: &[f32], here: &mut [f32]) {
    let n = here.len();
    let (before, a, share) = (&before[..n], &a[..n], &share[..n]);
    for c in 0..n {
        let (sum, step) = (here[c] + before[c], here[c] - before[c]);
        // The cosine of the sum by the sine of its half.
        let (half, _) = sine(0.5 * a[c] * sum);
        let cosine = 1.0 - 2.0 * half * half;
        let (_, sinc) = sine(a[c] * step);
        here[c] = 0.5 * sum + share[c] * (1.0 - cosine * sinc);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{BufferBuilder, Device, Graph};

    /// Straight from the definition, in f64.
    fn defined(x: &[f64], a: f64, b: f64, filter: &[f64; TAPS]) -> Vec<f64> {
        let time = x.len();
        let padded: Vec<f64> = (0..time + 10)
            .map(|i| x[i.saturating_sub(5).min(time - 1)])
            .collect();
        let mut wide = vec![0.0; 2 * padded.len() + TAPS];
        for (i, value) in padded.iter().enumerate() {
            for (k, tap) in filter.iter().enumerate() {
                wide[2 * i + k] += 2.0 * value * tap;
            }
        }
        let wide = &wide[15..15 + 2 * time];
        let bent: Vec<f64> = (0..2 * time)
            .map(|n| {
                let before = if n == 0 { 0.0 } else { wide[n - 1] };
                let (sum, step) = (wide[n] + before, a * (wide[n] - before));
                let sinc = if step == 0.0 { 1.0 } else { step.sin() / step };
                0.5 * sum + (1.0 - (a * sum).cos() * sinc) / (2.0 * b)
            })
            .collect();
        let at = |n: isize| bent[n.clamp(0, 2 * time as isize - 1) as usize];
        (0..time as isize)
            .map(|t| {
                (0..TAPS)
                    .map(|k| filter[k] * at(2 * t + k as isize - 5))
                    .sum()
            })
            .collect()
    }

    #[test]
    fn a_snake_is_what_its_definition_says() {
        let filter: [f64; TAPS] =
            std::array::from_fn(|k| [1.0, -3.0, 6.0, 9.0, 20.0, 67.0][k.min(11 - k)] / 200.0);
        for (time, channels) in [(1, 1), (2, 3), (63, 16), (200, 5)] {
            let device = Device::cpu(2).unwrap();
            let mut buffer = BufferBuilder::weights(&device, 2);
            let a = buffer.declare("a", DType::F32, &[channels]).unwrap();
            let share = buffer.declare("share", DType::F32, &[channels]).unwrap();
            buffer.allocate().unwrap();
            let values = |c: usize| (0.5 + 0.3 * c as f64, 1.5 - 0.05 * c as f64);
            let of = |get: &dyn Fn(usize) -> f64| -> Vec<f32> {
                (0..channels).map(|c| get(c) as f32).collect()
            };
            a.write(&of(&|c| values(c).0)).unwrap();
            share.write(&of(&|c| 0.5 / values(c).1)).unwrap();
            let x: Vec<f32> = (0..time * channels)
                .map(|i| ((i * 37 % 101) as f32 - 50.0) * 0.07)
                .collect();
            let mut graph = Graph::build(&device, |g| {
                let x = g.input("x", DType::F32, &[1, time, channels]);
                g.output(
                    "y",
                    x.alias_free_snake(&a, &share, filter.map(|t| t as f32)),
                );
                Ok(())
            })
            .unwrap();
            graph.write("x", &x).unwrap();
            graph.compute().unwrap();
            let y: Vec<f32> = graph.read("y").unwrap();
            for c in 0..channels {
                let line: Vec<f64> = (0..time).map(|t| f64::from(x[t * channels + c])).collect();
                let (a, b) = values(c);
                let wanted = defined(&line, a, b, &filter);
                for t in 0..time {
                    let off = (f64::from(y[t * channels + c]) - wanted[t]).abs();
                    assert!(off < 5e-6, "{time} {channels} at {t} {c}: {off:.1e}");
                }
            }
        }
    }
}
