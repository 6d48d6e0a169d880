//! The convolution that tells positions.

use crate::{
    graph::{Conv1d, Tensor},
    nn::Linear,
    weights::{HostTensor, LoadError, Weights},
};

use super::size::{POSITION_PARTS, WavLmSize};

/// The convolution that tells positions: a product for each group.
pub(super) struct PositionConv {
    groups: Vec<Linear>,
    taps: usize,
}

impl PositionConv {
    pub fn load(weights: &Weights, size: &WavLmSize) -> Result<PositionConv, LoadError> {
        let (taps, each) = (size.taps, size.width / size.groups);
        let whole = [size.width, each, taps];
        let shape = [each, taps * each];
        let group = |g: usize| {
            let rows = g * each..(g + 1) * each;
            let cut = rows.clone();
            let label = format!("weight of group {g}");
            let parts = [("weight_g", POSITION_PARTS[0]), {
                let gain = "parametrizations.weight.original0";
                (gain, POSITION_PARTS[1])
            }];
            let weight = match parts.into_iter().find(|(gain, _)| weights.has(gain)) {
                Some((gain, direction)) => {
                    let gains = [1, 1, taps];
                    let parts = [(gain, &gains[..]), (direction, &whole[..])];
                    weights.get_with(&shape, &label, parts, move |[gain, direction]| {
                        let gains = tap_gains(&gain, &direction);
                        let mut part = direction.rows(cut.clone());
                        let values = part.data.iter_mut().zip(gains.iter().cycle());
                        values.for_each(|(value, gain)| *value *= gain);
                        part.conv_matrix()
                    })?
                }
                None => {
                    let parts = [("weight", &whole[..])];
                    weights.get_with(&shape, &label, parts, move |[w]| {
                        w.rows(cut.clone()).conv_matrix()
                    })?
                }
            };
            Ok(Linear {
                weight,
                bias: Some(weights.slice(&[size.width], "bias", rows)?),
            })
        };
        Ok(PositionConv {
            groups: (0..size.groups)
                .map(group)
                .collect::<Result<_, LoadError>>()?,
            taps,
        })
    }

    /// `[1, step, width]` -> `[1, step, width]`. An even kernel has no middle: it reaches farther
    /// back than ahead.
    pub fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let each = x.dim(2) / self.groups.len();
        let shape = Conv1d {
            padding: (self.taps / 2, (self.taps - 1) / 2),
            ..Conv1d::same(self.taps)
        };
        let mut all: Option<Tensor<'g>> = None;
        for (g, group) in self.groups.iter().enumerate() {
            let part = x.slice(2, g * each, each).contiguous();
            let y = group.conv1d(part, shape);
            all = Some(all.map_or(y, |all| all.concat(y, 2)));
        }
        all.unwrap_or(x).gelu()
    }
}

/// What the values of each tap are multiplied by: its gain over the norm of all values there.
fn tap_gains(gain: &HostTensor, direction: &HostTensor) -> Vec<f32> {
    let taps = gain.data.len();
    let mut squares = vec![0.0f64; taps];
    for row in direction.data.chunks_exact(taps) {
        let sums = squares.iter_mut().zip(row);
        sums.for_each(|(sum, v)| *sum += f64::from(*v).powi(2));
    }
    let pairs = gain.data.iter().zip(squares);
    pairs
        .map(|(gain, sum)| (f64::from(*gain) / sum.sqrt()) as f32)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_are_of_taps() {
        let gain = HostTensor::new(&[1, 1, 2], vec![10.0, 1.0]);
        let direction = HostTensor::new(&[2, 1, 2], vec![3.0, 0.0, 4.0, 2.0]);
        assert_eq!(tap_gains(&gain, &direction), [2.0, 0.5]);
    }
}
