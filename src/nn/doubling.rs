//! Twice as many steps.

use super::linear::folded;
use crate::{
    graph::{DeviceTensor, Tensor},
    weights::{HostTensor, LoadError, Weights},
};

/// A transposed convolution of each channel by itself, of 3 taps and stride 2, whose output is
/// exactly twice as long (padding 1 on both sides, one more step at the end).
#[derive(Debug, Clone)]
pub struct DepthwiseDouble {
    /// Weights `[channels]` of the taps, and the bias.
    taps: [DeviceTensor; 3],
    bias: DeviceTensor,
}

impl DepthwiseDouble {
    /// Reads `weight` `[channels, 1, 3]` and `bias`; weight normalisation is undone.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(weights: &Weights, channels: usize) -> Result<DepthwiseDouble, LoadError> {
        let tap = |k: usize| {
            folded(weights, [channels, 1, 3], &[channels], move |w| {
                let values = w.data.iter().skip(k).step_by(3).copied();
                HostTensor::new(&[channels], values.collect())
            })
        };
        Ok(DepthwiseDouble {
            taps: [tap(0)?, tap(1)?, tap(2)?],
            bias: weights.get_f32(&[channels], "bias")?,
        })
    }

    /// `[1, time, channels]` -> `[1, 2 time, channels]`.
    pub fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let [_, time, channels] = x.dims();
        let [before, here, after] = &self.taps;
        // Output 2 t sees step t through the middle tap, output 2 t + 1 steps t and t + 1 through
        // the outer ones.
        let next = x.pad(1, 0, 1).slice(1, 1, time);
        let even = x * here;
        let odd = x * after + next * before;
        let both = even.concat(odd, 2).reshape(&[1, 2 * time, channels]);
        both + &self.bias
    }
}

/// Every step twice: `[1, time, channels]` -> `[1, 2 time, channels]`.
pub fn twice(x: Tensor<'_>) -> Tensor<'_> {
    let [_, time, channels] = x.dims();
    x.concat(x, 2).reshape(&[1, 2 * time, channels])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        graph::{DType, Device, Graph},
        weights::{Computed, Loader, Policy},
    };

    #[test]
    fn doubling_is_the_transposed_convolution() {
        let fill = |name: &str, shape: &[usize]| {
            let n = shape.iter().product::<usize>();
            let from = if name.contains("bias") { 10.0 } else { 1.0 };
            (0..n).map(|i| from + i as f32).collect()
        };
        let (source, device) = (Computed::new(fill), Device::cpu(1).unwrap());
        let loader = Loader::new(&source, &device, Policy::Native);
        let double = DepthwiseDouble::load(&loader.root(), 2).unwrap();
        let _weights = loader.finish().unwrap();
        let mut graph = Graph::build_exact(&device, |g| {
            let x = g.input("x", DType::F32, &[1, 3, 2]);
            g.output("y", double.forward(x));
            g.output("twice", twice(x));
            Ok(())
        })
        .unwrap();
        let x = [1.0, 10.0, 2.0, 20.0, 3.0, 30.0];
        graph.write("x", &x).unwrap();
        graph.compute().unwrap();
        // Taps 1, 2, 3 and 4, 5, 6; step t reaches outputs 2 t - 1, 2 t and 2 t + 1.
        let mut wanted = [10f32, 11.0].repeat(6);
        for t in 0..3usize {
            for c in 0..2 {
                for k in 0..3 {
                    let at = (2 * t + k).checked_sub(1).filter(|&at| at < 6);
                    if let Some(at) = at {
                        wanted[2 * at + c] += x[2 * t + c] * (1 + 3 * c + k) as f32;
                    }
                }
            }
        }
        assert_eq!(graph.read::<f32>("y").unwrap(), wanted);
        let both = [
            1.0, 10.0, 1.0, 10.0, 2.0, 20.0, 2.0, 20.0, 3.0, 30.0, 3.0, 30.0,
        ];
        assert_eq!(graph.read::<f32>("twice").unwrap(), both);
    }
}
