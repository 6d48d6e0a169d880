//! Speech synthesis, apart from the networks: what a voice has to do, and what it gives back.

mod result;
mod speaker;
mod timing;
mod voice;

pub use result::{Speech, SpeechPart, SpeechSegment, SpokenWord, TimedPhoneme};
pub use speaker::Speaker;
pub use voice::{ChunkSound, ChunkVoice, VoiceInfo, VoiceInput, VoicePlan};
