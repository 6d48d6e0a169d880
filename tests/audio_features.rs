//! STFT, mel filters and Whisper features against `tests/reference/audio_features.py`.
use audiocpp::audio::{
    LogMel, LogMelConfig, MelBank, MelNorm, MelScale, Padding, Stft, StftConfig, Window,
};
use serde_json::Value;
use std::f64::consts::TAU;

fn reference() -> Value {
    let path = format!(
        "{}/tests/data/audio/features.json",
        env!("CARGO_MANIFEST_DIR")
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The signal of the reference script.
fn signal(len: usize) -> Vec<f32> {
    let mut state = 1u32;
    (0..len)
        .map(|i| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = f64::from(state >> 8) / f64::from(1 << 23) - 1.0;
            let i = i as f64;
            let tones = 0.4 * (TAU * 0.013 * i).sin() + 0.2 * (TAU * 0.171 * i + 0.5).sin();
            (tones + 0.1 * noise) as f32
        })
        .collect()
}

fn int(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

fn floats(value: &Value) -> Vec<f32> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v.as_f64().unwrap() as f32)
        .collect()
}

fn stft_config(case: &Value) -> StftConfig {
    let flag = |name: &str| case[name].as_bool().unwrap();
    StftConfig {
        n_fft: int(&case["n_fft"]),
        hop: int(&case["hop"]),
        win_length: int(&case["win"]),
        window: Window::Hann,
        center: flag("center"),
        padding: if flag("zeros") {
            Padding::Zeros
        } else {
            Padding::Reflect
        },
        normalized: flag("normalized"),
        onesided: flag("onesided"),
    }
}

#[test]
fn stft_matches_the_reference_in_every_mode() {
    for case in reference()["stft"].as_array().unwrap() {
        let spectrogram = Stft::new(stft_config(case))
            .unwrap()
            .forward(&signal(200))
            .unwrap();
        let (re, im) = (floats(&case["re"]), floats(&case["im"]));
        assert_eq!(spectrogram.frames, int(&case["frames"]));
        assert_eq!(spectrogram.data.len(), re.len());
        for (i, bin) in spectrogram.data.iter().enumerate() {
            let off = (bin.re - re[i]).abs().max((bin.im - im[i]).abs());
            assert!(off < 2e-6 * 64.0, "bin {i}: {bin} for {} {}i", re[i], im[i]);
        }
    }
}

#[test]
fn istft_gives_the_signal_back() {
    let x = signal(3001);
    for (n_fft, hop, center, normalized, onesided) in [
        (400, 160, true, false, true),
        (64, 16, true, true, false),
        (51, 17, true, false, true),
        (256, 64, true, false, true),
    ] {
        let config = StftConfig {
            center,
            normalized,
            onesided,
            ..StftConfig::new(n_fft, hop)
        };
        let stft = Stft::new(config).unwrap();
        let back = stft
            .inverse(&stft.forward(&x).unwrap(), Some(x.len()))
            .unwrap();
        let covered = (stft.frames(x.len()) - 1) * hop;
        let worst = (0..covered)
            .map(|i| (back[i] - x[i]).abs())
            .fold(0.0, f32::max);
        assert!(worst < 1e-5, "n_fft {n_fft}: off by {worst}");
        assert_eq!(back.len(), x.len());
    }
}

#[test]
fn istft_refuses_what_it_cannot_invert() {
    let stft = Stft::new(StftConfig {
        center: false,
        ..StftConfig::new(64, 64)
    })
    .unwrap();
    let gaps = stft.forward(&signal(640)).unwrap();
    let err = stft.inverse(&gaps, None).unwrap_err().to_string();
    assert!(err.contains("uncovered"), "{err}");
    let other = Stft::new(StftConfig::new(32, 8)).unwrap();
    let err = other.inverse(&gaps, None).unwrap_err().to_string();
    assert!(
        err.contains("wanted at least one frame of 17 bins"),
        "{err}"
    );
}

#[test]
fn short_signals_and_bad_numbers_are_errors() {
    let stft = Stft::new(StftConfig::new(400, 160)).unwrap();
    let err = stft.forward(&[0.0; 200]).unwrap_err().to_string();
    assert!(err.contains("at least 201"), "{err}");
    assert_eq!(stft.forward(&[0.0; 201]).unwrap().frames, 2);
    assert!(Stft::new(StftConfig::new(400, 0)).is_err());
    assert!(
        Stft::new(StftConfig {
            win_length: 401,
            ..StftConfig::new(400, 160)
        })
        .is_err()
    );
}

#[test]
fn mel_filters_match_the_reference() {
    for case in reference()["banks"].as_array().unwrap() {
        let flag = |name: &str| case[name].as_bool().unwrap();
        let bank = MelBank {
            rate: int(&case["rate"]) as u32,
            n_fft: int(&case["n_fft"]),
            n_mels: int(&case["n_mels"]),
            f_min: case["f_min"].as_f64().unwrap(),
            f_max: case["f_max"].as_f64().unwrap(),
            scale: if flag("htk") {
                MelScale::Htk
            } else {
                MelScale::Slaney
            },
            norm: if flag("slaney_norm") {
                MelNorm::Slaney
            } else {
                MelNorm::None
            },
        };
        let bins = bank.n_fft / 2 + 1;
        let mut want = vec![0.0f32; bank.n_mels * bins];
        let (rows, columns) = (&case["rows"], &case["bins"]);
        for (i, weight) in floats(&case["weights"]).into_iter().enumerate() {
            want[int(&rows[i]) * bins + int(&columns[i])] = weight;
        }
        for (i, (got, want)) in bank.weights().iter().zip(&want).enumerate() {
            assert!(
                (got - want).abs() <= 1e-6 * want.abs() + 1e-9,
                "{i}: {got} for {want}"
            );
        }
    }
}

#[test]
fn whisper_features_match_the_reference() {
    for case in reference()["whisper"].as_array().unwrap() {
        let n_mels = int(&case["n_mels"]);
        let front = LogMel::new(LogMelConfig::whisper(n_mels)).unwrap();
        let got = front
            .window(&signal(int(&case["samples"])), int(&case["frames"]))
            .unwrap();
        let want = floats(&case["values"]);
        assert_eq!(got.len(), want.len());
        let worst = got
            .iter()
            .zip(&want)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f32::max);
        assert!(worst < 1e-4, "{n_mels} mels: off by {worst}");
    }
}

#[test]
fn whisper_windows_are_padded_and_cut_to_their_frames() {
    let front = LogMel::new(LogMelConfig::whisper(80)).unwrap();
    let silence = front.window(&[], 3000).unwrap();
    assert_eq!(silence.len(), 3000 * 80);
    assert!(
        silence.iter().all(|&x| x == -1.5),
        "log10(1e-10) scaled is -1.5"
    );
    let long = signal(20_000);
    assert_eq!(
        front.window(&long, 50).unwrap(),
        front.window(&long[..8000], 50).unwrap()
    );
}
