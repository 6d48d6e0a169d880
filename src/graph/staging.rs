//! Page-locked host memory for what goes into a graph and comes out of it.
//!
//! From ordinary memory a GPU's driver copies in two steps and waits for each. From page-locked
//! memory a copy is only queued, so that the inputs of a decoding step cost a few microseconds.

use std::ptr::NonNull;

use ggml_sys as sys;

use super::device::Opened;

type Raw = NonNull<sys::ggml_tensor>;

/// Places begin at multiples of this many bytes.
const ALIGNMENT: usize = 64;
/// Most page-locked bytes of a graph; values beyond are copied from where they lie.
const MAX_BYTES: usize = 16 << 20;

/// A place in page-locked memory for each input and output of a graph.
pub(super) struct Staging {
    backend: NonNull<sys::ggml_backend>,
    buffer: NonNull<sys::ggml_backend_buffer>,
    base: NonNull<u8>,
    inputs: Vec<Option<usize>>,
    outputs: Vec<Option<usize>>,
}

impl Staging {
    /// None on the CPU and on devices without such memory. `inputs` and `outputs` are allocated
    /// tensors and their bytes.
    pub(super) fn new(
        opened: &Opened,
        inputs: &[(Raw, usize)],
        outputs: &[(Raw, usize)],
    ) -> Option<Staging> {
        if opened.main == opened.cpu {
            return None;
        }
        let mut end = 0;
        let mut place = |&(tensor, bytes): &(Raw, usize)| {
            let fits = on_device(opened, tensor) && end + bytes <= MAX_BYTES;
            fits.then(|| {
                let start = end;
                end += bytes.next_multiple_of(ALIGNMENT);
                start
            })
        };
        let inputs: Vec<_> = inputs.iter().map(&mut place).collect();
        let outputs: Vec<_> = outputs.iter().map(&mut place).collect();
        if end == 0 {
            return None;
        }
        // SAFETY: a registered device; a buffer type stays as long as its device; the buffer is
        // checked before its memory is asked for.
        unsafe {
            let kind = sys::ggml_backend_dev_host_buffer_type(opened.device());
            if kind.is_null() {
                return None;
            }
            let buffer = NonNull::new(sys::ggml_backend_buft_alloc_buffer(kind, end))?;
            let base = NonNull::new(sys::ggml_backend_buffer_get_base(buffer.as_ptr()).cast());
            let Some(base) = base else {
                sys::ggml_backend_buffer_free(buffer.as_ptr());
                return None;
            };
            Some(Staging {
                backend: opened.main,
                buffer,
                base,
                inputs,
                outputs,
            })
        }
    }

    /// Queues the copy of `bytes` into the input of this number; whether it has a place.
    pub(super) fn write(&mut self, input: usize, tensor: Raw, bytes: &[u8]) -> bool {
        let Some(place) = self.inputs[input] else {
            return false;
        };
        // SAFETY: the place was made for this tensor's bytes, which the caller checked; only the
        // holder of the device's lock is here. A copy still queued from the last write of the same
        // input may read either value: this one follows it.
        unsafe {
            let place = self.base.as_ptr().add(place);
            place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            let (backend, tensor) = (self.backend.as_ptr(), tensor.as_ptr());
            sys::ggml_backend_tensor_set_async(backend, tensor, place.cast(), 0, bytes.len());
        }
        true
    }

    /// Waits for the queued copies. A computation on the same device follows them by itself; one on
    /// the CPU does not.
    pub(super) fn wait(&self) {
        // SAFETY: the backend outlives every graph of its device.
        unsafe { sys::ggml_backend_synchronize(self.backend.as_ptr()) }
    }

    /// Copies the output of this number into `bytes`; whether it has a place.
    pub(super) fn read(&mut self, output: usize, tensor: Raw, bytes: &mut [u8]) -> bool {
        let Some(place) = self.outputs[output] else {
            return false;
        };
        // SAFETY: as in `write`; the copy is over before the place is read.
        unsafe {
            let place = self.base.as_ptr().add(place);
            let (backend, tensor) = (self.backend.as_ptr(), tensor.as_ptr());
            sys::ggml_backend_tensor_get_async(backend, tensor, place.cast(), 0, bytes.len());
            sys::ggml_backend_synchronize(backend);
            bytes
                .as_mut_ptr()
                .copy_from_nonoverlapping(place, bytes.len());
        }
        true
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        self.wait();
        // SAFETY: made once, freed once; no copy is queued any more.
        unsafe { sys::ggml_backend_buffer_free(self.buffer.as_ptr()) }
    }
}

/// Whether the tensor lies in the device's own memory; queued copies take no other.
fn on_device(opened: &Opened, tensor: Raw) -> bool {
    // SAFETY: a live tensor and a live backend.
    unsafe {
        let buffer = tensor.as_ref().buffer;
        !buffer.is_null()
            && sys::ggml_backend_buffer_get_type(buffer)
                == sys::ggml_backend_get_default_buffer_type(opened.main.as_ptr())
    }
}
