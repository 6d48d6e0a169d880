//! Convolutions over a plane by the scheme of Toom and Cook along its width: half of the products.
//! Lines of the kernel are further channels of a convolution along one axis.

use std::{cell::RefCell, ops::Range};

use super::{
    HostOp, Operand, Output, Share,
    kernels::{self, PANEL, Scheme, Steps},
    pass::{BLOCK, Pass, Rows, RowsMut},
    short_conv::{ShortConv, Way},
};
use crate::{
    graph::{Conv2d, DType, DeviceTensor, Tensor, shape::Shape},
    weights::HostTensor,
};

/// How a convolution over a plane (stride 1) is computed by [`Tensor::short_conv2d`], and how its
/// weights lie.
#[derive(Debug, Clone, PartialEq)]
pub struct ShortConv2d {
    /// The convolution of all lines that the kernel sees, as channels of one line.
    plan: ShortConv,
    shape: Conv2d,
    inputs: usize,
}

impl ShortConv2d {
    /// The way to convolve `inputs` channels to `out`; None where channels do not fill vectors or
    /// the geometry is another.
    pub fn new([out, inputs]: [usize; 2], shape: Conv2d) -> Option<ShortConv2d> {
        let [down, across] = shape.kernel;
        let whole = shape.stride == [1, 1]
            && shape.dilation == [1, 1]
            && (2..=7).contains(&across)
            && inputs.is_multiple_of(PANEL)
            && out.is_multiple_of(PANEL);
        let depth = down.checked_mul(inputs).filter(|_| whole)?;
        Some(ShortConv2d {
            plan: ShortConv::new(depth, out, across, 1, shape.padding[1])?,
            shape,
            inputs,
        })
    }

    /// Number of values of the transformed weight.
    pub fn values(&self) -> usize {
        self.plan.values()
    }

    /// A kernel `[out, in, down, across]` in the form that [`Tensor::short_conv2d`] wants.
    ///
    /// # Panics
    /// If its shape is another, which is a mistake in the model's code.
    pub fn transform(&self, kernel: &HostTensor) -> HostTensor {
        let [down, across] = self.shape.kernel;
        assert_eq!(
            kernel.shape,
            [self.plan.out, self.inputs, down, across],
            "the kernel of a plane"
        );
        let lines = kernel.permute(&[0, 2, 1, 3]);
        let depth = down * self.inputs;
        self.plan
            .transform(&lines.reshape(&[self.plan.out, depth, across]))
    }
}

impl<'g> Tensor<'g> {
    /// The convolution `plan` of x `[batch, height, width, in]` with a weight from
    /// [`ShortConv2d::transform`] and a bias `[out]` -> `[batch, height', width', out]`. For the
    /// CPU: ask for [`FastPath::ShortConv`](crate::backend::FastPath::ShortConv).
    pub fn short_conv2d(
        self,
        weight: &DeviceTensor,
        bias: Option<&DeviceTensor>,
        plan: &ShortConv2d,
    ) -> Tensor<'g> {
        let [batch, height, width, channels] = self.dims();
        let out = plan.plan.out;
        let fits = channels == plan.inputs
            && self.dtype() == DType::F32
            && weight.dtype() == DType::F32
            && weight.shape() == [plan.values()]
            && bias.is_none_or(|b| b.shape() == [out] && b.dtype() == DType::F32)
            && self.scope().device().is_cpu();
        let size = plan.shape.output([height, width]).filter(|_| fits);
        let whole = size.and_then(|[h, w]| Some(([h, w], Shape::new(&[batch * h, w, out])?)));
        let Some(([h, w], whole)) = whole else {
            return self.scope().mistake(
                "short_conv2d",
                format!("{self:?} by {weight:?}, {plan:?}, on a CPU"),
            );
        };
        let lines = self
            .contiguous()
            .reshape(&[batch * height, width, channels]);
        let mut inputs = vec![lines, self.scope().stored(weight)];
        inputs.extend(bias.map(|bias| self.scope().stored(bias)));
        let op = PlaneTiles {
            plan: plan.clone(),
            heights: [height, h],
        };
        let y = self.scope().host_op(whole, &inputs, op);
        y.reshape(&[batch, h, w, out])
    }
}

struct PlaneTiles {
    plan: ShortConv2d,
    /// Lines of an image before and after.
    heights: [usize; 2],
}

/// Work is cut in at least this many pieces for each thread, so that they end together.
const PIECES: usize = 16;

thread_local! {
    static SCRATCH: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

// SAFETY: a job is some tiles and a run of their channels, and no two jobs overlap.
unsafe impl HostOp for PlaneTiles {
    fn run(&self, inputs: &[Operand], output: &Output, share: Share) {
        let plan = &self.plan.plan;
        let Way::Tiles(scheme) = &plan.way else {
            return;
        };
        let [_, width, lines, _] = output.ne;
        let tiles = lines * width.div_ceil(scheme.outputs);
        let panels = plan.out.div_ceil(PANEL);
        let blocks = tiles.div_ceil(BLOCK);
        let parts = (PIECES * share.of).div_ceil(blocks).clamp(1, panels);
        let bias = inputs.get(2).map(|bias| bias.row_f32(0, 0, 0));
        for job in share.of_jobs(blocks * parts) {
            let (block, part) = (job / parts, job % parts);
            let pass = Pass {
                plan,
                weight: inputs[1].row_f32(0, 0, 0),
                packed: None,
                bias,
                slope: 1.0,
                scale: 1.0,
                input: Rows::of(&inputs[0], 0),
                plus: &[],
                panels: panels * part / parts..panels * (part + 1) / parts,
            };
            let tiles = block * BLOCK..((block + 1) * BLOCK).min(tiles);
            self.tiles(scheme, &pass, &inputs[0], tiles, output);
        }
    }
}

impl PlaneTiles {
    /// Computes `tiles`, counted line by line, of the panels of `pass`.
    fn tiles(
        &self,
        scheme: &Scheme,
        pass: &Pass,
        x: &Operand,
        tiles: Range<usize>,
        output: &Output,
    ) {
        let depth = pass.plan.inputs;
        let rows = tiles.len().next_multiple_of(4);
        // Not a multiple of a power of two, so that rows do not compete for the same cache lines.
        let line = depth + PANEL;
        let (values, products) = (scheme.points * rows * line, scheme.points * rows * PANEL);
        let width = output.ne[1];
        let across = width.div_ceil(scheme.outputs);
        let place = |tile: usize| (tile / across, tile % across * scheme.outputs);
        SCRATCH.with_borrow_mut(|scratch| {
            let all = values + products + self.plan.inputs;
            if scratch.len() < all {
                scratch.resize(all, 0.0);
            }
            let (values, rest) = scratch.split_at_mut(values);
            let (products, zeros) = rest.split_at_mut(products);
            let zeros = &mut zeros[..self.plan.inputs];
            zeros.fill(0.0);
            for (i, tile) in tiles.clone().enumerate() {
                self.gather(
                    scheme,
                    x,
                    place(tile),
                    zeros,
                    &mut values[i * line..],
                    rows * line,
                );
            }
            let size = pass.plan.values() / pass.plan.out * PANEL;
            for panel in pass.panels.clone() {
                let weight = &pass.weight[panel * size..(panel + 1) * size];
                kernels::products(scheme, values, line, rows, weight, products);
                for (i, tile) in tiles.clone().enumerate() {
                    let (row, first) = place(tile);
                    let steps = Steps {
                        first,
                        apart: 1,
                        count: (width - first).min(scheme.outputs),
                    };
                    let (from, to) = (&products[i * PANEL..], RowsMut::of(output, row));
                    // SAFETY: these steps of this panel are the job's own.
                    unsafe {
                        kernels::output(scheme, from, rows * PANEL, pass, panel, steps, &to);
                    }
                }
            }
        });
    }

    /// What the tile of line `row` from step `first` on sees, at the points: those are `step`
    /// values apart in `to`.
    fn gather(
        &self,
        scheme: &Scheme,
        x: &Operand,
        (row, first): (usize, usize),
        zeros: &[f32],
        to: &mut [f32],
        step: usize,
    ) {
        let [height, height_out] = self.heights;
        let [(top, _), (left, _)] = self.plan.shape.padding;
        let (image, row) = (row / height_out, row % height_out);
        for down in 0..self.plan.shape.kernel[0] {
            let at = (row + down).wrapping_sub(top);
            let line = (at < height).then(|| Rows::of(x, image * height + at));
            let pixel = |i: usize| {
                let at = (first + i).wrapping_sub(left);
                line.as_ref().and_then(|line| line.get(at)).unwrap_or(zeros)
            };
            let to = &mut to[down * self.plan.inputs..];
            kernels::input(scheme, pixel, 1.0, to, step);
        }
    }
}
