//! Which operators a device has, asked with one small example of each.

use std::ptr;

use ggml_sys as sys;

/// Descriptions that the examples need.
const TENSORS: usize = 16;

/// Whether the device behind `dev` runs the operator that ggml calls `name`; false for names
/// without an example here. Views need no kernel.
///
/// # Safety
/// `dev` must be a registered device.
pub(super) unsafe fn supports(dev: sys::ggml_backend_dev_t, name: &str) -> bool {
    if name == "VIEW" {
        return true;
    }
    let params = sys::ggml_init_params {
        // SAFETY: returns a constant.
        mem_size: TENSORS * unsafe { sys::ggml_tensor_overhead() },
        mem_buffer: ptr::null_mut(),
        no_alloc: true,
    };
    // SAFETY: the context is checked, holds every description made from it, and is freed last;
    // `supports_op` only looks at the node.
    unsafe {
        let context = sys::ggml_init(params);
        if context.is_null() {
            return false;
        }
        let node = example(context, name);
        let supported = !node.is_null() && sys::ggml_backend_dev_supports_op(dev, node);
        sys::ggml_free(context);
        supported
    }
}

/// The operator on operands of ordinary size and type; null for an unknown name.
///
/// # Safety
/// `context` must be a live context with room for [`TENSORS`] descriptions.
unsafe fn example(context: *mut sys::ggml_context, name: &str) -> *mut sys::ggml_tensor {
    // SAFETY: by the caller's promise; the shapes below fit the operators.
    unsafe {
        let tensor = |dtype, ne: [i64; 4]| {
            sys::ggml_new_tensor_4d(context, dtype, ne[0], ne[1], ne[2], ne[3])
        };
        let f32 = |ne| tensor(sys::GGML_TYPE_F32, ne);
        let f16 = |ne| tensor(sys::GGML_TYPE_F16, ne);
        let x = [64, 32, 1, 1];
        match name {
            "MUL_MAT" => sys::ggml_mul_mat(context, f16([64, 48, 1, 1]), f32(x)),
            "MUL" => sys::ggml_mul(context, f32(x), f32(x)),
            "ADD" => sys::ggml_add(context, f32(x), f32(x)),
            "SIN" => sys::ggml_sin(context, f32(x)),
            "SQR" => sys::ggml_sqr(context, f32(x)),
            "IM2COL" => sys::ggml_im2col(
                context,
                f16([3, 32, 16, 1]),
                f32(x),
                1,
                0,
                1,
                0,
                1,
                0,
                false,
                sys::GGML_TYPE_F16,
            ),
            // Four output channels, four taps.
            "COL2IM_1D" => sys::ggml_col2im_1d(context, f32([16, 32, 1, 1]), 2, 4, 1),
            "CONV_2D_DW" => sys::ggml_conv_2d_dw_direct(
                context,
                f32([3, 1, 1, 16]),
                f32([64, 1, 16, 1]),
                1,
                1,
                1,
                0,
                1,
                1,
            ),
            "FLASH_ATTN_EXT" => sys::ggml_flash_attn_ext(
                context,
                f32([64, 8, 2, 1]),
                f16([64, 32, 2, 1]),
                f16([64, 32, 2, 1]),
                ptr::null_mut(),
                0.125,
                0.0,
                0.0,
            ),
            "SET_ROWS" => sys::ggml_set_rows(
                context,
                f16(x),
                f32([64, 4, 1, 1]),
                tensor(sys::GGML_TYPE_I64, [4, 1, 1, 1]),
            ),
            _ => ptr::null_mut(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        backend::{Choices, fast_path::TABLE},
        graph::Device,
    };

    #[test]
    fn the_cpu_has_every_operator_of_the_fast_paths() {
        let device = Device::cpu(1).unwrap();
        for op in TABLE.iter().flat_map(|row| row.ops) {
            // SAFETY: the device is open.
            assert!(unsafe { supports(device.0.device(), op) }, "{op}");
        }
        // SAFETY: as above.
        assert!(!unsafe { supports(device.0.device(), "NO_SUCH_OP") });
    }

    #[test]
    fn choices_reach_the_device() {
        use crate::backend::FastPath;
        let device = Device::cpu(1).unwrap();
        assert!(device.fast_path(FastPath::FlashAttention));
        assert_eq!(device.fast_paths().len(), TABLE.len());
        let choices = Choices::from_options(None, ["flash-attention=off"]).unwrap();
        let device = Device::cpu(1).unwrap().with_fast_paths(choices);
        assert!(!device.fast_path(FastPath::FlashAttention));
    }
}
