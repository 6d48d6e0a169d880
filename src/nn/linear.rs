//! Affine maps of the last axis.

use std::ops::Range;

use crate::{
    backend::FastPath,
    graph::{Conv1d, DeviceTensor, Tensor},
    weights::{HostTensor, LoadError, Weights},
};

/// y = x Wᵀ + b.
#[derive(Debug, Clone)]
pub struct Linear {
    /// `[out, in]`; for a convolution `[out, kernel * in]`, taps outermost.
    pub weight: DeviceTensor,
    /// `[out]`.
    pub bias: Option<DeviceTensor>,
}

/// Which side of a [`Linear`] is put in reverse order while it is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// None.
    Keep,
    /// The inputs.
    Inputs,
    /// The outputs.
    Outputs,
}

impl Linear {
    /// Reads `weight` `[out, in]` (or `[out, in, 1]`, a convolution of one tap) and, where there
    /// is one, `bias` `[out]`; weight normalisation is undone.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(weights: &Weights, out: usize, inputs: usize) -> Result<Linear, LoadError> {
        Linear::load_part(weights, [out, inputs], 0..out, Turn::Keep)
    }

    /// As [`load`](Self::load), of a stored `[out, in]` the outputs `part` only, turned by `turn`
    /// after that.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load_part(
        weights: &Weights,
        [out, inputs]: [usize; 2],
        part: Range<usize>,
        turn: Turn,
    ) -> Result<Linear, LoadError> {
        let range = part.clone();
        let cut = move |w: HostTensor| {
            let w = w.reshape(&[out, inputs]).rows(range.clone());
            match turn {
                Turn::Keep => w,
                Turn::Inputs => reversed(&w.transpose()).transpose(),
                Turn::Outputs => reversed(&w),
            }
        };
        let weight = folded(weights, [out, inputs, 1], &[part.len(), inputs], cut)?;
        let bias = match weights.has("bias") {
            false => weights.get_opt(&[out], "bias")?,
            true => {
                Some(
                    weights.get_with(&[part.len()], "bias", [("bias", &[out])], move |[b]| {
                        let b = b.rows(part.clone());
                        match turn {
                            Turn::Outputs => reversed(&b),
                            _ => b,
                        }
                    })?,
                )
            }
        };
        Ok(Linear { weight, bias })
    }

    /// `[.., in]` -> `[.., out]`.
    pub fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        x.linear(&self.weight, self.bias.as_ref())
    }

    /// Several maps of one input whose weights lie below each other: `[.., in]` -> `N` times
    /// `[.., out / N]`. One product where the device takes [`FastPath::PackedProjection`], else one
    /// for each.
    pub fn parts<'g, const N: usize>(&self, x: Tensor<'g>) -> [Tensor<'g>; N] {
        let scope = x.scope();
        if scope.device().fast_path(FastPath::PackedProjection) {
            return self.forward(x).split(-1);
        }
        let weights: [Tensor; N] = scope.stored(&self.weight).split(0);
        let bias: Option<[Tensor; N]> = self.bias.as_ref().map(|b| scope.stored(b).split(0));
        std::array::from_fn(|i| {
            let y = x.matmul_t(weights[i]);
            bias.map_or(y, |bias| y + bias[i])
        })
    }

    /// As [`parts`](Self::parts), of the widths `widths`.
    pub fn sections<'g, const N: usize>(
        &self,
        x: Tensor<'g>,
        widths: [usize; N],
    ) -> [Tensor<'g>; N] {
        let scope = x.scope();
        let starts: [usize; N] = std::array::from_fn(|i| widths[..i].iter().sum());
        if scope.device().fast_path(FastPath::PackedProjection) {
            let all = self.forward(x);
            return std::array::from_fn(|i| all.slice(-1, starts[i], widths[i]));
        }
        let weight = scope.stored(&self.weight);
        std::array::from_fn(|i| {
            let y = x.matmul_t(weight.slice(0, starts[i], widths[i]));
            let bias = self.bias.as_ref();
            bias.map_or(y, |b| y + scope.stored(b).slice(0, starts[i], widths[i]))
        })
    }

    /// As a convolution along time: `[batch, time, in]` -> `[batch, time', out]`.
    pub fn conv1d<'g>(&self, x: Tensor<'g>, shape: Conv1d) -> Tensor<'g> {
        x.conv1d(&self.weight, self.bias.as_ref(), shape)
    }
}

/// The first axis in reverse order.
fn reversed(t: &HostTensor) -> HostTensor {
    let rows: Vec<HostTensor> = (0..t.shape[0]).rev().map(|i| t.rows(i..i + 1)).collect();
    HostTensor::concat(&rows)
}

/// The kernel `weight` `[out, in, taps]` as `shape`, made by `make` after weight normalisation is
/// undone, under any of the names that PyTorch gives its parts.
pub(super) fn folded(
    weights: &Weights,
    [out, inputs, taps]: [usize; 3],
    shape: &[usize],
    make: impl Fn(HostTensor) -> HostTensor + Send + Sync + 'static,
) -> Result<DeviceTensor, LoadError> {
    const PARTS: [[&str; 2]; 2] = [
        ["weight_g", "weight_v"],
        [
            "parametrizations.weight.original0",
            "parametrizations.weight.original1",
        ],
    ];
    let whole: &[usize] = &[out, inputs, taps];
    match PARTS.into_iter().find(|[gain, _]| weights.has(gain)) {
        Some([gain, direction]) => {
            let parts = [(gain, &[out, 1, 1][..]), (direction, whole)];
            weights.get_with(shape, "weight", parts, move |[gain, direction]| {
                make(direction.weight_norm(&gain))
            })
        }
        None => weights.get_with(shape, "weight", [("weight", whole)], move |[w]| make(w)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        backend::Choices,
        graph::{BufferBuilder, DType, Device, Graph},
    };

    #[test]
    fn parts_are_one_product_or_one_each() {
        let cpu = Device::cpu(1).unwrap();
        let mut buffer = BufferBuilder::weights(&cpu, 2);
        let linear = Linear {
            weight: buffer.declare("w", DType::F32, &[6, 4]).unwrap(),
            bias: Some(buffer.declare("b", DType::F32, &[6]).unwrap()),
        };
        buffer.allocate().unwrap();
        let weight: Vec<f32> = (0..24).map(|i| i as f32).collect();
        linear.weight.write(&weight).unwrap();
        let bias = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
        linear.bias.as_ref().unwrap().write(&bias).unwrap();
        let run = |device: &Device| {
            let mut graph = Graph::build(device, |g| {
                let x = g.input("x", DType::F32, &[2, 4]);
                let [a, b, c] = linear.parts(x);
                g.output("y", a.concat(b, 1).concat(c, 1));
                Ok(())
            })
            .unwrap();
            graph
                .write("x", &[1.0f32, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
                .unwrap();
            graph.compute().unwrap();
            let products = graph
                .operators()
                .iter()
                .filter(|op| **op == "MUL_MAT")
                .count();
            (graph.read::<f32>("y").unwrap(), products)
        };
        let off = Choices::from_options(None, ["packed-projection=off"]).unwrap();
        let (packed, one) = run(&cpu);
        let (separate, three) = run(&cpu.with_fast_paths(off));
        assert_eq!((one, three), (1, 3));
        assert_eq!(packed, separate);
        let wanted = [
            1.0, 6.0, 11.0, 16.0, 21.0, 26.0, 2.0, 7.0, 12.0, 17.0, 22.0, 27.0,
        ];
        assert_eq!(packed, wanted);
    }
}
