//! What the graph layer checks about tensors as a whole: whose they are, which numbers may index
//! with them, and in which order stored tensors are read and overwritten.

use std::ptr::NonNull;

use ggml_sys as sys;

use super::{Device, GraphError, Scope, Tensor};

type Raw = NonNull<sys::ggml_tensor>;

/// Bytes beyond which a graph or a buffer is refused before ggml plans it: more than any machine
/// has, and far below where ggml's sums would wrap.
pub(super) const MAX_BYTES: usize = 1 << 60;

impl Scope {
    /// Whether a tensor was made in this scope or brought in by [`Scope::stored`].
    pub(super) fn owns(&self, tensor: Raw) -> bool {
        // SAFETY: the context is alive.
        let (start, len) = unsafe {
            (
                sys::ggml_get_mem_buffer(self.context.as_ptr()) as usize,
                sys::ggml_get_mem_size(self.context.as_ptr()),
            )
        };
        let at = tensor.as_ptr() as usize;
        (start..start + len).contains(&at) || self.leaves.borrow().contains(&tensor)
    }

    /// Looks at an operator that was just made: its sources must be of this graph, and the graph
    /// must stay within what any machine could hold.
    pub(super) fn inspect(&self, made: Raw) -> Result<(), GraphError> {
        if sources(made).any(|source| !self.owns(source)) {
            return Err(GraphError::Shape {
                op: op_name(made),
                problem: "takes a tensor of another graph".into(),
            });
        }
        // SAFETY: a live tensor.
        let bytes = unsafe {
            match (*made.as_ptr()).view_src.is_null() {
                true => sys::ggml_nbytes(made.as_ptr()),
                false => 0,
            }
        };
        let total = self.bytes.get().saturating_add(bytes);
        self.bytes.set(total);
        if total <= MAX_BYTES {
            return Ok(());
        }
        Err(GraphError::OutOfMemory {
            device: self.device.name().to_owned(),
            what: "a graph's intermediate results".into(),
            mib: total.div_ceil(1 << 20),
        })
    }

    /// Declares that `indices` will select one of `count` rows. Backends abort, or read beyond the
    /// table, at a number outside; so each index must come from an input, whose values are checked
    /// when they are written, or be known to be small enough.
    pub(super) fn index(&self, op: &'static str, indices: Tensor<'_>, count: usize) -> bool {
        let mut open = vec![indices.ptr];
        while let Some(tensor) = open.pop() {
            if let Some(port) = self.inputs.borrow().iter().find(|p| p.tensor == tensor) {
                port.limit.set(port.limit.get().min(count));
                continue;
            }
            let known = self.ranges.borrow().get(&tensor).copied();
            if known.is_some_and(|range| range <= count) {
                continue;
            }
            // SAFETY: a live tensor.
            let code = unsafe { (*tensor.as_ptr()).op };
            let moves = moves(code)
                || matches!(
                    code,
                    sys::GGML_OP_CONT | sys::GGML_OP_CONCAT | sys::GGML_OP_REPEAT
                );
            if !moves || known.is_some() {
                let found = match known {
                    Some(range) => format!("indices below {range} for {count} rows"),
                    None => "indices must be made of inputs or of argmax".into(),
                };
                self.mistake(op, found);
                return false;
            }
            open.extend(sources(tensor));
        }
        true
    }

    /// Puts everything that was made so far and reads `target` ahead of what is added next, so
    /// that it sees the contents from before the write.
    pub(super) fn before_write(&self, target: Raw) {
        // SAFETY: the context is alive; its tensors are complete.
        unsafe {
            let context = self.context.as_ptr();
            let mut next = sys::ggml_get_first_tensor(context);
            while let Some(tensor) = NonNull::new(next) {
                next = sys::ggml_get_next_tensor(context, next);
                if sources(tensor).any(|source| root(source) == target) {
                    sys::ggml_build_forward_expand(self.graph.as_ptr(), tensor.as_ptr());
                }
            }
        }
    }

    /// Whether the graph's device runs the operator behind a tensor (else the CPU does).
    pub(super) fn runs(&self, tensor: Tensor<'_>) -> bool {
        let root = root(tensor.ptr);
        self.device.is_cpu() || [tensor.ptr, root].iter().all(|t| self.device.0.runs(*t))
    }

    /// The device the graph will run on.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

/// Whether an operator only looks at the same memory in another way.
pub(super) fn moves(op: sys::ggml_op) -> bool {
    matches!(
        op,
        sys::GGML_OP_RESHAPE | sys::GGML_OP_VIEW | sys::GGML_OP_PERMUTE | sys::GGML_OP_TRANSPOSE
    )
}

/// The tensor whose memory this one lies in.
pub(super) fn root(tensor: Raw) -> Raw {
    // SAFETY: a live tensor, whose view source lives as long.
    NonNull::new(unsafe { (*tensor.as_ptr()).view_src }).unwrap_or(tensor)
}

/// What an operator takes.
pub(super) fn sources(tensor: Raw) -> impl Iterator<Item = Raw> {
    // SAFETY: a live tensor.
    let all = unsafe { (*tensor.as_ptr()).src };
    all.into_iter().filter_map(NonNull::new)
}

/// The operators of a graph, in the order in which they run.
pub(super) fn nodes(graph: NonNull<sys::ggml_cgraph>) -> impl Iterator<Item = Raw> {
    // SAFETY: the graph is alive.
    let count = unsafe { sys::ggml_graph_n_nodes(graph.as_ptr()) };
    // SAFETY: as above; the indices are below the count.
    let at = move |i| NonNull::new(unsafe { sys::ggml_graph_node(graph.as_ptr(), i) });
    (0..count).filter_map(at)
}

/// ggml's name of the operator behind a tensor.
pub(super) fn op_name(tensor: Raw) -> &'static str {
    // SAFETY: a live tensor; ggml returns a static string.
    let name = unsafe { std::ffi::CStr::from_ptr(sys::ggml_op_desc(tensor.as_ptr())) };
    name.to_str().unwrap_or("?")
}
