//! What the benchmarks need besides the engine, made once and kept in the target folder: a Python
//! environment with the other engines, recordings, converted models.

use crate::sh;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// One recording of the benchmark.
#[derive(Clone, Debug, Deserialize)]
pub struct Clip {
    /// Name of its file, without extension.
    pub name: String,
    /// Length.
    pub seconds: f64,
    /// What is said.
    pub text: String,
}

/// The folder with everything the benchmarks keep.
pub struct Workshop {
    folder: PathBuf,
    python: PathBuf,
}

impl Workshop {
    /// Opens the folder, installing the other engines of speech recognition where they are missing
    /// or of other versions.
    pub fn open() -> Result<Workshop> {
        Workshop::with("venv", "requirements.txt")
    }

    /// As [`open`](Self::open), for speech synthesis.
    pub fn for_speech() -> Result<Workshop> {
        Workshop::with("venv-tts", "requirements-tts.txt")
    }

    /// As [`open`](Self::open), for other programs that speak and for scores of speech.
    pub fn for_listening() -> Result<Workshop> {
        Workshop::with("venv-listen", "requirements-listen.txt")
    }

    /// As [`open`](Self::open), for voice activity.
    pub fn for_voice_activity() -> Result<Workshop> {
        Workshop::with("venv-vad", "requirements-vad.txt")
    }

    /// As [`open`](Self::open), for source separation.
    pub fn for_separation() -> Result<Workshop> {
        Workshop::with("venv-sep", "requirements-sep.txt")
    }

    fn with(name: &str, requirements: &str) -> Result<Workshop> {
        let folder = sh::target_dir().join("bench");
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let venv = folder.join(name);
        let python = if cfg!(windows) {
            "Scripts/python.exe"
        } else {
            "bin/python"
        };
        let workshop = Workshop {
            python: venv.join(python),
            folder,
        };
        let requirements = sh::root().join("xtask/peers").join(requirements);
        workshop.once(
            &format!("{name}.txt"),
            &fs::read_to_string(&requirements)?,
            || {
                let system = if cfg!(windows) { "python" } else { "python3" };
                sh::run(
                    Command::new(system)
                        .args(["-m", "venv", "--clear"])
                        .arg(&venv),
                )
                .context(
                    "the other engines need Python 3 with its venv module (Debian: python3-venv)",
                )?;
                let mut pip = Command::new(&workshop.python);
                sh::run(
                    pip.args(["-m", "pip", "install", "--quiet", "--requirement"])
                        .arg(&requirements),
                )
            },
        )?;
        Ok(workshop)
    }

    /// A folder for one benchmark's files.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(folder)
    }

    /// The recordings, from short to long.
    pub fn clips(&self) -> Result<Vec<Clip>> {
        let folder = self.folder("clips")?;
        let (script, speech) = (
            sh::root().join("xtask/peers/clips.py"),
            sh::root().join("tests/speech"),
        );
        let recipe =
            fs::read_to_string(&script)? + &fs::read_to_string(speech.join("transcripts.json"))?;
        self.once("clips.txt", &recipe, || {
            sh::run(self.python(&script).arg(&speech).arg(&folder))
        })?;
        let json = fs::read(folder.join("clips.json"))?;
        serde_json::from_slice(&json).context("clips.json")
    }

    /// The recording of a clip.
    pub fn recording(&self, clip: &Clip) -> PathBuf {
        self.folder.join("clips").join(format!("{}.wav", clip.name))
    }

    /// The weights of the CTranslate2 folder `ct2` as a whisper.cpp file.
    pub fn ggml_model(&self, id: &str, ct2: &Path) -> Result<PathBuf> {
        let script = sh::root().join("tests/reference/ct2_to_ggml.py");
        let out = self.folder.join(format!("ggml-{id}.bin"));
        let size = fs::metadata(ct2.join("model.bin"))
            .context("the model's weights")?
            .len();
        let recipe = format!("{}{size}", fs::read_to_string(&script)?);
        self.once(&format!("ggml-{id}.txt"), &recipe, || {
            sh::run(self.python(&script).arg(ct2).arg(&out))
        })?;
        Ok(out)
    }

    /// The texts of the synthesis benchmark as `family`'s script writes them for `model`, a line of
    /// JSON each.
    pub fn sentences(&self, family: &str, model: &Path) -> Result<String> {
        let peers = sh::root().join("xtask/peers");
        let script = peers.join(format!("{family}_sentences.py"));
        let out = self.folder.join(format!("{family}-sentences.jsonl"));
        let texts = fs::read_to_string(peers.join("texts.py"))?;
        let recipe = texts + &fs::read_to_string(&script)? + &model.display().to_string();
        self.once(&format!("{family}-sentences.txt"), &recipe, || {
            sh::run(self.python(&script).arg(model).arg(&out))
        })?;
        fs::read_to_string(&out).with_context(|| out.display().to_string())
    }

    /// The folder of a recording with labelled speech, `sample.wav` and `sample.rttm`.
    pub fn labelled_speech(&self) -> Result<PathBuf> {
        let script = sh::root().join("xtask/peers/vad_labels.py");
        let out = self.folder.join("labelled");
        fs::create_dir_all(&out)?;
        self.once("labelled.txt", &fs::read_to_string(&script)?, || {
            sh::run(self.python(&script).arg(&out))
        })?;
        Ok(out)
    }

    /// A network of Demucs of a released size under formula weights, and a made recording.
    pub fn network(&self, name: &str, seconds: u16) -> Result<(PathBuf, PathBuf)> {
        let script = sh::root().join("xtask/peers/demucs_checkpoint.py");
        let reference = sh::root().join("tests/reference/demucs_reference.py");
        let model = self.folder.join(format!("{name}.safetensors"));
        let clip = self.folder.join("mix.wav");
        let recipe = fs::read_to_string(&script)? + &fs::read_to_string(reference)?;
        let recipe = format!("{recipe}{name} {seconds}");
        self.once("network.txt", &recipe, || {
            let mut make = self.python(&script);
            sh::run(
                make.arg(name)
                    .arg(&model)
                    .arg(&clip)
                    .arg(seconds.to_string()),
            )
        })?;
        Ok((model, clip))
    }

    /// A script in the Python environment.
    pub fn python(&self, script: &Path) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(script);
        command
    }

    /// Does `work` unless the note `name` says that it was done by the same recipe.
    fn once(&self, name: &str, recipe: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let note = self.folder.join(name);
        if fs::read_to_string(&note).is_ok_and(|done| done == recipe) {
            return Ok(());
        }
        work()?;
        fs::write(&note, recipe).with_context(|| note.display().to_string())
    }
}

/// The only file of a folder with this ending.
pub fn file_ending(folder: &Path, wanted: &str) -> Result<PathBuf> {
    let mut files = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let found = files.find(|path| path.extension().is_some_and(|ending| ending == wanted));
    found.with_context(|| format!("no .{wanted} file in {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn work_is_done_once_a_recipe_and_again_after_a_failure() {
        let folder = std::env::temp_dir().join(format!("xtask-once-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let workshop = Workshop {
            folder: folder.clone(),
            python: PathBuf::new(),
        };
        let mut count = 0;
        assert!(workshop.once("note", "a", || bail!("no network")).is_err());
        for recipe in ["a", "a", "b"] {
            workshop
                .once("note", recipe, || {
                    count += 1;
                    Ok(())
                })
                .unwrap();
        }
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(count, 2);
    }
}
