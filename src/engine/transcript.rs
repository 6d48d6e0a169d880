//! What recognition gives back.

use serde::{Deserialize, Serialize};

/// Recognised speech of one input; the field names of segments and words are OpenAI's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Transcript {
    /// The whole text, without leading or trailing blanks.
    pub text: String,
    /// ISO 639 code of the spoken language, where the model knows it.
    pub language: Option<String>,
    /// Seconds of audio that were read.
    pub duration: f64,
    /// Stretches of speech in order of time.
    pub segments: Vec<Segment>,
    /// What was ignored, repaired or left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// One stretch of speech.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Counts from 0.
    pub id: u32,
    /// Start of the decoding window, in hundredths of a second.
    pub seek: u64,
    /// Seconds from the start of the input.
    pub start: f64,
    /// Seconds from the start of the input, at least `start`.
    pub end: f64,
    /// The text as the model wrote it; usually begins with a blank.
    pub text: String,
    /// Label that is the same in all segments of one speaker, where the model knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
    /// Token ids of the text, timestamps included where the model has them.
    #[serde(default)]
    pub tokens: Vec<u32>,
    /// Sampling temperature that gave this text.
    #[serde(default)]
    pub temperature: f32,
    /// Mean natural log probability of the tokens.
    #[serde(default)]
    pub avg_logprob: f32,
    /// Bytes of text over bytes of the same text compressed.
    #[serde(default)]
    pub compression_ratio: f32,
    /// Probability that the window holds no speech.
    #[serde(default)]
    pub no_speech_prob: f32,
    /// Words with times; empty unless they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<Word>,
}

/// One word with its place in time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Word {
    /// The word with its punctuation; may begin with a blank.
    pub word: String,
    /// Seconds from the start of the input.
    pub start: f64,
    /// Seconds from the start of the input, at least `start`.
    pub end: f64,
    /// Mean probability of the word's tokens, 0..1.
    #[serde(default)]
    pub probability: f32,
}

impl Transcript {
    /// All words of all segments, in order.
    pub fn words(&self) -> impl Iterator<Item = &Word> {
        self.segments.iter().flat_map(|segment| &segment.words)
    }
}
