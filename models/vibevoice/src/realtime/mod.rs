//! VibeVoice-Realtime (<https://huggingface.co/microsoft/VibeVoice-Realtime-0.5B>, code and weights
//! MIT): speech that begins while the text is still being read.
//!
//! ```text
//!   text, 5 tokens at a time                voice (stored keys and values)
//!     |                                        |
//!   lower language model (no last norm)        |
//!     |                                        |
//!   + type "text"      + type "speech" <-- acoustic connector <--+
//!     |                   |                                      |
//!     +--> upper language model <--------------+                 |
//!            |                                                   |
//!          hidden state, with and without the text               |
//!            |            \                                      |
//!          ends?         diffusion head <- noise                 |
//!                          |                                     |
//!                        latent ---------------------------------+
//!                          |
//!                        acoustic decoder -> 3200 samples, 6 times
//! ```
//!
//! Both language models are one model cut in two; decoder and head are VibeVoice's own.

pub mod machine;
mod model;
#[allow(missing_docs)] // the figure above names the boxes
pub mod net;
pub mod voice;

pub use model::{RealtimeModel, VibeVoiceRealtime, open, speak};
