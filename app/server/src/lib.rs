//! The server as a library: HTTP routes over whatever runs the models.
#![forbid(unsafe_code)]

pub mod http;
pub mod job;
