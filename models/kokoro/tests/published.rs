//! The published 8-bit export beside onnxruntime, which computes in 8 bits too, and beside the
//! original code with the same weights in f32 (`tests/reference/kokoro_reference.py`).

use std::path::Path;

use audiocpp::{engine::RunContext, graph::Device, sampling::TorchRandom, weights::Policy};
use audiocpp_kokoro::{KokoroModel, symbols};
use audiocpp_testing::{
    expected::{Expected, relative_error},
    models,
};

/// Seed of the reference.
const SEED: u64 = 7;

fn correlation(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter()
            .zip(b)
            .map(|(a, b)| f64::from(*a) * f64::from(*b))
            .sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// Root mean square of the differences in level over windows of 1024 samples and their bins, in dB,
/// where either is above -60 dB of the loudest bin.
fn spectral_distance(a: &[f32], b: &[f32]) -> f64 {
    use audiocpp::audio::{Stft, StftConfig};
    let stft = Stft::new(StftConfig::new(1024, 256)).unwrap();
    let levels = |x: &[f32]| -> Vec<f64> {
        let spectrum = stft.forward(x).unwrap();
        spectrum
            .data
            .iter()
            .map(|bin| 20.0 * f64::from(bin.norm().max(1e-9)).log10())
            .collect()
    };
    let (a, b) = (levels(a), levels(b));
    let loudest = a.iter().fold(f64::MIN, |most, x| most.max(*x));
    let heard = a
        .iter()
        .zip(&b)
        .filter(|(a, b)| a.max(**b) > loudest - 60.0);
    let (sum, count) = heard.fold((0.0, 0), |(sum, count), (a, b)| {
        (sum + (a - b).powi(2), count + 1)
    });
    (sum / f64::from(count)).sqrt()
}

fn expected() -> Expected {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/kokoro");
    Expected::read(data.join("published.safetensors"))
}

fn every_eighth(rows: &[f32], width: usize) -> Vec<f32> {
    rows.chunks_exact(width)
        .step_by(8)
        .flatten()
        .copied()
        .collect()
}

fn compare(model: &KokoroModel) {
    let expected = expected();
    let check = |stage: &str, found: &[f32], tolerance: f64| {
        let error = relative_error(found, &expected.f32(stage));
        println!("{stage} {error:.1e}");
        assert!(error < tolerance, "{stage} {error:.1e}");
    };
    let ids = expected.i32("ids");
    let phonemes: Vec<char> = expected.notes["phonemes"].chars().collect();
    assert_eq!(symbols::number(&phonemes, model.vocab(), true).numbers, ids);
    let voice = model.styles().mix("jf_alpha").unwrap();
    let style = voice.of(ids.len() - 2);
    assert_eq!(style, expected.f32("style"));
    let (acoustic, prosodic) = style.split_at(128);

    let mut machine = model.machine();
    let encoded = machine.encode(&ids, prosodic).unwrap();
    check("bert", &every_eighth(&encoded.bert, 768), 2e-5);
    check("text", &every_eighth(&encoded.text, 512), 2e-5);
    check("prosody", &every_eighth(&encoded.prosody, 640), 2e-5);
    check("durations", &encoded.durations, 2e-5);
    let lengths = machine.durations(&encoded, 1.0).unwrap();
    let found: Vec<i32> = lengths.iter().map(|&n| n as i32).collect();
    assert_eq!(found, expected.i32("lengths"));
    assert_eq!(found, expected.i32("onnx_lengths"));

    let [pitch, energy] = machine.prosody(&encoded, &lengths, prosodic).unwrap();
    check("pitch", &pitch, 1e-4);
    check("energy", &energy, 1e-4);
    let source = machine
        .source()
        .samples(&pitch, Some(&mut TorchRandom::new(SEED)));
    check("source", &source, 1e-2);
    // From here on with the pitch of the reference: phases add up its rounding.
    let pitch = expected.f32("pitch");
    let mut random = TorchRandom::new(SEED);
    let source = machine
        .source()
        .spectrum(&pitch, Some(&mut random))
        .unwrap();
    let curves = [&pitch[..], &energy[..]];
    let spectrum = machine
        .decode(&encoded, &lengths, curves, &source, acoustic)
        .unwrap();
    check(
        "features",
        &every_eighth(&machine.features().unwrap(), 512),
        1e-4,
    );
    check("spectrum", &every_eighth(&spectrum, 22), 1e-2);
    let samples = machine.source().head().samples(&spectrum).unwrap();
    check("samples", &samples, 1e-2);

    let context = RunContext::new();
    let (quiet, _) = machine.speak(&ids, style, 1.0, None, &context).unwrap();
    beside(
        "f32 without noise",
        &quiet,
        &expected.f32("quiet"),
        0.999,
        2.0,
    );
    // Activations in 8 bits move the pitch a little, and with it all later phases; so the rest is
    // compared at the pitch and energy of onnxruntime.
    let [pitch, energy] = ["onnx_pitch", "onnx_energy"].map(|name| expected.f32(name));
    let source = machine.source().spectrum(&pitch, None).unwrap();
    let curves = [&pitch[..], &energy[..]];
    let spectrum = machine
        .decode(&encoded, &lengths, curves, &source, acoustic)
        .unwrap();
    let samples = machine.source().head().samples(&spectrum).unwrap();
    beside("8 bits", &samples, &expected.f32("onnx_samples"), 0.9, 6.0);
}

/// Compares two sounds, apart from their level.
fn beside(name: &str, found: &[f32], wanted: &[f32], least: f64, most: f64) {
    let loud = |x: &[f32]| x.iter().map(|x| x * x).sum::<f32>().sqrt();
    let level = loud(found) / loud(wanted);
    let scaled: Vec<f32> = wanted.iter().map(|x| x * level).collect();
    let (r, distance) = (
        correlation(found, wanted),
        spectral_distance(found, &scaled),
    );
    println!("{name}: correlation {r:.5}, {distance:.2} dB apart, level {level:.3}");
    assert!(r > least && distance < most, "{name}: {r} {distance}");
}

#[test]
fn stages_are_those_of_the_original_code() {
    let Some(folder) = models::folder("kokoro") else {
        return;
    };
    let device = Device::cpu(2).unwrap();
    compare(&audiocpp_kokoro::open(&folder, &device, Policy::Native).unwrap());
}

/// The same weights as a checkpoint of the original code, where someone has made one with the
/// reference script.
#[test]
fn a_checkpoint_is_the_same_network() {
    let Some(folder) = std::env::var_os("AUDIOCPP_KOKORO_CHECKPOINT") else {
        eprintln!("skipped: it needs AUDIOCPP_KOKORO_CHECKPOINT");
        return;
    };
    let device = Device::cpu(2).unwrap();
    compare(&audiocpp_kokoro::open(Path::new(&folder), &device, Policy::Native).unwrap());
}

#[test]
fn a_damaged_file_is_an_error() {
    let Some(folder) = models::folder("kokoro") else {
        return;
    };
    let device = Device::cpu(1).unwrap();
    let other = tempfile::tempdir().unwrap();
    let at = |name: &str| other.path().join(name);
    let whole = std::fs::read(folder.join("kokoro-v1.0.int8.onnx")).unwrap();
    for name in ["vocab.json", "voices_ja.npz"] {
        std::fs::copy(folder.join(name), at(name)).unwrap();
    }
    let open = |weights: &[u8]| {
        std::fs::write(at("kokoro.onnx"), weights).unwrap();
        audiocpp_kokoro::open(other.path(), &device, Policy::Native).map(drop)
    };
    for part in [0, 1000, whole.len() / 2, whole.len() - 1] {
        assert!(open(&whole[..part]).is_err(), "{part} bytes");
    }
    std::fs::write(at("vocab.json"), r#"{"vocab": {"a": 178}}"#).unwrap();
    let error = open(&whole).unwrap_err().to_string();
    assert!(error.contains("`a` has the number 178"), "{error}");
    std::fs::copy(folder.join("vocab.json"), at("vocab.json")).unwrap();
    std::fs::remove_file(at("voices_ja.npz")).unwrap();
    let error = open(&whole).unwrap_err().to_string();
    assert!(error.contains("no voices"), "{error}");
}
