//! VITS: conditional variational autoencoder with adversarial learning for end-to-end
//! text-to-speech (Kim et al. 2021, <https://arxiv.org/abs/2106.06103>), in the two forms in which
//! it is published: Piper's voices (<https://github.com/OHF-Voice/piper1-gpl>, each with a licence
//! of its own) and MMS (<https://arxiv.org/abs/2305.13516>, CC-BY-NC 4.0).
//!
//! ```text
//!   symbols [n]                          noise [n, 2]
//!      |                                    |
//!   table                                spline layer  <- dilated stack of hidden states
//!   +- relative attention -+ blocks         |  (3 times)
//!   +- conv, ReLU, conv ---+             durations [n]
//!      |          \____________________/    |
//!   means, deviations [n, c]                |
//!      |---------- each for its duration ---|
//!   + noise [frames, c]
//!      |
//!   coupling layer (WaveNet), 4 times, backwards
//!      |
//!   HiFi-GAN: upsampling, residual blocks
//!      |
//!   samples [frames * hop]
//! ```
//!
//! `net` is the figure, `size` what shapes it, `names` which tensor is which; `machine` runs it;
//! `symbols` turns phonemes or letters into numbers; `voice` speaks.
#![forbid(unsafe_code)]

pub mod config;
pub mod machine;
mod model;
pub mod names;
#[allow(missing_docs)] // the figure above and the field comments name the boxes
pub mod net;
pub mod size;
pub mod symbols;
mod voice;

pub use audiocpp::engine::LoadError;
pub use model::{Piper, PiperModel, open};
pub use voice::Voice;
