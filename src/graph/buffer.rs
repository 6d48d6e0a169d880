//! Tensors that stay on a device between graphs: weights, caches, tables.

use std::{
    ffi::CString,
    ptr::{self, NonNull},
    sync::{Arc, OnceLock},
};

use ggml_sys as sys;

use super::{DType, Device, Element, GraphError, device::Opened, guard::MAX_BYTES, shape::Shape};

/// Device memory that holds a set of [`DeviceTensor`]s; freed with the last of them.
#[derive(Clone)]
pub struct Buffer(Arc<Memory>);

impl Buffer {
    /// Bytes allocated on the device.
    pub fn bytes(&self) -> usize {
        // SAFETY: the buffer lives as long as `self`.
        self.0.memory.get().map_or(0, |memory| unsafe {
            sys::ggml_backend_buffer_get_size(memory.as_ptr())
        })
    }

    /// Whether both are the same memory.
    pub(super) fn is(&self, other: &Buffer) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

struct Memory {
    context: NonNull<sys::ggml_context>,
    /// Empty while the tensors are being declared.
    memory: OnceLock<NonNull<sys::ggml_backend_buffer>>,
    device: Arc<Opened>,
}

// SAFETY: the tensors' descriptions are constant once allocated, and their contents are touched
// only under the device's lock.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        let _busy = self.device.lock();
        // SAFETY: made by `BufferBuilder`, freed once; every user holds an `Arc` of this.
        unsafe {
            if let Some(memory) = self.memory.get() {
                sys::ggml_backend_buffer_free(memory.as_ptr());
            }
            sys::ggml_free(self.context.as_ptr());
        }
    }
}

/// A tensor that lives on a device, with its name, type and shape. Clones share the contents.
#[derive(Clone)]
pub struct DeviceTensor {
    pub(super) tensor: NonNull<sys::ggml_tensor>,
    name: Arc<str>,
    dtype: DType,
    shape: Shape,
    memory: Arc<Memory>,
}

// SAFETY: see `Memory`.
unsafe impl Send for DeviceTensor {}
// SAFETY: see `Memory`.
unsafe impl Sync for DeviceTensor {}

/// Declares tensors, then gives all of them memory in one allocation.
pub struct BufferBuilder {
    memory: Arc<Memory>,
    declared: usize,
    bytes: usize,
    capacity: usize,
    weights: bool,
}

impl BufferBuilder {
    /// For up to `capacity` tensors of state that graphs read and write (caches, tables).
    pub fn new(device: &Device, capacity: usize) -> BufferBuilder {
        Self::with_usage(device, capacity, false)
    }

    /// For up to `capacity` weights, which graphs only read.
    pub fn weights(device: &Device, capacity: usize) -> BufferBuilder {
        Self::with_usage(device, capacity, true)
    }

    fn with_usage(device: &Device, capacity: usize, weights: bool) -> BufferBuilder {
        let params = sys::ggml_init_params {
            // SAFETY: returns a constant.
            mem_size: (capacity + 1) * unsafe { sys::ggml_tensor_overhead() },
            mem_buffer: ptr::null_mut(),
            no_alloc: true,
        };
        // SAFETY: a context without memory of its own for tensor data; it returns null only for
        // a failed malloc of this small size, where nothing can be done.
        let context = NonNull::new(unsafe { sys::ggml_init(params) }).expect("malloc of a few KiB");
        BufferBuilder {
            memory: Arc::new(Memory {
                context,
                memory: OnceLock::new(),
                device: device.0.clone(),
            }),
            declared: 0,
            bytes: 0,
            capacity,
            weights,
        }
    }

    /// Declares a tensor. It can be used once [`allocate`](Self::allocate) has run.
    ///
    /// # Errors
    /// [`GraphError::Tensor`] if ggml cannot hold this shape in this type, or if more tensors
    /// are declared than announced.
    pub fn declare(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[usize],
    ) -> Result<DeviceTensor, GraphError> {
        let bad = |problem: String| GraphError::Tensor {
            name: name.to_owned(),
            problem,
        };
        let extents = Shape::new(shape).ok_or_else(|| {
            bad(format!(
                "shape {shape:?} has a zero, more than 4 axes or too many elements"
            ))
        })?;
        let row = extents.ggml()[0] as usize;
        let Some(row_bytes) = dtype.row_bytes(row) else {
            return Err(bad(format!(
                "rows of {row} values do not fill the {}-value blocks of {dtype}",
                dtype.block_len()
            )));
        };
        if self.declared == self.capacity {
            return Err(bad(format!(
                "only {} tensors were announced",
                self.capacity
            )));
        }
        if self.memory.memory.get().is_some() {
            return Err(bad("declared after its buffer was allocated".into()));
        }
        // SAFETY: the context has room (checked above) and the shape is valid.
        let tensor = unsafe {
            let tensor = sys::ggml_new_tensor(
                self.memory.context.as_ptr(),
                dtype.id(),
                extents.rank().max(1) as i32,
                extents.ggml().as_ptr(),
            );
            // ggml names nameless leaves while it plans a graph; this one may be in two at once.
            let text = match CString::new(name) {
                Ok(text) if !name.is_empty() => text,
                _ => c"stored".to_owned(),
            };
            sys::ggml_set_name(tensor, text.as_ptr());
            NonNull::new(tensor).expect("ggml_new_tensor aborts rather than return null")
        };
        self.declared += 1;
        self.bytes = self
            .bytes
            .saturating_add(row_bytes * (extents.count() / row));
        Ok(DeviceTensor {
            tensor,
            name: name.into(),
            dtype,
            shape: extents,
            memory: self.memory.clone(),
        })
    }

    /// Gives every declared tensor its memory; state is zero-filled, weights are not.
    ///
    /// # Errors
    /// [`GraphError::OutOfMemory`].
    pub fn allocate(self) -> Result<Buffer, GraphError> {
        let device = &self.memory.device;
        if self.declared == 0 {
            return Ok(Buffer(self.memory.clone()));
        }
        let busy = device.lock();
        let memory = if self.bytes > MAX_BYTES {
            ptr::null_mut()
        } else {
            let context = self.memory.context.as_ptr();
            // SAFETY: the context holds unallocated tensors only; `main` is alive.
            unsafe { sys::ggml_backend_alloc_ctx_tensors(context, device.main.as_ptr()) }
        };
        let Some(memory) = NonNull::new(memory) else {
            return Err(GraphError::OutOfMemory {
                device: device.name().to_owned(),
                what: if self.weights {
                    "the weights"
                } else {
                    "the model's state"
                }
                .into(),
                mib: self.bytes.div_ceil(1 << 20),
            });
        };
        // SAFETY: a fresh buffer of this device.
        unsafe {
            if self.weights {
                sys::ggml_backend_buffer_set_usage(
                    memory.as_ptr(),
                    sys::GGML_BACKEND_BUFFER_USAGE_WEIGHTS,
                );
            } else {
                sys::ggml_backend_buffer_clear(memory.as_ptr(), 0);
            }
        }
        drop(busy);
        self.memory
            .memory
            .set(memory)
            .expect("`allocate` consumes the only builder");
        Ok(Buffer(self.memory.clone()))
    }
}

impl DeviceTensor {
    /// The name it was declared with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How its values are stored.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Its extents in the reader's order.
    pub fn shape(&self) -> &[usize] {
        self.shape.as_slice()
    }

    /// Bytes it takes.
    pub fn bytes(&self) -> usize {
        // SAFETY: the description is constant and alive.
        unsafe { sys::ggml_nbytes(self.tensor.as_ptr()) }
    }

    /// The memory it lives in.
    pub fn buffer(&self) -> Buffer {
        Buffer(self.memory.clone())
    }

    pub(super) fn rank(&self) -> usize {
        self.shape.rank()
    }

    /// Whether it was stored through this device (or a clone of it).
    pub(super) fn on(&self, device: &Device) -> bool {
        Arc::ptr_eq(&self.memory.device, &device.0)
    }

    /// Overwrites the whole tensor.
    ///
    /// # Errors
    /// [`GraphError::Type`] or [`GraphError::Tensor`] if type or element count differ.
    pub fn write<T: Element>(&self, values: &[T]) -> Result<(), GraphError> {
        self.expect_type::<T>()?;
        self.write_bytes(bytemuck::cast_slice(values))
    }

    /// Overwrites the whole tensor with bytes in its own storage type.
    ///
    /// # Errors
    /// [`GraphError::Tensor`] if the size differs.
    pub fn write_bytes(&self, bytes: &[u8]) -> Result<(), GraphError> {
        if bytes.len() != self.bytes() {
            return Err(self.problem(format!(
                "{} bytes given, {} wanted",
                bytes.len(),
                self.bytes()
            )));
        }
        self.write_bytes_at(0, bytes)
    }

    /// Overwrites the bytes from `offset` on, in the tensor's own storage type.
    ///
    /// # Errors
    /// [`GraphError::Tensor`] if they do not fit.
    pub fn write_bytes_at(&self, offset: usize, bytes: &[u8]) -> Result<(), GraphError> {
        let fits = offset
            .checked_add(bytes.len())
            .is_some_and(|end| end <= self.bytes());
        if !fits {
            return Err(self.problem(format!(
                "bytes {offset}..{offset}+{} given, it has {}",
                bytes.len(),
                self.bytes()
            )));
        }
        self.expect_memory()?;
        let _busy = self.memory.device.lock();
        // SAFETY: the range lies inside the tensor (checked above), and the lock is held.
        unsafe {
            sys::ggml_backend_tensor_set(
                self.tensor.as_ptr(),
                bytes.as_ptr().cast(),
                offset,
                bytes.len(),
            )
        };
        Ok(())
    }

    /// Overwrites `values.len()` elements from element `start` on, in storage order.
    ///
    /// # Errors
    /// [`GraphError::Type`] or [`GraphError::Tensor`] if they do not fit.
    pub fn write_at<T: Element>(&self, start: usize, values: &[T]) -> Result<(), GraphError> {
        self.expect_type::<T>()?;
        self.write_bytes_at(
            start.saturating_mul(size_of::<T>()),
            bytemuck::cast_slice(values),
        )
    }

    /// The whole tensor, in storage order.
    ///
    /// # Errors
    /// [`GraphError::Type`] if `T` is not its type.
    pub fn read<T: Element>(&self) -> Result<Vec<T>, GraphError> {
        self.expect_type::<T>()?;
        self.expect_memory()?;
        let mut values = vec![T::zeroed(); self.shape.count()];
        let _busy = self.memory.device.lock();
        // SAFETY: `values` has the tensor's size, and the lock is held.
        unsafe {
            sys::ggml_backend_tensor_get(
                self.tensor.as_ptr(),
                values.as_mut_ptr().cast(),
                0,
                self.bytes(),
            )
        };
        Ok(values)
    }

    /// Sets every byte to zero.
    ///
    /// # Errors
    /// [`GraphError::Tensor`] if its buffer was not allocated yet.
    pub fn clear(&self) -> Result<(), GraphError> {
        self.expect_memory()?;
        let _busy = self.memory.device.lock();
        // SAFETY: the range is the whole tensor, and the lock is held.
        unsafe { sys::ggml_backend_tensor_memset(self.tensor.as_ptr(), 0, 0, self.bytes()) };
        Ok(())
    }

    pub(super) fn expect_memory(&self) -> Result<(), GraphError> {
        if self.memory.memory.get().is_some() {
            return Ok(());
        }
        Err(self.problem("used before its buffer was allocated".into()))
    }

    fn expect_type<T: Element>(&self) -> Result<(), GraphError> {
        if T::DTYPE == self.dtype {
            return Ok(());
        }
        Err(GraphError::Type {
            name: self.name.to_string(),
            found: self.dtype,
            wanted: T::DTYPE,
        })
    }

    fn problem(&self, problem: String) -> GraphError {
        GraphError::Tensor {
            name: self.name.to_string(),
            problem,
        }
    }
}

impl std::fmt::Debug for DeviceTensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.name, self.dtype, self.shape)
    }
}
