//! The diffusion head: from noise to one frame's latent, guided away from what the language model
//! would expect without the text (Ho and Salimans 2022, <https://arxiv.org/abs/2207.12598>).
//!
//! The network sees the hidden state and the time of a step only through modulations, which depend on
//! nothing that a step makes. So those of all steps and both branches are computed together, and the
//! steps themselves are one graph.

use audiocpp::{
    graph::{DeviceTensor, Glu, Tensor},
    nn::{Linear, RmsNorm},
    weights::{LoadError, Weights},
};

use crate::{
    config::{HeadSize, TIME_FEATURES},
    solver::Step,
};

/// A feed-forward block whose input and output are modulated.
#[derive(Debug, Clone)]
struct HeadLayer {
    norm: RmsNorm,
    /// Shift, scale and gate, `[3 width, width]`.
    modulation: Linear,
    gate_up: Linear,
    down: Linear,
}

/// The whole head.
#[derive(Debug, Clone)]
pub struct Head {
    noisy_images_proj: Linear,
    cond_proj: Linear,
    time_in: Linear,
    time_out: Linear,
    layers: Vec<HeadLayer>,
    /// Shift and scale, `[2 width, width]`.
    final_modulation: Linear,
    final_linear: Linear,
    eps: f32,
    width: usize,
}

/// Modulations of one layer for all steps, each `[steps, branches, width]`.
struct Modulation<'g> {
    shift: Tensor<'g>,
    /// With the norm's own gain in it.
    gain: Tensor<'g>,
    gate: Option<Tensor<'g>>,
}

impl<'g> Modulation<'g> {
    /// x `[1, 1 or branches, width]`, normalised and moved as step `i` wants.
    fn apply(&self, x: Tensor<'g>, i: usize, eps: f32) -> Tensor<'g> {
        x.rms_norm(eps) * self.gain.slice(0, i, 1) + self.shift.slice(0, i, 1)
    }
}

fn plain(weights: &Weights, name: &str, out: usize, inputs: usize) -> Result<Linear, LoadError> {
    Ok(Linear {
        weight: weights.pp(name).get(&[out, inputs], "weight")?,
        bias: None,
    })
}

impl Head {
    /// Reads `prediction_head`.
    pub fn load(weights: &Weights, size: &HeadSize) -> Result<Head, LoadError> {
        let HeadSize {
            width, latent, ffn, ..
        } = *size;
        let layer = |i| -> Result<HeadLayer, LoadError> {
            let weights = weights.pp(format_args!("layers.{i}"));
            let inner = weights.pp("ffn");
            let gates = ["gate_proj.weight", "up_proj.weight"].map(|name| (Some(name), ffn));
            Ok(HeadLayer {
                norm: RmsNorm::load(&weights.pp("norm"), width, size.eps)?,
                modulation: plain(&weights, "adaLN_modulation.1", 3 * width, width)?,
                gate_up: Linear {
                    weight: inner.rows(&[2 * ffn, width], &gates)?,
                    bias: None,
                },
                down: plain(&inner, "down_proj", width, ffn)?,
            })
        };
        let last = weights.pp("final_layer");
        Ok(Head {
            noisy_images_proj: plain(weights, "noisy_images_proj", width, latent)?,
            cond_proj: plain(weights, "cond_proj", width, width)?,
            time_in: plain(weights, "t_embedder.mlp.0", width, TIME_FEATURES)?,
            time_out: plain(weights, "t_embedder.mlp.2", width, width)?,
            layers: (0..size.layers).map(layer).collect::<Result<_, _>>()?,
            final_modulation: plain(&last, "adaLN_modulation.1", 2 * width, width)?,
            final_linear: plain(&last, "linear", latent, width)?,
            eps: size.eps,
            width,
        })
    }

    /// Values of a hidden state.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Embeddings of times: features `[steps, 256]` (see [`time_features`]) -> `[steps, width]`.
    pub fn times<'g>(&self, features: Tensor<'g>) -> Tensor<'g> {
        self.time_out.forward(self.time_in.forward(features).silu())
    }

    /// All modulations: conditions `[branches, width]` and embedded times `[steps, width]`.
    fn modulations<'g>(&self, conditions: Tensor<'g>, times: Tensor<'g>) -> Vec<Modulation<'g>> {
        let scope = conditions.scope();
        let ([branches, width], [steps, _]) = (conditions.dims(), times.dims());
        let wide = [steps, branches, width];
        let c = self
            .cond_proj
            .forward(conditions)
            .reshape(&[1, branches, width]);
        let c = (c.broadcast(&wide) + times.reshape(&[steps, 1, width])).silu();
        let layer = |layer: &HeadLayer| {
            let [shift, scale, gate] = layer.modulation.forward(c).split(-1);
            let gain = scope.stored(&layer.norm.gain);
            Modulation {
                shift: shift.contiguous(),
                gain: (scale.contiguous() + 1.0) * gain,
                gate: Some(gate.contiguous()),
            }
        };
        let mut all: Vec<Modulation> = self.layers.iter().map(layer).collect();
        let [shift, scale] = self.final_modulation.forward(c).split(-1);
        all.push(Modulation {
            shift: shift.contiguous(),
            gain: scale.contiguous() + 1.0,
            gate: None,
        });
        all
    }

    /// The hidden state before the last projection, of latents x `[1, 1 or branches, latent]` at step
    /// `i` -> `[1, branches, width]`.
    fn hidden<'g>(&self, x: Tensor<'g>, i: usize, modulations: &[Modulation<'g>]) -> Tensor<'g> {
        let mut h = self.noisy_images_proj.forward(x);
        for (layer, modulation) in self.layers.iter().zip(modulations) {
            let y = modulation.apply(h, i, self.eps);
            let y = layer.down.forward(layer.gate_up.forward(y).glu(Glu::Silu));
            let gated = match modulation.gate {
                Some(gate) => gate.slice(0, i, 1) * y,
                None => y,
            };
            h = h + gated;
        }
        match modulations.last() {
            Some(last) => last.apply(h, i, self.eps),
            None => h,
        }
    }

    /// Velocities of latents `[branches, latent]` under conditions `[branches, width]`, at one time
    /// with the embedding `[1, width]`: `[branches, latent]`.
    pub fn velocity<'g>(
        &self,
        x: Tensor<'g>,
        conditions: Tensor<'g>,
        time: Tensor<'g>,
    ) -> Tensor<'g> {
        let [branches, latent] = x.dims();
        let modulations = self.modulations(conditions, time);
        let h = self.hidden(x.reshape(&[1, branches, latent]), 0, &modulations);
        self.final_linear.forward(h).reshape(&[branches, latent])
    }

    /// The latent `[1, 1, latent]` that noise of that shape becomes along `steps`. Conditions
    /// `[2, width]` are the hidden states with and without the text; `times` `[steps, width]` the
    /// embedded times of the steps; `scale` how far to go away from the second.
    pub fn sample<'g>(
        &self,
        noise: Tensor<'g>,
        conditions: Tensor<'g>,
        times: &DeviceTensor,
        steps: &[Step],
        scale: f32,
    ) -> Tensor<'g> {
        let times = conditions.scope().stored(times);
        let modulations = self.modulations(conditions, times);
        let (mut x, mut before) = (noise, None::<Tensor>);
        for (i, step) in steps.iter().enumerate() {
            let h = self.hidden(x, i, &modulations);
            // The last projection is linear: the branches are mixed before it.
            let [with, without] = h.split(1);
            let mixed = with * scale + without * (1.0 - scale);
            let v = self.final_linear.forward(mixed); // [1, 1, latent]
            let clean = x * step.signal + v * -step.noise;
            let next = x * step.keep + clean * step.clean;
            x = match before.filter(|_| step.before != 0.0) {
                Some(before) => next + before * step.before,
                None => next,
            };
            before = Some(clean);
        }
        x
    }
}

/// Cosines, then sines, of `times` at 128 frequencies: `[times, 256]`.
pub fn time_features(times: &[f32]) -> Vec<f32> {
    let half = TIME_FEATURES / 2;
    let frequency = |k: usize| (-(10_000f32.ln()) * k as f32 / half as f32).exp();
    let row = |&time: &f32| {
        let angles = (0..half).map(move |k| time * frequency(k));
        let sines = angles.clone().map(f32::sin);
        angles.map(f32::cos).chain(sines)
    };
    times.iter().flat_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_cosines_then_sines() {
        let features = time_features(&[0.0, 2.0]);
        assert_eq!(features.len(), 2 * TIME_FEATURES);
        assert_eq!((features[0], features[128]), (1.0, 0.0));
        let row = &features[TIME_FEATURES..];
        assert!((row[0] - 2f32.cos()).abs() < 1e-6 && (row[128] - 2f32.sin()).abs() < 1e-6);
        // 10000^(-64/128) = 0.01
        assert!((row[64] - 0.02f32.cos()).abs() < 1e-6);
    }
}
