//! VibeVoice-ASR: a tiny network of formula weights beside transformers' port, and the session.

mod package;

use audiocpp::{
    audio::Audio,
    engine::{
        CancelToken, ErrorClass, Family, LoadOptions, Model, Options, RunContext, Task,
        TranscribeRequest, transcribe,
    },
    graph::Device,
    weights::Policy,
};
use audiocpp_testing::{
    expected::{Expected, relative_error},
    formula,
    package::data,
};
use audiocpp_vibevoice::{
    VibeVoice,
    asr::{VibeVoiceAsr, open},
};

const HOP: usize = 3200;
const WIDTH: usize = 64;

#[test]
fn the_port_s_numbers() {
    let expected = Expected::read(data("vibevoice/asr/expected.safetensors"));
    let check = |name: &str, found: &[f32], wanted: &[f32]| {
        let error = relative_error(found, wanted);
        println!("{name}: {error:.2e}");
        assert!(error < 1e-4, "{name}: {error}");
    };
    let folder = package::write("asr", |_, _| ());
    let device = Device::cpu(2).unwrap();
    let model = open(folder.path(), &device, Policy::F32).unwrap();
    let mut machine = model.machine().unwrap();
    let context = RunContext::new();
    let wave: Vec<f32> = formula::unit("wave", 5 * HOP)
        .iter()
        .map(|v| v * 0.3)
        .collect();
    let heard = machine.listen(&wave, &[], &context).unwrap();
    check("heard", &heard, &expected.f32("heard"));
    let mut tokens: Vec<u32> = (0..24).map(|i| (11 * i * i + 5 * i) % 499).collect();
    tokens[4..11].copy_from_slice(&[501, 503, 503, 503, 503, 503, 502]);
    let mut spoken = vec![None; tokens.len()];
    for i in 0..5 {
        spoken[5 + i] = Some(&heard[i * WIDTH..(i + 1) * WIDTH]);
    }
    machine.read(&tokens, &spoken, 8, &context).unwrap();
    let (wanted, said) = (expected.f32("scores"), expected.f32("said"));
    let mut token = tokens[23];
    for (i, scores) in wanted.chunks(512).enumerate() {
        let next = machine.say(token).unwrap();
        check(&format!("scores {i}"), &machine.scores().unwrap(), scores);
        if let Some(&said) = said.get(i) {
            assert_eq!(next, said as u32);
        }
        token = next;
    }
}

fn tone(seconds: f32) -> Audio {
    let count = (seconds * 24_000.0) as usize;
    let samples = (0..count).map(|i| (i as f32 * 0.03).sin() * 0.2);
    Audio::new(samples.collect(), 24_000, 1).unwrap()
}

fn load(folder: &tempfile::TempDir) -> Box<dyn Model> {
    assert!(VibeVoiceAsr.can_load(folder.path()) && !VibeVoice.can_load(folder.path()));
    let options = LoadOptions {
        device: "cpu".into(),
        threads: Some(2),
        ..LoadOptions::default()
    };
    let context = RunContext::new();
    VibeVoiceAsr
        .load(folder.path(), &options, &context)
        .unwrap()
}

#[test]
fn an_answer_of_random_weights_is_cut_and_said_to_be_none() {
    let folder = package::write("asr", |_, _| ());
    let model = load(&folder);
    assert_eq!(model.info().family, "vibevoice_asr");
    let session = model.session(Task::Asr, &Options::default()).unwrap();
    let mut session = session.into_transcribe().unwrap();
    let mut request = TranscribeRequest {
        prompt: Some("Names: Ada, Grace".into()),
        ..TranscribeRequest::default()
    };
    request
        .options
        .set("max_tokens", audiocpp::engine::OptionValue::Int(6));
    let context = RunContext::new();
    let mut source = tone(0.5).into_source();
    let transcript = transcribe(&mut *session, &request, &mut source, &context).unwrap();
    assert!((transcript.duration - 0.5).abs() < 1e-6);
    assert!(transcript.segments.is_empty() && transcript.text.is_empty());
    assert_eq!(transcript.warnings.len(), 1, "{:?}", transcript.warnings);

    let stopped = RunContext::with_sink(CancelToken::default(), std::sync::Arc::new(|_| ()));
    stopped.cancel.cancel();
    let mut source = tone(0.5).into_source();
    let error = transcribe(&mut *session, &request, &mut source, &stopped).unwrap_err();
    assert_eq!(error.class, ErrorClass::Cancelled);
    request.translate = true;
    let mut source = tone(0.5).into_source();
    let error = transcribe(&mut *session, &request, &mut source, &context).unwrap_err();
    assert_eq!(error.class, ErrorClass::Unsupported);
}
