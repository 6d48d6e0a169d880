//! Building blocks that more than one model uses.

mod adaptive;
mod attention;
mod conv;
mod coupling;
mod depthwise;
mod dilated;
mod doubling;
pub mod durations;
mod hifi_gan;
mod istft_head;
mod linear;
mod lstm;
mod norm;
mod plane;
mod spline;
mod wavenet;

pub use adaptive::{AdaIn, AdaLayerNorm};
pub use attention::RelativeAttention;
pub use conv::{Conv, ConvSize, Upsample, UpsampleSize};
pub use coupling::CouplingFlow;
pub use depthwise::Depthwise;
pub use dilated::DilatedStack;
pub use doubling::{DepthwiseDouble, twice};
pub use hifi_gan::{HifiGan, HifiGanSize};
pub use istft_head::IstftHead;
pub use linear::{Linear, Turn};
pub use lstm::BiLstm;
pub use norm::LayerNorm;
pub use plane::{PlaneConv, PlaneUpsample, PlaneUpsampleSize};
pub use spline::Spline;
pub use wavenet::{WaveNet, WaveNetSize};
