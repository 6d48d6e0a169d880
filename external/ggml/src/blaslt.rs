//! The hipBLASLt (cuBLASLt) route of a GPU backend: what stands behind it and what it did. A backend
//! that was built without the route has none of this.
use crate::bindings as ggml;
use std::ffi::{CStr, CString, c_char, c_void};

/// How products of single-precision matrices are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum F32Mode {
    /// In single precision.
    Exact,
    /// In the GPU's reduced-precision mode (TF32), where it has one.
    Fast,
}

/// A function that the backend's registry answers for by name; none if it has none of that name.
fn function(registry: &str, name: &CStr) -> Option<*mut c_void> {
    let registry = CString::new(registry).ok()?;
    // SAFETY: both names are NUL-terminated; a null registry is not used.
    let address = unsafe {
        let found = ggml::ggml_backend_reg_by_name(registry.as_ptr());
        if found.is_null() {
            return None;
        }
        ggml::ggml_backend_reg_get_proc_address(found, name.as_ptr())
    };
    (!address.is_null()).then_some(address)
}

/// # Safety
/// `text` must be null or a NUL-terminated string.
unsafe fn owned(text: *const c_char) -> Option<String> {
    // SAFETY: checked for null; otherwise NUL-terminated by the caller's promise.
    let text = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })?;
    Some(text.to_string_lossy().into_owned())
}

/// The library behind the route with its version, such as `hipBLASLt 1.2.2`; none without a route.
pub fn library(registry: &str) -> Option<String> {
    let address = function(registry, c"audiocpp_blaslt_library")?;
    // SAFETY: the plugin gives this name that signature (external/ggml/blaslt/stats.h) and returns
    // a constant string.
    unsafe {
        let library: unsafe extern "C" fn() -> *const c_char = std::mem::transmute(address);
        owned(library())
    }
}

/// The instruction set of the GPU at `index` of a backend, such as `gfx1151` or `sm_90`, as the
/// vendor's runtime names it; none without a route, or if the runtime does not say.
pub fn gpu_arch(registry: &str, index: u32) -> Option<String> {
    let address = function(registry, c"audiocpp_gpu_arch")?;
    // SAFETY: the plugin gives this name that signature (external/ggml/blaslt/plugin.cpp) and
    // returns null or a text that is never freed.
    unsafe {
        let arch: unsafe extern "C" fn(usize) -> *const c_char = std::mem::transmute(address);
        owned(arch(index as usize))
    }
}

/// Counters of the route with their names, such as `lt_calls` and `blas_calls`; empty without one.
pub fn stats(registry: &str) -> Vec<(String, u64)> {
    let addresses = (
        function(registry, c"audiocpp_blaslt_stats"),
        function(registry, c"audiocpp_blaslt_stat_name"),
    );
    let (Some(stats), Some(name)) = addresses else {
        return Vec::new();
    };
    // SAFETY: the plugin gives these names those signatures; the first writes at most as many
    // values as it is told there is room for and returns how many there are.
    unsafe {
        let stats: unsafe extern "C" fn(*mut u64, usize) -> usize = std::mem::transmute(stats);
        let name: unsafe extern "C" fn(usize) -> *const c_char = std::mem::transmute(name);
        let mut values = vec![0; stats(std::ptr::null_mut(), 0)];
        stats(values.as_mut_ptr(), values.len());
        values
            .into_iter()
            .enumerate()
            .filter_map(|(i, value)| Some((owned(name(i))?, value)))
            .collect()
    }
}

/// Chooses how single-precision products are done, and returns what was in force; none without a
/// route, where the backend does as it likes.
pub fn set_f32(registry: &str, mode: F32Mode) -> Option<F32Mode> {
    let address = function(registry, c"audiocpp_blaslt_f32")?;
    let wanted = match mode {
        F32Mode::Exact => c"exact",
        F32Mode::Fast => c"fast",
    };
    // SAFETY: the plugin gives this name that signature; it reads the text and returns a constant.
    let before = unsafe {
        let choose: unsafe extern "C" fn(*const c_char) -> *const c_char =
            std::mem::transmute(address);
        owned(choose(wanted.as_ptr()))?
    };
    Some(if before == "fast" {
        F32Mode::Fast
    } else {
        F32Mode::Exact
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_without_the_route_says_so() {
        for registry in ["CPU", "no such backend", "a\0b"] {
            assert_eq!(library(registry), None);
            assert!(stats(registry).is_empty());
            assert_eq!(gpu_arch(registry, 0), None);
            assert_eq!(set_f32(registry, F32Mode::Fast), None);
        }
    }
}
