//! Kokoro-82M (<https://huggingface.co/hexgrad/Kokoro-82M>, Apache-2.0), a small StyleTTS 2
//! (Li et al. 2023, <https://arxiv.org/abs/2306.07691>) with an iSTFTNet vocoder
//! (<https://arxiv.org/abs/2203.02395>): 24 kHz speech from phonemes and a style vector.
//!
//! ```text
//!   phonemes [n]                                       style [256] = acoustic, prosodic
//!    |        \
//!   PL-BERT    text encoder (convolutions, LSTM)
//!    |                |
//!   duration encoder  |            <- prosodic
//!    |        \       |
//!   LSTM       |      |
//!    |         |      |
//!   durations -+------+--- each for its duration
//!              |      |
//!          shared LSTM|            <- prosodic
//!           |     |   |
//!          F0   energy|
//!           |\    |   |
//!           | decoder blocks       <- acoustic
//!           |         |
//!   harmonics       generator      <- acoustic
//!   and noise ------> (upsampling, residual blocks with snakes)
//!                     |
//!              inverse STFT -> samples
//! ```
//!
//! `net` and `decoder` are the figure, `size` what shapes it; `names` and `onnx` say which tensor
//! is which; `source` makes harmonics and noise; `machine` runs it; `symbols` turns phonemes into
//! numbers; `styles` are the voices; `voice` speaks.
#![forbid(unsafe_code)]

pub mod config;
#[allow(missing_docs)] // the figure above and the field comments name the boxes
pub mod decoder;
pub mod machine;
mod model;
pub mod names;
#[allow(missing_docs)]
pub mod net;
mod onnx;
pub mod size;
pub mod source;
pub mod styles;
pub mod symbols;
mod voice;

pub use audiocpp::engine::LoadError;
pub use model::{Kokoro, KokoroModel, open};
pub use voice::Voice;
