//! Where a turn begins and ends, from what a detector finds in the last seconds of sound.

use audiocpp::{
    audio::{WavFormat, wav_bytes},
    engine::{DetectSpeechRequest, Span, SpeechRules},
};

use super::{
    audio::{Buffer, clip},
    config::{Config, TurnRules},
};
use crate::{
    http::{
        app::Shared,
        error::{ApiError, Result},
        spool::{Spool, Spooled},
        voice_activity::found,
        work::Work,
    },
    job::Job,
};

/// New sound that makes another look worth while.
const STEP_MS: u64 = 200;

/// Sound that is kept while nobody speaks, beside the padding.
const IDLE_MS: u64 = 1500;

/// Sound before the silence that is looked at while somebody speaks.
const TAIL_MS: u64 = 1500;

/// A turn that is longer is cut.
const LONGEST_MS: u64 = 60_000;

/// Whether somebody is speaking, and how far the sound was looked at.
#[derive(Debug, Default)]
pub struct Turns {
    /// First sample of the turn that is going on.
    pub speaking: Option<usize>,
    looked: usize,
}

/// What a look at the sound brought.
#[derive(Debug, PartialEq)]
pub enum Change {
    /// Nothing new.
    None,
    /// A turn began at this sample.
    Started(usize),
    /// The turn ended at this sample.
    Stopped(usize),
}

impl Turns {
    /// Forgets everything.
    pub fn reset(&mut self) {
        *self = Turns::default();
    }

    /// `count` samples were taken from the front of the buffer.
    pub fn taken(&mut self, count: usize) {
        self.looked = self.looked.saturating_sub(count);
        self.speaking = self.speaking.map(|at| at.saturating_sub(count));
    }

    /// Whether enough sound came for another look.
    pub fn due(&self, buffer: &Buffer, rate: u32) -> bool {
        buffer.len() >= self.looked + samples(STEP_MS, rate)
    }

    /// Looks at the sound.
    pub async fn look(
        &mut self,
        app: &Shared,
        config: &Config,
        rules: TurnRules,
        buffer: &Buffer,
        request_id: &str,
    ) -> Result<Change> {
        let rate = config.format.rate();
        self.looked = buffer.len();
        let from = match self.speaking {
            None => 0,
            Some(start) => {
                let tail = samples(rules.silence_duration_ms + TAIL_MS, rate);
                buffer.len().saturating_sub(tail).max(start)
            }
        };
        let spans = detect(app, config, rules, buffer.tail(from), request_id).await?;
        let change = decide(self.speaking, &spans, from, buffer.len(), rules, rate);
        match change {
            Change::Started(at) => self.speaking = Some(at),
            Change::Stopped(_) => self.speaking = None,
            Change::None => {}
        }
        Ok(change)
    }

    /// Samples at the front of the buffer that no turn will need.
    pub fn stale(&self, buffer: &Buffer, rules: TurnRules, rate: u32) -> usize {
        match self.speaking {
            Some(_) => 0,
            None => buffer
                .len()
                .saturating_sub(samples(IDLE_MS + rules.prefix_padding_ms, rate)),
        }
    }
}

/// What the stretches of speech in the samples `from..end` mean.
fn decide(
    speaking: Option<usize>,
    spans: &[Span],
    from: usize,
    end: usize,
    rules: TurnRules,
    rate: u32,
) -> Change {
    let at = |seconds: f64| from + (seconds * f64::from(rate)) as usize;
    match speaking {
        None => match spans.first() {
            Some(first) => {
                let padding = samples(rules.prefix_padding_ms, rate);
                Change::Started(at(first.start).saturating_sub(padding))
            }
            None => Change::None,
        },
        Some(start) => {
            let last = spans.last().map_or(from, |last| at(last.end)).min(end);
            if end - last >= samples(rules.silence_duration_ms, rate) {
                // Some of the silence belongs to the turn: words fade out.
                Change::Stopped((last + samples(rules.silence_duration_ms / 2, rate)).min(end))
            } else if end - start >= samples(LONGEST_MS, rate) {
                Change::Stopped(end)
            } else {
                Change::None
            }
        }
    }
}

fn samples(milliseconds: u64, rate: u32) -> usize {
    (milliseconds * u64::from(rate) / 1000) as usize
}

async fn detect(
    app: &Shared,
    config: &Config,
    rules: TurnRules,
    heard: &[i16],
    request_id: &str,
) -> Result<Vec<Span>> {
    let Some(detector) = &config.detector else {
        return Err(ApiError::internal("no detector is configured"));
    };
    let file = spooled(app, heard, config.format.rate()).await?;
    let request = DetectSpeechRequest {
        rules: SpeechRules {
            threshold: rules.threshold,
            padding: 0.0,
            ..SpeechRules::default()
        },
        ..DetectSpeechRequest::default()
    };
    let job = Job::DetectSpeech {
        request,
        audio: file.path(),
    };
    let mut work = Work::start(app, detector, job, request_id, None).await?;
    Ok(found(work.outcome().await?)?.segments)
}

/// Samples as a file that jobs can read.
pub async fn spooled(app: &Shared, heard: &[i16], rate: u32) -> Result<Spooled> {
    let bytes = wav_bytes(&clip(heard, rate), WavFormat::Pcm16);
    let bytes = bytes.map_err(|error| ApiError::internal(error.to_string()))?;
    let mut spool = Spool::create(&app.settings.spool_dir)?;
    spool.write(&bytes).await?;
    spool.finish().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_begin_with_speech_and_end_with_silence() {
        let rules = TurnRules::default();
        let span = |start, end| Span { start, end };
        let decide = |speaking, spans: &[Span], from, end| {
            super::decide(speaking, spans, from, end, rules, 1000)
        };
        assert_eq!(decide(None, &[], 0, 1000), Change::None);
        assert_eq!(
            decide(None, &[span(0.5, 0.9)], 0, 1000),
            Change::Started(200)
        );
        assert_eq!(decide(None, &[span(0.1, 0.9)], 0, 1000), Change::Started(0));
        let going = [span(0.0, 0.8)];
        assert_eq!(decide(Some(200), &going, 1000, 2000), Change::None);
        assert_eq!(decide(Some(200), &going, 1000, 2300), Change::Stopped(2050));
        assert_eq!(decide(Some(200), &[], 1000, 3000), Change::Stopped(1250));
        assert_eq!(
            decide(Some(0), &[span(0.0, 2.0)], 58_000, 60_000),
            Change::Stopped(60_000)
        );
    }
}
