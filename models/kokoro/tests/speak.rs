//! The published model through the session that programs use.

use audiocpp::engine::{
    ErrorClass, Family, LoadOptions, OptionValue, Options, RunContext, Speech, Synthesize,
    SynthesizeRequest, Task,
};
use audiocpp_kokoro::Kokoro;
use audiocpp_testing::models;

const TEXT: &str = "Good morning, everyone. The cat sat on the mat today.";

fn session() -> Option<Box<dyn Synthesize>> {
    let folder = models::folder("kokoro")?;
    assert!(Kokoro.can_load(&folder));
    let options = LoadOptions {
        device: "cpu".into(),
        threads: Some(2),
        ..LoadOptions::default()
    };
    let model = Kokoro.load(&folder, &options, &RunContext::new()).unwrap();
    assert_eq!(model.voices().len(), 5);
    assert_eq!(model.voices()[0].language, "ja");
    let session = model.session(Task::Tts, &Options::default()).unwrap();
    Some(session.into_synthesize().unwrap())
}

fn request() -> SynthesizeRequest {
    SynthesizeRequest {
        text: TEXT.into(),
        language: Some("en".into()),
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
    assert_eq!(first.audio.rate, 24_000);
    assert!(first.warnings.is_empty(), "{:?}", first.warnings);
    assert!((2.0..6.0).contains(&first.duration), "{} s", first.duration);
    let words: Vec<_> = first.words().collect();
    assert_eq!(words.len(), 10);
    let mut at = 0.0;
    for word in words {
        assert!(word.start >= at && word.end > word.start, "{word:?}");
        assert!(!word.phonemes.is_empty(), "{word:?}");
        at = word.end;
    }
    assert!(at <= first.duration);
    assert_eq!(speak(&mut *session, &request()), first);
    let other = SynthesizeRequest {
        seed: Some(6),
        ..request()
    };
    assert_ne!(speak(&mut *session, &other).audio, first.audio);

    // Without noise the seed does not matter; twice as fast is about half as long.
    let mut still = other.clone();
    still.options.set("noise", OptionValue::Bool(false));
    let plain = speak(&mut *session, &still);
    still.seed = Some(1);
    assert_eq!(speak(&mut *session, &still).audio, plain.audio);
    still.speed = Some(2.0);
    let ratio = speak(&mut *session, &still).duration / plain.duration;
    assert!((0.4..0.75).contains(&ratio), "{ratio}");
    let mut mixed = request();
    mixed.voice = Some("jf_alpha(2)+jm_kumo(1)".into());
    assert_ne!(speak(&mut *session, &mixed).audio, first.audio);
}

#[test]
fn wrong_requests_are_refused() {
    let Some(mut session) = session() else { return };
    let mut error = |request: SynthesizeRequest| {
        session
            .synthesize(&request, &RunContext::new())
            .unwrap_err()
    };
    let voice = |voice: &str| SynthesizeRequest {
        voice: Some(voice.into()),
        ..request()
    };
    assert_eq!(error(voice("jf_alfa")).class, ErrorClass::NotFound);
    assert_eq!(error(voice("jf_alpha(-1)")).class, ErrorClass::BadInput);
    let language = SynthesizeRequest {
        language: Some("ja".into()),
        ..request()
    };
    assert_eq!(error(language).class, ErrorClass::Unsupported);
}
