//! Scaled dot-product attention.

use ggml_sys as sys;

use super::{DType, Tensor, host::Attention, shape::Shape};

/// How [`Tensor::attention`] is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// One fused operator that never stores the scores.
    Flash,
    /// Two products and a softmax; the scores are stored.
    Plain,
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
        let [q, k, v] = [self, keys, values].map(|t| t.packed_rows().permute(&[0, 2, 1, 3]));
        if kernel == Kernel::Plain {
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
