//! A network at work: one graph for each length of sound.

use std::sync::Arc;

use audiocpp::{
    engine::Result,
    graph::{BufferBuilder, DType, Device, Graph, GraphError, Tensor},
};

use crate::{
    net::Net,
    spectrum::{Level, Spectrum},
    transformer::{plane_positions, positions},
};

/// A network with graphs of its own.
pub struct Machine {
    net: Arc<Net>,
    device: Device,
    spectrum: Spectrum,
    /// The graph of the last length.
    graph: Option<(usize, Graph)>,
}

/// What the two branches make of a stretch of sound, normalised.
#[derive(Debug, Clone, PartialEq)]
pub struct Branches {
    /// `[frequency, frame, stem * channel * 2]`.
    pub bins: Vec<f32>,
    /// `[sample, stem * channel]`.
    pub samples: Vec<f32>,
    /// Levels of the input that they are normalised by.
    pub levels: [Level; 2],
}

impl Machine {
    /// For `net` on the device that holds its weights.
    ///
    /// # Errors
    /// A transform that cannot be.
    pub fn new(device: &Device, net: Arc<Net>) -> Result<Machine> {
        Ok(Machine {
            spectrum: Spectrum::new(net.config.nfft)?,
            net,
            device: device.clone(),
            graph: None,
        })
    }

    /// The network.
    pub fn net(&self) -> &Net {
        &self.net
    }

    /// The stems of interleaved frames: interleaved frames of each, as many.
    ///
    /// # Errors
    /// A device without room.
    pub fn separate(&mut self, frames: &[f32]) -> Result<Vec<Vec<f32>>> {
        let made = self.branches(frames)?;
        let channels = self.net.config.audio_channels;
        let stems = self.net.config.sources.len();
        let length = frames.len() / channels;
        let mut out = Vec::with_capacity(stems);
        for stem in 0..stems {
            let mut sound = vec![0.0; frames.len()];
            for c in 0..channels {
                let place = stem * channels + c;
                let at = [2 * stems * channels, 2 * place];
                let own = self
                    .spectrum
                    .inverse(&made.bins, at, made.levels[0], length)?;
                let samples = made.samples.iter().skip(place).step_by(stems * channels);
                let pairs = own.into_iter().zip(samples);
                for (to, (bins, &samples)) in sound[c..].iter_mut().step_by(channels).zip(pairs) {
                    *to = bins + made.levels[1].restore(samples);
                }
            }
            out.push(sound);
        }
        Ok(out)
    }

    /// What the two branches make of interleaved frames.
    ///
    /// # Errors
    /// A device without room.
    pub fn branches(&mut self, frames: &[f32]) -> Result<Branches> {
        let channels = self.net.config.audio_channels;
        let length = frames.len() / channels;
        let mut bins = self.spectrum.forward(frames, channels)?;
        let mut samples = frames.to_vec();
        let levels = [Level::take(&mut bins), Level::take(&mut samples)];
        if self.graph.as_ref().is_none_or(|(of, _)| *of != length) {
            self.graph = None;
        }
        let graph = match &mut self.graph {
            Some((_, graph)) => graph,
            none => {
                let size = [self.spectrum.rows(), self.spectrum.frames(length)];
                let graph = build(&self.net, &self.device, size, length)?;
                &mut none.insert((length, graph)).1
            }
        };
        graph.write("bins", &bins)?;
        graph.write("samples", &samples)?;
        graph.compute()?;
        Ok(Branches {
            bins: graph.read("bins of stems")?,
            samples: graph.read("samples of stems")?,
            levels,
        })
    }
}

fn build(
    net: &Net,
    device: &Device,
    [rows, frames]: [usize; 2],
    length: usize,
) -> std::result::Result<Graph, GraphError> {
    let channels = net.config.audio_channels;
    Graph::build(device, |g| {
        let bins = g.input("bins", DType::F32, &[1, rows, frames, 2 * channels]);
        let samples = g.input("samples", DType::F32, &[1, 1, length, channels]);
        let [bins, samples] = net.forward([bins, samples], |both| places(net, device, both));
        g.output("bins of stems", bins);
        g.output("samples of stems", samples);
        Ok(())
    })
}

/// The positions of both branches' places, stored on the device.
fn places<'g>(net: &Net, device: &Device, [x, xt]: [Tensor<'g>; 2]) -> [Tensor<'g>; 2] {
    let scope = x.scope();
    let Some(transformer) = &net.transformer else {
        return [x, xt];
    };
    let (width, period) = (transformer.width, transformer.config.max_period);
    let ([_, rows, steps, _], samples) = (x.dims(), xt.dim(2));
    let stored = || {
        let mut buffer = BufferBuilder::weights(device, 2);
        let plane = buffer.declare("positions", DType::F32, &[steps * rows, width])?;
        let line = buffer.declare("positions_t", DType::F32, &[samples, width])?;
        buffer.allocate()?;
        plane.write(&plane_positions([rows, steps], width, period))?;
        line.write(&positions(samples, width, period))?;
        Ok::<_, GraphError>([plane, line])
    };
    match stored() {
        Ok(both) => both.each_ref().map(|t| scope.stored(t)),
        Err(error) => {
            scope.fail(error);
            [x, xt]
        }
    }
}
