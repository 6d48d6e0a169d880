//! Published files beside their own runtimes, frame by frame
//! (`tests/reference/silero_reference.py`).
//!
//! Skipped, with a line that says so, where the models are not downloaded.

use std::path::{Path, PathBuf};

use audiocpp::{audio::Audio, graph::Device, weights::Policy};
use audiocpp_testing::{
    expected::{Expected, max_difference},
    models, speech,
};

/// File, and the rates that it has networks for.
const FILES: [(&str, &[u32]); 4] = [
    ("silero_vad.onnx", &[8_000, 16_000]),
    ("silero_vad_op18_ifless.onnx", &[8_000, 16_000]),
    ("silero_vad_16k_op15.onnx", &[16_000]),
    ("silero_vad_16k.safetensors", &[16_000]),
];

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/silero_vad")
        .join(name)
}

/// What the script calls `noise`: a linear congruential generator's numbers in -1..1.
fn noise(count: usize) -> Vec<f32> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// What the script calls `sound`: all clips, a second of faint noise before each.
fn sound() -> Vec<f32> {
    let gap: Vec<f32> = noise(16_000).iter().map(|x| x * 0.01).collect();
    let mut samples = Vec::new();
    for clip in speech::clips() {
        samples.extend(&gap);
        samples.extend(Audio::open(clip.path()).unwrap().samples);
    }
    samples.extend(&gap[..1000]);
    samples
}

/// At the rate of a network: every second sample for 8 kHz, as the script has it.
fn at(rate: u32, sound: &[f32]) -> Vec<f32> {
    let step = (16_000 / rate) as usize;
    let mut samples: Vec<f32> = sound.iter().copied().step_by(step).collect();
    let frame = 512 / step;
    samples.resize(samples.len().next_multiple_of(frame), 0.0);
    samples
}

#[test]
fn probabilities_are_those_of_the_file_s_own_runtime() {
    let Some(folder) = models::folder("silero-vad") else {
        return;
    };
    let expected = Expected::read(data("probabilities.safetensors"));
    let sound = sound();
    let device = Device::cpu(1).unwrap();
    for (file, rates) in FILES {
        let model = audiocpp_silero_vad::open(&folder.join(file), &device, Policy::Native).unwrap();
        assert!(model.rates().eq(rates.iter().copied()), "{file}");
        for &rate in rates {
            let mut machine = model.machine(rate).unwrap();
            let (mut state, mut found) = (machine.start(), Vec::new());
            let samples = at(rate, &sound);
            machine
                .probabilities(&mut state, &samples, &mut found)
                .unwrap();
            let stem = file.rsplit_once('.').unwrap().0;
            let wanted = expected.f32(&format!("{stem}.{rate}"));
            let worst = max_difference(&found, &wanted);
            println!("{file} at {rate} Hz: {} frames, {worst:.1e}", found.len());
            assert!(worst < 2e-5, "{file} at {rate} Hz: {worst:.1e}");
        }
    }
}

#[test]
fn frames_one_by_one_are_frames_together() {
    let Some(folder) = models::folder("silero-vad") else {
        return;
    };
    let device = Device::cpu(2).unwrap();
    let model = audiocpp_silero_vad::open(&folder, &device, Policy::Native).unwrap();
    let samples = at(16_000, &sound()[..16_000 * 8]);
    let mut machine = model.machine(16_000).unwrap();
    let (mut state, mut whole) = (machine.start(), Vec::new());
    machine
        .probabilities(&mut state, &samples, &mut whole)
        .unwrap();
    for size in [1, 5, 100] {
        let (mut other, mut parts) = (machine.start(), Vec::new());
        for part in samples.chunks(512 * size) {
            machine.probabilities(&mut other, part, &mut parts).unwrap();
        }
        let worst = max_difference(&parts, &whole);
        assert!(worst < 1e-5, "{size} frames at a time: {worst:.1e}");
    }
    // A sample that is no number spoils one frame, not the rest of the stream.
    let mut broken = samples.clone();
    broken[512 * 40 + 7] = f32::NAN;
    let (mut state, mut found) = (machine.start(), Vec::new());
    machine
        .probabilities(&mut state, &broken, &mut found)
        .unwrap();
    assert!(found.iter().all(|p| p.is_finite()));
    assert!((found[249] - whole[249]).abs() < 0.1);
}

#[test]
fn damaged_files_are_errors() {
    let Some(folder) = models::folder("silero-vad") else {
        return;
    };
    let device = Device::cpu(1).unwrap();
    let other = tempfile::tempdir().unwrap();
    for (file, _) in FILES {
        let whole = std::fs::read(folder.join(file)).unwrap();
        let path = other.path().join(file);
        let open = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            audiocpp_silero_vad::open(&path, &device, Policy::Native).map(drop)
        };
        assert!(open(&whole).is_ok(), "{file}");
        for length in [0, 1, 1000, whole.len() / 2, whole.len() - 1] {
            assert!(open(&whole[..length]).is_err(), "{length} bytes of {file}");
        }
        let mut spoiled = whole.clone();
        spoiled[8..600].fill(0xff);
        assert!(open(&spoiled).is_err(), "{file}");
    }
    // Several files, none of the usual name: which is meant?
    for (file, _) in &FILES[1..3] {
        std::fs::copy(folder.join(file), other.path().join(file)).unwrap();
    }
    std::fs::remove_file(other.path().join(FILES[0].0)).unwrap();
    let error = audiocpp_silero_vad::open(other.path(), &device, Policy::Native);
    let message = error.err().unwrap().to_string();
    assert!(message.contains("wanted silero_vad.onnx"), "{message}");
}
