//! Small networks of formula weights beside transformers' `VitsModel`, stage by stage
//! (`tests/reference/vits_reference.py`).

use std::{collections::BTreeMap, path::PathBuf};

use audiocpp::{
    backend::Choices, engine::RunContext, graph::Device, sampling::TorchRandom, weights::Policy,
};
use audiocpp_piper::{PiperModel, machine::Manner};
use audiocpp_testing::{
    expected::{Expected, relative_error},
    formula,
};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/piper")
        .join(name)
}

/// A checkpoint as Hugging Face would publish it.
fn checkpoint(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |file: &str| folder.path().join(file);
    std::fs::copy(data(name).join("config.json"), at("config.json")).unwrap();
    let letters: BTreeMap<String, usize> = ('a'..='t').map(|c| c.to_string()).zip(0..).collect();
    std::fs::write(at("vocab.json"), serde_json::to_vec(&letters).unwrap()).unwrap();
    let tokenizer = br#"{"add_blank": true, "normalize": true, "phonemize": false}"#;
    std::fs::write(at("tokenizer_config.json"), tokenizer).unwrap();
    let layout = data(name).join("layout.json");
    formula::write_checkpoint(&layout, &at("model.safetensors")).unwrap();
    folder
}

fn open(name: &str, device: &Device) -> PiperModel {
    audiocpp_piper::open(checkpoint(name).path(), device, Policy::Native).unwrap()
}

fn compare(name: &str, device: &Device) {
    let expected = Expected::read(data(name).join("expected.safetensors"));
    let model = open(name, device);
    let ids = expected.i32("ids");
    let text: String = ids
        .iter()
        .skip(1)
        .step_by(2)
        .map(|&id| char::from(b'A' + id as u8))
        .collect();
    assert_eq!(model.config().number(text.chars()).numbers, ids);
    let speakers = model.config().speakers.len();
    let manner = Manner {
        speaker: speakers.saturating_sub(1) as i32,
        noise_scale: model.config().noise_scale,
        length_scale: model.config().length_scale,
        noise_w: model.config().noise_w,
    };
    assert_eq!(manner.length_scale, 0.25);
    let check = |stage: &str, found: &[f32], tolerance: f64| {
        let error = relative_error(found, &expected.f32(stage));
        println!("{name} {stage} {error:.1e}");
        assert!(error < tolerance, "{name} {stage} {error:.1e}");
    };

    let mut machine = model.machine();
    let mut random = TorchRandom::new(7);
    let encoded = machine.encode(&ids, manner.speaker).unwrap();
    check("means", &encoded.means, 2e-6);
    check("log_deviations", &encoded.log_deviations, 2e-6);
    let logs = machine
        .log_durations(&encoded, &manner, &mut random)
        .unwrap();
    check("log_durations", &logs, 1e-5);
    let lengths = audiocpp::nn::durations::whole_frames(&logs, manner.length_scale, 100);
    let latents = machine.latents(&encoded, &lengths, &manner, &mut random);
    let frames = machine.flow(&latents, manner.speaker).unwrap();
    check("frames", &frames, 1e-5);
    let mut samples = Vec::new();
    let sink = |window: &[f32]| {
        samples.extend_from_slice(window);
        Ok(())
    };
    machine
        .vocode(&frames, manner.speaker, &RunContext::new(), sink)
        .unwrap();
    check("samples", &samples, 5e-5);
}

#[test]
fn stages_are_those_of_transformers() {
    let device = Device::cpu(2).unwrap();
    let plain = Choices::from_options(None, ["short-conv=off"]).unwrap();
    for name in ["single", "speakers", "plain"] {
        compare(name, &device);
        compare(name, &device.with_fast_paths(plain.clone()));
    }
}

#[test]
fn samples_do_not_depend_on_the_windows() {
    let device = Device::cpu(2).unwrap();
    let model = open("single", &device);
    let (latent, hop) = (model.net().size.latent, model.net().size.hop());
    let frames = formula::unit("frames", 700 * latent);
    let vocode = |frames: &[f32]| {
        let mut samples = Vec::new();
        let sink = |window: &[f32]| {
            samples.extend_from_slice(window);
            Ok(())
        };
        let mut machine = model.machine();
        machine.vocode(frames, 0, &RunContext::new(), sink).unwrap();
        samples
    };
    let all = vocode(&frames);
    assert_eq!(all.len(), 700 * hop);
    let reach = model.net().size.vocoder.reach();
    for start in [0, 100, 333, 550] {
        // As long as a window at most, so in one piece; its own edges are different.
        let part = vocode(&frames[start * latent..(start + 150) * latent]);
        let from = if start == 0 { 0 } else { reach };
        let to = if start + 150 == 700 { 150 } else { 150 - reach };
        let wanted = &all[(start + from) * hop..(start + to) * hop];
        let error = relative_error(&part[from * hop..to * hop], wanted);
        assert!(error < 1e-5, "from frame {start}: {error:.1e}");
    }
}

#[test]
fn damaged_settings_are_errors() {
    let device = Device::cpu(1).unwrap();
    let spoil = |file: &str, text: &str| {
        let folder = checkpoint("single");
        std::fs::write(folder.path().join(file), text).unwrap();
        let found = audiocpp_piper::open(folder.path(), &device, Policy::Native);
        found.err().expect("an error").to_string()
    };
    let error = spoil("vocab.json", r#"{"a": 20}"#);
    assert!(error.contains("a symbol has the number 20"), "{error}");
    let error = spoil("tokenizer_config.json", r#"{"is_uroman": true}"#);
    assert!(error.contains("uroman"), "{error}");
    let error = spoil("config.json", r#"{"model_type": "bert"}"#);
    assert!(error.contains("Hugging Face VITS"), "{error}");
    let error = spoil(
        "config.json",
        r#"{"model_type": "vits", "upsample_rates": [3, 2]}"#,
    );
    assert!(error.contains("dec.ups.0"), "{error}");
    let error = spoil("model.safetensors", "short");
    assert!(error.contains("model.safetensors"), "{error}");
}
