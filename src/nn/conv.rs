//! Convolutions along time with their learned parameters.

use super::linear::folded;
use crate::{
    graph::{Around, Conv1d, DeviceTensor, ShortConv, Tensor},
    weights::{HostTensor, LoadError, Weights},
};

/// Sizes of a [`Conv`]: stride 1, zeros around the input so that the output is as long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvSize {
    /// Channels in.
    pub inputs: usize,
    /// Channels out.
    pub out: usize,
    /// Taps.
    pub kernel: usize,
    /// Steps between taps.
    pub dilation: usize,
    /// Whether there are many weights and few steps.
    pub seldom: bool,
}

impl ConvSize {
    /// A convolution of `kernel` neighbouring taps.
    pub fn new(inputs: usize, out: usize, kernel: usize) -> ConvSize {
        ConvSize {
            inputs,
            out,
            kernel,
            dilation: 1,
            seldom: false,
        }
    }

    /// The same for a layer of many weights and few steps, whose weights should take no more
    /// memory than they must.
    pub fn seldom(self) -> ConvSize {
        ConvSize {
            seldom: true,
            ..self
        }
    }

    /// The same with `dilation` steps between taps.
    pub fn dilated(self, dilation: usize) -> ConvSize {
        ConvSize { dilation, ..self }
    }

    /// The way to compute it as a short convolution, and the outputs of that: `out`, or as many
    /// more as fill a vector.
    fn plan(&self) -> Option<(ShortConv, usize)> {
        let with = |out| {
            let plan =
                ShortConv::new(self.inputs, out, self.kernel, self.dilation, self.padding())?;
            let plan = if self.seldom { plan.late() } else { plan };
            Some((plan, out))
        };
        with(self.out).or_else(|| with(self.out.next_multiple_of(VECTOR)))
    }

    fn padding(&self) -> (usize, usize) {
        let reach = (self.kernel - 1) * self.dilation;
        (reach / 2, reach - reach / 2)
    }
}

/// A convolution along time.
#[derive(Debug, Clone)]
pub struct Conv {
    kernel: Kernel,
    bias: Option<DeviceTensor>,
    size: ConvSize,
    padding: (usize, usize),
}

#[derive(Debug, Clone)]
pub(super) enum Kernel {
    /// `[out, kernel * in]`, taps outermost.
    Matrix(DeviceTensor),
    /// Transformed for [`Tensor::short_conv`].
    Short(DeviceTensor, ShortConv),
}

/// Outputs of a short convolution come in vectors of this many.
const VECTOR: usize = 16;

impl Conv {
    /// Reads `weight` `[out, in, kernel]` and, where there is one, `bias` `[out]`; weight
    /// normalisation is undone. With `short`, in the form of
    /// [`FastPath::ShortConv`](crate::backend::FastPath::ShortConv).
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(weights: &Weights, size: ConvSize, short: bool) -> Result<Conv, LoadError> {
        let whole = [size.out, size.inputs, size.kernel];
        let plan = size.plan().filter(|_| short);
        let wide = plan.as_ref().map_or(size.out, |(_, wide)| *wide);
        let bias = match weights.has("bias") && wide != size.out {
            true => Some(weights.get_with(
                &[wide],
                "bias",
                [("bias", &[size.out])],
                move |[b]| b.padded(wide),
            )?),
            false => weights.get_opt(&[size.out], "bias")?,
        };
        let padding = size.padding();
        let kernel = match plan {
            Some((plan, wide)) => {
                let (shape, values) = ([plan.values()], plan.clone());
                let make = move |k: HostTensor| values.transform(&k.reshape(&whole).padded(wide));
                Kernel::Short(folded(weights, whole, &shape, make)?, plan)
            }
            None => {
                let shape = [size.out, size.kernel * size.inputs];
                Kernel::Matrix(folded(weights, whole, &shape, move |k| k.conv_matrix())?)
            }
        };
        Ok(Conv {
            kernel,
            bias,
            size,
            padding,
        })
    }

    /// One whose kernel and bias have been read already.
    pub(super) fn of(kernel: Kernel, bias: Option<DeviceTensor>, size: ConvSize) -> Conv {
        Conv {
            kernel,
            bias,
            size,
            padding: size.padding(),
        }
    }

    /// `[batch, time, in]` -> `[batch, time, out]`.
    pub fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        self.around(x, Around::default())
    }

    /// Plan, weight and bias, where it has been loaded in the short form.
    pub(super) fn short(&self) -> Option<(&ShortConv, &DeviceTensor, &DeviceTensor)> {
        match &self.kernel {
            Kernel::Short(weight, plan) if self.size.plan()?.1 == self.size.out => {
                Some((plan, weight, self.bias.as_ref()?))
            }
            _ => None,
        }
    }

    /// The convolution and what is [`Around`] it: `[batch, time, in]` -> `[batch, time, out]`.
    pub fn around<'g>(&self, x: Tensor<'g>, around: Around<'_, 'g>) -> Tensor<'g> {
        match &self.kernel {
            Kernel::Short(weight, plan) => {
                let bias = self.bias.as_ref();
                if self
                    .size
                    .plan()
                    .is_none_or(|(_, wide)| wide == self.size.out)
                {
                    return x.short_conv(weight, bias, plan, around);
                }
                let slope = around.slope;
                let before = Around {
                    slope,
                    ..Around::default()
                };
                let y = x.short_conv(weight, bias, plan, before);
                around.after(y.slice(2, 0, self.size.out).contiguous())
            }
            Kernel::Matrix(weight) => {
                let x = match around.slope {
                    1.0 => x,
                    slope => x.leaky_relu(slope),
                };
                let geometry = Conv1d {
                    kernel: self.size.kernel,
                    stride: 1,
                    dilation: self.size.dilation,
                    padding: self.padding,
                };
                around.after(x.conv1d(weight, self.bias.as_ref(), geometry))
            }
        }
    }
}

/// A transposed convolution along time that makes every step `stride` steps.
///
/// Each input step reaches `kernel` output steps, `stride` of which are new: so the outputs of
/// one stride are `stride * out` channels of a convolution of `kernel / stride` taps.
#[derive(Debug, Clone)]
pub struct Upsample {
    conv: Conv,
    out: usize,
    stride: usize,
    crop: usize,
}

/// Sizes of an [`Upsample`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpsampleSize {
    /// Channels in.
    pub inputs: usize,
    /// Channels out.
    pub out: usize,
    /// Taps, a multiple of `stride`.
    pub kernel: usize,
    /// Output steps for each input step.
    pub stride: usize,
}

impl Upsample {
    /// Reads `weight` `[in, out, kernel]` and `bias` `[out]`, of a layer that crops
    /// `(kernel - stride) / 2` steps from both ends; weight normalisation is undone.
    ///
    /// # Errors
    /// As [`Weights::get`]. A kernel that is no multiple of the stride, or differs from it by an
    /// odd number, is a missing weight: no such layer is known.
    pub fn load(weights: &Weights, size: UpsampleSize, short: bool) -> Result<Upsample, LoadError> {
        let UpsampleSize {
            inputs,
            out,
            kernel,
            stride,
        } = size;
        let taps = kernel.div_ceil(stride.max(1));
        let padding = (taps - 1, taps - 1);
        // Its weights would grow fourfold for two taps, and it has the fewest steps of its stage.
        let plan = ShortConv::new(inputs, stride * out, taps, 1, padding);
        let plan = plan.filter(|_| short).map(ShortConv::late);
        let turn = move |w: HostTensor| polyphase(&w, size);
        let whole = [inputs, out, kernel];
        let kernel_form = match plan {
            Some(plan) => {
                let (shape, values) = ([plan.values()], plan.clone());
                let make = move |w| values.transform(&turn(w));
                Kernel::Short(folded(weights, whole, &shape, make)?, plan)
            }
            None => {
                let shape = [stride * out, taps * inputs];
                let make = move |w| turn(w).conv_matrix();
                Kernel::Matrix(folded(weights, whole, &shape, make)?)
            }
        };
        let bias = weights.get_with(&[stride * out], "bias", [("bias", &[out])], move |[b]| {
            HostTensor::new(&[stride * out], b.data.repeat(stride))
        })?;
        Ok(Upsample {
            conv: Conv {
                kernel: kernel_form,
                bias: Some(bias),
                size: ConvSize::new(inputs, stride * out, taps),
                padding,
            },
            out,
            stride,
            crop: (kernel - stride) / 2,
        })
    }

    /// `leaky(x)` with the slope `slope` (1 for none), made longer: `[1, time, in]` ->
    /// `[1, time * stride, out]`.
    pub fn forward<'g>(&self, x: Tensor<'g>, slope: f32) -> Tensor<'g> {
        let time = x.dim(1);
        let around = Around {
            slope,
            ..Around::default()
        };
        let y = self.conv.around(x, around); // [1, time + taps - 1, stride * out]
        let steps = y.dim(1) * self.stride;
        y.reshape(&[1, steps, self.out])
            .slice(1, self.crop, time * self.stride)
    }
}

/// The kernel `[in, out, kernel]` of a transposed convolution as that of a plain one,
/// `[stride * out, in, kernel / stride]`. Output step `stride u + j` takes tap `j + stride a` of
/// input step `u - a`.
fn polyphase(w: &HostTensor, size: UpsampleSize) -> HostTensor {
    let UpsampleSize {
        inputs,
        out,
        kernel,
        stride,
    } = size;
    let taps = kernel.div_ceil(stride);
    let mut turned = HostTensor::zeros(&[stride * out, inputs, taps]);
    for c in 0..inputs {
        for o in 0..out {
            for k in 0..kernel {
                let (j, a) = (k % stride, k / stride);
                let at = ((j * out + o) * inputs + c) * taps + (taps - 1 - a);
                turned.data[at] = w.data[(c * out + o) * kernel + k];
            }
        }
    }
    turned
}
