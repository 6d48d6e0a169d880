//! The engine: tasks, families of models, sessions, and where models come from.
//!
//! A program goes `Registry` → [`Family`] → [`Model`] → [`Session`] and then speaks the session's
//! task trait. Requests, results, events and errors are serde types, so that the other side of
//! the conversation may be another process.

pub mod check;
mod codes;
mod device;
mod error;
mod formats;
mod load_error;
mod loaded;
mod options;
pub mod package;
mod registry;
mod request;
mod run;
mod separation;
mod speech;
mod suggest;
mod task;
mod threads;
mod transcript;
mod vad;

pub use check::Stage;
pub use codes::Codes;
pub use device::DeviceReport;
pub use error::{Error, ErrorClass, Result};
pub use formats::{FormatOptions, TranscriptFormat};
pub use load_error::LoadError;
pub use loaded::Loaded;
pub use options::{OptionKind, OptionSpec, OptionValue, Options, Scope};
pub use registry::{Family, FamilyInfo, LoadOptions, Model, ModelInfo, Registry, Session};
pub use request::{
    AlignRequest, CodecRequest, ConvertRequest, DetectSpeechRequest, DiarizeRequest,
    GenerateRequest, Rest, SeparateRequest, Sound, Span, SynthesizeRequest, TranscribeRequest,
    Turn,
};
pub use run::{CancelToken, Event, EventSink, RunContext, Unit};
pub use separation::{Separation, Separator, Stem, StemNetwork, StemPlan, TrackLevel};
pub use speech::{
    ChunkSound, ChunkVoice, Speaker, Speech, SpeechPart, SpeechSegment, SpokenWord, TimedPhoneme,
    VoiceInfo, VoiceInput, VoicePlan,
};
pub use suggest::{hint, nearest};
pub use task::{
    Align, Codec, Convert, DetectSpeech, Diarize, Generate, Separate, Synthesize, Task, Transcribe,
    detect_speech, transcribe,
};
pub use threads::physical_cores;
pub use transcript::{Segment, Transcript, Word};
pub use vad::{
    ActivityFormat, ChunkRules, FrameDetector, Heard, SampleSpan, Segmenter, SpeechDetector,
    SpeechOnly, SpeechRules, TimeMap, VoiceActivity, chunks, transcribe_speech,
};
