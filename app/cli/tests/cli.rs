//! Runs of the real program: usage, exit codes, hints, lists.

mod program;

use std::{path::Path, process::Output};

use program::command;

fn cli(home: &Path, args: &[&str]) -> Output {
    let output = command(home).args(args).output();
    output.expect("the program starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The one line of an error that has exit code `code`.
fn error_line(args: &[&str], code: i32) -> String {
    let home = tempfile::tempdir().unwrap();
    let output = cli(home.path(), args);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
    assert!(output.stdout.is_empty(), "{args:?}");
    assert_eq!(text.lines().count(), 1, "{args:?}: {text}");
    assert!(text.starts_with("error: "), "{text}");
    assert_eq!(
        std::fs::read_dir(home.path()).unwrap().count(),
        0,
        "{args:?} wrote something"
    );
    text
}

#[test]
fn unknown_flags_and_commands_are_usage_errors_with_a_hint() {
    let home = tempfile::tempdir().unwrap();
    for (args, hint) in [
        (&["--bakend", "cpu"][..], "--backend"),
        (&["transcribe", "a.wav", "--formta", "srt"][..], "--format"),
        (&["transcribe", "a.wav", "--format", "srtt"][..], "srt"),
        (&["trascribe", "a.wav"][..], "transcribe"),
        (&["models", "lsit"][..], "list"),
        (&["say", "hi", "--voise", "x"][..], "--voice"),
        (&["say", "hi", "--format", "flca"][..], "flac"),
        (&["--task", "tts", "--txt", "hi"][..], "--text"),
        (&["separate", "a.wav", "--two-stem", "x"][..], "--two-stems"),
        (&["separate", "a.wav", "--clip-mode", "clip"][..], "clamp"),
        (
            &["--task", "sep", "--audio", "a.wav", "--outt", "x"][..],
            "--out",
        ),
    ] {
        let output = cli(home.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            stderr(&output).contains(&format!("'{hint}'")),
            "{}",
            stderr(&output)
        );
    }
    assert_eq!(cli(home.path(), &[]).status.code(), Some(2));
    assert_eq!(cli(home.path(), &["transcribe"]).status.code(), Some(2));
}

#[test]
fn flags_of_tasks_that_nobody_does_say_so() {
    let line = error_line(&["--task", "vdes", "--text", "hello"], 2);
    assert!(line.contains("voice design"), "{line}");
    let line = error_line(&["--task", "gen", "--audio", "a.wav"], 2);
    assert!(
        line.contains("no family in this build does sound generation"),
        "{line}"
    );
    let line = error_line(&["--task", "asrr", "--audio", "a.wav"], 2);
    assert!(line.contains("did you mean `asr`"), "{line}");
    let line = error_line(&["--audio", "a.wav"], 2);
    assert!(line.contains("--task"), "{line}");
    let line = error_line(&["--pipeline", "x.json"], 2);
    assert!(line.contains("one task at a time"), "{line}");
}

#[test]
fn loaders_are_listed_for_people_and_for_programs() {
    let home = tempfile::tempdir().unwrap();
    let output = cli(home.path(), &["--list-loaders", "--json"]);
    assert!(output.status.success());
    let list: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(list["schema_version"], 1);
    let known = audiocpp_models::registry();
    let names: Vec<&str> = list["families"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|f| f["family"].as_str())
        .collect();
    let wanted: Vec<&str> = known.families().map(|family| family.info().name).collect();
    assert_eq!(names, wanted);
    let output = cli(home.path(), &["--list-loaders"]);
    assert!(stdout(&output).starts_with("FAMILY"));
    assert_eq!(cli(home.path(), &["--json"]).status.code(), Some(2));
}

#[test]
fn the_version_names_the_commit() {
    let home = tempfile::tempdir().unwrap();
    let output = cli(home.path(), &["--version"]);
    let wanted = format!("audiocpp_cli {}", audiocpp::version());
    assert!(stdout(&output).starts_with(&wanted), "{}", stdout(&output));
}

#[test]
fn models_are_listed_shown_and_missed() {
    let home = tempfile::tempdir().unwrap();
    let output = cli(home.path(), &["models", "list", "--json"]);
    let list: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let models = list["models"].as_array().unwrap();
    let base = models
        .iter()
        .find(|model| model["id"] == "whisper-base")
        .unwrap();
    assert_eq!(base["installed"], false);
    assert_eq!(base["family"], "whisper");
    assert!(base["size"].as_u64().unwrap() > 140_000_000);
    let output = cli(home.path(), &["models", "list"]);
    let table = stdout(&output).to_string();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    let row = |id: &str| {
        rows.iter()
            .find(|row| row[0] == id)
            .unwrap_or_else(|| panic!("{table}"))
    };
    assert_eq!(row("whisper-tiny.en")[1..4], ["whisper", "asr", "78"]);
    assert_eq!(
        row("vibevoice-1.5b")[3..5],
        ["by", "hand"],
        "nothing to pull"
    );
    let output = cli(home.path(), &["models", "show", "whisper-base"]);
    assert!(
        stdout(&output).contains("models pull whisper-base"),
        "{}",
        stdout(&output)
    );

    let line = error_line(&["models", "show", "whisper-bse"], 2);
    assert!(line.contains("did you mean `whisper-base`"), "{line}");
    let line = error_line(&["models", "path", "whisper-base"], 1);
    assert!(line.contains("models pull whisper-base"), "{line}");
    let line = error_line(&["models", "pull", "whisper-base"], 1);
    assert!(line.contains("not installed"), "{line}");
    let line = error_line(&["models", "rm", "whisper-base"], 1);
    assert!(line.contains("not installed: whisper-base"), "{line}");
    let line = error_line(&["models", "rm", "../x"], 2);
    assert!(line.contains("there is no model"), "{line}");
    let output = cli(home.path(), &["models", "path"]);
    assert_eq!(
        Path::new(stdout(&output).trim()),
        home.path().join("models")
    );
}

#[test]
fn documented_commands_can_be_checked_without_running_them() {
    let home = tempfile::tempdir().unwrap();
    let good = cli(
        home.path(),
        &["--parse-only", "transcribe", "none.mp3", "-f", "srt"],
    );
    assert!(
        good.status.success() && good.stdout.is_empty(),
        "{}",
        stderr(&good)
    );
    let bad = cli(
        home.path(),
        &["--parse-only", "transcribe", "none.mp3", "--fast"],
    );
    assert_eq!(bad.status.code(), Some(2));
}

/// A RIFF file of silence with this rate and channel count.
fn wav(rate: u32, channels: u16) -> Vec<u8> {
    let mut bytes = b"RIFF\xec\0\0\0WAVEfmt \x10\0\0\0\x01\0".to_vec();
    bytes.extend(channels.to_le_bytes());
    bytes.extend(rate.to_le_bytes());
    bytes.extend((rate * 2).to_le_bytes());
    bytes.extend(b"\x02\0\x10\0data\xc8\0\0\0");
    bytes.extend([0; 200]);
    bytes
}

#[test]
fn bad_recordings_are_one_line_and_exit_code_1() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.txt");
    for (name, bytes, wanted) in [
        ("empty.wav", Vec::new(), "empty file"),
        (
            "page.mp3",
            b"<!DOCTYPE html><html></html>".to_vec(),
            "not audio",
        ),
        ("rate.wav", wav(0, 1), "rate"),
        ("channels.wav", wav(8000, 0), "channels"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let path = path.to_str().unwrap();
        // The model is not installed; a bad recording is found before it is missed.
        let line = error_line(&["transcribe", path, "-o", out.to_str().unwrap()], 1);
        assert!(line.contains(name) && line.contains(wanted), "{line}");
        assert!(!out.exists(), "{name}");
    }
    let line = error_line(&["transcribe", "no-such.wav"], 1);
    assert!(line.contains("no-such.wav: no such file"), "{line}");
}

#[test]
fn wrong_models_are_one_line_and_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), "x").unwrap();
    let path = folder.path().to_str().unwrap();
    let line = error_line(&["transcribe", "a.wav", "--model", path], 2);
    assert!(line.contains("the folder has notes.txt"), "{line}");
    let line = error_line(&["transcribe", "a.wav", "--model", "no/such/folder"], 2);
    assert!(
        line.contains("no model file or folder at no/such/folder"),
        "{line}"
    );
    let line = error_line(&["transcribe", "a.wav", "--model", "whisper-tiny"], 2);
    assert!(line.contains("did you mean `whisper-tiny.en`"), "{line}");
    let line = error_line(&["transcribe", "a.wav", "--family", "wisper"], 2);
    assert!(line.contains("did you mean `whisper`"), "{line}");
    let line = error_line(
        &["transcribe", "a.wav", "--request-option", "best_off=2"],
        2,
    );
    assert!(line.contains("did you mean `best_of`"), "{line}");
    let line = error_line(&["transcribe", "a.wav", "--backend", "cpuu"], 2);
    assert!(line.contains("cpu"), "{line}");
}
