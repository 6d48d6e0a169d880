//! Demucs: music source separation (Défossez 2021, Hybrid Spectrogram and Waveform Source Separation,
//! <https://arxiv.org/abs/2111.03600>; Rouard, Massa and Défossez 2023, Hybrid Transformers for Music
//! Source Separation, <https://arxiv.org/abs/2211.08553>; <https://github.com/adefossez/demucs>, code
//! under the MIT licence).
//!
//! ```text
//!   samples [n, channel]                    bins [frequency, frame, channel * 2]
//!      |  less their mean, over their deviation      |
//!   conv / 4, GELU                          conv over frequencies / 4, GELU
//!   + dilated convs (DConv)                 + dilated convs along frames
//!   conv 1, gate  ------------ skips ---    conv 1, gate  (+ frequency embedding, once)
//!      |  4 or 5 times                 |       |  4 or 5 times
//!      |                               |       |
//!   transformer layers: to themselves, to the other branch (v4),
//!   or layers after the branches are one, with LSTMs and local attention (v3)
//!      |                               |       |
//!   + skip, conv 3, gate  <-------------    + skip, conv 3x3, gate
//!   + dilated convs                         + dilated convs
//!   conv * 4, GELU                          conv over frequencies * 4, GELU
//!      |  as often                             |
//!   samples [n, stem * channel]             bins [frequency, frame, stem * channel * 2]
//!      \_______________  + inverse STFT  ______/
//!                            |
//!                          stems
//! ```
//!
//! `net` is the figure, `layers`, `memory` and `transformer` its boxes, `config` what shapes it; `spectrum`
//! goes from samples to bins and back; `machine` runs a network on a segment, `apply` cuts tracks into
//! segments, `separate` runs a bag of networks on a track; `package` reads checkpoints.
#![forbid(unsafe_code)]

pub mod apply;
pub mod config;
#[allow(missing_docs)] // the figure above and the field comments name the boxes
pub mod layers;
pub mod machine;
#[allow(missing_docs)] // as above
pub mod memory;
mod model;
#[allow(missing_docs)] // as above
pub mod net;
pub mod package;
mod separate;
pub mod shifts;
pub mod spectrum;
#[allow(missing_docs)] // as above
pub mod transformer;

pub use audiocpp::engine::LoadError;
pub use model::{Demucs, DemucsModel, open};
pub use separate::DemucsStems;
