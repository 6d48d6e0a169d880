//! A network of formula weights beside the original code, stage by stage
//! (`tests/reference/kokoro_reference.py`). Only the language model is small: the sizes of the rest
//! are fixed there.

use std::path::PathBuf;

use audiocpp::{backend::Choices, graph::Device, sampling::TorchRandom, weights::Policy};
use audiocpp_testing::{
    expected::{Expected, relative_error},
    formula,
};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/kokoro/formula")
        .join(name)
}

/// A checkpoint with the names of the original one.
fn checkpoint() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |file: &str| folder.path().join(file);
    std::fs::copy(data("config.json"), at("config.json")).unwrap();
    formula::write_checkpoint(&data("layout.json"), &at("kokoro.safetensors")).unwrap();
    // One voice of two lengths, as numpy keeps it.
    let style = Expected::read(data("expected.safetensors")).f32("style");
    std::fs::create_dir(at("voices")).unwrap();
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 256), }\n";
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(style.iter().chain(&style).flat_map(|x| x.to_le_bytes()));
    std::fs::write(at("voices/af_test.bin"), file).unwrap();
    folder
}

#[test]
fn stages_are_those_of_the_original_code() {
    let expected = Expected::read(data("expected.safetensors"));
    let folder = checkpoint();
    let plain = Choices::from_options(None, ["short-conv=off"]).unwrap();
    let device = Device::cpu(2).unwrap();
    for device in [device.clone(), device.with_fast_paths(plain)] {
        let model = audiocpp_kokoro::open(folder.path(), &device, Policy::Native).unwrap();
        let check = |stage: &str, found: &[f32], tolerance: f64| {
            let error = relative_error(found, &expected.f32(stage));
            println!("{stage} {error:.1e}");
            assert!(error < tolerance, "{stage} {error:.1e}");
        };
        let some = |rows: &[f32], width: usize| -> Vec<f32> {
            rows.chunks_exact(width)
                .step_by(16)
                .flatten()
                .copied()
                .collect()
        };
        let ids = expected.i32("ids");
        let style = expected.f32("style");
        let (acoustic, prosodic) = style.split_at(128);
        let mut machine = model.machine();
        let encoded = machine.encode(&ids, prosodic).unwrap();
        check("bert", &some(&encoded.bert, 64), 1e-5);
        // Convolutions at 12 points are exact to 4e-6 each.
        check("text", &some(&encoded.text, 512), 3e-5);
        check("prosody", &some(&encoded.prosody, 640), 1e-5);
        check("durations", &encoded.durations, 1e-5);
        let lengths = machine.durations(&encoded, 1.0).unwrap();
        let found: Vec<i32> = lengths.iter().map(|&n| n as i32).collect();
        assert_eq!(found, expected.i32("lengths"));
        let [pitch, energy] = machine.prosody(&encoded, &lengths, prosodic).unwrap();
        check("pitch", &pitch, 2e-5);
        check("energy", &energy, 2e-5);
        let mut random = TorchRandom::new(7);
        let pitch = expected.f32("decoder_pitch");
        let voiced = pitch.iter().filter(|&&x| x > 10.0).count();
        assert!((pitch.len() / 4..pitch.len()).contains(&voiced));
        check(
            "source",
            &machine.source().samples(&pitch, Some(&mut random)),
            1e-3,
        );
        // From here on with the reference's source: a phase beside ±π may fall on the other side, and
        // this network makes much of it.
        let source = machine
            .source()
            .head()
            .analyse(&expected.f32("source"))
            .unwrap();
        let curves = [&pitch[..], &energy[..]];
        let spectrum = machine
            .decode(&encoded, &lengths, curves, &source, acoustic)
            .unwrap();
        check("features", &some(&machine.features().unwrap(), 512), 1e-4);
        check("spectrum", &some(&spectrum, 22), 2e-2);
        check(
            "samples",
            &machine.source().head().samples(&spectrum).unwrap(),
            5e-2,
        );
    }
}

#[test]
fn a_wrong_package_is_an_error() {
    let device = Device::cpu(1).unwrap();
    let open = |folder: &tempfile::TempDir| {
        let found = audiocpp_kokoro::open(folder.path(), &device, Policy::Native);
        found.err().expect("an error").to_string()
    };
    let folder = tempfile::tempdir().unwrap();
    assert!(open(&folder).contains("no Kokoro"));
    let at = |file: &str| folder.path().join(file);
    std::fs::write(at("config.json"), r#"{"vocab": {"a": 1}}"#).unwrap();
    assert!(open(&folder).contains("no Kokoro"));
    std::fs::write(at("kokoro.pth"), "short").unwrap();
    assert!(open(&folder).contains("kokoro.pth"));
    std::fs::copy(data("expected.safetensors"), at("kokoro.safetensors")).unwrap();
    std::fs::remove_file(at("kokoro.pth")).unwrap();
    let error = open(&folder);
    assert!(error.contains("text_encoder.embedding.weight"), "{error}");
}
