//! The network at work: a step of the language model is one graph, a frame of speech another, and
//! what passes between them stays on the device.
//!
//! The language model reads two texts at once: the script with its voices and the speech so far, and
//! the speech alone, which guidance leads away from. Both are lanes of one graph over one pool of keys
//! and values, so that its weights are read once.

use std::sync::Arc;

use audiocpp::graph::{
    BufferBuilder, DType, Device, DeviceRequest, DeviceTensor, GraphError, Kept, Tensor,
};

use crate::{
    head::{Head, time_features},
    layers::{Memory, Past},
    net::Net,
    reader::{Reader, build, write_place},
    rows::Rows,
    solver,
};

/// Frames of a voice that are encoded at a time.
const VOICE_FRAMES: usize = 16;
/// Graphs of steps that are kept: of two kinds, over two sizes of the pool.
const STEP_GRAPHS: usize = 4;

/// Scores of the four tokens that the language model may say, in the order of
/// [`Tokens::all`](crate::config::Tokens::all).
pub type Scores = [f32; 4];

/// What a step of the language model reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// A token.
    Token,
    /// The frame that was made last.
    Frame,
}

/// Tensors that live as long as the machine.
struct State {
    /// Hidden states after the last step, with and without the text, `[2, width]`.
    hidden: DeviceTensor,
    /// Embedding of the last frame, `[1, width]`.
    frame: DeviceTensor,
    /// Rows of the output projection for the four tokens, `[4, width]`.
    said: DeviceTensor,
    decoder: Vec<DeviceTensor>,
    semantic: Vec<DeviceTensor>,
    voice: Vec<DeviceTensor>,
}

/// How a frame is made of noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Guidance {
    /// Steps of the solver.
    pub steps: usize,
    /// How far to go away from speech without the text; 1 is not at all.
    pub scale: f32,
}

/// One frame of speech.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// The latent, as the diffusion head made it.
    pub latent: Vec<f32>,
    /// Samples at 24 kHz.
    pub samples: Vec<f32>,
}

/// The network with its state on one device; used by one request at a time.
pub struct Machine {
    net: Arc<Net>,
    state: State,
    reader: Reader,
    /// The script and the speech so far.
    with_text: Rows,
    /// The speech so far.
    without_text: Rows,
    steps: Kept<(Reads, usize)>,
    frames: Kept<(usize, u32)>,
    times: Option<(usize, DeviceTensor)>,
    encoder: Kept<()>,
    connector: Kept<usize>,
}

impl Machine {
    /// For a network on the device that holds its weights.
    ///
    /// # Errors
    /// [`GraphError::OutOfMemory`].
    pub fn new(device: &Device, net: Arc<Net>) -> Result<Machine, GraphError> {
        let machine = Machine {
            state: State::new(device, &net)?,
            reader: Reader::new(device, &net.lm)?,
            with_text: Rows::default(),
            without_text: Rows::default(),
            steps: Kept::new(STEP_GRAPHS),
            frames: Kept::new(1),
            times: None,
            encoder: Kept::new(1),
            connector: Kept::new(2),
            net,
        };
        machine.choose_tokens()?;
        Ok(machine)
    }

    /// The network.
    pub fn net(&self) -> &Net {
        &self.net
    }

    /// Begins a request: when the last one on the device ends, the graphs' memory may go back.
    pub fn request(&self) -> DeviceRequest {
        self.reader.device().request()
    }

    /// Copies the rows of the output projection that are needed.
    fn choose_tokens(&self) -> Result<(), GraphError> {
        let net = &self.net;
        let mut graph = self.reader.build(|g| {
            let ids = g.input("ids", DType::I32, &[4]);
            let rows = match &net.lm_head {
                Some(table) => ids.look_up(g.stored(table)),
                None => net.lm.embed(ids),
            };
            g.store(&self.state.said, rows);
            Ok(())
        })?;
        graph.write("ids", &net.config.tokens.all().map(|id| id as i32))?;
        graph.compute()
    }

    /// Forgets everything, and makes room for a text of `tokens` tokens, frames of speech among them,
    /// and for `frames` frames without the text.
    ///
    /// # Errors
    /// [`GraphError::OutOfMemory`].
    pub fn begin(&mut self, tokens: usize, frames: usize) -> Result<(), GraphError> {
        // A step takes a row in both lanes before it is known whether that is a frame.
        if self.reader.begin(&self.net.lm, tokens + frames + 2)? {
            self.steps.clear();
        }
        (self.with_text, self.without_text) = Default::default();
        self.forget_sound()
    }

    /// Empties the memories of the tokenizers: the next frame begins a sound.
    ///
    /// # Errors
    /// Those of the device.
    pub fn forget_sound(&mut self) -> Result<(), GraphError> {
        let mut states = self.state.decoder.iter().chain(&self.state.semantic);
        states.try_for_each(DeviceTensor::clear)
    }

    /// Forgets the speech of the lane without the text.
    pub fn forget_speech(&mut self) {
        self.reader.free().give(&mut self.without_text);
    }

    /// Takes back the last step of the lane without the text.
    pub fn step_back(&mut self) {
        self.reader.free().give_last(&mut self.without_text);
    }

    /// Acoustic latents of samples at 24 kHz, the last frame filled up with silence: `[frames,
    /// latent]`.
    ///
    /// # Errors
    /// Those of the device.
    pub fn encode(&mut self, samples: &[f32]) -> Result<Vec<f32>, GraphError> {
        let (net, state) = (&self.net, &self.state.voice);
        let (hop, latent) = (net.config.acoustic.hop(), net.config.acoustic.latent);
        let chunk = VOICE_FRAMES * hop;
        let reader = &self.reader;
        let graph = self.encoder.get((), || {
            reader.build(|g| {
                let x = g.input("samples", DType::F32, &[1, chunk, 1]);
                g.output("latents", net.acoustic_encoder.forward(x, Past::of(state)));
                Ok(())
            })
        })?;
        state.iter().try_for_each(DeviceTensor::clear)?;
        let mut latents = Vec::new();
        for part in samples.chunks(chunk) {
            let mut part = part.to_vec();
            let frames = part.len().div_ceil(hop);
            part.resize(chunk, 0.0);
            graph.write("samples", &part)?;
            graph.compute()?;
            latents.extend_from_slice(&graph.read::<f32>("latents")?[..frames * latent]);
        }
        Ok(latents)
    }

    /// Embeddings of a voice's latents `[frames, latent]`: `[frames, width]`.
    ///
    /// # Errors
    /// Those of the device.
    pub fn connect(&mut self, latents: &[f32]) -> Result<Vec<f32>, GraphError> {
        let net = &self.net;
        let latent = net.config.acoustic.latent;
        let frames = latents.len() / latent;
        let reader = &self.reader;
        let graph = self.connector.get(frames, || {
            reader.build(|g| {
                let x = g.input("latents", DType::F32, &[frames, latent]);
                let x = net.scaling.inward(x);
                g.output("embeddings", net.acoustic_connector.forward(x));
                Ok(())
            })
        })?;
        graph.write("latents", latents)?;
        graph.compute()?;
        graph.read("embeddings")
    }

    /// Reads tokens of the script into the lane with the text (see [`Reader::read`]).
    ///
    /// # Errors
    /// Those of the device and of `stop`; a pool that is full.
    pub fn read<E: From<GraphError>>(
        &mut self,
        tokens: &[u32],
        voices: &[Option<&[f32]>],
        stop: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let lane = &mut self.with_text;
        self.reader.read(&self.net.lm, lane, tokens, voices, stop)
    }

    /// The scores after a token, which both lanes read.
    ///
    /// # Errors
    /// Those of the device; a pool that is full.
    pub fn say(&mut self, token: u32) -> Result<Scores, GraphError> {
        self.step(Reads::Token, Some(token))
    }

    /// The scores after the frame that was made last, which both lanes read.
    ///
    /// # Errors
    /// As [`say`](Self::say).
    pub fn hear(&mut self) -> Result<Scores, GraphError> {
        self.step(Reads::Frame, None)
    }

    fn step(&mut self, reads: Reads, token: Option<u32>) -> Result<Scores, GraphError> {
        self.with_text.take_from(self.reader.free())?;
        self.without_text.take_from(self.reader.free())?;
        let end = self.with_text.end().max(self.without_text.end());
        let pool = self.reader.pool(end);
        let (net, state, reader) = (&self.net, &self.state, &self.reader);
        let graph = self.steps.get((reads, pool), || {
            reader.build(|g| {
                let x = match reads {
                    Reads::Token => net.lm.embed(g.input("token", DType::I32, &[1])),
                    Reads::Frame => g.stored(&state.frame),
                };
                let x = x.broadcast(&[2, net.config.lm.width]);
                let hidden = net
                    .lm
                    .forward(x, &reader.place(g, "lane", 2, pool), reader.cache());
                g.store(&state.hidden, hidden);
                let said = g.stored(&state.said);
                g.output("scores", hidden.slice(0, 0, 1).matmul_t(said)); // [1, 4]
                Ok(())
            })
        })?;
        if let Some(token) = token {
            graph.write("token", &[token as i32])?;
        }
        let lanes = [self.with_text.as_slice(), self.without_text.as_slice()];
        write_place(graph, "lane", &lanes, [2, pool])?;
        graph.compute()?;
        let mut scores = Scores::default();
        graph.read_into("scores", &mut scores)?;
        Ok(scores)
    }

    /// Makes the next frame out of noise `[latent]`, by the hidden states of the last step, and keeps
    /// its embedding for [`hear`](Self::hear).
    ///
    /// # Errors
    /// Those of the device.
    pub fn frame(&mut self, noise: &[f32], guidance: Guidance) -> Result<Frame, GraphError> {
        self.prepare_times(guidance.steps)?;
        let times = self.times.as_ref().map(|(_, times)| times);
        let (net, state) = (&self.net, &self.state);
        let reader = &self.reader;
        let key = (guidance.steps, guidance.scale.to_bits());
        let graph = self.frames.get(key, || {
            let steps = solver::steps(guidance.steps);
            reader.build(|g| {
                let [latent, heard] =
                    [&net.config.acoustic, &net.config.semantic].map(|t| t.latent);
                let noise = g.input("noise", DType::F32, &[1, 1, latent]);
                let conditions = g.stored(&state.hidden);
                let Some(times) = times else {
                    return Ok(());
                };
                let x = net
                    .head
                    .sample(noise, conditions, times, &steps, guidance.scale);
                g.output("latent", x);
                let past = Past::of(&state.decoder);
                let samples = net.acoustic_decoder.forward(net.scaling.outward(x), past);
                g.output("samples", samples); // [1, hop, 1]
                let past = Past::of(&state.semantic);
                let hears = net.semantic_encoder.forward(samples, past); // [1, 1, semantic latent]
                let frame = net.spoken(x.reshape(&[1, latent]), hears.reshape(&[1, heard]));
                g.store(&state.frame, frame);
                Ok(())
            })
        })?;
        graph.write("noise", noise)?;
        graph.compute()?;
        Ok(Frame {
            latent: graph.read("latent")?,
            samples: graph.read("samples")?,
        })
    }

    /// The embedded times of a path of `steps` steps.
    fn prepare_times(&mut self, steps: usize) -> Result<(), GraphError> {
        if self.times.as_ref().is_some_and(|(n, _)| *n == steps) {
            return Ok(());
        }
        let stored = embedded_times(&self.reader, &self.net.head, steps)?;
        self.times = Some((steps, stored));
        Ok(())
    }

    /// Hidden states after the last step, with and without the text: `[2, width]`.
    ///
    /// # Errors
    /// Those of the device.
    pub fn hidden(&self) -> Result<Vec<f32>, GraphError> {
        self.state.hidden.read()
    }
}

/// The embedded times `[steps, width]` of a path of `steps` steps, on the device of `reader`.
pub(crate) fn embedded_times(
    reader: &Reader,
    head: &Head,
    steps: usize,
) -> Result<DeviceTensor, GraphError> {
    let times: Vec<f32> = solver::steps(steps).iter().map(|s| s.time).collect();
    let features = time_features(&times);
    let shape = [steps, features.len() / steps.max(1)];
    let mut buffer = BufferBuilder::new(reader.device(), 1);
    let stored = buffer.declare("times", DType::F32, &[steps, head.width()])?;
    buffer.allocate()?;
    let mut graph = reader.build(|g| {
        let features = g.input("features", DType::F32, &shape);
        g.store(&stored, head.times(features));
        Ok(())
    })?;
    graph.write("features", &features)?;
    graph.compute()?;
    Ok(stored)
}

impl State {
    fn new(device: &Device, net: &Net) -> Result<State, GraphError> {
        let memories = [
            net.acoustic_decoder.memories(),
            net.semantic_encoder.memories(),
            net.acoustic_encoder.memories(),
        ];
        let count = memories.iter().map(Vec::len).sum::<usize>() + 3;
        let mut buffer = BufferBuilder::new(device, count);
        let width = net.config.lm.width;
        let mut declare = |name: &str, shape: &[usize]| buffer.declare(name, DType::F32, shape);
        let hidden = declare("hidden", &[2, width])?;
        let frame = declare("frame", &[1, width])?;
        let said = declare("said", &[4, width])?;
        let mut all = |memories: &[Memory]| -> Result<Vec<DeviceTensor>, GraphError> {
            let tensor = |&[steps, channels]: &Memory| declare("memory", &[1, steps, channels]);
            memories.iter().map(tensor).collect()
        };
        let [decoder, semantic, voice] =
            [all(&memories[0])?, all(&memories[1])?, all(&memories[2])?];
        buffer.allocate()?;
        Ok(State {
            hidden,
            frame,
            said,
            decoder,
            semantic,
            voice,
        })
    }
}

/// The samples of whole latents `[frames, latent]` as the tokenizer knows them, from the beginning of
/// a sound, for looking at the decoder alone.
///
/// # Errors
/// Those of the device.
pub fn decode(device: &Device, net: &Net, latents: &[f32]) -> Result<Vec<f32>, GraphError> {
    let latent = net.config.acoustic.latent;
    let frames = latents.len() / latent;
    let mut graph = build(device, net.lm.exact(), |g| {
        let x: Tensor = g.input("latents", DType::F32, &[1, frames, latent]);
        g.output("samples", net.acoustic_decoder.forward(x, Past::none()));
        Ok(())
    })?;
    graph.write("latents", latents)?;
    graph.compute()?;
    graph.read("samples")
}
