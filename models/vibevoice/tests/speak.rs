//! The session that programs use, on a tiny network that goes on speaking.

mod package;

use std::sync::{Arc, Mutex};

use audiocpp::{
    audio::Audio,
    engine::{
        CancelToken, ErrorClass, Event, Family, LoadOptions, Model, OptionValue, Options,
        RunContext, Speech, SpeechPart, Synthesize, SynthesizeRequest, Task,
    },
    graph::Device,
    weights::Policy,
};
use audiocpp_vibevoice::{VibeVoice, open};
use tempfile::TempDir;

const WIDTH: usize = 64;
const FRAME: usize = 3200;
const EMBEDDINGS: &str = "model.language_model.embed_tokens.weight";

/// A package whose language model says one frame after another: the last block's values have large
/// biases, so that the hidden state hardly changes, and the frame's row of the output points there.
fn talkative() -> TempDir {
    let steady = |name: &str, values: &mut Vec<f32>| {
        if name == "model.language_model.layers.2.self_attn.v_proj.bias" {
            values.iter_mut().for_each(|v| *v *= 300.0);
        }
    };
    let first = package::write("original", steady);
    let model = open(first.path(), &Device::cpu(1).unwrap(), Policy::F32).unwrap();
    let mut machine = model.machine().unwrap();
    machine.begin(8, 8).unwrap();
    machine.say(7).unwrap();
    let hidden = machine.hidden().unwrap();
    package::write("original", move |name, values| {
        steady(name, values);
        if name == EMBEDDINGS {
            let rows = &mut values[500 * WIDTH..504 * WIDTH];
            rows.fill(0.0);
            rows[3 * WIDTH..].copy_from_slice(&hidden[..WIDTH]);
        }
    })
}

fn load(folder: &TempDir) -> Box<dyn Model> {
    assert!(VibeVoice.can_load(folder.path()));
    let options = LoadOptions {
        device: "cpu".into(),
        threads: Some(2),
        ..LoadOptions::default()
    };
    let context = RunContext::new();
    VibeVoice.load(folder.path(), &options, &context).unwrap()
}

fn session(model: &dyn Model, task: Task) -> Box<dyn Synthesize> {
    let session = model.session(task, &Options::default()).unwrap();
    session.into_synthesize().unwrap()
}

fn request(frames: usize) -> SynthesizeRequest {
    let mut request = SynthesizeRequest {
        text: "Speaker 1: Hello.\nSpeaker 2: Hi, you.".into(),
        seed: Some(5),
        ..SynthesizeRequest::default()
    };
    let seconds = frames as f64 * FRAME as f64 / 24_000.0 - 0.01;
    request
        .options
        .set("max_seconds", OptionValue::Float(seconds));
    request.options.set("steps", OptionValue::Int(3));
    request
}

fn tone(pitch: f32, frames: f32) -> Audio {
    let count = (frames * FRAME as f32) as usize;
    let samples = (0..count).map(|i| (i as f32 * pitch).sin() * 0.2);
    Audio::new(samples.collect(), 24_000, 1).unwrap()
}

fn speak(session: &mut dyn Synthesize, request: &SynthesizeRequest) -> Speech {
    session.synthesize(request, &RunContext::new()).unwrap()
}

#[test]
fn a_seed_and_the_voices_decide_the_sound() {
    let folder = talkative();
    let model = load(&folder);
    assert_eq!(model.info().sample_rate, 24_000);
    assert!(model.info().parameters > 100_000);
    let mut plain = session(&*model, Task::Tts);
    let first = speak(&mut *plain, &request(4));
    assert_eq!(first.audio.samples.len(), 4 * FRAME);
    assert!(first.warnings[0].contains("cut"), "{:?}", first.warnings);
    assert!(first.audio.samples.iter().any(|s| s.abs() > 0.01));
    assert_eq!(
        speak(&mut *plain, &request(4)),
        first,
        "the state of a session is forgotten"
    );
    let longer = speak(&mut *plain, &request(6));
    assert_eq!(longer.audio.samples[..4 * FRAME], first.audio.samples);
    let other = SynthesizeRequest {
        seed: Some(6),
        ..request(4)
    };
    assert_ne!(speak(&mut *plain, &other).audio, first.audio);

    let mut cloned = session(&*model, Task::Clon);
    let voices = |pitches: [f32; 2]| SynthesizeRequest {
        references: pitches.map(|pitch| tone(pitch, 2.3)).into(),
        ..request(4)
    };
    let pair = speak(&mut *cloned, &voices([0.02, 0.05]));
    assert_ne!(pair.audio, first.audio);
    assert_ne!(speak(&mut *cloned, &voices([0.05, 0.02])).audio, pair.audio);
    assert_eq!(speak(&mut *cloned, &voices([0.02, 0.05])).audio, pair.audio);
}

#[test]
fn frames_leave_as_they_are_made_and_a_stop_comes_at_once() {
    let folder = talkative();
    let model = load(&folder);
    let mut session = session(&*model, Task::Tts);
    let whole = speak(&mut *session, &request(5));
    let streamed = SynthesizeRequest {
        stream: true,
        ..request(5)
    };
    let parts: Arc<Mutex<Vec<SpeechPart>>> = Arc::default();
    let (token, copy) = (CancelToken::default(), parts.clone());
    let sink = move |event: Event| {
        if let Event::Speech(part) = event {
            copy.lock().unwrap().push(part);
        }
    };
    let context = RunContext::with_sink(token, Arc::new(sink));
    let speech = session.synthesize(&streamed, &context).unwrap();
    assert!(speech.audio.samples.is_empty());
    let parts = std::mem::take(&mut *parts.lock().unwrap());
    assert_eq!(parts.len(), 5);
    let samples: Vec<f32> = parts.iter().flat_map(|p| p.audio.samples.clone()).collect();
    assert_eq!(samples, whole.audio.samples);
    assert_eq!(parts[4].segment.end, speech.duration);

    let (token, count) = (CancelToken::default(), Arc::new(Mutex::new(0)));
    let (stop, counted) = (token.clone(), count.clone());
    let sink = move |event: Event| {
        if let Event::Speech(_) = event {
            *counted.lock().unwrap() += 1;
            stop.cancel();
        }
    };
    let context = RunContext::with_sink(token, Arc::new(sink));
    let error = session.synthesize(&streamed, &context).unwrap_err();
    assert_eq!(error.class, ErrorClass::Cancelled);
    assert_eq!(*count.lock().unwrap(), 1);
    assert_eq!(speak(&mut *session, &request(5)), whole);
}

#[test]
fn wrong_requests_are_refused() {
    let folder = talkative();
    let model = load(&folder);
    assert!(model.session(Task::Asr, &Options::default()).is_err());
    let mut session = session(&*model, Task::Clon);
    let mut class = |request: SynthesizeRequest| {
        let spoken = session.synthesize(&request, &RunContext::new());
        spoken.unwrap_err().class
    };
    let one_voice = SynthesizeRequest {
        references: vec![tone(0.02, 1.0)],
        ..request(2)
    };
    assert_eq!(class(one_voice), ErrorClass::BadInput);
    let fast = SynthesizeRequest {
        speed: Some(2.0),
        ..request(2)
    };
    assert_eq!(class(fast), ErrorClass::Unsupported);
    let endless = SynthesizeRequest {
        text: "word ".repeat(2000),
        ..request(2)
    };
    assert_eq!(class(endless), ErrorClass::BadInput);
    let mut unknown = request(2);
    unknown.options.set("stepps", OptionValue::Int(3));
    let error = session
        .synthesize(&unknown, &RunContext::new())
        .unwrap_err();
    assert!(error.message.contains("steps"), "{error}");
}
