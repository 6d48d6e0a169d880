//! The server as a library: HTTP routes over whatever runs the models.
#![forbid(unsafe_code)]

pub mod job;
