//! Small networks of formula weights beside PyPI's demucs, stage by stage and as whole tracks
//! (`tests/reference/demucs_reference.py`).

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

use audiocpp::{
    audio::Audio,
    engine::{
        Family, LoadOptions, Model, OptionValue, Options, RunContext, SeparateRequest, Separation,
        Task,
    },
    graph::Device,
    weights::Policy,
};
use audiocpp_demucs::{Demucs, DemucsModel};
use audiocpp_testing::{
    expected::{Expected, relative_error},
    formula,
};
use safetensors::{Dtype, serialize_to_file, tensor::TensorView};
use serde_json::Value;

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/demucs")
        .join(name)
}

/// The network `name` as demucs writes it in safetensors, each tensor times what `factor` says.
fn checkpoint(name: &str, path: &Path, factor: impl Fn(&str) -> f32) {
    let json = |file: &str| std::fs::read(data(name).join(file)).unwrap();
    let layout: BTreeMap<String, Vec<usize>> =
        serde_json::from_slice(&json("layout.json")).unwrap();
    let about: Value = serde_json::from_slice(&json("config.json")).unwrap();
    let metadata = HashMap::from([
        (
            "klass".to_owned(),
            about["klass"].as_str().unwrap().to_owned(),
        ),
        ("args".to_owned(), "[]".to_owned()),
        ("kwargs".to_owned(), about["kwargs"].to_string()),
    ]);
    let bytes: Vec<(String, Vec<usize>, Vec<u8>)> = layout
        .into_iter()
        .map(|(name, shape)| {
            let factor = factor(&name);
            let values = formula::tensor(&name, &shape);
            let bytes = values.iter().flat_map(|v| (factor * v).to_le_bytes());
            let bytes = bytes.collect();
            (name, shape, bytes)
        })
        .collect();
    let views = bytes.iter().map(|(name, shape, bytes)| {
        (
            name,
            TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap(),
        )
    });
    serialize_to_file(views, Some(metadata), path).unwrap();
}

fn open(path: &Path) -> DemucsModel {
    audiocpp_demucs::open(path, &Device::cpu(2).unwrap(), Policy::Native).unwrap()
}

/// Noise under a wave, interleaved.
fn sound(name: &str, channels: usize, count: usize) -> Vec<f32> {
    let noise = formula::unit(name, channels * count);
    let value = |(i, x): (usize, f32)| 0.2 * x + 0.3 * ((i / channels) as f32 * 0.01).sin();
    noise.into_iter().enumerate().map(value).collect()
}

fn every(values: &[f32], step: usize) -> Vec<f32> {
    values.iter().step_by(step).copied().collect()
}

fn check(stage: &str, found: &[f32], expected: &Expected, name: &str, tolerance: f64) {
    let error = relative_error(found, &expected.f32(name));
    println!("{stage} {name}: {error:.1e}");
    assert!(error < tolerance, "{stage} {name}: {error:.1e}");
}

/// The stages of one segment.
fn compare(model: &DemucsModel, mix: &[f32], step: usize, expected: &Expected, name: &str) {
    let mut machine = model.machines().unwrap().remove(0);
    let made = machine.branches(mix).unwrap();
    check(name, &every(&made.bins, step), expected, "bins", 2e-5);
    check(name, &every(&made.samples, step), expected, "samples", 2e-5);
    let stems = machine.separate(mix).unwrap().concat();
    check(name, &every(&stems, step), expected, "stems", 2e-5);
}

fn segment(name: &str) {
    let folder = tempfile::tempdir().unwrap();
    checkpoint(name, &folder.path().join("model.safetensors"), |_| 1.0);
    let expected = Expected::read(data(name).join("expected.safetensors"));
    let model = open(folder.path());
    let config = &model.nets()[0].config;
    let mix = sound("mix", config.audio_channels, config.segment);
    compare(&model, &mix, 37, &expected, name);
}

/// The stems of a track, one after the other.
fn track(model: &DemucsModel, request: &SeparateRequest) -> Vec<f32> {
    let config = &model.nets()[0].config;
    let channels = config.audio_channels;
    let count = (2.6 * config.segment as f64) as usize;
    let samples = sound("track", channels, count);
    let clip = Audio::new(samples, config.samplerate, channels as u16).unwrap();
    let session = model.session(Task::Sep, &Options::default()).unwrap();
    let mut session = session.into_separate().unwrap();
    let found: Separation = session
        .separate(request, &mut clip.into_source(), &RunContext::new())
        .unwrap();
    let stems = found.stems.into_iter();
    stems.flat_map(|stem| stem.audio.samples).collect()
}

fn request(options: &[(&str, f64)]) -> SeparateRequest {
    let mut request = SeparateRequest {
        seed: Some(5),
        ..SeparateRequest::default()
    };
    for (name, value) in options {
        let value = match value.fract() {
            0.0 => OptionValue::Int(*value as i64),
            _ => OptionValue::Float(*value),
        };
        request.options.set(*name, value);
    }
    request
}

fn tracks(name: &str, all: bool) {
    let folder = tempfile::tempdir().unwrap();
    checkpoint(name, &folder.path().join("one.safetensors"), |_| 1.0);
    let expected = Expected::read(data(name).join("expected.safetensors"));
    let model = open(folder.path());
    let sources = model.nets()[0].config.sources.len();
    check(
        name,
        &every(&track(&model, &request(&[])), 101),
        &expected,
        "track",
        5e-5,
    );
    if !all {
        return;
    }
    let shifted = request(&[("shifts", 2.0), ("transition_power", 2.0)]);
    check(
        name,
        &every(&track(&model, &shifted), 101),
        &expected,
        "shifted",
        5e-5,
    );
    let other = |name: &str| if name.len() % 2 == 1 { 0.9 } else { 1.05 };
    checkpoint(name, &folder.path().join("two.safetensors"), other);
    let mut last = vec![0.0; sources];
    last[sources - 1] = 3.0;
    let bag = format!(
        "models: [one, two]\nweights: [{:?}, {last:?}]\n",
        vec![1.0; sources]
    );
    std::fs::write(folder.path().join("bag.yaml"), bag).unwrap();
    let model = open(folder.path());
    let request = request(&[("overlap", 0.1)]);
    check(
        name,
        &every(&track(&model, &request), 101),
        &expected,
        "bag",
        5e-5,
    );
}

#[test]
fn a_transformer_is_that_of_demucs() {
    segment("transformer");
    tracks("transformer", true);
}

#[test]
fn other_arguments_are_those_of_demucs() {
    segment("plain");
    tracks("plain", true);
}

#[test]
fn hybrid_demucs_is_that_of_demucs() {
    segment("hybrid");
    tracks("hybrid", false);
}

#[test]
fn a_checkpoint_of_torch_is_read_and_a_foreign_class_is_refused_by_name() {
    let model = open(&data("tiny.th"));
    assert_eq!(model.nets()[0].config.segment, 4000);
    let expected = Expected::read(data("tiny.safetensors"));
    compare(&model, &sound("mix", 2, 4000), 7, &expected, "tiny.th");
    assert!(Demucs.can_load(&data("tiny.th")));
    let device = Device::cpu(1).unwrap();
    let foreign = audiocpp_demucs::open(&data("foreign.th"), &device, Policy::Native);
    let error = foreign.err().expect("an error").to_string();
    assert!(error.contains("elsewhere.Net"), "{error}");
}

#[test]
fn damaged_checkpoints_are_errors() {
    let whole = std::fs::read(data("tiny.th")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let device = Device::cpu(1).unwrap();
    let open = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let found = audiocpp_demucs::open(&path, &device, Policy::Native);
        found.err().map(|error| error.to_string())
    };
    assert_eq!(open("tiny.th", &whole), None);
    for part in [0, 100, whole.len() / 2, whole.len() - 1] {
        assert!(open("tiny.th", &whole[..part]).is_some(), "{part} bytes");
    }
    let error = open("955717e8-8726e21a.th", &whole).unwrap();
    assert!(error.contains("its name says 8726e21a"), "{error}");
    let mut other = whole.clone();
    let at = other.windows(8).position(|w| w == b"HTDemucs").unwrap();
    other[at..at + 8].copy_from_slice(b"OTDemucs");
    assert!(open("other.th", &other).is_some());
}

#[test]
fn unwanted_networks_are_left_out_and_segments_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    checkpoint("plain", &folder.path().join("one.safetensors"), |_| 1.0);
    checkpoint("plain", &folder.path().join("two.safetensors"), |_| 0.5);
    let bag = "models: [one, two]\nweights: [[1, 1, 1, 0], [0, 0, 0, 1]]\n";
    std::fs::write(folder.path().join("bag.yaml"), bag).unwrap();
    let options = LoadOptions {
        device: "cpu".into(),
        threads: Some(2),
        ..LoadOptions::default()
    };
    assert!(Demucs.can_load(folder.path()));
    let model = Demucs
        .load(folder.path(), &options, &RunContext::new())
        .unwrap();
    let session = model.session(Task::Sep, &Options::default()).unwrap();
    let mut session = session.into_separate().unwrap();
    assert_eq!(session.stems(), ["drums", "bass", "other", "vocals"]);
    let clip = Audio::new(sound("clip", 1, 9000), 8000, 1).unwrap();
    let mut separate = |request: &SeparateRequest| {
        let mut source = clip.clone().into_source();
        session.separate(request, &mut source, &RunContext::new())
    };
    let all = separate(&SeparateRequest::default()).unwrap();
    let vocals = separate(&SeparateRequest {
        stems: vec!["vocals".into()],
        ..SeparateRequest::default()
    });
    let vocals = vocals.unwrap();
    assert_eq!(vocals.stems, all.stems[3..]);
    assert_eq!(vocals.stems[0].audio.frames(), 9000);
    let error = separate(&request(&[("segment", 1.5)])).unwrap_err();
    assert!(error.message.contains("takes 1.0 s at most"), "{error}");
    assert!(separate(&request(&[("segment", 0.5)])).is_ok());
}
