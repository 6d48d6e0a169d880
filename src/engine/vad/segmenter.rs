//! Stretches of speech from frames' probabilities, as they come.

use std::collections::VecDeque;

use super::SpeechRules;

/// A stretch of samples: from `start`, up to but not including `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleSpan {
    /// First sample.
    pub start: u64,
    /// Sample after the last.
    pub end: u64,
}

impl SampleSpan {
    fn length(self) -> u64 {
        self.end - self.start
    }
}

/// [`SpeechRules`] in samples.
#[derive(Clone, Copy, Debug)]
struct Limits {
    enter: f64,
    exit: f64,
    min_speech: f64,
    min_silence: f64,
    padding: f64,
    max_speech: f64,
    min_silence_at_cut: f64,
}

/// Speech that has begun and not ended.
#[derive(Clone, Debug)]
struct Running {
    start: u64,
    /// Where the silence began that may be its end.
    silent_from: Option<u64>,
    /// Silences in it where it may be cut.
    silences: Vec<SampleSpan>,
}

impl Running {
    fn from(start: u64) -> Running {
        Running {
            start,
            silent_from: None,
            silences: Vec::new(),
        }
    }
}

/// Makes speech of probabilities by hysteresis, as silero-vad 6.2 does: begins at one threshold,
/// ends below a lower one, drops what is short, cuts what is long, pads what is left.
///
/// What it finds does not depend on how the probabilities were handed over.
#[derive(Clone, Debug)]
pub struct Segmenter {
    frame: u64,
    limits: Limits,
    /// Samples of the frames so far.
    heard: u64,
    running: Option<Running>,
    /// Speech that is over, without padding; it waits for what follows it.
    closed: Option<SampleSpan>,
    /// Start of `closed`, with padding.
    padded_start: Option<u64>,
    ready: VecDeque<SampleSpan>,
}

impl Segmenter {
    /// For frames of `frame` samples at `rate`; `rules` that passed their check.
    pub fn new(rules: &SpeechRules, rate: u32, frame: usize) -> Segmenter {
        let rate = f64::from(rate);
        let padding = rate * rules.padding;
        let longest = rules.max_speech.unwrap_or(f64::INFINITY);
        Segmenter {
            frame: frame as u64,
            limits: Limits {
                enter: rules.threshold,
                exit: rules.exit_threshold(),
                min_speech: rate * rules.min_speech,
                min_silence: rate * rules.min_silence,
                padding,
                max_speech: rate * longest - frame as f64 - 2.0 * padding,
                min_silence_at_cut: rate * rules.min_silence_at_cut,
            },
            heard: 0,
            running: None,
            closed: None,
            padded_start: None,
            ready: VecDeque::new(),
        }
    }

    /// Takes the probability of the next frame.
    pub fn push(&mut self, probability: f32) {
        let now = self.heard;
        self.heard += self.frame;
        let probability = f64::from(probability);
        if probability >= self.limits.enter {
            match &mut self.running {
                None => {
                    self.running = Some(Running::from(now));
                    return;
                }
                Some(running) => {
                    if let Some(start) = running.silent_from.take()
                        && (now - start) as f64 > self.limits.min_silence_at_cut
                    {
                        running.silences.push(SampleSpan { start, end: now });
                    }
                }
            }
        }
        if self.cut_if_long(now) {
            return;
        }
        if probability < self.limits.exit {
            self.hear_silence(now);
        }
        self.release();
    }

    /// Cuts speech that has become too long; true if none runs afterwards.
    fn cut_if_long(&mut self, now: u64) -> bool {
        let Some(running) = &mut self.running else {
            return false;
        };
        if (now - running.start) as f64 <= self.limits.max_speech {
            return false;
        }
        let start = running.start;
        // Of equally long silences the first.
        let longest = running.silences.iter().copied().reduce(|best, next| {
            match next.length() > best.length() {
                true => next,
                false => best,
            }
        });
        let (end, next) = match longest {
            Some(silence) => (silence.start, Some(Running::from(silence.end))),
            None => (now, None),
        };
        self.running = next;
        self.close(SampleSpan { start, end });
        self.running.is_none()
    }

    /// A frame without speech: the running speech ends if it is silent for long enough.
    fn hear_silence(&mut self, now: u64) {
        let Some(running) = &mut self.running else {
            return;
        };
        let end = *running.silent_from.get_or_insert(now);
        if ((now - end) as f64) < self.limits.min_silence {
            return;
        }
        let start = running.start;
        self.running = None;
        if (end - start) as f64 > self.limits.min_speech {
            self.close(SampleSpan { start, end });
        }
    }

    /// Adds speech that is over; the gap before it can now be shared out.
    fn close(&mut self, speech: SampleSpan) {
        let padding = self.limits.padding;
        let start = match self.closed.take() {
            None => (speech.start as f64 - padding).max(0.0) as u64,
            Some(before) => {
                let gap = speech.start - before.end;
                if (gap as f64) < 2.0 * padding {
                    self.settle(before.end + gap / 2);
                    speech.start - gap / 2
                } else {
                    self.settle((before.end as f64 + padding) as u64);
                    (speech.start as f64 - padding).max(0.0) as u64
                }
            }
        };
        self.padded_start = Some(start);
        self.closed = Some(speech);
    }

    /// Gives out the speech that waits, with the padded `end`.
    fn settle(&mut self, end: u64) {
        if let Some(start) = self.padded_start.take() {
            self.ready.push_back(SampleSpan { start, end });
        }
    }

    /// Gives out what waits as soon as nothing that may come can change its end.
    fn release(&mut self) {
        let Some(last) = self.closed else {
            return;
        };
        let next = self.running.as_ref().map_or(self.heard, |r| r.start);
        if (next - last.end) as f64 >= 2.0 * self.limits.padding {
            let end = (last.end as f64 + self.limits.padding) as u64;
            self.closed = None;
            self.settle(end);
        }
    }

    /// Ends the input, which was `samples` long; the last frame may have been filled up.
    pub fn finish(&mut self, samples: u64) {
        if let Some(running) = self.running.take()
            && samples.saturating_sub(running.start) as f64 > self.limits.min_speech
        {
            self.close(SampleSpan {
                start: running.start,
                end: samples,
            });
        }
        if let Some(last) = self.closed.take() {
            let end = (last.end as f64 + self.limits.padding) as u64;
            self.settle(end.min(samples));
        }
        for span in &mut self.ready {
            span.end = span.end.min(samples);
        }
    }

    /// The next finished stretch, with its padding.
    pub fn next_span(&mut self) -> Option<SampleSpan> {
        self.ready.pop_front()
    }

    /// Where the speech began that is running now, without padding. It may still turn out too
    /// short to count.
    pub fn speaking_since(&self) -> Option<u64> {
        self.running.as_ref().map(|running| running.start)
    }

    /// No stretch that is still to come begins before this sample.
    pub fn settled(&self) -> u64 {
        let next = self
            .padded_start
            .or(self.speaking_since())
            .unwrap_or(self.heard);
        (next as f64 - self.limits.padding).max(0.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spans in frames of one sample at a rate of 1000, so that a frame is a millisecond.
    fn spans(rules: &SpeechRules, probabilities: &[(f32, usize)]) -> Vec<(u64, u64)> {
        let mut segmenter = Segmenter::new(rules, 1000, 1);
        for (probability, times) in probabilities {
            (0..*times).for_each(|_| segmenter.push(*probability));
        }
        segmenter.finish(segmenter.heard);
        std::iter::from_fn(|| segmenter.next_span())
            .map(|span| (span.start, span.end))
            .collect()
    }

    #[test]
    fn speech_lasts_until_it_is_silent_for_long_enough() {
        let rules = SpeechRules::default();
        let quiet = (0.1, 500);
        assert_eq!(spans(&rules, &[quiet, (0.9, 300), quiet]), [(470, 830)]);
        // Between the thresholds nothing ends; 99 ms of silence are no end either.
        let talk = [
            (0.9, 300),
            (0.4, 400),
            (0.9, 100),
            (0.1, 99),
            (0.9, 10),
            quiet,
        ];
        assert_eq!(spans(&rules, &talk), [(0, 939)]);
        assert_eq!(spans(&rules, &[(0.9, 250), quiet]), [], "too short");
        assert_eq!(
            spans(&rules, &[quiet, (0.9, 400)]),
            [(470, 900)],
            "to the end"
        );
    }

    #[test]
    fn padding_is_shared_where_there_is_no_room() {
        let rules = SpeechRules {
            padding: 0.2,
            ..SpeechRules::default()
        };
        let found = spans(&rules, &[(0.9, 300), (0.0, 151), (0.9, 300), (0.0, 1000)]);
        assert_eq!(found, [(0, 375), (376, 951)]);
    }

    #[test]
    fn long_speech_is_cut_at_its_longest_silence() {
        let rules = SpeechRules {
            max_speech: Some(1.0),
            padding: 0.0,
            min_silence: 0.5,
            ..SpeechRules::default()
        };
        let talk = [(0.9, 300), (0.1, 100), (0.9, 200), (0.1, 150), (0.9, 900)];
        // Cut at 1000 ms: at the silence from 600 to 750; then there is none any more.
        assert_eq!(spans(&rules, &talk), [(0, 600), (750, 1650)]);
        assert_eq!(spans(&rules, &[(0.9, 1500)]), [(0, 1000), (1001, 1500)]);
    }

    #[test]
    fn a_stretch_is_given_out_when_nothing_can_change_it() {
        let mut segmenter = Segmenter::new(&SpeechRules::default(), 1000, 1);
        (0..400).for_each(|_| segmenter.push(0.9));
        assert_eq!(segmenter.speaking_since(), Some(0));
        (0..100).for_each(|_| segmenter.push(0.0));
        assert_eq!((segmenter.next_span(), segmenter.settled()), (None, 0));
        segmenter.push(0.0);
        let span = SampleSpan { start: 0, end: 430 };
        assert_eq!(segmenter.next_span(), Some(span));
        assert_eq!(
            (segmenter.speaking_since(), segmenter.settled()),
            (None, 471)
        );
    }
}
