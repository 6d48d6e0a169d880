//! Convolutions over a plane, `[batch, height, width, channel]`, with their learned parameters.

use crate::{
    graph::{Conv2d, DeviceTensor, ShortConv2d, Tensor},
    weights::{HostTensor, LoadError, Weights},
};

/// A convolution over a plane.
#[derive(Debug, Clone)]
pub struct PlaneConv {
    kernel: Kernel,
    bias: Option<DeviceTensor>,
    shape: Conv2d,
}

#[derive(Debug, Clone)]
enum Kernel {
    /// `[out, down * across * in]`, taps outermost.
    Matrix(DeviceTensor),
    /// Transformed for [`Tensor::short_conv2d`].
    Short(DeviceTensor, Box<ShortConv2d>),
}

impl PlaneConv {
    /// Reads `weight` `[out, in, down, across]` and, where there is one, `bias` `[out]`.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(
        weights: &Weights,
        [out, inputs]: [usize; 2],
        shape: Conv2d,
    ) -> Result<PlaneConv, LoadError> {
        PlaneConv::load_short(weights, [out, inputs], shape, false)
    }

    /// The same, with `short` in the form of
    /// [`FastPath::ShortConv`](crate::backend::FastPath::ShortConv) where that can be.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load_short(
        weights: &Weights,
        size: [usize; 2],
        shape: Conv2d,
        short: bool,
    ) -> Result<PlaneConv, LoadError> {
        let ([out, inputs], [down, across]) = (size, shape.kernel);
        let parts = [("weight", &[out, inputs, down, across][..])];
        let kernel = match ShortConv2d::new(size, shape).filter(|_| short) {
            Some(plan) => {
                let (values, transform) = (plan.values(), plan.clone());
                let weight = weights.get_with(&[values], "weight", parts, move |[w]| {
                    transform.transform(&w)
                });
                Kernel::Short(weight?, Box::new(plan))
            }
            None => {
                let matrix = [out, down * across * inputs];
                let weight = weights.get_with(&matrix, "weight", parts, |[w]| w.conv2d_matrix());
                Kernel::Matrix(weight?)
            }
        };
        Ok(PlaneConv {
            kernel,
            bias: weights.get_opt(&[out], "bias")?,
            shape,
        })
    }

    /// `[batch, height, width, in]` -> `[batch, height', width', out]`.
    pub fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        match &self.kernel {
            Kernel::Matrix(weight) => x.conv2d(weight, self.bias.as_ref(), self.shape),
            Kernel::Short(weight, plan) => x.short_conv2d(weight, self.bias.as_ref(), plan),
        }
    }
}

/// A transposed convolution over a plane that makes every pixel `stride` pixels.
///
/// Each pixel reaches `kernel` outputs along an axis, `stride` of which are new: so the outputs of
/// one stride are `stride` times the channels of a convolution of `kernel / stride` taps.
#[derive(Debug, Clone)]
pub struct PlaneUpsample {
    conv: PlaneConv,
    size: PlaneUpsampleSize,
}

/// Sizes of a [`PlaneUpsample`]; each pair is height, then width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlaneUpsampleSize {
    /// Channels in.
    pub inputs: usize,
    /// Channels out.
    pub out: usize,
    /// Taps.
    pub kernel: [usize; 2],
    /// Outputs for each input.
    pub stride: [usize; 2],
}

impl PlaneUpsampleSize {
    /// Taps of the plain convolution.
    fn taps(&self) -> [usize; 2] {
        [0, 1].map(|axis| self.kernel[axis].div_ceil(self.stride[axis]))
    }
}

impl PlaneUpsample {
    /// Reads `weight` `[in, out, down, across]` and `bias` `[out]`.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(weights: &Weights, size: PlaneUpsampleSize) -> Result<PlaneUpsample, LoadError> {
        let PlaneUpsampleSize {
            inputs,
            out,
            kernel: [down, across],
            stride,
            ..
        } = size;
        let taps = size.taps();
        let channels = stride[0] * stride[1] * out;
        let matrix = [channels, taps[0] * taps[1] * inputs];
        let parts = [("weight", &[inputs, out, down, across][..])];
        let weight = weights.get_with(&matrix, "weight", parts, move |[w]| {
            polyphase(&w, size).conv2d_matrix()
        })?;
        let bias = weights.get_with(&[channels], "bias", [("bias", &[out])], move |[b]| {
            HostTensor::new(&[channels], b.data.repeat(stride[0] * stride[1]))
        })?;
        let shape = Conv2d {
            kernel: taps,
            stride: [1, 1],
            dilation: [1, 1],
            padding: taps.map(|n| (n - 1, n - 1)),
        };
        let conv = PlaneConv {
            kernel: Kernel::Matrix(weight),
            bias: Some(bias),
            shape,
        };
        Ok(PlaneUpsample { conv, size })
    }

    /// All that the inputs reach: `[batch, height, width, in]` -> `[batch, (height - 1) * stride +
    /// kernel, .., out]`; where the kernel is no multiple of the stride, a few rows more.
    pub fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let batch = x.dim(0);
        let PlaneUpsampleSize { out, stride, .. } = self.size;
        let y = self.conv.forward(x); // [batch, height + n, width + m, stride * stride * out]
        let [_, rows, columns, _] = y.dims();
        let line = stride[1] * out;
        let y = match stride[0] {
            1 => y,
            // A line of pixels of the result after the other.
            _ => y
                .reshape(&[batch * rows, columns, stride[0], line])
                .permute(&[0, 2, 1, 3]),
        };
        y.reshape(&[batch, rows * stride[0], columns * stride[1], out])
    }

    /// The same without what comes before `crop`, and `extent` pixels of it:
    /// `[batch, extent, extent, out]`.
    pub fn cropped<'g>(&self, x: Tensor<'g>, crop: [usize; 2], extent: [usize; 2]) -> Tensor<'g> {
        let y = self.forward(x);
        y.slice(1, crop[0], extent[0]).slice(2, crop[1], extent[1])
    }
}

/// The kernel `[in, out, down, across]` of a transposed convolution as that of a plain one,
/// `[stride * stride * out, in, down / stride, across / stride]`. Along an axis, output
/// `stride u + j` takes tap `j + stride a` of input `u - a`.
fn polyphase(w: &HostTensor, size: PlaneUpsampleSize) -> HostTensor {
    let PlaneUpsampleSize {
        inputs,
        out,
        kernel,
        stride,
        ..
    } = size;
    let taps = size.taps();
    let channels = stride[0] * stride[1] * out;
    let mut turned = HostTensor::zeros(&[channels, inputs, taps[0], taps[1]]);
    // Phase, and place among the taps, of a tap.
    let of = |axis: usize, k: usize| (k % stride[axis], taps[axis] - 1 - k / stride[axis]);
    for (at, &value) in w.data.iter().enumerate() {
        let (down, across) = (at / kernel[1] % kernel[0], at % kernel[1]);
        let (o, c) = (
            at / (kernel[0] * kernel[1]) % out,
            at / (out * kernel[0] * kernel[1]),
        );
        let ((j, a), (i, b)) = (of(0, down), of(1, across));
        let channel = (j * stride[1] + i) * out + o;
        turned.data[((channel * inputs + c) * taps[0] + a) * taps[1] + b] = value;
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        graph::{DType, Device, Graph},
        weights::{Computed, Loader, Policy},
    };

    /// The transposed convolution as PyTorch defines it, cropped.
    fn plain(
        x: &[f32],
        [h, w]: [usize; 2],
        kernel: &[f32],
        size: PlaneUpsampleSize,
        crop: [usize; 2],
    ) -> Vec<f32> {
        let PlaneUpsampleSize {
            inputs,
            out,
            kernel: [down, across],
            stride,
        } = size;
        let (rows, columns) = (h * stride[0], w * stride[1]);
        let mut y = vec![0.5; rows * columns * out];
        for (i, value) in x.iter().enumerate().take(h * w * inputs) {
            let (c, column, row) = (i % inputs, i / inputs % w, i / inputs / w);
            for k in 0..out * down * across {
                let (b, a, o) = (k % across, k / across % down, k / across / down);
                let to = [row * stride[0] + a, column * stride[1] + b];
                let [Some(r), Some(s)] = [0, 1].map(|axis| to[axis].checked_sub(crop[axis])) else {
                    continue;
                };
                if r < rows && s < columns {
                    let weight = kernel[c * out * down * across + k];
                    y[(r * columns + s) * out + o] += value * weight;
                }
            }
        }
        y
    }

    #[test]
    fn upsampling_is_the_transposed_convolution() {
        let device = Device::cpu(2).unwrap();
        for (kernel, stride, crop) in [
            ([5, 5], [2, 2], [1, 1]),
            ([8, 1], [4, 1], [2, 0]),
            ([4, 6], [2, 2], [1, 2]),
            ([3, 1], [3, 1], [0, 0]),
        ] {
            let size = PlaneUpsampleSize {
                inputs: 3,
                out: 2,
                kernel,
                stride,
            };
            let value = |i: usize| ((i * 37 % 101) as f32 - 50.0) / 50.0;
            let source = Computed::new(move |name, shape| match name {
                "bias" => vec![0.5; shape[0]],
                _ => (0..shape.iter().product()).map(value).collect(),
            });
            let loader = Loader::new(&source, &device, Policy::Native);
            let layer = PlaneUpsample::load(&loader.root(), size).unwrap();
            loader.finish().unwrap();
            let (h, w) = (5, 7);
            let x: Vec<f32> = (0..h * w * 3).map(|i| value(i + 11)).collect();
            let mut graph = Graph::build(&device, |g| {
                let x = g.input("x", DType::F32, &[1, h, w, 3]);
                let y = layer.cropped(x, crop, [h * stride[0], w * stride[1]]);
                g.output("y", y);
                Ok(())
            })
            .unwrap();
            graph.write("x", &x).unwrap();
            graph.compute().unwrap();
            let count = 6 * kernel[0] * kernel[1];
            let taps: Vec<f32> = (0..count).map(value).collect();
            let wanted = plain(&x, [h, w], &taps, size, crop);
            let found = graph.read::<f32>("y").unwrap();
            assert_eq!(found.len(), wanted.len());
            let worst = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs());
            assert!(worst.fold(0.0, f32::max) < 1e-5, "{size:?}");
        }
    }

    #[test]
    fn short_convolutions_are_the_plain_ones() {
        let device = Device::cpu(2).unwrap();
        let value = |i: usize| ((i * 37 % 101) as f32 - 50.0) / 50.0;
        for (kernel, [out, inputs], [batch, h, w]) in [
            ([3, 3], [32, 16], [2, 5, 13]),
            ([1, 3], [16, 48], [1, 1, 400]),
            ([3, 2], [48, 32], [1, 7, 25]),
        ] {
            let shape = Conv2d {
                kernel,
                stride: [1, 1],
                dilation: [1, 1],
                padding: kernel.map(|n| (n / 2, n / 2)),
            };
            let source = Computed::new(move |_, shape| {
                let n: usize = shape.iter().product();
                (0..n).map(|i| value(i * i + 3)).collect()
            });
            let loader = Loader::new(&source, &device, Policy::Native);
            let both = [false, true].map(|short| {
                let root = loader.root().pp(short);
                PlaneConv::load_short(&root, [out, inputs], shape, short).unwrap()
            });
            loader.finish().unwrap();
            assert!(matches!(both[1].kernel, Kernel::Short(..)));
            let mut graph = Graph::build(&device, |g| {
                let x = g.input("x", DType::F32, &[batch, h, w, inputs]);
                g.output("plain", both[0].forward(x));
                g.output("short", both[1].forward(x));
                Ok(())
            })
            .unwrap();
            let x: Vec<f32> = (0..batch * h * w * inputs).map(value).collect();
            graph.write("x", &x).unwrap();
            graph.compute().unwrap();
            let [plain, short] = ["plain", "short"].map(|y| graph.read::<f32>(y).unwrap());
            assert_eq!(graph.shape("plain").unwrap(), graph.shape("short").unwrap());
            let most = plain.iter().fold(0.0, |most: f32, y| most.max(y.abs()));
            let worst = plain.iter().zip(&short).map(|(a, b)| (a - b).abs());
            assert!(worst.fold(0.0, f32::max) < 1e-5 * most, "{kernel:?}");
        }
    }
}
