//! Attention that knows how far apart two positions are.

use crate::graph::{DeviceTensor, Tensor};

use super::Linear;

/// Self-attention with learned keys and values for each distance of up to `window` steps
/// (Shaw et al. 2018, <https://arxiv.org/abs/1803.02155>); farther positions have none.
#[derive(Debug, Clone)]
pub struct RelativeAttention {
    /// Query, key and value projections.
    pub query: Linear,
    /// See `query`.
    pub key: Linear,
    /// See `query`.
    pub value: Linear,
    /// The projection of the mixed values.
    pub out: Linear,
    /// Keys of the distances `-window ..= window`, `[2 window + 1, width]`, width of one head.
    pub distance_keys: DeviceTensor,
    /// Values of the distances, `[2 window + 1, width]`.
    pub distance_values: DeviceTensor,
}

impl RelativeAttention {
    /// `[1, time, d]` -> `[1, time, d]`.
    pub fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let [_, time, d] = x.dims();
        let width = self.distance_keys.shape().last().copied().unwrap_or(1);
        let heads = d / width.max(1);
        let scale = 1.0 / (width as f32).sqrt();
        let split = |linear: &Linear| {
            let y = linear.forward(x).reshape(&[time, heads, width]);
            y.permute(&[1, 0, 2]).contiguous() // [head, time, width]
        };
        let [q, k, v] = [&self.query, &self.key, &self.value].map(split);
        let scope = x.scope();
        let near = q.matmul_t(scope.stored(&self.distance_keys));
        let scores = q.matmul_t(k) + by_position(near); // [head, time, time]
        let weights = scores.softmax(scale, None);
        let near = by_distance(weights, self.distance_keys.shape()[0]);
        let values = scope.stored(&self.distance_values).transpose().contiguous();
        let mixed = weights.matmul_t(v.transpose().contiguous()) + near.matmul_t(values); // [head, time, width]
        self.out
            .forward(mixed.permute(&[1, 0, 2]).reshape(&[1, time, d]))
    }
}

/// Scores by distance `[head, time, distances]` to scores by position `[head, time, time]`, zero
/// beyond the window: row i is moved i - window places to the right.
///
/// Rows of `time + distances` values, read as if each were one value shorter, do that.
fn by_position(near: Tensor<'_>) -> Tensor<'_> {
    let [heads, time, distances] = near.dims();
    let line = time + distances;
    let flat = near.pad(2, 0, time).reshape(&[heads, time * line]);
    flat.slice(1, 0, time * (line - 1))
        .reshape(&[heads, time, line - 1])
        .slice(2, distances / 2, time)
        .contiguous()
}

/// The way back: weights by position `[head, time, time]` to weights by distance
/// `[head, time, distances]`.
fn by_distance(weights: Tensor<'_>, distances: usize) -> Tensor<'_> {
    let [heads, time, _] = weights.dims();
    let window = distances / 2;
    let line = time + 2 * window;
    let flat = weights
        .pad(2, window, window)
        .reshape(&[heads, time * line]);
    flat.pad(1, 0, time)
        .reshape(&[heads, time, line + 1])
        .slice(2, 0, distances)
        .contiguous()
}
