//! Transcripts in the forms that people and programs read.

mod cues;
mod json;

use std::fmt::Write;
use std::str::FromStr;

use super::Transcript;
pub(in crate::engine) use cues::milliseconds;
use cues::{Cue, cues};

/// A written form of a transcript.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TranscriptFormat {
    /// The words alone.
    #[default]
    Text,
    /// `{"text": ..., "usage": ...}`.
    Json,
    /// Segments with times and scores, with the fields of OpenAI's API.
    VerboseJson,
    /// SubRip subtitles.
    Srt,
    /// WebVTT subtitles.
    Vtt,
    /// A line a segment: start and end in whole milliseconds, text; separated by tabs.
    Tsv,
}

/// What goes into a written transcript.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FormatOptions {
    /// The transcript is a translation into English.
    pub translated: bool,
    /// `verbose_json` gets the list of words too.
    pub words: bool,
    /// `verbose_json` leaves the segments out.
    pub no_segments: bool,
    /// Greatest length of a subtitle line, in graphemes.
    pub max_line_width: Option<usize>,
    /// Greatest number of lines of a subtitle; without it a segment is one subtitle.
    pub max_line_count: Option<usize>,
    /// Greatest number of words in a subtitle line; by itself it makes one line a subtitle.
    pub max_words_per_line: Option<usize>,
}

impl TranscriptFormat {
    /// All forms.
    pub const ALL: [TranscriptFormat; 6] = [
        TranscriptFormat::Text,
        TranscriptFormat::Json,
        TranscriptFormat::VerboseJson,
        TranscriptFormat::Srt,
        TranscriptFormat::Vtt,
        TranscriptFormat::Tsv,
    ];

    /// The name that requests use.
    pub fn name(self) -> &'static str {
        match self {
            TranscriptFormat::Text => "text",
            TranscriptFormat::Json => "json",
            TranscriptFormat::VerboseJson => "verbose_json",
            TranscriptFormat::Srt => "srt",
            TranscriptFormat::Vtt => "vtt",
            TranscriptFormat::Tsv => "tsv",
        }
    }

    /// Extension of a file in this form.
    pub fn extension(self) -> &'static str {
        match self {
            TranscriptFormat::Text => "txt",
            TranscriptFormat::VerboseJson => "json",
            other => other.name(),
        }
    }

    /// MIME type of an answer in this form. Subtitles are text, never JSON: clients parse by it.
    pub fn content_type(self) -> &'static str {
        match self {
            TranscriptFormat::Json | TranscriptFormat::VerboseJson => "application/json",
            TranscriptFormat::Vtt => "text/vtt; charset=utf-8",
            TranscriptFormat::Tsv => "text/tab-separated-values; charset=utf-8",
            TranscriptFormat::Text | TranscriptFormat::Srt => "text/plain; charset=utf-8",
        }
    }

    /// Writes a transcript in this form.
    pub fn render(self, transcript: &Transcript, options: &FormatOptions) -> String {
        match self {
            TranscriptFormat::Text => format!("{}\n", transcript.text.trim()),
            TranscriptFormat::Json => json::json(transcript),
            TranscriptFormat::VerboseJson => json::verbose_json(transcript, options),
            TranscriptFormat::Srt => srt(&cues(transcript, options)),
            TranscriptFormat::Vtt => vtt(&cues(transcript, options)),
            TranscriptFormat::Tsv => tsv(&cues(transcript, &FormatOptions::default())),
        }
    }
}

impl FromStr for TranscriptFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| {
            let all = Self::ALL.map(TranscriptFormat::name).join(", ");
            format!("unknown transcript format `{name}`: expected one of {all}")
        })
    }
}

/// Hours, minutes, seconds and milliseconds, with the mark between the last two.
pub(in crate::engine) fn clock(ms: u64, mark: char) -> String {
    let (seconds, ms) = (ms / 1000, ms % 1000);
    let (minutes, seconds) = (seconds / 60, seconds % 60);
    let (hours, minutes) = (minutes / 60, minutes % 60);
    format!("{hours:02}:{minutes:02}:{seconds:02}{mark}{ms:03}")
}

fn srt(cues: &[Cue]) -> String {
    let mut out = String::new();
    for (i, cue) in cues.iter().enumerate() {
        let (start, end) = (clock(cue.start, ','), clock(cue.end, ','));
        // An arrow in the text would read as a line of times.
        let text = cue.lines.join("\n").replace("-->", "->");
        // Writing to a String does not fail.
        let _ = write!(out, "{}\n{start} --> {end}\n{text}\n\n", i + 1);
    }
    out
}

fn vtt(cues: &[Cue]) -> String {
    let mut out = String::from("WEBVTT\n\n");
    for cue in cues {
        let (start, end) = (clock(cue.start, '.'), clock(cue.end, '.'));
        let text = cue.lines.join("\n");
        let text = text
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        let _ = write!(out, "{start} --> {end}\n{text}\n\n");
    }
    out
}

fn tsv(cues: &[Cue]) -> String {
    let mut out = String::from("start\tend\ttext\n");
    for cue in cues {
        let _ = writeln!(out, "{}\t{}\t{}", cue.start, cue.end, cue.lines.join(" "));
    }
    out
}

#[cfg(test)]
mod tests;
