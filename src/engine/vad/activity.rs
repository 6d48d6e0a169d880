//! What detection gives back.

use serde::{Deserialize, Serialize};

use crate::engine::Span;

/// Where there is speech in one input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VoiceActivity {
    /// Seconds of audio that were read.
    pub duration: f64,
    /// Stretches of speech in order of time; they do not overlap.
    pub segments: Vec<Span>,
    /// Seconds that one probability stands for.
    pub frame: f64,
    /// Probability of speech of every frame; empty unless it was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probabilities: Vec<f32>,
    /// What was ignored, repaired or left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl VoiceActivity {
    /// Seconds of speech.
    pub fn speech(&self) -> f64 {
        self.segments.iter().map(|s| s.end - s.start).sum()
    }
}

/// What was heard since the last time, of a live stream. Times in seconds from its start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Heard {
    /// Probability of speech of every frame that was completed.
    pub probabilities: Vec<f32>,
    /// Stretches of speech that are over and will not change.
    pub segments: Vec<Span>,
    /// Where the speech began that is going on; it may still turn out too short to count.
    pub speaking_since: Option<f64>,
    /// No stretch that is still to come begins before this time.
    pub settled: f64,
}
