//! The networks at work: one graph for each stem and number of frames.

use std::sync::Arc;

use audiocpp::{
    engine::{Result, RunContext},
    graph::{DType, Device, Graph, GraphError},
};

use crate::{
    net::UNet,
    size::{MULTIPLE, Variant},
};

/// The networks with graphs of their own.
pub struct Machine {
    nets: Arc<Vec<UNet>>,
    variant: Arc<Variant>,
    device: Device,
    /// Frames and bins that the graphs are for.
    size: [usize; 2],
    graphs: Vec<Graph>,
}

impl Machine {
    /// For `nets`, in the order of the variant's stems, on the device that holds their weights.
    pub fn new(device: &Device, nets: Arc<Vec<UNet>>, variant: Arc<Variant>) -> Machine {
        Machine {
            nets,
            variant,
            device: device.clone(),
            size: [0, 0],
            graphs: Vec::new(),
        }
    }

    /// The stems.
    pub fn variant(&self) -> &Variant {
        &self.variant
    }

    /// What each stem has of the magnitudes `[frames, bins, 2]` (both multiples of
    /// [`MULTIPLE`]): factors from 0 to 1 of the same shape, for each stem.
    ///
    /// # Errors
    /// A device without room; a run that was cancelled between two stems.
    pub fn shares(
        &mut self,
        magnitudes: &[f32],
        size: [usize; 2],
        context: &RunContext,
    ) -> Result<Vec<Vec<f32>>> {
        if self.size != size {
            self.graphs = self.build(size)?;
            self.size = size;
        }
        let mut shares = Vec::new();
        for graph in &mut self.graphs {
            context.check()?;
            graph.write("magnitudes", magnitudes)?;
            graph.compute()?;
            shares.push(graph.read::<f32>("share")?);
        }
        if self.variant.softmax {
            softmax(&mut shares);
        }
        Ok(shares)
    }

    fn build(&self, [frames, bins]: [usize; 2]) -> std::result::Result<Vec<Graph>, GraphError> {
        debug_assert!(frames.is_multiple_of(MULTIPLE) && bins.is_multiple_of(MULTIPLE));
        let build = |net: &UNet| {
            Graph::build(&self.device, |g| {
                let x = g.input("magnitudes", DType::F32, &[1, frames, bins, 2]);
                let logits = net.forward(x);
                let share = match self.variant.softmax {
                    true => logits,
                    false => logits.sigmoid(),
                };
                g.output("share", share);
                Ok(())
            })
        };
        self.nets.iter().map(build).collect()
    }
}

/// Softmax over the stems, place by place.
fn softmax(stems: &mut [Vec<f32>]) {
    let places = stems.first().map_or(0, Vec::len);
    for at in 0..places {
        let most = stems.iter().fold(f32::NEG_INFINITY, |m, s| m.max(s[at]));
        let mut sum = 0.0;
        for stem in stems.iter_mut() {
            stem[at] = (stem[at] - most).exp();
            sum += stem[at];
        }
        stems.iter_mut().for_each(|stem| stem[at] /= sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_softmax_sum_to_one() {
        let mut stems = vec![vec![1000.0, 0.0], vec![1000.0, 1.0], vec![-5.0, 2.0]];
        softmax(&mut stems);
        assert_eq!(stems[0][0], 0.5);
        let sum: f32 = stems.iter().map(|stem| stem[1]).sum();
        assert!((sum - 1.0).abs() < 1e-6 && (stems[2][1] / stems[1][1] - 1f32.exp()).abs() < 1e-5);
    }
}
