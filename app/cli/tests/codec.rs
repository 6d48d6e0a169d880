//! Runs of the real program on a small codec of formula weights: recordings to token files and back,
//! and other voices.

mod program;

use std::{
    path::{Path, PathBuf},
    process::Output,
};

use audiocpp::{
    audio::{Audio, WavFormat, write_wav},
    engine::Codes,
};
use audiocpp_testing::formula;
use program::command;

struct Place(tempfile::TempDir);

impl Place {
    /// A folder with a model and recordings.
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/miocodec");
        let model = place.at("model");
        std::fs::create_dir(&model).unwrap();
        std::fs::copy(data.join("config.yaml"), model.join("config.yaml")).unwrap();
        let weights = model.join("model.safetensors");
        formula::write_checkpoint(&data.join("tensors.json"), &weights).unwrap();
        place.record("talk.wav", 44_100, 2, 1.0, 0.5);
        place.record("other.wav", 16_000, 1, 1.0, 0.3);
        place
    }

    fn record(&self, name: &str, rate: u32, channels: u16, seconds: f64, level: f32) {
        let count = (seconds * f64::from(rate)) as usize * usize::from(channels);
        let noise = formula::unit(name, count);
        let samples: Vec<f32> = noise.into_iter().map(|x| level * x).collect();
        let audio = Audio::new(samples, rate, channels).unwrap();
        write_wav(self.at(name), &audio, WavFormat::Pcm16).unwrap();
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn cli(&self, args: &[&str]) -> Output {
        command(self.0.path())
            .args(args)
            .args(["--model", "model", "--device", "cpu", "--threads", "2"])
            .current_dir(self.0.path())
            .output()
            .expect("the program starts")
    }

    fn done(&self, args: &[&str]) -> Vec<u8> {
        let output = self.cli(args);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {text}");
        output.stdout
    }

    fn refused(&self, args: &[&str], code: i32, says: &str) {
        let output = self.cli(args);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
        assert!(text.contains(says), "{args:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(!self.at("no.wav").exists() && !self.at("no.miotok").exists());
    }
}

#[test]
fn recordings_become_tokens_and_sound_again() {
    let place = Place::new();
    place.done(&["codec", "encode", "talk.wav", "-o", "talk.miotok"]);
    let codes = Codes::parse(&std::fs::read(place.at("talk.miotok")).unwrap()).unwrap();
    assert_eq!(
        (codes.steps(), codes.samples, codes.global.len()),
        (25, 24_000, 32)
    );
    place.done(&["codec", "encode", "talk.wav", "-o", "talk.json"]);
    let text = std::fs::read_to_string(place.at("talk.json")).unwrap();
    assert!(
        text.starts_with("{\"format\":\"audiocpp-tokens\""),
        "{text}"
    );
    assert_eq!(Codes::parse(text.as_bytes()).unwrap(), codes);
    let printed = place.done(&[
        "codec", "encode", "talk.wav", "-o", "-", "--format", "binary",
    ]);
    assert_eq!(Codes::parse(&printed).unwrap(), codes);

    let decoded = |tokens: &str, out: &str, more: &[&str]| {
        let args = ["codec", "decode", tokens, "-o", out, "--samples", "f32"];
        place.done(&[&args[..], more].concat());
        Audio::open(place.at(out)).unwrap()
    };
    let sound = decoded("talk.miotok", "a.wav", &[]);
    assert_eq!(
        (sound.rate, sound.channels, sound.frames()),
        (24_000, 1, 24_000)
    );
    assert!(sound.peak() > 0.01);
    assert_eq!(decoded("talk.json", "b.wav", &[]), sound);
    let other = decoded("talk.miotok", "c.wav", &["--voice-from", "other.wav"]);
    assert_eq!(other.frames(), 24_000);
    assert_ne!(other, sound);

    // Conversion is the same in one go, in both forms of the command.
    let both = [
        "--reference",
        "other.wav",
        "-o",
        "d.wav",
        "--samples",
        "f32",
    ];
    place.done(&[&["convert-voice", "talk.wav"][..], &both].concat());
    assert_eq!(Audio::open(place.at("d.wav")).unwrap(), other);
    let flags = [
        "--task",
        "vc",
        "--audio",
        "talk.wav",
        "--voice-ref",
        "other.wav",
    ];
    place.done(&[&flags[..], &["--out", "e.wav", "--samples", "f32"]].concat());
    assert_eq!(Audio::open(place.at("e.wav")).unwrap(), other);
    place.done(&[
        "convert-voice",
        "talk.wav",
        "-r",
        "other.wav",
        "-o",
        "f.flac",
    ]);
    assert_eq!(Audio::open(place.at("f.flac")).unwrap().frames(), 24_000);
}

#[test]
fn what_cannot_be_done_is_one_line_and_no_file() {
    let place = Place::new();
    place.record("empty.wav", 16_000, 1, 0.0, 0.0);
    place.record("silent.wav", 16_000, 1, 2.0, 0.0);
    place.record("short.wav", 16_000, 1, 0.1, 0.5);
    place.record("long.wav", 8_000, 1, 125.0, 0.5);
    for (reference, says) in [
        ("empty.wav", "empty"),
        ("silent.wav", "silent"),
        ("short.wav", "0.10 s long"),
        ("long.wav", "at most 120 s"),
    ] {
        let args = [
            "convert-voice",
            "talk.wav",
            "--reference",
            reference,
            "-o",
            "no.wav",
        ];
        place.refused(&args, 1, says);
    }
    let args = [
        "convert-voice",
        "talk.wav",
        "--reference",
        "missing.wav",
        "-o",
        "no.wav",
    ];
    place.refused(&args, 2, "missing.wav");
    let args = [
        "convert-voice",
        "talk.wav",
        "--reference",
        "other.wav",
        "-o",
        "no.xyz",
    ];
    place.refused(&args, 2, "no audio format");
    let args = [
        "convert-voice",
        "talk.wav",
        "--reference",
        "other.wav",
        "-o",
        "no/no.wav",
    ];
    place.refused(&args, 2, "no folder");
    place.refused(
        &["codec", "encode", "silent.wav", "-o", "no.miotok"],
        1,
        "silent.wav",
    );
    place.refused(
        &["codec", "encode", "missing.wav", "-o", "no.miotok"],
        2,
        "no such file",
    );
    place.refused(
        &["codec", "decode", "talk.wav", "-o", "no.wav"],
        2,
        "no token file",
    );
    place.refused(
        &["codec", "decode", "missing", "-o", "no.wav"],
        2,
        "missing",
    );
    place.done(&["codec", "encode", "talk.wav", "-o", "talk.miotok"]);
    let mut bytes = std::fs::read(place.at("talk.miotok")).unwrap();
    bytes.truncate(bytes.len() / 2);
    std::fs::write(place.at("cut.miotok"), bytes).unwrap();
    place.refused(
        &["codec", "decode", "cut.miotok", "-o", "no.wav"],
        2,
        "ends within",
    );
    let args = [
        "codec",
        "decode",
        "talk.miotok",
        "-o",
        "no.wav",
        "--voice-from",
        "silent.wav",
    ];
    place.refused(&args, 1, "silent");
}
