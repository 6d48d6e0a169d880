//! Recurrent layers.

use super::conv::{Conv, ConvSize, Kernel, whole_numbers};
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
        BiLstm::load_layer(weights, 0, [inputs, hidden], short)
    }

    /// As [`load`](Self::load), of the layer `layer` of several: its number in place of the 0.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load_layer(
        weights: &Weights,
        layer: usize,
        [inputs, hidden]: [usize; 2],
        short: bool,
    ) -> Result<BiLstm, LoadError> {
        let (gates, both) = (4 * hidden, 8 * hidden);
        let names = |part: &str| ["", "_reverse"].map(|way| format!("{part}_l{layer}{way}"));
        let pair = |part: &str, width: usize, shape: &[usize], plan| {
            let wanted: &[usize] = &[gates, width];
            let whole = shape.to_vec();
            let stack = move |parts: [HostTensor; 2]| {
                let stacked = HostTensor::concat(&parts);
                match &plan {
                    Some(plan) => ShortConv::transform(plan, &stacked.reshape(&[both, width, 1])),
                    None => stacked.reshape(&whole),
                }
            };
            let names = names(part);
            let parts = names.each_ref().map(|name| (name.as_str(), wanted));
            weights.get_with(shape, &names[0], parts, stack)
        };
        let (of_input, of_state) = (names("bias_ih"), names("bias_hh"));
        let one: &[usize] = &[gates];
        let biases = [&of_input[0], &of_state[0], &of_input[1], &of_state[1]];
        let biases = biases.map(|name| (name.as_str(), one));
        let bias = weights.get_with(&[both], &of_input[0], biases, move |[a, b, c, d]| {
            let sums = (a.data.iter().zip(&b.data)).chain(c.data.iter().zip(&d.data));
            HostTensor::new(&[both], sums.map(|(a, b)| a + b).collect())
        })?;
        let plan = ShortConv::new(inputs, both, 1, 1, (0, 0)).filter(|_| short);
        let names = names("weight_ih");
        let kernel = match plan {
            Some(plan) if weights.has(&whole_numbers(&names[0])[0]) => {
                packed(weights, names, [gates, inputs], plan)?
            }
            Some(plan) => {
                let weight = pair("weight_ih", inputs, &[plan.values()], Some(plan.clone()))?;
                Kernel::Short(weight, plan)
            }
            None => Kernel::Matrix(pair("weight_ih", inputs, &[both, inputs], None)?),
        };
        Ok(BiLstm {
            input: Conv::of(kernel, Some(bias), ConvSize::new(inputs, both, 1)),
            // A vector, so that it stays in f32 whatever the policy.
            recurrent: pair("weight_hh", hidden, &[both * hidden], None)?,
        })
    }

    /// `[1, time, inputs]` -> `[1, time, 2 hidden]`, forward outputs before backward ones.
    pub fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        self.input.forward(x).lstm(&self.recurrent)
    }
}

/// The weights of both directions, called `names`, each `[gates, inputs]` and stored as whole
/// numbers, below each other and packed for `plan`.
fn packed(
    weights: &Weights,
    names: [String; 2],
    [gates, inputs]: [usize; 2],
    plan: ShortConv,
) -> Result<Kernel, LoadError> {
    let [[numbers, scale], [more, their_scale]] = names.each_ref().map(|name| whole_numbers(name));
    let each: &[usize] = &[gates, inputs];
    let stacked =
        move |parts: &[HostTensor]| HostTensor::concat(parts).reshape(&[2 * gates, inputs, 1]);
    let [of_numbers, of_lines] = [plan.clone(), plan.clone()];
    let parts = [(numbers.as_str(), each), (&more, each)];
    let values = [plan.packed_values()];
    let packed = weights.get_bytes(&values, &names[0], parts, move |parts| {
        of_numbers.pack(&stacked(&parts))
    })?;
    let [a, b] = parts;
    let parts = [a, b, (&scale, &each[..1]), (&their_scale, &each[..1])];
    let name = format!("{}_lines", names[0]);
    let lines = weights.get_with(&[4 * gates], &name, parts, move |[a, b, c, d]| {
        of_lines.lines(&stacked(&[a, b]), &HostTensor::concat(&[c, d]))
    })?;
    Ok(Kernel::Packed([packed, lines], plan))
}
