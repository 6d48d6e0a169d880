//! Stretches of speech in the forms that people and programs read.

use std::{fmt::Write, str::FromStr};

use serde::Serialize;

use super::VoiceActivity;
use crate::engine::{
    Span,
    formats::{clock, milliseconds},
};

/// A written form of [`VoiceActivity`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ActivityFormat {
    /// A line a stretch: start and end in seconds and the word `speech`, separated by tabs, which
    /// Audacity reads as labels.
    #[default]
    Text,
    /// Everything.
    Json,
    /// SubRip subtitles that say when there is speech.
    Srt,
}

#[derive(Serialize)]
struct Json<'a> {
    duration: f64,
    speech: f64,
    segments: &'a [Span],
    #[serde(skip_serializing_if = "Option::is_none")]
    chunks: Option<&'a [Span]>,
    frame: f64,
    #[serde(skip_serializing_if = "<[f32]>::is_empty")]
    probabilities: &'a [f32],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
}

impl ActivityFormat {
    /// All forms.
    pub const ALL: [ActivityFormat; 3] = [
        ActivityFormat::Text,
        ActivityFormat::Json,
        ActivityFormat::Srt,
    ];

    /// The name that requests use.
    pub fn name(self) -> &'static str {
        match self {
            ActivityFormat::Text => "text",
            ActivityFormat::Json => "json",
            ActivityFormat::Srt => "srt",
        }
    }

    /// Extension of a file in this form.
    pub fn extension(self) -> &'static str {
        match self {
            ActivityFormat::Text => "txt",
            other => other.name(),
        }
    }

    /// Writes `activity`; JSON has `chunks` beside its segments, the other forms instead of them.
    pub fn render(self, activity: &VoiceActivity, chunks: Option<&[Span]>) -> String {
        let shown = chunks.unwrap_or(&activity.segments);
        let mut out = String::new();
        match self {
            ActivityFormat::Text => {
                for Span { start, end } in shown {
                    // Writing to a String does not fail.
                    let _ = writeln!(out, "{start:.3}\t{end:.3}\tspeech");
                }
            }
            ActivityFormat::Srt => {
                for (i, span) in shown.iter().enumerate() {
                    let [start, end] =
                        [span.start, span.end].map(|time| clock(milliseconds(time), ','));
                    let _ = write!(out, "{}\n{start} --> {end}\nspeech\n\n", i + 1);
                }
            }
            ActivityFormat::Json => {
                let json = Json {
                    duration: activity.duration,
                    speech: activity.speech(),
                    segments: &activity.segments,
                    chunks,
                    frame: activity.frame,
                    probabilities: &activity.probabilities,
                    warnings: &activity.warnings,
                };
                // Numbers and lists always have a JSON form.
                out = serde_json::to_string_pretty(&json).unwrap_or_default();
                out.push('\n');
            }
        }
        out
    }
}

impl FromStr for ActivityFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| {
            let all = Self::ALL.map(ActivityFormat::name).join(", ");
            format!("unknown form `{name}`: expected one of {all}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_has_the_times() {
        let span = |start, end| Span { start, end };
        let activity = VoiceActivity {
            duration: 3700.0,
            segments: vec![span(0.25, 1.5), span(3661.0, 3662.0625)],
            frame: 0.032,
            ..VoiceActivity::default()
        };
        let render = |format: ActivityFormat| format.render(&activity, None);
        assert_eq!(
            render(ActivityFormat::Text),
            "0.250\t1.500\tspeech\n3661.000\t3662.062\tspeech\n"
        );
        assert_eq!(
            render(ActivityFormat::Srt),
            "1\n00:00:00,250 --> 00:00:01,500\nspeech\n\n\
             2\n01:01:01,000 --> 01:01:02,063\nspeech\n\n"
        );
        let json: serde_json::Value = serde_json::from_str(&render(ActivityFormat::Json)).unwrap();
        assert_eq!(json["segments"][1]["end"], 3662.0625);
        assert_eq!(json["speech"], 2.3125);
        assert!(json.get("chunks").is_none() && json.get("probabilities").is_none());
        let window = [span(0.0, 2.0)];
        let text = ActivityFormat::Text.render(&activity, Some(&window));
        assert_eq!(text, "0.000\t2.000\tspeech\n");
        for format in ActivityFormat::ALL {
            assert_eq!(format.name().parse::<ActivityFormat>(), Ok(format));
        }
    }
}
