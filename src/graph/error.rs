//! What can go wrong between a model and its device.

use super::DType;

/// An error of the graph layer; each names the thing, what was found and what was wanted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GraphError {
    /// An operator was given tensors that do not fit it.
    #[error("{op}: {problem}")]
    Shape {
        /// Operator as the model calls it.
        op: &'static str,
        /// What does not fit, with the shapes found.
        problem: String,
    },
    /// The device cannot run these operators, and the CPU may not or cannot run them instead.
    #[error(
        "{device} cannot run {ops}, and the CPU does not take over (--strict-device forbids it, \
         or it lacks them too); drop --strict-device or choose another device"
    )]
    MissingOp {
        /// The device's name.
        device: String,
        /// ggml's names of the operators, comma-separated.
        ops: String,
    },
    /// An operator that must run where its target lies, and the device there lacks it.
    #[error("{device} cannot write into `{tensor}` ({op}); choose another device or storage type")]
    MissingWrite {
        /// The device's name.
        device: String,
        /// The stored tensor.
        tensor: String,
        /// ggml's name of the operator.
        op: String,
    },
    /// An allocation on the device failed.
    #[error(
        "out of memory on {device}: {what} needs {mib} MiB; \
         use a smaller model or weight type, shorter audio, or another device"
    )]
    OutOfMemory {
        /// The device's name.
        device: String,
        /// What was being allocated.
        what: String,
        /// Size asked for, in MiB (rounded up); 0 where ggml does not tell.
        mib: usize,
    },
    /// The backend reported a failure while it ran a graph.
    #[error("{device} failed while computing (ggml status {status})")]
    Compute {
        /// The device's name.
        device: String,
        /// ggml's status code.
        status: i32,
    },
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// A named input, output or stored tensor was used in a way that does not fit it.
    #[error("tensor `{name}`: {problem}")]
    Tensor {
        /// Name given by the model.
        name: String,
        /// What was found and what was wanted.
        problem: String,
    },
    /// A value type that this place cannot hold.
    #[error("tensor `{name}` holds {found}, asked for {wanted}")]
    Type {
        /// Name given by the model.
        name: String,
        /// Type found.
        found: DType,
        /// Type asked for.
        wanted: DType,
    },
    /// A device could not be opened.
    #[error("cannot open device {device}: {problem}")]
    Device {
        /// The device as the user or ggml names it.
        device: String,
        /// The reason.
        problem: String,
    },
    /// The description of a graph names no output and stores nothing.
    #[error("the graph has no output and stores nothing")]
    NoResult,
    /// More values at once than ggml can plan, in a graph that is split between two devices.
    #[error(
        "the graph keeps {alive} values at once, at most {limit} can be planned for {device} while \
         the CPU runs {ops} of it; choose a device that has these operators"
    )]
    TooManyAlive {
        /// The device's name.
        device: String,
        /// Values alive at once.
        alive: usize,
        /// Most that ggml plans.
        limit: usize,
        /// ggml's names of the operators that the CPU runs, comma-separated.
        ops: String,
    },
    /// The model describes a graph beyond any sensible size.
    #[error("the graph has more than {0} operators")]
    TooManyNodes(usize),
}
