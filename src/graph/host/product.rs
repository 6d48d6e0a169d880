//! The product of matrices.

use std::{cell::RefCell, ptr::NonNull};

use ggml_sys as sys;
use half::slice::HalfFloatSliceExt;

use super::{
    HostOp, Operand, Output, Share,
    panels::{self, Packed},
};
use crate::{
    backend::FastPath,
    graph::{DType, Tensor},
    simd,
};

/// x wᵀ (+ bias), or GELU of that: x `[.., m, k]` f32 with packed rows, w `[.., n, k]` f32, f16 or
/// bf16, bias `[n]` f32.
///
/// Weights are widened to f32 a block of rows at a time, so that a block serves many rows of x;
/// the activations keep all their bits, which ggml's own products for half weights round off.
#[derive(Clone, Copy)]
pub(in crate::graph) struct Product {
    /// Take GELU of the result while it is in the cache.
    pub gelu: bool,
}

/// Rows of x below which reading the weights is the cost, and ggml's kernels are as good.
pub(super) const FEWEST_ROWS: i64 = 24;

/// What a product was made of.
#[derive(Clone, Copy)]
pub(in crate::graph) struct Factors {
    pub x: NonNull<sys::ggml_tensor>,
    pub weight: NonNull<sys::ggml_tensor>,
    pub bias: Option<NonNull<sys::ggml_tensor>>,
}

/// Values of a widened block: bounds the memory that a thread takes for it (4 MiB).
const BLOCK_VALUES: usize = 1 << 20;

thread_local! {
    static PACKED: RefCell<Packed> = RefCell::default();
}

impl Product {
    /// Whether this is the way to compute x wᵀ, given that ggml could.
    pub fn serves(x: Tensor, w: Tensor) -> bool {
        let device = x.scope().device();
        device.is_cpu()
            && device.fast_path(FastPath::BlockedProduct)
            && x.rank() >= 2
            && x.ne()[1] >= FEWEST_ROWS
            && x.ne()[0] == w.ne()[0]
            && x.dtype() == DType::F32
            && faster_for(w.dtype())
    }
}

/// Whether widening beats ggml's kernel for this type of weights. It does not where a processor
/// multiplies the type itself: bytes (quantised weights) everywhere, f16 on ARM, bf16 on some.
fn faster_for(dtype: DType) -> bool {
    match dtype {
        DType::F32 => true,
        DType::F16 => cfg!(target_arch = "x86_64"),
        DType::BF16 => !multiplies_bf16(),
        _ => false,
    }
}

#[cfg(target_arch = "x86_64")]
fn multiplies_bf16() -> bool {
    is_x86_feature_detected!("avx512bf16")
}

#[cfg(not(target_arch = "x86_64"))]
fn multiplies_bf16() -> bool {
    cfg!(target_arch = "aarch64")
}

// SAFETY: a job is a block of the result, and no two jobs overlap.
unsafe impl HostOp for Product {
    fn run(&self, inputs: &[Operand], output: &Output, share: Share) {
        let (x, w, bias) = (&inputs[0], &inputs[1], inputs.get(2));
        let [k, _, _, _] = x.ne;
        let [n, m, n2, n3] = output.ne;
        let most = (BLOCK_VALUES / k.max(1)).max(64);
        let [down, across] = blocks(m, n, share.of.div_ceil(n2 * n3), most);
        // Whole vectors of columns, but for the last block.
        let columns = n.div_ceil(across).next_multiple_of(16);
        let across = n.div_ceil(columns);
        for job in share.of_jobs(across * down * n2 * n3) {
            let (block, matrix) = (job % (across * down), job / (across * down));
            let at = [matrix % n2, matrix / n2];
            let (c, r) = (block % across * columns, block / across);
            let (c, r) = (c..(c + columns).min(n), m * r / down..m * (r + 1) / down);
            multiply(x, w, output, at, r.clone(), c.clone());
            let bias = bias.map(|bias| &bias.row_f32(0, 0, 0)[c.clone()]);
            for row in r {
                // SAFETY: this job's own block.
                let row = unsafe { output.row([row, at[0], at[1]], c.clone()) };
                match (bias, self.gelu) {
                    (Some(bias), true) => simd::add_gelu(row, bias),
                    (Some(bias), false) => simd::add(row, bias),
                    (None, true) => simd::gelu(row),
                    (None, false) => break,
                }
            }
        }
    }
}

/// How a result `[m, n]` is cut for `threads`: blocks down and across. Every block packs its rows
/// of x and its columns of w again, so blocks are as square as they can be; `most` columns a block
/// bound the memory for widened weights.
fn blocks(m: usize, n: usize, threads: usize, most: usize) -> [usize; 2] {
    let square = ((threads * n) as f64 / m as f64).sqrt().round() as usize;
    let across = square
        .clamp(1, threads)
        .max(n.div_ceil(most))
        .min(n.div_ceil(16));
    [threads.div_ceil(across).min(m), across]
}

/// One block of the result.
fn multiply(
    x: &Operand,
    w: &Operand,
    output: &Output,
    [i2, i3]: [usize; 2],
    rows: std::ops::Range<usize>,
    columns: std::ops::Range<usize>,
) {
    let k = x.ne[0];
    // Leading axes of w broadcast over those of x.
    let w_at = [i2 * w.ne[2] / x.ne[2], i3 * w.ne[3] / x.ne[3]];
    let lhs: *const f32 = x.row(rows.start, i2, i3).cast();
    PACKED.with_borrow_mut(|packed| {
        let panels = packed.pack(w, columns.clone(), w_at);
        // SAFETY: a block of this job's own, rows `output.ne[0]` values apart.
        let out = unsafe { output.row([rows.start, i2, i3], columns.clone()) }.as_mut_ptr();
        // SAFETY: x holds `rows` rows of k packed values, w `columns` rows, and the result that
        // block.
        unsafe {
            panels::multiply(
                [rows.len(), columns.len(), k],
                (out, output.ne[0]),
                (lhs, x.nb[1] / 4),
                panels,
                1.0,
            );
        }
    });
}

/// A row of half-precision values as f32.
///
/// # Safety
/// `from` holds `to.len()` values of type `dtype`, bf16 or f16.
pub(super) unsafe fn widen(from: *const u8, dtype: DType, to: &mut [f32]) {
    // SAFETY: by the caller's promise; ggml's tensors are aligned for their type.
    unsafe {
        match dtype {
            DType::BF16 => std::slice::from_raw_parts(from.cast::<half::bf16>(), to.len())
                .convert_to_f32_slice(to),
            _ => std::slice::from_raw_parts(from.cast::<half::f16>(), to.len())
                .convert_to_f32_slice(to),
        }
    }
}
