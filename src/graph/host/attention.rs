//! Scaled dot-product attention.

use std::{cell::RefCell, ops::Range};

use super::{HostOp, Operand, Output, Share, panels, product};
use crate::{
    backend::FastPath,
    graph::{DType, Tensor},
    simd,
};

/// softmax(scale q kᵀ + mask) v: q `[batch, head, query, width]` f32, k and v
/// `[batch, kv head, key, width]` f32 or f16 with packed rows, mask `[query, key]` f16 ->
/// `[batch, query, head, width]`. A query that the mask leaves no key gives zeros.
///
/// Keys and values are packed once a head; scores are computed for a block of queries at a time,
/// small enough to stay in the cache.
pub(in crate::graph) struct Attention {
    pub scale: f32,
}

/// Scores of a block of queries (512 KiB), and how many queries.
const BLOCK_SCORES: usize = 1 << 17;
const QUERIES: Range<usize> = 24..240;

/// Working memory of a thread.
#[derive(Default)]
struct Scratch {
    scores: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
    mask: Vec<f32>,
    copy: Vec<f32>,
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
        let q = &inputs[0];
        let [_, queries, heads, batch] = q.ne;
        let parts = parts(heads * batch, share.of).min(queries);
        SCRATCH.with_borrow_mut(|scratch| {
            for job in share.of_jobs(parts * heads * batch) {
                let (part, head) = (job % parts, job / parts);
                let place = [head % heads, head / heads];
                let rows = queries * part / parts..queries * (part + 1) / parts;
                self.attend(inputs, output, rows, place, scratch);
            }
        });
    }
}

/// In how many parts the queries of a head are cut, so that `threads` end together.
fn parts(heads: usize, threads: usize) -> usize {
    let uneven = |parts: usize| {
        let jobs = heads * parts;
        jobs.div_ceil(threads) * threads - jobs
    };
    let most = threads.div_ceil(heads).max(2) * 2;
    let least = threads.div_ceil(heads);
    (least..=most)
        .min_by_key(|&parts| uneven(parts) * 64 / (heads * parts))
        .unwrap_or(least)
}

impl Attention {
    /// The queries `rows` of one head.
    fn attend(
        &self,
        inputs: &[Operand],
        output: &Output,
        rows: Range<usize>,
        [head, sample]: [usize; 2],
        scratch: &mut Scratch,
    ) {
        let (q, k, v, mask) = (&inputs[0], &inputs[1], &inputs[2], inputs.get(3));
        let (keys, width) = (k.ne[1], v.ne[0]);
        let kv = [head * k.ne[2] / q.ne[2], sample * k.ne[3] / q.ne[3]];
        let Scratch {
            scores,
            keys: packed_k,
            values: packed_v,
            mask: widened,
            copy,
        } = scratch;
        packed_k.resize(panels::packed(q.ne[0], keys), 0.0);
        packed_v.resize(panels::packed(keys, width), 0.0);
        // SAFETY: all rows of k and of v, as they are or copied.
        unsafe {
            let (k, step) = matrix(k, kv, copy);
            panels::pack_lines(k, step, [q.ne[0], keys], packed_k);
            let (v, step) = matrix(v, kv, copy);
            panels::pack_rows(v, step, [keys, width], packed_v);
        }
        let most = (BLOCK_SCORES / keys.max(1)).clamp(QUERIES.start, QUERIES.end) / 24 * 24;
        // Not a multiple of a power of two, so that rows do not compete for the same cache lines.
        let line = keys.next_multiple_of(16) + 16;
        scores.resize(most * line, 0.0);
        for first in rows.clone().step_by(most) {
            let rows = first..(first + most).min(rows.end);
            // SAFETY: these rows of q and as many lines of scores.
            unsafe {
                panels::multiply(
                    [rows.len(), keys, q.ne[0]],
                    (scores.as_mut_ptr(), line),
                    (q.row(first, head, sample).cast(), q.nb[1] / 4),
                    packed_k,
                    self.scale,
                );
            }
            for (row, scores) in rows.clone().zip(scores.chunks_exact_mut(line)) {
                let scores = &mut scores[..keys];
                if let Some(mask) = mask {
                    widened.resize(keys, 0.0);
                    // SAFETY: a row of the mask holds `keys` packed values.
                    unsafe { product::widen(mask.row(row, 0, 0), mask.dtype, widened) };
                    simd::add(scores, widened);
                }
                simd::softmax(scores);
            }
            // The result lies as [batch, query, head, width].
            let step = output.ne[0] * output.ne[1];
            // SAFETY: this job's own places, the scores, and all rows of v.
            unsafe {
                let out = output.row([head, first, sample], 0..width);
                panels::multiply(
                    [rows.len(), width, keys],
                    (out.as_mut_ptr(), step),
                    (scores.as_ptr(), line),
                    packed_v,
                    1.0,
                );
            }
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
