//! The one way from a request to speech, whatever the network.

use super::{
    result::{Speech, SpeechPart, SpeechSegment},
    timing::{Characters, words},
    voice::{ChunkSound, ChunkVoice, VoiceInput, VoicePlan},
};
use crate::{
    audio::{Audio, edges},
    engine::{
        Event, RunContext, Synthesize, SynthesizeRequest, Unit,
        error::{Error, Result},
    },
    text::{
        chunks::{Boundary, Chunk, FrontEnd},
        languages,
        normalize::Normalizer,
        phonemes::{Pronunciations, for_language},
    },
};

/// Silence that is left before and after the sound of a chunk, in seconds.
const LEAD_S: f64 = 0.02;
const TAIL_S: f64 = 0.05;

/// Fade at both ends of a chunk, against clicks.
const FADE_S: f64 = 0.005;

/// A voice that speaks whole requests: it is given chunk after chunk, and what it makes is put
/// together without clicks or dead air.
pub struct Speaker<V> {
    voice: V,
}

impl<V: ChunkVoice> Speaker<V> {
    /// A speaker with this voice.
    pub fn new(voice: V) -> Self {
        Speaker { voice }
    }
}

impl<V: ChunkVoice> Synthesize for Speaker<V> {
    fn synthesize(&mut self, request: &SynthesizeRequest, context: &RunContext) -> Result<Speech> {
        let speed = f64::from(request.speed.unwrap_or(1.0));
        if !(0.25..=4.0).contains(&speed) {
            return Err(Error::bad_input(format!(
                "the speed is {speed}, wanted 0.25 to 4"
            )));
        }
        let plan = self.voice.begin(request)?;
        let front = front_end(request, &plan)?;
        let mut chunks = front.chunks(&request.text)?;
        let mut out = Output::new(request, &plan, speed, context);
        loop {
            context.check()?;
            let done = request.text.len() - chunks.bytes_left();
            let next = chunks.next().transpose()?;
            for text in chunks.unspoken() {
                out.warn(format!(
                    "no sounds for `{}` in {}: it is left out",
                    shortened(&text),
                    plan.language
                ));
            }
            let Some(chunk) = next else { break };
            let (total, read) = (request.text.len() as f64, done as f64);
            context.progress("speak", read, Some(total), Unit::Items);
            let sound = self.voice.speak(&chunk, context)?;
            out.add(&chunk, sound)?;
        }
        context.progress(
            "speak",
            request.text.len() as f64,
            Some(request.text.len() as f64),
            Unit::Items,
        );
        Ok(out.speech)
    }
}

fn front_end(request: &SynthesizeRequest, plan: &VoicePlan) -> Result<FrontEnd> {
    let language = request.language.as_deref().unwrap_or(&plan.language);
    if languages::code(language) != languages::code(&plan.language) {
        return Err(Error::unsupported(format!(
            "this voice speaks `{}`, not `{language}`",
            plan.language
        )));
    }
    let normalizer = if request.normalize {
        Normalizer::new(language)
    } else {
        Normalizer::off()
    };
    let phonemizer = match plan.input {
        VoiceInput::Phonemes => Some(for_language(&plan.language, request.phonemizer.as_deref())?),
        VoiceInput::Text => None,
    };
    let pairs = request.pronunciations.iter();
    Ok(FrontEnd {
        language: language.to_owned(),
        normalizer,
        phonemizer,
        pronunciations: Pronunciations::new(pairs.map(|(word, ipa)| (word.as_str(), ipa.as_str()))),
        limits: plan.limits,
    })
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short.replace('\n', " ")
}

/// The silence after a chunk, in seconds at speed 1, beyond what is left of its own.
fn pause(ends: Boundary) -> f64 {
    match ends {
        Boundary::Word => 0.0,
        Boundary::Clause => 0.1,
        Boundary::Sentence => 0.25,
        Boundary::Paragraph => 0.5,
    }
}

/// The speech that is made so far.
struct Output<'a> {
    request: &'a SynthesizeRequest,
    context: &'a RunContext,
    characters: Characters<'a>,
    speed: f64,
    /// Frames that are finished.
    frames: u64,
    /// Silence that goes before the next chunk, in seconds.
    gap: f64,
    speech: Speech,
}

impl<'a> Output<'a> {
    fn new(
        request: &'a SynthesizeRequest,
        plan: &VoicePlan,
        speed: f64,
        context: &'a RunContext,
    ) -> Self {
        Output {
            request,
            context,
            characters: Characters::new(&request.text),
            speed,
            frames: 0,
            gap: 0.0,
            speech: Speech {
                audio: Audio {
                    samples: Vec::new(),
                    rate: plan.rate,
                    channels: plan.channels,
                },
                duration: 0.0,
                segments: Vec::new(),
                warnings: Vec::new(),
            },
        }
    }

    fn warn(&mut self, message: String) {
        if !self.speech.warnings.contains(&message) {
            self.context.warn(message.clone());
            self.speech.warnings.push(message);
        }
    }

    /// Adds the sound of a chunk, after the silence that belongs before it.
    fn add(&mut self, chunk: &Chunk, sound: ChunkSound) -> Result<()> {
        let ChunkSound {
            mut audio,
            symbol_ends,
            warnings,
        } = sound;
        let (rate, channels) = (self.speech.audio.rate, self.speech.audio.channels);
        if (audio.rate, audio.channels) != (rate, channels) {
            return Err(Error::internal(format!(
                "the voice gave {} channels at {} Hz after it promised {channels} at {rate} Hz",
                audio.channels, audio.rate
            )));
        }
        warnings.into_iter().for_each(|warning| self.warn(warning));
        if audio.samples.iter().any(|sample| !sample.is_finite()) {
            audio
                .samples
                .iter_mut()
                .filter(|sample| !sample.is_finite())
                .for_each(|sample| *sample = 0.0);
            self.warn("the model gave samples that are no numbers: they are silent".to_owned());
        }
        let heard = edges::heard(&audio, LEAD_S, TAIL_S);
        if heard.is_empty() {
            self.warn(format!(
                "the model was silent at `{}`",
                shortened(chunk.text.text())
            ));
        }
        let offset = heard.start as f64 / f64::from(rate);
        let width = usize::from(channels);
        audio.samples = audio.samples[heard.start * width..heard.end * width].to_vec();
        edges::fade(&mut audio, FADE_S);
        let silence = (self.gap / self.speed * f64::from(rate)).round() as usize;
        self.gap = pause(chunk.ends);

        let start = (self.frames + silence as u64) as f64 / f64::from(rate);
        let duration = audio.duration();
        let segment = self.segment(chunk, symbol_ends, start, offset, duration);
        self.frames += (silence + audio.frames()) as u64;
        self.speech.duration = self.frames as f64 / f64::from(rate);
        self.speech.segments.push(segment.clone());
        let mut samples = vec![0.0; silence * width];
        samples.append(&mut audio.samples);
        if self.request.stream {
            audio.samples = samples;
            self.context
                .send(Event::Speech(SpeechPart { audio, segment }));
        } else {
            self.speech.audio.samples.append(&mut samples);
        }
        Ok(())
    }

    /// What is said in a chunk that starts at `start`; `offset` seconds of its own were cut off.
    fn segment(
        &mut self,
        chunk: &Chunk,
        symbol_ends: Option<Vec<f64>>,
        start: f64,
        offset: f64,
        duration: f64,
    ) -> SpeechSegment {
        let mut timed = Vec::new();
        if self.request.words {
            let inside = |time: &f64| (time - offset).clamp(0.0, duration);
            let ends: Option<Vec<f64>> = symbol_ends.map(|ends| ends.iter().map(inside).collect());
            if ends.is_none() {
                self.warn(
                    "this model does not know when words are spoken: times are estimates"
                        .to_owned(),
                );
            }
            timed = words(chunk, ends.as_deref(), duration, &mut self.characters);
            for word in &mut timed {
                word.start += start;
                word.end += start;
                for phoneme in &mut word.phonemes {
                    phoneme.start += start;
                    phoneme.end += start;
                }
            }
        }
        SpeechSegment {
            id: self.speech.segments.len() as u32,
            start,
            end: start + duration,
            text: self.request.text[chunk.text.whole()].to_owned(),
            spoken: chunk.text.text().to_owned(),
            words: timed,
        }
    }
}

#[cfg(test)]
#[path = "speaker_tests.rs"]
mod tests;
