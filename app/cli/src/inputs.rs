//! From the inputs a user named to the recordings that will be read.

use std::path::{Path, PathBuf};

/// Extensions that count as recordings when a folder is named.
const EXTENSIONS: [&str; 18] = [
    "wav", "wave", "flac", "mp3", "ogg", "oga", "opus", "m4a", "m4b", "aac", "mp4", "mov", "webm",
    "mkv", "mka", "aiff", "aif", "caf",
];

/// One recording to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// How it is called in messages.
    pub name: String,
    /// Where it is, or why it is not.
    pub place: Place,
}

/// Where a recording is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Standard input.
    Stdin,
    /// A file.
    Path(PathBuf),
    /// Nowhere: the reason, without the name.
    Missing(String),
}

impl Input {
    fn path(path: PathBuf) -> Input {
        Input {
            name: path.display().to_string(),
            place: Place::Path(path),
        }
    }

    fn missing(name: &str, why: impl Into<String>) -> Input {
        Input {
            name: name.to_owned(),
            place: Place::Missing(why.into()),
        }
    }

    /// The name for a result file, without extension.
    pub fn stem(&self) -> String {
        match &self.place {
            Place::Path(path) => path
                .file_stem()
                .unwrap_or(path.as_os_str())
                .to_string_lossy()
                .into_owned(),
            Place::Stdin | Place::Missing(_) => "stdin".into(),
        }
    }

    /// The whole file name, for results whose stems would be alike.
    pub fn file_name(&self) -> String {
        match &self.place {
            Place::Path(path) => path
                .file_name()
                .unwrap_or(path.as_os_str())
                .to_string_lossy()
                .into_owned(),
            Place::Stdin | Place::Missing(_) => "stdin".into(),
        }
    }
}

/// Expands files, folders, patterns and `-`, in order. What cannot be found stays in the list
/// with its reason, so that it is reported with the others.
pub fn expand(named: &[String]) -> Vec<Input> {
    named.iter().flat_map(|name| expand_one(name)).collect()
}

fn expand_one(name: &str) -> Vec<Input> {
    if name == "-" {
        return vec![Input {
            name: "standard input".into(),
            place: Place::Stdin,
        }];
    }
    let path = Path::new(name);
    if path.is_dir() {
        return folder(name);
    }
    if path.exists() {
        return vec![Input::path(path.to_owned())];
    }
    if name.contains(['*', '?', '[']) {
        pattern(name)
    } else {
        vec![not_there(name)]
    }
}

/// The recordings directly in a folder, by name.
fn folder(name: &str) -> Vec<Input> {
    let entries = match std::fs::read_dir(name) {
        Ok(entries) => entries,
        Err(error) => return vec![Input::missing(name, error.to_string())],
    };
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| is_recording(path))
        .collect();
    paths.sort();
    if paths.is_empty() {
        return vec![Input::missing(name, "no recordings in this folder")];
    }
    paths.into_iter().map(Input::path).collect()
}

fn is_recording(path: &Path) -> bool {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("");
    path.is_file()
        && EXTENSIONS
            .iter()
            .any(|known| known.eq_ignore_ascii_case(extension))
}

/// The files that a pattern stands for, by name.
fn pattern(name: &str) -> Vec<Input> {
    let paths = match glob::glob(name) {
        Ok(paths) => paths,
        Err(error) => return vec![Input::missing(name, format!("bad pattern: {error}"))],
    };
    let files: Vec<PathBuf> = paths.flatten().filter(|path| path.is_file()).collect();
    if files.is_empty() {
        return vec![Input::missing(name, "no file matches")];
    }
    files.into_iter().map(Input::path).collect()
}

/// A name that is not there; a sibling with nearly that name is pointed out.
fn not_there(name: &str) -> Input {
    let path = Path::new(name);
    let parent = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    let siblings: Vec<String> = std::fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| is_recording(&entry.path()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let near = audiocpp::engine::nearest(&wanted, siblings.iter().map(String::as_str));
    let why = match near {
        Some(near) => format!(
            "no such file; did you mean `{}`?",
            parent.join(near).display()
        ),
        None => "no such file".to_owned(),
    };
    Input::missing(name, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_patterns_and_slips() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.mp3", "a.WAV", "notes.txt", "c.flac"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        let names = |inputs: &[Input]| -> Vec<String> {
            inputs.iter().map(|input| input.file_name()).collect()
        };
        let root = folder.path().to_str().unwrap().to_owned();
        assert_eq!(
            names(&expand(std::slice::from_ref(&root))),
            ["a.WAV", "b.mp3", "c.flac"]
        );
        assert_eq!(names(&expand(&[format!("{root}/*.mp3")])), ["b.mp3"]);

        let inputs = expand(&[
            format!("{root}/c.flca"),
            format!("{root}/*.aac"),
            "-".into(),
        ]);
        let Place::Missing(why) = &inputs[0].place else {
            panic!("{inputs:?}")
        };
        assert!(
            why.contains("did you mean") && why.contains("c.flac"),
            "{why}"
        );
        assert_eq!(inputs[1].place, Place::Missing("no file matches".into()));
        assert_eq!(inputs[2].place, Place::Stdin);
    }

    #[test]
    fn an_empty_folder_is_an_input_that_failed() {
        let folder = tempfile::tempdir().unwrap();
        let inputs = expand(&[folder.path().to_str().unwrap().to_owned()]);
        assert_eq!(
            inputs[0].place,
            Place::Missing("no recordings in this folder".into())
        );
    }
}
