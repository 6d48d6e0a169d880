//! A graph under construction.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet},
    ffi::CString,
    ptr::NonNull,
};

use ggml_sys as sys;

use super::{
    DType, Device, DeviceTensor, GraphError, Tensor,
    buffer::Buffer,
    guard,
    host::{Factors, HostNode},
    shape::Shape,
};

/// Room kept for the helper tensors of one operator (casts, copies, views).
const PER_OPERATOR: usize = 16;

/// Where a graph is described: makes inputs, names outputs, holds the first mistake.
pub struct Scope {
    pub(super) context: NonNull<sys::ggml_context>,
    pub(super) graph: NonNull<sys::ggml_cgraph>,
    capacity: usize,
    placeholder: NonNull<sys::ggml_tensor>,
    error: RefCell<Option<GraphError>>,
    pub(super) overflow: Cell<bool>,
    pub(super) inputs: RefCell<Vec<Port>>,
    pub(super) outputs: RefCell<Vec<Port>>,
    /// Memory of the stored tensors, kept alive as long as the graph.
    kept: RefCell<Vec<Buffer>>,
    /// The stored tensors that were brought in.
    pub(super) leaves: RefCell<HashSet<NonNull<sys::ggml_tensor>>>,
    /// Exclusive bounds of integers that the graph itself computes.
    pub(super) ranges: RefCell<HashMap<NonNull<sys::ggml_tensor>, usize>>,
    /// Code of operators that are ours; the graph's nodes point to it.
    #[allow(clippy::vec_box)] // the outer box gives a thin address that stays where it is
    pub(super) host_ops: RefCell<Vec<Box<HostNode>>>,
    /// Products by code of ours, with what they were made of.
    pub(super) products: RefCell<HashMap<NonNull<sys::ggml_tensor>, Factors>>,
    /// Bytes of all intermediate results, as if none shared memory.
    pub(super) bytes: Cell<usize>,
    pub(super) device: Device,
    pub(super) exact: bool,
}

/// A named input or output.
pub(super) struct Port {
    pub(super) name: String,
    pub(super) tensor: NonNull<sys::ggml_tensor>,
    pub(super) dtype: DType,
    pub(super) shape: Shape,
    /// Values must be below this where the graph uses them as row numbers.
    pub(super) limit: Cell<usize>,
}

impl Scope {
    /// With room for `capacity` tensors.
    pub(super) fn new(device: &Device, capacity: usize, exact: bool) -> Scope {
        // SAFETY: the context is sized for `capacity` tensors and one graph of that size; with
        // `no_alloc` it holds descriptions only.
        unsafe {
            let params = sys::ggml_init_params {
                mem_size: (capacity + 1) * sys::ggml_tensor_overhead()
                    + sys::ggml_graph_overhead_custom(capacity, false),
                mem_buffer: std::ptr::null_mut(),
                no_alloc: true,
            };
            let context =
                NonNull::new(sys::ggml_init(params)).expect("malloc of a graph's description");
            let graph = sys::ggml_new_graph_custom(context.as_ptr(), capacity, false);
            let placeholder = sys::ggml_new_tensor_1d(context.as_ptr(), sys::GGML_TYPE_F32, 1);
            Scope {
                context,
                graph: NonNull::new(graph).expect("the context has room for it"),
                capacity,
                placeholder: NonNull::new(placeholder).expect("the context has room for it"),
                error: RefCell::default(),
                overflow: Cell::new(false),
                inputs: RefCell::default(),
                outputs: RefCell::default(),
                kept: RefCell::default(),
                leaves: RefCell::default(),
                ranges: RefCell::default(),
                host_ops: RefCell::default(),
                products: RefCell::default(),
                bytes: Cell::new(0),
                device: device.clone(),
                exact,
            }
        }
    }

    /// A tensor (f32, f16, bf16, i32 or i64) that is written before each run. Its contents do not
    /// survive the run.
    pub fn input(&self, name: &str, dtype: DType, shape: &[usize]) -> Tensor<'_> {
        let Some(extents) = Shape::new(shape) else {
            return self.misuse(
                name,
                format!("shape {shape:?} has a zero, more than 4 axes or too many elements"),
            );
        };
        if !dtype.is_element() {
            return self.misuse(name, format!("an input cannot hold {dtype}"));
        }
        if self.inputs.borrow().iter().any(|p| p.name == name) {
            return self.misuse(name, "two inputs have this name".into());
        }
        let tensor = self.emit(extents.rank(), |ctx| {
            // SAFETY: `emit` gives a context with room; the shape is valid.
            unsafe {
                let t = sys::ggml_new_tensor(
                    ctx,
                    dtype.id(),
                    extents.rank().max(1) as i32,
                    extents.ggml().as_ptr(),
                );
                sys::ggml_set_input(t);
                t
            }
        });
        if !self.failed() {
            self.label(tensor.ptr, name);
            self.inputs.borrow_mut().push(Port {
                name: name.to_owned(),
                tensor: tensor.ptr,
                dtype,
                shape: extents,
                limit: Cell::new(usize::MAX),
            });
        }
        tensor
    }

    /// A tensor that is read after each run.
    pub fn output(&self, name: &str, tensor: Tensor<'_>) {
        if self.failed() {
            return;
        }
        if !self.owns(tensor.ptr) {
            self.misuse(name, "the output is a tensor of another graph".into());
        } else if self.outputs.borrow().iter().any(|p| p.name == name) {
            self.misuse(name, "two outputs have this name".into());
        } else if !tensor.dtype().is_element() {
            self.misuse(name, format!("an output cannot hold {}", tensor.dtype()));
        }
        let tensor = tensor.contiguous();
        // SAFETY: a live tensor.
        let leaf = unsafe { (*guard::root(tensor.ptr).as_ptr()).op } == sys::GGML_OP_NONE;
        // Inputs do not keep their contents, and a stored tensor may be written later on.
        let tensor = match leaf {
            true => tensor.unary(sys::ggml_cont),
            false => tensor,
        };
        if self.failed() {
            return;
        }
        // SAFETY: live tensors of this graph, which has room for every tensor of the context. The
        // planner keeps the memory of tensors that are marked, and a view has none of its own.
        unsafe {
            sys::ggml_set_output(tensor.ptr.as_ptr());
            sys::ggml_set_output(guard::root(tensor.ptr).as_ptr());
            sys::ggml_build_forward_expand(self.graph.as_ptr(), tensor.ptr.as_ptr());
        }
        self.outputs.borrow_mut().push(Port {
            name: name.to_owned(),
            tensor: tensor.ptr,
            dtype: tensor.dtype(),
            shape: tensor.extents(),
            limit: Cell::new(usize::MAX),
        });
    }

    /// Brings a stored tensor into the graph; the graph keeps its memory alive.
    pub fn stored(&self, stored: &DeviceTensor) -> Tensor<'_> {
        if self.failed() {
            return self.placeholder(stored.rank());
        }
        if let Err(error) = stored.expect_memory() {
            return self.fail(error);
        }
        if !stored.on(&self.device) {
            return self.misuse(
                stored.name(),
                "stored through another `Device` than the graph's".into(),
            );
        }
        if self.leaves.borrow_mut().insert(stored.tensor) {
            let buffer = stored.buffer();
            let mut kept = self.kept.borrow_mut();
            if !kept.iter().any(|other| other.is(&buffer)) {
                kept.push(buffer);
            }
        }
        Tensor {
            ptr: stored.tensor,
            rank: stored.rank() as u8,
            scope: self,
        }
    }

    /// Writes `rows` `[.., n, width]` (f32 or f16) into a stored tensor `[.., rows, width]` at the
    /// row numbers `indices` `[n]` (i32 or i64), and returns the stored tensor as it is after
    /// that. The write happens in every run: after everything above it in the description that
    /// reads the stored tensor, before anything that uses the result. Of equal row numbers, any
    /// may win.
    pub fn write_rows<'g>(
        &'g self,
        stored: &DeviceTensor,
        rows: Tensor<'g>,
        indices: Tensor<'g>,
    ) -> Tensor<'g> {
        let target = self.stored(stored);
        if self.failed() {
            return target;
        }
        let (t, r, i) = (target.ne(), rows.ne(), indices.ne());
        let index = matches!(indices.dtype(), DType::I32 | DType::I64);
        if t[0] != r[0]
            || t[2..] != r[2..]
            || r[1] != i[0]
            || i[1..] != [1, 1, 1]
            || !matches!(rows.dtype(), DType::F32 | DType::F16)
            || !index
            || !target.dtype().writes_from_f32()
        {
            return self.mistake(
                "write_rows",
                format!(
                    "{rows:?} at {indices:?} into `{}` {target:?}",
                    stored.name()
                ),
            );
        }
        if !self.index("write_rows", indices, t[1] as usize) {
            return self.placeholder(stored.rank());
        }
        // ggml's CPU code reserves too little working memory for converting f16 rows.
        let rows = match rows.dtype() == target.dtype() {
            true => rows,
            false => rows.cast(DType::F32),
        };
        let (rows, indices) = (rows.packed_rows(), indices.contiguous());
        self.write(target, |ctx| {
            // SAFETY: all conditions that ggml asserts were checked above.
            unsafe {
                sys::ggml_set_rows(
                    ctx,
                    target.ptr.as_ptr(),
                    rows.ptr.as_ptr(),
                    indices.ptr.as_ptr(),
                )
            }
        })
    }

    /// Overwrites a stored tensor in every run with a float value of the same shape, after
    /// everything above it in the description that reads the stored tensor.
    pub fn store(&self, stored: &DeviceTensor, value: Tensor<'_>) {
        let target = self.stored(stored);
        if self.failed() {
            return;
        }
        let types = value.dtype().is_float() && target.dtype().writes_from_f32();
        if target.ne() != value.ne() || !types {
            self.mistake(
                "store",
                format!("{value:?} into `{}` {target:?}", stored.name()),
            );
            return;
        }
        let value = match target.dtype().is_quantized() {
            true => value.packed_rows(),
            false => value,
        };
        self.write(target, |ctx| {
            // SAFETY: equal extents; ggml converts between the float types, and packed rows of
            // them to blocks.
            unsafe { sys::ggml_cpy(ctx, value.ptr.as_ptr(), target.ptr.as_ptr()) }
        });
    }

    /// Adds an operator that writes into a stored tensor, so that it runs even if nobody reads
    /// the result.
    fn write<'g>(
        &'g self,
        target: Tensor<'g>,
        make: impl FnOnce(*mut sys::ggml_context) -> *mut sys::ggml_tensor,
    ) -> Tensor<'g> {
        if self.failed() {
            return target;
        }
        self.before_write(target.ptr);
        let written = self.emit(target.rank(), make);
        if !self.failed() {
            // SAFETY: as in `output`.
            unsafe { sys::ggml_build_forward_expand(self.graph.as_ptr(), written.ptr.as_ptr()) };
        }
        written
    }

    /// Whether products must keep full f32 precision on this device.
    pub(super) fn exact(&self) -> bool {
        self.exact
    }

    /// Records the first mistake; everything after it is ignored.
    pub fn fail(&self, error: GraphError) -> Tensor<'_> {
        self.error.borrow_mut().get_or_insert(error);
        self.placeholder(1)
    }

    pub(super) fn misuse(&self, name: &str, problem: String) -> Tensor<'_> {
        self.fail(GraphError::Tensor {
            name: name.to_owned(),
            problem,
        })
    }

    pub(super) fn mistake(&self, op: &'static str, problem: String) -> Tensor<'_> {
        self.fail(GraphError::Shape { op, problem })
    }

    pub(super) fn failed(&self) -> bool {
        self.overflow.get() || self.error.borrow().is_some()
    }

    pub(super) fn take_error(&self) -> Option<GraphError> {
        self.error.borrow_mut().take()
    }

    pub(super) fn placeholder(&self, rank: usize) -> Tensor<'_> {
        Tensor {
            ptr: self.placeholder,
            rank: rank as u8,
            scope: self,
        }
    }

    /// Runs `make` if nothing failed so far and the context has room; the result has `rank` axes.
    pub(super) fn emit(
        &self,
        rank: usize,
        make: impl FnOnce(*mut sys::ggml_context) -> *mut sys::ggml_tensor,
    ) -> Tensor<'_> {
        if self.failed() {
            return self.placeholder(rank);
        }
        // SAFETY: the context is alive.
        let used = unsafe { sys::ggml_used_mem(self.context.as_ptr()) };
        // SAFETY: constants.
        let (each, graph) = unsafe {
            (
                sys::ggml_tensor_overhead(),
                sys::ggml_graph_overhead_custom(self.capacity, false),
            )
        };
        // The graph has `capacity` places for nodes and leaves together, stored tensors among them.
        let wanted = PER_OPERATOR + self.leaves.borrow().len();
        if used + wanted * each > self.capacity * each + graph {
            self.overflow.set(true);
            return self.placeholder(rank);
        }
        let made = make(self.context.as_ptr());
        let made = NonNull::new(made).expect("ggml aborts rather than return null");
        if let Err(error) = self.inspect(made) {
            return self.fail(error);
        }
        Tensor {
            ptr: made,
            rank: rank as u8,
            scope: self,
        }
    }

    pub(super) fn label(&self, tensor: NonNull<sys::ggml_tensor>, name: &str) {
        if let Ok(text) = CString::new(name) {
            // SAFETY: a live tensor; ggml copies the text and cuts it to its limit.
            unsafe { sys::ggml_set_name(tensor.as_ptr(), text.as_ptr()) };
        }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        // SAFETY: made by `new`, freed once; `Graph` keeps the scope as long as it uses it.
        unsafe { sys::ggml_free(self.context.as_ptr()) };
    }
}
