//! The network at work: one graph for each stage and length, noise from a seed.

use std::sync::Arc;

use audiocpp::{
    engine::{Result, RunContext},
    graph::{DType, Device, Graph, GraphError, Kept},
    nn::{Spline, durations},
    sampling::TorchRandom,
};

use crate::net::{Durations, Net};

/// How a sentence is to be spoken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Manner {
    /// Number of the speaker.
    pub speaker: i32,
    /// Deviation of the noise in the latents.
    pub noise_scale: f32,
    /// Factor of all durations.
    pub length_scale: f32,
    /// Deviation of the noise in the durations.
    pub noise_w: f32,
}

/// Most frames that the vocoder turns to samples at a time.
const WINDOW: usize = 256;
/// Frames a symbol may last, about 12 s; no speech is that slow.
const LONGEST: u32 = 1024;
/// Frames of one sentence, about 6 minutes.
const MOST_FRAMES: usize = 1 << 15;
/// Graphs that are kept for later sentences of the same length.
const KEPT: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Encoder,
    Spline(usize),
    Flow,
    Vocoder,
}

/// A network with state of its own.
pub struct Machine {
    net: Arc<Net>,
    device: Device,
    graphs: Kept<(Stage, usize)>,
}

/// What the text encoder makes of the symbols of a sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// Means of the latents `[n, latent]`.
    pub means: Vec<f32>,
    /// Logarithms of their deviations `[n, latent]`.
    pub log_deviations: Vec<f32>,
    /// What [`Durations::prepare`] gives.
    pub durations: Vec<f32>,
}

impl Machine {
    /// For `net` on the device that holds its weights.
    pub fn new(device: &Device, net: Arc<Net>) -> Machine {
        Machine {
            net,
            device: device.clone(),
            graphs: Kept::new(KEPT),
        }
    }

    /// The network.
    pub fn net(&self) -> &Net {
        &self.net
    }

    /// The text encoder, on symbol numbers.
    ///
    /// # Errors
    /// A number outside the table; a device without room.
    pub fn encode(&mut self, symbols: &[i32], speaker: i32) -> Result<Encoded> {
        let graph = self.graph(Stage::Encoder, symbols.len())?;
        graph.write("symbols", symbols)?;
        run(graph, speaker)?;
        let statistics: Vec<f32> = graph.read("statistics")?;
        let durations = graph.read("durations")?;
        let latent = self.net.size.latent;
        let half = |first: usize| {
            let rows = statistics.chunks_exact(2 * latent);
            rows.flat_map(|row| row[first..first + latent].iter().copied())
                .collect()
        };
        Ok(Encoded {
            means: half(0),
            log_deviations: half(latent),
            durations,
        })
    }

    /// Frames for each symbol. Draws the noise of a stochastic predictor from `random`.
    ///
    /// # Errors
    /// A device without room.
    pub fn durations(
        &mut self,
        encoded: &Encoded,
        manner: &Manner,
        random: &mut TorchRandom,
    ) -> Result<Vec<u32>> {
        let logs = self.log_durations(encoded, manner, random)?;
        Ok(durations::whole_frames(&logs, manner.length_scale, LONGEST))
    }

    /// Logarithms of the durations, before [`Manner::length_scale`].
    ///
    /// # Errors
    /// A device without room.
    pub fn log_durations(
        &mut self,
        encoded: &Encoded,
        manner: &Manner,
        random: &mut TorchRandom,
    ) -> Result<Vec<f32>> {
        let net = self.net.clone();
        let Durations::Stochastic {
            layers,
            spline,
            sharpness,
            shift,
            scale,
            ..
        } = &net.durations
        else {
            return Ok(encoded.durations.clone());
        };
        let n = encoded.means.len() / net.size.latent;
        let mut noise = random.randn(2 * n);
        noise.iter_mut().for_each(|x| *x *= manner.noise_w);
        let mut halves = [noise[..n].to_vec(), noise[n..].to_vec()];
        for layer in 0..layers.len() {
            halves.swap(0, 1);
            let graph = self.graph(Stage::Spline(layer), n)?;
            graph.write("half", &halves[0])?;
            graph.write("told", &encoded.durations)?;
            graph.compute()?;
            let mut parameters: Vec<f32> = graph.read("parameters")?;
            bend(spline, *sharpness, &mut parameters, &mut halves[1]);
        }
        halves.swap(0, 1);
        Ok(halves[0].iter().map(|x| (x - shift) * scale).collect())
    }

    /// Latents `[frames, latent]` of symbols that last `lengths` frames, with noise.
    pub fn latents(
        &self,
        encoded: &Encoded,
        lengths: &[u32],
        manner: &Manner,
        random: &mut TorchRandom,
    ) -> Vec<f32> {
        let latent = self.net.size.latent;
        let frames = durations::spread(lengths);
        // PyTorch keeps these channel by channel, and fills such tensors one number at a time.
        let mut noise = random.randn_each(frames.len() * latent);
        for (frame, symbol) in noise.chunks_exact_mut(latent).zip(frames) {
            let at = symbol as usize * latent;
            let means = &encoded.means[at..at + latent];
            let logs = &encoded.log_deviations[at..at + latent];
            for ((x, mean), log) in frame.iter_mut().zip(means).zip(logs) {
                *x = mean + *x * log.exp() * manner.noise_scale;
            }
        }
        noise
    }

    /// Latents to what the vocoder reads, both `[frames, latent]`.
    ///
    /// # Errors
    /// A device without room.
    pub fn flow(&mut self, latents: &[f32], speaker: i32) -> Result<Vec<f32>> {
        let frames = latents.len() / self.net.size.latent;
        let graph = self.graph(Stage::Flow, frames)?;
        graph.write("latents", latents)?;
        run(graph, speaker)?;
        Ok(graph.read("frames")?)
    }

    /// Frames `[frames, latent]` to samples, a window at a time; each window is given to `sink`
    /// as soon as it is there. What the window's edges would make different is cut off: the
    /// samples do not depend on how the frames were cut.
    ///
    /// # Errors
    /// A device without room; a cancelled run; whatever `sink` returns.
    pub fn vocode(
        &mut self,
        frames: &[f32],
        speaker: i32,
        context: &RunContext,
        mut sink: impl FnMut(&[f32]) -> Result<()>,
    ) -> Result<()> {
        let (latent, hop) = (self.net.size.latent, self.net.size.hop());
        let count = frames.len() / latent;
        let reach = self.net.size.vocoder.reach();
        // Windows of one length, that overlap by no more than they must.
        let most = WINDOW.max(4 * reach);
        let windows = count
            .saturating_sub(2 * reach)
            .div_ceil(most - 2 * reach)
            .max(1);
        let window = (count + 2 * reach * (windows - 1)).div_ceil(windows);
        let mut done = 0;
        while done < count {
            context.check()?;
            let start = done.saturating_sub(reach).min(count - window);
            let end = start + window;
            let ready = if end == count { count } else { end - reach };
            let graph = self.graph(Stage::Vocoder, window)?;
            graph.write("frames", &frames[start * latent..end * latent])?;
            run(graph, speaker)?;
            let samples: Vec<f32> = graph.read("samples")?;
            sink(&samples[(done - start) * hop..(ready - start) * hop])?;
            done = ready;
        }
        Ok(())
    }

    /// Checks that `lengths` make a sentence that can be spoken, of how many frames.
    ///
    /// # Errors
    /// None that are not `TooLarge`.
    pub fn frames(&self, lengths: &[u32]) -> Result<usize> {
        let frames: usize = lengths.iter().map(|&n| n as usize).sum();
        match frames <= MOST_FRAMES {
            true => Ok(frames),
            false => Err(audiocpp::engine::Error::new(
                audiocpp::engine::ErrorClass::TooLarge,
                format!(
                    "a sentence of {frames} frames; at most {MOST_FRAMES} are spoken at a time"
                ),
            )),
        }
    }

    /// The graph of a stage for `length` symbols or frames, made on its first use.
    fn graph(&mut self, stage: Stage, length: usize) -> Result<&mut Graph, GraphError> {
        let (net, device) = (&*self.net, &self.device);
        self.graphs
            .get((stage, length), || build(net, device, stage, length))
    }
}

fn build(net: &Net, device: &Device, stage: Stage, length: usize) -> Result<Graph, GraphError> {
    let latent = net.size.latent;
    Graph::build_exact(device, |g| {
        let speaker = || {
            net.speakers.as_ref()?;
            net.speaker(g, g.input("speaker", DType::I32, &[1]))
        };
        let frames = |name| g.input(name, DType::F32, &[1, length, latent]);
        match stage {
            Stage::Encoder => {
                let symbols = g.input("symbols", DType::I32, &[length]);
                let x = net.encoder.forward(symbols);
                g.output("statistics", net.encoder.statistics.forward(x));
                g.output("durations", net.durations.prepare(x, speaker()));
            }
            Stage::Spline(layer) => {
                if let Durations::Stochastic { layers, .. } = &net.durations {
                    let half = g.input("half", DType::F32, &[1, length, 1]);
                    let width = layers[layer].pre.weight.shape()[0];
                    let told = g.input("told", DType::F32, &[1, length, width]);
                    g.output("parameters", layers[layer].forward(half, told));
                }
            }
            Stage::Flow => {
                let z = net.flow.inverse(frames("latents"), speaker());
                g.output("frames", z);
            }
            Stage::Vocoder => {
                let samples = net.vocoder.forward(frames("frames"), speaker());
                g.output("samples", samples);
            }
        }
        Ok(())
    })
}

fn run(graph: &mut Graph, speaker: i32) -> Result<(), GraphError> {
    if graph.has_input("speaker") {
        graph.write("speaker", &[speaker])?;
    }
    graph.compute()
}

/// Moves each value through the inverse of its spline.
fn bend(spline: &Spline, sharpness: f32, parameters: &mut [f32], values: &mut [f32]) {
    let rows = parameters.chunks_exact_mut(spline.parameters());
    for (row, value) in rows.zip(values) {
        row[..2 * spline.bins]
            .iter_mut()
            .for_each(|x| *x *= sharpness);
        *value = spline.inverse(*value, row);
    }
}
