//! Whisper: robust speech recognition by large-scale weak supervision
//! (Radford et al. 2022, <https://arxiv.org/abs/2212.04356>). Weights MIT.
//!
//! ```text
//!   samples 16 kHz -> log-mel [2 frames, 80 or 128]
//!          |                                     tokens [n]
//!   conv1 (3) - GELU                                |
//!   conv2 (3, every 2nd) - GELU              token + position table
//!   + sinusoids                                     |
//!          |                                 +- self-attention (cached) -+
//!   +- self-attention -+  blocks             +- cross-attention to audio -+ blocks
//!   +- MLP (GELU) -----+                     +- MLP (GELU) --------------+
//!   norm                                     norm
//!          |                                        |
//!   features [frames, d] --- keys, values ---> scores = token table x hidden
//! ```
//!
//! `net` is the figure; `machine` runs it; `search` picks tokens under `rules`; `transcribe`
//! walks through long audio.
#![forbid(unsafe_code)]

pub mod alignment;
pub mod alignment_heads;
pub mod config;
pub mod gates;
pub mod languages;
mod level;
pub mod loop_guard;
pub mod machine;
mod model;
pub mod names;
#[allow(missing_docs)] // the figure above and the field comments name the boxes
pub mod net;
mod rules;
mod search;
mod segments;
pub mod split;
mod stages;
pub mod tokenizer;
mod transcribe;
pub mod words;

use std::path::PathBuf;

use audiocpp::{
    engine::{Error, ErrorClass},
    graph::GraphError,
    weights,
};

pub use model::{Whisper, WhisperModel, open, open_net};

/// Why a Whisper model could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The weights, or the device that should hold them.
    #[error(transparent)]
    Weights(#[from] weights::LoadError),
    /// The configuration.
    #[error("{}: {problem}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The vocabulary.
    #[error(transparent)]
    Tokenizer(#[from] tokenizer::TokenizerError),
    /// The device.
    #[error(transparent)]
    Device(#[from] GraphError),
}

impl From<weights::Error> for LoadError {
    fn from(error: weights::Error) -> Self {
        LoadError::Weights(error.into())
    }
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Device(e) | LoadError::Weights(weights::LoadError::Device(e)) => e.into(),
            other => Error::from_error(ErrorClass::Model, &other),
        }
    }
}
