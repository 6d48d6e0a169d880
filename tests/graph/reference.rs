//! What the operators should give, computed in f64 by their definitions.

use super::Array;

/// The error function: its power series near zero, a continued fraction beyond.
pub fn erf(x: f64) -> f64 {
    let a = x.abs();
    if a < 2.5 {
        let (mut term, mut sum, mut n) = (a, a, 0.0);
        while term.abs() > 1e-18 {
            n += 1.0;
            term *= -a * a / n;
            sum += term / (2.0 * n + 1.0);
        }
        return (2.0 / std::f64::consts::PI.sqrt() * sum).copysign(x);
    }
    // erfc(a) = exp(-a²)/√π · 1/(a + (1/2)/(a + (2/2)/(a + (3/2)/(a + ...
    let tail = (1..60).rev().fold(a, |t, k| a + f64::from(k) / 2.0 / t);
    (1.0 - (-a * a).exp() / std::f64::consts::PI.sqrt() / tail).copysign(x)
}

pub fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + erf(x / 2f64.sqrt()))
}

pub fn gelu_tanh(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)).tanh())
}

pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

pub fn silu(x: f64) -> f64 {
    x * sigmoid(x)
}

/// exp(x - max) / sum, of `scale` times a row plus an addend.
pub fn softmax_row(row: &[f64], scale: f64, add: impl Fn(usize) -> f64) -> Vec<f64> {
    let scores: Vec<f64> = (0..row.len()).map(|i| scale * row[i] + add(i)).collect();
    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = scores.iter().map(|s| (s - max).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|p| p / sum).collect()
}

pub fn norm_row(row: &[f64], eps: f64) -> Vec<f64> {
    let n = row.len() as f64;
    let mean = row.iter().sum::<f64>() / n;
    let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    row.iter()
        .map(|v| (v - mean) / (variance + eps).sqrt())
        .collect()
}

pub fn rms_norm_row(row: &[f64], eps: f64) -> Vec<f64> {
    let mean = row.iter().map(|v| v * v).sum::<f64>() / row.len() as f64;
    row.iter().map(|v| v / (mean + eps).sqrt()).collect()
}

/// `[batch, channel, time]`, each of `groups` runs of channels normalised over all of time.
pub fn group_norm(x: &Array, groups: usize, eps: f64) -> Array {
    let [batch, channels, time] = x.dims();
    let each = channels / groups;
    let mut out = vec![0.0; batch * channels * time];
    for b in 0..batch {
        for g in 0..groups {
            let members: Vec<usize> = (0..each * time)
                .map(|i| (b * channels + g * each) * time + i)
                .collect();
            let run: Vec<f64> = members.iter().map(|&i| x.values()[i]).collect();
            for (&i, v) in members.iter().zip(norm_row(&run, eps)) {
                out[i] = v;
            }
        }
    }
    Array::new(x.shape(), out)
}

/// `[.., m, k]` by `[.., n, k]`; leading axes of the other side repeat as ggml repeats them: each
/// of its matrices serves a run of neighbours.
pub fn matmul_t(a: &Array, b: &Array) -> Array {
    let four = |x: &Array| {
        let mut shape = vec![1; 4 - x.rank()];
        shape.extend(x.shape());
        shape
    };
    let (sa, sb) = (four(a), four(b));
    let (m, n, k) = (sa[2], sb[2], sa[3]);
    let mut values = Vec::with_capacity(sa[0] * sa[1] * m * n);
    for i in 0..sa[0] {
        for j in 0..sa[1] {
            let other = (i / (sa[0] / sb[0])) * sb[1] + j / (sa[1] / sb[1]);
            for r in 0..m {
                let row = &a.values()[((i * sa[1] + j) * m + r) * k..][..k];
                for c in 0..n {
                    let col = &b.values()[(other * n + c) * k..][..k];
                    values.push(row.iter().zip(col).map(|(x, y)| x * y).sum());
                }
            }
        }
    }
    let mut shape = a.shape().to_vec();
    match shape.last_mut() {
        Some(last) => *last = n,
        None => panic!("no axis"),
    }
    if a.rank() == 1 {
        shape.insert(0, 1);
    }
    Array::new(&shape, values)
}

/// x `[batch, time, in]`, weight `[out, kernel, in]`, bias `[out]` -> `[batch, time', out]`.
pub fn conv1d(
    x: &Array,
    weight: &Array,
    bias: &[f64],
    stride: usize,
    dilation: usize,
    padding: (usize, usize),
) -> Array {
    let ([batch, time, channels], [out, kernel, _]) = (x.dims(), weight.dims());
    let steps = (time + padding.0 + padding.1 - dilation * (kernel - 1) - 1) / stride + 1;
    Array::from_fn(&[batch, steps, out], |at| {
        let mut sum = bias[at[2]];
        for k in 0..kernel {
            let Some(t) = (at[1] * stride + k * dilation).checked_sub(padding.0) else {
                continue;
            };
            if t < time {
                for c in 0..channels {
                    sum += x.at(&[at[0], t, c]) * weight.at(&[at[2], k, c]);
                }
            }
        }
        sum
    })
}

/// x `[time, in]`, weight `[out, kernel, in]` -> `[out, (time - 1) stride + kernel - 2 crop]`.
pub fn conv_transpose1d(x: &Array, weight: &Array, stride: usize, crop: usize) -> Array {
    let ([time, channels], [out, kernel, _]) = (x.dims(), weight.dims());
    let full = (time - 1) * stride + kernel;
    let mut y = vec![0.0; out * full];
    for t in 0..time {
        for o in 0..out {
            for k in 0..kernel {
                for c in 0..channels {
                    y[o * full + t * stride + k] += x.at(&[t, c]) * weight.at(&[o, k, c]);
                }
            }
        }
    }
    Array::new(&[out, full], y).slice(1, crop, full - 2 * crop)
}

/// q `[batch, query, head, width]`, k `[batch, key, kv head, width]`, mask `[query, key]` ->
/// weights `[batch, head, query, key]`.
pub fn attention_weights(q: &Array, k: &Array, mask: Option<&Array>, scale: f64) -> Array {
    let ([batch, query, heads, width], [_, key, kv, _]) = (q.dims(), k.dims());
    let scores = Array::from_fn(&[batch, heads, query, key], |at| {
        let [b, h, i, j] = [at[0], at[1], at[2], at[3]];
        let qi = &q.values()[((b * query + i) * heads + h) * width..][..width];
        let kj = &k.values()[((b * key + j) * kv + h / (heads / kv)) * width..][..width];
        let dot: f64 = qi.iter().zip(kj).map(|(x, y)| x * y).sum();
        scale * dot + mask.map_or(0.0, |m| m.at(&[i, j]))
    });
    scores.map_rows(|row| softmax_row(row, 1.0, |_| 0.0))
}

/// The weights applied to v `[batch, key, kv head, width]` -> `[batch, query, head * width]`.
pub fn attention(q: &Array, k: &Array, v: &Array, mask: Option<&Array>, scale: f64) -> Array {
    let weights = attention_weights(q, k, mask, scale);
    let ([batch, heads, query, key], [_, _, kv, width]) = (weights.dims(), v.dims());
    let mut out = vec![0.0; batch * query * heads * width];
    for b in 0..batch {
        for h in 0..heads {
            for i in 0..query {
                let row = &weights.values()[((b * heads + h) * query + i) * key..][..key];
                let mixed = &mut out[((b * query + i) * heads + h) * width..][..width];
                for (j, weight) in row.iter().enumerate() {
                    let value = ((b * key + j) * kv + h / (heads / kv)) * width;
                    for (m, x) in mixed.iter_mut().zip(&v.values()[value..]) {
                        *m += weight * x;
                    }
                }
            }
        }
    }
    Array::new(&[batch, query, heads * width], out)
}

/// x `[batch, height, width, in]`, weight `[out, down, across, in]`.
pub fn conv2d(x: &Array, weight: &Array, bias: &[f64], shape: audiocpp::graph::Conv2d) -> Array {
    let ([batch, height, width, _], [out, down, across, inputs]) = (x.dims(), weight.dims());
    let [rows, columns] = shape.output([height, width]).expect("a kernel fits");
    Array::from_fn(&[batch, rows, columns, out], |at| {
        let mut sum = bias[at[3]];
        for tap in 0..down * across {
            let tap = [tap / across, tap % across];
            let [Some(i), Some(j)] = [0, 1].map(|axis| {
                let place = at[axis + 1] * shape.stride[axis] + tap[axis] * shape.dilation[axis];
                place.checked_sub(shape.padding[axis].0)
            }) else {
                continue;
            };
            if i < height && j < width {
                for c in 0..inputs {
                    sum += x.at(&[at[0], i, j, c]) * weight.at(&[at[3], tap[0], tap[1], c]);
                }
            }
        }
        sum
    })
}
