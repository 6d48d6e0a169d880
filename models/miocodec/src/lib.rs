//! MioCodec: a speech codec of 25 tokens a second and one vector for the voice
//! (<https://github.com/Aratako/MioCodec>, code under the MIT licence), and voice conversion with
//! it.
//!
//! ```text
//!   samples, 16 kHz
//!      |  WavLM base+
//!      |-- mean of layers 6 and 9 ---------.   |-- mean of layers 1 and 2 -------.
//!      normalised over time                |   ConvNeXt blocks                   |
//!      transformer (near steps only)       |   attentive pooling                 |
//!      conv / 2, FSQ                       |                                     |
//!      |                                                                         |
//!   tokens, 25 a second                                            global vector |
//!      |                                                                         |
//!   transformer, conv * 2, interpolation to frames                               |
//!      |                                                                         |
//!   ResNet blocks                                                                |
//!   transformer, normalised by the global vector  <------------------------------'
//!   ResNet blocks, (44.1 kHz: up-sampler)         or: post-net of convolutions
//!      |                                          |
//!   log magnitudes, phases                        mel spectra
//!      |  inverse STFT                            |  vocoder
//!   samples                                       samples
//! ```
//!
//! `net` is the figure, `transformer`, `global_encoder`, `layers` and `vocoder` (with `activation`)
//! its boxes, `config` what shapes it; `head` makes samples of spectra; `machine` runs the networks
//! on one stretch, `speech` on whole recordings; `model` reads packages.
#![forbid(unsafe_code)]

pub mod activation;
pub mod config;
#[allow(missing_docs)] // the figure above and the field comments name the boxes
pub mod global_encoder;
pub mod head;
#[allow(missing_docs)] // as above
pub mod layers;
pub mod machine;
mod model;
#[allow(missing_docs)] // as above
pub mod net;
mod speech;
#[allow(missing_docs)] // as above
pub mod transformer;
#[allow(missing_docs)] // as above
pub mod vocoder;

pub use audiocpp::engine::LoadError;
pub use model::{MioCodec, MioCodecModel, Sources, build, open};
