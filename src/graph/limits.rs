//! Shapes that a backend says it supports and then cannot run.

use std::ptr::NonNull;

use ggml_sys as sys;

use super::device::Opened;
use crate::backend::BackendType;

/// Most blocks of a launch along its second and third axis, on CUDA and HIP. Kernels that map an
/// axis of the tensor straight onto these end the process where it is longer.
const MAX_BLOCKS: i64 = 65_535;

impl Opened {
    /// Whether the device can run an operator: it says so, and its kernel's launch fits.
    pub(super) fn runs(&self, node: NonNull<sys::ggml_tensor>) -> bool {
        // SAFETY: the question only looks at the node's description.
        let supported = unsafe { sys::ggml_backend_dev_supports_op(self.device(), node.as_ptr()) };
        // SAFETY: a live tensor.
        let node = unsafe { node.as_ref() };
        supported
            && match self.kind {
                BackendType::Cuda | BackendType::Hip => launches(node),
                BackendType::Vulkan => dispatches(node, self.view_alignment),
                _ => true,
            }
    }
}

/// Whether Vulkan has a shader for a node that fits a dispatch and is right, on a device that reads
/// from multiples of `alignment` bytes.
fn dispatches(node: &sys::ggml_tensor, alignment: usize) -> bool {
    match node.op {
        // Drivers need not take more work groups on an axis. ggml spreads those of the other
        // operators over three axes.
        sys::GGML_OP_RMS_NORM => node.ne[1..].iter().all(|&n| n <= MAX_BLOCKS),
        // Wrong numbers, on NVIDIA's driver as on lavapipe: of q6_K, and of quantised parts between
        // the multiples (a shader is told in whole blocks how far behind one they begin).
        sys::GGML_OP_CPY | sys::GGML_OP_CONT => {
            // SAFETY: a live tensor, whose sources live as long.
            unsafe { node.src[0].as_ref() }.is_none_or(|from| {
                // SAFETY: a type that a tensor has.
                let quantised = unsafe { sys::ggml_is_quantized(from.type_) };
                let between = !from.view_offs.is_multiple_of(alignment);
                from.type_ != sys::GGML_TYPE_Q6_K && !(quantised && between)
            })
        }
        _ => true,
    }
}

/// Whether CUDA's kernel for a node fits a launch.
fn launches(node: &sys::ggml_tensor) -> bool {
    let ne = node.ne;
    let blocks = match node.op {
        sys::GGML_OP_PAD => [ne[1], ne[2].saturating_mul(ne[3])],
        sys::GGML_OP_CONCAT
        | sys::GGML_OP_PAD_REFLECT_1D
        | sys::GGML_OP_NORM
        | sys::GGML_OP_RMS_NORM
        | sys::GGML_OP_SOFT_MAX
        | sys::GGML_OP_CUMSUM
        | sys::GGML_OP_MUL_MAT => [ne[2], ne[3]],
        sys::GGML_OP_ARGSORT => [ne[1].saturating_mul(ne[2]).saturating_mul(ne[3]), 1],
        _ => return true,
    };
    blocks.iter().all(|&n| n <= MAX_BLOCKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(op: sys::ggml_op, ne: [i64; 4]) -> sys::ggml_tensor {
        // SAFETY: a plain C struct, for which all zeros are valid; only `op` and `ne` are read.
        let mut node: sys::ggml_tensor = unsafe { std::mem::zeroed() };
        (node.op, node.ne) = (op, ne);
        node
    }

    #[test]
    fn long_axes_fit_only_where_the_launch_has_room() {
        let long = MAX_BLOCKS + 1;
        for (op, ne, fits) in [
            (sys::GGML_OP_PAD, [long, MAX_BLOCKS, 1, 1], true),
            (sys::GGML_OP_PAD, [4, long, 1, 1], false),
            (sys::GGML_OP_PAD, [4, 4, 256, 256], false),
            (sys::GGML_OP_SOFT_MAX, [4, long, 1, 1], true),
            (sys::GGML_OP_SOFT_MAX, [4, 4, long, 1], false),
            (sys::GGML_OP_ADD, [4, long, long, 1], true),
        ] {
            assert_eq!(launches(&node(op, ne)), fits, "{op} {ne:?}");
        }
    }
}
