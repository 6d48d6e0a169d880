//! Graphs that are kept for their next use.

use super::{Graph, GraphError};

/// At most so many graphs, each made when its key is first asked for; then the one that was not
/// used for longest goes.
pub struct Kept<K> {
    most: usize,
    /// The latest last.
    graphs: Vec<(K, Graph)>,
}

impl<K: PartialEq> Kept<K> {
    /// Keeps up to `most` graphs, at least one.
    pub fn new(most: usize) -> Kept<K> {
        Kept {
            most: most.max(1),
            graphs: Vec::new(),
        }
    }

    /// The graph of `key`, made by `build` where there is none. It may be built a second time
    /// later on, so what it computes must depend on the key alone.
    ///
    /// # Errors
    /// Those of `build`.
    pub fn get(
        &mut self,
        key: K,
        build: impl FnOnce() -> Result<Graph, GraphError>,
    ) -> Result<&mut Graph, GraphError> {
        let entry = match self.graphs.iter().position(|(known, _)| *known == key) {
            Some(at) => self.graphs.remove(at),
            None => {
                // First, so that its memory is there for the new one.
                if self.graphs.len() == self.most {
                    self.graphs.remove(0);
                }
                (key, build()?)
            }
        };
        self.graphs.push(entry);
        let (_, graph) = self.graphs.last_mut().expect("just pushed");
        Ok(graph)
    }

    /// The graphs, the latest last.
    pub fn iter(&self) -> impl Iterator<Item = &Graph> {
        self.graphs.iter().map(|(_, graph)| graph)
    }

    /// Lets all of them go.
    pub fn clear(&mut self) {
        self.graphs.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{DType, Device};

    #[test]
    fn the_graph_that_was_not_used_for_longest_goes() {
        let device = Device::cpu(1).unwrap();
        let mut kept = Kept::new(2);
        let mut built = Vec::new();
        for n in [1, 2, 1, 3, 1, 2] {
            let graph = kept.get(n, || {
                built.push(n);
                Graph::build(&device, |g| {
                    g.output("y", g.input("x", DType::F32, &[n]) * 2.0);
                    Ok(())
                })
            });
            assert_eq!(graph.unwrap().shape("y").unwrap(), [n]);
        }
        assert_eq!(built, [1, 2, 3, 2]);
        let lengths: Vec<_> = kept.iter().map(|graph| graph.shape("y").unwrap()).collect();
        assert_eq!(lengths, [[1], [2]]);
        let failed = kept.get(4, || Err(GraphError::NoResult));
        assert_eq!(failed.map(drop), Err(GraphError::NoResult));
        kept.clear();
        assert_eq!(kept.iter().count(), 0);
    }
}
