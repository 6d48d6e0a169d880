//! The pool with real worker processes.
#![cfg(target_os = "linux")]

mod faults;
mod jobs;
mod memory;
mod support;
