//! The recurrent cell and the probability, one frame at a time.

use audiocpp::simd;

use crate::net::HIDDEN;

/// Weights in host memory: the work of a frame is too small for a graph.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    /// From the state to the gates (input, forget, cell, output), `[4 hidden, hidden]`.
    pub recurrent: Vec<f32>,
    /// `[hidden]`
    pub weight: Vec<f32>,
    pub bias: f32,
}

/// What the cell keeps from frame to frame.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Memory {
    hidden: Vec<f32>,
    cell: Vec<f32>,
}

impl Memory {
    pub fn empty() -> Memory {
        Memory {
            hidden: vec![0.0; HIDDEN],
            cell: vec![0.0; HIDDEN],
        }
    }
}

impl Cell {
    /// Number of values.
    pub fn parameters(&self) -> u64 {
        (self.recurrent.len() + self.weight.len() + 1) as u64
    }

    /// Takes one frame's share of the `gates` `[4 hidden]`, and gives its probability of speech.
    pub fn step(&self, gates: &mut [f32], memory: &mut Memory) -> f32 {
        simd::add_products(&self.recurrent, &memory.hidden, gates);
        simd::lstm_cell(gates, &mut memory.cell, &mut memory.hidden);
        let heard = memory.hidden.iter().zip(&self.weight);
        let sum = heard.fold(self.bias, |sum, (h, w)| sum + h.max(0.0) * w);
        1.0 / (1.0 + (-sum).exp())
    }
}
