//! Weights of short convolutions in 8 bits: whole numbers, and for each output what is added to
//! them and the factor of the sum. A quarter of the memory, with the values that they stand for.

use std::ops::Range;

use super::{
    HostOp, Operand, Output, Share,
    kernels::PANEL,
    short_conv::{ShortConv, Way},
    unpack::{self, Panel},
};
use crate::{
    graph::{DType, DeviceTensor, Scope, Tensor, shape::Shape},
    weights::HostTensor,
};

/// The weight of a [`ShortConv`] on a device.
#[derive(Debug, Clone, Copy)]
pub enum ShortWeight<'w> {
    /// f32, from [`ShortConv::transform`].
    Values(&'w DeviceTensor),
    /// Whole numbers from [`ShortConv::pack`], and what [`ShortConv::lines`] says of them.
    Packed {
        /// i8, `[packed values]`.
        numbers: &'w DeviceTensor,
        /// f32, `[2 out]`.
        lines: &'w DeviceTensor,
    },
}

/// Numbers as they lie in a graph.
#[derive(Clone, Copy)]
pub(super) struct Packed<'a> {
    pub numbers: &'a [i8],
    pub lines: &'a [f32],
}

impl ShortConv {
    /// Whether its weight may be packed: whole panels of outputs.
    pub fn packs(&self) -> bool {
        !matches!(self.way, Way::Narrow)
    }

    /// Number of values of a packed weight.
    pub fn packed_values(&self) -> usize {
        self.out * self.kernel * self.inputs
    }

    /// Whole numbers `[out, in, taps]`, those of an output at most 255 apart, in the form that
    /// [`ShortWeight::Packed`] wants: each -128..=127.
    ///
    /// # Panics
    /// If the shape is another, which is a mistake in the model's code.
    pub fn pack(&self, kernel: &HostTensor) -> HostTensor {
        assert_eq!(kernel.shape, [self.out, self.inputs, self.kernel]);
        // [panel of outputs][group][tap of it][input][output in the panel]
        let mut data = vec![0.0; self.packed_values()];
        let rows = kernel.data.chunks_exact(self.inputs * self.kernel);
        for (o, row) in rows.enumerate() {
            let middle = middle(row);
            for (c, taps) in row.chunks_exact(self.kernel).enumerate() {
                for (k, number) in taps.iter().enumerate() {
                    let line = (o / PANEL * self.kernel + k) * self.inputs + c;
                    data[line * PANEL + o % PANEL] = number - middle;
                }
            }
        }
        HostTensor::new(&[self.packed_values()], data)
    }

    /// What is added to the packed numbers of each output, and its `scale` (one for each):
    /// `[2 out]`.
    ///
    /// # Panics
    /// As [`pack`](Self::pack).
    pub fn lines(&self, kernel: &HostTensor, scale: &HostTensor) -> HostTensor {
        assert_eq!(kernel.shape, [self.out, self.inputs, self.kernel]);
        assert_eq!(scale.data.len(), self.out);
        let rows = kernel.data.chunks_exact(self.inputs * self.kernel);
        let middles: Vec<f32> = rows.map(middle).collect();
        let panels = middles.chunks(PANEL).zip(scale.data.chunks(PANEL));
        let data = panels.flat_map(|(middles, scales)| [middles, scales].concat());
        HostTensor::new(&[2 * self.out], data.collect())
    }

    /// Whether packed numbers are turned to values a panel at a time, where they are used.
    fn unpacks_in_place(&self) -> bool {
        self.late || matches!(self.way, Way::Plain(_))
    }
}

/// The whole number half way between the least and the greatest.
fn middle(numbers: &[f32]) -> f32 {
    let least = numbers.iter().copied().fold(f32::INFINITY, f32::min);
    let most = numbers.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    ((least + most) / 2.0).ceil()
}

impl ShortWeight<'_> {
    /// Whether this is a weight of `plan`.
    pub(super) fn fits(&self, plan: &ShortConv) -> bool {
        match self {
            ShortWeight::Values(weight) => {
                weight.dtype() == DType::F32 && weight.shape() == [plan.values()]
            }
            ShortWeight::Packed { numbers, lines } => {
                plan.packs()
                    && numbers.dtype() == DType::I8
                    && numbers.shape() == [plan.packed_values()]
                    && lines.dtype() == DType::F32
                    && lines.shape() == [2 * plan.out]
            }
        }
    }

    /// What a convolution reads of it, and whether that is packed: where values serve many steps,
    /// they are made once for all of them.
    pub(super) fn inputs<'g>(&self, scope: &'g Scope, plan: &ShortConv) -> (Vec<Tensor<'g>>, bool) {
        match self {
            ShortWeight::Values(weight) => (vec![scope.stored(weight)], false),
            ShortWeight::Packed { numbers, lines } => {
                let stored = vec![scope.stored(numbers), scope.stored(lines)];
                match Shape::new(&[plan.values()]).filter(|_| !plan.unpacks_in_place()) {
                    None => (stored, true),
                    Some(shape) => {
                        let op = Unpack { plan: plan.clone() };
                        (vec![scope.host_op(shape, &stored, op)], false)
                    }
                }
            }
        }
    }
}

impl<'a> Packed<'a> {
    pub fn of(numbers: &'a Operand, lines: &'a Operand) -> Packed<'a> {
        Packed {
            numbers: numbers.row_i8(0, 0, 0),
            lines: lines.row_f32(0, 0, 0),
        }
    }

    /// Taps `taps` of panel `panel`.
    pub fn panel(&self, plan: &ShortConv, panel: usize, taps: Range<usize>) -> Panel<'a> {
        let each = plan.inputs * PANEL;
        let first = (panel * plan.kernel + taps.start) * each;
        let numbers = &self.numbers[first..first + taps.len() * each];
        Panel::Numbers(numbers, &self.lines[2 * panel * PANEL..][..2 * PANEL])
    }
}

/// A packed weight to what [`ShortConv::transform`] would give.
struct Unpack {
    plan: ShortConv,
}

// SAFETY: a job is a panel, which has its own part of the result.
unsafe impl HostOp for Unpack {
    fn run(&self, inputs: &[Operand], output: &Output, share: Share) {
        let plan = &self.plan;
        let Way::Tiles(scheme) = &plan.way else {
            return;
        };
        let packed = Packed::of(&inputs[0], &inputs[1]);
        let (each, depth) = (plan.inputs * PANEL, plan.groups * plan.inputs * PANEL);
        let size = scheme.points * depth;
        for panel in share.of_jobs(plan.out / PANEL) {
            // SAFETY: this job's own part.
            let to = unsafe { output.row([0, 0, 0], panel * size..(panel + 1) * size) };
            for group in 0..plan.groups {
                let first = group * plan.taps;
                let taps = first..(first + plan.taps).min(plan.kernel);
                let panel = packed.panel(plan, panel, taps);
                unpack::transform(scheme, plan.inputs, panel, &mut to[group * each..], depth);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Around, BufferBuilder, Device, Graph};

    /// Numbers 0..=255 less a zero point, as exports hold them.
    fn kernel(plan: &ShortConv) -> (HostTensor, HostTensor) {
        let shape = [plan.out, plan.inputs, plan.kernel];
        let number = |i: usize| ((i * 7919 + i / 13) % 256) as f32 - 60.0;
        let data = (0..shape.iter().product()).map(number).collect();
        let scale = (0..plan.out).map(|o| 0.001 + o as f32 * 1e-5).collect();
        (
            HostTensor::new(&shape, data),
            HostTensor::new(&[plan.out], scale),
        )
    }

    #[test]
    fn packed_weights_are_the_values_that_they_stand_for() {
        let device = Device::cpu(2).unwrap();
        for (taps, dilation, late) in [(1, 1, false), (3, 1, true), (7, 3, false), (11, 5, false)] {
            let (time, inputs, out) = (83, 32, 48);
            let reach = (taps - 1) * dilation / 2;
            let plan = ShortConv::new(inputs, out, taps, dilation, (reach, reach)).unwrap();
            let plan = if late { plan.late() } else { plan };
            let (kernel, scale) = kernel(&plan);
            let mut scaled = kernel.clone();
            let rows = scaled.data.chunks_mut(inputs * taps).zip(&scale.data);
            rows.for_each(|(row, scale)| row.iter_mut().for_each(|x| *x *= scale));

            let mut buffer = BufferBuilder::weights(&device, 4);
            let mut declare = |name, dtype, n| buffer.declare(name, dtype, &[n]).unwrap();
            let plain = declare("values", DType::F32, plan.values());
            let numbers = declare("numbers", DType::I8, plan.packed_values());
            let lines = declare("lines", DType::F32, 2 * out);
            let _memory = buffer.allocate().unwrap();
            plain.write(&plan.transform(&scaled).data).unwrap();
            lines.write(&plan.lines(&kernel, &scale).data).unwrap();
            let bytes = plan.pack(&kernel).data;
            assert!(bytes.iter().all(|x| (-128.0..=127.0).contains(x)));
            let bytes: Vec<u8> = bytes.iter().map(|&x| (x as i8).cast_unsigned()).collect();
            numbers.write_bytes(&bytes).unwrap();

            let mut graph = Graph::build(&device, |g| {
                let x = g.input("x", DType::F32, &[1, time, inputs]);
                let packed = ShortWeight::Packed {
                    numbers: &numbers,
                    lines: &lines,
                };
                for (name, weight) in [("plain", ShortWeight::Values(&plain)), ("packed", packed)] {
                    g.output(name, x.short_conv(weight, None, &plan, Around::default()));
                }
                Ok(())
            })
            .unwrap();
            let x: Vec<f32> = (0..time * inputs).map(|i| (i as f32 * 0.7).sin()).collect();
            graph.write("x", &x).unwrap();
            graph.compute().unwrap();
            let [plain, packed]: [Vec<f32>; 2] =
                ["plain", "packed"].map(|name| graph.read(name).unwrap());
            let most = plain.iter().fold(0f32, |most, x| most.max(x.abs()));
            for (a, b) in plain.iter().zip(&packed) {
                // One of them transforms its taps in f64, the other in f32.
                assert!((a - b).abs() < 6e-5 * most, "{taps} taps: {a}, {b}");
            }
        }
    }
}
