//! The transformer between encoder and decoder: two branches that attend to themselves and to each
//! other in turn.

use audiocpp::{
    graph::{DeviceTensor, Kernel, Tensor},
    nn::{LayerNorm, Linear, Turn},
    weights::{LoadError, Weights},
};

use crate::{config::TransformerConfig, layers::GroupNorm};

pub struct CrossTransformer {
    /// 1x1 convolutions to the width of the transformer and back, for both branches.
    bottom: Option<[[Linear; 2]; 2]>,
    norm_in: Option<[LayerNorm; 2]>,
    /// Layers of the bins' branch and of the samples'.
    layers: Vec<[Layer; 2]>,
    pub config: TransformerConfig,
    /// Width.
    pub width: usize,
}

/// One layer, looking at itself or at the other branch.
struct Layer {
    cross: bool,
    norm1: LayerNorm,
    /// Of the other branch, where there is one.
    norm_other: Option<LayerNorm>,
    attention: Attention,
    norm_hidden: LayerNorm,
    hidden: [Linear; 2],
    scales: Option<[DeviceTensor; 2]>,
    norm_out: Option<GroupNorm>,
    gelu: bool,
}

/// Attention with heads.
struct Attention {
    query: Linear,
    key_value: Linear,
    out: Linear,
    heads: usize,
}

impl CrossTransformer {
    pub fn load(
        root: &Weights,
        channels: usize,
        config: &TransformerConfig,
    ) -> Result<Self, LoadError> {
        let width = config.bottom_channels.unwrap_or(channels);
        let bottom = |branch: &str| {
            let up = root.pp(format!("channel_upsampler{branch}"));
            let down = root.pp(format!("channel_downsampler{branch}"));
            Ok::<_, LoadError>([
                Linear::load(&up, width, channels)?,
                Linear::load(&down, channels, width)?,
            ])
        };
        let w = root.pp("crosstransformer");
        let layer = |name: &str, i: usize| {
            let cross = (i % 2 == 1) != config.cross_first;
            Layer::load(&w.pp(name).pp(i), width, config, cross)
        };
        let layers = (0..config.layers).map(|i| Ok([layer("layers", i)?, layer("layers_t", i)?]));
        let norms = || {
            Ok::<_, LoadError>([
                LayerNorm::load(&w.pp("norm_in"), width)?,
                LayerNorm::load(&w.pp("norm_in_t"), width)?,
            ])
        };
        Ok(CrossTransformer {
            bottom: match config.bottom_channels {
                Some(_) => Some([bottom("")?, bottom("_t")?]),
                None => None,
            },
            norm_in: config.norm_in.then(norms).transpose()?,
            layers: layers.collect::<Result<_, LoadError>>()?,
            config: config.clone(),
            width,
        })
    }

    /// Bins `[1, row, step, channel]` and samples `[1, 1, step, channel]` -> the same.
    /// `positions` are those of both, `[step * row, width]` and `[step, width]`.
    pub fn forward<'g>(
        &self,
        [x, xt]: [Tensor<'g>; 2],
        positions: [Tensor<'g>; 2],
    ) -> [Tensor<'g>; 2] {
        let [_, rows, steps, channels] = x.dims();
        let samples = xt.dim(2);
        // Frame by frame, all bins of one after the other.
        let x = x
            .permute(&[0, 2, 1, 3])
            .reshape(&[1, steps * rows, channels]);
        let xt = xt.reshape(&[1, samples, channels]);
        let mut both = [x, xt];
        if let Some(bottom) = &self.bottom {
            both = [0, 1].map(|i| bottom[i][0].forward(both[i])); // [1, token, width]
        }
        if let Some(norm) = &self.norm_in {
            both = [0, 1].map(|i| norm[i].forward(both[i]));
        }
        let weight = self.config.weight_pos_embed;
        both = [0, 1].map(|i| match weight {
            1.0 => both[i] + positions[i],
            weight => both[i] + positions[i].scale(weight),
        });
        for pair in &self.layers {
            both = [0, 1].map(|i| pair[i].forward(both[i], both[1 - i]));
        }
        if let Some(bottom) = &self.bottom {
            both = [0, 1].map(|i| bottom[i][1].forward(both[i])); // [1, token, channel]
        }
        let x = both[0].reshape(&[1, steps, rows, channels]);
        [
            x.permute(&[0, 2, 1, 3]).contiguous(),
            both[1].reshape(&[1, 1, samples, channels]),
        ]
    }
}

impl Layer {
    fn load(
        w: &Weights,
        width: usize,
        config: &TransformerConfig,
        cross: bool,
    ) -> Result<Self, LoadError> {
        let hidden = (width as f64 * config.hidden_scale) as usize;
        let attention = if cross { "cross_attn" } else { "self_attn" };
        let norm = |n: usize| LayerNorm::load(&w.pp(format!("norm{n}")), width);
        let scale = |n: usize| w.pp(format!("gamma_{n}")).get_f32(&[width], "scale");
        let scales = || Ok::<_, LoadError>([scale(1)?, scale(2)?]);
        let out = || GroupNorm::load(&w.pp("norm_out"), width, 1);
        Ok(Layer {
            cross,
            norm1: norm(1)?,
            norm_other: cross.then(|| norm(2)).transpose()?,
            attention: Attention::load(&w.pp(attention), width, config.heads)?,
            norm_hidden: norm(if cross { 3 } else { 2 })?,
            hidden: [
                Linear::load(&w.pp("linear1"), hidden, width)?,
                Linear::load(&w.pp("linear2"), width, hidden)?,
            ],
            scales: config.layer_scale.then(scales).transpose()?,
            norm_out: config.norm_out.then(out).transpose()?,
            gelu: config.gelu,
        })
    }

    /// `[1, token, width]`, and the other branch's -> `[1, token, width]`.
    fn forward<'g>(&self, x: Tensor<'g>, other: Tensor<'g>) -> Tensor<'g> {
        let scaled = |y: Tensor<'g>, i: usize| match &self.scales {
            Some(scales) => y * &scales[i],
            None => y,
        };
        let q = self.norm1.forward(x);
        let kv = match &self.norm_other {
            Some(norm) if self.cross => norm.forward(other),
            _ => q,
        };
        let x = x + scaled(self.attention.forward(q, kv), 0);
        let h = self.hidden[0].forward(self.norm_hidden.forward(x)); // [1, token, hidden]
        let h = if self.gelu { h.gelu() } else { h.relu() };
        let x = x + scaled(self.hidden[1].forward(h), 1);
        let Some(norm) = &self.norm_out else { return x };
        let [_, tokens, width] = x.dims();
        let plane = norm.plane(x.reshape(&[1, 1, tokens, width]));
        plane.reshape(&[1, tokens, width])
    }
}

impl Attention {
    fn load(w: &Weights, width: usize, heads: usize) -> Result<Self, LoadError> {
        // One matrix holds query, key and value projections.
        let bias = |range: std::ops::Range<usize>| w.slice(&[3 * width], "in_proj_bias", range);
        let part = |range: std::ops::Range<usize>| {
            Ok::<_, LoadError>(Linear {
                weight: w.slice(&[3 * width, width], "in_proj_weight", range.clone())?,
                bias: Some(bias(range)?),
            })
        };
        Ok(Attention {
            query: part(0..width)?,
            key_value: part(width..3 * width)?,
            out: Linear::load_part(&w.pp("out_proj"), [width, width], 0..width, Turn::Keep)?,
            heads,
        })
    }

    /// What `q` `[1, token, width]` finds in `kv` `[1, other token, width]`.
    fn forward<'g>(&self, q: Tensor<'g>, kv: Tensor<'g>) -> Tensor<'g> {
        let width = q.dim(-1);
        let scale = 1.0 / ((width / self.heads) as f32).sqrt();
        let q = self.query.forward(q).split_last(self.heads); // [1, token, head, d]
        let [k, v] = self.key_value.forward(kv).split::<2>(-1);
        let [k, v] = [k, v].map(|t| t.split_last(self.heads));
        let kernel = Kernel::choose(q.scope().device());
        self.out.forward(q.attention(k, v, None, scale, kernel))
    }
}

/// Positions of samples `[step, width]`: cosines, then sines, of waves from short to long.
pub fn positions(steps: usize, width: usize, max_period: f64) -> Vec<f32> {
    let half = width / 2;
    let mut out = Vec::with_capacity(steps * width);
    for step in 0..steps {
        let phase = |i: usize| {
            let exponent = i as f32 / (half as f32 - 1.0).max(1.0);
            step as f32 / (max_period as f32).powf(exponent)
        };
        out.extend((0..half).map(|i| phase(i).cos()));
        out.extend((0..width - half).map(|i| phase(i).sin()));
    }
    out
}

/// Positions of bins `[step * row, width]`: sines and cosines of the step in turn, then of the row.
pub fn plane_positions([rows, steps]: [usize; 2], width: usize, max_period: f64) -> Vec<f32> {
    let half = width / 2;
    let rate = |i: usize| (-(2.0 * (i / 2) as f32) * (max_period.ln() / half as f64) as f32).exp();
    let wave = |at: usize, i: usize| match i % 2 {
        0 => (at as f32 * rate(i)).sin(),
        _ => (at as f32 * rate(i)).cos(),
    };
    let mut out = Vec::with_capacity(steps * rows * width);
    for step in 0..steps {
        for row in 0..rows {
            out.extend((0..half).map(|i| wave(step, i)));
            out.extend((0..width - half).map(|i| wave(row, i)));
        }
    }
    out
}
