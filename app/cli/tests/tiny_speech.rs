//! The real program speaks with a tiny package of formula weights.

mod program;

use std::{fs, path::Path, process::Output};

use audiocpp_testing::package;
use program::command;

fn cli(home: &Path, args: &[&str]) -> Output {
    let output = command(home).args(args).output();
    output.expect("the program starts")
}

/// A package of a model that always speaks, with one voice.
fn package(folder: &Path) {
    package::write("vibevoice/realtime", folder, |_, _| ());
    let voices = folder.join("voices");
    fs::create_dir(&voices).unwrap();
    let voice = package::data("vibevoice/realtime/voice.pt");
    fs::copy(voice, voices.join("en-Ada.pt")).unwrap();
}

fn say(home: &Path, model: &Path, more: &[&str]) -> Output {
    let model = model.to_str().unwrap();
    let fixed = [
        "say",
        "Hi.",
        "--model",
        model,
        "--device",
        "cpu",
        "--threads",
        "2",
    ];
    let options = ["--request-option", "steps=2", "--seed", "3"];
    cli(home, &[&fixed[..], &options, more].concat())
}

/// The samples that were written to `file`, whole frames.
fn samples(run: &Output, file: &Path) -> Vec<f32> {
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let sound = audiocpp::audio::Audio::open(file).unwrap();
    assert_eq!((sound.rate, sound.channels), (24_000, 1));
    assert!(
        sound.frames() > 0 && sound.frames().is_multiple_of(3200),
        "{}",
        sound.frames()
    );
    sound.samples
}

#[test]
fn say_writes_what_a_streaming_model_speaks() {
    let home = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    package(folder.path());
    let file = home.path().join("hi.wav");
    let out = file.to_str().unwrap();
    let spoken = say(
        home.path(),
        folder.path(),
        &["--out", out, "--voice", "en-Ada"],
    );
    assert!(samples(&spoken, &file).iter().any(|s| s.abs() > 0.01));
    let unknown = say(
        home.path(),
        folder.path(),
        &["--out", out, "--voice", "en-Eve"],
    );
    assert!(!unknown.status.success());
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("en-Ada"));
}

#[test]
fn a_converted_model_speaks_from_one_file() {
    let home = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    package(folder.path());
    let file = home.path().join("hi.wav");
    let out = file.to_str().unwrap();
    let wanted = samples(&say(home.path(), folder.path(), &["--out", out]), &file);
    for weight_type in ["f32", "q8_0"] {
        let model = folder.path().join(format!("{weight_type}.gguf"));
        let folder = folder.path().to_str().unwrap();
        let convert = ["convert", folder, "--out", model.to_str().unwrap()];
        let run = cli(
            home.path(),
            &[&convert[..], &["--weight-type", weight_type]].concat(),
        );
        assert!(
            run.status.success(),
            "{}",
            String::from_utf8_lossy(&run.stderr)
        );
        let found = samples(&say(home.path(), &model, &["--out", out]), &file);
        match weight_type {
            "f32" => assert_eq!(found, wanted),
            _ => assert_ne!(found, wanted),
        }
    }
    let size = |name: &str| fs::metadata(folder.path().join(name)).unwrap().len();
    assert!(size("q8_0.gguf") < size("f32.gguf") * 6 / 10);
    let missing = cli(
        home.path(),
        &["convert", "no-such-model", "--out", "x.gguf"],
    );
    assert!(!missing.status.success());
}
