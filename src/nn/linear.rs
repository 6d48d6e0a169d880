//! Affine maps of the last axis.

use crate::{
    backend::FastPath,
    graph::{Conv1d, DeviceTensor, Tensor},
};

/// y = x Wᵀ + b.
#[derive(Debug, Clone)]
pub struct Linear {
    /// `[out, in]`; for a convolution `[out, kernel * in]`, taps outermost.
    pub weight: DeviceTensor,
    /// `[out]`.
    pub bias: Option<DeviceTensor>,
}

impl Linear {
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

    /// As a convolution along time: `[batch, time, in]` -> `[batch, time', out]`.
    pub fn conv1d<'g>(&self, x: Tensor<'g>, shape: Conv1d) -> Tensor<'g> {
        x.conv1d(&self.weight, self.bias.as_ref(), shape)
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
