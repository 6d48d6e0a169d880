//! Residual blocks of convolutions, side by side, a stretch of time at a time: what passes from
//! layer to layer never leaves the processor's cache.

use std::{cell::RefCell, ops::Range};

use super::{
    HostOp, Operand, Output, Share,
    kernels::PANEL,
    pass::{Pass, Rows, RowsMut},
    short_conv::ShortConv,
};
use crate::graph::{DType, DeviceTensor, Tensor};

/// A layer of a residual block: x + conv(leaky(x)), or x + second(leaky(conv(leaky(x)))). The
/// convolutions keep length and channels; a weight is from [`ShortConv::transform`], a bias
/// `[channels]`.
#[derive(Clone, Copy)]
pub struct ResidualLayer<'l> {
    /// The first convolution.
    pub first: (&'l ShortConv, &'l DeviceTensor, &'l DeviceTensor),
    /// The second, where there is one.
    pub second: Option<(&'l ShortConv, &'l DeviceTensor, &'l DeviceTensor)>,
}

impl<'g> Tensor<'g> {
    /// The mean of residual blocks over the same x `[1, time, channels]`, each a chain of layers;
    /// leaky rectifiers of slope `slope`. For the CPU: ask for
    /// [`FastPath::ShortConv`](crate::backend::FastPath::ShortConv).
    pub fn residual_blocks(self, blocks: &[Vec<ResidualLayer>], slope: f32) -> Tensor<'g> {
        let [batch, time, channels] = self.dims();
        let convs = || {
            let layers = blocks.iter().flatten();
            layers.flat_map(|layer| [Some(layer.first), layer.second].into_iter().flatten())
        };
        let fits = batch == 1
            && self.dtype() == DType::F32
            && self.scope().device().is_cpu()
            && !blocks.is_empty()
            && blocks.iter().all(|layers| !layers.is_empty())
            && convs().all(|(plan, weight, bias)| {
                plan.keeps(channels, time)
                    && weight.shape() == [plan.values()]
                    && bias.shape() == [channels]
                    && [weight, bias].iter().all(|t| t.dtype() == DType::F32)
            });
        if !fits {
            return self.scope().mistake(
                "residual_blocks",
                format!("{self:?} by {} blocks, on a CPU", blocks.len()),
            );
        }
        // A node has few inputs, so weights are given by address; the scope keeps their memory.
        let scope = self.scope();
        let conv = |(plan, weight, bias): (&ShortConv, &DeviceTensor, &DeviceTensor)| Conv {
            plan: plan.clone(),
            weight: Stored::of(scope.stored(weight)),
            bias: Stored::of(scope.stored(bias)),
        };
        let layer = |layer: &ResidualLayer| Layer {
            first: conv(layer.first),
            second: layer.second.map(conv),
        };
        let op = Residual {
            blocks: blocks
                .iter()
                .map(|layers| layers.iter().map(layer).collect())
                .collect(),
            slope,
        };
        self.scope()
            .host_op(self.extents(), &[self.packed_rows()], op)
    }
}

impl ShortConv {
    /// Whether the output has the channels and the length of an input of `channels` by `time`.
    fn keeps(&self, channels: usize, time: usize) -> bool {
        self.inputs == channels && self.out == channels && self.output_len(time) == Some(time)
    }
}

/// A stored tensor's memory.
struct Stored(Operand);

// SAFETY: the memory is only read, and lives as long as the graph.
unsafe impl Send for Stored {}
// SAFETY: as above.
unsafe impl Sync for Stored {}

impl Stored {
    fn of(tensor: Tensor) -> Stored {
        // SAFETY: a stored tensor is allocated, and on a CPU its memory is in reach.
        Stored(unsafe { Operand::of(tensor.ptr.as_ptr()) })
    }

    fn values(&self) -> &[f32] {
        self.0.row_f32(0, 0, 0)
    }
}

struct Conv {
    plan: ShortConv,
    weight: Stored,
    bias: Stored,
}

struct Layer {
    first: Conv,
    second: Option<Conv>,
}

struct Residual {
    blocks: Vec<Vec<Layer>>,
    slope: f32,
}

/// Values that are computed together, where there are enough: with what surrounds them they stay
/// in the second-level cache.
const STRETCH: usize = 1 << 16;
/// Steps beyond which longer stretches no longer pay.
const MOST_STEPS: usize = 1024;

thread_local! {
    static ROOM: RefCell<[Vec<f32>; 3]> = const { RefCell::new([const { Vec::new() }; 3]) };
}

// SAFETY: a job is a stretch of steps, and no two jobs overlap.
unsafe impl HostOp for Residual {
    fn run(&self, inputs: &[Operand], output: &Output, share: Share) {
        let [channels, steps, _, _] = output.ne;
        let most = (STRETCH / channels).clamp(1, MOST_STEPS);
        // Even stretches, a multiple of the number of threads.
        let count = steps.div_ceil(most).next_multiple_of(share.of);
        let stretch = |i: usize| steps * i / count..steps * (i + 1) / count;
        let x = Rows::of(&inputs[0], 0);
        ROOM.with_borrow_mut(|room| {
            for job in share.of_jobs(count) {
                // SAFETY: these steps are this job's own.
                unsafe { self.stretch(&x, stretch(job), steps, room, RowsMut::of(output, 0)) };
            }
        });
    }
}

impl Residual {
    /// # Safety
    /// Nothing else touches the rows `steps` of `to`.
    unsafe fn stretch(
        &self,
        x: &Rows,
        steps: Range<usize>,
        all: usize,
        room: &mut [Vec<f32>; 3],
        to: RowsMut,
    ) {
        if steps.is_empty() {
            return;
        }
        for (number, layers) in self.blocks.iter().enumerate() {
            // What later blocks add to lies where the earlier ones have put it.
            let sum = (number > 0).then(|| to.rows());
            let last = number + 1 == self.blocks.len();
            let scale = if last {
                1.0 / self.blocks.len() as f32
            } else {
                1.0
            };
            // SAFETY: by the caller's promise.
            unsafe { self.chain(layers, x.clone(), &steps, all, room, sum, scale, &to) };
        }
    }

    /// One block, its result (plus `sum`, times `scale`) to `to`.
    ///
    /// # Safety
    /// As [`stretch`](Self::stretch).
    #[allow(clippy::too_many_arguments)]
    unsafe fn chain(
        &self,
        layers: &[Layer],
        x: Rows,
        steps: &Range<usize>,
        all: usize,
        room: &mut [Vec<f32>; 3],
        sum: Option<Rows>,
        scale: f32,
        to: &RowsMut,
    ) {
        let mut x = x;
        for (i, layer) in layers.iter().enumerate() {
            let reach: usize = layers[i + 1..].iter().map(Layer::reach).sum();
            let wanted = around(steps, reach, all);
            let mut plus = vec![x.clone()];
            let mut input = x.clone();
            let end = layer.second.as_ref().unwrap_or(&layer.first);
            if layer.second.is_some() {
                let wider = around(&wanted, end.reach(), all);
                let (target, source) = claim(&mut room[2], &wider, layer.first.plan.out);
                // SAFETY: the room is this thread's own.
                unsafe { self.pass(&layer.first, input, &[], 1.0, wider, target) };
                input = source;
            }
            if i + 1 == layers.len() {
                plus.extend(sum.clone());
                // SAFETY: by the caller's promise.
                unsafe { self.pass(end, input, &plus, scale, wanted, to.clone()) };
                return;
            }
            // Two rooms in turn: one is read while the other is written.
            let (target, source) = claim(&mut room[i % 2], &wanted, end.plan.out);
            // SAFETY: the room is this thread's own, and not the one that is read.
            unsafe { self.pass(end, input, &plus, 1.0, wanted, target) };
            x = source;
        }
    }

    /// # Safety
    /// As [`Pass::run`].
    unsafe fn pass(
        &self,
        conv: &Conv,
        input: Rows,
        plus: &[Rows],
        scale: f32,
        steps: Range<usize>,
        to: RowsMut,
    ) {
        let pass = Pass {
            plan: &conv.plan,
            weight: conv.weight.values(),
            packed: None,
            bias: Some(conv.bias.values()),
            slope: self.slope,
            scale,
            input,
            plus,
            panels: 0..conv.plan.out / PANEL,
        };
        // SAFETY: by the caller's promise.
        unsafe { pass.run(steps, to) };
    }
}

impl Conv {
    fn reach(&self) -> usize {
        let (before, after) = self.plan.padding;
        before.max(after)
    }
}

impl Layer {
    /// Steps on each side that a step depends on.
    fn reach(&self) -> usize {
        self.first.reach() + self.second.as_ref().map_or(0, Conv::reach)
    }
}

/// Room for `steps`, to be written and then read. It stays where it is until it is claimed again.
fn claim(room: &mut Vec<f32>, steps: &Range<usize>, width: usize) -> (RowsMut, Rows<'static>) {
    if room.len() < steps.len() * width {
        room.resize(steps.len() * width, 0.0);
    }
    let rows = RowsMut::packed(room, steps.clone(), width);
    let source = rows.rows();
    (rows, source)
}

/// `steps` and `reach` more on both sides, as far as there are any.
fn around(steps: &Range<usize>, reach: usize, all: usize) -> Range<usize> {
    steps.start.saturating_sub(reach)..(steps.end + reach).min(all)
}

#[cfg(test)]
#[path = "residual_tests.rs"]
mod tests;
