//! ggml 0.26: source, build and bindings.

/// Folder of the libraries and plugins that this build made; exists on the building machine only.
pub const BUILD_LIB_DIR: &str = env!("GGML_BUILD_LIB_DIR");
