//! What is told about finished speech: a line, times of words, a manifest.

use std::{
    fs::File,
    io::{BufWriter, IsTerminal, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use audiocpp::engine::{
    Error, FormatOptions, Segment, Speech, SynthesizeRequest, Transcript, TranscriptFormat, Word,
};
use serde_json::json;

use super::{args::SayArgs, sound::Place, texts::Item};
use crate::{
    failure::{Failure, Outcome},
    progress::Progress,
};

/// Speech that was written.
pub struct Done {
    /// What was said; its samples are gone.
    pub speech: Speech,
    /// How long it took.
    pub seconds: f64,
    /// When the first sound was there.
    pub first: Option<f64>,
}

impl Done {
    /// Says what was written and how fast it was: to people at a terminal, and to logs.
    pub fn tell(&self, progress: &Progress, id: &str, place: &Place) {
        let length = self.speech.duration;
        let speed = length / self.seconds.max(1e-9);
        let first = self.first.map_or(String::new(), |first| {
            format!(", first sound after {first:.2} s")
        });
        let name = match place {
            Place::File(path) => path.display().to_string(),
            Place::Stdout | Place::Stream | Place::None => id.to_owned(),
        };
        let line = format!(
            "{name}: {length:.2} s of speech in {:.2} s ({speed:.1} times real time){first}",
            self.seconds
        );
        if std::io::stderr().is_terminal() {
            progress.line(&line);
        } else {
            tracing::info!("{line}");
        }
    }
}

/// Segments, words and sounds with their times.
pub fn timings_json(speech: &Speech) -> String {
    format!(
        "{:#}\n",
        json!({ "duration": speech.duration, "segments": speech.segments })
    )
}

/// Subtitles of the text as it was given.
pub fn captions(request: &SynthesizeRequest, speech: &Speech, format: TranscriptFormat) -> String {
    let options = FormatOptions {
        words: false,
        translated: false,
        no_segments: false,
        max_line_width: Some(42),
        max_line_count: Some(2),
        max_words_per_line: None,
    };
    format.render(&transcript(request, speech), &options)
}

/// The same as if it had been recognised: words carry the marks behind them.
fn transcript(request: &SynthesizeRequest, speech: &Speech) -> Transcript {
    let text: Vec<char> = request.text.chars().collect();
    let starts: Vec<usize> = speech.words().map(|word| word.from).collect();
    let mut next = 0;
    let segments = speech.segments.iter().map(|segment| {
        let words = segment.words.iter().map(|word| {
            next += 1;
            let end = starts.get(next).copied().unwrap_or(text.len()).max(word.to);
            let shown: String = text[word.from.min(text.len())..end.min(text.len())]
                .iter()
                .collect();
            let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            Word {
                word: format!(" {shown}"),
                start: word.start,
                end: word.end,
                probability: 1.0,
            }
        });
        let words: Vec<Word> = words.collect();
        Segment {
            id: segment.id,
            start: segment.start,
            end: segment.end,
            text: format!(
                " {}",
                segment
                    .text
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" ")
            ),
            words,
            ..Segment::default()
        }
    });
    Transcript {
        text: request.text.clone(),
        language: request.language.clone(),
        duration: speech.duration,
        segments: segments.collect(),
        warnings: Vec::new(),
    }
}

/// A list of what became of each text, written as it grows.
pub struct Manifest {
    out: Option<(PathBuf, BufWriter<File>)>,
    done: usize,
    seconds: f64,
}

impl Manifest {
    /// The manifest that was asked for, or that of a batch in its folder.
    pub fn new(args: &SayArgs, batch: bool, places: &[Place]) -> Outcome<Self> {
        let in_folder = || match places.first() {
            Some(Place::File(path)) if batch => Some(path.with_file_name("manifest.jsonl")),
            _ => None,
        };
        let out = match args.manifest.clone().or_else(in_folder) {
            Some(path) => {
                let file = File::create(&path)
                    .map_err(|error| Failure::run(Error::file(&path, &error)))?;
                Some((path, BufWriter::new(file)))
            }
            None => None,
        };
        Ok(Manifest {
            out,
            done: 0,
            seconds: 0.0,
        })
    }

    /// Adds one text.
    pub fn add(&mut self, item: &Item, place: &Place, result: &Result<Done, Error>) -> Outcome {
        if let Ok(done) = result {
            self.done += 1;
            self.seconds += done.speech.duration;
        }
        let Some((path, out)) = &mut self.out else {
            return Ok(());
        };
        let file = match place {
            Place::File(file) => Some(relative(file, path)),
            _ => None,
        };
        let line = match result {
            Ok(done) => json!({
                "id": item.id, "text": item.text, "file": file, "duration": done.speech.duration,
                "seconds": done.seconds, "segments": done.speech.segments, "warnings": done.speech.warnings,
            }),
            Err(error) => json!({ "id": item.id, "text": item.text, "error": error }),
        };
        let written = writeln!(out, "{line}").and_then(|()| out.flush());
        written.map_err(|error| Failure::run(Error::file(path, &error)))
    }

    /// One line about all of them.
    pub fn summary(&self, failed: usize, took: Duration) -> String {
        let took = took.as_secs_f64();
        format!(
            "{} done, {failed} failed: {:.1} s of speech in {took:.1} s",
            self.done, self.seconds
        )
    }
}

/// The name of a result as seen from the manifest.
fn relative(file: &Path, manifest: &Path) -> PathBuf {
    let folder = manifest.parent().unwrap_or(Path::new(""));
    file.strip_prefix(folder).unwrap_or(file).to_owned()
}
