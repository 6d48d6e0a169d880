//! What synthesis gives back.

use serde::{Deserialize, Serialize};

use crate::audio::Audio;

/// The spoken text of one request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Speech {
    /// The sound. It has no samples if the request asked to stream: they went out as events.
    pub audio: Audio,
    /// Length of all sound in seconds.
    pub duration: f64,
    /// The stretches that were spoken one at a time, in order.
    pub segments: Vec<SpeechSegment>,
    /// What was ignored, repaired or left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Sound that is ready before the rest; parts follow each other without gaps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpeechPart {
    /// The samples.
    pub audio: Audio,
    /// What is said in them.
    pub segment: SpeechSegment,
}

/// One stretch of speech.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SpeechSegment {
    /// Counts from 0.
    pub id: u32,
    /// Seconds from the start of the sound.
    pub start: f64,
    /// Seconds from the start of the sound, at least `start`.
    pub end: f64,
    /// The words as they stand in the request.
    pub text: String,
    /// The words as they were spoken.
    pub spoken: String,
    /// Words with times; empty unless they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<SpokenWord>,
}

/// One word of the request with its place in time. What is spoken as several words (`$42`) is one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SpokenWord {
    /// The word as it stands in the request.
    pub word: String,
    /// Characters of the request's text before the word.
    pub from: usize,
    /// Characters of the request's text up to its end.
    pub to: usize,
    /// Seconds from the start of the sound.
    pub start: f64,
    /// Seconds from the start of the sound, at least `start`.
    pub end: f64,
    /// Its sounds, for models that read phonemes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phonemes: Vec<TimedPhoneme>,
}

/// One sound with its place in time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimedPhoneme {
    /// IPA, with its stress and length marks.
    pub phoneme: String,
    /// Seconds from the start of the sound.
    pub start: f64,
    /// Seconds from the start of the sound, at least `start`.
    pub end: f64,
}

impl Speech {
    /// All words of all segments, in order.
    pub fn words(&self) -> impl Iterator<Item = &SpokenWord> {
        self.segments.iter().flat_map(|segment| &segment.words)
    }
}
