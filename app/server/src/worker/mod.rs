//! Worker processes: one loaded model each, so that a library that aborts, leaks or hangs takes
//! only its own request with it.
//!
//! A worker is this program with [`WORD`] as its first argument. Server and worker speak in
//! [`frame`]s over a socket; what libraries print goes another way, to the server's log. A worker
//! ends when its socket does, so none outlives its server.

pub mod frame;
pub mod handle;
mod limit;
mod log;
pub mod message;
mod perform;
mod pipe;
pub mod process;
pub mod spec;

/// The first argument of a worker process.
pub const WORD: &str = "worker-process";
