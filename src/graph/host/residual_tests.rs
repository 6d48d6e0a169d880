//! Residual blocks against their definition in f64.

use std::sync::atomic::AtomicUsize;

use super::{
    super::short_conv::tests::{numbers, operand},
    *,
};
use crate::weights::HostTensor;

const CHANNELS: usize = 16;
const SLOPE: f32 = 0.1;

/// A convolution with its kernel as PyTorch stores it.
struct Known {
    conv: Conv,
    kernel: HostTensor,
    bias: &'static [f32],
}

/// Values that live until the test's process ends, as weights outlive every run.
fn kept(values: Vec<f32>) -> (&'static [f32], Stored) {
    let values: &'static [f32] = values.leak();
    (values, Stored(operand(values, [values.len(), 1, 1, 1])))
}

fn conv(taps: usize, dilation: usize, seed: u64) -> Known {
    let reach = (taps - 1) * dilation;
    let padding = (reach / 2, reach - reach / 2);
    let plan = ShortConv::new(CHANNELS, CHANNELS, taps, dilation, padding).unwrap();
    let shape = [CHANNELS, CHANNELS, taps];
    let kernel: Vec<f32> = numbers(CHANNELS * CHANNELS * taps, seed)
        .iter()
        .map(|w| 0.3 * w)
        .collect();
    let kernel = HostTensor::new(&shape, kernel);
    let (_, weight) = kept(plan.transform(&kernel).data);
    let (bias, stored) = kept(numbers(CHANNELS, seed + 1000));
    Known {
        conv: Conv {
            plan,
            weight,
            bias: stored,
        },
        kernel,
        bias,
    }
}

impl Known {
    /// conv(leaky(x)) by its definition.
    fn direct(&self, x: &[f64]) -> Vec<f64> {
        let plan = &self.conv.plan;
        let steps = x.len() / CHANNELS;
        let at = |i: usize| {
            let (t, o) = (i / CHANNELS, i % CHANNELS);
            let mut sum = f64::from(self.bias[o]);
            for k in 0..plan.kernel {
                let row = (t + k * plan.dilation).wrapping_sub(plan.padding.0);
                if row >= steps {
                    continue;
                }
                for c in 0..CHANNELS {
                    let x = x[row * CHANNELS + c];
                    let x = if x > 0.0 { x } else { f64::from(SLOPE) * x };
                    sum += x * f64::from(self.kernel.data[(o * CHANNELS + c) * plan.kernel + k]);
                }
            }
            sum
        };
        (0..x.len()).map(at).collect()
    }
}

/// Blocks as `(taps, dilations)`; the worst error over the largest value.
fn error(blocks: &[(usize, &[usize])], double: bool, steps: usize, threads: usize) -> f64 {
    let mut seed = 0;
    let mut next = |taps, dilation| {
        seed += 1;
        conv(taps, dilation, seed)
    };
    let known: Vec<Vec<(Known, Option<Known>)>> = blocks
        .iter()
        .map(|(taps, dilations)| {
            let layer = |d: &usize| {
                let first = next(*taps, *d);
                (first, double.then(|| next(*taps, 1)))
            };
            dilations.iter().map(layer).collect()
        })
        .collect();
    let x = numbers(steps * CHANNELS, 77);
    let wide: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
    let mut wanted = vec![0.0; wide.len()];
    for layers in &known {
        let mut state = wide.clone();
        for (first, second) in layers {
            let mut y = first.direct(&state);
            if let Some(second) = second {
                y = second.direct(&y);
            }
            state.iter_mut().zip(y).for_each(|(x, y)| *x += y);
        }
        let parts = wanted.iter_mut().zip(state);
        parts.for_each(|(sum, x)| *sum += x / known.len() as f64);
    }
    let op = Residual {
        blocks: known
            .into_iter()
            .map(|layers| {
                let layer = |(first, second): (Known, Option<Known>)| Layer {
                    first: first.conv,
                    second: second.map(|second| second.conv),
                };
                layers.into_iter().map(layer).collect()
            })
            .collect(),
        slope: SLOPE,
    };
    let mut found = vec![f32::NAN; x.len()];
    let output = Output {
        data: found.as_mut_ptr(),
        ne: [CHANNELS, steps, 1, 1],
    };
    let inputs = [operand(&x, [CHANNELS, steps, 1, 1])];
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
    let most = wanted.iter().fold(0.0f64, |most, x| most.max(x.abs()));
    let off = wanted
        .iter()
        .zip(&found)
        .map(|(a, b)| (a - f64::from(*b)).abs());
    off.fold(
        0.0,
        |worst: f64, x| if x.is_nan() { x } else { worst.max(x) },
    ) / most
}

#[test]
fn blocks_are_chains_of_convolutions() {
    let single: &[(usize, &[usize])] = &[(3, &[1, 2]), (5, &[2, 6]), (7, &[3, 12])];
    let double: &[(usize, &[usize])] = &[(3, &[1, 3, 5]), (11, &[1, 3, 5])];
    for steps in [1, 7, 60, 1300] {
        for threads in [1, 3] {
            for (blocks, twice) in [(single, false), (double, true), (&single[..1], true)] {
                let error = error(blocks, twice, steps, threads);
                assert!(
                    error < 2e-5,
                    "{blocks:?} {twice} {steps} {threads}: {error:.1e}"
                );
            }
        }
    }
}
