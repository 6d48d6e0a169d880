//! Building blocks that more than one model uses.

mod linear;
mod norm;

pub use linear::Linear;
pub use norm::LayerNorm;
