//! Rotary position embedding (Su et al. 2021, <https://arxiv.org/abs/2104.09864>).

use crate::{
    graph::{Scope, Tensor},
    weights::HostTensor,
};

use super::constant::constant;

/// Turns pairs of values by angles that grow with the position, so that products of queries and
/// keys know how far apart they are. A pair is value `i` of the first and of the second half of a
/// head; see [`Rotary::halves`] for checkpoints that pair neighbours.
#[derive(Clone, Copy)]
pub struct Rotary<'g> {
    /// `[time, 1, width / 2]`.
    cos: Tensor<'g>,
    sin: Tensor<'g>,
}

impl<'g> Rotary<'g> {
    /// For positions `0..time` of heads of `width` values; pair i turns by `base^(-2 i / width)` a
    /// step.
    pub fn new(scope: &'g Scope, time: usize, width: usize, base: f64) -> Rotary<'g> {
        let half = width / 2;
        // The angles as PyTorch forms them: frequencies and their products in f32.
        let frequencies: Vec<f32> = (0..half)
            .map(|i| (1.0 / base.powf(2.0 * i as f64 / width as f64)) as f32)
            .collect();
        let table = |of: fn(f64) -> f64| {
            let angles = (0..time).flat_map(|t| frequencies.iter().map(move |f| t as f32 * f));
            let values: Vec<f32> = angles.map(|a| of(f64::from(a)) as f32).collect();
            constant(scope, &[time, 1, half], &values)
        };
        Rotary {
            cos: table(f64::cos),
            sin: table(f64::sin),
        }
    }

    /// `[1, time, head, width]` -> `[1, time, head, width]`.
    pub fn turn(&self, x: Tensor<'g>) -> Tensor<'g> {
        let [a, b] = x.split::<2>(-1).map(Tensor::contiguous);
        let turned = a * self.cos - b * self.sin;
        turned.concat(b * self.cos + a * self.sin, -1)
    }

    /// The rows of a projection `[out, in]` to `heads` heads that pair neighbours, in an order that
    /// pairs halves. Queries and keys in the same order have the same products as before.
    pub fn halves(weight: &HostTensor, heads: usize) -> HostTensor {
        let [out, inputs] = weight.shape[..] else {
            panic!("a projection is a matrix, not {:?}", weight.shape);
        };
        let width = out / heads.max(1);
        let parts = [heads, width / 2, 2, inputs];
        let split = weight.clone().reshape(&parts);
        split.permute(&[0, 2, 1, 3]).reshape(&[out, inputs])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{DType, Device, Graph};

    #[test]
    fn neighbours_turn_by_the_angle_of_their_position() {
        let weight = HostTensor::new(&[8, 1], (0..8).map(|i| i as f32).collect());
        let order = Rotary::halves(&weight, 2).data;
        assert_eq!(order, [0.0, 2.0, 1.0, 3.0, 4.0, 6.0, 5.0, 7.0]);

        let device = Device::cpu(1).unwrap();
        let mut graph = Graph::build_exact(&device, |g| {
            let x = g.input("x", DType::F32, &[1, 3, 2, 4]);
            g.output("y", Rotary::new(g, 3, 4, 100.0).turn(x));
            Ok(())
        })
        .unwrap();
        let x: Vec<f32> = (0..24).map(|i| i as f32 * 0.5 - 3.0).collect();
        graph.write("x", &x).unwrap();
        graph.compute().unwrap();
        let y = graph.read::<f32>("y").unwrap();
        for (i, found) in y.iter().enumerate() {
            let (t, pair, second) = (i / 8, i % 2, i % 4 / 2 == 1);
            let angle = t as f32 * [1.0, 0.1][pair];
            let first = x[i / 4 * 4 + pair];
            let other = x[i / 4 * 4 + 2 + pair];
            let wanted = match second {
                false => first * angle.cos() - other * angle.sin(),
                true => other * angle.cos() + first * angle.sin(),
            };
            assert!((found - wanted).abs() < 1e-5, "{i}: {found} {wanted}");
        }
    }
}
