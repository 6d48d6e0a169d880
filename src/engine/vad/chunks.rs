//! Windows around speech, for models that take so much sound at a time.

use serde::{Deserialize, Serialize};

use crate::engine::{
    Span,
    error::{Error, Result},
};

/// How speech is gathered into windows. Times in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChunkRules {
    /// No window is longer.
    pub max_length: f64,
    /// Speech after a longer silence begins a new window.
    pub merge_gap: f64,
    /// Sound that a window has before and after its speech, where there is room.
    pub padding: f64,
}

impl Default for ChunkRules {
    fn default() -> Self {
        ChunkRules {
            max_length: 45.0,
            merge_gap: 0.5,
            padding: 0.25,
        }
    }
}

impl ChunkRules {
    /// An error that names the first value that makes no sense.
    pub fn check(&self) -> Result<()> {
        let day = 86_400.0;
        let within = [
            ("the longest chunk", self.max_length, 0.5, day),
            ("the gap that is merged", self.merge_gap, 0.0, day),
            (
                "the padding of chunks",
                self.padding,
                0.0,
                self.max_length / 4.0,
            ),
        ];
        for (name, value, least, most) in within {
            if !(least..=most).contains(&value) {
                return Err(Error::bad_input(format!(
                    "{name} is {value} s, wanted {least} to {most}"
                )));
            }
        }
        Ok(())
    }

    /// The longest speech that leaves room for padding.
    pub fn max_speech(&self) -> f64 {
        self.max_length - 2.0 * self.padding
    }
}

/// Windows over all of `speech`, in a recording of `duration` seconds.
pub fn chunks(speech: &[Span], rules: &ChunkRules, duration: f64) -> Vec<Span> {
    let mut chunker = Chunker::new(*rules);
    let mut found = Vec::new();
    for span in speech {
        chunker.push(*span, &mut found);
    }
    found.extend(chunker.finish(duration));
    found
}

/// The same as speech is found.
#[derive(Clone, Debug)]
pub(super) struct Chunker {
    rules: ChunkRules,
    /// Speech of the window that is open.
    open: Option<Span>,
    /// End of the window before.
    done: f64,
}

impl Chunker {
    pub fn new(rules: ChunkRules) -> Chunker {
        Chunker {
            rules,
            open: None,
            done: 0.0,
        }
    }

    /// Takes the next speech; windows that it ends go to `out`.
    pub fn push(&mut self, speech: Span, out: &mut Vec<Span>) {
        let length = speech.end - speech.start;
        let parts = (length / self.rules.max_speech()).ceil().max(1.0);
        let mut start = speech.start;
        for part in 1..=parts as u64 {
            let end = speech.start + length * (part as f64 / parts);
            self.push_part(Span { start, end }, out);
            start = end;
        }
    }

    fn push_part(&mut self, speech: Span, out: &mut Vec<Span>) {
        if let Some(open) = &mut self.open {
            let close = speech.start - open.end <= self.rules.merge_gap;
            if close && speech.end - open.start <= self.rules.max_speech() {
                open.end = speech.end;
                return;
            }
            let middle = 0.5 * (open.end + speech.start);
            out.extend(self.close(middle));
        }
        self.open = Some(speech);
    }

    /// Ends the open window if no speech from `settled` on can belong to it.
    pub fn advance(&mut self, settled: f64) -> Option<Span> {
        let open = self.open?;
        let gap = self.rules.merge_gap.max(2.0 * self.rules.padding);
        (settled > open.end + gap)
            .then(|| self.close(f64::INFINITY))
            .flatten()
    }

    /// Ends the last window.
    pub fn finish(&mut self, duration: f64) -> Option<Span> {
        self.close(duration)
    }

    /// No window that is still to come begins before this time, if no speech begins before
    /// `settled`.
    pub fn needed_from(&self, settled: f64) -> f64 {
        let first = self.open.map_or(settled, |open| open.start);
        (first - self.rules.padding).max(self.done)
    }

    fn close(&mut self, limit: f64) -> Option<Span> {
        let speech = self.open.take()?;
        let window = Span {
            start: (speech.start - self.rules.padding).max(self.done),
            end: (speech.end + self.rules.padding).min(limit),
        };
        self.done = window.end;
        Some(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(times: &[(f64, f64)]) -> Vec<Span> {
        let span = |&(start, end)| Span { start, end };
        times.iter().map(span).collect()
    }

    const RULES: ChunkRules = ChunkRules {
        max_length: 10.0,
        merge_gap: 1.0,
        padding: 0.5,
    };

    #[test]
    fn near_speech_shares_a_window_until_it_is_full() {
        let speech = spans(&[
            (0.2, 2.0),
            (2.5, 4.0),
            (6.0, 8.0),
            (8.5, 14.0),
            (14.5, 17.0),
        ]);
        let found = chunks(&speech, &RULES, 17.2);
        let wanted = [(0.0, 4.5), (5.5, 14.25), (14.25, 17.2)];
        assert_eq!(found, spans(&wanted));
    }

    #[test]
    fn speech_that_is_too_long_is_cut_evenly() {
        let found = chunks(&spans(&[(1.0, 28.0)]), &RULES, 30.0);
        assert_eq!(found, spans(&[(0.5, 10.0), (10.0, 19.0), (19.0, 28.5)]));
        assert!(found.iter().all(|c| c.end - c.start <= RULES.max_length));
    }

    #[test]
    fn windows_are_given_out_when_they_cannot_grow() {
        let mut chunker = Chunker::new(RULES);
        let mut out = Vec::new();
        chunker.push(
            Span {
                start: 3.0,
                end: 4.0,
            },
            &mut out,
        );
        assert_eq!(
            (chunker.advance(5.0), chunker.needed_from(5.0)),
            (None, 2.5)
        );
        let window = Span {
            start: 2.5,
            end: 4.5,
        };
        assert_eq!(chunker.advance(5.1), Some(window));
        assert_eq!(
            (chunker.needed_from(4.8), chunker.needed_from(9.0)),
            (4.5, 8.5)
        );
        assert!(out.is_empty() && chunker.finish(9.0).is_none());
    }

    #[test]
    fn padding_must_leave_room() {
        let rules = ChunkRules {
            max_length: 1.0,
            ..RULES
        };
        assert!(rules.check().unwrap_err().message.contains("padding"));
        assert!(ChunkRules::default().check().is_ok());
    }
}
