//! Recurrent layers.

use super::conv::{Conv, ConvSize, Kernel};
use crate::{
    graph::{DeviceTensor, ShortConv, Tensor},
    weights::{HostTensor, LoadError, Weights},
};

/// One layer of a bidirectional LSTM, under PyTorch's names.
#[derive(Debug, Clone)]
pub struct BiLstm {
    /// To the gates of both directions, with the sum of both biases.
    input: Conv,
    /// As [`Tensor::lstm`] wants them.
    recurrent: DeviceTensor,
}

impl BiLstm {
    /// Reads `weight_ih_l0`, `weight_hh_l0`, `bias_ih_l0`, `bias_hh_l0` and the same with
    /// `_reverse`, of `inputs` values in and `hidden` out for each direction. With `short`, in the
    /// form of [`FastPath::ShortConv`](crate::backend::FastPath::ShortConv).
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(
        weights: &Weights,
        inputs: usize,
        hidden: usize,
        short: bool,
    ) -> Result<BiLstm, LoadError> {
        let (gates, both) = (4 * hidden, 8 * hidden);
        let pair = |name: [&'static str; 2], width: usize, shape: &[usize], plan| {
            let wanted: &[usize] = &[gates, width];
            let whole = shape.to_vec();
            let stack = move |parts: [HostTensor; 2]| {
                let stacked = HostTensor::concat(&parts);
                match &plan {
                    Some(plan) => ShortConv::transform(plan, &stacked.reshape(&[both, width, 1])),
                    None => stacked.reshape(&whole),
                }
            };
            weights.get_with(shape, name[0], name.map(|name| (name, wanted)), stack)
        };
        let biases: [(&str, &[usize]); 4] = [
            ("bias_ih_l0", &[gates]),
            ("bias_hh_l0", &[gates]),
            ("bias_ih_l0_reverse", &[gates]),
            ("bias_hh_l0_reverse", &[gates]),
        ];
        let bias = weights.get_with(&[both], "bias_ih_l0", biases, move |[a, b, c, d]| {
            let sums = (a.data.iter().zip(&b.data)).chain(c.data.iter().zip(&d.data));
            HostTensor::new(&[both], sums.map(|(a, b)| a + b).collect())
        })?;
        let names = ["weight_ih_l0", "weight_ih_l0_reverse"];
        let plan = ShortConv::new(inputs, both, 1, 1, (0, 0)).filter(|_| short);
        let kernel = match plan {
            Some(plan) => {
                let weight = pair(names, inputs, &[plan.values()], Some(plan.clone()))?;
                Kernel::Short(weight, plan)
            }
            None => Kernel::Matrix(pair(names, inputs, &[both, inputs], None)?),
        };
        Ok(BiLstm {
            input: Conv::of(kernel, Some(bias), ConvSize::new(inputs, both, 1)),
            // A vector, so that it stays in f32 whatever the policy.
            recurrent: pair(
                ["weight_hh_l0", "weight_hh_l0_reverse"],
                hidden,
                &[both * hidden],
                None,
            )?,
        })
    }

    /// `[1, time, inputs]` -> `[1, time, 2 hidden]`, forward outputs before backward ones.
    pub fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        self.input.forward(x).lstm(&self.recurrent)
    }
}
