//! Convolutions over a plane, `[batch, height, width, channel]`.

use super::{Conv1d, DType, DeviceTensor, Tensor, host::PlaneConv, shape::Shape};

/// Geometry of a convolution over a plane; each pair is height, then width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conv2d {
    /// Taps of the kernel.
    pub kernel: [usize; 2],
    /// Input steps between output steps.
    pub stride: [usize; 2],
    /// Input steps between taps.
    pub dilation: [usize; 2],
    /// Zeros before and after the input.
    pub padding: [(usize, usize); 2],
}

impl Conv2d {
    /// The geometry along the height (0) or the width (1).
    pub fn along(&self, axis: usize) -> Conv1d {
        Conv1d {
            kernel: self.kernel[axis],
            stride: self.stride[axis],
            dilation: self.dilation[axis],
            padding: self.padding[axis],
        }
    }

    /// Extent of the output for an input of this extent, if the padded input holds a kernel.
    pub fn output(&self, [height, width]: [usize; 2]) -> Option<[usize; 2]> {
        Some([
            self.along(0).output_len(height)?,
            self.along(1).output_len(width)?,
        ])
    }
}

impl<'g> Tensor<'g> {
    /// x `[batch, height, width, in]`, weight `[out, taps down * taps across * in]` (taps
    /// outermost, see [`HostTensor::conv2d_matrix`](crate::weights::HostTensor::conv2d_matrix)) ->
    /// `[batch, height', width', out]`.
    pub fn conv2d(
        self,
        weight: &DeviceTensor,
        bias: Option<&DeviceTensor>,
        shape: Conv2d,
    ) -> Tensor<'g> {
        let [batch, height, width, channels] = self.dims();
        let out = weight.shape().first().copied().unwrap_or(0);
        let reach = shape.kernel[0]
            .checked_mul(shape.kernel[1])
            .and_then(|taps| taps.checked_mul(channels));
        let fits = weight.shape().len() == 2
            && Some(weight.shape()[1]) == reach
            && self.dtype() == DType::F32
            && bias.is_none_or(|b| b.shape() == [out]);
        let size = shape
            .output([height, width])
            .filter(|_| fits)
            .and_then(|[h, w]| Some(([h, w], Shape::new(&[batch, h, w, out])?)));
        let Some(([h, w], whole)) = size else {
            return self
                .scope
                .mistake("conv2d", format!("{self:?} by {weight:?}, {shape:?}"));
        };
        if shape.kernel == [1, 1] && shape.stride == [1, 1] && shape.padding == [(0, 0); 2] {
            let pixels = self.reshape(&[batch * height * width, channels]);
            return pixels.linear(weight, bias).reshape(&[batch, h, w, out]);
        }
        if PlaneConv::serves(self, weight) && bias.is_none_or(|b| b.dtype() == DType::F32) {
            let mut inputs = vec![self.contiguous(), self.scope.stored(weight)];
            inputs.extend(bias.map(|bias| self.scope.stored(bias)));
            return self.scope.host_op(whole, &inputs, PlaneConv { shape });
        }
        let rows = self.patches(shape, [h, w]);
        let y = rows.matmul_t(self.scope.stored(weight));
        match bias {
            Some(bias) => y + bias,
            None => y,
        }
    }

    /// What each output sees: `[batch, h, w, taps down * taps across * channel]`.
    fn patches(self, shape: Conv2d, [h, w]: [usize; 2]) -> Tensor<'g> {
        let [top, left] = shape.padding;
        let x = self
            .pad(1, top.0, top.1)
            .pad(2, left.0, left.1)
            .contiguous();
        let [batch, _, _, channels] = x.dims();
        let nb = x.nb();
        // Neighbours across lie side by side; each other tap is a view of its own.
        let together = match shape.dilation[1] {
            1 => shape.kernel[1],
            _ => 1,
        };
        let view = |down: usize, across: usize| {
            let offset = down * shape.dilation[0] * nb[2] + across * shape.dilation[1] * nb[1];
            let steps = [shape.stride[1] * nb[1], shape.stride[0] * nb[2], nb[3]];
            let extents = [batch, h, w, together * channels];
            x.strided(&extents, steps, offset).contiguous()
        };
        let taps = (0..shape.kernel[0]).flat_map(|down| {
            let across = (0..shape.kernel[1]).step_by(together);
            across.map(move |across| (down, across))
        });
        taps.map(|(down, across)| view(down, across))
            .reduce(|rows, tap| rows.concat(tap, 3))
            .unwrap_or(x)
    }
}
