//! Fixed filters along time, the same for every channel, that may change the rate.

use crate::{
    graph::{BufferBuilder, Conv1d, Device, DeviceTensor, GraphError, Tensor},
    weights::HostTensor,
};

/// Inputs or outputs of a block, about: enough for an efficient product, few beside the taps.
const BLOCK: usize = 32;

/// A linear map from `down` input steps to `up` output steps that is the same everywhere: output
/// `up n + i` is a sum over inputs near `down n`. Computed as a product for blocks of steps.
#[derive(Debug, Clone)]
pub struct Fir {
    /// `[outputs of a block, inputs it sees]`.
    weight: DeviceTensor,
    /// Input steps of a block, and output steps.
    block: [usize; 2],
    /// Input steps that a block sees before and after its own.
    reach: [usize; 2],
}

/// What lies beyond the ends of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// Zeros.
    Zeros,
    /// The first and the last value.
    Edge,
}

impl Fir {
    /// `tap(i, j)` is what output i takes of input j, where `up` outputs stand for `down` inputs;
    /// both count from the same place, and tap(i + up, j + down) must be tap(i, j). Inputs reach
    /// `reach` steps beyond those of a block at most.
    ///
    /// # Errors
    /// A device without room.
    pub fn new(
        device: &Device,
        [down, up]: [usize; 2],
        reach: [usize; 2],
        tap: impl Fn(isize, isize) -> f64,
    ) -> Result<Fir, GraphError> {
        let times = (BLOCK.max(reach[0]) / down.max(1)).max(1);
        let block = [times * down, times * up];
        let seen = reach[0] + block[0] + reach[1];
        let mut weight = HostTensor::zeros(&[block[1], seen]);
        for (i, row) in weight.data.chunks_exact_mut(seen).enumerate() {
            for (j, value) in row.iter_mut().enumerate() {
                *value = tap(i as isize, j as isize - reach[0] as isize) as f32;
            }
        }
        let mut buffer = BufferBuilder::weights(device, 1);
        let stored = buffer.declare("fir", crate::graph::DType::F32, &weight.shape)?;
        buffer.allocate()?;
        stored.write(&weight.data)?;
        Ok(Fir {
            weight: stored,
            block,
            reach,
        })
    }

    /// `[channel, time]` -> `[channel, out]`.
    pub fn forward<'g>(&self, x: Tensor<'g>, beyond: Beyond, out: usize) -> Tensor<'g> {
        let [channels, time] = x.dims();
        let [from, to] = self.block;
        let [before, after] = self.reach;
        let blocks = out.div_ceil(to);
        let wanted = blocks * from + after;
        let x = match beyond {
            Beyond::Zeros => x.pad(1, before, wanted.saturating_sub(time)),
            Beyond::Edge => {
                let repeat = |at: usize, n: usize| x.slice(1, at, 1).broadcast(&[channels, n]);
                let longer = match before {
                    0 => x,
                    n => repeat(0, n).concat(x, 1),
                };
                match wanted.saturating_sub(time) {
                    0 => longer,
                    n => longer.concat(repeat(time - 1, n), 1),
                }
            }
        };
        let seen = before + wanted;
        let x = x.slice(1, 0, seen).contiguous();
        let shape = Conv1d {
            kernel: before + from + after,
            stride: from,
            dilation: 1,
            padding: (0, 0),
        };
        let y = x
            .reshape(&[channels, seen, 1])
            .conv1d(&self.weight, None, shape); // [channel, block, outputs of it]
        y.reshape(&[channels, blocks * to]).slice(1, 0, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{DType, Graph};

    /// Output i of a filter with 3 taps 1, 2, 4 around input `i * down / up`.
    fn run([down, up]: [usize; 2], beyond: Beyond, x: &[f32], out: usize) -> Vec<f32> {
        let device = Device::cpu(1).unwrap();
        let tap = |i: isize, j: isize| {
            let middle = i.div_euclid(up as isize) * down as isize;
            match j - middle {
                -1 => 1.0,
                0 => 2.0,
                1 => 4.0,
                _ => 0.0,
            }
        };
        let fir = Fir::new(&device, [down, up], [1, 1], tap).unwrap();
        let mut graph = Graph::build_exact(&device, |g| {
            let x = g.input("x", DType::F32, &[2, x.len() / 2]);
            g.output("y", fir.forward(x, beyond, out));
            Ok(())
        })
        .unwrap();
        graph.write("x", x).unwrap();
        graph.compute().unwrap();
        graph.read("y").unwrap()
    }

    #[test]
    fn filters_keep_raise_and_lower_the_rate() {
        let x: Vec<f32> = (0..90).map(|i| ((i * 7) % 11) as f32).collect();
        let at = |c: usize, j: isize, edge: bool| match (0..45).contains(&j) {
            true => x[c * 45 + j as usize],
            false if edge => x[c * 45 + j.clamp(0, 44) as usize],
            false => 0.0,
        };
        for (rates, out) in [([1, 1], 45), ([1, 2], 90), ([2, 1], 22)] {
            for edge in [false, true] {
                let beyond = if edge { Beyond::Edge } else { Beyond::Zeros };
                let found = run(rates, beyond, &x, out);
                for (n, found) in found.iter().enumerate() {
                    let (c, i) = (n / out, n % out);
                    let j = (i / rates[1] * rates[0]) as isize;
                    let wanted =
                        at(c, j - 1, edge) + 2.0 * at(c, j, edge) + 4.0 * at(c, j + 1, edge);
                    assert_eq!(*found, wanted, "{rates:?} {edge} {c} {i}");
                }
            }
        }
    }
}
