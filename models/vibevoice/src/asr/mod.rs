//! VibeVoice-ASR (<https://arxiv.org/abs/2601.18184>, code and weights MIT): up to an hour of speech to
//! text with speakers and times.
//!
//! ```text
//!   samples (24 kHz)
//!     |            \
//!   acoustic      semantic
//!   encoder       encoder
//!     |             |
//!   connector     connector        instructions, length, context
//!      \           /                   |
//!       +---> sum (7.5 a second)   embeddings <------+
//!                   |                  |             |
//!                   +--> language model (Qwen2.5) ---+ tokens
//!                                      |
//!                     [{"Start": 0, "End": 2.5, "Speaker": 0, "Content": ...}, ...]
//! ```
//!
//! The encoders and the language model are VibeVoice's own.

pub mod machine;
mod model;
#[allow(missing_docs)] // the figure above names the boxes
pub mod net;
pub mod prompt;
pub mod transcript;

pub use model::{AsrModel, VibeVoiceAsr, open};
