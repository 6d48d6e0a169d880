//! Sound: clips in memory and streams of samples (see docs/architecture.md).

use serde::{Deserialize, Serialize};

/// Why sound could not be read.
#[derive(Debug, thiserror::Error)]
pub enum AudioError {
    /// The bytes are not sound that can be decoded.
    #[error("{0}")]
    BadInput(String),
    /// The operating system refused a read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// A whole clip in memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    fn read(&mut self, out: &mut Vec<f32>, max_frames: usize) -> Result<usize, AudioError>;
    /// Takes the warnings gathered so far (damaged packets, replaced samples).
    fn warnings(&mut self) -> Vec<String>;
}
