//! What the tests and benchmarks of several crates share: formula weights, speech with known
//! words, word errors, expected tensors.
//!
//! It depends on no other crate of this workspace, so that every one of them can use it.

pub mod expected;
pub mod formula;
pub mod models;
pub mod package;
pub mod speech;
pub mod wer;
