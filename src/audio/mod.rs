//! Sound: clips in memory and streams of samples (see docs/architecture.md).

use serde::{Deserialize, Serialize};

/// Shorthand for results of this module.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why sound could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A rate, channel count, length or shape that the operation cannot work with.
    #[error("{0}")]
    Invalid(String),
}

/// A whole clip in memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Audio {
    /// Interleaved samples, nominally within -1..1.
    pub samples: Vec<f32>,
    /// Frames per second.
    pub rate: u32,
    /// Samples per frame.
    pub channels: u16,
}

/// A stream of interleaved f32 frames that is read once, from start to end.
pub trait AudioSource: Send {
    /// Frames per second.
    fn rate(&self) -> u32;
    /// Samples per frame.
    fn channels(&self) -> u16;
    /// Seconds, where the container says so; never trusted for allocation.
    fn duration_hint(&self) -> Option<f64>;
    /// Appends at most `max_frames` frames to `out` and returns how many; 0 is the end.
    fn read(&mut self, out: &mut Vec<f32>, max_frames: usize) -> Result<usize>;
    /// Takes the warnings gathered so far (damaged packets, replaced samples).
    fn warnings(&mut self) -> Vec<String>;
}
