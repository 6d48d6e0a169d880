//! Convolutions of each channel by itself, as one operator.

use ggml_sys as sys;

use super::{DType, Tensor, shape::Shape};

impl<'g> Tensor<'g> {
    /// Convolution along time that does not mix channels, without zeros around the input: x
    /// `[1, time, channel]`, taps f32 `[kernel, channel]` -> `[1, time - kernel + 1, channel]`.
    /// Asked for where the device takes
    /// [`FastPath::DepthwiseConv1d`](crate::backend::FastPath::DepthwiseConv1d).
    pub fn depthwise(self, taps: Tensor<'g>) -> Tensor<'g> {
        let [batch, time, channels] = self.dims();
        let kernel = taps.dim(0);
        let fits = batch == 1
            && self.dtype() == DType::F32
            && taps.dtype() == DType::F32
            && taps.shape() == [kernel, channels]
            && (1..=time).contains(&kernel)
            && channels > 2
            && time <= i32::MAX as usize;
        if !fits {
            return self
                .scope
                .mistake("depthwise", format!("{self:?} by {taps:?}"));
        }
        let Some(steps) = Shape::new(&[1, time - kernel + 1, channels]) else {
            return self.scope.mistake("depthwise", format!("{self:?}"));
        };
        let image = self.contiguous().as_image(|c| [1, time as i64, c, 1]);
        let taps = taps.contiguous().as_image(|c| [1, kernel as i64, 1, c]);
        // SAFETY: f32 planes of width 1 with the channels innermost; one kernel for each channel.
        let y = self.scope.emit(4, |ctx| unsafe {
            let (taps, image) = (taps.ptr.as_ptr(), image.ptr.as_ptr());
            sys::ggml_conv_2d_dw_direct(ctx, taps, image, 1, 1, 0, 0, 1, 1)
        });
        // Its memory is `[time, channel]`, and ggml's extents `[1, time, channel, 1]`.
        let y = y.permute(&[0, 3, 2, 1]); // [1, 1, time, channel]
        y.reshape(steps.as_slice())
    }

    /// Packed `[.., n, channel]` seen as a plane `n` high and 1 wide, the channels innermost: ggml's
    /// extents are `extents(channel)`.
    fn as_image(self, extents: impl Fn(i64) -> [i64; 4]) -> Tensor<'g> {
        let channels = self.ne()[0];
        let (ne, value) = (extents(channels), size_of::<f32>());
        let row = channels as usize * value;
        // Nothing steps along an axis of extent 1, so its step is free: ggml knows this form by steps
        // that grow from the channels over the width to the height.
        let last = if ne[2] == 1 {
            value
        } else {
            row * ne[1] as usize
        };
        let nb = [2 * value, row, value, last];
        // SAFETY: the same values at the same places (see `strided`).
        self.scope.emit(4, |ctx| unsafe {
            let view =
                sys::ggml_view_4d(ctx, self.ptr.as_ptr(), 1, 1, 1, 1, nb[1], nb[2], nb[3], 0);
            (*view).ne = ne;
            (*view).nb = nb;
            view
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::{BufferBuilder, DType, Device, Graph};

    #[test]
    fn each_channel_has_its_own_taps() {
        let (time, channels, kernel) = (9, 20, 7);
        let device = Device::cpu(2).unwrap();
        let mut buffer = BufferBuilder::weights(&device, 1);
        let taps = buffer
            .declare("taps", DType::F32, &[kernel, channels])
            .unwrap();
        buffer.allocate().unwrap();
        let value = |i: usize| (i as f32 * 0.37).sin();
        let weight: Vec<f32> = (0..kernel * channels).map(value).collect();
        taps.write(&weight).unwrap();
        let mut graph = Graph::build(&device, |g| {
            let x = g.input("x", DType::F32, &[1, time, channels]);
            g.output("y", x.depthwise(g.stored(&taps)));
            Ok(())
        })
        .unwrap();
        let x: Vec<f32> = (0..time * channels).map(|i| value(3 * i + 1)).collect();
        graph.write("x", &x).unwrap();
        graph.compute().unwrap();
        assert_eq!(graph.shape("y").unwrap(), [1, 3, channels]);
        for (at, y) in graph.read::<f32>("y").unwrap().into_iter().enumerate() {
            let (t, c) = (at / channels, at % channels);
            let tap = |k: usize| weight[k * channels + c] * x[(t + k) * channels + c];
            let wanted: f32 = (0..kernel).map(tap).sum();
            assert!((y - wanted).abs() < 1e-5, "{t} {c}: {y} for {wanted}");
        }
    }

    #[test]
    fn an_input_shorter_than_the_kernel_is_a_mistake() {
        let device = Device::cpu(1).unwrap();
        let mut buffer = BufferBuilder::weights(&device, 1);
        let taps = buffer.declare("taps", DType::F32, &[7, 4]).unwrap();
        buffer.allocate().unwrap();
        let built = Graph::build(&device, |g| {
            let x = g.input("x", DType::F32, &[1, 6, 4]);
            g.output("y", x.depthwise(g.stored(&taps)));
            Ok(())
        });
        assert!(built.is_err());
    }
}
