//! Safe ggml: devices, buffers, tensors and graphs.
//!
//! Shapes are written in the reader's order, `[batch, time, channel]`, the last axis contiguous.
//! ggml writes the same shape backwards; the reversal happens here and nowhere else.
//!
//! A [`Graph`] is built once for a shape, allocated once and run many times:
//!
//! ```no_run
//! # use audiocpp::graph::{DType, Device, Graph, GraphError};
//! # fn main() -> Result<(), GraphError> {
//! let device = Device::cpu(2)?;
//! let mut graph = Graph::build(&device, |g| {
//!     let x = g.input("x", DType::F32, &[3, 4]);
//!     g.output("y", x.sqr().sum_last());
//!     Ok(())
//! })?;
//! graph.write("x", &[1.0f32; 12])?;
//! graph.compute()?;
//! assert_eq!(graph.read::<f32>("y")?, [4.0, 4.0, 4.0]);
//! # Ok(())
//! # }
//! ```
//!
//! Operators never panic. The first mistake (a shape that does not fit, say) is kept in the
//! graph under construction, later operators do nothing, and [`Graph::build`] returns it.
#![allow(unsafe_code)]

mod attention;
mod buffer;
mod canary;
mod capability;
mod conv;
mod conv2d;
mod depthwise;
mod device;
mod dtype;
mod error;
mod fragments;
mod guard;
mod host;
mod kept;
mod limits;
mod live;
mod ops;
mod placement;
mod rotary;
mod run;
mod scope;
mod shape;
mod staging;
mod tensor;
mod trial;

pub use attention::Kernel;
pub use buffer::{Buffer, BufferBuilder, DeviceTensor};
pub use canary::{Canary, TOLERANCE, canary};
pub use conv::Conv1d;
pub use conv2d::Conv2d;
pub use device::{Device, DeviceOptions};
pub use dtype::{DType, Element};
pub use error::GraphError;
pub use host::{
    Around, Curve, ResidualLayer, RowCurve, ShortConv, ShortConv2d, ShortWeight, Widened,
};
pub use kept::Kept;
pub use live::DeviceRequest;
pub use ops::Glu;
pub use run::Graph;
pub use scope::Scope;
pub use tensor::Tensor;
pub use trial::trial;
