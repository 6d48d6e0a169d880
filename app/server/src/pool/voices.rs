//! Configured voices, and voices made from uploads.

use std::{collections::BTreeMap, path::Path};

use audiocpp::engine::{Error, Result, SynthesizeRequest, VoiceInfo};
use tempfile::TempPath;

use super::served::{Served, State};
use crate::config::plan::Voice;

/// Voices made from uploads by name, with the copies of their recordings.
pub type Made = BTreeMap<String, (Voice, TempPath)>;

impl Served {
    /// All voices: its own, the configured ones, and those made from uploads.
    pub fn voices(&self, state: &State) -> Vec<VoiceInfo> {
        let mut voices = state.own_voices.clone();
        for name in self.plan.voices.keys().chain(state.made.keys()) {
            if voices.iter().all(|voice| voice.id != *name) {
                voices.push(VoiceInfo {
                    id: name.clone(),
                    name: name.clone(),
                    ..VoiceInfo::default()
                });
            }
        }
        voices
    }

    /// The configured voice that `request` asks for, if it is one.
    pub fn voice_of(&self, request: &SynthesizeRequest) -> Option<Voice> {
        let name = request
            .voice
            .as_ref()
            .or(self.plan.default_voice.as_ref())?;
        let made = || self.lock().made.get(name).map(|(voice, _)| voice.clone());
        self.plan.voices.get(name).cloned().or_else(made)
    }

    /// Makes a voice from a copy of `recording`.
    ///
    /// # Errors
    /// A family that copies no voices (`Unsupported`), a name that is taken (`BadInput`), a file
    /// that cannot be copied.
    pub fn add_voice(&self, name: &str, recording: &Path, words: Option<String>) -> Result<()> {
        if !self.plan.clones {
            return Err(Error::unsupported(format!(
                "model `{}` (family `{}`) does not copy voices",
                self.id(),
                self.plan.spec.family
            )));
        }
        let taken = self
            .voices(&self.lock())
            .iter()
            .any(|voice| voice.id == name);
        if taken {
            return Err(Error::bad_input(format!(
                "there is a voice `{name}` already"
            )));
        }
        let copy = tempfile::NamedTempFile::new()
            .and_then(|file| std::fs::copy(recording, file.path()).map(|_| file.into_temp_path()))
            .map_err(|error| Error::internal(format!("the recording cannot be copied: {error}")))?;
        let voice = Voice {
            voice: None,
            recording: Some(copy.to_path_buf()),
            words,
        };
        self.lock().made.insert(name.to_owned(), (voice, copy));
        Ok(())
    }

    /// Removes a voice that [`Served::add_voice`] made.
    ///
    /// # Errors
    /// There is none of this name (`NotFound`).
    pub fn remove_voice(&self, name: &str) -> Result<()> {
        let removed = self.lock().made.remove(name);
        removed.map(drop).ok_or_else(|| {
            Error::not_found(format!(
                "there is no voice `{name}` that was made from an upload"
            ))
        })
    }
}
