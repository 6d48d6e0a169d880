//! A value in a graph under construction, and the operators that move its axes about.

use std::ptr::NonNull;

use ggml_sys as sys;

use super::{DType, Scope, shape::Shape};

/// What the vector loads of GPU kernels want of an address.
pub(super) const ROW_ALIGNMENT: usize = 16;

/// A value in a graph under construction: cheap to copy, computed when the graph runs.
#[derive(Clone, Copy)]
pub struct Tensor<'g> {
    pub(super) ptr: NonNull<sys::ggml_tensor>,
    pub(super) rank: u8,
    pub(super) scope: &'g Scope,
}

impl<'g> Tensor<'g> {
    /// The graph it belongs to.
    pub fn scope(self) -> &'g Scope {
        self.scope
    }

    /// Number of axes.
    pub fn rank(self) -> usize {
        self.rank as usize
    }

    /// Extents in the reader's order.
    pub fn shape(self) -> Vec<usize> {
        self.extents().as_slice().to_vec()
    }

    /// The extents as an array; a mistake (and ones) if there are not `N` of them.
    pub fn dims<const N: usize>(self) -> [usize; N] {
        let extents = self.extents();
        <[usize; N]>::try_from(extents.as_slice()).unwrap_or_else(|_| {
            self.scope
                .mistake("dims", format!("{N} axes wanted, found {extents}"));
            [1; N]
        })
    }

    /// The extent of an axis; negative axes count from the last.
    pub fn dim(self, axis: isize) -> usize {
        let extents = self.extents();
        match axis_of(axis, extents.rank()) {
            Some(axis) => extents.as_slice()[axis],
            None => {
                self.scope
                    .mistake("dim", format!("no axis {axis} in {extents}"));
                1
            }
        }
    }

    /// How the values are stored.
    pub fn dtype(self) -> DType {
        // SAFETY: the tensor lives as long as its scope or its buffer, which the scope keeps.
        let id = unsafe { (*self.ptr.as_ptr()).type_ };
        DType::from_id(id).unwrap_or(DType::F32)
    }

    pub(super) fn extents(self) -> Shape {
        Shape::from_ggml(&self.ne(), self.rank())
    }

    /// ggml's reversed extents.
    pub(super) fn ne(self) -> [i64; 4] {
        // SAFETY: as in `dtype`.
        unsafe { (*self.ptr.as_ptr()).ne }
    }

    /// Byte steps, in ggml's order.
    pub(super) fn nb(self) -> [usize; 4] {
        // SAFETY: as in `dtype`.
        unsafe { (*self.ptr.as_ptr()).nb }
    }

    /// Whether the values lie densely in the order of the axes. ggml's own test leaves the step of
    /// an axis of extent one open, yet its operators demand the right one.
    pub(super) fn is_contiguous(self) -> bool {
        let (ne, nb) = (self.ne(), self.nb());
        let row = self.dtype().row_bytes(ne[0] as usize).unwrap_or(0);
        let packed = [row, row * ne[1] as usize, row * (ne[1] * ne[2]) as usize];
        nb[0] == self.dtype().block_bytes() && nb[1..] == packed
    }

    pub(super) fn unary(
        self,
        make: unsafe extern "C" fn(
            *mut sys::ggml_context,
            *mut sys::ggml_tensor,
        ) -> *mut sys::ggml_tensor,
    ) -> Tensor<'g> {
        // SAFETY: element-wise functions of one tensor take any shape and type that `Tensor`
        // can have.
        self.scope
            .emit(self.rank(), |ctx| unsafe { make(ctx, self.ptr.as_ptr()) })
    }

    /// The same values, densely packed in the order of the axes.
    pub fn contiguous(self) -> Tensor<'g> {
        if self.is_contiguous() {
            return self;
        }
        // SAFETY: as in `dtype`.
        if unsafe { sys::ggml_is_contiguous(self.ptr.as_ptr()) } {
            return self.reshaped(self.extents());
        }
        self.unary(sys::ggml_cont)
    }

    /// The same values with each row packed, as some operators want.
    pub(super) fn packed_rows(self) -> Tensor<'g> {
        match self.nb()[0] == self.dtype().block_bytes() {
            true => self,
            false => self.contiguous(),
        }
    }

    /// The same values with packed rows, where a GPU's kernels of products and attention can read
    /// them: in pieces of [`ROW_ALIGNMENT`] bytes, from addresses that are multiples of it. Of other
    /// rows they read wrong values, or end the process. Blocks of quantised values are read as they
    /// lie.
    pub(super) fn aligned_rows(self) -> Tensor<'g> {
        if self.dtype().is_quantized() {
            return self.packed_rows();
        }
        // SAFETY: a live tensor.
        let offset = unsafe { (*self.ptr.as_ptr()).view_offs };
        if !offset.is_multiple_of(ROW_ALIGNMENT) {
            return self.unary(sys::ggml_cont);
        }
        let aligned = |bytes: &usize| bytes.is_multiple_of(ROW_ALIGNMENT);
        match self.nb()[1..].iter().all(aligned) {
            true => self.packed_rows(),
            false => self.contiguous(),
        }
    }

    /// The same values under another shape with as many elements.
    pub fn reshape(self, shape: &[usize]) -> Tensor<'g> {
        let wanted = Shape::new(shape).filter(|s| {
            let row = s.ggml()[0] as usize;
            s.count() == self.extents().count() && row.is_multiple_of(self.dtype().block_len())
        });
        match wanted {
            Some(wanted) => self.contiguous().reshaped(wanted),
            None => self
                .scope
                .mistake("reshape", format!("{self:?} to {shape:?}")),
        }
    }

    /// Another shape over packed values.
    fn reshaped(self, wanted: Shape) -> Tensor<'g> {
        let ne = wanted.ggml();
        // SAFETY: packed as ggml understands it, and the element counts agree.
        self.scope.emit(wanted.rank(), |ctx| unsafe {
            sys::ggml_reshape_4d(ctx, self.ptr.as_ptr(), ne[0], ne[1], ne[2], ne[3])
        })
    }

    /// The axes in the order `order` (axis `i` of the result is axis `order[i]` of this).
    pub fn permute(self, order: &[usize]) -> Tensor<'g> {
        let rank = self.rank();
        let mut seen = [false; 4];
        let valid = order.len() == rank
            && order
                .iter()
                .all(|&axis| axis < rank && !std::mem::replace(&mut seen[axis], true));
        // Blocks lie along the last axis, which therefore stays the last.
        let whole = !self.dtype().is_quantized() || order.last() == Some(&(rank - 1));
        if !valid || !whole {
            return self
                .scope
                .mistake("permute", format!("{self:?} by {order:?}"));
        }
        // ggml wants, for each of its source axes, where that axis goes.
        let mut to = [0, 1, 2, 3];
        for (target, &source) in order.iter().enumerate() {
            to[rank - 1 - source] = (rank - 1 - target) as i32;
        }
        // SAFETY: `to` is a permutation of 0..4.
        self.scope.emit(rank, |ctx| unsafe {
            sys::ggml_permute(ctx, self.ptr.as_ptr(), to[0], to[1], to[2], to[3])
        })
    }

    /// The last two axes exchanged.
    pub fn transpose(self) -> Tensor<'g> {
        let mut order: Vec<usize> = (0..self.rank()).collect();
        if self.rank() < 2 {
            return self.scope.mistake(
                "transpose",
                format!("needs two axes, found {}", self.extents()),
            );
        }
        order.swap(self.rank() - 2, self.rank() - 1);
        self.permute(&order)
    }

    /// `len` entries of an axis from `start` on, without copying.
    pub fn slice(self, axis: isize, start: usize, len: usize) -> Tensor<'g> {
        let extents = self.extents();
        let fits = axis_of(axis, self.rank()).filter(|&a| {
            len > 0
                && start
                    .checked_add(len)
                    .is_some_and(|end| end <= extents.as_slice()[a])
        });
        let Some(axis) = fits else {
            return self.scope.mistake(
                "slice",
                format!("{start}..{start}+{len} of axis {axis} in {extents}"),
            );
        };
        let g = self.rank() - 1 - axis;
        if g == 0 && self.dtype().is_quantized() {
            return self.scope.mistake(
                "slice",
                format!("the last axis of {self:?} is packed in blocks"),
            );
        }
        let (mut ne, nb) = (self.ne(), self.nb());
        ne[g] = len as i64;
        let offset = start * nb[g];
        // SAFETY: the range was checked against the extent, so the view stays inside the tensor;
        // ggml gives every view packed rows, which ours may not have.
        let part = self.scope.emit(self.rank(), |ctx| unsafe {
            let view = sys::ggml_view_4d(
                ctx,
                self.ptr.as_ptr(),
                ne[0],
                ne[1],
                ne[2],
                ne[3],
                nb[1],
                nb[2],
                nb[3],
                offset,
            );
            (*view).nb[0] = nb[0];
            view
        });
        match part.readable() {
            true => part,
            false => part.unary(sys::ggml_cont),
        }
    }

    /// Whether every operator of the device can read it where it lies.
    fn readable(self) -> bool {
        // SAFETY: a live tensor.
        let offset = unsafe { (*self.ptr.as_ptr()).view_offs };
        offset.is_multiple_of(self.scope.device().0.view_alignment)
    }

    /// The last axis as two, `[parts, extent / parts]`, without copying: a row of all heads
    /// becomes `[head, width]`.
    pub fn split_last(self, parts: usize) -> Tensor<'g> {
        let width = self.dim(-1);
        let plain = self.nb()[0] == self.dtype().block_bytes() && !self.dtype().is_quantized();
        if self.rank() > 3 || parts == 0 || !width.is_multiple_of(parts) || !plain {
            return self
                .scope
                .mistake("split_last", format!("{self:?} in {parts}"));
        }
        let (ne, nb) = (self.ne(), self.nb());
        let each = width / parts;
        // SAFETY: the same elements at the same places, with one axis more.
        self.scope.emit(self.rank() + 1, |ctx| unsafe {
            sys::ggml_view_4d(
                ctx,
                self.ptr.as_ptr(),
                each as i64,
                parts as i64,
                ne[1],
                ne[2],
                each * nb[0],
                nb[1],
                nb[2],
                0,
            )
        })
    }

    /// An axis cut in `parts` equal pieces.
    pub fn split<const N: usize>(self, axis: isize) -> [Tensor<'g>; N] {
        let extent = self.dim(axis);
        if !extent.is_multiple_of(N) {
            self.scope
                .mistake("split", format!("axis {axis} of {} in {N}", self.extents()));
        }
        let each = (extent / N.max(1)).max(1);
        std::array::from_fn(|i| self.slice(axis, i * each, each))
    }

    /// This, then `other`, along an axis.
    pub fn concat(self, other: Tensor<'g>, axis: isize) -> Tensor<'g> {
        let (a, b) = (self.extents(), other.extents());
        let fits = axis_of(axis, a.rank()).filter(|&axis| {
            let mut joined = a.ggml();
            joined[a.rank() - 1 - axis] += b.ggml()[a.rank() - 1 - axis];
            a.rank() == b.rank()
                && self.dtype() == other.dtype()
                && self.dtype().is_element()
                && (0..a.rank()).all(|i| i == axis || a.as_slice()[i] == b.as_slice()[i])
                && Shape::countable(&joined)
        });
        let Some(axis) = fits else {
            return self.scope.mistake(
                "concat",
                format!(
                    "{} {a} and {} {b} along {axis}",
                    self.dtype(),
                    other.dtype()
                ),
            );
        };
        let dim = (a.rank() - 1 - axis) as i32;
        let (a, b) = (self.contiguous(), other.contiguous());
        // SAFETY: types and all other extents agree; plain types that ggml joins.
        self.scope.emit(self.rank(), |ctx| unsafe {
            sys::ggml_concat(ctx, a.ptr.as_ptr(), b.ptr.as_ptr(), dim)
        })
    }

    /// Zeros before and after along an axis (f32).
    pub fn pad(self, axis: isize, before: usize, after: usize) -> Tensor<'g> {
        if before == 0 && after == 0 {
            return self;
        }
        let Some(at) = axis_of(axis, self.rank()).filter(|_| self.dtype() == DType::F32) else {
            return self.scope.mistake(
                "pad",
                format!("axis {axis} of {} {}", self.dtype(), self.extents()),
            );
        };
        let g = self.rank() - 1 - at;
        let ends = (i32::try_from(before), i32::try_from(after));
        let mut padded = self.ne();
        let (Ok(lo), Ok(hi)) = ends else {
            return self
                .scope
                .mistake("pad", format!("{before} and {after} are beyond 32 bits"));
        };
        padded[g] += i64::from(lo) + i64::from(hi);
        if !Shape::countable(&padded) {
            return self
                .scope
                .mistake("pad", format!("{self:?} by {before} and {after}"));
        }
        let x = self.contiguous();
        // With the axes behind it, the axis is one long row: CUDA's and HIP's kernel takes rows of
        // any length, but only 65535 of them.
        let inner: i64 = padded[..g].iter().product();
        let whole = Shape::from_ggml(&padded, self.rank());
        if g > 0 && padded[g].saturating_mul(inner) <= i64::from(i32::MAX) {
            let rows: i64 = padded[g + 1..].iter().product();
            let flat = [rows as usize, (self.ne()[g] * inner) as usize];
            let [lo, hi] = [lo, hi].map(|n| n * inner as i32);
            return x.reshape(&flat).pad_ggml(0, lo, hi).reshaped(whole);
        }
        x.pad_ggml(g, lo, hi)
    }

    /// Zeros before and after along ggml's axis `g` of packed f32 values.
    fn pad_ggml(self, g: usize, before: i32, after: i32) -> Tensor<'g> {
        let mut p = [0i32; 8];
        (p[2 * g], p[2 * g + 1]) = (before, after);
        // SAFETY: f32, packed, non-negative paddings.
        self.scope.emit(self.rank(), |ctx| unsafe {
            sys::ggml_pad_ext(
                ctx,
                self.ptr.as_ptr(),
                p[0],
                p[1],
                p[2],
                p[3],
                p[4],
                p[5],
                p[6],
                p[7],
            )
        })
    }

    /// The last axis extended by mirroring at its ends, the end values not repeated (f32).
    pub fn pad_reflect(self, before: usize, after: usize) -> Tensor<'g> {
        let extent = self.dim(-1);
        let most = extent.min(i32::MAX as usize);
        if before >= most || after >= most || self.dtype() != DType::F32 {
            return self.scope.mistake(
                "pad_reflect",
                format!(
                    "{before} and {after} of {} {}",
                    self.dtype(),
                    self.extents()
                ),
            );
        }
        let x = self.contiguous();
        // SAFETY: f32, packed, paddings below the extent.
        self.scope.emit(self.rank(), |ctx| unsafe {
            sys::ggml_pad_reflect_1d(ctx, x.ptr.as_ptr(), before as i32, after as i32)
        })
    }

    /// Repeated along each axis of extent one until it has `shape` (floats and i32).
    pub fn broadcast(self, shape: &[usize]) -> Tensor<'g> {
        let wanted = Shape::new(shape).filter(|s| s.takes(&self.extents()));
        let repeats = self.dtype().is_float() || self.dtype() == DType::I32;
        let Some(wanted) = wanted.filter(|_| repeats) else {
            return self
                .scope
                .mistake("broadcast", format!("{self:?} to {shape:?}"));
        };
        let ne = wanted.ggml();
        let x = self.packed_rows();
        // SAFETY: packed rows of a type that ggml repeats; each extent is one or the wanted one.
        self.scope.emit(wanted.rank(), |ctx| unsafe {
            sys::ggml_repeat_4d(ctx, x.ptr.as_ptr(), ne[0], ne[1], ne[2], ne[3])
        })
    }

    /// The same values stored as another float type; quantised ones are unpacked.
    pub fn cast(self, dtype: DType) -> Tensor<'g> {
        if dtype == self.dtype() {
            return self;
        }
        if !dtype.is_float() || !self.dtype().reads_as_f32() {
            return self.scope.mistake("cast", format!("{self:?} to {dtype}"));
        }
        if self.dtype().is_quantized() && dtype != DType::F32 {
            return self.cast(DType::F32).cast(dtype);
        }
        self.convert(dtype)
    }

    pub(super) fn convert(self, dtype: DType) -> Tensor<'g> {
        // SAFETY: the callers pass types that ggml copies between.
        self.scope.emit(self.rank(), |ctx| unsafe {
            sys::ggml_cast(ctx, self.ptr.as_ptr(), dtype.id())
        })
    }
}

/// The axis that a number from the front (or, negative, from the back) means.
pub(super) fn axis_of(axis: isize, rank: usize) -> Option<usize> {
    let axis = if axis < 0 { axis + rank as isize } else { axis };
    usize::try_from(axis).ok().filter(|&a| a < rank)
}

impl std::fmt::Debug for Tensor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.dtype(), self.extents())
    }
}
