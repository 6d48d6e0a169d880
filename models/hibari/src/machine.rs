//! The network at work: one graph for each stage and length.

use std::sync::Arc;

use audiocpp::{
    engine::{Error, ErrorClass, Result, RunContext},
    graph::{DType, Device, Graph, GraphError, Kept},
    nn::durations::spread,
    sampling::TorchRandom,
};

use crate::{
    net::Net,
    sound::{HOP, Sounder},
};

/// Steps a symbol may last, about 6 s; no speech is that slow.
const LONGEST: f32 = 256.0;
/// Steps of one sentence, about 3 minutes.
const MOST_STEPS: usize = 1 << 13;
/// Spectra for each step.
const FRAMES: usize = 2;
/// Hz of a pitch of one.
const PITCH: f32 = 100.0;
/// Graphs that are kept for later sentences of the same length.
const KEPT: usize = 8;

/// Samples for each step.
pub const STEP: usize = FRAMES * HOP;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Encoder,
    Melody,
    Decoder,
}

/// What the encoders make of the symbols of a sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// For the decoder, `[n, width]`.
    pub text: Vec<f32>,
    /// For the melody, `[n, width]`.
    pub prosody: Vec<f32>,
    /// Logarithms of one more than the durations, `[n]`.
    pub durations: Vec<f32>,
}

/// Pitch and loudness of each frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Melody {
    /// In Hz.
    pub pitch: Vec<f32>,
    /// As the network writes it.
    pub loudness: Vec<f32>,
}

/// A network with graphs of its own.
pub struct Machine {
    net: Arc<Net>,
    sounder: Arc<Sounder>,
    device: Device,
    graphs: Kept<(Stage, usize)>,
}

impl Machine {
    /// For `net` on the device that holds its weights.
    pub fn new(device: &Device, net: Arc<Net>, sounder: Arc<Sounder>) -> Machine {
        Machine {
            net,
            sounder,
            device: device.clone(),
            graphs: Kept::new(KEPT),
        }
    }

    /// Speaks `symbols`: samples, and the steps of each symbol.
    ///
    /// # Errors
    /// A number outside the table; a sentence that is too long; a device without room; a cancelled
    /// run.
    pub fn speak(
        &mut self,
        symbols: &[i32],
        speed: f32,
        random: Option<&mut TorchRandom>,
        context: &RunContext,
    ) -> Result<(Vec<f32>, Vec<u32>)> {
        let encoded = self.encode(symbols)?;
        let lengths = durations(&encoded.durations, speed)?;
        context.check()?;
        let melody = self.melody(&encoded, &lengths)?;
        context.check()?;
        let spectra = self.decode(&encoded, &lengths, &melody)?;
        context.check()?;
        let samples = self.sounder.samples(&spectra, &melody.pitch, random)?;
        Ok((samples, lengths))
    }

    /// Both text encoders.
    ///
    /// # Errors
    /// A number outside the table; a device without room.
    pub fn encode(&mut self, symbols: &[i32]) -> Result<Encoded> {
        let graph = self.graph(Stage::Encoder, symbols.len())?;
        graph.write("symbols", symbols)?;
        graph.compute()?;
        Ok(Encoded {
            text: graph.read("text")?,
            prosody: graph.read("prosody")?,
            durations: graph.read("durations")?,
        })
    }

    /// Pitch and loudness of symbols that last `lengths` steps.
    ///
    /// # Errors
    /// A device without room.
    pub fn melody(&mut self, encoded: &Encoded, lengths: &[u32]) -> Result<Melody> {
        let width = self.net.size.prosody.width;
        let spread = spread(lengths);
        let rows: Vec<f32> = spread
            .iter()
            .flat_map(|&symbol| row(&encoded.prosody, symbol, width))
            .copied()
            .collect();
        let graph = self.graph(Stage::Melody, spread.len())?;
        graph.write("prosody", &rows)?;
        graph.compute()?;
        let values: Vec<f32> = graph.read("melody")?;
        let (steps, _) = values.as_chunks::<{ 2 * FRAMES }>();
        Ok(Melody {
            pitch: steps
                .iter()
                .flat_map(|v| [v[0] * PITCH, v[1] * PITCH])
                .collect(),
            loudness: steps.iter().flat_map(|v| [v[2], v[3]]).collect(),
        })
    }

    /// Spectra in five parts, `[frames, 5 bins]`.
    ///
    /// # Errors
    /// A device without room.
    pub fn decode(
        &mut self,
        encoded: &Encoded,
        lengths: &[u32],
        melody: &Melody,
    ) -> Result<Vec<f32>> {
        let width = self.net.size.text.width;
        let mut rows = Vec::with_capacity(melody.pitch.len() * (width + 2));
        let frames = spread(lengths)
            .into_iter()
            .flat_map(|symbol| [symbol; FRAMES]);
        for ((symbol, pitch), loudness) in frames.zip(&melody.pitch).zip(&melody.loudness) {
            rows.extend_from_slice(row(&encoded.text, symbol, width));
            rows.push(pitch.max(0.0).ln_1p() / 5.0);
            rows.push(*loudness);
        }
        let graph = self.graph(Stage::Decoder, melody.pitch.len())?;
        graph.write("frames", &rows)?;
        graph.compute()?;
        Ok(graph.read("spectra")?)
    }

    /// The graph of a stage for `length` symbols, steps or frames, made on its first use.
    fn graph(&mut self, stage: Stage, length: usize) -> Result<&mut Graph, GraphError> {
        let (net, device) = (&*self.net, &self.device);
        self.graphs
            .get((stage, length), || build(net, device, stage, length))
    }
}

fn build(net: &Net, device: &Device, stage: Stage, length: usize) -> Result<Graph, GraphError> {
    Graph::build_exact(device, |g| {
        match stage {
            Stage::Encoder => {
                let symbols = g.input("symbols", DType::I32, &[length]);
                g.output("text", net.text.forward(symbols));
                let prosody = net.prosody.text.forward(symbols);
                g.output("durations", net.prosody.durations(prosody));
                g.output("prosody", prosody);
            }
            Stage::Melody => {
                let shape = [1, length, net.size.prosody.width];
                let x = g.input("prosody", DType::F32, &shape);
                g.output("melody", net.prosody.melody(x));
            }
            Stage::Decoder => {
                let shape = [1, length, net.size.text.width + 2];
                let x = g.input("frames", DType::F32, &shape);
                g.output("spectra", net.decoder.forward(x));
            }
        }
        Ok(())
    })
}

fn row(rows: &[f32], symbol: i32, width: usize) -> &[f32] {
    let at = symbol as usize * width;
    &rows[at..at + width]
}

/// Steps of each symbol, at least one.
///
/// # Errors
/// A sentence that is too long (`TooLarge`).
pub fn durations(logs: &[f32], speed: f32) -> Result<Vec<u32>> {
    // What is no number becomes 0 as an integer, and then 1.
    let steps = |log: &f32| ((log.exp() - 1.0) / speed).round_ties_even();
    let lengths: Vec<u32> = logs
        .iter()
        .map(|log| (steps(log).clamp(1.0, LONGEST) as u32).max(1))
        .collect();
    let sum: usize = lengths.iter().map(|&n| n as usize).sum();
    match sum <= MOST_STEPS {
        true => Ok(lengths),
        false => Err(Error::new(
            ErrorClass::TooLarge,
            format!("a sentence of {sum} steps; at most {MOST_STEPS} are spoken at a time"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rounded_and_bounded() {
        let logs = [0.0, 3.5f32.ln(), 4.5f32.ln(), 30.0, f32::NAN];
        assert_eq!(durations(&logs, 1.0).unwrap(), [1, 2, 4, 256, 1]);
        assert_eq!(durations(&logs[1..3], 0.5).unwrap(), [5, 7]);
        assert!(durations(&[30.0; 40], 1.0).is_err());
    }
}
