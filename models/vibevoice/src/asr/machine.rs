//! The network at work: sound in pieces, the prompt in pieces, one graph a token.

use std::sync::Arc;

use audiocpp::{
    engine::{Result, RunContext, Unit},
    graph::{BufferBuilder, DType, Device, DeviceRequest, DeviceTensor, GraphError, Kept},
};

use super::net::AsrNet;
use crate::{
    config::RATE,
    layers::Past,
    reader::{Reader, write_place},
    rows::Rows,
};

/// Frames that are encoded at a time.
const FRAMES: usize = 32;
/// Graphs of steps that are kept, one for each size of the pool.
const GRAPHS: usize = 2;

/// The network with its state on one device; used by one request at a time.
pub struct AsrMachine {
    net: Arc<AsrNet>,
    reader: Reader,
    lane: Rows,
    steps: Kept<usize>,
    sound: Kept<()>,
    /// Of the acoustic and the semantic encoder.
    memories: [Vec<DeviceTensor>; 2],
}

impl AsrMachine {
    /// For a network on the device that holds its weights.
    ///
    /// # Errors
    /// A device without room.
    pub fn new(device: &Device, net: Arc<AsrNet>) -> std::result::Result<AsrMachine, GraphError> {
        let shapes = [&net.acoustic_encoder, &net.semantic_encoder].map(|e| e.memories());
        let mut buffer = BufferBuilder::new(device, shapes.iter().map(Vec::len).sum());
        let mut declare = |shapes: &[[usize; 2]]| -> std::result::Result<Vec<_>, GraphError> {
            let tensor = |&[steps, channels]: &[usize; 2]| {
                buffer.declare("memory", DType::F32, &[1, steps, channels])
            };
            shapes.iter().map(tensor).collect()
        };
        let memories = [declare(&shapes[0])?, declare(&shapes[1])?];
        buffer.allocate()?;
        Ok(AsrMachine {
            reader: Reader::new(device, &net.lm)?,
            lane: Rows::default(),
            steps: Kept::new(GRAPHS),
            sound: Kept::new(1),
            memories,
            net,
        })
    }

    /// The network.
    pub fn net(&self) -> &AsrNet {
        &self.net
    }

    /// Begins a request: when the last one on the device ends, the graphs' memory may go back.
    pub fn request(&self) -> DeviceRequest {
        self.reader.device().request()
    }

    /// Embeddings of samples at 24 kHz, the last frame filled up with silence: `[frames, width]`.
    /// `noise` `[frames, latent]` is added to the acoustic latents; none if it is empty.
    ///
    /// # Errors
    /// Those of the device; a run that is to stop.
    pub fn listen(
        &mut self,
        samples: &[f32],
        noise: &[f32],
        context: &RunContext,
    ) -> Result<Vec<f32>> {
        let (net, memories) = (&self.net, &self.memories);
        let (hop, latent) = (net.config.acoustic.hop(), net.config.acoustic.latent);
        let width = net.config.lm.width;
        let reader = &self.reader;
        let graph = self.sound.get((), || {
            reader.build(|g| {
                let samples = g.input("samples", DType::F32, &[1, FRAMES * hop, 1]);
                let noise = g.input("noise", DType::F32, &[1, FRAMES, latent]);
                let pasts = memories.each_ref().map(|states| Past::of(states));
                g.output("embeddings", net.listen(samples, noise, pasts));
                Ok(())
            })
        })?;
        memories
            .iter()
            .flatten()
            .try_for_each(DeviceTensor::clear)?;
        let mut embeddings = Vec::with_capacity(samples.len().div_ceil(hop) * width);
        let seconds = |samples: usize| samples as f64 / f64::from(RATE);
        for (i, part) in samples.chunks(FRAMES * hop).enumerate() {
            context.check()?;
            let done = seconds(i * FRAMES * hop);
            context.progress("listen", done, Some(seconds(samples.len())), Unit::Seconds);
            let frames = part.len().div_ceil(hop);
            let mut part = part.to_vec();
            part.resize(FRAMES * hop, 0.0);
            let from = (i * FRAMES * latent).min(noise.len());
            let mut noise = noise[from..noise.len().min(from + FRAMES * latent)].to_vec();
            noise.resize(FRAMES * latent, 0.0);
            graph.write("samples", &part)?;
            graph.write("noise", &noise)?;
            graph.compute()?;
            let all = graph.read::<f32>("embeddings")?;
            embeddings.extend_from_slice(&all[..frames * width]);
        }
        Ok(embeddings)
    }

    /// Reads a new prompt (see [`Reader::read`]) with room for `most` tokens behind it; all but its
    /// last token, which [`say`](Self::say) is to be given.
    ///
    /// # Errors
    /// Those of the device; a run that is to stop.
    pub fn read(
        &mut self,
        prompt: &[u32],
        spoken: &[Option<&[f32]>],
        most: usize,
        context: &RunContext,
    ) -> Result<()> {
        let net = &self.net;
        if self.reader.begin(&net.lm, prompt.len() + most)? {
            self.steps.clear();
        }
        self.lane = Rows::default();
        let before = &prompt[..prompt.len().saturating_sub(1)];
        self.reader
            .read(&net.lm, &mut self.lane, before, spoken, || context.check())
    }

    /// The most probable token after `token`, and the scores of all where they are asked for.
    ///
    /// # Errors
    /// Those of the device; a pool that is full.
    pub fn say(&mut self, token: u32) -> std::result::Result<u32, GraphError> {
        self.lane.take_from(self.reader.free())?;
        let pool = self.reader.pool(self.lane.end());
        let (net, reader) = (&self.net, &self.reader);
        let graph = self.steps.get(pool, || {
            reader.build(|g| {
                let x = net.lm.embed(g.input("token", DType::I32, &[1]));
                let hidden = net
                    .lm
                    .forward(x, &reader.place(g, "lane", 1, pool), reader.cache());
                g.output("next", net.scores(hidden).keep("scores").argmax()); // [1]
                Ok(())
            })
        })?;
        graph.write("token", &[token as i32])?;
        write_place(graph, "lane", &[self.lane.as_slice()], [1, pool])?;
        graph.compute()?;
        let next = graph.read::<i32>("next")?;
        Ok(next.first().map_or(0, |&id| id as u32))
    }

    /// The scores of all tokens after the last step.
    ///
    /// # Errors
    /// There was no step yet.
    pub fn scores(&self) -> std::result::Result<Vec<f32>, GraphError> {
        match self.steps.iter().last() {
            Some(graph) => graph.read("scores"),
            None => Err(GraphError::NoResult),
        }
    }
}
