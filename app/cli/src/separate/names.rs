//! Names of the files that stems are written to.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use audiocpp::engine::Error;

use crate::{
    failure::{Failure, Outcome},
    inputs::{Input, Place},
};

/// What a name may be made of.
const PARTS: [&str; 4] = ["track", "stem", "model", "ext"];

/// A template, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    folder: PathBuf,
    /// Text, and the part that follows it.
    pieces: Vec<(String, &'static str)>,
    end: String,
    model: String,
    ext: &'static str,
}

impl Names {
    /// Reads `template` for files in `folder`.
    pub fn new(folder: &Path, template: &str, model: &str, ext: &'static str) -> Outcome<Names> {
        let mut pieces = Vec::new();
        let mut rest = template;
        while let Some((text, more)) = rest.split_once('{') {
            let part = more
                .split_once('}')
                .and_then(|(name, after)| Some((PARTS.iter().find(|p| **p == name)?, after)));
            let Some((part, after)) = part else {
                return Err(Failure::usage(format!(
                    "--filename {template}: wanted {{track}}, {{stem}}, {{model}} or {{ext}} in \
                     braces"
                )));
            };
            pieces.push((text.to_owned(), *part));
            rest = after;
        }
        if !pieces.iter().any(|(_, part)| *part == "stem") {
            return Err(Failure::usage(format!(
                "--filename {template}: every stem would get the same name; wanted {{stem}} in it"
            )));
        }
        Ok(Names {
            folder: folder.to_owned(),
            pieces,
            end: rest.to_owned(),
            model: model.to_owned(),
            ext,
        })
    }

    /// The file for a stem of a track.
    pub fn path(&self, track: &str, stem: &str) -> PathBuf {
        let mut name = String::new();
        for (text, part) in &self.pieces {
            name.push_str(text);
            name.push_str(match *part {
                "track" => track,
                "stem" => stem,
                "model" => &self.model,
                _ => self.ext,
            });
        }
        name.push_str(&self.end);
        self.folder.join(name)
    }

    /// What each input is called in the names: its name without ending, or with it where two would
    /// be alike. An error if they still are, and the template tells them apart by nothing else.
    pub fn tracks(&self, inputs: &[Input]) -> Outcome<Vec<String>> {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for input in inputs {
            *counts.entry(input.stem()).or_default() += 1;
        }
        let name = |input: &Input| match counts.get(&input.stem()) {
            Some(1) => input.stem(),
            _ => input.file_name(),
        };
        let tracks: Vec<String> = inputs.iter().map(name).collect();
        for (i, track) in tracks.iter().enumerate() {
            let path = self.path(track, "stem");
            let same = (0..i).find(|&j| self.path(&tracks[j], "stem") == path);
            if let Some(j) = same {
                return Err(Failure::usage(format!(
                    "stems of {} and {} would get the same names: wanted {{track}} in --filename, \
                     and inputs of different names",
                    inputs[j].name, inputs[i].name
                )));
            }
        }
        Ok(tracks)
    }
}

/// The whole names of the inputs that are files.
pub fn whole_names(inputs: &[Input]) -> Vec<PathBuf> {
    let real = inputs.iter().filter_map(|input| match &input.place {
        Place::Path(path) => std::fs::canonicalize(path).ok(),
        Place::Stdin | Place::Missing(_) => None,
    });
    real.collect()
}

/// An error if `path` is one of the files that are `read`.
pub fn refuse_input(path: &Path, read: &[PathBuf]) -> Result<(), Error> {
    match std::fs::canonicalize(path).is_ok_and(|real| read.contains(&real)) {
        true => Err(Error::bad_input(format!(
            "{} is an input and would be overwritten",
            path.display()
        ))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(path: &str) -> Input {
        Input {
            name: path.into(),
            place: Place::Path(path.into()),
        }
    }

    #[test]
    fn templates_are_filled_in_and_slips_refused() {
        let names = |template| Names::new(Path::new("out"), template, "m", "flac");
        let usual = names("{track}/{stem}.{ext}").unwrap();
        assert_eq!(usual.path("a b", "bass"), Path::new("out/a b/bass.flac"));
        let other = names("{model}-{stem}-{track}_x").unwrap();
        assert_eq!(other.path("t", "no_bass"), Path::new("out/m-no_bass-t_x"));
        assert!(names("{track}").unwrap_err().message.contains("{stem}"));
        assert!(names("{stem}.{extension}").is_err() && names("{stem").is_err());
    }

    #[test]
    fn an_input_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bass.wav");
        std::fs::write(&path, "x").unwrap();
        let read = whole_names(&[input(path.to_str().unwrap())]);
        let around = folder.path().join(".").join("bass.wav");
        let error = refuse_input(&around, &read).unwrap_err();
        assert!(error.message.contains("would be overwritten"), "{error}");
        assert!(refuse_input(&folder.path().join("drums.wav"), &read).is_ok());
    }

    #[test]
    fn tracks_differ() {
        let names = Names::new(Path::new("o"), "{track}/{stem}.{ext}", "m", "wav").unwrap();
        let tracks = names.tracks(&[input("x/a.mp3"), input("x/a.wav"), input("b.mp3")]);
        assert_eq!(tracks.unwrap(), ["a.mp3", "a.wav", "b"]);
        assert!(names.tracks(&[input("x/a.mp3"), input("y/a.mp3")]).is_err());
        let flat = Names::new(Path::new("o"), "{stem}.{ext}", "m", "wav").unwrap();
        assert!(flat.tracks(&[input("a.mp3")]).is_ok());
        assert!(flat.tracks(&[input("a.mp3"), input("b.mp3")]).is_err());
    }
}
