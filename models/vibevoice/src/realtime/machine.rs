//! The network at work: a window of text is one graph; a frame of speech, with the language model's
//! step behind it, another.

use std::sync::Arc;

use audiocpp::{
    graph::{
        BufferBuilder, DType, Device, DeviceRequest, DeviceTensor, GraphError, Kept, Scope, Tensor,
    },
    nn::{KvCache, Place},
};
use half::f16;

use super::{
    net::{Kind, RealtimeNet},
    voice::{Prefix, Voice},
};
use crate::{
    layers::Past,
    machine::{Guidance, embedded_times},
    reader::{Reader, write_place},
    rows::Rows,
    solver,
};

/// Tokens of text that are read at a time.
pub const WINDOW: usize = 5;

/// One frame of speech.
#[derive(Debug, Clone, PartialEq)]
pub struct RealtimeFrame {
    /// The latent, as the diffusion head made it.
    pub latent: Vec<f32>,
    /// Samples at 24 kHz.
    pub samples: Vec<f32>,
    /// How much this looks like the end; above 0 it is.
    pub ending: f32,
}

/// The network with its state on one device; used by one request at a time.
pub struct RealtimeMachine {
    net: Arc<RealtimeNet>,
    /// Pools of the lower and the upper language model.
    lower: Reader,
    upper: Reader,
    read: Rows,
    with_text: Rows,
    without_text: Rows,
    /// The upper model's last hidden states with and without the text, `[1, width]` each.
    hidden: [DeviceTensor; 2],
    decoder: Vec<DeviceTensor>,
    times: Option<(usize, DeviceTensor)>,
    windows: Kept<[usize; 2]>,
    frames: Kept<(usize, u32, usize)>,
}

impl RealtimeMachine {
    /// For a network on the device that holds its weights.
    ///
    /// # Errors
    /// A device without room.
    pub fn new(device: &Device, net: Arc<RealtimeNet>) -> Result<RealtimeMachine, GraphError> {
        let memories = net.decoder.memories();
        let mut buffer = BufferBuilder::new(device, memories.len() + 2);
        let shape = [1, net.config.upper.width];
        let mut declare = |name: &str, shape: &[usize]| buffer.declare(name, DType::F32, shape);
        let hidden = [declare("hidden", &shape)?, declare("hidden", &shape)?];
        let decoder = memories
            .iter()
            .map(|&[steps, channels]| declare("memory", &[1, steps, channels]))
            .collect::<Result<_, _>>()?;
        buffer.allocate()?;
        Ok(RealtimeMachine {
            lower: Reader::new(device, &net.lower)?,
            upper: Reader::new(device, &net.upper)?,
            read: Rows::default(),
            with_text: Rows::default(),
            without_text: Rows::default(),
            hidden,
            decoder,
            times: None,
            windows: Kept::new(2),
            frames: Kept::new(2),
            net,
        })
    }

    /// The network.
    pub fn net(&self) -> &RealtimeNet {
        &self.net
    }

    /// Begins a request: when the last one on the device ends, the graphs' memory may go back.
    pub fn request(&self) -> DeviceRequest {
        self.upper.device().request()
    }

    /// Forgets everything, takes up a voice, and makes room for so many tokens of text and frames.
    ///
    /// # Errors
    /// Those of the device.
    pub fn begin(&mut self, voice: &Voice, tokens: usize, frames: usize) -> Result<(), GraphError> {
        let net = self.net.clone();
        let grown = [
            self.lower.begin(&net.lower, voice.lower.steps + tokens)?,
            self.upper.begin(
                &net.upper,
                voice.upper.steps + voice.without_text.steps + tokens + 2 * frames,
            )?,
        ];
        if grown.contains(&true) {
            self.windows.clear();
            self.frames.clear();
        }
        self.read = take_up(&mut self.lower, &voice.lower)?;
        self.with_text = take_up(&mut self.upper, &voice.upper)?;
        self.without_text = take_up(&mut self.upper, &voice.without_text)?;
        self.hidden[0].write(&voice.upper.hidden)?;
        self.hidden[1].write(&voice.without_text.hidden)?;
        self.decoder.iter().try_for_each(DeviceTensor::clear)
    }

    /// Reads up to [`WINDOW`] tokens of text.
    ///
    /// # Errors
    /// Those of the device; more tokens.
    pub fn window(&mut self, tokens: &[u32]) -> Result<(), GraphError> {
        let n = tokens.len();
        if !(1..=WINDOW).contains(&n) {
            return Err(GraphError::Tensor {
                name: "tokens".into(),
                problem: format!("{n} tokens in a window, wanted 1 to {WINDOW}"),
            });
        }
        let before = [self.read.len(), self.with_text.len()];
        for _ in 0..n {
            self.read.take_from(self.lower.free())?;
            self.with_text.take_from(self.upper.free())?;
        }
        let pools = [
            self.lower.pool(self.read.end()),
            self.upper.pool(self.with_text.end()),
        ];
        let (net, lower, upper, hidden) = (&self.net, &self.lower, &self.upper, &self.hidden);
        let graph = self.windows.get(pools, || {
            upper.build(|g| {
                let x = net.lower.embed(g.input("tokens", DType::I32, &[WINDOW]));
                let at = lower.place(g, "lower", WINDOW, pools[0]);
                let x = net.lower.forward(x, &at, lower.cache());
                let at = upper.place(g, "upper", WINDOW, pools[1]);
                let x = net
                    .upper
                    .forward(net.typed(x, Kind::Text), &at, upper.cache());
                let last = g.input("last", DType::I32, &[1]);
                g.store(&hidden[0], last.look_up(x));
                Ok(())
            })
        })?;
        let mut ids: Vec<i32> = tokens.iter().map(|&id| id as i32).collect();
        ids.resize(WINDOW, 0);
        graph.write("tokens", &ids)?;
        graph.write("last", &[n as i32 - 1])?;
        for (lane, rows, before, pool) in [
            ("lower", &self.read, before[0], pools[0]),
            ("upper", &self.with_text, before[1], pools[1]),
        ] {
            let rows = rows.as_slice();
            let seen: Vec<&[usize]> = (before..before + n).map(|i| &rows[..=i]).collect();
            write_place(graph, lane, &seen, [WINDOW, pool])?;
        }
        graph.compute()
    }

    /// Makes the next frame out of noise `[latent]`, and lets both lanes hear it.
    ///
    /// # Errors
    /// Those of the device; a pool that is full.
    pub fn frame(
        &mut self,
        noise: &[f32],
        guidance: Guidance,
    ) -> Result<RealtimeFrame, GraphError> {
        self.prepare_times(guidance.steps)?;
        self.with_text.take_from(self.upper.free())?;
        self.without_text.take_from(self.upper.free())?;
        let pool = self
            .upper
            .pool(self.with_text.end().max(self.without_text.end()));
        let times = self.times.as_ref().map(|(_, times)| times);
        let (net, upper) = (&self.net, &self.upper);
        let (hidden, decoder) = (&self.hidden, &self.decoder);
        let key = (guidance.steps, guidance.scale.to_bits(), pool);
        let graph = self.frames.get(key, || {
            let steps = solver::steps(guidance.steps);
            upper.build(|g| {
                let latent = net.config.acoustic.latent;
                let noise = g.input("noise", DType::F32, &[1, 1, latent]);
                let at = upper.place(g, "upper", 2, pool);
                let [with, without] = hidden.each_ref().map(|state| g.stored(state));
                let conditions = with.concat(without, 0); // [2, width]
                let Some(times) = times else {
                    return Ok(());
                };
                let x = net
                    .head
                    .sample(noise, conditions, times, &steps, guidance.scale);
                g.output("latent", x);
                let samples = net
                    .decoder
                    .forward(net.scaling.outward(x), Past::of(decoder));
                g.output("samples", samples);
                let heard = net.connector.forward(x.reshape(&[1, latent]));
                step(g, net, heard, &at, upper.cache(), hidden);
                Ok(())
            })
        })?;
        graph.write("noise", noise)?;
        let lanes = [self.with_text.as_slice(), self.without_text.as_slice()];
        write_place(graph, "upper", &lanes, [2, pool])?;
        graph.compute()?;
        let ending = graph.read::<f32>("ending")?;
        Ok(RealtimeFrame {
            latent: graph.read("latent")?,
            samples: graph.read("samples")?,
            ending: ending.first().copied().unwrap_or(0.0),
        })
    }

    /// The embedded times of a path of `steps` steps.
    fn prepare_times(&mut self, steps: usize) -> Result<(), GraphError> {
        if self.times.as_ref().is_some_and(|(n, _)| *n == steps) {
            return Ok(());
        }
        self.frames.clear();
        self.times = Some((steps, embedded_times(&self.upper, &self.net.head, steps)?));
        Ok(())
    }

    /// The last hidden states, with and without the text.
    ///
    /// # Errors
    /// Those of the device.
    pub fn hidden(&self) -> Result<[Vec<f32>; 2], GraphError> {
        Ok([self.hidden[0].read()?, self.hidden[1].read()?])
    }
}

/// Both lanes hear a frame `[1, width]`.
fn step<'g>(
    g: &'g Scope,
    net: &RealtimeNet,
    heard: Tensor<'g>,
    at: &Place<'g>,
    cache: &KvCache,
    hidden: &[DeviceTensor; 2],
) {
    let x = net
        .typed(heard, Kind::Speech)
        .broadcast(&[2, net.config.upper.width]);
    let [with, without] = net.upper.forward(x, at, cache).split(0);
    g.output("ending", net.ending(with.contiguous()));
    g.store(&hidden[0], with);
    g.store(&hidden[1], without);
}

/// Copies a prefix into rows of an empty pool.
fn take_up(reader: &mut Reader, prefix: &Prefix) -> Result<Rows, GraphError> {
    let mut lane = Rows::default();
    for _ in 0..prefix.steps {
        lane.take_from(reader.free())?;
    }
    // The rows of an empty pool are given in order.
    let first = lane.as_slice().first().copied().unwrap_or(0);
    let cache = reader.cache();
    for (i, [keys, values]) in prefix.rows.iter().enumerate() {
        for (target, rows) in [(&cache.keys[i], keys), (&cache.values[i], values)] {
            let start = first * (rows.len() / prefix.steps.max(1));
            match target.dtype() {
                DType::F32 => target.write_at(start, rows)?,
                _ => {
                    let halves: Vec<f16> = rows.iter().map(|&v| f16::from_f32(v)).collect();
                    target.write_at(start, &halves)?;
                }
            }
        }
    }
    Ok(lane)
}
