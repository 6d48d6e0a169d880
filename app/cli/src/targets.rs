//! Where the results go.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use audiocpp::engine::{Error, TranscriptFormat};

use crate::{
    args::TranscribeArgs,
    failure::{Failure, Outcome},
    inputs::{Input, Place},
};

/// The place of one result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
    /// Only the extra files that were asked for.
    None,
}

impl Target {
    /// The file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Target::File(path) => Some(path),
            _ => None,
        }
    }
}

/// Decides form and place of every result before anything is run, and refuses places that are
/// taken: inputs, results of other inputs, missing folders.
pub fn plan(
    inputs: &[Input],
    request: &TranscribeArgs,
    folder: Option<&Path>,
) -> Outcome<(TranscriptFormat, Vec<Target>)> {
    let out = folder
        .or(request.out.as_deref())
        .filter(|out| *out != Path::new("-"));
    let extra = [&request.text_out, &request.words_out, &request.segments_out];
    let extra: Vec<&Path> = extra.into_iter().flatten().map(PathBuf::as_path).collect();
    let count = inputs.len();
    if count > 1 && !extra.is_empty() {
        return Err(Failure::usage(format!(
            "--text-out, --words-out and --segments-out take one input, not {count}: use --format \
             and a folder with --out"
        )));
    }
    let named = request.format.or_else(|| {
        let extension = out.filter(|out| !out.is_dir())?.extension()?.to_str()?;
        let like = |format: &TranscriptFormat| format.extension().eq_ignore_ascii_case(extension);
        [TranscriptFormat::Json]
            .into_iter()
            .chain(TranscriptFormat::ALL)
            .find(like)
    });
    let format = named.unwrap_or_default();
    let targets = match out {
        Some(out) => in_files(
            inputs,
            format.extension(),
            out,
            folder.is_some() || count > 1,
        )?,
        None if count > 1 && format != TranscriptFormat::Text => {
            return Err(Failure::usage(format!(
                "{count} results in this form do not fit on standard output: name a folder with --out"
            )));
        }
        None if !extra.is_empty() && request.out.is_none() && named.is_none() => {
            vec![Target::None; count]
        }
        None => vec![Target::Stdout; count],
    };
    let files = targets.iter().filter_map(Target::file);
    refuse_taken(inputs, files.chain(extra))?;
    Ok((format, targets))
}

/// One file for every input: `out` itself, or a name in the folder `out`.
pub fn in_files(inputs: &[Input], extension: &str, out: &Path, many: bool) -> Outcome<Vec<Target>> {
    if !many && !out.is_dir() && !ends_open(Some(out)) {
        return Ok(vec![Target::File(out.to_owned())]);
    }
    if out.is_file() {
        let out = out.display();
        return Err(Failure::usage(format!(
            "{out} is a file, wanted a folder for the results"
        )));
    }
    let mut stems: HashMap<String, usize> = HashMap::new();
    for input in inputs {
        *stems.entry(input.stem()).or_default() += 1;
    }
    let name = |input: &Input| {
        let stem = input.stem();
        let alike = stems.get(&stem).is_some_and(|count| *count > 1);
        let base = if alike { input.file_name() } else { stem };
        Target::File(out.join(format!("{base}.{extension}")))
    };
    Ok(inputs.iter().map(name).collect())
}

/// Whether a place is written as a folder, with a separator at its end.
pub fn ends_open(out: Option<&Path>) -> bool {
    out.is_some_and(|out| out.as_os_str().to_string_lossy().ends_with(['/', '\\']))
}

/// An error if a result would overwrite an input or another result, or has no folder to be in.
pub fn refuse_taken<'a>(inputs: &[Input], files: impl Iterator<Item = &'a Path>) -> Outcome {
    let real = |path: &Path| fs::canonicalize(path).ok();
    let read: Vec<PathBuf> = inputs
        .iter()
        .filter_map(|input| match &input.place {
            Place::Path(path) => real(path),
            _ => None,
        })
        .collect();
    let mut seen: Vec<&Path> = Vec::new();
    for file in files {
        let shown = file.display();
        if real(file).is_some_and(|file| read.contains(&file)) {
            return Err(Failure::usage(format!(
                "{shown} is an input and would be overwritten"
            )));
        }
        if seen.contains(&file) {
            return Err(Failure::usage(format!(
                "two results would be written to {shown}"
            )));
        }
        if file.is_dir() {
            return Err(Failure::usage(format!(
                "{shown} is a folder, wanted a file"
            )));
        }
        seen.push(file);
    }
    Ok(())
}

/// An error if the folder of a single result is missing; the folders of batches are made.
pub fn require_folder(target: &Target) -> Outcome {
    match folder_of(target) {
        Some(folder) if !folder.is_dir() => Err(Failure::usage(format!(
            "there is no folder {}",
            folder.display()
        ))),
        _ => Ok(()),
    }
}

/// Makes the folder that a result needs.
pub fn make_folder(target: &Target) -> Result<(), Error> {
    match folder_of(target) {
        Some(folder) => fs::create_dir_all(folder)
            .map_err(|error| Error::file(folder, &error).context("cannot make the folder")),
        None => Ok(()),
    }
}

fn folder_of(target: &Target) -> Option<&Path> {
    let path = target.file()?;
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
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

    fn request(out: &str) -> TranscribeArgs {
        TranscribeArgs {
            out: Some(out.into()),
            ..Default::default()
        }
    }

    fn file(path: &str) -> Target {
        Target::File(path.into())
    }

    #[test]
    fn the_name_of_the_result_tells_its_form() {
        let (format, targets) = plan(&[input("a.mp3")], &request("x.srt"), None).unwrap();
        assert_eq!(
            (format, targets),
            (TranscriptFormat::Srt, vec![file("x.srt")])
        );
        let (format, targets) = plan(&[input("a.mp3")], &request("-"), None).unwrap();
        assert_eq!(
            (format, targets),
            (TranscriptFormat::Text, vec![Target::Stdout])
        );
    }

    #[test]
    fn batches_go_to_a_folder_under_names_that_differ() {
        let inputs = [input("x/a.mp3"), input("x/a.wav"), input("x/b.wav")];
        let mut request = request("new");
        request.format = Some(TranscriptFormat::Vtt);
        let (_, targets) = plan(&inputs, &request, None).unwrap();
        let wanted = [
            file("new/a.mp3.vtt"),
            file("new/a.wav.vtt"),
            file("new/b.vtt"),
        ];
        assert_eq!(targets, wanted);
        request.out = None;
        assert!(
            plan(&inputs, &request, None)
                .unwrap_err()
                .message
                .contains("folder")
        );
        let same = [input("x/a.mp3"), input("y/a.mp3")];
        let error = plan(&same, &request, Some(Path::new("new"))).unwrap_err();
        assert!(error.message.contains("two results"), "{error}");
    }

    #[test]
    fn an_input_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wav");
        fs::write(&path, "x").unwrap();
        let inputs = [input(path.to_str().unwrap())];
        let around = folder.path().join(".").join("a.wav");
        let error = plan(&inputs, &request(around.to_str().unwrap()), None).unwrap_err();
        assert!(error.message.contains("would be overwritten"), "{error}");
        let mut words = TranscribeArgs {
            words_out: Some(path.clone()),
            ..Default::default()
        };
        assert!(plan(&inputs, &words, None).is_err());
        words.words_out = Some(folder.path().join("w.json"));
        assert_eq!(plan(&inputs, &words, None).unwrap().1, [Target::None]);
    }
}
