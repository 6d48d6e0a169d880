//! The JSON forms, with the fields of OpenAI's API.

use serde::Serialize;

use super::FormatOptions;
use crate::engine::Transcript;
use crate::text::languages;

#[derive(Serialize)]
struct Plain<'a> {
    text: &'a str,
    usage: Usage,
}

/// What a request is charged for: seconds of sound.
#[derive(Serialize)]
struct Usage {
    r#type: &'static str,
    seconds: f64,
}

#[derive(Serialize)]
struct Verbose<'a> {
    task: &'static str,
    language: &'a str,
    duration: f64,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    segments: Option<Vec<VerboseSegment<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<Vec<VerboseWord<'a>>>,
    usage: Usage,
}

#[derive(Serialize)]
struct VerboseSegment<'a> {
    id: u32,
    seek: u64,
    start: f64,
    end: f64,
    text: &'a str,
    tokens: &'a [u32],
    temperature: f32,
    avg_logprob: f32,
    compression_ratio: f32,
    no_speech_prob: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    speaker: Option<&'a str>,
}

#[derive(Serialize)]
struct VerboseWord<'a> {
    word: &'a str,
    start: f64,
    end: f64,
}

pub(super) fn json(transcript: &Transcript) -> String {
    written(&Plain {
        text: transcript.text.trim(),
        usage: usage(transcript),
    })
}

/// `language` is the English name, as OpenAI writes it; the code where it has none here.
pub(super) fn verbose_json(transcript: &Transcript, options: &FormatOptions) -> String {
    let language = match transcript.language.as_deref() {
        _ if options.translated => "english",
        Some(code) => languages::name(code).unwrap_or(code),
        None => "unknown",
    };
    let segments = transcript.segments.iter().map(|segment| VerboseSegment {
        id: segment.id,
        seek: segment.seek,
        start: finite(segment.start),
        end: finite(segment.end),
        text: &segment.text,
        tokens: &segment.tokens,
        temperature: finite_f32(segment.temperature),
        avg_logprob: finite_f32(segment.avg_logprob),
        compression_ratio: finite_f32(segment.compression_ratio),
        no_speech_prob: finite_f32(segment.no_speech_prob),
        speaker: segment.speaker.as_deref(),
    });
    let words = transcript.words().map(|word| VerboseWord {
        word: word.word.trim(),
        start: finite(word.start),
        end: finite(word.end),
    });
    written(&Verbose {
        task: match options.translated {
            true => "translate",
            false => "transcribe",
        },
        language,
        duration: finite(transcript.duration),
        text: transcript.text.trim(),
        segments: (!options.no_segments).then(|| segments.collect()),
        words: options.words.then(|| words.collect()),
        usage: usage(transcript),
    })
}

fn usage(transcript: &Transcript) -> Usage {
    Usage {
        r#type: "duration",
        seconds: finite(transcript.duration),
    }
}

/// JSON has no NaN: serde would write null, which clients do not expect in these fields.
fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

fn finite_f32(value: f32) -> f32 {
    if value.is_finite() { value } else { 0.0 }
}

fn written(value: &impl Serialize) -> String {
    // Strings, numbers and lists always have a JSON form.
    let mut json = serde_json::to_string_pretty(value).unwrap_or_default();
    json.push('\n');
    json
}
