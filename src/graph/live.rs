//! Live graphs: those that hold memory on a device.
//!
//! A device keeps a bounded number of them ([`GraphPolicy::max_live`]). Beyond it, the graph that
//! was not used for longest is *parked*: its memory is freed, its last outputs move to the host,
//! and it is planned again when it is next used. Nobody but the clock sees the difference.

use std::{
    ffi::CString,
    ptr::{self, NonNull},
    sync::atomic::{AtomicU64, Ordering},
};

use ggml_sys as sys;

use super::{
    Device, GraphError,
    device::Opened,
    fragments::{self, MAX_LIVE_VALUES},
    guard,
    placement::Placement,
    staging::Staging,
};
use crate::backend::GraphPolicy;

type Raw = NonNull<sys::ggml_tensor>;

/// What is needed to give a graph memory, any number of times.
pub(super) struct Layout {
    pub(super) context: NonNull<sys::ggml_context>,
    pub(super) graph: NonNull<sys::ggml_cgraph>,
    pub(super) capacity: usize,
    /// Where operators run, whatever the scheduler thinks.
    placement: Placement,
    /// Each input and its bytes.
    pub(super) inputs: Vec<(Raw, usize)>,
    /// Each output and its bytes.
    pub(super) outputs: Vec<(Raw, usize)>,
    /// Every node with its sources, which the scheduler replaces by copies of its own.
    sources: Vec<(Raw, [*mut sys::ggml_tensor; sys::GGML_MAX_SRC as usize])>,
    /// Most values that are alive at once.
    alive: usize,
}

impl Layout {
    pub(super) fn new(
        context: NonNull<sys::ggml_context>,
        graph: NonNull<sys::ggml_cgraph>,
        capacity: usize,
        placement: Placement,
        [inputs, outputs]: [Vec<(Raw, usize)>; 2],
    ) -> Layout {
        let nodes: Vec<Raw> = guard::nodes(graph).collect();
        name_uniquely(&nodes);
        let alive = fragments::most_alive(&nodes, !placement.on_cpu.is_empty());
        // SAFETY: live tensors.
        let sources = nodes.iter().map(|n| (*n, unsafe { n.as_ref() }.src));
        Layout {
            context,
            graph,
            capacity,
            placement,
            inputs,
            outputs,
            sources: sources.collect(),
            alive,
        }
    }

    /// ggml's planner ends the process when free memory lies in too many pieces. Such a graph gets
    /// memory for every value instead, none of it shared.
    fn allocate(&self, opened: &Opened) -> Result<Memory, GraphError> {
        let mut memory = Memory::new(self, opened);
        if self.alive > MAX_LIVE_VALUES {
            if !self.placement.on_cpu.is_empty() {
                return Err(GraphError::TooManyAlive {
                    device: opened.name().to_owned(),
                    alive: self.alive,
                    limit: MAX_LIVE_VALUES,
                    ops: self.placement.cpu_ops.join(", "),
                });
            }
            memory.own = NonNull::new(
                // SAFETY: a live context without data, a live backend.
                unsafe {
                    sys::ggml_backend_alloc_ctx_tensors(self.context.as_ptr(), opened.main.as_ptr())
                },
            );
            if memory.own.is_none() {
                self.forget();
                return Err(self.out_of_memory(opened, self.unshared()));
            }
        }
        // SAFETY: a fresh scheduler and a complete graph.
        let done = unsafe {
            sys::ggml_backend_sched_alloc_graph(memory.scheduler.as_ptr(), self.graph.as_ptr())
        };
        if done {
            memory.staging = Staging::new(opened, &self.inputs, &self.outputs);
            return Ok(memory);
        }
        let bytes = memory.bytes();
        drop(memory);
        self.forget();
        Err(self.out_of_memory(opened, bytes))
    }

    fn out_of_memory(&self, opened: &Opened, bytes: usize) -> GraphError {
        GraphError::OutOfMemory {
            device: opened.name().to_owned(),
            what: "a graph's intermediate results".into(),
            mib: bytes.div_ceil(1 << 20),
        }
    }

    /// Bytes of all values, as if none shared memory.
    fn unshared(&self) -> usize {
        let owned = self.tensors().filter(|t| guard::root(*t) == *t);
        // SAFETY: live tensors.
        owned.map(|t| unsafe { sys::ggml_nbytes(t.as_ptr()) }).sum()
    }

    /// Every tensor that was described in the graph's context.
    fn tensors(&self) -> impl Iterator<Item = Raw> {
        let context = self.context.as_ptr();
        // SAFETY: the context and its tensors live as long as the graph.
        let first = NonNull::new(unsafe { sys::ggml_get_first_tensor(context) });
        std::iter::successors(first, move |last| {
            // SAFETY: as above.
            NonNull::new(unsafe { sys::ggml_get_next_tensor(context, last.as_ptr()) })
        })
    }

    /// Takes back every trace of an allocation, so that the graph can be planned again.
    fn forget(&self) {
        let mut own: std::collections::HashSet<Raw> = std::collections::HashSet::new();
        for mut tensor in self.tensors() {
            let root = guard::root(tensor);
            // Views of stored tensors keep pointing there.
            if root == tensor || own.contains(&root) {
                own.insert(tensor);
                // SAFETY: live tensors of this graph, which nobody else uses while the lock is held.
                let tensor = unsafe { tensor.as_mut() };
                (tensor.data, tensor.buffer) = (ptr::null_mut(), ptr::null_mut());
            }
        }
        for (node, sources) in &self.sources {
            let mut node = *node;
            // SAFETY: as above.
            unsafe { node.as_mut() }.src = *sources;
        }
    }

    /// The outputs' contents.
    fn read_outputs(&self) -> Vec<Vec<u8>> {
        let read = |&(tensor, bytes): &(Raw, usize)| {
            let mut values = vec![0u8; bytes];
            fetch(tensor, &mut values);
            values
        };
        self.outputs.iter().map(read).collect()
    }
}

/// The contents of an allocated, contiguous tensor of as many bytes; the lock is held.
fn fetch(tensor: Raw, bytes: &mut [u8]) {
    // SAFETY: as said above.
    unsafe {
        sys::ggml_backend_tensor_get(tensor.as_ptr(), bytes.as_mut_ptr().cast(), 0, bytes.len());
    }
}

/// Gives the nodes names that no other graph's have.
///
/// CUDA and HIP know a captured graph again by the address of its first node, and capture it anew
/// if any node differs: name, shape, addresses and shapes of its sources, but not their types. So a
/// graph at the address of one that is gone, whose weights are bf16 where those were f16, would
/// replay the kernels for f16 (seen on an H200 about once in ten runs of the operator tests).
fn name_uniquely(nodes: &[Raw]) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let graph = NEXT.fetch_add(1, Ordering::Relaxed);
    for (i, node) in nodes.iter().enumerate() {
        let name = CString::new(format!("{graph}:{i}")).unwrap_or_default();
        // SAFETY: a live tensor; ggml copies the name.
        unsafe { sys::ggml_set_name(node.as_ptr(), name.as_ptr()) };
    }
}

/// A graph's memory; freed while the device's lock is held.
struct Memory {
    scheduler: NonNull<sys::ggml_backend_sched>,
    /// Memory for values that do not share it.
    own: Option<NonNull<sys::ggml_backend_buffer>>,
    staging: Option<Staging>,
}

impl Memory {
    /// A scheduler without memory.
    fn new(layout: &Layout, opened: &Opened) -> Memory {
        let mut backends = [opened.main.as_ptr(), opened.cpu.as_ptr()];
        let count = if opened.main == opened.cpu { 1 } else { 2 };
        // SAFETY: the backends are alive as long as `opened`; the last one is the CPU's, as the
        // scheduler demands; null buffer types ask for each backend's own.
        let scheduler = unsafe {
            sys::ggml_backend_sched_new(
                backends.as_mut_ptr(),
                ptr::null_mut(),
                count,
                layout.capacity,
                false,
                false,
            )
        };
        let scheduler = NonNull::new(scheduler).expect("ggml aborts rather than return null");
        // Left to itself, the scheduler keeps inputs on the CPU and copies them before each run.
        let inputs = layout.inputs.iter().map(|(tensor, _)| tensor);
        let on_device = layout.placement.on_device.iter().chain(inputs);
        let on_device = on_device.map(|node| (node, opened.main));
        let on_cpu = layout.placement.on_cpu.iter();
        for (node, backend) in on_device.chain(on_cpu.map(|node| (node, opened.cpu))) {
            // SAFETY: a tensor of this graph and a backend of this scheduler.
            unsafe {
                sys::ggml_backend_sched_set_tensor_backend(
                    scheduler.as_ptr(),
                    node.as_ptr(),
                    backend.as_ptr(),
                );
            }
        }
        Memory {
            scheduler,
            own: None,
            staging: None,
        }
    }

    fn bytes(&self) -> usize {
        let scheduler = self.scheduler.as_ptr();
        // SAFETY: a live scheduler with its own backends, a live buffer.
        unsafe {
            let own = self
                .own
                .map_or(0, |b| sys::ggml_backend_buffer_get_size(b.as_ptr()));
            (0..sys::ggml_backend_sched_get_n_backends(scheduler))
                .map(|i| {
                    let backend = sys::ggml_backend_sched_get_backend(scheduler, i);
                    sys::ggml_backend_sched_get_buffer_size(scheduler, backend)
                })
                .sum::<usize>()
                + own
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        drop(self.staging.take()); // waits for copies into the tensors
        // SAFETY: made once, freed once.
        unsafe {
            sys::ggml_backend_sched_free(self.scheduler.as_ptr());
            if let Some(own) = self.own {
                sys::ggml_backend_buffer_free(own.as_ptr());
            }
        }
    }
}

/// The place of one graph at its device.
pub(super) struct Seat {
    id: u64,
    layout: Layout,
    /// None while the graph is parked.
    memory: Option<Memory>,
    /// Outputs of the last run of a graph that was parked since.
    saved: Option<Vec<Vec<u8>>>,
    /// An input is written and waits for its run.
    waiting: bool,
    /// The outputs hold a result.
    ran: bool,
}

impl Seat {
    /// Sets the input of this number, whose bytes these are, for the next run.
    pub(super) fn write(&mut self, input: usize, bytes: &[u8]) {
        self.waiting = true;
        let (tensor, _) = self.layout.inputs[input];
        // SAFETY: the tensor is alive.
        if unsafe { tensor.as_ref() }.buffer.is_null() {
            // Nothing that leads to an output reads it, so the planner gave it no memory.
            return;
        }
        let staging = self.memory.as_mut().and_then(|m| m.staging.as_mut());
        if staging.is_some_and(|s| s.write(input, tensor, bytes)) {
            return;
        }
        // SAFETY: allocated with exactly this size; the lock is held.
        unsafe {
            sys::ggml_backend_tensor_set(tensor.as_ptr(), bytes.as_ptr().cast(), 0, bytes.len());
        }
    }

    /// The output of this number, of the last run.
    pub(super) fn read(&mut self, output: usize, bytes: &mut [u8]) {
        if let Some(saved) = &self.saved {
            return bytes.copy_from_slice(&saved[output]);
        }
        let (tensor, _) = self.layout.outputs[output];
        let staging = self.memory.as_mut().and_then(|m| m.staging.as_mut());
        if !staging.is_some_and(|s| s.read(output, tensor, bytes)) {
            fetch(tensor, bytes);
        }
    }

    /// Runs the graph; ggml's status.
    pub(super) fn compute(&mut self) -> sys::ggml_status {
        let Some(memory) = &self.memory else {
            return sys::GGML_STATUS_FAILED;
        };
        (self.saved, self.waiting) = (None, false);
        if let Some(staging) = &memory.staging
            && !self.layout.placement.on_cpu.is_empty()
        {
            staging.wait(); // the scheduler copies inputs to the CPU without looking at the queue
        }
        // SAFETY: an allocated graph; the lock is held.
        let status = unsafe {
            sys::ggml_backend_sched_graph_compute(
                memory.scheduler.as_ptr(),
                self.layout.graph.as_ptr(),
            )
        };
        self.ran = status == sys::GGML_STATUS_SUCCESS;
        status
    }

    fn park(&mut self) {
        let Some(memory) = self.memory.take() else {
            return;
        };
        if self.ran && self.saved.is_none() {
            self.saved = Some(self.layout.read_outputs());
        }
        drop(memory);
        self.layout.forget();
    }
}

/// The graphs of one device, the least recently used first.
pub(super) struct Live {
    policy: GraphPolicy,
    seats: Vec<Seat>,
    next: u64,
    requests: usize,
}

impl Live {
    pub(super) fn new(policy: GraphPolicy) -> Live {
        Live {
            policy,
            seats: Vec::new(),
            next: 0,
            requests: 0,
        }
    }

    /// Gives a new graph memory; its number.
    pub(super) fn admit(&mut self, opened: &Opened, layout: Layout) -> Result<u64, GraphError> {
        let memory = self.memory_for(opened, &layout)?;
        self.next += 1;
        self.seats.push(Seat {
            id: self.next,
            layout,
            memory: Some(memory),
            saved: None,
            waiting: false,
            ran: false,
        });
        Ok(self.next)
    }

    /// A graph that is about to be used, with memory.
    pub(super) fn wake(&mut self, opened: &Opened, id: u64) -> Result<&mut Seat, GraphError> {
        let at = self.place(id);
        let mut seat = self.seats.remove(at);
        if seat.memory.is_none() {
            match self.memory_for(opened, &seat.layout) {
                Ok(memory) => seat.memory = Some(memory),
                Err(error) => {
                    self.seats.insert(at, seat);
                    return Err(error);
                }
            }
        }
        self.seats.push(seat);
        Ok(self.seats.last_mut().expect("just pushed"))
    }

    /// A graph as it is.
    pub(super) fn seat(&mut self, id: u64) -> &mut Seat {
        let at = self.place(id);
        &mut self.seats[at]
    }

    /// Bytes that a graph holds.
    pub(super) fn bytes(&self, id: u64) -> usize {
        let memory = self.seats[self.place(id)].memory.as_ref();
        memory.map_or(0, Memory::bytes)
    }

    pub(super) fn remove(&mut self, id: u64) {
        let at = self.place(id);
        self.seats.remove(at);
    }

    fn place(&self, id: u64) -> usize {
        let found = self.seats.iter().rposition(|seat| seat.id == id);
        found.expect("a graph has a seat until it is dropped")
    }

    fn count(&self) -> usize {
        self.seats.iter().filter(|s| s.memory.is_some()).count()
    }

    fn memory_for(&mut self, opened: &Opened, layout: &Layout) -> Result<Memory, GraphError> {
        while self.count() >= self.policy.max_live.max(1) {
            if !self.park_oldest() {
                break; // all of them wait for their run
            }
        }
        match layout.allocate(opened) {
            Err(GraphError::OutOfMemory { .. }) if self.park_oldest() => {
                self.park_idle();
                layout.allocate(opened)
            }
            done => done,
        }
    }

    /// Whether a graph could be parked.
    fn park_oldest(&mut self) -> bool {
        let idle = |seat: &&mut Seat| seat.memory.is_some() && !seat.waiting;
        let oldest = self.seats.iter_mut().find(idle);
        oldest.map(Seat::park).is_some()
    }

    fn park_idle(&mut self) {
        while self.park_oldest() {}
    }
}

/// A request in progress on a device. When the last one ends, devices that share their memory with
/// the host give the graphs' memory back.
#[must_use = "the request ends when this is dropped"]
pub struct DeviceRequest(Device);

impl Device {
    /// Begins a request.
    pub fn request(&self) -> DeviceRequest {
        self.0.lock().requests += 1;
        DeviceRequest(self.clone())
    }

    /// Graphs that hold memory on this device now.
    pub fn live_graphs(&self) -> usize {
        self.0.lock().count()
    }

    /// How many graphs stay allocated here, and for how long.
    pub fn graph_policy(&self) -> GraphPolicy {
        self.0.lock().policy.clone()
    }
}

impl Drop for DeviceRequest {
    fn drop(&mut self) {
        let mut live = self.0.0.lock();
        live.requests -= 1;
        if live.requests == 0 && live.policy.release_after_request {
            live.park_idle();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, ffi::CStr};

    use super::*;
    use crate::graph::{DType, Graph};

    #[test]
    fn no_two_graphs_share_the_name_of_a_node() {
        let device = Device::cpu(1).unwrap();
        let names = || -> Vec<String> {
            let graph = Graph::build(&device, |g| {
                let x = g.input("x", DType::F32, &[2, 3]);
                g.output("y", x.sqr().exp());
                Ok(())
            })
            .unwrap();
            // SAFETY: live nodes; ggml's names end with a NUL.
            let name = |node: Raw| unsafe { CStr::from_ptr(node.as_ref().name.as_ptr()) };
            let named = |node| name(node).to_string_lossy().into_owned();
            graph.nodes().map(named).collect()
        };
        let all: Vec<String> = (0..3).flat_map(|_| names()).collect();
        assert!(all.len() >= 6);
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    }
}
