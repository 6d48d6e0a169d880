//! Operators of our own: Rust code that runs as a node of a graph on the CPU's threads, where it
//! is faster than ggml's kernel for the same thing.
//!
//! A node's code is called once on each of ggml's threads and computes its share of the result.

mod activation;
mod alias_free;
mod attention;
mod channel_norm;
mod jobs;
mod kernels;
mod lstm;
mod packed;
mod panels;
mod pass;
mod plane_conv;
mod plane_tiles;
mod product;
mod residual;
mod row_norm;
mod short_conv;
mod sine;
mod toom_cook;
mod unpack;
mod vector;
mod widened;

use std::{ffi::c_void, panic::AssertUnwindSafe, sync::atomic::AtomicUsize};

use ggml_sys as sys;

use super::{DType, Scope, Tensor, shape::Shape};
pub(super) use activation::{GatedTanh, Gelu, SigmoidGlu};
pub(super) use attention::Attention;
pub use channel_norm::Curve;
pub(super) use jobs::Share;
pub use packed::ShortWeight;
pub(super) use plane_conv::PlaneConv;
pub use plane_tiles::ShortConv2d;
pub(super) use product::{Factors, Product};
pub use residual::ResidualLayer;
pub use row_norm::RowCurve;
pub use short_conv::{Around, ShortConv};
pub use widened::Widened;

/// The code behind a node.
///
/// # Safety
/// `run` is called at the same time on several threads, each with another share of the same
/// result; an implementation writes to no element from more than one share.
pub(super) unsafe trait HostOp: Send + Sync {
    /// Computes one share of `output` (f32, packed) from `inputs`.
    fn run(&self, inputs: &[Operand], output: &Output, share: Share);
}

/// An operator in a graph, and the next of its jobs.
pub(super) struct HostNode {
    op: Box<dyn HostOp>,
    next: AtomicUsize,
}

/// A tensor that an operator reads. Extents and byte steps in ggml's order.
pub(super) struct Operand {
    data: *const u8,
    ne: [usize; 4],
    nb: [usize; 4],
    dtype: DType,
}

impl Operand {
    /// # Safety
    /// `tensor` is a live tensor whose memory is in the CPU's reach and complete.
    unsafe fn of(tensor: *mut sys::ggml_tensor) -> Operand {
        // SAFETY: by the caller's promise.
        let tensor = unsafe { &*tensor };
        Operand {
            data: tensor.data.cast(),
            ne: tensor.ne.map(|n| n as usize),
            nb: tensor.nb,
            dtype: DType::from_id(tensor.type_).unwrap_or(DType::F32),
        }
    }

    /// The address of row `i1` of matrix `(i2, i3)`.
    fn row(&self, i1: usize, i2: usize, i3: usize) -> *const u8 {
        debug_assert!(i1 < self.ne[1] && i2 < self.ne[2] && i3 < self.ne[3]);
        let offset = i1 * self.nb[1] + i2 * self.nb[2] + i3 * self.nb[3];
        // SAFETY: the row lies inside the tensor's memory.
        unsafe { self.data.add(offset) }
    }

    /// The values of a packed f32 row.
    fn row_f32(&self, i1: usize, i2: usize, i3: usize) -> &[f32] {
        assert!(self.dtype == DType::F32 && self.nb[0] == 4);
        // SAFETY: a row holds `ne[0]` packed values, and nobody writes to an operator's inputs
        // while it runs.
        unsafe { std::slice::from_raw_parts(self.row(i1, i2, i3).cast(), self.ne[0]) }
    }

    /// The values of a packed row of bytes.
    fn row_i8(&self, i1: usize, i2: usize, i3: usize) -> &[i8] {
        assert!(self.dtype == DType::I8 && self.nb[0] == 1);
        // SAFETY: as in `row_f32`.
        unsafe { std::slice::from_raw_parts(self.row(i1, i2, i3).cast(), self.ne[0]) }
    }
}

/// The tensor that an operator fills: f32, packed.
pub(super) struct Output {
    data: *mut f32,
    ne: [usize; 4],
}

impl Output {
    /// Values `columns` of row `i1` of matrix `(i2, i3)`.
    ///
    /// # Safety
    /// No other slice of these values is in use, on any thread.
    #[allow(clippy::mut_from_ref)] // one output is shared by threads that write to other parts
    unsafe fn row(&self, [i1, i2, i3]: [usize; 3], columns: std::ops::Range<usize>) -> &mut [f32] {
        assert!(i1 < self.ne[1] && i2 < self.ne[2] && i3 < self.ne[3] && columns.end <= self.ne[0]);
        let row = (i3 * self.ne[2] + i2) * self.ne[1] + i1;
        // SAFETY: inside the packed result (checked above); exclusive by the caller's promise.
        unsafe {
            let start = self.data.add(row * self.ne[0] + columns.start);
            std::slice::from_raw_parts_mut(start, columns.len())
        }
    }
}

impl Scope {
    /// Adds a node with `shape` f32 values that `op` computes from `inputs`.
    pub(super) fn host_op<'g>(
        &'g self,
        shape: Shape,
        inputs: &[Tensor<'g>],
        op: impl HostOp + 'static,
    ) -> Tensor<'g> {
        debug_assert!(self.device().is_cpu());
        let mut sources: Vec<_> = inputs.iter().map(|t| t.ptr.as_ptr()).collect();
        let op = Box::new(HostNode {
            op: Box::new(op),
            next: AtomicUsize::new(0),
        });
        let address = (&raw const *op).cast_mut().cast::<c_void>();
        self.host_ops.borrow_mut().push(op);
        let ne = shape.ggml();
        // SAFETY: the shape is valid, the sources are live tensors (fewer than ggml's limit), and
        // the scope keeps the operator's code as long as the graph.
        self.emit(shape.rank(), |ctx| unsafe {
            sys::ggml_custom_4d(
                ctx,
                sys::GGML_TYPE_F32,
                ne[0],
                ne[1],
                ne[2],
                ne[3],
                sources.as_mut_ptr(),
                sources.len() as i32,
                Some(run),
                sys::GGML_N_TASKS_MAX,
                address,
            )
        })
    }
}

/// What ggml calls on each thread.
unsafe extern "C" fn run(output: *mut sys::ggml_tensor, index: i32, of: i32, op: *mut c_void) {
    // SAFETY: `host_op` gave the address of a boxed operator that lives as long as the graph; the
    // node and its sources are live, and ggml computed the sources before.
    let (op, inputs, output) = unsafe {
        let op = &*op.cast::<HostNode>();
        let sources = (*output).src.iter().take_while(|s| !s.is_null());
        let inputs: Vec<Operand> = sources.map(|s| Operand::of(*s)).collect();
        let output = Output {
            data: (*output).data.cast(),
            ne: (*output).ne.map(|n| n as usize),
        };
        (op, inputs, output)
    };
    let share = Share {
        index: index as usize,
        of: (of as usize).max(1),
        next: &op.next,
    };
    // Unwinding must not enter ggml; the result then holds whatever it held before.
    let done = std::panic::catch_unwind(AssertUnwindSafe(|| op.op.run(&inputs, &output, share)));
    if done.is_err() {
        tracing::error!("an operator of the graph layer failed; its result is not to be used");
    }
}
