//! Where each operator of a graph runs.

use std::ptr::NonNull;

use ggml_sys as sys;

use super::{GraphError, Scope, device::Opened, guard};

/// Which operators the device runs, and which the CPU. Left to itself, the scheduler follows the
/// weights, keeps on the CPU what has none beside it, and knows nothing of [limits](super::limits).
pub(super) struct Placement {
    pub(super) on_device: Vec<NonNull<sys::ggml_tensor>>,
    pub(super) on_cpu: Vec<NonNull<sys::ggml_tensor>>,
    /// ggml's names of the operators that the CPU must run.
    pub(super) cpu_ops: Vec<String>,
}

impl Placement {
    /// Asks the device about each operator.
    ///
    /// # Errors
    /// [`GraphError::MissingOp`] if neither the device nor the CPU has one,
    /// [`GraphError::MissingWrite`].
    pub(super) fn of(opened: &Opened, scope: &Scope) -> Result<Placement, GraphError> {
        let mut placement = Placement {
            on_device: Vec::new(),
            on_cpu: Vec::new(),
            cpu_ops: Vec::new(),
        };
        for node in guard::nodes(scope.graph) {
            if opened.runs(node) {
                // SAFETY: a live tensor.
                if !guard::moves(unsafe { (*node.as_ptr()).op }) {
                    placement.on_device.push(node);
                }
            } else {
                placement.leave(opened, node)?;
            }
        }
        Ok(placement)
    }

    /// Gives an operator to the CPU, where that is possible.
    fn leave(
        &mut self,
        opened: &Opened,
        node: NonNull<sys::ggml_tensor>,
    ) -> Result<(), GraphError> {
        let name = guard::op_name(node).to_owned();
        let target = guard::root(node).as_ptr();
        // SAFETY: live tensors; ggml's names end with a NUL.
        let stored = unsafe {
            (!(*target).buffer.is_null())
                .then(|| std::ffi::CStr::from_ptr((*target).name.as_ptr()).to_string_lossy())
        };
        if let Some(tensor) = stored {
            return Err(GraphError::MissingWrite {
                device: opened.name().to_owned(),
                tensor: tensor.into_owned(),
                op: name,
            });
        }
        // SAFETY: the backend is alive; the question only looks at the node.
        let cpu = opened.main != opened.cpu
            && unsafe {
                let cpu = sys::ggml_backend_get_device(opened.cpu.as_ptr());
                sys::ggml_backend_dev_supports_op(cpu, node.as_ptr())
            };
        if !cpu {
            return Err(GraphError::MissingOp {
                device: opened.name().to_owned(),
                ops: name,
            });
        }
        self.on_cpu.push(node);
        if !self.cpu_ops.contains(&name) {
            self.cpu_ops.push(name);
        }
        Ok(())
    }
}

pub(super) fn warn_once(opened: &Opened, names: &[String]) {
    let mut warned = opened
        .warned
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    for name in names {
        if warned.insert(name.clone()) {
            tracing::warn!(device = opened.name(), op = %name, "the device lacks this operator; it runs on the CPU");
        }
    }
}
