//! Scaled dot-product attention.

use std::{cell::RefCell, ops::Range};

use super::{HostOp, Operand, Output, Share, product};
use crate::{
    backend::FastPath,
    graph::{DType, Tensor},
    simd,
};

/// softmax(scale q kᵀ + mask) v: q `[batch, head, query, width]` f32, k and v
/// `[batch, kv head, key, width]` f32 or f16 with packed rows, mask `[query, key]` f16 ->
/// `[batch, query, head, width]`. A query that the mask leaves no key gives zeros.
///
/// Scores are computed for a block of queries at a time, small enough to stay in the cache.
pub(in crate::graph) struct Attention {
    pub scale: f32,
}

/// Scores of a block of queries.
const BLOCK_SCORES: usize = 1 << 18;

/// Working memory of a thread.
#[derive(Default)]
struct Scratch {
    scores: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
    mask: Vec<f32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Attention {
    /// Whether this is the way to compute attention of q to k and v, given that ggml could.
    pub fn serves(q: Tensor, k: Tensor) -> bool {
        let device = q.scope().device();
        device.is_cpu()
            && device.fast_path(FastPath::BlockedProduct)
            && q.ne()[1] >= product::FEWEST_ROWS
            && matches!(k.dtype(), DType::F32 | DType::F16)
    }
}

// SAFETY: a job is some queries of one head, which have places of their own in the result.
unsafe impl HostOp for Attention {
    fn run(&self, inputs: &[Operand], output: &Output, share: Share) {
        let (q, k, mask) = (&inputs[0], &inputs[1], inputs.get(3));
        let [_, queries, heads, batch] = q.ne;
        let keys = k.ne[1];
        let most = (BLOCK_SCORES / keys.max(1)).clamp(32, 512);
        // Equal blocks, at least one for each thread.
        let blocks = queries
            .div_ceil(most)
            .max(share.of.div_ceil(heads * batch))
            .min(queries);
        SCRATCH.with_borrow_mut(|scratch| {
            for job in share.of_jobs(blocks * heads * batch) {
                let (block, head, sample) =
                    (job % blocks, job / blocks % heads, job / blocks / heads);
                let rows = queries * block / blocks..queries * (block + 1) / blocks;
                self.attend(inputs, mask, output, rows, [head, sample], scratch);
            }
        });
    }
}

impl Attention {
    /// The queries `rows` of one head.
    fn attend(
        &self,
        inputs: &[Operand],
        mask: Option<&Operand>,
        output: &Output,
        rows: Range<usize>,
        [head, sample]: [usize; 2],
        scratch: &mut Scratch,
    ) {
        let (q, k, v) = (&inputs[0], &inputs[1], &inputs[2]);
        let (keys, width) = (k.ne[1], v.ne[0]);
        let kv = [head * k.ne[2] / q.ne[2], sample * k.ne[3] / q.ne[3]];
        let (k, k_step) = matrix(k, kv, &mut scratch.keys);
        let (v, v_step) = matrix(v, kv, &mut scratch.values);
        scratch.scores.resize(rows.len() * keys, 0.0);
        let scores = &mut scratch.scores[..rows.len() * keys];
        // SAFETY: `rows` rows of q, all rows of k, and the scores just made.
        unsafe {
            product::gemm(
                [rows.len(), keys, q.ne[0]],
                (scores.as_mut_ptr(), keys),
                (q.row(rows.start, head, sample).cast(), q.nb[1] / 4),
                (k, 1, k_step),
                self.scale,
            );
        }
        for (row, scores) in rows.clone().zip(scores.chunks_exact_mut(keys)) {
            if let Some(mask) = mask {
                scratch.mask.resize(keys, 0.0);
                // SAFETY: a row of the mask holds `keys` packed values.
                unsafe { product::widen(mask.row(row, 0, 0), mask.dtype, &mut scratch.mask) };
                simd::add(scores, &scratch.mask);
            }
            simd::softmax(scores);
        }
        // The result lies as [batch, query, head, width].
        let step = output.ne[0] * output.ne[1];
        // SAFETY: this job's own places, the scores, and all rows of v.
        unsafe {
            let out = output.row([head, rows.start, sample], 0..width);
            product::gemm(
                [rows.len(), width, keys],
                (out.as_mut_ptr(), step),
                (scores.as_ptr(), keys),
                (v, v_step, 1),
                1.0,
            );
        }
    }
}

/// The address of an f32 copy of a matrix (itself, if it is f32), and the step between its rows
/// in values.
fn matrix(x: &Operand, [i2, i3]: [usize; 2], copy: &mut Vec<f32>) -> (*const f32, usize) {
    if x.dtype == DType::F32 {
        return (x.row(0, i2, i3).cast(), x.nb[1] / 4);
    }
    let [width, rows, _, _] = x.ne;
    copy.resize(rows * width, 0.0);
    for (row, values) in copy.chunks_exact_mut(width).enumerate() {
        // SAFETY: a row holds `width` packed values.
        unsafe { product::widen(x.row(row, i2, i3), x.dtype, values) };
    }
    (copy.as_ptr(), width)
}
