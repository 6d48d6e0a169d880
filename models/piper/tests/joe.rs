//! The published voice en_US-joe-medium beside onnxruntime, without noise
//! (`tests/reference/piper_reference.py`).

use std::path::Path;

use audiocpp::{engine::RunContext, graph::Device, sampling::TorchRandom, weights::Policy};
use audiocpp_piper::machine::Manner;
use audiocpp_testing::{
    expected::{Expected, relative_error},
    models,
};

const PLAIN: Manner = Manner {
    speaker: 0,
    noise_scale: 0.0,
    length_scale: 1.0,
    noise_w: 0.0,
};

fn correlation(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter()
            .zip(b)
            .map(|(a, b)| f64::from(*a) * f64::from(*b))
            .sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn stages_and_samples_are_those_of_onnxruntime() {
    let Some(folder) = models::folder("piper-joe") else {
        return;
    };
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/piper");
    let expected = Expected::read(data.join("joe.safetensors"));
    let device = Device::cpu(1).unwrap();
    let model = audiocpp_piper::open(&folder, &device, Policy::Native).unwrap();

    let numbered = model.config().number(expected.notes["phonemes"].chars());
    assert_eq!(numbered.numbers, expected.i32("ids"));
    assert!(numbered.unknown.is_empty());

    let mut machine = model.machine();
    let mut random = TorchRandom::new(0);
    let encoded = machine.encode(&numbered.numbers, 0).unwrap();
    let statistics: Vec<f32> = encoded
        .means
        .chunks(192)
        .zip(encoded.log_deviations.chunks(192))
        .flat_map(|(means, logs)| [means, logs].concat())
        .collect();
    let error = relative_error(&statistics, &expected.f32("statistics"));
    println!("statistics {error:.1e}");
    assert!(error < 2e-5, "{error}");

    let lengths = machine.durations(&encoded, &PLAIN, &mut random).unwrap();
    let found: Vec<i32> = lengths.iter().map(|&n| n as i32).collect();
    assert_eq!(found, expected.i32("durations"));

    let latents = machine.latents(&encoded, &lengths, &PLAIN, &mut random);
    let frames = machine.flow(&latents, 0).unwrap();
    let error = relative_error(&frames, &expected.f32("frames"));
    println!("frames {error:.1e}");
    assert!(error < 1e-4, "{error}");

    let mut samples = Vec::new();
    let sink = |window: &[f32]| {
        samples.extend_from_slice(window);
        Ok(())
    };
    machine
        .vocode(&frames, 0, &RunContext::new(), sink)
        .unwrap();
    let wanted = expected.f32("samples");
    assert_eq!(samples.len(), wanted.len());
    let (r, error) = (
        correlation(&samples, &wanted),
        relative_error(&samples, &wanted),
    );
    println!(
        "samples: 1 - correlation {:.1e}, relative error {error:.1e}",
        1.0 - r
    );
    assert!(r > 0.999_999 && error < 1e-3, "{r} {error}");
}

#[test]
fn a_damaged_file_is_an_error() {
    let Some(folder) = models::folder("piper-joe") else {
        return;
    };
    let whole = std::fs::read(folder.join("en_US-joe-medium.onnx")).unwrap();
    let settings = std::fs::read(folder.join("en_US-joe-medium.onnx.json")).unwrap();
    let device = Device::cpu(1).unwrap();
    let other = tempfile::tempdir().unwrap();
    let at = |name: &str| other.path().join(name);
    let open = |weights: &[u8], settings: &[u8]| {
        std::fs::write(at("voice.onnx"), weights).unwrap();
        std::fs::write(at("voice.onnx.json"), settings).unwrap();
        audiocpp_piper::open(other.path(), &device, Policy::Native).map(drop)
    };
    assert!(open(&whole, &settings).is_ok());
    for part in [0, 1, 1000, whole.len() / 2, whole.len() - 1] {
        assert!(open(&whole[..part], &settings).is_err(), "{part} bytes");
    }
    let mut spoiled = whole.clone();
    spoiled[200..260].fill(0xff);
    assert!(open(&spoiled, &settings).is_err());
    // The tensor of a name that the graph asks for is gone (its own name stands last).
    let name = b"dec.ups.1.weight";
    let place = whole.windows(name.len()).rposition(|bytes| bytes == name);
    spoiled.copy_from_slice(&whole);
    spoiled[place.unwrap() + 8] = b'7';
    assert!(open(&spoiled, &settings).is_err());
    assert!(open(&whole, &settings[..settings.len() / 2]).is_err());
    assert!(open(&whole, b"{}").is_err());
}
