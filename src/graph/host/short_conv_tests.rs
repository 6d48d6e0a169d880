//! Short convolutions against their definition in f64, for every instruction set that is here.

use std::sync::atomic::AtomicUsize;

use super::*;
use crate::graph::host::vector::Level;

/// Numbers that look random, in -1..1.
pub(in crate::graph::host) fn numbers(n: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

pub(in crate::graph::host) fn operand(values: &[f32], ne: [usize; 4]) -> Operand {
    Operand {
        data: values.as_ptr().cast(),
        ne,
        nb: [4, 4 * ne[0], 4 * ne[0] * ne[1], 4 * ne[0] * ne[1] * ne[2]],
        dtype: DType::F32,
    }
}

struct Case {
    batch: usize,
    time: usize,
    plan: ShortConv,
}

impl Case {
    fn new(
        [batch, time, inputs, out]: [usize; 4],
        [kernel, dilation, before, after]: [usize; 4],
    ) -> Case {
        let plan = ShortConv::new(inputs, out, kernel, dilation, (before, after));
        Case {
            batch,
            time,
            plan: plan.expect("sizes that it serves"),
        }
    }

    /// The worst error over the largest value wanted.
    fn error(&self, level: Option<Level>, threads: usize) -> f64 {
        let mut plan = self.plan.clone();
        let kernel = HostTensor::new(
            &[plan.out, plan.inputs, plan.kernel],
            numbers(plan.out * plan.inputs * plan.kernel, 1),
        );
        let steps = plan.output_len(self.time).expect("one step at least");
        let weight = plan.transform(&kernel).data;
        if let (Way::Plain(scheme) | Way::Tiles(scheme), Some(level)) = (&mut plan.way, level) {
            scheme.level = level;
        }
        let x = numbers(self.batch * self.time * plan.inputs, 2);
        let bias = numbers(plan.out, 3);
        let plus = [4, 5].map(|seed| numbers(self.batch * steps * plan.out, seed));
        let shape = [plan.out, steps, self.batch, 1];
        let inputs = [
            operand(&x, [plan.inputs, self.time, self.batch, 1]),
            operand(&weight, [weight.len(), 1, 1, 1]),
            operand(&bias, [plan.out, 1, 1, 1]),
            operand(&plus[0], shape),
            operand(&plus[1], shape),
        ];
        let op = ShortConvOp {
            plan,
            packed: false,
            bias: true,
            slope: 0.1,
            scale: 0.5,
        };
        let mut found = vec![f32::NAN; self.batch * steps * op.plan.out];
        let output = Output {
            data: found.as_mut_ptr(),
            ne: shape,
        };
        let next = AtomicUsize::new(0);
        for index in 0..threads {
            op.run(
                &inputs,
                &output,
                Share {
                    index,
                    of: threads,
                    next: &next,
                },
            );
        }
        let mut worst = (0.0f64, 0.0f64);
        for (i, found) in found.iter().enumerate() {
            let sum = self.direct(&x, &kernel, i, steps) + f64::from(bias[i % op.plan.out]);
            let wanted = 0.5 * (sum + f64::from(plus[0][i]) + f64::from(plus[1][i]));
            let off = (wanted - f64::from(*found)).abs();
            worst = (
                if off.is_nan() { off } else { worst.0.max(off) },
                worst.1.max(wanted.abs()),
            );
            assert!(!off.is_nan(), "value {i} was not written");
        }
        worst.0 / worst.1
    }

    /// Value `i` of the convolution alone.
    fn direct(&self, x: &[f32], kernel: &HostTensor, i: usize, steps: usize) -> f64 {
        let plan = &self.plan;
        let (o, t, b) = (i % plan.out, i / plan.out % steps, i / plan.out / steps);
        let mut sum = 0.0;
        for k in 0..plan.kernel {
            let at = (t + k * plan.dilation).wrapping_sub(plan.padding.0);
            if at >= self.time {
                continue;
            }
            for c in 0..plan.inputs {
                let x = f64::from(x[(b * self.time + at) * plan.inputs + c]);
                let x = if x > 0.0 { x } else { 0.1 * x };
                sum += x * f64::from(kernel.data[(o * plan.inputs + c) * plan.kernel + k]);
            }
        }
        sum
    }
}

#[test]
fn every_instruction_set_computes_the_convolution() {
    for level in Level::available() {
        for kernel in 1..=14 {
            let reach = kernel - 1;
            let case = Case::new([1, 61, 32, 48], [kernel, 1, reach / 2, reach - reach / 2]);
            let late = Case {
                plan: case.plan.clone().late(),
                ..case
            };
            for case in [&case, &late] {
                let error = case.error(Some(level), 2);
                assert!(error < 2e-5, "{level:?}, {kernel} taps: {error:.1e}");
            }
        }
    }
}

#[test]
fn geometries() {
    let shapes = [
        ([1, 1, 16, 16], [3, 1, 1, 1]),
        ([1, 2, 16, 32], [7, 12, 36, 36]),
        ([2, 200, 16, 16], [7, 12, 36, 36]),
        ([1, 97, 48, 16], [5, 6, 12, 12]),
        ([3, 30, 32, 16], [2, 1, 1, 1]),
        ([1, 40, 16, 64], [4, 1, 0, 0]),
        ([1, 50, 16, 16], [11, 3, 15, 15]),
        ([1, 50, 16, 16], [3, 2, 9, 0]),
        ([2, 33, 32, 1], [7, 1, 3, 3]),
        ([1, 33, 16, 3], [3, 5, 5, 5]),
        ([1, 700, 272, 16], [3, 1, 1, 1]),
        ([2, 205, 48, 64], [1, 1, 0, 0]),
        ([1, 3, 16, 16], [1, 1, 2, 1]),
    ];
    for (sizes, conv) in shapes {
        for threads in [1, 2, 5] {
            let error = Case::new(sizes, conv).error(None, threads);
            assert!(
                error < 2e-5,
                "{sizes:?}, {conv:?}, {threads} threads: {error:.1e}"
            );
        }
    }
}

#[test]
fn what_it_does_not_serve() {
    let refused = |inputs, out, kernel, dilation| {
        ShortConv::new(inputs, out, kernel, dilation, (0, 0)).is_none()
    };
    assert!(refused(16, 16, 15, 1), "too many taps");
    assert!(refused(8, 16, 3, 1), "inputs that fill no vector");
    assert!(refused(16, 24, 3, 1), "outputs that fill no vector");
    assert!(refused(16, 16, 3, 0), "no step between taps");
    assert!(!refused(16, 1, 3, 1));
}
