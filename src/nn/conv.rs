//! Convolutions along time with their learned parameters.

use super::linear::folded;
use crate::{
    graph::{Around, Conv1d, DeviceTensor, ShortConv, ShortWeight, Tensor},
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
    /// more as fill a vector. Many inputs are made as many as fill vectors, too.
    fn plan(&self) -> Option<(ShortConv, usize)> {
        let inputs = match self.inputs {
            few if few < FEWEST_PADDED => few,
            many => many.next_multiple_of(VECTOR),
        };
        let with = |out| {
            let plan = ShortConv::new(inputs, out, self.kernel, self.dilation, self.padding())?;
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
    /// Packed for it: numbers and lines.
    Packed([DeviceTensor; 2], ShortConv),
}

/// What stands for the weight `name` where a file has it as whole numbers: the name of those, of
/// its shape, and that of the scales, one an output.
pub(super) fn whole_numbers(name: &str) -> [String; 2] {
    [format!("{name}_numbers"), format!("{name}_scale")]
}

/// The kernel `weight` `[out, in, taps]`, stored as whole numbers, packed for `plan`.
pub(super) fn packed(
    weights: &Weights,
    whole: [usize; 3],
    plan: &ShortConv,
) -> Result<Kernel, LoadError> {
    let [numbers, scale] = whole_numbers("weight");
    let [of_numbers, of_lines] = [plan.clone(), plan.clone()];
    let values = (numbers.as_str(), &whole[..]);
    let packed = weights.get_bytes(&[plan.packed_values()], "weight", [values], move |[k]| {
        of_numbers.pack(&fitted(k.reshape(&whole), &of_numbers))
    })?;
    let [_, out] = plan.channels();
    let inputs = [values, (&scale, &whole[..1])];
    let lines = weights.get_with(&[2 * out], "weight_lines", inputs, move |[k, scale]| {
        of_lines.lines(&fitted(k.reshape(&whole), &of_lines), &scale.padded(out))
    })?;
    Ok(Kernel::Packed([packed, lines], plan.clone()))
}

/// A kernel `[out, in, taps]` with zeros for the channels that `plan` has beyond it.
fn fitted(kernel: HostTensor, plan: &ShortConv) -> HostTensor {
    let &[out, inputs, taps] = &kernel.shape[..] else {
        return kernel;
    };
    let [wide, tall] = plan.channels();
    if inputs == wide {
        return kernel.padded(tall);
    }
    let mut data = vec![0.0; tall * wide * taps];
    let rows = data.chunks_exact_mut(wide * taps);
    for (to, row) in rows.zip(kernel.data.chunks_exact(inputs * taps)).take(out) {
        to[..inputs * taps].copy_from_slice(row);
    }
    HostTensor::new(&[tall, wide, taps], data)
}

/// Inputs below which zeros to fill a vector are not worth their products.
const FEWEST_PADDED: usize = 64;

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
            Some((plan, _)) if plan.packs() && weights.has(&whole_numbers("weight")[0]) => {
                packed(weights, whole, &plan)?
            }
            Some((plan, _)) => {
                let (shape, values) = ([plan.values()], plan.clone());
                let make =
                    move |k: HostTensor| values.transform(&fitted(k.reshape(&whole), &values));
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
            Kernel::Short(weight, plan) if plan.channels() == [self.size.inputs, self.size.out] => {
                Some((plan, weight, self.bias.as_ref()?))
            }
            _ => None,
        }
    }

    /// The convolution and what is [`Around`] it: `[batch, time, in]` -> `[batch, time, out]`.
    pub fn around<'g>(&self, x: Tensor<'g>, around: Around<'_, 'g>) -> Tensor<'g> {
        let (weight, plan) = match &self.kernel {
            Kernel::Matrix(weight) => return self.by_product(weight, x, around),
            Kernel::Short(weight, plan) => (ShortWeight::Values(weight), plan),
            Kernel::Packed([numbers, lines], plan) => {
                (ShortWeight::Packed { numbers, lines }, plan)
            }
        };
        let bias = self.bias.as_ref();
        let [inputs, out] = plan.channels();
        let x = x.pad(2, 0, inputs - self.size.inputs);
        if out == self.size.out {
            return x.short_conv(weight, bias, plan, around);
        }
        let before = Around {
            slope: around.slope,
            ..Around::default()
        };
        let y = x.short_conv(weight, bias, plan, before);
        around.after(y.slice(2, 0, self.size.out).contiguous())
    }

    /// The same as one product of matrices.
    fn by_product<'g>(
        &self,
        weight: &DeviceTensor,
        x: Tensor<'g>,
        around: Around<'_, 'g>,
    ) -> Tensor<'g> {
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
