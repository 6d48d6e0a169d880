//! ggml 0.26: raw bindings, and safe loading of backend plugins.
//!
//! The functions are as ggml's headers declare them; `src/graph` of the root crate wraps them.
#[allow(
    missing_docs,
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case
)]
#[allow(clippy::all)]
mod bindings;
pub use bindings::*;

pub mod blaslt;
pub mod plugins;
pub mod quantize;

unsafe extern "C" {
    fn _exit(code: core::ffi::c_int) -> !;
}

/// Ends the process at once, without the exit handlers of the libraries in it.
///
/// Vendors' runtimes have been seen to hang in theirs. Standard output and error are flushed
/// first; anything else that matters must be done before.
pub fn exit_now(code: u8) -> ! {
    use std::io::Write;
    // A stream that cannot be flushed has nobody at its other end.
    let _ = std::io::stdout().flush();
    let _ = std::io::stderr().flush();
    // SAFETY: C's `_exit` takes any code and does not return.
    unsafe { _exit(code.into()) }
}

/// Folder of the libraries and plugins that this build made; exists on the building machine only.
pub const BUILD_LIB_DIR: &str = env!("GGML_BUILD_LIB_DIR");

/// Sha256 of the headers that `bindings.rs` was made from; `cargo xtask bindings` renews both.
#[cfg(test)]
const HEADERS: [(&str, &str); 5] = [
    (
        "ggml.h",
        "12ee71f99db7db9b353bc02b1fbb57c344ee17c01ac5fb7952b41a637a747ea9",
    ),
    (
        "ggml-alloc.h",
        "d114067f9099c4a0e2bbc0625c676d4894d9cf0ea27168ee072c7de0e71bb51d",
    ),
    (
        "ggml-backend.h",
        "5791edae1fb7622027621d15bc7a160198bd3b75ed8f96d06cb7b85e2b873756",
    ),
    (
        "ggml-cpu.h",
        "316279e004cdeb8e6ef78599acb602bf79a8abdf897fed9fd1914808c1518c6e",
    ),
    (
        "gguf.h",
        "e56714aab702e5ce62ee587a409643c08f7e93e8fbb77f48ef7cc85075f96fa4",
    ),
];

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    #[test]
    fn bindings_match_the_pinned_headers() {
        for (name, wanted) in super::HEADERS {
            let path = std::path::Path::new(env!("GGML_SOURCE_INCLUDE")).join(name);
            let bytes = std::fs::read(&path).expect("the header is readable");
            let found: String = Sha256::digest(&bytes)
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect();
            assert_eq!(found, wanted, "{name} changed: run `cargo xtask bindings`");
        }
    }

    #[test]
    fn the_library_is_the_version_we_bound() {
        // SAFETY: returns a pointer to a static, NUL-terminated string.
        let version = unsafe { std::ffi::CStr::from_ptr(super::ggml_version()) };
        assert_eq!(version.to_str(), Ok(env!("CARGO_PKG_VERSION")));
    }
}
