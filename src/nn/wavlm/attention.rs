//! Attention that knows how far apart two steps are.

use crate::{
    graph::{DeviceTensor, Tensor},
    nn::Linear,
    weights::{HostTensor, LoadError, Weights},
};

use super::size::WavLmSize;

/// Distances that have a bucket of their own; half of the buckets of one direction.
const EXACT: usize = 80;
/// Distance from which on all share a bucket.
const FAR: usize = 800;
/// Buckets of distances, half of them for later positions.
pub(super) const BUCKETS: usize = 4 * EXACT;

/// The bucket of a distance from query to key.
fn bucket(distance: isize) -> usize {
    let (later, far) = (distance > 0, distance.unsigned_abs());
    let steps = match far < EXACT {
        true => far,
        false => {
            let octaves = (far as f32 / EXACT as f32).ln() / (FAR as f32 / EXACT as f32).ln();
            (EXACT + (octaves * EXACT as f32) as usize).min(2 * EXACT - 1)
        }
    };
    steps + if later { 2 * EXACT } else { 0 }
}

/// The bias of each head, query and key: `[head, steps, steps]`.
pub(super) fn by_position(table: &HostTensor, steps: usize) -> Vec<f32> {
    let heads = table.shape[1];
    let span = steps as isize - 1;
    let mut bias = Vec::with_capacity(heads * steps * steps);
    for head in 0..heads {
        let line: Vec<f32> = (-span..=span)
            .map(|distance| table.data[bucket(distance) * heads + head])
            .collect();
        for query in 0..steps {
            let start = steps - 1 - query;
            bias.extend_from_slice(&line[start..start + steps]);
        }
    }
    bias
}

/// Attention with a bias by distance, which each query lets through as far as its gate is open.
pub(super) struct GatedAttention {
    query_key_value: Linear,
    out: Linear,
    /// From a head's part of the input to the two halves of the gate, and the gate's constant
    /// `[head, 1]`.
    gate: Linear,
    constant: DeviceTensor,
}

impl GatedAttention {
    pub fn load(weights: &Weights, size: &WavLmSize) -> Result<GatedAttention, LoadError> {
        let (width, heads) = (size.width, size.heads);
        let each = width / heads;
        let gate = weights.pp("gru_rel_pos_linear");
        // Each half of the gate is a sum of four outputs: one output of the sum of the weights.
        let matrix = gate.get_with(
            &[2, each],
            "weight",
            [("weight", &[8, each])],
            move |[w]| {
                let four = |rows: &[f32], i: usize| rows.iter().skip(i).step_by(each).sum::<f32>();
                let halves = w.data.chunks_exact(4 * each);
                let sums = halves.flat_map(|rows| (0..each).map(move |i| four(rows, i)));
                HostTensor::new(&[2, each], sums.collect())
            },
        )?;
        let vector = gate.get_with(&[2], "bias", [("bias", &[8])], |[b]| {
            let sums = b.data.chunks_exact(4).map(|four| four.iter().sum());
            HostTensor::new(&[2], sums.collect())
        })?;
        let joint = weights.pp("attention");
        let apart = ["q_proj", "k_proj", "v_proj"];
        let stacked = |shape: &[usize], part: &str| {
            let names = apart.map(|name| format!("{name}.{part}"));
            let parts = names.each_ref().map(|name| (Some(name.as_str()), width));
            weights.rows(shape, &parts)
        };
        let (rows, row) = ([3 * width, width], [3 * width]);
        let (query_key_value, out) = match weights.has("q_proj.weight") {
            true => (
                Linear {
                    weight: stacked(&rows, "weight")?,
                    bias: Some(stacked(&row, "bias")?),
                },
                weights.pp("out_proj"),
            ),
            false => (
                Linear {
                    weight: joint.get(&rows, "in_proj_weight")?,
                    bias: Some(joint.get(&row, "in_proj_bias")?),
                },
                joint.pp("out_proj"),
            ),
        };
        Ok(GatedAttention {
            query_key_value,
            out: Linear::load(&out, width, width)?,
            gate: Linear {
                weight: matrix,
                bias: Some(vector),
            },
            constant: weights.get_f32(&[heads, 1], "gru_rel_pos_const")?,
        })
    }

    /// x `[1, step, width]`, bias `[head, step, step]` -> `[1, step, width]`.
    pub fn forward<'g>(&self, x: Tensor<'g>, bias: Tensor<'g>) -> Tensor<'g> {
        let [_, steps, width] = x.dims();
        let heads = bias.dim(0);
        let each = width / heads;
        let split = |y: Tensor<'g>| {
            let y = y.contiguous().reshape(&[steps, heads, each]);
            y.permute(&[1, 0, 2]).contiguous() // [head, step, each]
        };
        let [q, k, v] = self.query_key_value.parts(x).map(split);
        let mask = bias * self.gates(x.reshape(&[steps, heads, each]));
        let scale = 1.0 / (each as f32).sqrt();
        let weights = q.matmul_t(k).softmax(scale, Some(mask)); // [head, step, step]
        let mixed = weights.matmul_t(v.transpose().contiguous()); // [head, step, each]
        self.out
            .forward(mixed.permute(&[1, 0, 2]).reshape(&[1, steps, width]))
    }

    /// How far each head lets the bias of each query through: `[step, head, each]` ->
    /// `[head, step, 1]`.
    fn gates<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let [a, b] = self.gate.forward(x).sigmoid().split::<2>(-1); // [step, head, 1]
        let inner = b.contiguous() * &self.constant;
        let gate = a.contiguous() * inner.scale_add(1.0, -1.0);
        gate.scale_add(1.0, 2.0).permute(&[1, 0, 2]).contiguous()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_share_buckets_the_farther_the_more() {
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(-79), 79);
        assert_eq!(bucket(79), 239);
        assert_eq!(bucket(-80), 80);
        assert_eq!(bucket(-81), 80);
        assert_eq!(bucket(-800), 159);
        assert_eq!(bucket(5000), 319);
        let table = HostTensor::new(&[BUCKETS, 1], (0..BUCKETS).map(|i| i as f32).collect());
        let wanted = [0.0, 161.0, 162.0, 1.0, 0.0, 161.0, 2.0, 1.0, 0.0];
        assert_eq!(by_position(&table, 3), wanted);
    }
}
