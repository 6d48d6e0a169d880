//! Building blocks that more than one model uses.

mod attention;
mod conv;
mod coupling;
mod dilated;
pub mod durations;
mod hifi_gan;
mod linear;
mod norm;
mod spline;
mod wavenet;

pub use attention::RelativeAttention;
pub use conv::{Conv, ConvSize, Upsample, UpsampleSize};
pub use coupling::CouplingFlow;
pub use dilated::DilatedStack;
pub use hifi_gan::{HifiGan, HifiGanSize};
pub use linear::{Linear, Turn};
pub use norm::LayerNorm;
pub use spline::Spline;
pub use wavenet::{WaveNet, WaveNetSize};
