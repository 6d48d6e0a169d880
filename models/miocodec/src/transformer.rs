//! The transformer that the codec uses everywhere: attention to near steps only, positions by
//! rotation, SwiGLU; normalisations may depend on the global vector (AdaLN-Zero of Peebles and Xie
//! 2023, <https://arxiv.org/abs/2212.09748>).

use audiocpp::{
    graph::{Glu, Kernel, Scope, Tensor},
    nn::{LayerNorm, Linear, constant},
    weights::{HostTensor, LoadError, Weights},
};
use half::f16;

use crate::{config::TransformerConfig, net::Tap};

const EPS: f32 = 1e-5;

pub struct Transformer {
    layers: Vec<Layer>,
    norm: Norm,
    output: Option<Linear>,
    pub config: TransformerConfig,
}

struct Layer {
    attention_norm: Norm,
    query_key_value: Linear,
    out: Linear,
    ffn_norm: Norm,
    /// To gate and value, and back.
    hidden: Linear,
    back: Linear,
}

/// Normalisation with gain and bias of its own, or with those (and a gate for the branch, except at
/// the end) that are made of the global vector.
enum Norm {
    Plain(LayerNorm),
    Adaptive(Linear),
}

impl Transformer {
    pub fn load(weights: &Weights, config: &TransformerConfig) -> Result<Self, LoadError> {
        let layers = weights.pp("layers");
        let output = |out| Linear::load(&weights.pp("output_proj"), out, config.dim);
        Ok(Transformer {
            layers: (0..config.layers)
                .map(|i| Layer::load(&layers.pp(i), config))
                .collect::<Result<_, LoadError>>()?,
            norm: Norm::load(&weights.pp("norm"), config, 2)?,
            output: config.output.map(output).transpose()?,
            config: config.clone(),
        })
    }

    /// x `[1, time, dim]`, global vector `[1, condition]` where normalisations depend on it ->
    /// `[1, time, output]`.
    pub fn forward<'g>(
        &self,
        mut x: Tensor<'g>,
        global: Option<Tensor<'g>>,
        tap: Tap<'_, 'g>,
    ) -> Tensor<'g> {
        let (scope, time) = (x.scope(), x.dim(1));
        let rotary = self.config.rope_theta.map(|base| {
            let positions: Vec<i32> = (0..time as i32).collect();
            (constant(scope, &[time], &positions), base as f32)
        });
        let mask = self
            .config
            .window
            .map(|window| band(scope, time, window / 2));
        let global = global.map(Tensor::silu);
        for (i, layer) in self.layers.iter().enumerate() {
            let name = |part: &str| format!("layer{i}_{part}");
            let (y, gate) = layer.attention_norm.forward(x, global);
            tap(&name("attention_norm"), y);
            gate.iter()
                .for_each(|gate| tap(&name("attention_gate"), *gate));
            let y = layer.attend(y, self.config.heads, rotary, mask);
            tap(&name("attention"), y);
            x = x + gated(y, gate);
            let (y, gate) = layer.ffn_norm.forward(x, global);
            let y = layer.back.forward(layer.hidden.forward(y).glu(Glu::Silu));
            x = x + gated(y, gate);
            tap(&name("out"), x);
        }
        let (x, _) = self.norm.forward(x, global);
        match &self.output {
            Some(output) => output.forward(x),
            None => x,
        }
    }
}

fn gated<'g>(branch: Tensor<'g>, gate: Option<Tensor<'g>>) -> Tensor<'g> {
    gate.map_or(branch, |gate| branch * gate)
}

/// Zero for steps at most `reach` apart, else minus infinity: `[time, time]`.
fn band(scope: &Scope, time: usize, reach: usize) -> Tensor<'_> {
    let mut mask = vec![f16::NEG_INFINITY; time * time];
    for (i, row) in mask.chunks_exact_mut(time).enumerate() {
        row[i.saturating_sub(reach)..(i + reach + 1).min(time)].fill(f16::ZERO);
    }
    constant(scope, &[time, time], &mask)
}

impl Layer {
    fn load(weights: &Weights, config: &TransformerConfig) -> Result<Self, LoadError> {
        let (dim, heads, hidden) = (config.dim, config.heads, config.hidden());
        let attention = weights.pp("attention");
        let ffn = weights.pp("feed_forward");
        let square: &[usize] = &[dim, dim];
        let turned = config.rope_theta.is_some();
        let parts = ["wq.weight", "wk.weight", "wv.weight"].map(|name| (name, square));
        let query_key_value =
            attention.get_with(&[3 * dim, dim], "wqkv", parts, move |[q, k, v]| {
                let ordered = |w: HostTensor| match turned {
                    true => halves(&w, heads),
                    false => w,
                };
                HostTensor::concat(&[ordered(q), ordered(k), v])
            })?;
        let both = [(Some("w1.weight"), hidden), (Some("w3.weight"), hidden)];
        Ok(Layer {
            attention_norm: Norm::load(&weights.pp("attention_norm"), config, 3)?,
            query_key_value: without_bias(query_key_value),
            out: Linear::load(&attention.pp("wo"), dim, dim)?,
            ffn_norm: Norm::load(&weights.pp("ffn_norm"), config, 3)?,
            hidden: without_bias(ffn.rows(&[2 * hidden, dim], &both)?),
            back: Linear::load(&ffn.pp("w2"), dim, hidden)?,
        })
    }

    /// Attention of a step to those near it: `[1, time, dim]` -> `[1, time, dim]`.
    fn attend<'g>(
        &self,
        x: Tensor<'g>,
        heads: usize,
        rotary: Option<(Tensor<'g>, f32)>,
        mask: Option<Tensor<'g>>,
    ) -> Tensor<'g> {
        let width = x.dim(2) / heads;
        let [q, k, v] = self.query_key_value.parts(x).map(|y| y.split_last(heads));
        let turn = |y: Tensor<'g>| match rotary {
            Some((positions, base)) => {
                let [_, time, heads, width] = y.dims();
                let turned = y.reshape(&[time, heads, width]).rotary(positions, base);
                turned.reshape(&[1, time, heads, width])
            }
            None => y,
        };
        let kernel = Kernel::choose(x.scope().device());
        let scale = 1.0 / (width as f32).sqrt();
        let mixed = turn(q).attention(turn(k), v, mask, scale, kernel); // [1, time, dim]
        self.out.forward(mixed)
    }
}

/// The rows of a projection `[out, in]` to `heads` heads that pair neighbours for their rotary
/// positions, in an order that pairs halves. Queries and keys in the same order have the same products
/// as before.
fn halves(weight: &HostTensor, heads: usize) -> HostTensor {
    let [out, inputs] = weight.shape[..] else {
        panic!("a projection is a matrix, not {:?}", weight.shape);
    };
    let width = out / heads.max(1);
    let parts = [heads, width / 2, 2, inputs];
    let split = weight.clone().reshape(&parts);
    split.permute(&[0, 2, 1, 3]).reshape(&[out, inputs])
}

fn without_bias(weight: audiocpp::graph::DeviceTensor) -> Linear {
    Linear { weight, bias: None }
}

impl Norm {
    /// `parts` is 3 with a gate, 2 without.
    fn load(
        weights: &Weights,
        config: &TransformerConfig,
        parts: usize,
    ) -> Result<Self, LoadError> {
        let dim = config.dim;
        Ok(match config.condition {
            None => Norm::Plain(LayerNorm::load(weights, dim)?),
            Some(width) => {
                let project = weights.pp("condition_proj.1");
                Norm::Adaptive(Linear::load(&project, parts * dim, width)?)
            }
        })
    }

    /// x `[1, time, dim]`, silu of the global vector `[1, condition]` -> the normalised x, and the
    /// gate of the branch `[1, dim]`.
    fn forward<'g>(
        &self,
        x: Tensor<'g>,
        global: Option<Tensor<'g>>,
    ) -> (Tensor<'g>, Option<Tensor<'g>>) {
        let (linear, global) = match (self, global) {
            (Norm::Plain(norm), _) => return (norm.forward(x), None),
            (Norm::Adaptive(_), None) => {
                let problem = "a normalisation without the vector that it depends on";
                let error = audiocpp::graph::GraphError::Shape {
                    op: "norm",
                    problem: problem.into(),
                };
                return (x.scope().fail(error), None);
            }
            (Norm::Adaptive(linear), Some(global)) => (linear, global),
        };
        let dim = x.dim(2);
        let all = linear.forward(global); // [1, 2 or 3 dim]
        let part = |i: usize| all.slice(1, i * dim, dim).contiguous();
        let y = x.norm(EPS) * part(1).scale_add(1.0, 1.0) + part(0);
        let gate = (all.dim(1) > 2 * dim).then(|| part(2));
        (y, gate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_become_halves() {
        let weight = HostTensor::new(&[8, 1], (0..8).map(|i| i as f32).collect());
        let order = halves(&weight, 2).data;
        assert_eq!(order, [0.0, 2.0, 1.0, 3.0, 4.0, 6.0, 5.0, 7.0]);
    }
}
