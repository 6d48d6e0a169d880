//! What can go wrong with sound, in words a user can act on.
use std::{io, path::PathBuf};

/// The containers and codecs that the reader accepts, as told to users.
pub const WANTED: &str =
    "wav, flac, mp3, ogg (vorbis or opus), m4a/mp4 (AAC-LC or ALAC), webm/mkv, aiff or caf";

/// Shorthand for results of this module.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every failure of reading, converting and writing sound. Each message names the input.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path could not be opened.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The path as given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Reading or spooling the input failed below the decoder.
    #[error("{name}: cannot read: {source}")]
    Read {
        /// Name of the input.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// The input has no bytes at all.
    #[error("{name}: empty file (0 bytes); wanted {WANTED}")]
    Empty {
        /// Name of the input.
        name: String,
    },
    /// The bytes are plainly something else than sound.
    #[error("{name}: not audio (looks like {found}); wanted {WANTED}")]
    NotAudio {
        /// Name of the input.
        name: String,
        /// What the bytes look like, with its article.
        found: String,
    },
    /// Sound or video in a form that the reader does not decode.
    #[error("{name}: {found} is not supported; wanted {WANTED}")]
    Unsupported {
        /// Name of the input.
        name: String,
        /// The container or codec that was found.
        found: String,
    },
    /// A readable container that holds no sound.
    #[error("{name}: no audio track ({found}); wanted a file with sound in it")]
    NoAudioTrack {
        /// Name of the input.
        name: String,
        /// The container and the tracks that it does hold.
        found: String,
    },
    /// The header is damaged or contradicts itself.
    #[error("{name}: damaged file: {found}")]
    Damaged {
        /// Name of the input.
        name: String,
        /// What is wrong, and what was wanted where that helps.
        found: String,
    },
    /// An audio track was found, but not one frame of it could be decoded.
    #[error("{name}: no sound could be decoded: {found}")]
    NoFrames {
        /// Name of the input.
        name: String,
        /// How many packets were tried and what the decoder said last.
        found: String,
    },
    /// The input lasts longer than the caller allows.
    #[error("{name}: longer than the allowed {limit_s} s; cut it into parts")]
    TooLong {
        /// Name of the input.
        name: String,
        /// The limit in seconds.
        limit_s: f64,
    },
    /// A rate, channel count, length or shape that the operation cannot work with.
    #[error("{0}")]
    Invalid(String),
    /// Writing the result failed.
    #[error("cannot write {what}: {source}")]
    Write {
        /// The file or stream that was written.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}
