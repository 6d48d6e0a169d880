//! Runs of the real program on where there is speech, with downloaded models.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use audiocpp_testing::models;
use serde_json::Value;

fn speech(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/speech");
    root.join(name).to_str().expect("a plain path").to_owned()
}

fn run(model: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_audiocpp_cli"));
    command.args(args).arg("--model").arg(model);
    let output = command.args(["--device", "cpu", "--threads", "1", "--offline"]);
    output.output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn read(path: &Path) -> Value {
    let json = fs::read(path).expect("a file");
    serde_json::from_slice(&json).expect("JSON")
}

#[test]
fn both_forms_find_the_same_speech() {
    let Some(model) = models::folder("silero-vad") else {
        return;
    };
    let clip = speech("jfk.flac");
    let friendly = run(&model, &["vad", &clip]);
    assert!(friendly.status.success(), "{}", text(&friendly.stderr));
    assert!(friendly.stderr.is_empty(), "{}", text(&friendly.stderr));
    let found = text(&friendly.stdout);
    // What silero-vad itself says, to a frame.
    let wanted = [(0.32, 2.27), (3.27, 4.45), (5.38, 7.68), (8.16, 10.62)];
    assert_eq!(found.lines().count(), wanted.len(), "{found}");
    for (line, (start, end)) in found.lines().zip(wanted) {
        let fields: Vec<&str> = line.split('\t').collect();
        let at = |i: usize| fields[i].parse::<f64>().expect("seconds");
        assert!((at(0) - start).abs() < 0.07, "{line}, wanted {start}");
        assert!((at(1) - end).abs() < 0.07, "{line}, wanted {end}");
        assert_eq!(fields[2], "speech");
    }

    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name).to_str().expect("plain").to_owned();
    let (segments, chunks) = (place("s.json"), place("c.json"));
    let flags = run(
        &model,
        &[
            "--task",
            "vad",
            "--audio",
            &clip,
            "--segments-out",
            &segments,
            "--vad-chunks-out",
            &chunks,
            "--vad-chunk-max-seconds",
            "6",
        ],
    );
    assert!(flags.status.success(), "{}", text(&flags.stderr));
    assert!(flags.stdout.is_empty(), "{}", text(&flags.stdout));
    let segments = read(Path::new(&segments));
    assert_eq!(segments.as_array().expect("a list").len(), 4);
    let chunks = read(Path::new(&chunks));
    let chunks = chunks.as_array().expect("a list");
    assert!(!chunks.is_empty() && chunks.len() < 4, "{chunks:?}");
    for chunk in chunks {
        let length = chunk["end"].as_f64().unwrap() - chunk["start"].as_f64().unwrap();
        assert!(length <= 6.0, "{chunk}");
    }
}

#[test]
fn batches_have_probabilities_and_broken_files_do_not_stop_them() {
    let Some(model) = models::folder("silero-vad") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let broken = folder.path().join("broken.wav");
    fs::write(&broken, "no sound").expect("a file");
    let results: PathBuf = folder.path().join("results");
    let output = run(
        &model,
        &[
            "vad",
            &speech("jfk.flac"),
            broken.to_str().expect("plain"),
            &speech("sense-and-sensibility-0880.flac"),
            "--format",
            "json",
            "--probabilities",
            "--out",
            results.to_str().expect("plain"),
        ],
    );
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains("broken.wav") && said.contains("2 done, 1 failed"),
        "{said}"
    );
    let jfk = read(&results.join("jfk.json"));
    assert_eq!(jfk["probabilities"].as_array().expect("a list").len(), 344);
    assert!((jfk["duration"].as_f64().unwrap() - 11.0).abs() < 1e-6);
    assert!(!results.join("broken.json").exists());
}

#[test]
fn recognition_of_speech_alone_keeps_words_and_times() {
    let Some(model) = models::folder("whisper-tiny.en") else {
        return;
    };
    let Some(detector) = models::folder("silero-vad") else {
        return;
    };
    let clip = speech("jfk.flac");
    let detector = detector.to_str().expect("plain");
    let args = ["transcribe", &clip, "--format", "verbose_json", "--words"];
    let plain = run(&model, &args);
    let speech = run(
        &model,
        &[&args[..], &["--vad", "--vad-model", detector]].concat(),
    );
    assert!(speech.status.success(), "{}", text(&speech.stderr));
    let parse =
        |output: &Output| -> Value { serde_json::from_slice(&output.stdout).expect("JSON") };
    let (plain, speech) = (parse(&plain), parse(&speech));
    let words = |value: &Value| -> Vec<String> {
        let text = value["text"].as_str().expect("text").to_lowercase();
        let words = text.split(|c: char| !c.is_alphanumeric());
        words.filter(|w| !w.is_empty()).map(str::to_owned).collect()
    };
    assert_eq!(words(&plain), words(&speech));
    assert_eq!(speech["duration"], 11.0);
    let first = speech["segments"][0]["start"].as_f64().unwrap();
    assert!((0.2..0.6).contains(&first), "{first}");

    let useless = run(&model, &["transcribe", &clip, "--vad-threshold", "0.4"]);
    assert_eq!(useless.status.code(), Some(2));
    assert!(text(&useless.stderr).contains("without --vad"));
}
