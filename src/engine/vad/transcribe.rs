//! Recognition of the speech alone: silence, music and noise are left out, times stay those of the
//! whole recording.

use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use super::{ChunkRules, Heard, TimeMap, chunks::Chunker};
use crate::{
    audio::{Audio, AudioSource, downmix},
    engine::{
        DetectSpeech, DetectSpeechRequest, Event, RunContext, Segment, Span, Transcribe,
        TranscribeRequest, Transcript, Unit, Word, error::Result,
    },
};

/// Seconds that are read at a time.
const BLOCK_S: u32 = 4;

/// How speech is found and handed to the recogniser.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpeechOnly {
    /// What counts as speech.
    pub detect: DetectSpeechRequest,
    /// How much of it the recogniser is given at a time.
    pub chunks: ChunkRules,
}

impl Default for SpeechOnly {
    /// Windows of up to 30 s, a new one after a pause of 1.5 s.
    fn default() -> Self {
        let mut speech = SpeechOnly {
            detect: DetectSpeechRequest::default(),
            chunks: ChunkRules {
                max_length: 30.0,
                merge_gap: 1.5,
                padding: 0.2,
            },
        };
        speech.detect.rules.max_speech = Some(speech.chunks.max_speech());
        speech
    }
}

/// Runs `session` on the speech that `detector` finds in `audio`. Every time in the transcript and
/// in the events is one of `audio`; no segment reaches over a silence that was left out, and none
/// starts or ends outside of speech.
///
/// # Errors
/// Those of both sessions; rules that make no sense (`BadInput`).
pub fn transcribe_speech(
    session: &mut dyn Transcribe,
    detector: &mut dyn DetectSpeech,
    request: &TranscribeRequest,
    speech: &SpeechOnly,
    audio: &mut dyn AudioSource,
    context: &RunContext,
) -> Result<Transcript> {
    speech.chunks.check()?;
    detector.begin(&speech.detect, audio.rate())?;
    let mut run = Run {
        session,
        request: request.clone(),
        context,
        total: audio.duration_hint(),
        ahead: Ahead::new(audio),
        chunker: Chunker::new(speech.chunks),
        speech: Vec::new(),
        map: TimeMap::default(),
        transcript: Transcript::default(),
    };
    let block = audio.rate().saturating_mul(BLOCK_S) as usize;
    let mut mono = Vec::new();
    loop {
        context.check()?;
        let before = run.ahead.samples.len();
        let read = context.timed("read", || audio.read(&mut run.ahead.samples, block))?;
        mono.clear();
        downmix(&run.ahead.samples[before..], audio.channels(), &mut mono);
        let detect = || match read {
            0 => detector.finish(),
            _ => detector.push(&mono),
        };
        let heard = context.timed("detect speech", detect)?;
        run.hear(&heard, read == 0)?;
        if read == 0 {
            break;
        }
    }
    run.transcript.warnings.extend(audio.warnings());
    Ok(run.end())
}

/// Sound that was read and may still be needed: interleaved, from frame `start` on.
struct Ahead {
    samples: Vec<f32>,
    start: usize,
    rate: u32,
    channels: u16,
}

impl Ahead {
    fn new(audio: &dyn AudioSource) -> Ahead {
        Ahead {
            samples: Vec::new(),
            start: 0,
            rate: audio.rate(),
            channels: audio.channels(),
        }
    }

    fn end(&self) -> usize {
        self.start + self.samples.len() / usize::from(self.channels)
    }

    /// The frame at a time, as far as it is there.
    fn frame(&self, seconds: f64) -> usize {
        let frame = (seconds * f64::from(self.rate)).round() as usize;
        frame.clamp(self.start, self.end())
    }

    /// The sound of a stretch of time.
    fn cut(&self, span: Span) -> Result<Audio> {
        let width = usize::from(self.channels);
        let [from, to] = [span.start, span.end].map(|at| (self.frame(at) - self.start) * width);
        let samples = self.samples[from..to.max(from)].to_vec();
        Ok(Audio::new(samples, self.rate, self.channels)?)
    }

    /// Forgets what came before a time.
    fn forget(&mut self, seconds: f64) {
        let frame = self.frame(seconds);
        let count = (frame - self.start) * usize::from(self.channels);
        self.samples.drain(..count);
        self.start = frame;
    }
}

struct Run<'a> {
    session: &'a mut dyn Transcribe,
    request: TranscribeRequest,
    context: &'a RunContext,
    total: Option<f64>,
    ahead: Ahead,
    chunker: Chunker,
    /// Speech that lies in the window to come, or behind it.
    speech: Vec<Span>,
    map: TimeMap,
    transcript: Transcript,
}

impl Run<'_> {
    /// Takes what the detector heard; windows that are complete are transcribed.
    fn hear(&mut self, heard: &Heard, ended: bool) -> Result<()> {
        let mut windows = Vec::new();
        for span in &heard.segments {
            self.speech.push(*span);
            self.chunker.push(*span, &mut windows);
        }
        let end = self.ahead.end() as f64 / f64::from(self.ahead.rate);
        windows.extend(match ended {
            true => self.chunker.finish(end),
            false => self.chunker.advance(heard.settled),
        });
        for window in windows {
            self.transcribe(window)?;
            self.speech.retain(|span| span.end > window.end);
        }
        self.ahead.forget(self.chunker.needed_from(heard.settled));
        self.progress(heard.settled);
        Ok(())
    }

    fn progress(&self, done: f64) {
        self.context
            .progress("transcribe", done, self.total, Unit::Seconds);
    }

    fn transcribe(&mut self, window: Span) -> Result<()> {
        self.context.check()?;
        let audio = self.ahead.cut(window)?;
        let offset = self.map.length();
        self.map.keep(window);
        let place = Place {
            map: self.map.clone(),
            offset,
            speech: self.speech.clone(),
            total: self.total,
            next: Mutex::new(self.transcript.segments.len() as u32),
        };
        let place = Arc::new(place);
        let copy = place.clone();
        let context = self.context.mapped(move |event| copy.event(event));
        let mut source = audio.into_source();
        let part = self
            .session
            .transcribe(&self.request, &mut source, &context)?;
        // The language of the first speech is that of the rest.
        if self.request.language.is_none() {
            self.request.language.clone_from(&part.language);
        }
        let transcript = &mut self.transcript;
        let first = transcript.segments.len() as u32;
        let segments = part.segments.into_iter().zip(first..);
        transcript
            .segments
            .extend(segments.map(|(segment, id)| place.segment(segment, id)));
        if transcript.language.is_none() {
            transcript.language = part.language;
        }
        for warning in part.warnings {
            if !transcript.warnings.contains(&warning) {
                transcript.warnings.push(warning);
            }
        }
        Ok(())
    }

    fn end(mut self) -> Transcript {
        let duration = self.ahead.end() as f64 / f64::from(self.ahead.rate);
        self.total = Some(duration);
        self.progress(duration);
        let mut transcript = self.transcript;
        let text: String = transcript
            .segments
            .iter()
            .map(|s| s.text.as_str())
            .collect();
        transcript.text = text.trim().to_owned();
        transcript.duration = duration;
        if transcript.language.is_none() {
            transcript.language = self.request.language;
        }
        transcript
    }
}

/// Where a window lies in the recording.
struct Place {
    map: TimeMap,
    /// Start of the window in the cut recording.
    offset: f64,
    speech: Vec<Span>,
    total: Option<f64>,
    /// Number of the next segment that is told.
    next: Mutex<u32>,
}

impl Place {
    fn event(&self, event: Event) -> Option<Event> {
        match event {
            Event::Segment(segment) => {
                let mut next = self.next.lock().ok()?;
                *next += 1;
                Some(Event::Segment(self.segment(segment, *next - 1)))
            }
            Event::Progress {
                stage, done, unit, ..
            } if unit == Unit::Seconds => Some(Event::Progress {
                stage,
                done: self.map.end(self.offset + done),
                total: self.total,
                unit,
            }),
            other => Some(other),
        }
    }

    /// A segment of the window with its times in the recording. Its ends are moved to where there
    /// is speech: recognisers like to begin a segment in the silence before it.
    fn segment(&self, segment: Segment, id: u32) -> Segment {
        let whole = self
            .map
            .span(self.offset + segment.start, self.offset + segment.end);
        let span = self.narrowed(whole);
        let words = segment.words.into_iter().map(|word| {
            let place = self
                .map
                .span(self.offset + word.start, self.offset + word.end);
            Word {
                start: place.start.clamp(span.start, span.end),
                end: place.end.clamp(span.start, span.end),
                ..word
            }
        });
        Segment {
            id,
            seek: (self.map.start(self.offset + segment.seek as f64 / 100.0) * 100.0).round()
                as u64,
            start: span.start,
            end: span.end,
            words: words.collect(),
            ..segment
        }
    }

    /// `span` without what lies before the first speech in it and behind the last.
    fn narrowed(&self, span: Span) -> Span {
        let mut inside = self
            .speech
            .iter()
            .filter(|s| s.start < span.end && s.end > span.start);
        let Some(first) = inside.next() else {
            return span;
        };
        let last = inside.next_back().unwrap_or(first);
        Span {
            start: span.start.max(first.start),
            end: span.end.min(last.end),
        }
    }
}

#[cfg(test)]
#[path = "transcribe_tests.rs"]
mod tests;
