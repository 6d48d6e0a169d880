//! The published voice through the session that programs use.

use std::sync::{Arc, Mutex};

use audiocpp::{
    engine::{
        CancelToken, ErrorClass, Event, Family, LoadOptions, OptionValue, Options, RunContext,
        Speech, Synthesize, SynthesizeRequest, Task,
    },
    text::phonemes::for_language,
};
use audiocpp_piper::Piper;
use audiocpp_testing::models;

const TEXT: &str = "Good morning. The cat sat on the [[mˈæt]] today.";

fn session() -> Option<Box<dyn Synthesize>> {
    let folder = models::folder("piper-joe")?;
    for_language("en-us", None).ok()?;
    assert!(Piper.can_load(&folder));
    let options = LoadOptions {
        device: "cpu".into(),
        threads: Some(1),
        ..LoadOptions::default()
    };
    let model = Piper.load(&folder, &options, &RunContext::new()).unwrap();
    assert_eq!(model.voices().len(), 1);
    let session = model.session(Task::Tts, &Options::default()).unwrap();
    Some(session.into_synthesize().unwrap())
}

fn request() -> SynthesizeRequest {
    SynthesizeRequest {
        text: TEXT.into(),
        words: true,
        seed: Some(5),
        ..SynthesizeRequest::default()
    }
}

fn speak(session: &mut dyn Synthesize, request: &SynthesizeRequest) -> Speech {
    session.synthesize(request, &RunContext::new()).unwrap()
}

#[test]
fn words_have_times_and_a_seed_gives_the_same_sound() {
    let Some(mut session) = session() else { return };
    let first = speak(&mut *session, &request());
    assert_eq!(first.audio.rate, 22_050);
    assert!(first.warnings.is_empty(), "{:?}", first.warnings);
    assert!((2.0..6.0).contains(&first.duration), "{} s", first.duration);
    assert_eq!(first.segments.len(), 2);
    let words: Vec<_> = first.words().collect();
    assert_eq!(words.len(), 9);
    let mut at = 0.0;
    for word in words {
        assert!(word.start >= at && word.end > word.start, "{word:?}");
        let sounds = word
            .phonemes
            .iter()
            .all(|p| p.start >= word.start && p.end <= word.end);
        assert!(!word.phonemes.is_empty() && sounds, "{word:?}");
        at = word.end;
    }
    assert!(at <= first.duration);

    assert_eq!(speak(&mut *session, &request()), first);
    let other = SynthesizeRequest {
        seed: Some(6),
        ..request()
    };
    assert_ne!(speak(&mut *session, &other).audio, first.audio);
}

#[test]
fn speed_and_scales_are_obeyed() {
    let Some(mut session) = session() else { return };
    let mut still = request();
    for name in ["noise_scale", "noise_w"] {
        still.options.set(name, OptionValue::Float(0.0));
    }
    let plain = speak(&mut *session, &still);
    let mut fast = still.clone();
    fast.speed = Some(2.0);
    let ratio = speak(&mut *session, &fast).duration / plain.duration;
    assert!((0.4..0.7).contains(&ratio), "{ratio}");
    // Without noise the seed does not matter.
    still.seed = Some(9);
    assert_eq!(speak(&mut *session, &still).audio, plain.audio);
}

#[test]
fn streamed_parts_are_the_whole() {
    let Some(mut session) = session() else { return };
    let whole = speak(&mut *session, &request());
    let parts = Arc::new(Mutex::new(Vec::new()));
    let copy = parts.clone();
    let sink = move |event: Event| {
        if let Event::Speech(part) = event {
            copy.lock().unwrap().extend(part.audio.samples);
        }
    };
    let context = RunContext::with_sink(CancelToken::default(), Arc::new(sink));
    let streamed = SynthesizeRequest {
        stream: true,
        ..request()
    };
    let speech = session.synthesize(&streamed, &context).unwrap();
    assert!(speech.audio.samples.is_empty());
    assert_eq!(*parts.lock().unwrap(), whole.audio.samples);
}

#[test]
fn wrong_requests_are_refused() {
    let Some(mut session) = session() else { return };
    let mut error = |request: SynthesizeRequest| {
        session
            .synthesize(&request, &RunContext::new())
            .unwrap_err()
    };
    let voice = SynthesizeRequest {
        voice: Some("nobody".into()),
        ..request()
    };
    assert_eq!(error(voice).class, ErrorClass::NotFound);
    let mut unknown = request();
    unknown.options.set("noise", OptionValue::Float(0.5));
    assert!(error(unknown).message.contains("noise_scale"));
    let token = CancelToken::default();
    token.cancel();
    let context = RunContext::with_sink(token, Arc::new(|_: Event| ()));
    let stopped = session.synthesize(&request(), &context).unwrap_err();
    assert_eq!(stopped.class, ErrorClass::Cancelled);
}
