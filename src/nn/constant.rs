//! Values that belong to the description of a graph: tables, masks, filters.

use crate::graph::{BufferBuilder, Element, GraphError, Scope, Tensor};

/// `values` as a tensor of `shape`, stored on the device of `scope` while its graph lives. A device
/// without room fails the graph.
pub fn constant<'g, T: Element>(scope: &'g Scope, shape: &[usize], values: &[T]) -> Tensor<'g> {
    let store = || {
        let mut buffer = BufferBuilder::weights(scope.device(), 1);
        let stored = buffer.declare("constant", T::DTYPE, shape)?;
        buffer.allocate()?;
        stored.write(values)?;
        Ok::<_, GraphError>(stored)
    };
    match store() {
        Ok(stored) => scope.stored(&stored),
        Err(error) => scope.fail(error),
    }
}
