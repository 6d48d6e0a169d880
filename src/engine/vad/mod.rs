//! Voice activity: from probabilities of speech to stretches of it, to windows for other models,
//! and back from cut time to the time of the recording.

mod activity;
mod chunks;
mod detector;
mod format;
mod rules;
mod segmenter;
mod time_map;
mod transcribe;

pub use activity::{Heard, VoiceActivity};
pub use chunks::{ChunkRules, chunks};
pub use detector::{FrameDetector, SpeechDetector};
pub use format::ActivityFormat;
pub use rules::SpeechRules;
pub use segmenter::{SampleSpan, Segmenter};
pub use time_map::TimeMap;
pub use transcribe::{SpeechOnly, transcribe_speech};
