//! When a probability becomes speech.

use serde::{Deserialize, Serialize};

use crate::engine::error::{Error, Result};

/// How stretches of speech are made from probabilities. Times in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SpeechRules {
    /// Speech begins at this probability, 0..1.
    pub threshold: f64,
    /// Speech ends below this; `None` is 0.15 below `threshold`, at least 0.01.
    pub neg_threshold: Option<f64>,
    /// Shorter speech is dropped.
    pub min_speech: f64,
    /// Shorter silence does not end speech.
    pub min_silence: f64,
    /// Added at both ends of speech, where there is room.
    pub padding: f64,
    /// Longer speech is cut, at its longest silence if it has one; `None` is any length.
    pub max_speech: Option<f64>,
    /// Shorter silence is no place for such a cut.
    pub min_silence_at_cut: f64,
}

impl Default for SpeechRules {
    fn default() -> Self {
        SpeechRules {
            threshold: 0.5,
            neg_threshold: None,
            min_speech: 0.25,
            min_silence: 0.1,
            padding: 0.03,
            max_speech: None,
            min_silence_at_cut: 0.098,
        }
    }
}

impl SpeechRules {
    /// The probability below which speech ends.
    pub fn exit_threshold(&self) -> f64 {
        self.neg_threshold
            .unwrap_or_else(|| (self.threshold - 0.15).max(0.01))
    }

    /// An error that names the first value that makes no sense.
    pub fn check(&self) -> Result<()> {
        let day = 86_400.0;
        let within = [
            ("threshold", self.threshold, 0.0, 1.0),
            ("neg_threshold", self.exit_threshold(), 0.0, 1.0),
            ("min_speech", self.min_speech, 0.0, day),
            ("min_silence", self.min_silence, 0.0, day),
            ("padding", self.padding, 0.0, day),
            ("max_speech", self.max_speech.unwrap_or(day), 0.1, day),
            ("min_silence_at_cut", self.min_silence_at_cut, 0.0, day),
        ];
        for (name, value, least, most) in within {
            if !(least..=most).contains(&value) {
                return Err(Error::bad_input(format!(
                    "{name} is {value}, wanted {least} to {most}"
                )));
            }
        }
        if self.exit_threshold() > self.threshold {
            return Err(Error::bad_input(format!(
                "neg_threshold is {}, wanted at most the threshold {}",
                self.exit_threshold(),
                self.threshold
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senseless_values_are_named() {
        assert!(SpeechRules::default().check().is_ok());
        let with = |change: fn(&mut SpeechRules)| {
            let mut rules = SpeechRules::default();
            change(&mut rules);
            rules.check().unwrap_err().message
        };
        assert!(with(|r| r.threshold = 1.5).contains("threshold is 1.5"));
        assert!(with(|r| r.padding = f64::NAN).contains("padding"));
        assert!(with(|r| r.min_silence = -1.0).contains("min_silence"));
        assert!(with(|r| r.max_speech = Some(0.0)).contains("max_speech"));
        assert!(with(|r| r.neg_threshold = Some(0.6)).contains("at most the threshold"));
    }

    #[test]
    fn the_exit_lies_below_the_threshold() {
        let exit = |threshold: f64| {
            let rules = SpeechRules {
                threshold,
                ..SpeechRules::default()
            };
            assert!(rules.check().is_ok());
            rules.exit_threshold()
        };
        assert_eq!(exit(0.5), 0.35);
        assert_eq!(exit(0.1), 0.01);
    }
}
