//! Whether a decoded window can be trusted: repetition, probability, silence, and the
//! temperatures that are tried in turn.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// What the gates look at in one decoded window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attempt {
    /// Sampling temperature of this attempt.
    pub temperature: f32,
    /// [`compression_ratio`] of the text.
    pub compression_ratio: f32,
    /// [`average_logprob`] of the tokens.
    pub avg_logprob: f32,
    /// Probability of the no-speech token at the first position.
    pub no_speech_prob: f32,
}

/// The thresholds; None switches a gate off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gates {
    /// Text that compresses better than this is repetitive.
    pub compression_ratio: Option<f32>,
    /// A window whose mean log probability is lower than this has failed.
    pub logprob: Option<f32>,
    /// A window with a higher no-speech probability is silence, unless its text is probable.
    pub no_speech: Option<f32>,
}

impl Default for Gates {
    fn default() -> Self {
        Gates {
            compression_ratio: Some(2.4),
            logprob: Some(-1.0),
            no_speech: Some(0.6),
        }
    }
}

impl Gates {
    /// Whether the next temperature should be tried. Improbable text over likely silence is not
    /// worth another attempt.
    pub fn needs_fallback(&self, attempt: &Attempt) -> bool {
        let improbable = self.improbable(attempt);
        if self.sounds_silent(attempt) && improbable {
            return false;
        }
        improbable || self.repetitive(attempt)
    }

    /// Whether the window is to be skipped as silence: no speech is likely, and the text is not
    /// probable enough to overrule that.
    pub fn is_silence(&self, attempt: &Attempt) -> bool {
        let overruled = self
            .logprob
            .is_some_and(|threshold| attempt.avg_logprob > threshold);
        self.sounds_silent(attempt) && !overruled
    }

    /// The attempt to keep after all temperatures failed: the most probable of those that are
    /// not repetitive, else the most probable of all. None for an empty list.
    pub fn best(&self, attempts: &[Attempt]) -> Option<usize> {
        let rank = |attempt: &Attempt| (!self.repetitive(attempt), attempt.avg_logprob);
        (0..attempts.len()).max_by(|a, b| {
            let (a, b) = (rank(&attempts[*a]), rank(&attempts[*b]));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        })
    }

    fn repetitive(&self, attempt: &Attempt) -> bool {
        self.compression_ratio
            .is_some_and(|threshold| attempt.compression_ratio > threshold)
    }

    fn improbable(&self, attempt: &Attempt) -> bool {
        self.logprob
            .is_some_and(|threshold| attempt.avg_logprob < threshold)
    }

    fn sounds_silent(&self, attempt: &Attempt) -> bool {
        self.no_speech
            .is_some_and(|threshold| attempt.no_speech_prob > threshold)
    }
}

/// The temperatures to try: from `first` to 1.0 in steps of `step`; only `first` when the step
/// is not positive.
pub fn temperatures(first: f32, step: f32) -> Vec<f32> {
    let count = if step > 0.0 && first < 1.0 {
        ((1.0 - first) / step + 1e-4).min(100.0) as usize
    } else {
        0
    };
    (0..=count).map(|i| first + i as f32 * step).collect()
}

/// Bytes of `text` over the bytes of its zlib stream; 0 for an empty text. Speech lies between
/// about 1 and 2, a decoder's loop far above.
pub fn compression_ratio(text: &str) -> f32 {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    // Writing into a Vec does not fail.
    let compressed = encoder
        .write_all(text.as_bytes())
        .and_then(|()| encoder.finish());
    match compressed {
        Ok(bytes) if !bytes.is_empty() => text.len() as f32 / bytes.len() as f32,
        _ => 0.0,
    }
}

/// Mean log probability of a decoded window: the sum over its `n_tokens` tokens and the end
/// token, over their number.
pub fn average_logprob(sum: f32, n_tokens: usize) -> f32 {
    sum / (n_tokens + 1) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Attempt = Attempt {
        temperature: 0.0,
        compression_ratio: 1.5,
        avg_logprob: -0.3,
        no_speech_prob: 0.1,
    };

    #[test]
    fn fallback_on_repetition_or_low_probability_but_not_on_silence() {
        let gates = Gates::default();
        let with = |compression_ratio, avg_logprob, no_speech_prob| {
            gates.needs_fallback(&Attempt {
                compression_ratio,
                avg_logprob,
                no_speech_prob,
                ..GOOD
            })
        };
        assert!(!with(1.5, -0.3, 0.1));
        assert!(with(2.5, -0.3, 0.1));
        assert!(!with(2.4, -1.0, 0.1), "thresholds themselves pass");
        assert!(with(1.5, -1.1, 0.1));
        assert!(!with(2.5, -1.1, 0.7), "silence is accepted as it is");
        assert!(with(2.5, -0.3, 0.7), "probable text is not silence");
        let off = Gates {
            compression_ratio: None,
            logprob: None,
            no_speech: None,
        };
        assert!(!off.needs_fallback(&Attempt {
            compression_ratio: 99.0,
            avg_logprob: -9.0,
            ..GOOD
        }));
    }

    #[test]
    fn silence_is_overruled_by_probable_text() {
        let gates = Gates::default();
        let silent = Attempt {
            no_speech_prob: 0.9,
            ..GOOD
        };
        assert!(!gates.is_silence(&silent));
        assert!(gates.is_silence(&Attempt {
            avg_logprob: -1.2,
            ..silent
        }));
        assert!(!gates.is_silence(&Attempt {
            avg_logprob: -1.2,
            ..GOOD
        }));
        let without_logprob = Gates {
            logprob: None,
            ..gates
        };
        assert!(without_logprob.is_silence(&silent));
    }

    #[test]
    fn best_failure_is_the_most_probable_that_does_not_repeat() {
        let attempt = |compression_ratio, avg_logprob| Attempt {
            compression_ratio,
            avg_logprob,
            ..GOOD
        };
        let gates = Gates::default();
        let attempts = [attempt(9.0, -0.2), attempt(1.5, -1.6), attempt(1.4, -1.2)];
        assert_eq!(gates.best(&attempts), Some(2));
        assert_eq!(gates.best(&attempts[..1]), Some(0));
        assert_eq!(gates.best(&[]), None);
    }

    #[test]
    fn ladder_of_temperatures() {
        let ladder = temperatures(0.0, 0.2);
        assert_eq!(ladder.len(), 6);
        assert!((ladder[5] - 1.0).abs() < 1e-6);
        assert_eq!(temperatures(0.4, 0.0), [0.4]);
        assert_eq!(temperatures(0.25, 0.25), [0.25, 0.5, 0.75, 1.0]);
        assert_eq!(temperatures(1.0, 0.2), [1.0]);
    }

    #[test]
    fn compression_ratios_are_those_of_zlib() {
        // Values of Python's len(text) / len(zlib.compress(text)).
        let speech = "And so my fellow Americans ask not what your country can do for you, \
                      ask what you can do for your country.";
        let looped = "Thank you. ".repeat(20);
        for (text, zlib) in [(speech, 1.3418), (looped.as_str(), 10.0000), ("", 0.0)] {
            let ratio = compression_ratio(text);
            assert!((ratio - zlib).abs() <= 0.03 * zlib, "{ratio} for {zlib}");
        }
    }

    #[test]
    fn mean_logprob_counts_the_end_token() {
        assert_eq!(average_logprob(-6.0, 5), -1.0);
        assert_eq!(average_logprob(-0.5, 0), -0.5);
    }
}
