//! A finished graph: allocated once, run many times.

use std::{ptr::NonNull, sync::Arc};

use ggml_sys as sys;

use super::{
    DType, Device, Element, GraphError, Scope, Tensor,
    device::Opened,
    guard,
    live::Layout,
    placement::{Placement, warn_once},
    scope::Port,
};

/// Descriptions that a first attempt has room for; more until the graph fits.
const FIRST_CAPACITY: usize = 1024;
const MAX_CAPACITY: usize = 1 << 18;

/// A graph that is allocated on its device.
pub struct Graph {
    /// Its number at the device, which holds its memory.
    id: u64,
    scope: Scope,
    device: Arc<Opened>,
    /// For each input, whether it was written since the last run.
    written: Vec<bool>,
    /// Whether the outputs hold a result.
    ran: bool,
    on_cpu: Vec<String>,
}

// SAFETY: the tensors have no thread affinity, and every use of them takes `&mut self` or the
// device's lock.
unsafe impl Send for Graph {}

impl Graph {
    /// Describes a graph with `describe`, plans it and allocates its memory.
    ///
    /// `describe` may run more than once (with more room each time), so it must not have effects
    /// of its own. Products are computed in the device's fast mode; see [`Graph::build_exact`].
    ///
    /// # Errors
    /// The first mistake of the description; [`GraphError::NoResult`] if it computes nothing;
    /// [`GraphError::MissingOp`] on a strict device; [`GraphError::MissingWrite`];
    /// [`GraphError::OutOfMemory`].
    pub fn build<F>(device: &Device, describe: F) -> Result<Graph, GraphError>
    where
        F: for<'g> Fn(&'g Scope) -> Result<(), GraphError>,
    {
        Graph::build_with(device, false, describe)
    }

    /// As [`Graph::build`], with products accumulated in f32 where the backend has a choice.
    ///
    /// # Errors
    /// As [`Graph::build`].
    pub fn build_exact<F>(device: &Device, describe: F) -> Result<Graph, GraphError>
    where
        F: for<'g> Fn(&'g Scope) -> Result<(), GraphError>,
    {
        Graph::build_with(device, true, describe)
    }

    fn build_with<F>(device: &Device, exact: bool, describe: F) -> Result<Graph, GraphError>
    where
        F: for<'g> Fn(&'g Scope) -> Result<(), GraphError>,
    {
        let exact = exact || device.0.sums_in_half;
        let mut capacity = FIRST_CAPACITY;
        loop {
            let scope = Scope::new(device, capacity, exact);
            let described = describe(&scope);
            if scope.overflow.get() {
                capacity *= 4;
                if capacity > MAX_CAPACITY {
                    return Err(GraphError::TooManyNodes(MAX_CAPACITY));
                }
                continue;
            }
            // A sticky mistake came first, whatever `describe` made of its consequences.
            if let Some(mistake) = scope.take_error() {
                return Err(mistake);
            }
            described?;
            return Graph::allocate(device, scope, capacity);
        }
    }

    fn allocate(device: &Device, scope: Scope, capacity: usize) -> Result<Graph, GraphError> {
        let opened = device.0.clone();
        // SAFETY: the graph is complete and alive.
        if unsafe { sys::ggml_graph_n_nodes(scope.graph.as_ptr()) } == 0 {
            return Err(GraphError::NoResult);
        }
        let placement = Placement::of(&opened, &scope)?;
        let on_cpu = placement.cpu_ops.clone();
        if !on_cpu.is_empty() {
            if opened.strict {
                return Err(GraphError::MissingOp {
                    device: opened.name().to_owned(),
                    ops: on_cpu.join(", "),
                });
            }
            warn_once(&opened, &on_cpu);
        }
        // SAFETY: live tensors.
        let bytes = |p: &Port| (p.tensor, unsafe { sys::ggml_nbytes(p.tensor.as_ptr()) });
        let ports = [&scope.inputs, &scope.outputs].map(|p| p.borrow().iter().map(bytes).collect());
        let layout = Layout::new(scope.context, scope.graph, capacity, placement, ports);
        let id = opened.lock().admit(&opened, layout)?;
        let written = vec![false; scope.inputs.borrow().len()];
        Ok(Graph {
            id,
            scope,
            device: opened,
            written,
            ran: false,
            on_cpu,
        })
    }

    /// Whether there is an input of this name.
    pub fn has_input(&self, name: &str) -> bool {
        self.scope
            .inputs
            .borrow()
            .iter()
            .any(|port| port.name == name)
    }

    /// Sets an input for the next run.
    ///
    /// # Errors
    /// [`GraphError::Tensor`] if there is no such input, the count differs, or a row number lies
    /// outside the rows it selects from; [`GraphError::Type`] if `T` is not its type.
    pub fn write<T: Element>(&mut self, name: &str, values: &[T]) -> Result<(), GraphError> {
        let inputs = self.scope.inputs.borrow();
        let (index, port) = find(&inputs, name, "input")?;
        if port.dtype != T::DTYPE {
            return Err(mistyped(port, T::DTYPE));
        }
        if values.len() != port.shape.count() {
            return Err(GraphError::Tensor {
                name: name.to_owned(),
                problem: format!(
                    "{} values given, {} wanted {}",
                    values.len(),
                    port.shape.count(),
                    port.shape
                ),
            });
        }
        if let Some(index) = outside(values, port.limit.get()) {
            return Err(GraphError::Tensor {
                name: name.to_owned(),
                problem: format!("row {index} of {}", port.limit.get()),
            });
        }
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let mut live = self.device.lock();
        live.wake(&self.device, self.id)?.write(index, bytes);
        self.written[index] = true;
        Ok(())
    }

    /// Runs the graph and waits for it.
    ///
    /// # Errors
    /// [`GraphError::Tensor`] if an input was not written since the last run,
    /// [`GraphError::Cancelled`], [`GraphError::OutOfMemory`], [`GraphError::Compute`].
    pub fn compute(&mut self) -> Result<(), GraphError> {
        if let Some(missing) = self.written.iter().position(|done| !done) {
            return Err(GraphError::Tensor {
                name: self.scope.inputs.borrow()[missing].name.clone(),
                problem: "an input must be written before every run".into(),
            });
        }
        if self.device.cancelled() {
            return Err(GraphError::Cancelled);
        }
        self.written.fill(false);
        self.ran = false;
        let status = {
            let mut live = self.device.lock();
            live.wake(&self.device, self.id)?.compute()
        };
        match status {
            sys::GGML_STATUS_SUCCESS => {
                self.ran = true;
                Ok(())
            }
            sys::GGML_STATUS_ABORTED => Err(GraphError::Cancelled),
            sys::GGML_STATUS_ALLOC_FAILED => Err(GraphError::OutOfMemory {
                device: self.device.name().to_owned(),
                what: "the working memory of a graph".into(),
                mib: 0,
            }),
            status => Err(GraphError::Compute {
                device: self.device.name().to_owned(),
                status,
            }),
        }
    }

    /// An output of the last run.
    ///
    /// # Errors
    /// [`GraphError::Tensor`] if there is no such output or no run succeeded yet,
    /// [`GraphError::Type`] if `T` is not its type.
    pub fn read<T: Element>(&self, name: &str) -> Result<Vec<T>, GraphError> {
        let outputs = self.scope.outputs.borrow();
        let (index, port) = find(&outputs, name, "output")?;
        let mut values = vec![T::zeroed(); port.shape.count()];
        self.read_port(index, port, &mut values)?;
        Ok(values)
    }

    /// An output of the last run, into memory the caller keeps.
    ///
    /// # Errors
    /// As [`Graph::read`]; also if the count differs.
    pub fn read_into<T: Element>(&self, name: &str, values: &mut [T]) -> Result<(), GraphError> {
        let outputs = self.scope.outputs.borrow();
        let (index, port) = find(&outputs, name, "output")?;
        self.read_port(index, port, values)
    }

    fn read_port<T: Element>(
        &self,
        index: usize,
        port: &Port,
        values: &mut [T],
    ) -> Result<(), GraphError> {
        if port.dtype != T::DTYPE {
            return Err(mistyped(port, T::DTYPE));
        }
        if values.len() != port.shape.count() {
            return Err(GraphError::Tensor {
                name: port.name.clone(),
                problem: format!(
                    "room for {} values, it has {} {}",
                    values.len(),
                    port.shape.count(),
                    port.shape
                ),
            });
        }
        if !self.ran {
            return Err(GraphError::Tensor {
                name: port.name.clone(),
                problem: "read before a run succeeded".into(),
            });
        }
        // `output` made the tensor contiguous, so its size is that of `values`.
        let bytes = bytemuck::cast_slice_mut(values);
        self.device.lock().seat(self.id).read(index, bytes);
        Ok(())
    }

    /// The extents of an output, in the reader's order.
    ///
    /// # Errors
    /// [`GraphError::Tensor`] if there is no such output.
    pub fn shape(&self, name: &str) -> Result<Vec<usize>, GraphError> {
        let outputs = self.scope.outputs.borrow();
        Ok(find(&outputs, name, "output")?.1.shape.as_slice().to_vec())
    }

    /// Memory of the intermediate results in bytes, over all backends; 0 while the graph is parked
    /// (see [`GraphPolicy::max_live`](crate::backend::GraphPolicy::max_live)).
    pub fn bytes(&self) -> usize {
        self.device.lock().bytes(self.id)
    }

    /// ggml's names of the operators, in the order in which they run.
    pub fn operators(&self) -> Vec<&'static str> {
        self.nodes().map(guard::op_name).collect()
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = NonNull<sys::ggml_tensor>> {
        guard::nodes(self.scope.graph)
    }

    /// ggml's names of the operators that run on the CPU because the device lacks them.
    pub fn on_cpu(&self) -> &[String] {
        &self.on_cpu
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        self.device.lock().remove(self.id);
    }
}

fn find<'p>(ports: &'p [Port], name: &str, kind: &str) -> Result<(usize, &'p Port), GraphError> {
    ports
        .iter()
        .enumerate()
        .find(|(_, port)| port.name == name)
        .ok_or_else(|| GraphError::Tensor {
            name: name.to_owned(),
            problem: format!(
                "the graph has no such {kind}; it has {}",
                ports
                    .iter()
                    .map(|p| p.name.as_str())
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        })
}

fn mistyped(port: &Port, wanted: DType) -> GraphError {
    GraphError::Type {
        name: port.name.clone(),
        found: port.dtype,
        wanted,
    }
}

/// The first row number that is not below `limit`, where the values are integers.
fn outside<T: Element>(values: &[T], limit: usize) -> Option<i64> {
    if limit == usize::MAX {
        return None;
    }
    let bad = |v: &i64| usize::try_from(*v).map_or(true, |v| v >= limit);
    match T::DTYPE {
        DType::I32 => {
            let values: &[i32] = bytemuck::cast_slice(values);
            values.iter().map(|&v| v.into()).find(bad)
        }
        DType::I64 => bytemuck::cast_slice(values).iter().copied().find(bad),
        _ => None,
    }
}

impl<'g> Tensor<'g> {
    /// Keeps the value as a named output; returns it for further use.
    pub fn keep(self, name: &str) -> Tensor<'g> {
        self.scope.output(name, self);
        self
    }
}
