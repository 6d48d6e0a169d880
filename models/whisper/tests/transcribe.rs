//! Whole transcriptions with published weights: words, times, silence, every container.
//!
//! Skipped, with a line that says so, where the models are not downloaded.

use audiocpp::{
    audio::{Audio, Reader},
    engine::{
        Model, Options, RunContext, Session, Task, Transcribe, TranscribeRequest, Transcript,
    },
    graph::Device,
    weights::Policy,
};
use audiocpp_testing::{models, speech, wer::word_errors};

fn session(id: &str) -> Option<Box<dyn Transcribe>> {
    let folder = models::folder(id)?;
    // One thread: tests run side by side, and ggml's threads spin while they wait for each other.
    let device = Device::cpu(1).unwrap();
    let model = audiocpp_whisper::open(&folder, &device, Policy::Native).unwrap();
    match model.session(Task::Asr, &Options::default()).unwrap() {
        Session::Transcribe(session) => Some(session),
        other => panic!("{other:?}"),
    }
}

fn run(session: &mut dyn Transcribe, request: &TranscribeRequest, audio: Audio) -> Transcript {
    let mut source = audio.into_source();
    session
        .transcribe(request, &mut source, &RunContext::new())
        .unwrap()
}

fn clip(path: &std::path::Path) -> Audio {
    Audio::from_source(&mut Reader::open(path).unwrap(), None).unwrap()
}

fn words() -> TranscribeRequest {
    TranscribeRequest {
        words: true,
        ..TranscribeRequest::default()
    }
}

/// What holds for every transcript: times within the audio and in order, words within segments,
/// text that is the sum of its parts.
fn assert_sound(transcript: &Transcript, what: &str) {
    let mut earliest = 0.0;
    for segment in &transcript.segments {
        let (start, end) = (segment.start, segment.end);
        assert!(
            earliest <= start && start <= end,
            "{what}: segment {start}..{end} after {earliest}"
        );
        assert!(
            end <= transcript.duration + 1e-6,
            "{what}: {end} beyond {}",
            transcript.duration
        );
        let mut word_from = start;
        for word in &segment.words {
            assert!(
                word_from <= word.start && word.start <= word.end && word.end <= end + 1e-6,
                "{what}: word {word:?} in {start}..{end} after {word_from}"
            );
            assert!((0.0..=1.0).contains(&word.probability), "{what}: {word:?}");
            word_from = word.start;
        }
        earliest = start;
    }
    let joined: String = transcript
        .segments
        .iter()
        .map(|s| s.text.as_str())
        .collect();
    assert_eq!(joined.trim(), transcript.text, "{what}");
}

#[test]
fn real_speech_word_for_word() {
    for (id, allowed) in [("whisper-tiny.en", 5), ("whisper-base", 1)] {
        let Some(mut session) = session(id) else {
            return;
        };
        let (mut errors, mut total) = (0, 0);
        for sample in speech::clips() {
            let transcript = run(&mut *session, &words(), clip(&sample.path()));
            assert_sound(&transcript, &sample.file);
            assert_eq!(transcript.language.as_deref(), Some("en"));
            let spoken: String = transcript.words().map(|w| w.word.as_str()).collect();
            assert_eq!(spoken.trim(), transcript.text, "words are the text");
            let e = word_errors(&sample.text, &transcript.text);
            errors += e.errors;
            total += e.words;
        }
        println!("{id}: {errors} of {total} words wrong");
        assert!(
            errors <= allowed,
            "{id}: {errors} of {total} words wrong, at most {allowed} expected"
        );
    }
}

#[test]
fn shortened_silence_gives_the_text_of_the_full_window() {
    let Some(mut session) = session("whisper-base") else {
        return;
    };
    let mut full = TranscribeRequest::default();
    full.options
        .set("full_window", audiocpp::engine::OptionValue::Bool(true));
    for sample in speech::clips() {
        let short = run(
            &mut *session,
            &TranscribeRequest::default(),
            clip(&sample.path()),
        );
        let whole = run(&mut *session, &full, clip(&sample.path()));
        let e = word_errors(&whole.text, &short.text);
        assert_eq!(
            e.errors, 0,
            "{}: `{}` and `{}`",
            sample.file, short.text, whole.text
        );
    }
}

#[test]
fn beams_and_temperatures_stay_right() {
    let Some(mut session) = session("whisper-base") else {
        return;
    };
    let sample = &speech::clips()[0];
    for (beams, temperature) in [(Some(5), None), (None, Some(0.4))] {
        let request = TranscribeRequest {
            beam_size: beams,
            temperature,
            seed: Some(7),
            ..words()
        };
        let one = run(&mut *session, &request, clip(&sample.path()));
        assert_sound(&one, "beams");
        assert!(
            word_errors(&sample.text, &one.text).errors <= 2,
            "{}",
            one.text
        );
        let again = run(&mut *session, &request, clip(&sample.path()));
        assert_eq!(one, again, "the same seed gives the same text");
    }
}

/// Noise of a linear congruential generator, uniform within the amplitude.
fn noise(seconds: f64, amplitude: f32) -> Audio {
    let mut state = 12345u32;
    let samples = (0..(seconds * 16_000.0) as usize)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state as f32 / u32::MAX as f32 * 2.0 - 1.0) * amplitude
        })
        .collect();
    Audio::new(samples, 16_000, 1).unwrap()
}

#[test]
fn nothing_is_heard_in_nothing() {
    for id in ["whisper-tiny.en", "whisper-base"] {
        let Some(mut session) = session(id) else {
            return;
        };
        let speech = clip(&speech::clips()[0].path());
        // 0.3 s of real speech: too short to hold a word that can be trusted.
        let short = Audio::new(speech.samples[8000..12_800].to_vec(), 16_000, 1).unwrap();
        for (what, audio) in [
            (
                "30 s of digital silence",
                Audio::new(vec![0.0; 480_000], 16_000, 1).unwrap(),
            ),
            ("noise at -60 dB", noise(30.0, 0.001 * 3f32.sqrt())),
            ("0.3 s", short),
            (
                "65 s of silence",
                Audio::new(vec![0.0; 65 * 16_000], 16_000, 1).unwrap(),
            ),
        ] {
            let duration = audio.duration();
            let transcript = run(&mut *session, &words(), audio);
            assert_eq!(
                (transcript.text.as_str(), transcript.segments.len()),
                ("", 0),
                "{id}: {what}"
            );
            assert!((transcript.duration - duration).abs() < 1e-6);
        }
    }
}

#[test]
fn times_stay_sound_on_cut_shifted_and_joined_speech() {
    let Some(mut session) = session("whisper-tiny.en") else {
        return;
    };
    let all: Vec<Audio> = speech::clips().iter().map(|s| clip(&s.path())).collect();
    let samples: Vec<f32> = all.iter().flat_map(|a| a.samples.iter().copied()).collect();
    let silence = vec![0.0; 3 * 16_000];
    let mut inputs = vec![
        ("the join of all clips", samples.clone()),
        (
            "silence first",
            [silence.clone(), all[1].samples.clone()].concat(),
        ),
        (
            "silence last",
            [all[1].samples.clone(), silence.clone()].concat(),
        ),
        (
            "silence between",
            [all[1].samples.clone(), silence, all[3].samples.clone()].concat(),
        ),
    ];
    // Odd lengths and starts, so that windows end inside words.
    for (i, start) in [1_234, 50_001, 99_999, 160_000].into_iter().enumerate() {
        let end = (start + 23_456 * (i + 1)).min(samples.len());
        inputs.push(("a piece", samples[start..end].to_vec()));
    }
    for (what, samples) in inputs {
        let audio = Audio::new(samples, 16_000, 1).unwrap();
        let transcript = run(&mut *session, &words(), audio);
        assert_sound(&transcript, what);
    }
}

#[test]
fn a_full_context_and_a_looping_decoder_stay_within_the_positions() {
    let Some(mut session) = session("whisper-tiny.en") else {
        return;
    };
    // The longest prompt, itself a loop, tempts the decoder to write until it is stopped.
    let mut request = TranscribeRequest {
        prompt: Some("la la la ".repeat(300)),
        ..words()
    };
    let fallback = audiocpp::engine::OptionValue::Bool(false);
    request.options.set("temperature_fallback", fallback);
    let sound = clip(&speech::clips()[0].path());
    let hum: Vec<f32> = (0..480_000)
        .map(|i| 0.2 * (i as f32 * 0.05).sin() * (i as f32 * 0.0008).sin())
        .collect();
    for samples in [sound.samples.clone(), [sound.samples, hum].concat()] {
        let audio = Audio::new(samples, 16_000, 1).unwrap();
        assert_sound(&run(&mut *session, &request, audio), "a full context");
    }
}

#[test]
fn cancelling_stops_the_run() {
    let Some(mut session) = session("whisper-tiny.en") else {
        return;
    };
    let context = RunContext::new();
    context.cancel.cancel();
    let mut source = clip(&speech::clips()[0].path()).into_source();
    let error = session
        .transcribe(&words(), &mut source, &context)
        .unwrap_err();
    assert_eq!(error.class, audiocpp::engine::ErrorClass::Cancelled);
}
