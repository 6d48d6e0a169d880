//! Words with times, put into their segments.

use crate::split::split_words;
use crate::tokenizer::WhisperTokenizer;

/// Punctuation that belongs to the word after it.
pub const PREPENDED: &str = "\"'“¿([{-";
/// Punctuation that belongs to the word before it.
pub const APPENDED: &str = "\"'.。,，!！?？:：”)]}、";
/// Marks after which a pause is likely.
const SENTENCE_ENDS: &str = ".。!！?？";

/// One word; times in seconds from the start of the input.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// The text with its punctuation, and the blank before it.
    pub text: String,
    /// Where it begins.
    pub start: f64,
    /// Where it ends, at least `start`.
    pub end: f64,
    /// Mean probability of its tokens, 0..1.
    pub probability: f32,
    /// Number of its tokens.
    pub n_tokens: usize,
}

/// A segment as decoded: its times by the timestamp tokens, and its text tokens (no control
/// tokens, no timestamps).
#[derive(Clone, Debug, PartialEq)]
pub struct Segment<'a> {
    /// Seconds from the start of the input.
    pub start: f64,
    /// Seconds from the start of the input.
    pub end: f64,
    /// Its text.
    pub tokens: &'a [u32],
}

/// A segment with its words and the times that they give it.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedSegment {
    /// Where it begins.
    pub start: f64,
    /// Where it ends, at least `start`.
    pub end: f64,
    /// Words in order, all within `start..=end`, their starts never decreasing.
    pub words: Vec<Word>,
}

/// What is known of the tokens of one decoded window.
#[derive(Clone, Copy, Debug)]
pub struct Alignment<'a> {
    /// Seconds within the window at which each text token begins, and the end: one value more
    /// than tokens ([`token_times`](crate::alignment::Attention::token_times)).
    pub times: &'a [f64],
    /// Probability of each text token.
    pub probabilities: &'a [f32],
    /// Seconds from the start of the input to the window.
    pub offset: f64,
    /// Seconds of the whole input: nothing ends later.
    pub duration: f64,
    /// Where the last word before this window ended.
    pub last_speech: f64,
}

/// Puts words into the segments of one window. The text tokens of all segments, in order, are
/// those that `alignment` tells about; tokens that it does not tell about sit at its end.
pub fn time_words(
    tokenizer: &WhisperTokenizer,
    language: &str,
    segments: &[Segment],
    alignment: &Alignment,
) -> Vec<TimedSegment> {
    let mut words = Vec::new();
    let mut first = 0;
    for segment in segments {
        words.push(segment_words(
            tokenizer,
            language,
            segment.tokens,
            first,
            alignment,
        ));
        first += segment.tokens.len();
    }
    let limits = Limits::of(words.iter().flatten());
    limits.shorten_at_sentences(&mut words);
    let mut last_speech = alignment.last_speech;
    let mut timed = Vec::with_capacity(segments.len());
    for (segment, mut words) in segments.iter().zip(words) {
        merge_punctuation(&mut words);
        let mut segment = TimedSegment {
            start: segment.start,
            end: segment.end,
            words,
        };
        limits.shorten_at_pauses(&mut segment, last_speech);
        if !segment.words.is_empty() {
            last_speech = segment.end;
        }
        timed.push(segment);
    }
    settle(&mut timed, alignment.duration);
    timed
}

/// The words of one segment whose first token is number `first` of the window.
fn segment_words(
    tokenizer: &WhisperTokenizer,
    language: &str,
    tokens: &[u32],
    first: usize,
    alignment: &Alignment,
) -> Vec<Word> {
    let end = alignment.times.last().copied().unwrap_or(0.0);
    let time = |token: usize| alignment.offset + alignment.times.get(token).unwrap_or(&end);
    split_words(tokenizer, tokens, language)
        .into_iter()
        .map(|word| {
            let range = first + word.tokens.start..first + word.tokens.end;
            let probabilities = alignment.probabilities.get(range.clone()).unwrap_or(&[]);
            let sum: f32 = probabilities.iter().sum();
            Word {
                text: word.text,
                start: time(range.start),
                end: time(range.end),
                probability: sum / probabilities.len().max(1) as f32,
                n_tokens: range.len(),
            }
        })
        .collect()
}

/// Joins punctuation to the word that it belongs to.
fn merge_punctuation(words: &mut Vec<Word>) {
    let mut merged: Vec<Word> = Vec::with_capacity(words.len());
    for word in words.drain(..).rev() {
        let opens = word.text.starts_with(' ') && PREPENDED.contains(word.text.trim());
        match merged.last_mut() {
            // The text of the mark joins; the word keeps its own times.
            Some(next) if opens => join(next, &word, true),
            _ => merged.push(word),
        }
    }
    for word in merged.into_iter().rev() {
        let closes = APPENDED.contains(word.text.as_str());
        match words.last_mut() {
            Some(previous) if closes && !previous.text.ends_with(' ') => {
                join(previous, &word, false);
            }
            _ => words.push(word),
        }
    }
}

/// Adds the text and tokens of a punctuation mark to a word.
fn join(word: &mut Word, mark: &Word, before: bool) {
    word.text = match before {
        true => format!("{}{}", mark.text, word.text),
        false => format!("{}{}", word.text, mark.text),
    };
    word.n_tokens += mark.n_tokens;
}

/// Usual and greatest duration of a word in this window, in seconds.
#[derive(Clone, Copy, Debug)]
struct Limits {
    median: f64,
    max: f64,
}

impl Limits {
    /// The greatest is twice the median, with the median taken as 0.7 s at most.
    fn of<'w>(words: impl Iterator<Item = &'w Word>) -> Self {
        let mut durations: Vec<f64> = words.map(duration).filter(|d| *d > 0.0).collect();
        durations.sort_unstable_by(f64::total_cmp);
        let median = match durations.len() {
            0 => 0.0,
            n if n % 2 == 1 => durations[n / 2],
            n => (durations[n / 2 - 1] + durations[n / 2]) / 2.0,
        };
        let median = median.min(0.7);
        Limits {
            median,
            max: 2.0 * median,
        }
    }

    /// The path has to spend the silence between sentences somewhere: a mark that ends a
    /// sentence, and the word after it, are cut to the greatest duration.
    fn shorten_at_sentences(&self, segments: &mut [Vec<Word>]) {
        let mut after_end = None;
        for word in segments.iter_mut().flatten() {
            let ends = SENTENCE_ENDS.contains(word.text.as_str());
            if let Some(after_end) = after_end
                && duration(word) > self.max
                && self.max > 0.0
            {
                if ends {
                    word.end = word.start + self.max;
                } else if after_end {
                    word.start = word.end - self.max;
                }
            }
            after_end = Some(ends);
        }
    }

    /// After a pause the first two words tend to swallow the silence; and where a word at the
    /// edge is far from the segment's own timestamp, the timestamp is believed.
    fn shorten_at_pauses(&self, segment: &mut TimedSegment, last_speech: f64) {
        let TimedSegment { start, end, words } = segment;
        let Some(first) = words.first() else { return };
        let after_pause = first.end - last_speech > 4.0 * self.median;
        let too_long = duration(first) > self.max
            || words
                .get(1)
                .is_some_and(|second| second.end - first.start > 2.0 * self.max);
        if after_pause && too_long {
            if let [first, second, ..] = &mut words[..]
                && duration(second) > self.max
            {
                let boundary = (second.end / 2.0).max(second.end - self.max);
                first.end = boundary;
                second.start = boundary;
            }
            words[0].start = (words[0].end - self.max).max(0.0);
        }

        let first = &mut words[0];
        if *start < first.end && *start - 0.5 > first.start {
            first.start = (first.end - self.median).min(*start).max(0.0);
        } else {
            *start = first.start;
        }
        let last = words.len() - 1;
        let last = &mut words[last];
        if *end > last.start && *end + 0.5 < last.end {
            last.end = (last.start + self.median).max(*end);
        } else {
            *end = last.end;
        }
    }
}

fn duration(word: &Word) -> f64 {
    word.end - word.start
}

/// Brings all times into order: rounded to 10 ms, within the input, starts never decreasing,
/// words inside their segment.
fn settle(segments: &mut [TimedSegment], duration: f64) {
    let duration = duration.max(0.0);
    let round = |time: f64| {
        let time = (time * 100.0).round() / 100.0;
        if time.is_finite() { time } else { 0.0 }
    };
    let mut floor = 0.0_f64;
    for segment in segments {
        segment.start = round(segment.start).max(floor).min(duration);
        segment.end = round(segment.end).max(segment.start).min(duration);
        floor = segment.start;
        for word in &mut segment.words {
            word.start = round(word.start).max(floor).min(segment.end);
            word.end = round(word.end).max(word.start).min(segment.end);
            floor = word.start;
        }
    }
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
