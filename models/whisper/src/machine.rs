//! The network on a device: graphs for the sizes in use, caches, one call for each of encoding,
//! scoring and alignment.

use std::sync::Arc;

use audiocpp::graph::{
    BufferBuilder, DType, Device, DeviceRequest, DeviceTensor, Graph, GraphError, Kept, Kernel,
    Scope, Tensor,
};
use half::f16;

use crate::net::{CrossCache, DecoderInput, Frames, Net, SelfCache, cache_type};

/// Row of the pool that padding is written to; real tokens use the rows behind it.
const SCRATCH_ROW: usize = 0;
/// First row for real tokens.
pub const FIRST_ROW: usize = 1;
/// Graphs of one window size that are kept, of 1 to 4 MiB each for the base model.
const MAX_STEP_GRAPHS: usize = 16;
/// Lanes of the graphs for the steps of a search; more are a text.
const STEP_LANES: [usize; 5] = [1, 2, 3, 5, 8];
/// Lanes of one decoder call: the weights of their attention to the audio are most of a graph's
/// memory (6 MiB for the base model).
const MAX_LANES: usize = 64;

/// One token to be scored.
#[derive(Debug, Clone, Copy)]
pub struct Lane<'a> {
    /// The token.
    pub token: u32,
    /// Its place in its text.
    pub position: usize,
    /// Row of the pool for its key and value.
    pub row: usize,
    /// Rows of the tokens before it; it also sees itself.
    pub past: &'a [usize],
}

impl<'a> Lane<'a> {
    /// The lanes of a text from its start, token `i` in row `rows[i]`.
    pub fn text(tokens: &[u32], rows: &'a [usize]) -> Vec<Lane<'a>> {
        let lanes = tokens.iter().zip(rows).enumerate();
        lanes
            .map(|(i, (&token, &row))| Lane {
                token,
                position: i,
                row,
                past: &rows[..i],
            })
            .collect()
    }
}

/// The rows that a text of `n` tokens takes in an unused pool.
pub fn first_rows(n: usize) -> Vec<usize> {
    (FIRST_ROW..FIRST_ROW + n).collect()
}

/// Sizes that a decoder graph is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StepShape {
    /// Tokens, padded.
    lanes: usize,
    /// Rows of the pool that the mask covers.
    pool: usize,
    /// Rows of scores.
    wanted: usize,
}

impl StepShape {
    /// Few lanes (the steps of a search) get a graph of about their number and of about the rows in
    /// use. Texts are rounded up to powers of two over all `rows` of the pool; two scores are what a
    /// prompt is asked for. So a long recording needs few graphs, and makes them once.
    fn of(lanes: &[Lane], wanted: usize, rows: usize) -> StepShape {
        let used = lanes.iter().flat_map(|l| l.past.iter().chain([&l.row]));
        let used = used.max().unwrap_or(&0) + 1;
        let n = lanes.len();
        match STEP_LANES.into_iter().find(|&size| n <= size) {
            Some(size) => StepShape {
                lanes: size,
                pool: used
                    .next_multiple_of(if used <= 256 { 64 } else { 256 })
                    .min(rows),
                wanted: if wanted == n { size } else { wanted.max(1) },
            },
            None => StepShape {
                lanes: n.next_power_of_two(),
                pool: rows,
                wanted: wanted.max(2),
            },
        }
    }
}

/// Graphs and audio cache for one number of encoder frames.
struct Window {
    frames: Frames,
    /// How often each frame counts, as a logarithm; empty if each counts once.
    weights: Vec<f32>,
    kernel: Kernel,
    encoder: Graph,
    cross: CrossCache,
}

/// The network with its state on one device; used by one request at a time.
pub struct Machine {
    device: Device,
    net: Arc<Net>,
    kernel: Kernel,
    /// Products in full f32, where the weights are f32.
    exact: bool,
    own: SelfCache,
    rows: usize,
    /// The size in use. Another size takes its place: two would double the memory of a long
    /// recording at its end.
    window: Option<Window>,
    /// The decoder's graphs for the window in use.
    steps: Kept<StepShape>,
}

impl Machine {
    /// With room for `rows` tokens in the pool of keys and values.
    pub fn new(device: &Device, net: Arc<Net>, rows: usize) -> Result<Machine, GraphError> {
        let rows = rows + FIRST_ROW;
        let own = self_cache(device, &net, rows)?;
        let first = net.encoder.blocks.first();
        let exact = first.is_some_and(|block| block.qkv.weight.dtype() == DType::F32);
        Ok(Machine {
            device: device.clone(),
            net,
            kernel: Kernel::choose(device),
            exact,
            own,
            rows,
            window: None,
            steps: Kept::new(MAX_STEP_GRAPHS),
        })
    }

    /// The network.
    pub fn net(&self) -> &Net {
        &self.net
    }

    /// Begins a request: when the last one on the device ends, the graphs' memory may go back.
    pub fn request(&self) -> DeviceRequest {
        self.device.request()
    }

    /// Makes the pool hold at least `rows` tokens.
    pub fn reserve(&mut self, rows: usize) -> Result<(), GraphError> {
        let rows = rows + FIRST_ROW;
        if rows > self.rows {
            self.own = self_cache(&self.device, &self.net, rows)?;
            self.rows = rows;
            self.steps.clear();
        }
        Ok(())
    }

    /// How a window is encoded whose audio, with a little silence behind it, takes `dense` frames.
    pub fn layout(&self, dense: usize) -> Frames {
        Frames::new(
            dense.min(self.net.config.audio_ctx),
            self.net.config.audio_ctx,
        )
    }

    /// Encodes log-mel `[frames.mels(), mels]` (row-major) and keeps what the decoder needs of it.
    pub fn encode(&mut self, mel: &[f32], frames: &Frames) -> Result<(), GraphError> {
        self.select(frames)?;
        let window = self.window.as_mut().ok_or_else(not_encoded)?;
        run_encoder(&mut window.encoder, mel, &window.weights)
    }

    /// The encoder's output `[frames.computed(), d]` for log-mel `[frames.mels(), mels]`: what
    /// [`encode`](Self::encode) gives the decoder, for looking at.
    pub fn features(&self, mel: &[f32], frames: &Frames) -> Result<Vec<f32>, GraphError> {
        let finish = |g: &Scope, features: Tensor| g.output("features", features);
        let mut graph = encoder_graph(
            &self.device,
            self.exact,
            &self.net,
            frames,
            self.kernel,
            finish,
        )?;
        run_encoder(&mut graph, mel, &shortened_weights(frames))?;
        graph.read("features")
    }

    /// ggml's names of the operators behind the current window: the encoder's, then those of every
    /// decoder graph in use.
    pub fn operators(&self) -> Vec<&'static str> {
        let encoder = self.window.iter().map(|window| &window.encoder);
        let graphs = encoder.chain(self.steps.iter());
        graphs.flat_map(Graph::operators).collect()
    }

    /// Encoder frames that were computed for the current window.
    pub fn frames(&self) -> usize {
        self.window.as_ref().map_or(0, |w| w.frames.computed())
    }

    fn select(&mut self, frames: &Frames) -> Result<(), GraphError> {
        if self.window.as_ref().is_some_and(|w| w.frames == *frames) {
            return Ok(());
        }
        self.steps.clear();
        self.window = None;
        let window = Window::new(
            &self.device,
            &self.net,
            frames.clone(),
            self.kernel,
            self.exact,
        )?;
        self.window = Some(window);
        Ok(())
    }

    /// Runs the decoder on `lanes` and returns the scores after those at the ascending positions
    /// `wanted`, `[wanted, vocabulary]`. A long text is read in pieces.
    pub fn score(&mut self, lanes: &[Lane], wanted: &[usize]) -> Result<Vec<f32>, GraphError> {
        if lanes.len() <= MAX_LANES {
            return self.score_piece(lanes, wanted);
        }
        let mut scores = Vec::with_capacity(wanted.len() * self.net.config.vocab);
        for (i, piece) in lanes.chunks(MAX_LANES).enumerate() {
            let first = i * MAX_LANES;
            let here = first..first + piece.len();
            let of_piece: Vec<usize> = wanted
                .iter()
                .filter(|at| here.contains(at))
                .map(|at| at - first)
                .collect();
            scores.extend(self.score_piece(piece, &of_piece)?);
        }
        Ok(scores)
    }

    /// The scores of at most `MAX_LANES` lanes.
    fn score_piece(&mut self, lanes: &[Lane], wanted: &[usize]) -> Result<Vec<f32>, GraphError> {
        let shape = StepShape::of(lanes, wanted.len(), self.rows);
        let window = self.window.as_ref().ok_or_else(not_encoded)?;
        let graph = self.steps.get(shape, || {
            step_graph(
                &self.device,
                self.exact,
                &self.net,
                &self.own,
                window,
                shape,
            )
        })?;
        write_lanes(graph, lanes, shape.lanes, shape.pool)?;
        write_weights(graph, &window.weights, shape.lanes)?;
        let mut rows: Vec<i32> = wanted.iter().map(|&i| i as i32).collect();
        rows.resize(shape.wanted, 0);
        graph.write("wanted", &rows)?;
        graph.compute()?;
        let mut scores = graph.read("logits")?;
        scores.truncate(wanted.len() * self.net.config.vocab);
        Ok(scores)
    }

    /// Attention of the alignment heads to the audio while the decoder reads `tokens` from the
    /// start of its text: `[heads, tokens, frames]`. Uses the pool's first rows.
    pub fn attention(&mut self, tokens: &[u32]) -> Result<Vec<f32>, GraphError> {
        self.reserve(tokens.len())?;
        let rows = first_rows(tokens.len());
        let lanes = Lane::text(tokens, &rows);
        let pool = FIRST_ROW + tokens.len();
        let window = self.window.as_ref().ok_or_else(not_encoded)?;
        let mut graph = alignment_graph(
            &self.device,
            self.exact,
            &self.net,
            &self.own,
            window,
            tokens.len(),
            pool,
        )?;
        write_lanes(&mut graph, &lanes, tokens.len(), pool)?;
        write_weights(&mut graph, &window.weights, tokens.len())?;
        graph.compute()?;
        graph.read("attention")
    }
}

fn not_encoded() -> GraphError {
    GraphError::Tensor {
        name: "features".into(),
        problem: "the decoder was asked before any audio was encoded".into(),
    }
}

impl Window {
    fn new(
        device: &Device,
        net: &Net,
        frames: Frames,
        kernel: Kernel,
        exact: bool,
    ) -> Result<Window, GraphError> {
        let config = &net.config;
        let dtype = cache_type(
            net.decoder
                .blocks
                .first()
                .map_or(DType::F32, |b| b.cross_kv.weight.dtype()),
        );
        let mut buffer = BufferBuilder::new(device, 2 * config.text_layers);
        let mut declare =
            |what: &str, shape: [usize; 2]| -> Result<Vec<DeviceTensor>, GraphError> {
                (0..config.text_layers)
                    .map(|i| buffer.declare(&format!("cross_{what}.{i}"), dtype, &shape))
                    .collect()
            };
        let rows = [frames.computed(), config.text_width];
        let few = kernel.for_few_queries(device, dtype);
        let columns = match few {
            Kernel::Flash => rows,
            Kernel::Plain => [config.text_width, frames.computed()],
        };
        let cross = CrossCache {
            keys: declare("keys", rows)?,
            values: declare("values", columns)?,
            kernel: few,
        };
        buffer.allocate()?;
        let encoder = encoder_graph(device, exact, net, &frames, kernel, |g, features| {
            net.decoder.store_cross(g, features, &cross);
        })?;
        let weights = shortened_weights(&frames);
        Ok(Window {
            frames,
            weights,
            kernel,
            encoder,
            cross,
        })
    }
}

/// The logarithm of how often each frame counts; empty if each counts once.
fn shortened_weights(frames: &Frames) -> Vec<f32> {
    match frames.tail.is_empty() {
        true => Vec::new(),
        false => frames.weights(),
    }
}

/// The encoder over `frames`; `finish` says what becomes of the features `[1, frames, d]`.
fn encoder_graph(
    device: &Device,
    exact: bool,
    net: &Net,
    frames: &Frames,
    kernel: Kernel,
    finish: impl for<'g> Fn(&'g Scope, Tensor<'g>),
) -> Result<Graph, GraphError> {
    let config = &net.config;
    build(device, exact, |g| {
        let mel = g.input("mel", DType::F32, &[1, frames.mels(), config.mels]);
        let n = frames.computed();
        let mask = (!frames.tail.is_empty()).then(|| g.input("mask", DType::F16, &[n, n]));
        finish(g, net.encoder.forward(mel, frames, mask, config, kernel));
        Ok(())
    })
}

fn run_encoder(graph: &mut Graph, mel: &[f32], weights: &[f32]) -> Result<(), GraphError> {
    graph.write("mel", mel)?;
    if !weights.is_empty() {
        let row: Vec<f16> = weights.iter().map(|w| f16::from_f32(*w)).collect();
        graph.write("mask", &row.repeat(row.len()))?;
    }
    graph.compute()
}

fn self_cache(device: &Device, net: &Net, rows: usize) -> Result<SelfCache, GraphError> {
    let config = &net.config;
    let dtype = cache_type(
        net.decoder
            .blocks
            .first()
            .map_or(DType::F32, |b| b.self_qkv.weight.dtype()),
    );
    let mut buffer = BufferBuilder::new(device, 2 * config.text_layers);
    let mut declare = |what: &str| -> Result<Vec<DeviceTensor>, GraphError> {
        (0..config.text_layers)
            .map(|i| {
                buffer.declare(
                    &format!("self_{what}.{i}"),
                    dtype,
                    &[rows, config.text_width],
                )
            })
            .collect()
    };
    let cache = SelfCache {
        keys: declare("keys")?,
        values: declare("values")?,
    };
    buffer.allocate()?;
    Ok(cache)
}

fn decoder_input<'g>(g: &'g Scope, window: &Window, lanes: usize, pool: usize) -> DecoderInput<'g> {
    let kernel = window.kernel;
    DecoderInput {
        tokens: g.input("tokens", DType::I32, &[lanes]),
        positions: g.input("positions", DType::I32, &[lanes]),
        rows: g.input("rows", DType::I32, &[lanes]),
        mask: g.input("mask", DType::F16, &[lanes, pool]),
        kernel,
        frame_weights: (!window.weights.is_empty())
            .then(|| g.input("frame_weights", DType::F32, &[lanes, window.weights.len()])),
    }
}

fn step_graph(
    device: &Device,
    exact: bool,
    net: &Net,
    own: &SelfCache,
    window: &Window,
    shape: StepShape,
) -> Result<Graph, GraphError> {
    build(device, exact, |g| {
        let input = decoder_input(g, window, shape.lanes, shape.pool);
        let wanted = g.input("wanted", DType::I32, &[shape.wanted]);
        let hidden = net
            .decoder
            .hidden(&input, own, &window.cross, &net.config, |_, _, _| ());
        g.output("logits", net.decoder.logits(wanted.look_up(hidden)));
        Ok(())
    })
}

fn alignment_graph(
    device: &Device,
    exact: bool,
    net: &Net,
    own: &SelfCache,
    window: &Window,
    lanes: usize,
    pool: usize,
) -> Result<Graph, GraphError> {
    let heads = &net.config.alignment_heads;
    build(device, exact, |g| {
        let input = decoder_input(g, window, lanes, pool);
        let mut kept: Option<Tensor> = None;
        let hidden = net.decoder.hidden(
            &input,
            own,
            &window.cross,
            &net.config,
            |block, query, audio| {
                for &(_, head) in heads.iter().filter(|h| h.0 == block) {
                    let one = audio.head_weights(query, head);
                    kept = Some(match kept.take() {
                        Some(all) => all.concat(one, 0),
                        None => one,
                    });
                }
            },
        );
        // Without alignment heads there is nothing to follow; the hidden state stands in so that
        // the graph has an output.
        g.output("attention", kept.unwrap_or(hidden));
        Ok(())
    })
}

/// Exact weights ask for exact products.
fn build<F>(device: &Device, exact: bool, describe: F) -> Result<Graph, GraphError>
where
    F: for<'g> Fn(&'g Scope) -> Result<(), GraphError>,
{
    if exact {
        Graph::build_exact(device, describe)
    } else {
        Graph::build(device, describe)
    }
}

fn write_weights(graph: &mut Graph, weights: &[f32], lanes: usize) -> Result<(), GraphError> {
    match weights.is_empty() {
        true => Ok(()),
        false => graph.write("frame_weights", &weights.repeat(lanes)),
    }
}

fn write_lanes(
    graph: &mut Graph,
    lanes: &[Lane],
    padded: usize,
    pool: usize,
) -> Result<(), GraphError> {
    let numbers = |of: &dyn Fn(&Lane) -> usize, padding: usize| -> Vec<i32> {
        let mut all: Vec<i32> = lanes.iter().map(|lane| of(lane) as i32).collect();
        all.resize(padded, padding as i32);
        all
    };
    graph.write("tokens", &numbers(&|l| l.token as usize, 0))?;
    graph.write("positions", &numbers(&|l| l.position, 0))?;
    graph.write("rows", &numbers(&|l| l.row, SCRATCH_ROW))?;
    let mut mask = vec![f16::NEG_INFINITY; padded * pool];
    for (i, seen) in mask.chunks_exact_mut(pool).enumerate() {
        match lanes.get(i) {
            Some(lane) => {
                for &row in lane.past.iter().chain([&lane.row]) {
                    seen[row] = f16::ZERO;
                }
            }
            // A softmax over nothing is not a number.
            None => seen[SCRATCH_ROW] = f16::ZERO,
        }
    }
    graph.write("mask", &mask)
}
