//! The texts of a job: given, from files, from standard input, or many in a JSONL file.

use std::{
    fs,
    io::{IsTerminal, Read},
    path::{Path, PathBuf},
};

use audiocpp::engine::hint;
use serde::Deserialize;

use super::args::Say;
use crate::failure::{Failure, Outcome};

/// One text to speak, with what is its own.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Item {
    /// Name of the result, without extension.
    pub id: String,
    /// What to say.
    pub text: String,
    /// Voice, where it is not that of the job.
    pub voice: Option<String>,
    /// Language, where it is not that of the job.
    pub language: Option<String>,
    /// Speed, where it is not that of the job.
    pub speed: Option<f32>,
    /// Seed, where it is not that of the job.
    pub seed: Option<u64>,
    /// Instructions, where they are not those of the job.
    pub instructions: Option<String>,
}

/// The texts, and whether they are a batch, whose results go to a folder.
pub struct Texts {
    /// In order.
    pub items: Vec<Item>,
    /// More than one may come.
    pub batch: bool,
}

/// Reads every text before anything is spoken.
pub fn read(say: &Say) -> Outcome<Texts> {
    let args = &say.request;
    let sources = usize::from(say.text.is_some())
        + usize::from(!args.text_file.is_empty())
        + usize::from(args.batch.is_some());
    if sources != 1 {
        let found = if sources == 0 {
            "nothing to say"
        } else {
            "more than one source of text"
        };
        return Err(Failure::usage(format!(
            "{found}: wanted a text, - for standard input, --text-file FILE or --batch FILE.jsonl"
        )));
    }
    if let Some(path) = &args.batch {
        return Ok(Texts {
            items: lines(path)?,
            batch: true,
        });
    }
    if let Some(text) = &say.text {
        let text = if text == "-" { stdin()? } else { text.clone() };
        let item = Item {
            id: "speech".into(),
            text,
            ..Item::default()
        };
        return Ok(Texts {
            items: vec![item],
            batch: false,
        });
    }
    let paths = files(&args.text_file)?;
    let many = paths.len() > 1 || args.text_file.iter().any(|name| Path::new(name).is_dir());
    let items = paths.iter().map(|path| {
        Ok(Item {
            id: path
                .file_stem()
                .unwrap_or(path.as_os_str())
                .to_string_lossy()
                .into_owned(),
            text: file(path)?,
            ..Item::default()
        })
    });
    let items = items.collect::<Outcome<Vec<_>>>()?;
    different(&items)?;
    Ok(Texts { items, batch: many })
}

fn stdin() -> Outcome<String> {
    let mut stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(Failure::usage(
            "standard input is a terminal: pipe a text into it",
        ));
    }
    let mut bytes = Vec::new();
    let read = stdin.read_to_end(&mut bytes);
    read.map_err(|error| Failure::failed(format!("standard input: {error}")))?;
    utf8(bytes, "standard input")
}

fn file(path: &Path) -> Outcome<String> {
    let bytes =
        fs::read(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    utf8(bytes, &path.display().to_string())
}

/// Text of a file; a byte order mark is left out.
fn utf8(bytes: Vec<u8>, name: &str) -> Outcome<String> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::usage(format!(
            "{name} is not UTF-8 text: byte {at} is no part of a character"
        ))
    })?;
    Ok(text
        .strip_prefix('\u{feff}')
        .map(str::to_owned)
        .unwrap_or(text))
}

/// Files, folders of .txt files, and patterns, in order.
fn files(named: &[String]) -> Outcome<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for name in named {
        let path = Path::new(name);
        let found: Vec<PathBuf> = if path.is_dir() {
            let inside =
                fs::read_dir(path).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
            let texts = inside.flatten().map(|entry| entry.path());
            texts
                .filter(|path| {
                    path.extension()
                        .is_some_and(|e| e.eq_ignore_ascii_case("txt"))
                })
                .collect()
        } else if path.exists() {
            vec![path.to_owned()]
        } else if name.contains(['*', '?', '[']) {
            let matches =
                glob::glob(name).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
            matches.flatten().filter(|path| path.is_file()).collect()
        } else {
            let near = siblings(path);
            let hint = hint(name, near.iter().map(String::as_str));
            return Err(Failure::usage(format!("{name}: no such file{hint}")));
        };
        if found.is_empty() {
            return Err(Failure::usage(format!("{name}: no text file there")));
        }
        let mut found = found;
        found.sort();
        paths.extend(found);
    }
    Ok(paths)
}

fn siblings(path: &Path) -> Vec<String> {
    let folder = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let inside = fs::read_dir(folder.unwrap_or(Path::new(".")))
        .into_iter()
        .flatten()
        .flatten();
    let shown = inside.map(|entry| match folder {
        Some(folder) => folder.join(entry.file_name()).display().to_string(),
        None => entry.file_name().to_string_lossy().into_owned(),
    });
    shown.collect()
}

/// The requests of a JSONL file.
fn lines(path: &Path) -> Outcome<Vec<Item>> {
    let name = path.display();
    let mut items = Vec::new();
    for (index, line) in file(path)?.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let number = index + 1;
        let mut item: Item = serde_json::from_str(line)
            .map_err(|error| Failure::usage(format!("{name}, line {number}: {error}")))?;
        if item.id.is_empty() {
            item.id = format!("{number:04}");
        }
        let odd =
            item.id.contains(['/', '\\', '\0', ':']) || matches!(item.id.as_str(), "." | "..");
        if odd || item.id.len() > 200 {
            return Err(Failure::usage(format!(
                "{name}, line {number}: the id `{}` cannot be the name of a file",
                item.id.escape_default()
            )));
        }
        items.push(item);
    }
    if items.is_empty() {
        return Err(Failure::usage(format!("{name}: no requests in it")));
    }
    different(&items)?;
    Ok(items)
}

fn different(items: &[Item]) -> Outcome {
    let mut seen = std::collections::HashSet::new();
    match items.iter().find(|item| !seen.insert(item.id.as_str())) {
        Some(twice) => Err(Failure::usage(format!(
            "two texts would be written as `{}`",
            twice.id
        ))),
        None => Ok(()),
    }
}
