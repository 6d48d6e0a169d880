//! A finished graph: allocated once, run many times.

use std::{ptr::NonNull, sync::Arc};

use ggml_sys as sys;

use super::{
    DType, Device, Element, GraphError, Scope, Tensor, device::Opened, guard, scope::Port,
};

/// Descriptions that a first attempt has room for; more until the graph fits.
const FIRST_CAPACITY: usize = 1024;
const MAX_CAPACITY: usize = 1 << 18;

/// A graph that is allocated on its device.
pub struct Graph {
    scheduler: NonNull<sys::ggml_backend_sched>,
    scope: Scope,
    device: Arc<Opened>,
    /// For each input, whether it was written since the last run.
    written: Vec<bool>,
    /// Whether the outputs hold a result.
    ran: bool,
    on_cpu: Vec<String>,
}

// SAFETY: the scheduler and the tensors have no thread affinity, and every use of them takes
// `&mut self` or the device's lock.
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
        let on_cpu = placement.on_cpu;
        if !on_cpu.is_empty() {
            if opened.strict {
                return Err(GraphError::MissingOp {
                    device: opened.name().to_owned(),
                    ops: on_cpu.join(", "),
                });
            }
            warn_once(&opened, &on_cpu);
        }
        let busy = opened.lock();
        let mut backends = [opened.main.as_ptr(), opened.cpu.as_ptr()];
        let count = if device.is_cpu() { 1 } else { 2 };
        // SAFETY: the backends are alive as long as `opened`; the last one is the CPU's, as the
        // scheduler demands; null buffer types ask for each backend's own.
        let scheduler = unsafe {
            sys::ggml_backend_sched_new(
                backends.as_mut_ptr(),
                std::ptr::null_mut(),
                count,
                capacity,
                false,
                false,
            )
        };
        let scheduler = NonNull::new(scheduler).expect("ggml aborts rather than return null");
        for node in placement.on_device {
            // SAFETY: a node of this graph and a backend of this scheduler.
            unsafe {
                sys::ggml_backend_sched_set_tensor_backend(
                    scheduler.as_ptr(),
                    node.as_ptr(),
                    opened.main.as_ptr(),
                );
            }
        }
        let written = vec![false; scope.inputs.borrow().len()];
        let graph = Graph {
            scheduler,
            scope,
            device: opened.clone(),
            written,
            ran: false,
            on_cpu,
        };
        // SAFETY: a fresh scheduler and a complete graph.
        let done = unsafe {
            sys::ggml_backend_sched_alloc_graph(scheduler.as_ptr(), graph.scope.graph.as_ptr())
        };
        drop(busy);
        if !done {
            return Err(GraphError::OutOfMemory {
                device: opened.name().to_owned(),
                what: "a graph's intermediate results".into(),
                mib: graph.bytes().div_ceil(1 << 20),
            });
        }
        Ok(graph)
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
        // SAFETY: the tensor is alive.
        if unsafe { (*port.tensor.as_ptr()).buffer.is_null() } {
            // Nothing that leads to an output reads it, so the planner gave it no memory.
            self.written[index] = true;
            return Ok(());
        }
        let _busy = self.device.lock();
        // SAFETY: allocated with exactly this size; the lock is held.
        unsafe {
            sys::ggml_backend_tensor_set(
                port.tensor.as_ptr(),
                bytes.as_ptr().cast(),
                0,
                bytes.len(),
            )
        };
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
        let _busy = self.device.lock();
        // SAFETY: allocated by `allocate`; the lock is held.
        let status = unsafe {
            sys::ggml_backend_sched_graph_compute(
                self.scheduler.as_ptr(),
                self.scope.graph.as_ptr(),
            )
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
        let (_, port) = find(&outputs, name, "output")?;
        let mut values = vec![T::zeroed(); port.shape.count()];
        self.read_port(port, &mut values)?;
        Ok(values)
    }

    /// An output of the last run, into memory the caller keeps.
    ///
    /// # Errors
    /// As [`Graph::read`]; also if the count differs.
    pub fn read_into<T: Element>(&self, name: &str, values: &mut [T]) -> Result<(), GraphError> {
        let outputs = self.scope.outputs.borrow();
        let (_, port) = find(&outputs, name, "output")?;
        self.read_port(port, values)
    }

    fn read_port<T: Element>(&self, port: &Port, values: &mut [T]) -> Result<(), GraphError> {
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
        let _busy = self.device.lock();
        // SAFETY: `output` made the tensor contiguous, so its size is that of `values`; the lock
        // is held.
        unsafe {
            sys::ggml_backend_tensor_get(
                port.tensor.as_ptr(),
                values.as_mut_ptr().cast(),
                0,
                std::mem::size_of_val(values),
            );
        }
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

    /// Memory of the intermediate results in bytes, over all backends.
    pub fn bytes(&self) -> usize {
        // SAFETY: a live scheduler and its own backends.
        unsafe {
            (0..sys::ggml_backend_sched_get_n_backends(self.scheduler.as_ptr()))
                .map(|i| {
                    let backend = sys::ggml_backend_sched_get_backend(self.scheduler.as_ptr(), i);
                    sys::ggml_backend_sched_get_buffer_size(self.scheduler.as_ptr(), backend)
                })
                .sum()
        }
    }

    /// ggml's names of the operators that run on the CPU because the device lacks them.
    pub fn on_cpu(&self) -> &[String] {
        &self.on_cpu
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let _busy = self.device.lock();
        // SAFETY: made by `allocate`, freed once; the lock is held.
        unsafe { sys::ggml_backend_sched_free(self.scheduler.as_ptr()) };
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

/// Which operators the device runs. Left to itself, the scheduler follows the weights, and keeps
/// on the CPU what has none beside it.
struct Placement {
    on_device: Vec<NonNull<sys::ggml_tensor>>,
    /// ggml's names of the operators that the CPU must run.
    on_cpu: Vec<String>,
}

impl Placement {
    fn of(opened: &Opened, scope: &Scope) -> Result<Placement, GraphError> {
        let mut placement = Placement {
            on_device: Vec::new(),
            on_cpu: Vec::new(),
        };
        let graph = scope.graph.as_ptr();
        // SAFETY: the graph is complete and alive.
        let count = unsafe { sys::ggml_graph_n_nodes(graph) };
        // SAFETY: as above; the indices are below the count.
        let nodes = (0..count).map(|i| unsafe { sys::ggml_graph_node(graph, i) });
        for node in nodes.filter_map(NonNull::new) {
            // SAFETY: the question only looks at the node.
            if unsafe { sys::ggml_backend_dev_supports_op(opened.device(), node.as_ptr()) } {
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
        if !self.on_cpu.contains(&name) {
            self.on_cpu.push(name);
        }
        Ok(())
    }
}

fn warn_once(opened: &Opened, names: &[String]) {
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

impl<'g> Tensor<'g> {
    /// Keeps the value as a named output; returns it for further use.
    pub fn keep(self, name: &str) -> Tensor<'g> {
        self.scope.output(name, self);
        self
    }
}
