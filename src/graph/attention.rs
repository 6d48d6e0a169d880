//! Scaled dot-product attention.

use ggml_sys as sys;

use super::{DType, Device, Tensor, host::Attention, shape::Shape};
use crate::backend::FastPath;

/// How [`Tensor::attention`] is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// One fused operator that never stores the scores.
    ///
    /// GPUs round f32 keys and values to half precision for it, so an exact graph
    /// ([`Graph::build_exact`](super::Graph::build_exact)) with f32 keys takes `Plain` there.
    Flash,
    /// Two products and a softmax; the scores are stored.
    Plain,
}

impl Kernel {
    /// Fused where the device takes [`FastPath::FlashAttention`].
    pub fn choose(device: &Device) -> Kernel {
        match device.fast_path(FastPath::FlashAttention) {
            true => Kernel::Flash,
            false => Kernel::Plain,
        }
    }

    /// The kernel for a few queries over many `keys`: on the CPU, and in full precision, the fused
    /// one has nothing to save.
    pub fn for_few_queries(self, device: &Device, keys: DType) -> Kernel {
        match device.is_cpu() || keys == DType::F32 {
            true => Kernel::Plain,
            false => self,
        }
    }
}

impl<'g> Tensor<'g> {
    /// softmax(scale q kᵀ + mask) v.
    ///
    /// q `[batch, query, head, width]`, k and v `[batch, key, kv head, width]` (f32 or f16; heads
    /// a multiple of kv heads), mask f16 `[query, key]` -> `[batch, query, head * width]`. Where the
    /// mask leaves a query no key, the two kernels differ: zeros or NaN.
    pub fn attention(
        self,
        keys: Tensor<'g>,
        values: Tensor<'g>,
        mask: Option<Tensor<'g>>,
        scale: f32,
        kernel: Kernel,
    ) -> Tensor<'g> {
        let [batch, query, heads, width] = self.dims();
        let [kb, key, kv_heads, kw] = keys.dims();
        let [vb, vk, vh, vw] = values.dims();
        let masked = mask.is_none_or(|m| m.dtype() == DType::F16 && m.shape() == [query, key]);
        let fits = [kb, key, kv_heads] == [vb, vk, vh]
            && kb == batch
            && kw == width
            && heads.is_multiple_of(kv_heads)
            && self.dtype() == DType::F32
            && keys.dtype() == values.dtype()
            && matches!(keys.dtype(), DType::F32 | DType::F16)
            && Shape::countable(&[batch, query, heads, vw].map(|n| n as i64))
            && masked;
        if !fits {
            return self.scope.mistake(
                "attention",
                format!("q {self:?}, k {keys:?}, v {values:?}, mask {mask:?}"),
            );
        }
        // [batch, head, time, width]
        let [q, k, v] = [self, keys, values].map(|t| t.aligned_rows().permute(&[0, 2, 1, 3]));
        let rounds = self.scope.exact() && k.dtype() == DType::F32 && !self.scope.device().is_cpu();
        if kernel == Kernel::Plain || rounds {
            let weights = q.matmul_t(k).softmax(scale, mask); // [batch, head, query, key]
            let mixed = weights.matmul_t(v.transpose().contiguous()); // [batch, head, query, width]
            return mixed
                .permute(&[0, 2, 1, 3])
                .reshape(&[batch, query, heads * vw]);
        }
        let mask = mask.map(Tensor::contiguous);
        if Attention::serves(q, k) {
            let shape = [batch, query, heads, vw];
            let Some(shape) = Shape::new(&shape) else {
                return self.scope.mistake("attention", format!("{shape:?}"));
            };
            let inputs: Vec<Tensor> = [q, k, v].into_iter().chain(mask).collect();
            let mixed = self.scope.host_op(shape, &inputs, Attention { scale });
            return mixed.reshape(&[batch, query, heads * vw]);
        }
        let mask = mask.map_or(std::ptr::null_mut(), |m| m.ptr.as_ptr());
        let exact = self.scope.exact();
        // SAFETY: all extents and types were checked above; rows of q, k, v are packed.
        let mixed = self.scope.emit(4, |ctx| unsafe {
            let (q, k, v) = (q.ptr.as_ptr(), k.ptr.as_ptr(), v.ptr.as_ptr());
            let out = sys::ggml_flash_attn_ext(ctx, q, k, v, mask, scale, 0.0, 0.0);
            if exact {
                sys::ggml_flash_attn_ext_set_prec(out, sys::GGML_PREC_F32);
            }
            out
        }); // [batch, query, head, width]
        mixed.reshape(&[batch, query, heads * vw])
    }

    /// The attention weights softmax(scale q kᵀ + mask) alone: q `[batch, query, head, width]`,
    /// k `[batch, key, kv head, width]` -> `[batch, head, query, key]`.
    pub fn attention_weights(
        self,
        keys: Tensor<'g>,
        mask: Option<Tensor<'g>>,
        scale: f32,
    ) -> Tensor<'g> {
        let q = self.permute(&[0, 2, 1, 3]);
        let k = keys.permute(&[0, 2, 1, 3]);
        q.matmul_t(k).softmax(scale, mask)
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::NonNull;

    use super::*;
    use crate::{
        backend::Choices,
        graph::{Graph, guard, tensor::ROW_ALIGNMENT},
    };

    /// The sources of the only fused operator of a graph over keys that begin `cut` values into
    /// wider rows: byte steps and offsets.
    fn sources(cut: usize) -> Vec<([usize; 4], usize)> {
        let device = Device::cpu(1).unwrap();
        let mut found = Vec::new();
        let seen = std::cell::RefCell::new(&mut found);
        Graph::build(&device, |g| {
            let q = g.input("q", DType::F32, &[1, 3, 2, 64]);
            let k = g.input("k", DType::F16, &[1, 5, 2, 64 + 8]);
            let k = k.slice(-1, cut, 64);
            let y = q.attention(k, k, None, 1.0, Kernel::Flash);
            g.output("y", y);
            let fused = guard::root(y.ptr);
            let all = guard::sources(fused).map(|t: NonNull<sys::ggml_tensor>| {
                // SAFETY: a live tensor.
                let t = unsafe { t.as_ref() };
                (t.nb, t.view_offs)
            });
            **seen.borrow_mut() = all.collect();
            Ok(())
        })
        .unwrap();
        found
    }

    #[test]
    fn rows_of_the_fused_kernel_are_aligned() {
        // Aligned rows are used where they lie; others are copied.
        assert_eq!(sources(8)[1].0[2], 2 * 72);
        assert_eq!(sources(8)[1].1, 16);
        for cut in [1, 3, 8] {
            let sources = sources(cut);
            assert_eq!(sources.len(), 3);
            for (steps, offset) in sources {
                assert!(offset.is_multiple_of(ROW_ALIGNMENT), "{cut}: {offset}");
                for step in &steps[1..] {
                    assert!(step.is_multiple_of(ROW_ALIGNMENT), "{cut}: {steps:?}");
                }
            }
        }
    }

    #[test]
    fn models_get_the_kernel_that_the_device_takes() {
        let device = Device::cpu(1).unwrap();
        assert_eq!(Kernel::choose(&device), Kernel::Flash);
        let off = Choices::from_options(None, ["flash-attention=off"]).unwrap();
        let device = device.with_fast_paths(off);
        assert_eq!(Kernel::choose(&device), Kernel::Plain);
    }
}
