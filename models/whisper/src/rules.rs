//! Which token may come next: forbidden tokens, and the grammar of timestamps.

use audiocpp::simd;

use crate::tokenizer::{N_TIMESTAMPS, Special, WhisperTokenizer};

/// Timestamps up to this may open a window: 1.0 s in steps of 0.02 s.
const MAX_INITIAL_TIMESTAMP: u32 = 50;

/// What the decoder may write.
#[derive(Debug, Clone)]
pub struct Rules {
    special: Special,
    suppressed: Vec<u32>,
    blank: Vec<u32>,
    timestamps: bool,
    last_timestamp: u32,
}

impl Rules {
    /// With timestamps or without any.
    pub fn new(tokenizer: &WhisperTokenizer, timestamps: bool) -> crate::tokenizer::Result<Rules> {
        let special = *tokenizer.special();
        Ok(Rules {
            special,
            suppressed: tokenizer.suppressed_tokens()?,
            blank: tokenizer.blank_tokens()?,
            timestamps,
            last_timestamp: special.timestamp_begin + N_TIMESTAMPS - 1,
        })
    }

    /// Permits timestamps up to `steps` of 0.02 s: the length of the window's audio.
    pub fn end_at(&mut self, steps: u32) {
        self.last_timestamp = self.special.timestamp_begin + steps;
    }

    /// Sets the scores of all tokens that may not follow `written` to minus infinity.
    pub fn apply(&self, scores: &mut [f32], written: &[u32]) {
        for &token in &self.suppressed {
            forbid(scores, token as usize..token as usize + 1);
        }
        if written.is_empty() {
            for &token in &self.blank {
                forbid(scores, token as usize..token as usize + 1);
            }
        }
        let begin = self.special.timestamp_begin as usize;
        // All control tokens between the end token and the timestamps.
        forbid(scores, self.special.sot as usize..begin);
        if !self.timestamps {
            forbid(scores, begin..usize::MAX);
            return;
        }
        self.timestamp_grammar(scores, written, begin);
        // If a timestamp, whichever, is more probable than every text token, it is one.
        let text = simd::max(&scores[..begin.min(scores.len())]);
        if simd::log_sum_exp(&scores[begin.min(scores.len())..]) > text {
            forbid(scores, 0..begin);
        }
    }

    /// Timestamps come in pairs (end of one segment, start of the next), never decrease, and the
    /// first token is one.
    fn timestamp_grammar(&self, scores: &mut [f32], written: &[u32], begin: usize) {
        let is_time = |token: &u32| *token >= self.special.timestamp_begin;
        let last = written.last().is_some_and(is_time);
        let before = written.len() < 2 || is_time(&written[written.len() - 2]);
        if last && before {
            forbid(scores, begin..usize::MAX);
        } else if last {
            forbid(scores, 0..self.special.eot as usize);
        }
        if let Some(&time) = written.iter().rfind(|token| is_time(token)) {
            // The start of a segment may repeat the end of the one before; an end must move on.
            let least = if last && !before { time } else { time + 1 };
            forbid(scores, begin..least as usize);
        }
        if written.is_empty() {
            forbid(scores, 0..begin);
            forbid(
                scores,
                begin + MAX_INITIAL_TIMESTAMP as usize + 1..usize::MAX,
            );
        }
        forbid(scores, self.last_timestamp as usize + 1..usize::MAX);
    }
}

fn forbid(scores: &mut [f32], tokens: std::ops::Range<usize>) {
    let end = tokens.end.min(scores.len());
    let start = tokens.start.min(end);
    scores[start..end].fill(f32::NEG_INFINITY);
}
