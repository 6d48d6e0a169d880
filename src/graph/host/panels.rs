//! Products with a matrix that lies in panels of 16 columns: packed once, it serves any number of
//! rows, which are read where they are.

use std::{cell::RefCell, ops::Range};

#[cfg(target_arch = "x86_64")]
use super::vector::{Avx2, Avx512};
use super::{
    Operand, product,
    vector::{Level, Plain, Vector},
};
use crate::graph::DType;

/// Columns of a panel.
pub(super) const PANEL: usize = 16;
/// Rows of a panel that are multiplied at a time: they should stay in the first-level cache.
const DEPTH: usize = 256;
/// Rows of a at a time: those parts of them should stay in the second-level cache.
const ROWS: usize = 96;
/// Values between rows of a that are copied before they are used, and between those of the copy.
const STRIDE: usize = 64;
const LINE: usize = DEPTH + PANEL;

thread_local! {
    static COPY: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// The room for a packed matrix `[depth, columns]`.
pub(super) fn packed(depth: usize, columns: usize) -> usize {
    columns.next_multiple_of(PANEL) * depth
}

/// Packs the matrix whose columns are `columns` lines of `depth` values, `step` values apart.
///
/// # Safety
/// `from` holds these lines.
pub(super) unsafe fn pack_lines(
    from: *const f32,
    step: usize,
    [depth, columns]: [usize; 2],
    to: &mut [f32],
) {
    for (panel, to) in to.chunks_exact_mut((depth * PANEL).max(1)).enumerate() {
        for c in 0..PANEL {
            let column = panel * PANEL + c;
            if column >= columns {
                to[c..].iter_mut().step_by(PANEL).for_each(|x| *x = 0.0);
                continue;
            }
            // SAFETY: by the caller's promise.
            let line = unsafe { std::slice::from_raw_parts(from.add(column * step), depth) };
            let places = to[c..].iter_mut().step_by(PANEL);
            places.zip(line).for_each(|(to, from)| *to = *from);
        }
    }
}

/// Packs a matrix `[depth, columns]` whose rows are `step` values apart.
///
/// # Safety
/// `from` holds these rows.
pub(super) unsafe fn pack_rows(
    from: *const f32,
    step: usize,
    [depth, columns]: [usize; 2],
    to: &mut [f32],
) {
    for (panel, to) in to.chunks_exact_mut((depth * PANEL).max(1)).enumerate() {
        let first = panel * PANEL;
        let width = (columns - first).min(PANEL);
        for (k, to) in to.chunks_exact_mut(PANEL).enumerate() {
            // SAFETY: by the caller's promise.
            let row = unsafe { std::slice::from_raw_parts(from.add(k * step + first), width) };
            to[..width].copy_from_slice(row);
            to[width..].fill(0.0);
        }
    }
}

/// Working memory for packed weights.
#[derive(Default)]
pub(super) struct Packed {
    /// In f32, as they lie.
    widened: Vec<f32>,
    panels: Vec<f32>,
}

impl Packed {
    /// Packs the lines `lines` (columns of the packed matrix) of matrix `at` of a weight
    /// `[line, depth]` f32, f16 or bf16.
    pub fn pack(&mut self, weight: &Operand, lines: Range<usize>, at: [usize; 2]) -> &[f32] {
        let depth = weight.ne[0];
        self.panels.resize(packed(depth, lines.len()), 0.0);
        let (from, step) = widened(weight, lines.clone(), at, &mut self.widened);
        // SAFETY: the lines of the weight, or their widened copy.
        unsafe { pack_lines(from, step, [depth, lines.len()], &mut self.panels) };
        &self.panels
    }

    /// A whole weight `[line, depth]` in f32 as it lies, and packed.
    pub fn both(&mut self, weight: &Operand) -> [&[f32]; 2] {
        let [depth, lines, _, _] = weight.ne;
        self.pack(weight, 0..lines, [0, 0]);
        let (from, step) = widened(weight, 0..lines, [0, 0], &mut self.widened);
        assert_eq!(step, depth, "a packed weight");
        // SAFETY: as many lines follow each other.
        let plain = unsafe { std::slice::from_raw_parts(from, lines * depth) };
        [plain, &self.panels]
    }
}

/// The address of lines of a weight in f32 (a copy in `room` if they are not), and the step
/// between them.
fn widened(
    weight: &Operand,
    lines: Range<usize>,
    at: [usize; 2],
    room: &mut Vec<f32>,
) -> (*const f32, usize) {
    let depth = weight.ne[0];
    let first = weight.row(lines.start, at[0], at[1]);
    if weight.dtype == DType::F32 {
        return (first.cast(), weight.nb[1] / 4);
    }
    room.resize(lines.len() * depth, 0.0);
    for (i, row) in room.chunks_exact_mut(depth.max(1)).enumerate() {
        // SAFETY: line `lines.start + i` holds `depth` values of its type.
        unsafe { product::widen(first.add(i * weight.nb[1]), weight.dtype, row) };
    }
    (room.as_ptr(), depth)
}

/// out = scale a b for a `[rows, depth]` and the packed b `[depth, columns]`. a and out are
/// addresses with the steps between rows.
///
/// # Safety
/// a holds this matrix, b is packed, and out has room for `[rows, columns]` that nobody else uses.
pub(super) unsafe fn multiply(
    [rows, columns, depth]: [usize; 3],
    out: (*mut f32, usize),
    a: (*const f32, usize),
    b: &[f32],
    scale: f32,
) {
    assert!(b.len() >= packed(depth, columns));
    let job = Job {
        rows,
        columns,
        depth,
        out,
        a,
        b,
        scale,
    };
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn avx512(job: &Job) {
        // SAFETY: this function has the instructions of the type; the rest by the caller.
        unsafe { job.run::<Avx512, 1, 24, 8>() }
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2(job: &Job) {
        // SAFETY: as above.
        unsafe { job.run::<Avx2, 2, 6, 6>() }
    }
    // SAFETY: by the caller's promise; the level was found on this processor.
    unsafe {
        match Level::best() {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => avx512(&job),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2(&job),
            Level::Plain => job.run::<Plain, 4, 4, 2>(),
        }
    }
}

struct Job<'b> {
    rows: usize,
    columns: usize,
    depth: usize,
    out: (*mut f32, usize),
    a: (*const f32, usize),
    b: &'b [f32],
    scale: f32,
}

impl Job<'_> {
    /// # Safety
    /// As [`multiply`]; the processor has V's instructions, and W vectors make a panel.
    #[inline(always)]
    unsafe fn run<V: Vector, const W: usize, const MANY: usize, const SOME: usize>(&self) {
        let panels = self.columns.div_ceil(PANEL);
        // Rows that lie a power of two apart compete for the same cache lines.
        let apart = self.a.1.is_multiple_of(STRIDE) && panels > 2;
        // Taken, not borrowed: a closure would not be compiled for the instruction set.
        let mut copy = COPY.take();
        if apart {
            copy.resize(ROWS * LINE, 0.0);
        }
        for first in (0..self.rows).step_by(ROWS) {
            let rows = first..(first + ROWS).min(self.rows);
            for first in (0..self.depth.max(1)).step_by(DEPTH) {
                let depth = first..(first + DEPTH).min(self.depth);
                // SAFETY: by the caller's promise; there are these rows, and `copy` has room for
                // these parts of them.
                unsafe {
                    let mut a = self.a;
                    a.0 = a.0.add(rows.start * a.1 + depth.start);
                    if apart {
                        let lines = copy.chunks_exact_mut(LINE).take(rows.len());
                        for (row, to) in lines.enumerate() {
                            let from = a.0.add(row * a.1);
                            std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), depth.len());
                        }
                        a = (copy.as_ptr(), LINE);
                    }
                    for panel in 0..panels {
                        self.panel::<V, W, MANY, SOME>(a, rows.clone(), panel, depth.clone());
                    }
                }
            }
        }
        COPY.set(copy);
    }

    /// The part `depth` of `rows`, which begins at `a`, with a panel.
    ///
    /// # Safety
    /// As [`run`](Self::run), and there are these rows.
    #[inline(always)]
    unsafe fn panel<V: Vector, const W: usize, const MANY: usize, const SOME: usize>(
        &self,
        a: (*const f32, usize),
        rows: Range<usize>,
        panel: usize,
        depth: Range<usize>,
    ) {
        let mut row = rows.start;
        // SAFETY: by the caller's promise.
        let at = |row: usize| unsafe { (a.0.add((row - rows.start) * a.1), a.1) };
        // SAFETY: by the caller's promise; no row is beyond `rows`.
        unsafe {
            while rows.end - row >= MANY {
                self.tile::<V, W, MANY>(at(row), row, panel, depth.clone());
                row += MANY;
            }
            while rows.end - row >= SOME {
                self.tile::<V, W, SOME>(at(row), row, panel, depth.clone());
                row += SOME;
            }
            while row < rows.end {
                self.tile::<V, W, 1>(at(row), row, panel, depth.clone());
                row += 1;
            }
        }
    }

    /// R rows of a panel, the part `depth` of their sums: that part of the rows is at `a`.
    ///
    /// # Safety
    /// As [`run`](Self::run), and there are these rows.
    #[inline(always)]
    unsafe fn tile<V: Vector, const W: usize, const R: usize>(
        &self,
        (a, step): (*const f32, usize),
        row: usize,
        panel: usize,
        depth: Range<usize>,
    ) {
        let width = (self.columns - panel * PANEL).min(PANEL);
        // SAFETY: by the caller's promise; what is stored beyond `width` goes to `rest`.
        unsafe {
            let b = self
                .b
                .as_ptr()
                .add((panel * self.depth + depth.start) * PANEL);
            let mut sums = [[V::splat(0.0); W]; R];
            for k in 0..depth.len() {
                let mut weight = [V::splat(0.0); W];
                for (w, weight) in weight.iter_mut().enumerate() {
                    *weight = V::load(b.add(k * PANEL + w * V::LANES));
                }
                for (r, sums) in sums.iter_mut().enumerate() {
                    let value = V::splat(*a.add(r * step + k));
                    for (sum, weight) in sums.iter_mut().zip(weight) {
                        *sum = value.fma(weight, *sum);
                    }
                }
            }
            let scale = V::splat(self.scale);
            for (r, sums) in sums.iter().enumerate() {
                let out = self.out.0.add((row + r) * self.out.1 + panel * PANEL);
                let mut rest = [0.0; PANEL];
                let to = if width == PANEL {
                    out
                } else {
                    rest.as_mut_ptr()
                };
                if width < PANEL && depth.start > 0 {
                    std::ptr::copy_nonoverlapping(out, to, width);
                }
                for (w, sum) in sums.iter().enumerate() {
                    let to = to.add(w * V::LANES);
                    match depth.start {
                        0 => sum.mul(scale).store(to),
                        _ => sum.fma(scale, V::load(to)).store(to),
                    }
                }
                if width < PANEL {
                    std::ptr::copy_nonoverlapping(rest.as_ptr(), out, width);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_matrix_gives_the_product() {
        let value = |i: usize| ((i * 37 % 101) as f32 - 50.0) / 50.0;
        for [rows, columns, depth] in [[1, 1, 1], [7, 16, 5], [24, 40, 64], [61, 33, 300]] {
            let a: Vec<f32> = (0..rows * depth).map(value).collect();
            let b: Vec<f32> = (0..depth * columns).map(|i| value(i + 11)).collect();
            let turned: Vec<f32> = (0..columns * depth)
                .map(|i| b[i % depth * columns + i / depth])
                .collect();
            let mut wanted = vec![0.0; rows * columns];
            for (i, y) in wanted.iter_mut().enumerate() {
                let (r, c) = (i / columns, i % columns);
                let sum = (0..depth).map(|k| f64::from(a[r * depth + k] * b[k * columns + c]));
                *y = 0.5 * sum.sum::<f64>() as f32;
            }
            let mut both = [
                vec![7.0; packed(depth, columns)],
                vec![7.0; packed(depth, columns)],
            ];
            // SAFETY: the matrices have these sizes.
            unsafe {
                pack_rows(b.as_ptr(), columns, [depth, columns], &mut both[0]);
                pack_lines(turned.as_ptr(), depth, [depth, columns], &mut both[1]);
            }
            assert_eq!(both[0], both[1]);
            let step = columns + 3;
            let mut found = vec![9.0; rows * step];
            // SAFETY: as above; a row of the result has room for 3 more values.
            unsafe {
                multiply(
                    [rows, columns, depth],
                    (found.as_mut_ptr(), step),
                    (a.as_ptr(), depth),
                    &both[0],
                    0.5,
                );
            }
            for (found, wanted) in found.chunks(step).zip(wanted.chunks(columns)) {
                assert!(found[columns..].iter().all(|x| *x == 9.0));
                for (a, b) in found.iter().zip(wanted) {
                    assert!((a - b).abs() < 2e-5 * (depth as f32).sqrt(), "{a} {b}");
                }
            }
        }
    }
}
