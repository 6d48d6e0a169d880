//! Whisper.
#![forbid(unsafe_code)]
