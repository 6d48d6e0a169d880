//! Subtitles: what is shown, and from when to when.

use super::FormatOptions;
use crate::engine::{Segment, Transcript};
use crate::text::lines;

/// One subtitle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cue {
    /// Milliseconds from the start of the input.
    pub(super) start: u64,
    /// Milliseconds, at least `start`.
    pub(super) end: u64,
    /// Its lines, without blanks at their ends; at least one.
    pub(super) lines: Vec<String>,
}

/// A piece of text with its time in seconds.
struct Piece {
    text: String,
    start: f64,
    end: f64,
}

/// Seconds in whole milliseconds; 0 for what is no time.
pub(in crate::engine) fn milliseconds(seconds: f64) -> u64 {
    // A conversion of a float saturates, and makes 0 of NaN.
    (seconds * 1000.0).round() as u64
}

/// The subtitles of a transcript, in order. No subtitle crosses a segment or cuts a word; starts
/// never decrease, and none ends after the input.
pub(super) fn cues(transcript: &Transcript, options: &FormatOptions) -> Vec<Cue> {
    let mut cues: Vec<Cue> = transcript
        .segments
        .iter()
        .flat_map(|segment| segment_cues(segment, options))
        .collect();
    let limit = match milliseconds(transcript.duration) {
        0 => u64::MAX,
        duration => duration,
    };
    let mut floor = 0;
    for cue in &mut cues {
        cue.start = cue.start.max(floor).min(limit);
        cue.end = cue.end.max(cue.start).min(limit);
        floor = cue.start;
    }
    cues
}

fn segment_cues(segment: &Segment, options: &FormatOptions) -> Vec<Cue> {
    let pieces = pieces(segment);
    let texts: Vec<&str> = pieces.iter().map(|piece| piece.text.as_str()).collect();
    let filled = lines::fill(&texts, options.max_line_width, options.max_words_per_line);
    let per_cue = match (options.max_line_count, options.max_words_per_line) {
        (Some(count), _) => count.max(1),
        (None, Some(_)) => 1,
        (None, None) => usize::MAX,
    };
    filled
        .chunks(per_cue)
        .map(|lines| {
            let shown = &pieces[lines[0].start..lines[lines.len() - 1].end];
            Cue {
                start: milliseconds(shown[0].start),
                end: milliseconds(shown[shown.len() - 1].end),
                lines: lines
                    .iter()
                    .map(|line| clean(&texts[line.clone()].concat()))
                    .filter(|line| !line.is_empty())
                    .collect(),
            }
        })
        .filter(|cue| !cue.lines.is_empty())
        .collect()
}

/// The words of a segment; without words, its text cut where lines may end, each part at the
/// time that its share of the characters gives it.
fn pieces(segment: &Segment) -> Vec<Piece> {
    if !segment.words.is_empty() {
        let piece = |word: &crate::engine::Word| Piece {
            text: word.word.clone(),
            start: word.start,
            end: word.end,
        };
        return segment.words.iter().map(piece).collect();
    }
    let total = lines::width(&segment.text).max(1) as f64;
    let mut before = 0;
    let at = |graphemes: usize| {
        segment.start + (segment.end - segment.start) * (graphemes as f64 / total)
    };
    lines::pieces(&segment.text)
        .into_iter()
        .map(|text| {
            let start = at(before);
            before += lines::width(text);
            Piece {
                text: text.to_owned(),
                start,
                end: at(before),
            }
        })
        .collect()
}

/// One line of text: no blanks at its ends, no line breaks or other runs of blanks inside.
fn clean(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
