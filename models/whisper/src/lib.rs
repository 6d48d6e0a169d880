//! Whisper.
#![forbid(unsafe_code)]

pub mod alignment;
pub mod alignment_heads;
pub mod gates;
pub mod languages;
pub mod loop_guard;
pub mod split;
pub mod tokenizer;
pub mod words;
