//! The speech samples of `tests/speech`.

use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A recording of human speech and its words.
#[derive(Clone, Debug, Deserialize)]
pub struct Clip {
    /// Name within `tests/speech`; [`Clip::path`] gives the whole path.
    pub file: String,
    /// What is said.
    pub text: String,
}

impl Clip {
    /// Where the recording lies.
    pub fn path(&self) -> PathBuf {
        folder().join(&self.file)
    }
}

/// The folder of the recordings.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../speech")
}

/// Every recording: 11 s of John F. Kennedy, then five sentences read from a novel, 24.7 s in all.
///
/// # Panics
/// Panics when the list in `tests/speech` cannot be read.
pub fn clips() -> Vec<Clip> {
    let list = folder().join("transcripts.json");
    let json = std::fs::read(&list).unwrap_or_else(|e| panic!("{}: {e}", list.display()));
    serde_json::from_slice(&json).unwrap_or_else(|e| panic!("{}: {e}", list.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clip_is_there_and_is_flac() {
        let clips = clips();
        assert_eq!(clips.len(), 6);
        for clip in &clips {
            assert_eq!(
                &std::fs::read(clip.path()).unwrap()[..4],
                b"fLaC",
                "{}",
                clip.file
            );
        }
        let words: usize = clips.iter().map(|c| crate::wer::words(&c.text).len()).sum();
        assert_eq!(words, 22 + 71);
    }
}
