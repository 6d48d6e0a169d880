//! Convolutions over a plane as products of blocks: what a block of outputs sees is gathered into
//! the cache, and never exists as a whole.

use std::{cell::RefCell, ops::Range};

use super::{
    HostOp, Operand, Output, Share,
    panels::{self, Packed},
};
use crate::{
    backend::FastPath,
    graph::{Conv2d, DType, DeviceTensor, Tensor},
    simd,
};

/// x `[batch, height, width, in]` f32 packed, weight `[out, taps * in]` f32, f16 or bf16, bias
/// `[out]` f32 -> `[batch, height', width', out]`.
pub(in crate::graph) struct PlaneConv {
    pub shape: Conv2d,
}

/// Gathered values of a block (1 MiB), and outputs of one.
const BLOCK_VALUES: usize = 1 << 18;
const OUTPUTS: Range<usize> = 32..512;
/// Values of widened weights that a thread holds at a time (4 MiB).
const WIDENED_VALUES: usize = 1 << 20;

#[derive(Default)]
struct Scratch {
    patches: Vec<f32>,
    packed: Packed,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl PlaneConv {
    /// Whether this is the way to convolve x, given that ggml could.
    pub fn serves(x: Tensor, weight: &DeviceTensor) -> bool {
        let device = x.scope().device();
        device.is_cpu()
            && device.fast_path(FastPath::BlockedProduct)
            && matches!(weight.dtype(), DType::F32 | DType::F16 | DType::BF16)
    }

    /// Copies what the output at `[row, column]` of image `item` sees to `to`.
    fn gather(&self, x: &Operand, item: usize, at: [usize; 2], to: &mut [f32]) {
        let [channels, width, height, _] = x.ne;
        let Conv2d {
            kernel: [_, across],
            stride,
            dilation,
            padding,
        } = self.shape;
        let first = at[1] * stride[1];
        let left = padding[1].0;
        for (down, to) in to.chunks_exact_mut(across * channels).enumerate() {
            let row = (at[0] * stride[0] + down * dilation[0]).wrapping_sub(padding[0].0);
            if row >= height {
                to.fill(0.0);
                continue;
            }
            let line = plane_row(x, row, item, width * channels);
            if dilation[1] == 1 && first >= left && first - left + across <= width {
                let start = (first - left) * channels;
                to.copy_from_slice(&line[start..start + across * channels]);
                continue;
            }
            for (tap, to) in to.chunks_exact_mut(channels).enumerate() {
                let column = (first + tap * dilation[1]).wrapping_sub(left);
                match column < width {
                    true => to.copy_from_slice(&line[column * channels..(column + 1) * channels]),
                    false => to.fill(0.0),
                }
            }
        }
    }
}

/// Line `row` of image `item`: `width * channels` packed values.
fn plane_row(x: &Operand, row: usize, item: usize, values: usize) -> &[f32] {
    assert!(x.dtype == DType::F32 && values == x.ne[0] * x.ne[1]);
    // SAFETY: the tensor is packed, so a line's pixels follow each other.
    unsafe { std::slice::from_raw_parts(x.row(0, row, item).cast(), values) }
}

/// How many outputs are computed together, and how many of their channels.
fn block(outputs: usize, out: usize, depth: usize, threads: usize) -> [usize; 2] {
    let most = (BLOCK_VALUES / depth.max(1)).clamp(OUTPUTS.start, OUTPUTS.end);
    let each = outputs.div_ceil(threads).min(most);
    let parts = (2 * threads).div_ceil(outputs.div_ceil(each));
    let columns = out.div_ceil(parts).next_multiple_of(16).min(out);
    [each, columns.min((WIDENED_VALUES / depth.max(1)).max(64))]
}

// SAFETY: a job is some outputs and some of their channels, and no two jobs overlap.
unsafe impl HostOp for PlaneConv {
    fn run(&self, inputs: &[Operand], output: &Output, share: Share) {
        let (x, weight) = (&inputs[0], &inputs[1]);
        let [out, width, height, batch] = output.ne;
        let depth = weight.ne[0];
        let outputs = width * height * batch;
        let [each, columns] = block(outputs, out, depth, share.of);
        let (down, across) = (outputs.div_ceil(each), out.div_ceil(columns));
        let bias = inputs.get(2).map(|bias| bias.row_f32(0, 0, 0));
        SCRATCH.with_borrow_mut(|Scratch { patches, packed }| {
            patches.resize(each * depth, 0.0);
            // Block after block of channels, so that the weights of each are packed once.
            for column in 0..across {
                let own = |row: &usize| (row * across + column) % share.of == share.index;
                let mut jobs = (0..down).filter(own).peekable();
                if jobs.peek().is_none() {
                    continue;
                }
                let channels = column * columns..((column + 1) * columns).min(out);
                let panels = packed.pack(weight, channels.clone(), [0, 0]);
                for row in jobs {
                    let pixels = row * each..((row + 1) * each).min(outputs);
                    let patches = &mut patches[..pixels.len() * depth];
                    for (pixel, to) in pixels.clone().zip(patches.chunks_exact_mut(depth)) {
                        let at = [pixel / width % height, pixel % width];
                        self.gather(x, pixel / (width * height), at, to);
                    }
                    multiply([patches, panels], output, pixels.clone(), channels.clone());
                    let Some(bias) = bias else { continue };
                    for pixel in pixels {
                        // SAFETY: this job's own outputs.
                        let row = unsafe { output.row(place(output, pixel), channels.clone()) };
                        simd::add(row, &bias[channels.clone()]);
                    }
                }
            }
        });
    }
}

/// Where the row of an output lies.
fn place(output: &Output, pixel: usize) -> [usize; 3] {
    let [_, width, height, _] = output.ne;
    [
        pixel % width,
        pixel / width % height,
        pixel / (width * height),
    ]
}

/// The outputs `pixels` (their channels `channels`) from what they see.
fn multiply(
    [patches, weight]: [&[f32]; 2],
    output: &Output,
    pixels: Range<usize>,
    channels: Range<usize>,
) {
    let depth = patches.len() / pixels.len();
    // SAFETY: the result is packed, so the rows of outputs that follow each other do, too; this
    // job's own rows and columns. `patches` holds as many rows of `depth` values.
    unsafe {
        let out = output.row(place(output, pixels.start), channels.clone());
        panels::multiply(
            [pixels.len(), channels.len(), depth],
            (out.as_mut_ptr(), output.ne[0]),
            (patches.as_ptr(), depth),
            weight,
            1.0,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_keep_every_thread_busy_and_fit_the_cache() {
        assert_eq!(block(100_000, 64, 400, 2), [512, 64]);
        // A deep kernel: as many channels as weights may be widened.
        assert_eq!(block(128, 512, 6400, 2), [40, 163]);
        // Few outputs: their channels are shared out.
        assert_eq!(block(8, 512, 64, 2), [4, 256]);
        assert!(block(1, 4096, 1 << 16, 4)[1] <= 64);
    }
}
