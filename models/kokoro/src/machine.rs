//! The network at work: one graph for each stage and length, noise from a seed.

use std::sync::Arc;

use audiocpp::{
    engine::{Error, ErrorClass, Result, RunContext},
    graph::{DType, Device, Graph, GraphError},
    nn::durations,
    sampling::TorchRandom,
};

use crate::{net::Net, source::Source};

/// Frames of one chunk, about 2 minutes.
const MOST_FRAMES: usize = 1 << 13;

/// A network with state of its own. Its graphs are kept for the next chunk of the same length.
pub struct Machine {
    net: Arc<Net>,
    source: Arc<Source>,
    device: Device,
    encoder: Option<(usize, Graph)>,
    prosody: Option<(usize, Graph)>,
    decoder: Option<(usize, Graph)>,
}

/// What is known of the phonemes of a chunk before they have durations.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// Hidden states of the language model `[n, hidden of it]`.
    pub bert: Vec<f32>,
    /// What the decoder reads of each phoneme `[n, hidden]`.
    pub text: Vec<f32>,
    /// What pitch and energy are made of `[n, hidden + style]`.
    pub prosody: Vec<f32>,
    /// Durations in frames, not rounded `[n]`.
    pub durations: Vec<f32>,
}

impl Machine {
    /// For `net` on the device that holds its weights, and the source of its vocoder.
    pub fn new(device: &Device, net: Arc<Net>, source: Arc<Source>) -> Machine {
        Machine {
            net,
            source,
            device: device.clone(),
            encoder: None,
            prosody: None,
            decoder: None,
        }
    }

    /// The network.
    pub fn net(&self) -> &Net {
        &self.net
    }

    /// The source of the vocoder.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Samples for each frame.
    pub fn hop(&self) -> usize {
        2 * self.net.size.generator.hop()
    }

    /// Phoneme numbers and the prosodic style.
    ///
    /// # Errors
    /// A number outside the table, more numbers than positions; a device without room.
    pub fn encode(&mut self, symbols: &[i32], style: &[f32]) -> Result<Encoded> {
        let net = self.net.clone();
        let n = symbols.len();
        let most = net.size.bert.positions;
        if n > most {
            return Err(Error::new(
                ErrorClass::TooLarge,
                format!("a chunk of {n} phonemes; at most {most} are spoken at a time"),
            ));
        }
        let graph = kept(&mut self.encoder, n, || {
            Graph::build_exact(&self.device, |g| {
                let numbers = |name| g.input(name, DType::I32, &[n]);
                let style = g.input("style", DType::F32, &[1, net.size.style]);
                let encoded = net.encode(numbers("symbols"), numbers("positions"), style);
                g.output("bert", encoded.bert);
                g.output("text", encoded.text);
                g.output("prosody", encoded.prosody);
                g.output("durations", encoded.durations.sigmoid().sum_last());
                Ok(())
            })
        })?;
        let positions: Vec<i32> = (0..n as i32).collect();
        graph.write("symbols", symbols)?;
        graph.write("positions", &positions)?;
        graph.write("style", style)?;
        graph.compute()?;
        Ok(Encoded {
            bert: graph.read("bert")?,
            text: graph.read("text")?,
            prosody: graph.read("prosody")?,
            durations: graph.read("durations")?,
        })
    }

    /// Whole frames for each phoneme, at least one.
    ///
    /// # Errors
    /// More frames than can be spoken at a time.
    pub fn durations(&self, encoded: &Encoded, speed: f32) -> Result<Vec<u32>> {
        let most = self.net.size.longest as f32 / speed;
        let whole = |x: &f32| (x / speed).round_ties_even().clamp(1.0, most.max(1.0)) as u32;
        let lengths: Vec<u32> = encoded.durations.iter().map(whole).collect();
        let frames: usize = lengths.iter().map(|&n| n as usize).sum();
        match frames <= MOST_FRAMES {
            true => Ok(lengths),
            false => Err(Error::new(
                ErrorClass::TooLarge,
                format!("a chunk of {frames} frames; at most {MOST_FRAMES} are spoken at a time"),
            )),
        }
    }

    /// Pitch in Hz and energy, both `[2 frames]`, of phonemes that last `lengths` frames, with the
    /// prosodic style.
    ///
    /// # Errors
    /// A device without room.
    pub fn prosody(
        &mut self,
        encoded: &Encoded,
        lengths: &[u32],
        style: &[f32],
    ) -> Result<[Vec<f32>; 2]> {
        let net = self.net.clone();
        let width = net.size.hidden + net.size.style;
        let x = spread(&encoded.prosody, width, lengths);
        let frames = x.len() / width;
        let graph = kept(&mut self.prosody, frames, || {
            Graph::build_exact(&self.device, |g| {
                let x = g.input("x", DType::F32, &[1, frames, width]);
                let style = g.input("style", DType::F32, &[1, net.size.style]);
                let [pitch, energy] = net.predictor.prosody(x, style);
                g.output("pitch", pitch);
                g.output("energy", energy);
                Ok(())
            })
        })?;
        graph.write("x", &x)?;
        graph.write("style", style)?;
        graph.compute()?;
        Ok([graph.read("pitch")?, graph.read("energy")?])
    }

    /// The spectrum that the vocoder ends with, `[2 frames factor + 1, bins]`, from phonemes that
    /// last `lengths` frames, pitch and energy, the spectrum of the source, the acoustic style.
    ///
    /// # Errors
    /// A device without room.
    pub fn decode(
        &mut self,
        encoded: &Encoded,
        lengths: &[u32],
        [pitch, energy]: [&[f32]; 2],
        source: &[f32],
        style: &[f32],
    ) -> Result<Vec<f32>> {
        let net = self.net.clone();
        let width = net.size.hidden;
        let text = spread(&encoded.text, width, lengths);
        let frames = text.len() / width;
        let bins = self.source.head().width();
        let steps = 2 * frames * net.size.generator.factor() + 1;
        let graph = kept(&mut self.decoder, frames, || {
            Graph::build_exact(&self.device, |g| {
                let input = |name, steps, width| g.input(name, DType::F32, &[1, steps, width]);
                let text = input("text", frames, width);
                let curves = ["pitch", "energy"].map(|name| input(name, 2 * frames, 1));
                let source = input("source", steps, bins);
                let style = g.input("style", DType::F32, &[1, net.size.style]);
                let x = net.decoder.forward(text, curves, style);
                g.output("features", x);
                g.output("spectrum", net.decoder.generator.forward(x, source, style));
                Ok(())
            })
        })?;
        graph.write("text", &text)?;
        graph.write("pitch", pitch)?;
        graph.write("energy", energy)?;
        graph.write("source", source)?;
        graph.write("style", style)?;
        graph.compute()?;
        Ok(graph.read("spectrum")?)
    }

    /// What the last [`decode`](Self::decode) gave to the vocoder, `[2 frames, channels]`.
    ///
    /// # Errors
    /// If nothing was decoded yet.
    pub fn features(&self) -> Result<Vec<f32>> {
        match &self.decoder {
            Some((_, graph)) => Ok(graph.read("features")?),
            None => Err(Error::internal("nothing was decoded yet".to_owned())),
        }
    }

    /// A chunk from phoneme numbers to samples, with the number of frames of each phoneme. Without
    /// `random` the source has no noise.
    ///
    /// # Errors
    /// A chunk that is too long; a device without room; a cancelled run.
    pub fn speak(
        &mut self,
        symbols: &[i32],
        style: &[f32],
        speed: f32,
        random: Option<&mut TorchRandom>,
        context: &RunContext,
    ) -> Result<(Vec<f32>, Vec<u32>)> {
        let (acoustic, prosodic) = style.split_at(self.net.size.style.min(style.len()));
        let encoded = self.encode(symbols, prosodic)?;
        let lengths = self.durations(&encoded, speed)?;
        context.check()?;
        let [pitch, energy] = self.prosody(&encoded, &lengths, prosodic)?;
        context.check()?;
        let source = self.source.spectrum(&pitch, random)?;
        let spectrum = self.decode(&encoded, &lengths, [&pitch, &energy], &source, acoustic)?;
        Ok((self.source.head().samples(&spectrum)?, lengths))
    }
}

/// Rows of `width` values, each for its duration.
fn spread(rows: &[f32], width: usize, lengths: &[u32]) -> Vec<f32> {
    let frames = durations::spread(lengths).into_iter();
    frames
        .flat_map(|at| {
            rows[at as usize * width..(at as usize + 1) * width]
                .iter()
                .copied()
        })
        .collect()
}

/// The graph in `slot` if it is for `length`, else a new one.
fn kept(
    slot: &mut Option<(usize, Graph)>,
    length: usize,
    build: impl FnOnce() -> Result<Graph, GraphError>,
) -> Result<&mut Graph, GraphError> {
    if slot.as_ref().is_none_or(|(n, _)| *n != length) {
        // The old one's memory goes first.
        *slot = None;
    }
    match slot {
        Some((_, graph)) => Ok(graph),
        None => Ok(&mut slot.insert((length, build()?)).1),
    }
}
