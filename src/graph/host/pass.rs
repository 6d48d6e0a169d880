//! One pass of a short convolution over some steps, from rows to rows.

use std::{cell::RefCell, marker::PhantomData, ops::Range};

use super::{
    Operand, Output, kernels,
    kernels::{PANEL, Scheme, Steps},
    packed::Packed,
    short_conv::{ShortConv, Way},
    unpack::{self, Panel},
};

/// Rows of f32 values by step: those that exist are `steps`.
#[derive(Clone)]
pub(super) struct Rows<'a> {
    /// The row of step `steps.start`.
    first: *const f32,
    steps: Range<usize>,
    /// Values from row to row, and values in a row.
    line: usize,
    width: usize,
    memory: PhantomData<&'a [f32]>,
}

impl<'a> Rows<'a> {
    /// All rows of matrix `item` of a tensor.
    pub fn of(x: &'a Operand, item: usize) -> Rows<'a> {
        Rows {
            first: x.row_f32(0, item, 0).as_ptr(),
            steps: 0..x.ne[1],
            line: x.nb[1] / size_of::<f32>(),
            width: x.ne[0],
            memory: PhantomData,
        }
    }

    /// Values from row to row.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The row of a step, if there is one.
    #[inline]
    pub fn get(&self, step: usize) -> Option<&'a [f32]> {
        // SAFETY: the constructors were given memory for every row of `steps`.
        self.steps.contains(&step).then(|| unsafe {
            let row = self.first.add((step - self.steps.start) * self.line);
            std::slice::from_raw_parts(row, self.width)
        })
    }
}

/// As [`Rows`], to be written.
#[derive(Clone)]
pub(super) struct RowsMut {
    first: *mut f32,
    steps: Range<usize>,
    width: usize,
}

impl RowsMut {
    /// All rows of matrix `item` of a result.
    pub fn of(output: &Output, item: usize) -> RowsMut {
        let [width, steps, _, _] = output.ne;
        RowsMut {
            // SAFETY: the matrix lies inside the packed result.
            first: unsafe { output.data.add(item * steps * width) },
            steps: 0..steps,
            width,
        }
    }

    /// Packed rows that stand for `steps`.
    pub fn packed(values: &mut [f32], steps: Range<usize>, width: usize) -> RowsMut {
        assert!(values.len() >= steps.len() * width);
        RowsMut {
            first: values.as_mut_ptr(),
            steps,
            width,
        }
    }

    /// Values in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The same rows, to be read.
    pub fn rows(&self) -> Rows<'static> {
        Rows {
            first: self.first,
            steps: self.steps.clone(),
            line: self.width,
            width: self.width,
            memory: PhantomData,
        }
    }

    /// The address of channel `channel` of the row of a step.
    ///
    /// # Panics
    /// If there is no such place.
    #[inline]
    pub fn at(&self, step: usize, channel: usize) -> *mut f32 {
        assert!(self.steps.contains(&step) && channel < self.width);
        // SAFETY: the constructors were given memory for every row of `steps`.
        unsafe {
            self.first
                .add((step - self.steps.start) * self.width + channel)
        }
    }
}

/// A convolution with what is around it.
pub(super) struct Pass<'a> {
    pub plan: &'a ShortConv,
    pub weight: &'a [f32],
    /// In place of `weight`, which is empty then.
    pub packed: Option<Packed<'a>>,
    pub bias: Option<&'a [f32]>,
    pub slope: f32,
    pub scale: f32,
    pub input: Rows<'a>,
    pub plus: &'a [Rows<'a>],
    /// Panels of output channels.
    pub panels: Range<usize>,
}

thread_local! {
    static SCRATCH: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// Most tiles in a block: with their weights they should stay in the second-level cache.
pub(super) const BLOCK: usize = 24;
/// Most rows of a plain product at a time, for the same reason.
pub(super) const ROWS: usize = 96;

impl Pass<'_> {
    /// Computes `steps` of the output.
    ///
    /// # Safety
    /// Nothing else touches these rows (of these panels) of `to`.
    pub unsafe fn run(&self, steps: Range<usize>, to: RowsMut) {
        // SAFETY: by the caller's promise.
        match &self.plan.way {
            Way::Narrow => unsafe { self.narrow(steps, to) },
            Way::Plain(scheme) => {
                for first in steps.clone().step_by(ROWS) {
                    let range = first..(first + ROWS).min(steps.end);
                    unsafe { self.plain(scheme, range, &to) };
                }
            }
            Way::Tiles(scheme) => {
                let tiles = Tiles::new(steps, scheme.outputs, self.plan.dilation);
                let each = tiles.each();
                for first in (0..tiles.count).step_by(each) {
                    let range = first..(first + each).min(tiles.count);
                    unsafe { self.tiles(scheme, &tiles, range, &to) };
                }
            }
        }
    }

    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn narrow(&self, steps: Range<usize>, to: RowsMut) {
        let plan = self.plan;
        for t in steps {
            for o in 0..plan.out {
                let mut sum = self.bias.map_or(0.0, |bias| bias[o]);
                for k in 0..plan.kernel {
                    let at = (t + k * plan.dilation).wrapping_sub(plan.padding.0);
                    if let Some(row) = self.input.get(at) {
                        let line = (o * plan.kernel + k) * plan.inputs;
                        let weight = &self.weight[line..line + plan.inputs];
                        sum += crate::simd::leaky_dot(row, weight, self.slope);
                    }
                }
                let plus = self.plus.iter().filter_map(|plus| plus.get(t));
                sum += plus.map(|row| row[o]).sum::<f32>();
                // SAFETY: a place of these rows, the caller's own.
                unsafe { to.at(t, o).write(sum * self.scale) };
            }
        }
    }

    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn plain(&self, scheme: &Scheme, steps: Range<usize>, to: &RowsMut) {
        let depth = self.plan.inputs;
        let rows = steps.len().next_multiple_of(4);
        let line = depth + PANEL;
        let (values, products) = (rows * line, rows * PANEL);
        let all = values + products + depth * PANEL;
        SCRATCH.with_borrow_mut(|scratch| {
            if scratch.len() < all {
                scratch.resize(all, 0.0);
            }
            let (values, rest) = scratch.split_at_mut(values);
            let (products, raw) = rest.split_at_mut(products);
            for (t, to) in steps.clone().zip(values.chunks_exact_mut(line)) {
                let at = t.wrapping_sub(self.plan.padding.0);
                match self.input.get(at) {
                    Some(row) => crate::simd::leaky_copy(row, self.slope, &mut to[..depth]),
                    None => to[..depth].fill(0.0),
                }
            }
            for panel in self.panels.clone() {
                let weight = match self.panel(panel) {
                    Panel::Values(weight) => weight,
                    packed => {
                        unpack::values(scheme, packed, &mut raw[..depth * PANEL]);
                        &raw[..depth * PANEL]
                    }
                };
                kernels::products(scheme, values, line, rows, weight, products);
                for (t, products) in steps.clone().zip(products.chunks_exact(PANEL)) {
                    let steps = Steps {
                        first: t,
                        apart: 1,
                        count: 1,
                    };
                    // SAFETY: by the caller's promise.
                    unsafe {
                        kernels::output(scheme, products, PANEL, self, panel, steps, to);
                    }
                }
            }
        });
    }

    /// The weights of a panel as they are kept.
    fn panel(&self, panel: usize) -> Panel<'_> {
        match &self.packed {
            Some(packed) => packed.panel(self.plan, panel, 0..self.plan.kernel),
            None => {
                let size = self.plan.values() / self.plan.out * PANEL;
                Panel::Values(&self.weight[panel * size..(panel + 1) * size])
            }
        }
    }

    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn tiles(&self, scheme: &Scheme, tiles: &Tiles, range: Range<usize>, to: &RowsMut) {
        let plan = self.plan;
        let depth = plan.groups * plan.inputs;
        let rows = range.len().next_multiple_of(4);
        // Not a multiple of a power of two, so that rows do not compete for the same cache lines.
        let line = depth + PANEL;
        let (values, products) = (scheme.points * rows * line, scheme.points * rows * PANEL);
        let transformed = scheme.points * depth * PANEL;
        let all = values + products + plan.inputs + usize::from(plan.late) * transformed;
        SCRATCH.with_borrow_mut(|scratch| {
            if scratch.len() < all {
                scratch.resize(all, 0.0);
            }
            let (values, rest) = scratch.split_at_mut(values);
            let (products, rest) = rest.split_at_mut(products);
            let (zeros, late) = rest.split_at_mut(plan.inputs);
            zeros.fill(0.0);
            for (i, tile) in range.clone().enumerate() {
                for group in 0..plan.groups {
                    let first = tiles.base(tile) + group * plan.taps * plan.dilation;
                    let row = |i: usize| {
                        let at = (first + i * plan.dilation).wrapping_sub(plan.padding.0);
                        self.input.get(at).unwrap_or(zeros)
                    };
                    let to = &mut values[i * line + group * plan.inputs..];
                    kernels::input(scheme, row, self.slope, to, rows * line);
                }
            }
            for panel in self.panels.clone() {
                let weight = match self.panel(panel) {
                    Panel::Values(weight) if !plan.late => weight,
                    kept => {
                        let late = &mut late[..transformed];
                        unpack::transform(scheme, plan.inputs, kept, late, depth * PANEL);
                        late
                    }
                };
                kernels::products(scheme, values, line, rows, weight, products);
                for (i, tile) in range.clone().enumerate() {
                    let first = tiles.base(tile);
                    let left = (tiles.steps.end - first).div_ceil(plan.dilation);
                    let steps = Steps {
                        first,
                        apart: plan.dilation,
                        count: left.min(scheme.outputs),
                    };
                    let products = &products[i * PANEL..];
                    // SAFETY: by the caller's promise.
                    unsafe {
                        kernels::output(scheme, products, rows * PANEL, self, panel, steps, to);
                    }
                }
            }
        });
    }
}

/// The tiles of a run of steps: a tile is `outputs` steps, `dilation` apart.
struct Tiles {
    steps: Range<usize>,
    count: usize,
    outputs: usize,
    dilation: usize,
}

impl Tiles {
    fn new(steps: Range<usize>, outputs: usize, dilation: usize) -> Tiles {
        let whole = outputs * dilation;
        Tiles {
            count: steps.len() / whole * dilation + (steps.len() % whole).min(dilation),
            steps,
            outputs,
            dilation,
        }
    }

    /// First step of a tile.
    fn base(&self, tile: usize) -> usize {
        let whole = self.outputs * self.dilation;
        self.steps.start + tile / self.dilation * whole + tile % self.dilation
    }

    /// Tiles that are computed together.
    fn each(&self) -> usize {
        // Even parts, rather than a rest that is as good as empty.
        let parts = self.count.div_ceil(BLOCK).max(1);
        self.count.div_ceil(parts).next_multiple_of(4)
    }
}
