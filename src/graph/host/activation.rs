//! Functions of single values.

use super::{HostOp, Operand, Output, Share};
use crate::simd;

/// GELU in its exact form. ggml calls the C library's error function for each value; this is
/// about ten times faster.
pub(in crate::graph) struct Gelu;

// SAFETY: shares are disjoint ranges of rows.
unsafe impl HostOp for Gelu {
    fn run(&self, inputs: &[Operand], output: &Output, share: Share) {
        let [width, n1, n2, n3] = output.ne;
        // A few long rows are cut along their length instead.
        let pieces = if n1 * n2 * n3 < share.of { share.of } else { 1 };
        for job in share.of_range(n1 * n2 * n3 * pieces) {
            let (row, piece) = (job / pieces, job % pieces);
            let columns = width * piece / pieces..width * (piece + 1) / pieces;
            let at = [row % n1, row / n1 % n2, row / n1 / n2];
            let values = &inputs[0].row_f32(at[0], at[1], at[2])[columns.clone()];
            // SAFETY: each share has its own rows, or its own part of a row.
            let out = unsafe { output.row(at, columns) };
            out.copy_from_slice(values);
            simd::gelu(out);
        }
    }
}

/// tanh(a) σ(b), where a row holds all a, then all b.
pub(in crate::graph) struct GatedTanh;

// SAFETY: shares are disjoint ranges of rows.
unsafe impl HostOp for GatedTanh {
    fn run(&self, inputs: &[Operand], output: &Output, share: Share) {
        let [width, n1, n2, n3] = output.ne;
        for row in share.of_range(n1 * n2 * n3) {
            let at = [row % n1, row / n1 % n2, row / n1 / n2];
            // SAFETY: each share has its own rows.
            let out = unsafe { output.row(at, 0..width) };
            simd::gated_tanh(inputs[0].row_f32(at[0], at[1], at[2]), out);
        }
    }
}

/// a σ(b), where a row holds all a, then all b.
pub(in crate::graph) struct SigmoidGlu;

// SAFETY: shares are disjoint ranges of rows.
unsafe impl HostOp for SigmoidGlu {
    fn run(&self, inputs: &[Operand], output: &Output, share: Share) {
        let [width, n1, n2, n3] = output.ne;
        for row in share.of_range(n1 * n2 * n3) {
            let at = [row % n1, row / n1 % n2, row / n1 / n2];
            // SAFETY: each share has its own rows.
            let out = unsafe { output.row(at, 0..width) };
            simd::glu(inputs[0].row_f32(at[0], at[1], at[2]), out);
        }
    }
}
