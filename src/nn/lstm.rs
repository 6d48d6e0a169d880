//! Recurrent layers.

use super::Linear;
use crate::{
    graph::{DeviceTensor, Tensor},
    weights::{HostTensor, LoadError, Weights},
};

/// One layer of a bidirectional LSTM, under PyTorch's names.
#[derive(Debug, Clone)]
pub struct BiLstm {
    /// To the gates of both directions, with the sum of both biases.
    input: Linear,
    /// As [`Tensor::lstm`] wants them.
    recurrent: DeviceTensor,
}

impl BiLstm {
    /// Reads `weight_ih_l0`, `weight_hh_l0`, `bias_ih_l0`, `bias_hh_l0` and the same with
    /// `_reverse`, of `inputs` values in and `hidden` out for each direction.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(weights: &Weights, inputs: usize, hidden: usize) -> Result<BiLstm, LoadError> {
        let (gates, both) = (4 * hidden, 8 * hidden);
        let pair = |name: [&'static str; 2], width: usize, shape: &[usize]| {
            let wanted: &[usize] = &[gates, width];
            let whole = shape.to_vec();
            let stack = move |parts: [HostTensor; 2]| HostTensor::concat(&parts).reshape(&whole);
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
        Ok(BiLstm {
            input: Linear {
                weight: pair(names, inputs, &[both, inputs])?,
                bias: Some(bias),
            },
            // A vector, so that it stays in f32 whatever the policy.
            recurrent: pair(
                ["weight_hh_l0", "weight_hh_l0_reverse"],
                hidden,
                &[both * hidden],
            )?,
        })
    }

    /// `[1, time, inputs]` -> `[1, time, 2 hidden]`, forward outputs before backward ones.
    pub fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        self.input.forward(x).lstm(&self.recurrent)
    }
}
