//! VibeVoice (Peng et al. 2025, <https://arxiv.org/abs/2508.19205>, code and weights MIT): long speech
//! of up to four voices, at 7.5 frames a second.
//!
//! ```text
//!   voices (samples)        script (text)
//!     |                       |
//!   acoustic encoder          |
//!     |                       |
//!   acoustic connector   embeddings       <----- acoustic + semantic connector
//!     |                       |           |             |             |
//!     +-----> language model (Qwen2.5) <--+             |     semantic encoder
//!                   |       |                           |             |
//!                 token   hidden state                  |             |
//!    begin, frame, end      |                           |             |
//!                    diffusion head  <- noise           |             |
//!                    (DPM-Solver++, guided)             |             |
//!                           |                           |             |
//!                         latent -----------------------+             |
//!                           |                                         |
//!                    acoustic decoder ---> 3200 samples --------------+
//! ```
//!
//! `net`, `tokenizer`, `layers` and `head` are the figure, `config` what shapes it, `names` says which
//! tensor is which; `solver` is the path from noise to a latent; `machine` runs it with state on the
//! device, `reader` reads what is long and `rows` shares out the pool of keys and values; `script` makes the prompt, `speech` is the
//! loop, `model` the family; `asr` is VibeVoice-ASR,
//! `realtime` VibeVoice-Realtime.
#![forbid(unsafe_code)]

pub mod asr;
pub mod config;
pub mod head;
pub mod layers;
pub mod machine;
mod model;
pub mod names;
#[allow(missing_docs)] // the figure above and the field comments name the boxes
pub mod net;
pub mod reader;
pub mod realtime;
pub mod rows;
pub mod script;
pub mod solver;
pub mod speech;
pub mod tokenizer;

pub use audiocpp::engine::LoadError;
pub use model::{VibeVoice, VibeVoiceModel, open};
