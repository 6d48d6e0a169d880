//! The network at work: many frames at a time through the graph, one by one through the cell.

use std::sync::Arc;

use audiocpp::{
    engine::Result,
    graph::{DType, Device, Graph, GraphError, Kept},
};

use crate::{
    cell::Memory,
    net::{HIDDEN, Net},
};

/// Numbers of frames that there are graphs for: a live stream brings one, a file many.
const BATCHES: [usize; 3] = [1, 16, 128];

/// What is kept of the sound so far; each stream has its own.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// The last samples.
    context: Vec<f32>,
    memory: Memory,
}

/// A network with graphs of its own.
pub struct Machine {
    net: Arc<Net>,
    device: Device,
    graphs: Kept<usize>,
    rows: Vec<f32>,
    gates: Vec<f32>,
}

impl Machine {
    /// For `net` on the device that holds its weights.
    pub fn new(device: &Device, net: Arc<Net>) -> Machine {
        Machine {
            net,
            device: device.clone(),
            graphs: Kept::new(BATCHES.len()),
            rows: Vec::new(),
            gates: Vec::new(),
        }
    }

    /// The network.
    pub fn net(&self) -> &Net {
        &self.net
    }

    /// The state before the first sample.
    pub fn start(&self) -> State {
        State {
            context: vec![0.0; self.net.size.context()],
            memory: Memory::empty(),
        }
    }

    /// Appends the probability of speech of each frame of `samples` to `out`; samples that fill no
    /// frame are left out. What is no number counts as silence.
    ///
    /// # Errors
    /// A device without room, or that fails.
    pub fn probabilities(
        &mut self,
        state: &mut State,
        samples: &[f32],
        out: &mut Vec<f32>,
    ) -> Result<()> {
        let net = self.net.clone();
        let frame = net.size.frame();
        let mut samples = &samples[..samples.len() / frame * frame];
        while !samples.is_empty() {
            let most = BATCHES[BATCHES.len() - 1];
            let (now, later) = samples.split_at((most * frame).min(samples.len()));
            self.gates(state, now)?;
            for gates in self.gates.chunks_exact_mut(4 * HIDDEN) {
                out.push(net.cell.step(gates, &mut state.memory));
            }
            samples = later;
        }
        Ok(())
    }

    /// The encoder's share of the gates for the frames of `samples`, `[frames, 4 hidden]`.
    fn gates(&mut self, state: &mut State, samples: &[f32]) -> Result<(), GraphError> {
        let size = self.net.size;
        let frames = samples.len() / size.frame();
        let fits = |batch: &&usize| **batch >= frames;
        let batch = *BATCHES.iter().find(fits).unwrap_or(&frames);
        self.rows.clear();
        for frame in samples.chunks_exact(size.frame()) {
            self.rows.extend_from_slice(&state.context);
            let heard = |x: &f32| if x.is_finite() { *x } else { 0.0 };
            self.rows.extend(frame.iter().map(heard));
            let end = self.rows.len();
            state
                .context
                .copy_from_slice(&self.rows[end - size.context()..]);
            // The last sample is the mirror.
            let mirrored = (0..size.context()).map(|i| end - 2 - i);
            for at in mirrored {
                self.rows.push(self.rows[at]);
            }
        }
        self.rows.resize(batch * size.row(), 0.0);
        self.gates.resize(batch * 4 * HIDDEN, 0.0);
        let (net, device) = (&*self.net, &self.device);
        let graph = self.graphs.get(batch, || build(net, device, batch))?;
        graph.write("samples", &self.rows)?;
        graph.compute()?;
        graph.read_into("gates", &mut self.gates)?;
        self.gates.truncate(frames * 4 * HIDDEN);
        Ok(())
    }
}

fn build(net: &Net, device: &Device, frames: usize) -> Result<Graph, GraphError> {
    Graph::build_exact(device, |g| {
        let samples = g.input("samples", DType::F32, &[frames, net.size.row()]);
        g.output("gates", net.forward(samples));
        Ok(())
    })
}
