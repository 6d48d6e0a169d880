//! What is spoken is understood: text through a voice and back through a recogniser.
//!
//! Skipped, with a line that says so, where the models are not downloaded.

use audiocpp::engine::{
    LoadOptions, Options, RunContext, Session, SynthesizeRequest, Task, TranscribeRequest,
    transcribe,
};
use audiocpp_testing::{models, wer::word_errors};

const TEXTS: [&str; 3] = [
    "The quick brown fox jumps over the lazy dog.",
    "Good morning. I would like to see the doctor before the end of the week.",
    "She read the letter twice, put it back into the drawer, and said nothing to her brother.",
];

fn load(id: &str, task: Task) -> Option<Session> {
    let folder = models::folder(id)?;
    let registry = audiocpp_models::registry();
    let family = registry.detect(&folder, None).unwrap();
    let options = LoadOptions {
        device: "cpu".into(),
        threads: Some(1),
        ..LoadOptions::default()
    };
    let model = family.load(&folder, &options, &RunContext::new()).unwrap();
    Some(model.session(task, &Options::default()).unwrap())
}

#[test]
fn a_recogniser_understands_hibari() {
    let Some(voice) = load("hibari", Task::Tts) else {
        return;
    };
    let Some(ear) = load("whisper-base", Task::Asr) else {
        return;
    };
    let (mut voice, mut ear) = (
        voice.into_synthesize().unwrap(),
        ear.into_transcribe().unwrap(),
    );
    let context = RunContext::new();
    let (mut errors, mut words) = (0, 0);
    for text in TEXTS {
        let request = SynthesizeRequest {
            text: text.into(),
            phonemizer: Some("english".into()),
            ..SynthesizeRequest::default()
        };
        let speech = voice.synthesize(&request, &context).unwrap();
        let mut source = speech.audio.into_source();
        let heard = transcribe(
            &mut *ear,
            &TranscribeRequest::default(),
            &mut source,
            &context,
        )
        .unwrap();
        let e = word_errors(text, &heard.text);
        println!("{} of {}: {}", e.errors, e.words, heard.text);
        errors += e.errors;
        words += e.words;
    }
    assert!(errors <= 1, "{errors} of {words} words");
}
