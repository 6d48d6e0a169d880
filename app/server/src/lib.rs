//! The server as a library: its configuration, HTTP routes and the Wyoming protocol, the web page,
//! and the worker processes that run the models.
#![forbid(unsafe_code)]

pub mod check;
pub mod config;
pub mod http;
pub mod job;
pub mod launch;
pub mod pool;
pub mod web;
pub mod worker;
pub mod wyoming;
