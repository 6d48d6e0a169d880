//! One-dimensional convolutions over `[batch, time, channel]`.

use ggml_sys as sys;

use super::{DType, DeviceTensor, Tensor, host::Product, shape::Shape};

/// Steps below which the inputs of a batch are not worth a product each.
const SHORT: usize = 64;

/// Geometry of a convolution along time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conv1d {
    /// Taps of the kernel.
    pub kernel: usize,
    /// Input steps between output steps.
    pub stride: usize,
    /// Input steps between taps.
    pub dilation: usize,
    /// Zeros before and after the input.
    pub padding: (usize, usize),
}

impl Conv1d {
    /// Stride and dilation 1, padded so that the output is as long as the input (odd kernels).
    pub fn same(kernel: usize) -> Conv1d {
        Conv1d {
            kernel,
            stride: 1,
            dilation: 1,
            padding: (kernel / 2, kernel / 2),
        }
    }

    /// Output steps for `time` input steps, if the padded input is at least one kernel long.
    pub fn output_len(&self, time: usize) -> Option<usize> {
        let gaps = self.kernel.checked_sub(1)?;
        let reach = self.dilation.checked_mul(gaps)?.checked_add(1)?;
        let padded = time
            .checked_add(self.padding.0)?
            .checked_add(self.padding.1)?;
        padded
            .checked_sub(reach)?
            .checked_div(self.stride)?
            .checked_add(1)
    }
}

impl<'g> Tensor<'g> {
    /// Convolution as one product: x `[batch, time, in]`, weight `[out, kernel * in]` with the
    /// taps outermost (see [`Conv1d`]) -> `[batch, time', out]`.
    ///
    /// PyTorch stores `[out, in, kernel]`; the weight loader's conv transform turns it.
    pub fn conv1d(
        self,
        weight: &DeviceTensor,
        bias: Option<&DeviceTensor>,
        shape: Conv1d,
    ) -> Tensor<'g> {
        let [_, time, channels] = self.dims();
        let reach = shape.kernel.checked_mul(channels);
        let fits = weight.shape().len() == 2 && Some(weight.shape()[1]) == reach;
        if !fits || shape.output_len(time).is_none() || self.dtype() != DType::F32 {
            return self
                .scope
                .mistake("conv1d", format!("{self:?} by {weight:?}, {shape:?}"));
        }
        let x = self.pad(1, shape.padding.0, shape.padding.1).contiguous();
        let weight = self.scope.stored(weight);
        let columns = x.unfold(shape);
        // Rows that overlap suit our own product, and ggml's on the CPU where it copies each row to
        // the weight's type. Its f32 product is fast only on packed rows, and GPU libraries refuse
        // rows that begin before the last one ends.
        let views = self.scope.device().is_cpu()
            && (weight.dtype() != DType::F32 || Product::serves(columns, weight));
        // Many short inputs make one product of many rows.
        let [batch, steps, width] = columns.dims();
        let joined = batch > 1 && steps < SHORT;
        let columns = match views && !joined {
            true => columns,
            false => columns.contiguous(),
        };
        let mut y = match joined {
            true => columns
                .reshape(&[batch * steps, width])
                .matmul_t(weight)
                .reshape(&[batch, steps, weight.dim(0)]),
            false => columns.matmul_t(weight),
        };
        // ggml cannot move a view with overlapping rows from one backend to another.
        if ![x, columns, y].iter().all(|t| self.scope.runs(*t)) {
            y = x.gather(shape).matmul_t(weight);
        }
        match bias {
            Some(bias) => y + bias,
            None => y,
        }
    }

    /// The (already padded) input `[batch, time, channel]` seen as rows of a kernel's reach:
    /// `[batch, time', kernel * channel]`. Without dilation this is a view whose rows overlap.
    fn unfold(self, shape: Conv1d) -> Tensor<'g> {
        let Some([batch, steps, channels]) = self.unfolded(shape) else {
            return self.scope.mistake("unfold", format!("{self:?}, {shape:?}"));
        };
        if shape.kernel == 1 && shape.stride == 1 {
            return self;
        }
        let nb = self.nb();
        let [stride, dilation] = self.steps(shape);
        let width = shape.kernel * channels;
        if shape.dilation == 1 {
            return self.strided(&[batch, steps, width], [stride, nb[2], nb[3]], 0);
        }
        self.strided(
            &[batch, steps, shape.kernel, channels],
            [dilation, stride, nb[2]],
            0,
        )
        .contiguous()
        .reshape(&[batch, steps, width])
    }

    /// The same rows put together from one view for each tap, none of which overlaps itself.
    fn gather(self, shape: Conv1d) -> Tensor<'g> {
        let Some([batch, steps, channels]) = self.unfolded(shape) else {
            return self.scope.mistake("unfold", format!("{self:?}, {shape:?}"));
        };
        let nb = self.nb();
        let [stride, dilation] = self.steps(shape);
        let tap = |k| {
            self.strided(
                &[batch, steps, channels],
                [stride, nb[2], nb[3]],
                k * dilation,
            )
        };
        (1..shape.kernel).fold(tap(0), |rows, k| rows.concat(tap(k), 2))
    }

    /// Batch, steps and channels of the unfolded input, if ggml can count its values.
    fn unfolded(self, shape: Conv1d) -> Option<[usize; 3]> {
        let [batch, time, channels] = self.dims();
        let unpadded = Conv1d {
            padding: (0, 0),
            ..shape
        };
        let steps = unpadded.output_len(time)?;
        let all = [batch, steps, shape.kernel, channels].map(|n| n as i64);
        Shape::countable(&all).then_some([batch, steps, channels])
    }

    /// Bytes between output steps and between taps.
    fn steps(self, shape: Conv1d) -> [usize; 2] {
        let nb = self.nb();
        // A step beyond the whole input is one that is never taken.
        [shape.stride, shape.dilation].map(|n| nb[1].saturating_mul(n).min(nb[3]))
    }

    /// A view with any steps between its rows, from `offset` bytes into this packed tensor on.
    pub(super) fn strided(self, shape: &[usize], steps: [usize; 3], offset: usize) -> Tensor<'g> {
        let Some(extents) = Shape::new(shape) else {
            return self.scope.mistake("strided", format!("{shape:?}"));
        };
        let ne = extents.ggml();
        let reach = (ne[0] as usize - 1) * self.nb()[0]
            + (0..3)
                .map(|i| (ne[i + 1] as usize - 1) * steps[i])
                .sum::<usize>();
        // SAFETY: a live tensor.
        let bytes = unsafe { sys::ggml_nbytes(self.ptr.as_ptr()) };
        if offset + reach >= bytes {
            return self.scope.mistake(
                "strided",
                format!("reaches byte {} of {bytes}", offset + reach),
            );
        }
        // ggml checks a view's packed size against its source, which overlapping rows exceed;
        // so the view is made small and given its extents and steps afterwards.
        // SAFETY: the last byte reached lies inside the source (checked above).
        self.scope.emit(extents.rank(), |ctx| unsafe {
            let view = sys::ggml_view_4d(
                ctx,
                self.ptr.as_ptr(),
                1,
                1,
                1,
                1,
                steps[0],
                steps[1],
                steps[2],
                offset,
            );
            (*view).ne = ne;
            (*view).nb = [self.nb()[0], steps[0], steps[1], steps[2]];
            view
        })
    }

    /// Transposed convolution as a product and an overlapping sum: x `[time, in]`, weight
    /// `[kernel * out, in]` with out outermost, cropping `crop` steps from both ends ->
    /// `[out, (time - 1) stride + kernel - 2 crop]`.
    pub fn conv_transpose1d(
        self,
        weight: &DeviceTensor,
        out: usize,
        stride: usize,
        crop: usize,
    ) -> Tensor<'g> {
        let [time, channels] = self.dims();
        let kernel = weight.shape().first().map_or(0, |&rows| rows / out.max(1));
        let long = (time - 1)
            .checked_mul(stride)
            .and_then(|n| n.checked_add(kernel));
        let left = long.and_then(|n| n.checked_sub(crop.checked_mul(2)?));
        let small = [stride, out, crop].iter().all(|&n| n <= i32::MAX as usize);
        let fits = weight.shape() == [kernel * out, channels]
            && kernel > 0
            && stride > 0
            && small
            && left.is_some_and(|n| n > 0 && Shape::countable(&[n as i64, out as i64]));
        if !fits {
            return self.scope.mistake(
                "conv_transpose1d",
                format!("{self:?} by {weight:?}, {out} outputs, stride {stride}, crop {crop}"),
            );
        }
        let columns = self.matmul_t(self.scope.stored(weight)); // [time, kernel * out]
        // SAFETY: a packed f32 matrix whose width is a whole number of `out` blocks.
        self.scope.emit(2, |ctx| unsafe {
            sys::ggml_col2im_1d(
                ctx,
                columns.ptr.as_ptr(),
                stride as i32,
                out as i32,
                crop as i32,
            )
        })
    }
}
