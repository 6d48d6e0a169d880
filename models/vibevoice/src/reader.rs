//! Reading with a language model: a pool of keys and values, and graphs that read many tokens.

use audiocpp::{
    graph::{DType, Device, Graph, GraphError, Kept, Kernel, Scope},
    nn::{CausalLm, KvCache, Place, causal_mask},
};

use crate::rows::{Rows, pool};

/// Most tokens that are read at a time.
const MOST_LANES: usize = 256;
/// Fewest tokens that a graph is made for.
const FEWEST_LANES: usize = 32;
/// Graphs that are kept.
const GRAPHS: usize = 4;

/// The pool of a language model's keys and values on one device, and what reads into it.
pub struct Reader {
    device: Device,
    kernel: Kernel,
    exact: bool,
    cache: KvCache,
    free: Rows,
    graphs: Kept<(usize, usize, bool)>,
}

impl Reader {
    /// For `lm` on the device that holds its weights.
    ///
    /// # Errors
    /// [`GraphError::OutOfMemory`].
    pub fn new(device: &Device, lm: &CausalLm) -> Result<Reader, GraphError> {
        let cache = KvCache::new(device, lm, pool(1))?;
        Ok(Reader {
            device: device.clone(),
            kernel: Kernel::choose(device),
            exact: lm.exact(),
            free: Rows::up_to(cache.rows),
            cache,
            graphs: Kept::new(GRAPHS),
        })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Rows that nobody has.
    pub fn free(&mut self) -> &mut Rows {
        &mut self.free
    }

    /// Gives all rows back, and makes room for `rows` of them. True if the pool was made anew: graphs
    /// over it are of no more use.
    ///
    /// # Errors
    /// [`GraphError::OutOfMemory`].
    pub fn begin(&mut self, lm: &CausalLm, rows: usize) -> Result<bool, GraphError> {
        // One more for padding.
        let rows = pool(rows + 1);
        let grows = rows > self.cache.rows;
        if grows {
            self.graphs.clear();
            self.cache = KvCache::new(&self.device, lm, rows)?;
        }
        self.free = Rows::up_to(self.cache.rows);
        Ok(grows)
    }

    /// The part of the pool that a graph looks at which sees the rows below `end`.
    pub fn pool(&self, end: usize) -> usize {
        pool(end).min(self.cache.rows)
    }

    /// A graph in full precision where the weights have it.
    ///
    /// # Errors
    /// As [`Graph::build`].
    pub fn build<F>(&self, describe: F) -> Result<Graph, GraphError>
    where
        F: for<'g> Fn(&'g Scope) -> Result<(), GraphError>,
    {
        build(&self.device, self.exact, describe)
    }

    /// The places of `lanes` tokens as inputs of a graph whose names begin with `name`, over the
    /// first `pool` rows.
    pub fn place<'g>(&self, g: &'g Scope, name: &str, lanes: usize, pool: usize) -> Place<'g> {
        place(g, name, [lanes, pool], self.kernel)
    }

    /// The keys and values.
    pub fn cache(&self) -> &KvCache {
        &self.cache
    }

    /// Reads tokens into `lane`, behind what is there. `spoken` `[tokens]` are embeddings `[width]`
    /// that stand for tokens, `None` where the token stands for itself; it may be shorter. `stop` is
    /// asked between pieces.
    ///
    /// # Errors
    /// Those of the device and of `stop`; a pool that is full.
    pub fn read<E: From<GraphError>>(
        &mut self,
        lm: &CausalLm,
        lane: &mut Rows,
        tokens: &[u32],
        spoken: &[Option<&[f32]>],
        mut stop: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        for start in (0..tokens.len()).step_by(MOST_LANES) {
            stop()?;
            let end = (start + MOST_LANES).min(tokens.len());
            let spoken = &spoken[start.min(spoken.len())..end.min(spoken.len())];
            self.read_piece(lm, lane, &tokens[start..end], spoken)?;
        }
        Ok(())
    }

    fn read_piece(
        &mut self,
        lm: &CausalLm,
        lane: &mut Rows,
        tokens: &[u32],
        spoken: &[Option<&[f32]>],
    ) -> Result<(), GraphError> {
        let (n, width, before) = (tokens.len(), lm.size.width, lane.len());
        for _ in 0..n {
            lane.take_from(&mut self.free)?;
        }
        let rows = lane.as_slice();
        let mixed = spoken.iter().any(Option::is_some);
        let lanes = n.next_power_of_two().max(FEWEST_LANES);
        let pool = self.pool(lane.end());
        let (cache, kernel) = (&self.cache, self.kernel);
        let (device, exact) = (&self.device, self.exact);
        let graph = self.graphs.get((lanes, pool, mixed), || {
            build(device, exact, |g| {
                let mut x = lm.embed(g.input("tokens", DType::I32, &[lanes]));
                if mixed {
                    let keep = g.input("keep", DType::F32, &[lanes, 1]);
                    x = x * keep + g.input("spoken", DType::F32, &[lanes, width]);
                }
                // Only the keys and values are wanted, which the last block writes before its end.
                lm.forward(x, &place(g, "lane", [lanes, pool], kernel), cache);
                Ok(())
            })
        })?;
        graph.write("tokens", &padded(tokens.iter().map(|&t| t as i32), lanes))?;
        if mixed {
            let (mut keep, mut all) = (vec![1.0f32; lanes], vec![0.0f32; lanes * width]);
            for (i, embedding) in spoken.iter().enumerate() {
                if let Some(embedding) = embedding {
                    keep[i] = 0.0;
                    all[i * width..(i + 1) * width].copy_from_slice(embedding);
                }
            }
            graph.write("keep", &keep)?;
            graph.write("spoken", &all)?;
        }
        let seen: Vec<&[usize]> = (before..before + n).map(|i| &rows[..=i]).collect();
        write_place(graph, "lane", &seen, [lanes, pool])?;
        graph.compute()
    }
}

/// Exact weights ask for exact products.
pub(crate) fn build<F>(device: &Device, exact: bool, describe: F) -> Result<Graph, GraphError>
where
    F: for<'g> Fn(&'g Scope) -> Result<(), GraphError>,
{
    match exact {
        true => Graph::build_exact(device, describe),
        false => Graph::build(device, describe),
    }
}

fn place<'g>(g: &'g Scope, name: &str, [lanes, pool]: [usize; 2], kernel: Kernel) -> Place<'g> {
    Place {
        positions: g.input(&format!("{name}.positions"), DType::I32, &[lanes]),
        rows: g.input(&format!("{name}.rows"), DType::I32, &[lanes]),
        mask: g.input(&format!("{name}.mask"), DType::F16, &[lanes, pool]),
        kernel,
    }
}

/// Writes the places of tokens that each see the rows `seen`, their own the last of them.
///
/// # Errors
/// A graph without the inputs of [`Reader::place`] of that name and size.
pub fn write_place(
    graph: &mut Graph,
    name: &str,
    seen: &[&[usize]],
    [lanes, pool]: [usize; 2],
) -> Result<(), GraphError> {
    let positions = seen.iter().map(|rows| rows.len() as i32 - 1);
    graph.write(&format!("{name}.positions"), &padded(positions, lanes))?;
    let rows = seen
        .iter()
        .map(|rows| rows.last().map_or(0, |&row| row as i32));
    graph.write(&format!("{name}.rows"), &padded(rows, lanes))?;
    graph.write(&format!("{name}.mask"), &causal_mask(seen, lanes, pool))
}

fn padded(values: impl Iterator<Item = i32>, lanes: usize) -> Vec<i32> {
    let mut values: Vec<i32> = values.collect();
    values.resize(lanes, 0);
    values
}
