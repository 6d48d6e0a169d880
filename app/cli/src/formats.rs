//! Transcripts in the forms that the command line offers.

use std::fmt::Write;

use audiocpp::engine::{Segment, TranscribeRequest, Transcript};
use serde_json::json;

use crate::args::Format;

/// A transcript in one form, with a line break at its end.
pub fn render(transcript: &Transcript, format: Format, request: &TranscribeRequest) -> String {
    match format {
        Format::Text => format!("{}\n", transcript.text.trim()),
        Format::Json => format!("{:#}\n", json!({ "text": transcript.text.trim() })),
        Format::VerboseJson => verbose_json(transcript, request),
        Format::Srt => {
            let mut text = String::new();
            for (index, segment) in spoken(transcript).enumerate() {
                let (start, end) = (clock(segment.start, ','), clock(segment.end, ','));
                let words = cue(segment);
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{}\n{start} --> {end}\n{words}\n", index + 1);
            }
            text
        }
        Format::Vtt => {
            let mut text = String::from("WEBVTT\n\n");
            for segment in spoken(transcript) {
                let (start, end) = (clock(segment.start, '.'), clock(segment.end, '.'));
                let words = cue(segment).replace('&', "&amp;").replace('<', "&lt;");
                let _ = writeln!(text, "{start} --> {end}\n{words}\n");
            }
            text
        }
        Format::Tsv => {
            let mut text = String::from("start\tend\ttext\n");
            for segment in spoken(transcript) {
                let (start, end) = (milliseconds(segment.start), milliseconds(segment.end));
                let words = cue(segment).replace('\t', " ");
                let _ = writeln!(text, "{start}\t{end}\t{words}");
            }
            text
        }
    }
}

/// Segments that have words.
fn spoken(transcript: &Transcript) -> impl Iterator<Item = &Segment> {
    transcript
        .segments
        .iter()
        .filter(|segment| !segment.text.trim().is_empty())
}

/// The text of a segment on one line that cannot be taken for a time line.
fn cue(segment: &Segment) -> String {
    let words: Vec<&str> = segment.text.split_whitespace().collect();
    words.join(" ").replace("-->", "->")
}

fn milliseconds(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1000.0).round() as u64
}

/// `HH:MM:SS` and milliseconds behind `mark`.
fn clock(seconds: f64, mark: char) -> String {
    let ms = milliseconds(seconds);
    let (hours, minutes) = (ms / 3_600_000, ms / 60_000 % 60);
    format!(
        "{hours:02}:{minutes:02}:{:02}{mark}{:03}",
        ms / 1000 % 60,
        ms % 1000
    )
}

/// OpenAI's verbose form; words stand at the top when they were asked for.
fn verbose_json(transcript: &Transcript, request: &TranscribeRequest) -> String {
    let segments: Vec<serde_json::Value> = transcript
        .segments
        .iter()
        .map(|segment| {
            let bare = Segment {
                words: Vec::new(),
                ..segment.clone()
            };
            json!(bare)
        })
        .collect();
    let mut value = json!({
        "task": if request.translate { "translate" } else { "transcribe" },
        "language": transcript.language,
        "duration": transcript.duration,
        "text": transcript.text.trim(),
        "segments": segments,
    });
    if request.words {
        value["words"] = json!(transcript.words().collect::<Vec<_>>());
    }
    if !transcript.warnings.is_empty() {
        value["warnings"] = json!(transcript.warnings);
    }
    format!("{value:#}\n")
}

/// Every word with its times, as a JSON list.
pub fn words_json(transcript: &Transcript) -> String {
    let words: Vec<_> = transcript.words().collect();
    format!("{:#}\n", json!(words))
}

/// Every segment with its times, as a JSON list.
pub fn segments_json(transcript: &Transcript) -> String {
    format!("{:#}\n", json!(transcript.segments))
}

#[cfg(test)]
mod tests {
    use audiocpp::engine::Word;

    use super::*;

    fn transcript() -> Transcript {
        let word = Word {
            word: " Hello".into(),
            start: 3661.0,
            end: 3661.5,
            probability: 0.5,
        };
        let segment = |text: &str, words: Vec<Word>| Segment {
            start: 3661.0,
            end: 3662.0015,
            text: text.into(),
            words,
            ..Segment::default()
        };
        Transcript {
            text: " Hello <b> --> you".into(),
            language: Some("en".into()),
            duration: 3700.0,
            segments: vec![
                segment(" Hello <b> -->\tyou", vec![word]),
                segment(" ", Vec::new()),
            ],
            warnings: Vec::new(),
        }
    }

    #[test]
    fn subtitles_carry_times_and_harmless_text() {
        let of = |format| render(&transcript(), format, &TranscribeRequest::default());
        assert_eq!(
            of(Format::Srt),
            "1\n01:01:01,000 --> 01:01:02,002\nHello <b> -> you\n\n"
        );
        assert_eq!(
            of(Format::Vtt),
            "WEBVTT\n\n01:01:01.000 --> 01:01:02.002\nHello &lt;b> -> you\n\n"
        );
        assert_eq!(
            of(Format::Tsv),
            "start\tend\ttext\n3661000\t3662002\tHello <b> -> you\n"
        );
    }

    #[test]
    fn words_stand_at_the_top_only_when_asked_for() {
        let mut request = TranscribeRequest::default();
        let of = |request: &TranscribeRequest| -> serde_json::Value {
            serde_json::from_str(&render(&transcript(), Format::VerboseJson, request)).unwrap()
        };
        assert!(of(&request).get("words").is_none());
        request.words = true;
        let value = of(&request);
        assert_eq!(value["words"][0]["end"], 3661.5);
        assert!(value["segments"][0].get("words").is_none());
        for key in [
            "id",
            "seek",
            "tokens",
            "temperature",
            "avg_logprob",
            "no_speech_prob",
        ] {
            assert!(value["segments"][0].get(key).is_some(), "{key}");
        }
    }
}
