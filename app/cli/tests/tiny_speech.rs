//! The real program speaks with a tiny package of formula weights.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use audiocpp_testing::package;

fn cli(home: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_audiocpp_cli"))
        .args(args)
        .env("AUDIOCPP_HOME", home)
        .env("AUDIOCPP_OFFLINE", "1")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

#[test]
fn say_writes_what_a_streaming_model_speaks() {
    let home = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    package::write("vibevoice/realtime", folder.path(), |_, _| ());
    let voices = folder.path().join("voices");
    fs::create_dir(&voices).unwrap();
    let voice = package::data("vibevoice/realtime/voice.pt");
    fs::copy(voice, voices.join("en-Ada.pt")).unwrap();
    let (model, out) = (folder.path().to_str().unwrap(), home.path().join("hi.wav"));
    let say = |more: &[&str]| {
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
        cli(home.path(), &[&fixed[..], &options, more].concat())
    };
    let spoken = say(&["--out", out.to_str().unwrap(), "--voice", "en-Ada"]);
    assert!(
        spoken.status.success(),
        "{}",
        String::from_utf8_lossy(&spoken.stderr)
    );
    let sound = audiocpp::audio::Audio::open(&out).unwrap();
    assert_eq!((sound.rate, sound.channels), (24_000, 1));
    assert!(
        sound.frames() > 0 && sound.frames().is_multiple_of(3200),
        "{}",
        sound.frames()
    );
    assert!(sound.samples.iter().any(|s| s.abs() > 0.01));
    let unknown = say(&["--out", out.to_str().unwrap(), "--voice", "en-Eve"]);
    assert!(!unknown.status.success());
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("en-Ada"));
}
