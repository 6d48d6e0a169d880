//! Open speech and audio models on CPU, NVIDIA, AMD, Vulkan and Metal through ggml.
//!
//! The house has six floors; a module imports only from the floors below it.
//! See `docs/architecture.md` for the picture and the nouns.
#![deny(unsafe_code)]

pub mod audio;
pub mod backend;
pub mod engine;
pub mod graph;
pub mod nn;
pub mod sampling;
pub mod text;
pub mod weights;

/// The version of this library, with the commit that it was built from.
pub fn version() -> &'static str {
    concat!(
        env!("CARGO_PKG_VERSION"),
        " (",
        env!("AUDIOCPP_COMMIT"),
        ")"
    )
}
