//! Spleeter: a fast and efficient music source separation tool with pre-trained models (Hennequin
//! et al. 2020, <https://doi.org/10.21105/joss.02154>, <https://github.com/deezer/spleeter>, code
//! and weights under the MIT licence).
//!
//! ```text
//!   samples, stereo at 44.1 kHz
//!      |  STFT, 4096 samples every 1024
//!   magnitudes of the lowest 1024 bins, 512 frames at a time [512, 1024, 2]
//!      |
//!   one U-Net for each stem:
//!      conv 5x5 / 2 ---------------------------------> conv 4x4, dilated: logits
//!        norm, act                                 up 5x5 * 2, act, norm
//!        conv 5x5 / 2 ------------ concatenate -->   up 5x5 * 2, act, norm
//!          ... (6 in all)                              ...
//!      |
//!   estimate = magnitudes * sigmoid(logits), or their softmax over the stems
//!   mask = estimate^2 / sum of the stems' estimate^2, nothing (or the average) above
//!      |  mask * STFT, inverse STFT
//!   a stem
//! ```
//!
//! `net` is the figure, `size` tells the published variants apart; `machine` runs it; `frames`
//! goes from samples to bins and back; `separate` does a track.
#![forbid(unsafe_code)]

pub mod frames;
pub mod machine;
mod model;
#[allow(missing_docs)] // the figure above and the field comments name the boxes
pub mod net;
mod separate;
pub mod size;

pub use audiocpp::engine::LoadError;
pub use model::{Spleeter, SpleeterModel, open};
pub use separate::SpleeterStems;
