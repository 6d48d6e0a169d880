//! Source separation, apart from the networks: what a network has to do, and what comes of it.

mod choice;
mod lane;
mod network;
mod result;
mod separator;
mod spool;

pub use network::{StemNetwork, StemPlan, TrackLevel};
pub use result::{Separation, Stem};
pub use separator::Separator;
