//! hibari: small English speech synthesis, distilled from Kokoro (Maureese Williams,
//! <https://github.com/MMWilliams/hibari>). Code and weights Apache-2.0.
//!
//! ```text
//!   symbols [n]
//!      |--------------------------------.
//!   table                             table
//!   ConvNeXt (5 taps), twice          ConvNeXt, twice
//!   one attention block, 6 times      one attention block, 4 times
//!   norm                              norm
//!      |---- conv, GELU, linear: durations      |
//!   each for its duration [m]         each for twice its duration [2 m]
//!   linear, ConvNeXt (7 taps), 6 times          |
//!   linear: two pitches, two loudnesses ----> beside each other
//!                                     conv (7), ConvNeXt (7 taps), 8 times
//!                                     norm, linear
//!                                               |
//!   for each 12.5 ms and bin: size and turn of the voice, size of noise, size and phase of the rest
//!                                               |
//!   pulses at the pitch -> spectrum -> turned and sized, plus noise, plus the rest -> samples
//! ```
//!
//! `net` is the figure down to its last line, which is `sound`; `machine` runs both; `names` finds the
//! weights in the published file, where they are 8 bits wide; `voice` speaks.
#![forbid(unsafe_code)]

pub mod machine;
mod model;
pub mod names;
#[allow(missing_docs)] // the figure above and the field comments name the boxes
pub mod net;
pub mod size;
pub mod sound;
mod voice;

pub use audiocpp::engine::LoadError;
pub use model::{Hibari, HibariModel, open};
pub use voice::Voice;
