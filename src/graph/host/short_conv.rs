//! Convolutions along time by the scheme of Toom and Cook: half to a third of the products.

use super::{
    HostOp, Operand, Output, Share,
    kernels::{MOST_SUMMANDS, PANEL, Scheme},
    packed::{Packed, ShortWeight},
    pass::{BLOCK, Pass, ROWS, Rows, RowsMut},
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
    pub(super) inputs: usize,
    pub(super) out: usize,
    pub(super) kernel: usize,
    pub(super) dilation: usize,
    /// Zeros before the input, and after it.
    pub(super) padding: (usize, usize),
    /// The taps are cut in `groups` runs of `taps`.
    pub(super) groups: usize,
    pub(super) taps: usize,
    /// Whether the weights keep their size, and are transformed whenever they are used.
    pub(super) late: bool,
    pub(super) way: Way,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Way {
    /// Sums of products, for a handful of outputs.
    Narrow,
    /// One tap: a product with weights that lie ready for it.
    Plain(Scheme),
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

impl<'g> Around<'_, 'g> {
    /// What comes after the convolution.
    pub(crate) fn after(&self, y: Tensor<'g>) -> Tensor<'g> {
        let y = self.plus.iter().fold(y, |y, &more| y + more);
        match self.scale {
            1.0 => y,
            scale => y.scale(scale),
        }
    }
}

/// Outputs up to which the sums are formed one by one.
const NARROW: usize = 4;

impl ShortConv {
    /// The way to convolve `inputs` channels to `out` with `kernel` taps `dilation` steps apart;
    /// None where channels do not fill vectors.
    pub fn new(
        inputs: usize,
        out: usize,
        kernel: usize,
        dilation: usize,
        padding: (usize, usize),
    ) -> Option<ShortConv> {
        let narrow = out <= NARROW;
        if !(1..=14).contains(&kernel)
            || dilation == 0
            || !inputs.is_multiple_of(PANEL)
            || !(narrow || out.is_multiple_of(PANEL))
        {
            return None;
        }
        let groups = kernel.div_ceil(7);
        let taps = kernel.div_ceil(groups);
        let way = match (narrow, kernel) {
            (true, _) => Way::Narrow,
            (_, 1) => Way::Plain(Scheme::plain()),
            _ => Way::Tiles(Scheme::new(&ToomCook::new(points(kernel), taps))),
        };
        Some(ShortConv {
            inputs,
            out,
            kernel,
            dilation,
            padding,
            groups,
            taps,
            late: false,
            way,
        })
    }

    /// The same with weights that keep their size and are transformed whenever they are used,
    /// where it can: for layers with many weights and few steps.
    pub fn late(self) -> ShortConv {
        ShortConv {
            late: self.groups == 1 && matches!(self.way, Way::Tiles(_)),
            ..self
        }
    }

    /// Channels in and out.
    pub fn channels(&self) -> [usize; 2] {
        [self.inputs, self.out]
    }

    /// Number of values of the transformed weight.
    pub fn values(&self) -> usize {
        match &self.way {
            Way::Narrow => self.out * self.kernel * self.inputs,
            Way::Tiles(_) if self.late => self.kernel * self.inputs * self.out,
            Way::Plain(scheme) | Way::Tiles(scheme) => {
                scheme.points * self.groups * self.inputs * self.out
            }
        }
    }

    /// A kernel `[out, in, taps]` in the form that [`Tensor::short_conv`] wants.
    ///
    /// # Panics
    /// If its shape is another, which is a mistake in the model's code.
    pub fn transform(&self, kernel: &HostTensor) -> HostTensor {
        assert_eq!(kernel.shape, [self.out, self.inputs, self.kernel]);
        let powers = match &self.way {
            Way::Narrow => return kernel.conv_matrix().reshape(&[self.values()]),
            Way::Plain(_) => vec![vec![1.0]],
            Way::Tiles(_) if self.late => (0..self.taps).map(|k| unit(self.taps, k)).collect(),
            Way::Tiles(scheme) => ToomCook::new(scheme.points, self.taps).kernel,
        };
        let depth = self.groups * self.inputs;
        // [panel of outputs][point][group and input][output in the panel]
        let mut data = vec![0.0; self.values()];
        for (o, row) in kernel
            .data
            .chunks_exact(self.inputs * self.kernel)
            .enumerate()
        {
            for (c, taps) in row.chunks_exact(self.kernel).enumerate() {
                for (g, taps) in taps.chunks(self.taps).enumerate() {
                    for (p, line) in powers.iter().enumerate() {
                        let value = line.iter().zip(taps);
                        let value: f64 = value.map(|(a, &w)| a * f64::from(w)).sum();
                        let line = (o / PANEL * powers.len() + p) * depth + g * self.inputs + c;
                        data[line * PANEL + o % PANEL] = value as f32;
                    }
                }
            }
        }
        HostTensor::new(&[self.values()], data)
    }

    /// Steps in one piece of work, of `steps` in all: whole tiles.
    fn block(&self, steps: usize, threads: usize) -> usize {
        let share = steps.div_ceil(threads);
        match &self.way {
            Way::Narrow => share,
            // Even parts that are whole blocks of rows.
            Way::Plain(_) => steps.div_ceil(steps.div_ceil(ROWS)).next_multiple_of(12),
            Way::Tiles(scheme) => {
                let most = BLOCK.max(self.dilation) / self.dilation * self.dilation;
                let whole = self.dilation * scheme.outputs;
                share.next_multiple_of(whole).min(most * scheme.outputs)
            }
        }
    }

    pub(super) fn output_len(&self, time: usize) -> Option<usize> {
        (time + self.padding.0 + self.padding.1)
            .checked_sub((self.kernel - 1) * self.dilation)
            .filter(|&n| n > 0)
    }
}

/// The k-th of `n` unit vectors.
fn unit(n: usize, k: usize) -> Vec<f64> {
    (0..n).map(|i| f64::from(u8::from(i == k))).collect()
}

/// Points of the scheme: more points save more products and cost more additions and precision.
/// The fastest at 32 to 128 channels.
fn points(kernel: usize) -> usize {
    match kernel {
        2 | 3 => 8,
        4 => 10,
        _ => 12,
    }
}

impl<'g> Tensor<'g> {
    /// The convolution `plan` of x `[batch, time, in]` with its weight and what is [`Around`] it ->
    /// `[batch, time', out]`. For the CPU: ask for
    /// [`FastPath::ShortConv`](crate::backend::FastPath::ShortConv).
    pub fn short_conv(
        self,
        weight: ShortWeight<'_>,
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
            && weight.fits(plan)
            && bias.is_none_or(|b| b.shape() == [plan.out] && b.dtype() == DType::F32)
            && around.plus.len() <= MOST_SUMMANDS
            && around
                .plus
                .iter()
                .all(|p| p.dtype() == DType::F32 && shape.is_some_and(|s| p.extents() == s))
            && self.scope().device().is_cpu();
        let Some(shape) = shape.filter(|_| fits) else {
            return self.scope().mistake(
                "short_conv",
                format!("{self:?} by {weight:?}, {plan:?}, on a CPU"),
            );
        };
        let (weight, packed) = weight.inputs(self.scope(), plan);
        let mut inputs = vec![self.packed_rows()];
        inputs.extend(weight);
        inputs.extend(bias.map(|bias| self.scope().stored(bias)));
        inputs.extend(around.plus.iter().map(|plus| plus.packed_rows()));
        let op = ShortConvOp {
            plan: plan.clone(),
            packed,
            bias: bias.is_some(),
            slope: around.slope,
            scale: around.scale,
        };
        self.scope().host_op(shape, &inputs, op)
    }
}

struct ShortConvOp {
    plan: ShortConv,
    /// Whether the weight is packed: two inputs instead of one.
    packed: bool,
    bias: bool,
    slope: f32,
    scale: f32,
}

/// Work shared between threads is cut in at least this many pieces for each.
const PIECES: usize = 2;

// SAFETY: a job is a block of steps and a run of channels, and no two jobs overlap.
unsafe impl HostOp for ShortConvOp {
    fn run(&self, inputs: &[Operand], output: &Output, share: Share) {
        let plan = &self.plan;
        let [_, steps, batch, _] = output.ne;
        let panels = plan.out.div_ceil(PANEL);
        let each = plan.block(steps, share.of);
        let blocks = steps.div_ceil(each);
        let parts = (PIECES * share.of)
            .div_ceil(blocks * batch)
            .clamp(1, panels);
        let (x, inputs) = (&inputs[0], &inputs[1..]);
        let (weight, rest) = inputs.split_at(1 + usize::from(self.packed));
        let (bias, plus) = rest.split_at(usize::from(self.bias));
        let packed = self.packed.then(|| Packed::of(&weight[0], &weight[1]));
        let weight: &[f32] = match self.packed {
            true => &[],
            false => weight[0].row_f32(0, 0, 0),
        };
        let bias = bias.first().map(|bias| bias.row_f32(0, 0, 0));
        for job in share.of_jobs(blocks * parts * batch) {
            let (item, job) = (job / (blocks * parts), job % (blocks * parts));
            let (block, part) = (job / parts, job % parts);
            let plus: Vec<Rows> = plus.iter().map(|x| Rows::of(x, item)).collect();
            let pass = Pass {
                plan,
                weight,
                packed,
                bias,
                slope: self.slope,
                scale: self.scale,
                input: Rows::of(x, item),
                plus: &plus,
                panels: panels * part / parts..panels * (part + 1) / parts,
            };
            let steps = block * each..((block + 1) * each).min(steps);
            // SAFETY: these steps and channels are this job's own.
            unsafe { pass.run(steps, RowsMut::of(output, item)) };
        }
    }
}

#[cfg(test)]
#[path = "short_conv_tests.rs"]
pub(super) mod tests;
