//! Whole requests with a voice that makes a tone for every symbol.

use std::sync::{Arc, Mutex};

use super::*;
use crate::{
    engine::{CancelToken, ErrorClass},
    text::chunks::ChunkLimits,
};

const RATE: u32 = 8000;

/// Seconds of a symbol, and of silence around a chunk.
const SYMBOL_S: f64 = 0.05;
const SILENCE_S: f64 = 0.4;

/// Hums each symbol; knows their times if it is asked to.
struct Hum {
    knows_times: bool,
    join: usize,
}

impl ChunkVoice for Hum {
    fn begin(&mut self, _: &SynthesizeRequest) -> Result<VoicePlan> {
        Ok(VoicePlan {
            language: "en-us".into(),
            input: VoiceInput::Phonemes,
            limits: ChunkLimits {
                join: self.join,
                first: self.join,
                max: 60,
            },
            rate: RATE,
            channels: 1,
        })
    }

    fn speak(&mut self, chunk: &Chunk, context: &RunContext) -> Result<ChunkSound> {
        context.check()?;
        let symbols = chunk.phonemes.symbols().len();
        let frames = |seconds: f64| (seconds * f64::from(RATE)) as usize;
        let hum = frames(SYMBOL_S * symbols as f64);
        let mut samples = vec![0.0; frames(SILENCE_S)];
        // Loud at once, but without a click of its own.
        let edge = |i: usize| (i.min(hum - i) as f32 / 40.0).min(1.0);
        samples.extend((0..hum).map(|i| 0.7 * edge(i) * (i as f32 * 0.4 + 1.0).sin()));
        samples.extend(vec![0.0; frames(SILENCE_S)]);
        let ends = (1..=symbols)
            .map(|n| SILENCE_S + SYMBOL_S * n as f64)
            .collect();
        Ok(ChunkSound {
            audio: Audio::new(samples, RATE, 1)?,
            symbol_ends: self.knows_times.then_some(ends),
            warnings: Vec::new(),
        })
    }
}

fn request(text: &str) -> SynthesizeRequest {
    SynthesizeRequest {
        text: text.into(),
        words: true,
        ..SynthesizeRequest::default()
    }
}

fn speak(request: &SynthesizeRequest) -> Result<Speech> {
    let voice = Hum {
        knows_times: true,
        join: 0,
    };
    Speaker::new(voice).synthesize(request, &RunContext::new())
}

#[test]
fn words_lead_back_to_the_request_in_order_of_time() {
    let text = "Dr. Smith paid $42. Süß, isn't it?";
    let speech = speak(&request(text)).unwrap();
    let words: Vec<&str> = speech.words().map(|word| word.word.as_str()).collect();
    assert_eq!(words, ["Dr.", "Smith", "paid", "$42", "Süß", "isn't", "it"]);
    let characters: Vec<char> = text.chars().collect();
    let mut last = 0.0;
    for word in speech.words() {
        let shown: String = characters[word.from..word.to].iter().collect();
        assert_eq!(shown, word.word);
        assert!(
            last <= word.start && word.start < word.end && word.end <= speech.duration,
            "{word:?}"
        );
        last = word.start;
        let phonemes = &word.phonemes;
        assert_eq!(phonemes.first().unwrap().start, word.start, "{word:?}");
        assert_eq!(phonemes.last().unwrap().end, word.end);
    }
    assert_eq!(speech.segments.len(), 2);
    assert_eq!(speech.segments[0].text, "Dr. Smith paid $42.");
    assert_eq!(
        speech.segments[0].spoken,
        "Doctor Smith paid forty-two dollars."
    );
    assert!(speech.warnings.is_empty(), "{:?}", speech.warnings);
}

#[test]
fn unknown_times_are_estimated_and_said_to_be() {
    let voice = Hum {
        knows_times: false,
        join: 0,
    };
    let speech = Speaker::new(voice)
        .synthesize(&request("One two three."), &RunContext::new())
        .unwrap();
    assert_eq!(speech.words().count(), 3);
    assert!(
        speech
            .words()
            .all(|word| word.start < word.end && word.end <= speech.duration)
    );
    assert!(
        speech.warnings[0].contains("estimates"),
        "{:?}",
        speech.warnings
    );
}

#[test]
fn seams_have_no_clicks_and_no_dead_air() {
    let speech = speak(&request("One is here. Two is there. Three is gone.")).unwrap();
    let samples = &speech.audio.samples;
    assert!((speech.duration - speech.audio.duration()).abs() < 1e-9);
    let steps = samples.windows(2).map(|pair| (pair[1] - pair[0]).abs());
    let inner = 0.7 * 0.4;
    assert!(steps.fold(0.0, f32::max) <= inner + 0.04);
    let edge = samples[..8].iter().chain(&samples[samples.len() - 8..]);
    assert!(edge.fold(0.0f32, |most, s| most.max(s.abs())) < 0.1);
    let (mut run, mut longest) = (0, 0);
    for sample in samples {
        run = if sample.abs() < 1e-4 { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    // The pause of a sentence and what is left of the silence of both chunks.
    let most = (0.25 + LEAD_S + TAIL_S + 0.02) * f64::from(RATE);
    assert!((longest as f64) < most, "{longest} frames of silence");
}

#[test]
fn parts_of_a_stream_are_the_whole_and_come_one_by_one() {
    let mut asked = request("One is here. Two is there.\n\nThree is gone.");
    let whole = speak(&asked).unwrap();
    asked.stream = true;
    let parts = Arc::new(Mutex::new(Vec::new()));
    let copy = parts.clone();
    let sink = move |event: Event| {
        if let Event::Speech(part) = event {
            copy.lock().unwrap().push(part);
        }
    };
    let context = RunContext::with_sink(CancelToken::default(), Arc::new(sink));
    let voice = Hum {
        knows_times: true,
        join: 0,
    };
    let streamed = Speaker::new(voice).synthesize(&asked, &context).unwrap();
    assert!(streamed.audio.samples.is_empty());
    assert_eq!(streamed.segments, whole.segments);
    let parts = parts.lock().unwrap();
    assert_eq!(parts.len(), 3);
    let samples: Vec<f32> = parts
        .iter()
        .flat_map(|part| part.audio.samples.clone())
        .collect();
    assert_eq!(samples, whole.audio.samples);
}

#[test]
fn a_cancelled_run_ends_before_the_next_chunk() {
    let mut asked = request("One. Two. Three. Four.");
    asked.stream = true;
    let cancel = CancelToken::default();
    let token = cancel.clone();
    let heard = Arc::new(Mutex::new(0));
    let count = heard.clone();
    let sink = move |event: Event| {
        if let Event::Speech(_) = event {
            *count.lock().unwrap() += 1;
            token.cancel();
        }
    };
    let context = RunContext::with_sink(cancel, Arc::new(sink));
    let voice = Hum {
        knows_times: true,
        join: 0,
    };
    let error = Speaker::new(voice)
        .synthesize(&asked, &context)
        .unwrap_err();
    assert_eq!(error.class, ErrorClass::Cancelled);
    assert_eq!(*heard.lock().unwrap(), 1);
}

#[test]
fn texts_without_speech_and_odd_speeds_are_bad_input() {
    for text in ["", "  \n", "...", "🎉", "— !"] {
        let error = speak(&request(text)).unwrap_err();
        assert_eq!(error.class, ErrorClass::BadInput, "{text}: {error}");
    }
    for speed in [0.0, -1.0, f32::NAN, 9.0] {
        let mut asked = request("Hello.");
        asked.speed = Some(speed);
        assert_eq!(speak(&asked).unwrap_err().class, ErrorClass::BadInput);
    }
    let mut german = request("Hallo.");
    german.language = Some("de".into());
    let error = speak(&german).unwrap_err();
    assert_eq!(error.class, ErrorClass::Unsupported);
    assert!(error.message.contains("en-us"), "{error}");
    let speech = speak(&request("Hello. Привет. Bye.")).unwrap();
    assert_eq!(speech.segments.len(), 2);
    assert!(
        speech.warnings[0].contains("Привет"),
        "{:?}",
        speech.warnings
    );
}

#[test]
fn the_users_pronunciations_are_spoken() {
    let mut asked = request("Say [[tˈuː]] to hibari.");
    asked.pronunciations.insert("Hibari".into(), "hɪb".into());
    let speech = speak(&asked).unwrap();
    let sounds: Vec<String> = speech
        .words()
        .map(|word| {
            word.phonemes
                .iter()
                .map(|sound| sound.phoneme.as_str())
                .collect()
        })
        .collect();
    assert_eq!(sounds, ["sˈeɪ", "tˈuː", "tə", "hɪb"]);
    assert_eq!(speech.words().nth(1).unwrap().word, "[[tˈuː]]");
}
