//! Silero VAD, versions 5 and 6: voice activity detection by a small recurrent network
//! (<https://github.com/snakers4/silero-vad>). Code and weights MIT.
//!
//! ```text
//!   64 samples of before, 512 of now, their last 64 mirrored      (at 8 kHz half of each)
//!          |
//!   convolution with sines and cosines (256 taps, every 128) -> magnitudes [4, 129]
//!          |
//!   conv (3), ReLU              [4, 128]
//!   conv (3, every 2nd), ReLU   [2, 64]
//!   conv (3, every 2nd), ReLU   [1, 64]
//!   conv (3), ReLU              [1, 128]
//!          |
//!   LSTM cell, its state kept from frame to frame
//!          |
//!   ReLU, weighted sum, sigmoid -> probability of speech in these 32 ms
//! ```
//!
//! `net` is the figure down to the gates of the cell; `cell` the rest, which goes frame by frame;
//! `machine` runs both; `names` tells which tensor is which.
#![forbid(unsafe_code)]

mod cell;
pub mod machine;
mod model;
pub mod names;
#[allow(missing_docs)] // the figure above and the field comments name the boxes
pub mod net;

pub use audiocpp::engine::LoadError;
pub use model::{SileroModel, SileroVad, open};
