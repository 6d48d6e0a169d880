//! Convolutions along time by the scheme of Toom and Cook: half to a third of the products.

use std::cell::RefCell;

use super::{
    HostOp, Operand, Output, Share, kernels,
    kernels::{PANEL, Scheme, Tile},
    toom_cook::ToomCook,
};
use crate::{
    graph::{DType, DeviceTensor, Tensor, shape::Shape},
    weights::HostTensor,
};

/// How a convolution along time (stride 1) is computed by
/// [`Tensor::short_conv`]: which scheme, and how its weights lie.
#[derive(Debug, Clone, PartialEq)]
pub struct ShortConv {
    inputs: usize,
    out: usize,
    kernel: usize,
    dilation: usize,
    /// Zeros before the input, and after it.
    padding: (usize, usize),
    /// The taps are cut in `groups` runs of `taps`.
    groups: usize,
    taps: usize,
    way: Way,
}

#[derive(Debug, Clone, PartialEq)]
enum Way {
    /// Sums of products, for a handful of outputs.
    Narrow,
    Tiles(Scheme),
}

/// What happens around a convolution: `scale (conv(leaky(x)) + sum of plus)`.
#[derive(Clone, Copy)]
pub struct Around<'p, 'g> {
    /// Slope of a leaky rectifier before the convolution; 1 for none.
    pub slope: f32,
    /// Values added to the result, of its shape.
    pub plus: &'p [Tensor<'g>],
    /// Factor of everything.
    pub scale: f32,
}

impl Default for Around<'_, '_> {
    fn default() -> Self {
        Around {
            slope: 1.0,
            plus: &[],
            scale: 1.0,
        }
    }
}

/// Outputs up to which the sums are formed one by one.
const NARROW: usize = 4;
/// More summands than this do not fit into a node.
const MOST_SUMMANDS: usize = 4;

impl ShortConv {
    /// The way to convolve `inputs` channels to `out` with `kernel` taps `dilation` steps apart;
    /// None where a plain product is as good: one tap, or channels that do not fill vectors.
    pub fn new(
        inputs: usize,
        out: usize,
        kernel: usize,
        dilation: usize,
        padding: (usize, usize),
    ) -> Option<ShortConv> {
        let narrow = out <= NARROW;
        if !(2..=14).contains(&kernel)
            || dilation == 0
            || !inputs.is_multiple_of(PANEL)
            || !(narrow || out.is_multiple_of(PANEL))
        {
            return None;
        }
        let groups = kernel.div_ceil(7);
        let taps = kernel.div_ceil(groups);
        let way = match narrow {
            true => Way::Narrow,
            false => Way::Tiles(Scheme::new(&ToomCook::new(points(kernel), taps))),
        };
        Some(ShortConv {
            inputs,
            out,
            kernel,
            dilation,
            padding,
            groups,
            taps,
            way,
        })
    }

    /// Number of values of the transformed weight.
    pub fn values(&self) -> usize {
        match &self.way {
            Way::Narrow => self.out * self.kernel * self.inputs,
            Way::Tiles(scheme) => scheme.points * self.groups * self.inputs * self.out,
        }
    }

    /// A kernel `[out, in, taps]` in the form that [`Tensor::short_conv`] wants.
    ///
    /// # Panics
    /// If its shape is another, which is a mistake in the model's code.
    pub fn transform(&self, kernel: &HostTensor) -> HostTensor {
        assert_eq!(kernel.shape, [self.out, self.inputs, self.kernel]);
        let Way::Tiles(scheme) = &self.way else {
            return kernel.conv_matrix().reshape(&[self.values()]);
        };
        let matrices = ToomCook::new(scheme.points, self.taps);
        let depth = self.groups * self.inputs;
        // [panel of outputs][point][group and input][output in the panel]
        let mut data = vec![0.0; self.values()];
        for (o, row) in kernel.data.chunks_exact(self.inputs * self.kernel).enumerate() {
            for (c, taps) in row.chunks_exact(self.kernel).enumerate() {
                for (g, taps) in taps.chunks(self.taps).enumerate() {
                    for (p, powers) in matrices.kernel.iter().enumerate() {
                        let value = powers.iter().zip(taps);
                        let value: f64 = value.map(|(a, &w)| a * f64::from(w)).sum();
                        let line = (o / PANEL * scheme.points + p) * depth + g * self.inputs + c;
                        data[line * PANEL + o % PANEL] = value as f32;
                    }
                }
            }
        }
        HostTensor::new(&[self.values()], data)
    }

    fn output_len(&self, time: usize) -> Option<usize> {
        (time + self.padding.0 + self.padding.1)
            .checked_sub((self.kernel - 1) * self.dilation)
            .filter(|&n| n > 0)
    }
}

/// Points of the scheme: more points save more products and cost more additions and precision.
fn points(kernel: usize) -> usize {
    match kernel {
        2 | 3 => 8,
        4 | 5 => 10,
        _ => 12,
    }
}

impl<'g> Tensor<'g> {
    /// The convolution `plan` of x `[batch, time, in]` with a weight from
    /// [`ShortConv::transform`] and what is [`Around`] it -> `[batch, time', out]`. For the CPU:
    /// ask for [`FastPath::ShortConv`](crate::backend::FastPath::ShortConv).
    pub fn short_conv(
        self,
        weight: &DeviceTensor,
        bias: Option<&DeviceTensor>,
        plan: &ShortConv,
        around: Around<'_, 'g>,
    ) -> Tensor<'g> {
        let [batch, time, channels] = self.dims();
        let shape = plan
            .output_len(time)
            .and_then(|steps| Shape::new(&[batch, steps, plan.out]));
        let fits = channels == plan.inputs
            && self.dtype() == DType::F32
            && weight.dtype() == DType::F32
            && weight.shape() == [plan.values()]
            && bias.is_none_or(|b| b.shape() == [plan.out] && b.dtype() == DType::F32)
            && around.plus.len() <= MOST_SUMMANDS
            && around.plus.iter().all(|p| {
                p.dtype() == DType::F32 && shape.is_some_and(|s| p.extents() == s)
            })
            && self.scope().device().is_cpu();
        let Some(shape) = shape.filter(|_| fits) else {
            return self.scope().mistake(
                "short_conv",
                format!("{self:?} by {weight:?}, {plan:?}, on a CPU"),
            );
        };
        let mut inputs = vec![self.packed_rows(), self.scope().stored(weight)];
        inputs.extend(bias.map(|bias| self.scope().stored(bias)));
        inputs.extend(around.plus.iter().map(|plus| plus.packed_rows()));
        let op = ShortConvOp {
            plan: plan.clone(),
            bias: bias.is_some(),
            slope: around.slope,
            scale: around.scale,
        };
        self.scope().host_op(shape, &inputs, op)
    }
}

struct ShortConvOp {
    plan: ShortConv,
    bias: bool,
    slope: f32,
    scale: f32,
}

thread_local! {
    static SCRATCH: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// Work shared between threads is cut in at least this many pieces for each.
const PIECES: usize = 2;

// SAFETY: a job is a block of steps and a run of channels, and no two jobs overlap.
unsafe impl HostOp for ShortConvOp {
    fn run(&self, inputs: &[Operand], output: &Output, share: Share) {
        let plan = &self.plan;
        let [_, steps, batch, _] = output.ne;
        match &plan.way {
            Way::Narrow => {
                for item in 0..batch {
                    self.narrow(inputs, output, item, share.of_range(steps));
                }
            }
            Way::Tiles(scheme) => {
                let tiles = Tiles::new(steps, scheme.outputs, plan.dilation);
                let each = tiles.block(plan.groups * plan.inputs, share.of);
                let blocks = tiles.count.div_ceil(each);
                let panels = plan.out / PANEL;
                let parts = (PIECES * share.of).div_ceil(blocks * batch).clamp(1, panels);
                for job in share.of_jobs(blocks * parts * batch) {
                    let (item, job) = (job / (blocks * parts), job % (blocks * parts));
                    let (block, part) = (job / parts, job % parts);
                    let range = block * each..((block + 1) * each).min(tiles.count);
                    let panels = panels * part / parts..panels * (part + 1) / parts;
                    self.tiles(scheme, inputs, output, item, &tiles, range, panels);
                }
            }
        }
    }
}

impl ShortConvOp {
    /// Steps `steps` one by one.
    fn narrow(
        &self,
        inputs: &[Operand],
        output: &Output,
        item: usize,
        steps: std::ops::Range<usize>,
    ) {
        let plan = &self.plan;
        let (x, weight) = (&inputs[0], inputs[1].row_f32(0, 0, 0));
        let bias = self.bias.then(|| inputs[2].row_f32(0, 0, 0));
        for t in steps {
            for o in 0..plan.out {
                let mut sum = bias.map_or(0.0, |bias| bias[o]);
                for k in 0..plan.kernel {
                    let at = (t + k * plan.dilation).wrapping_sub(plan.padding.0);
                    if at < x.ne[1] {
                        let line = (o * plan.kernel + k) * plan.inputs;
                        let weight = &weight[line..line + plan.inputs];
                        sum += crate::simd::leaky_dot(x.row_f32(at, item, 0), weight, self.slope);
                    }
                }
                for plus in &inputs[2 + usize::from(self.bias)..] {
                    sum += plus.row_f32(t, item, 0)[o];
                }
                // SAFETY: these steps are this share's own.
                let out = unsafe { output.row([t, item, 0], o..o + 1) };
                out[0] = sum * self.scale;
            }
        }
    }

    /// Tiles `range` of channel panels `panels`.
    #[allow(clippy::too_many_arguments)]
    fn tiles(
        &self,
        scheme: &Scheme,
        inputs: &[Operand],
        output: &Output,
        item: usize,
        tiles: &Tiles,
        range: std::ops::Range<usize>,
        panels: std::ops::Range<usize>,
    ) {
        let plan = &self.plan;
        let (x, weight) = (&inputs[0], inputs[1].row_f32(0, 0, 0));
        let bias = self.bias.then(|| inputs[2].row_f32(0, 0, 0));
        let plus = &inputs[2 + usize::from(self.bias)..];
        let depth = plan.groups * plan.inputs;
        let rows = range.len().next_multiple_of(4);
        // Not a multiple of a power of two, so that rows do not compete for the same cache lines.
        let line = depth + PANEL;
        let (values, products) = (scheme.points * rows * line, scheme.points * rows * PANEL);
        SCRATCH.with_borrow_mut(|scratch| {
            if scratch.len() < values + products + plan.inputs {
                scratch.resize(values + products + plan.inputs, 0.0);
            }
            let (values, rest) = scratch.split_at_mut(values);
            let (products, rest) = rest.split_at_mut(products);
            let zeros = &mut rest[..plan.inputs];
            zeros.fill(0.0);
            for (i, tile) in range.clone().enumerate() {
                let base = tiles.base(tile);
                for group in 0..plan.groups {
                    let first = base + group * plan.taps * plan.dilation;
                    let row = |i: usize| {
                        let at = (first + i * plan.dilation).wrapping_sub(plan.padding.0);
                        match at < x.ne[1] {
                            true => x.row_f32(at, item, 0),
                            false => &*zeros,
                        }
                    };
                    let to = &mut values[i * line + group * plan.inputs..];
                    kernels::input(scheme, row, self.slope, to, rows * line);
                }
            }
            for panel in panels {
                let size = scheme.points * depth * PANEL;
                let weight = &weight[panel * size..(panel + 1) * size];
                kernels::products(scheme, values, line, rows, weight, products);
                let channels = panel * PANEL..(panel + 1) * PANEL;
                let bias = bias.map(|bias| &bias[channels.clone()]);
                for (i, tile) in range.clone().enumerate() {
                    let tile = Tile {
                        base: tiles.base(tile),
                        step: plan.dilation,
                        channels: channels.clone(),
                        item,
                        bias,
                        plus,
                        scale: self.scale,
                    };
                    let products = &products[i * PANEL..];
                    // SAFETY: these steps and channels are this job's own.
                    unsafe { kernels::output(scheme, products, rows * PANEL, &tile, output) };
                }
            }
        });
    }
}

/// The tiles of a result: a tile is `outputs` steps, `dilation` apart.
struct Tiles {
    count: usize,
    outputs: usize,
    dilation: usize,
}

/// Most tiles in a block: with their weights they should stay in the second-level cache.
const BLOCK: usize = 48;

impl Tiles {
    fn new(steps: usize, outputs: usize, dilation: usize) -> Tiles {
        let whole = outputs * dilation;
        Tiles {
            count: steps / whole * dilation + (steps % whole).min(dilation),
            outputs,
            dilation,
        }
    }

    /// First step of a tile.
    fn base(&self, tile: usize) -> usize {
        tile / self.dilation * self.outputs * self.dilation + tile % self.dilation
    }

    /// Tiles in one block of work.
    fn block(&self, depth: usize, threads: usize) -> usize {
        let most = if depth > 256 { BLOCK / 2 } else { BLOCK };
        self.count.div_ceil(threads).next_multiple_of(4).min(most)
    }
}

#[cfg(test)]
#[path = "short_conv_tests.rs"]
mod tests;
