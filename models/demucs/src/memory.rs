//! What the branches of the deepest layers have besides convolutions: memory and attention
//! along time.

use audiocpp::{
    graph::Tensor,
    nn::{BiLstm, Linear},
    weights::{LoadError, Weights},
};

/// A bidirectional LSTM of two layers, added to its input. It runs over stretches of
/// [`WIDTH`](Self::WIDTH) steps that overlap by half, and the middle of each is kept.
pub struct Blstm {
    layers: [BiLstm; 2],
    linear: Linear,
}

impl Blstm {
    /// Steps of a stretch.
    pub const WIDTH: usize = 200;

    pub fn load(w: &Weights, width: usize) -> Result<Blstm, LoadError> {
        let lstm = w.pp("lstm");
        Ok(Blstm {
            layers: [
                BiLstm::load_layer(&lstm, 0, [width, width], false)?,
                BiLstm::load_layer(&lstm, 1, [2 * width, width], false)?,
            ],
            linear: Linear::load(&w.pp("linear"), width, 2 * width)?,
        })
    }

    /// `[1, step, width]` -> the same.
    pub fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let steps = x.dim(1);
        if steps <= Self::WIDTH {
            return x + self.stretch(x);
        }
        let half = Self::WIDTH / 2;
        let count = steps.div_ceil(half);
        let padded = x.pad(1, 0, (count - 1) * half + Self::WIDTH - steps);
        let kept = |i: usize| {
            let y = self.stretch(padded.slice(1, i * half, Self::WIDTH).contiguous());
            let from = if i == 0 { 0 } else { half / 2 };
            let to = if i + 1 == count {
                Self::WIDTH
            } else {
                Self::WIDTH - half / 2
            };
            y.slice(1, from, to - from)
        };
        let all = (1..count).fold(kept(0), |all, i| all.concat(kept(i), 1));
        x + all.slice(1, 0, steps)
    }

    fn stretch<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let [first, second] = &self.layers;
        self.linear.forward(second.forward(first.forward(x)))
    }
}

/// Attention to all steps but the own one, less to those far away, added to its input.
pub struct LocalState {
    query: Linear,
    key: Linear,
    content: Linear,
    decay: Linear,
    proj: Linear,
}

impl LocalState {
    const HEADS: usize = 4;
    const DECAYS: usize = 4;
    /// The score of a step for itself.
    const OWN: f32 = -100.0;

    pub fn load(w: &Weights, width: usize) -> Result<LocalState, LoadError> {
        let linear = |name: &str, out: usize| Linear::load(&w.pp(name), out, width);
        Ok(LocalState {
            query: linear("query", width)?,
            key: linear("key", width)?,
            content: linear("content", width)?,
            decay: linear("query_decay", Self::HEADS * Self::DECAYS)?,
            proj: linear("proj", width)?,
        })
    }

    /// `[1, step, width]` -> the same.
    pub fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let [_, steps, width] = x.dims();
        let scope = x.scope();
        let heads = |linear: &Linear| {
            let y = linear
                .forward(x)
                .reshape(&[steps, Self::HEADS, width / Self::HEADS]);
            y.permute(&[1, 0, 2]).contiguous() // [head, step, d]
        };
        let [q, k, v] = [&self.query, &self.key, &self.content].map(heads);
        let scale = 1.0 / ((width / Self::HEADS) as f32).sqrt();
        let square = [Self::HEADS, steps, steps];
        // How far apart two steps are.
        let line = scope.arange(0, steps);
        let column = line.reshape(&[steps, 1]).broadcast(&[steps, steps]);
        let apart = (column - line.reshape(&[1, steps])).abs();
        // How much of that each step's query loses.
        let rates = scope.arange(1, Self::DECAYS) * (0.5 / (Self::DECAYS as f32).sqrt());
        let decay = self.decay.forward(x).sigmoid();
        let decay = decay.reshape(&[steps, Self::HEADS, Self::DECAYS]) * rates;
        let loss = decay.sum_last().permute(&[1, 0, 2]).contiguous(); // [head, step, 1]
        let scores = q.matmul_t(k).scale(scale) - apart.broadcast(&square) * loss;
        let others = apart.clamp(0.0, 1.0);
        let own = others.scale_add(-Self::OWN, Self::OWN);
        let weights = (scores * others + own).softmax(1.0, None); // [head, step, step]
        let mixed = weights.matmul_t(v.transpose().contiguous()); // [head, step, d]
        let mixed = mixed.permute(&[1, 0, 2]).reshape(&[1, steps, width]);
        x + self.proj.forward(mixed)
    }
}
