//! What a network has to do to speak.

use serde::{Deserialize, Serialize};

use crate::{
    audio::Audio,
    engine::{RunContext, SynthesizeRequest, error::Result},
    text::chunks::{Chunk, ChunkLimits},
};

/// A network that speaks chunk by chunk. Texts, pauses, times and events are the engine's part.
pub trait ChunkVoice: Send {
    /// Checks `request` (voice, speed, options), takes up its seed, and says how it is going to be
    /// spoken. Called once before the chunks of a request.
    fn begin(&mut self, request: &SynthesizeRequest) -> Result<VoicePlan>;

    /// Speaks one chunk of the request that was begun; checks `context` between its steps.
    fn speak(&mut self, chunk: &Chunk, context: &RunContext) -> Result<ChunkSound>;
}

/// How a request is going to be spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoicePlan {
    /// The language of the voice, as espeak-ng writes it (`en-us`, `de`).
    pub language: String,
    /// What the network reads.
    pub input: VoiceInput,
    /// How much it speaks at a time.
    pub limits: ChunkLimits,
    /// Frames a second of its sound.
    pub rate: u32,
    /// Channels of its sound.
    pub channels: u16,
}

/// What a network reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoiceInput {
    /// The spoken text.
    Text,
    /// Phonemes.
    Phonemes,
}

/// The sound of one chunk, as the network made it.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkSound {
    /// At the rate and with the channels of the plan.
    pub audio: Audio,
    /// For each of [`Phonemes::symbols`](crate::text::phonemes::Phonemes::symbols), the second at
    /// which it ends in `audio`; `None` if the network does not know.
    pub symbol_ends: Option<Vec<f64>>,
    /// What was ignored or left out, such as symbols that the network does not know.
    pub warnings: Vec<String>,
}

/// One voice of a model, for lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoiceInfo {
    /// The name that requests use.
    pub id: String,
    /// The name for people.
    pub name: String,
    /// Its language (`en-us`, `de`).
    pub language: String,
    /// `female`, `male`, ..., where the package tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gender: Option<String>,
}
