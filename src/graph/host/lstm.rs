//! The recurrence of a bidirectional LSTM as one node.

use super::{HostOp, Operand, Output, Share};
use crate::{
    graph::{DType, DeviceTensor, Tensor, shape::Shape},
    simd,
};

impl<'g> Tensor<'g> {
    /// A bidirectional LSTM (Hochreiter and Schmidhuber 1997) behind its input projection: what the
    /// inputs give to the gates, `[1, time, 8 h]` (input, forget, cell and output gate of the
    /// forward direction, then those of the backward one), and the `recurrent` weights, 8 h rows of
    /// h values in one vector -> `[1, time, 2 h]`, starting from zeros.
    pub fn lstm(self, recurrent: &DeviceTensor) -> Tensor<'g> {
        let [batch, time, width] = self.dims();
        let hidden = width / 8;
        let fits = batch == 1
            && width.is_multiple_of(8)
            && self.dtype() == DType::F32
            && recurrent.dtype() == DType::F32
            && recurrent.shape() == [width * hidden];
        let shape = Shape::new(&[1, time, 2 * hidden]).filter(|_| fits);
        let Some(shape) = shape else {
            return self
                .scope()
                .mistake("lstm", format!("{self:?} with {recurrent:?}"));
        };
        let recurrent = self.scope().stored(recurrent);
        match self.scope().device().is_cpu() {
            true => self
                .scope()
                .host_op(shape, &[self.packed_rows(), recurrent], Lstm { hidden }),
            false => step_by_step(self, recurrent, hidden),
        }
    }
}

/// The same from the operators that every device has, a few for each step.
fn step_by_step<'g>(gates: Tensor<'g>, recurrent: Tensor<'g>, hidden: usize) -> Tensor<'g> {
    let [_, time, _] = gates.dims();
    let weights = recurrent.reshape(&[8 * hidden, hidden]);
    let direction = |backward: bool| {
        let first = usize::from(backward) * 4 * hidden;
        let weight = weights.slice(0, first, 4 * hidden).contiguous();
        let mut state: Option<(Tensor<'g>, Tensor<'g>)> = None;
        let mut outputs = Vec::with_capacity(time);
        for i in 0..time {
            let t = if backward { time - 1 - i } else { i };
            let gates = gates.slice(1, t, 1).slice(2, first, 4 * hidden);
            let mut gates = gates.contiguous().reshape(&[1, 4 * hidden]);
            if let Some((output, _)) = state {
                gates = gates + output.matmul_t(weight);
            }
            let [input, forget, cell, out] = gates.split::<4>(-1).map(Tensor::contiguous);
            let mut kept = input.sigmoid() * cell.tanh();
            if let Some((_, before)) = state {
                kept = kept + forget.sigmoid() * before;
            }
            let output = out.sigmoid() * kept.tanh(); // [1, hidden]
            state = Some((output, kept));
            outputs.push(output);
        }
        if backward {
            outputs.reverse();
        }
        joined(outputs)
    };
    let both = [direction(false), direction(true)];
    both[0].concat(both[1], 1).reshape(&[1, time, 2 * hidden])
}

/// The rows one below the other, put together in pairs so that each is copied seldom.
fn joined(mut rows: Vec<Tensor<'_>>) -> Tensor<'_> {
    while rows.len() > 1 {
        let pairs = rows.chunks(2);
        rows = pairs
            .map(|pair| match pair {
                [a, b] => a.concat(*b, 0),
                _ => pair[0],
            })
            .collect();
    }
    rows[0]
}

struct Lstm {
    hidden: usize,
}

// SAFETY: a job is a direction, which has its own half of every row.
unsafe impl HostOp for Lstm {
    fn run(&self, inputs: &[Operand], output: &Output, share: Share) {
        let h = self.hidden;
        let time = output.ne[1];
        let weights = inputs[1].row_f32(0, 0, 0);
        for direction in share.of_jobs(2) {
            let weights = &weights[direction * 4 * h * h..(direction + 1) * 4 * h * h];
            let (mut state, mut cell) = (vec![0.0; h], vec![0.0; h]);
            let mut gates = vec![0.0; 4 * h];
            for i in 0..time {
                let t = if direction == 0 { i } else { time - 1 - i };
                let row = inputs[0].row_f32(t, 0, 0);
                gates.copy_from_slice(&row[direction * 4 * h..(direction + 1) * 4 * h]);
                simd::add_products(weights, &state, &mut gates);
                simd::lstm_cell(&gates, &mut cell, &mut state);
                // SAFETY: each direction has its own half of the row.
                let out = unsafe { output.row([t, 0, 0], direction * h..(direction + 1) * h) };
                out.copy_from_slice(&state);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{BufferBuilder, Device, Graph};

    fn wave(n: usize, f: f32) -> Vec<f32> {
        (0..n).map(|i| (i as f32 * f).sin() * 0.4).collect()
    }

    /// Straight from the definition, in f64.
    fn defined(gates: &[f32], weights: &[f32], time: usize, h: usize) -> Vec<f32> {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let mut out = vec![0.0; time * 2 * h];
        for d in 0..2 {
            let (mut state, mut cell) = (vec![0f64; h], vec![0f64; h]);
            for i in 0..time {
                let t = if d == 0 { i } else { time - 1 - i };
                let gate = |k: usize, j: usize| {
                    let row = d * 4 * h + k * h + j;
                    let w = weights[row * h..(row + 1) * h].iter().zip(&state);
                    f64::from(gates[t * 8 * h + row])
                        + w.map(|(w, s)| f64::from(*w) * s).sum::<f64>()
                };
                let all: Vec<[f64; 4]> = (0..h).map(|j| [0, 1, 2, 3].map(|k| gate(k, j))).collect();
                for (j, [input, forget, new, output]) in all.into_iter().enumerate() {
                    cell[j] = sigmoid(forget) * cell[j] + sigmoid(input) * new.tanh();
                    state[j] = sigmoid(output) * cell[j].tanh();
                    out[(t * 2 + d) * h + j] = state[j] as f32;
                }
            }
        }
        out
    }

    #[test]
    fn both_forms_are_the_definition() {
        for (threads, time, h) in [(1, 50, 32), (2, 7, 5), (4, 1, 16)] {
            let device = Device::cpu(threads).unwrap();
            let (gates, weights) = (wave(time * 8 * h, 0.77), wave(8 * h * h, 0.31));
            let mut buffer = BufferBuilder::weights(&device, 8);
            let stored = buffer.declare("w", DType::F32, &[8 * h * h]).unwrap();
            let _buffer = buffer.allocate().unwrap();
            stored.write(&weights).unwrap();
            let wanted = defined(&gates, &weights, time, h);
            let mut graph = Graph::build_exact(&device, |g| {
                let gates = g.input("gates", DType::F32, &[1, time, 8 * h]);
                g.output("fast", gates.lstm(&stored));
                g.output("plain", step_by_step(gates, g.stored(&stored), h));
                Ok(())
            })
            .unwrap();
            graph.write("gates", &gates).unwrap();
            graph.compute().unwrap();
            for name in ["fast", "plain"] {
                let found: Vec<f32> = graph.read(name).unwrap();
                for (found, wanted) in found.iter().zip(&wanted) {
                    assert!(
                        (found - wanted).abs() < 2e-6,
                        "{name}: {found}, wanted {wanted}"
                    );
                }
            }
        }
    }
}
