//! Runs of the real program on configuration files.

use std::process::{Command, Output};

fn server(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_audiocpp_server"))
        .args(args)
        .output()
        .expect("the program starts")
}

fn check(text: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server.json");
    std::fs::write(&file, text).unwrap();
    let output = server(&["--config", file.to_str().unwrap(), "--check-config"]);
    assert!(output.status.success() || output.stdout.is_empty());
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn faults_are_named_with_their_path_and_exit_code_2() {
    let (code, line) = check(r#"{"models": [{"id": "a", "pth": "m", "family": "whisper"}]}"#);
    assert_eq!(code, Some(2));
    assert!(
        line.starts_with("error: ") && line.lines().count() == 1,
        "{line}"
    );
    assert!(
        line.contains("models[0].pth: unknown key `pth`, did you mean `path`?"),
        "{line}"
    );

    let (code, lines) = check(
        r#"{"models": [{"id": "a", "path": "m", "family": "no_such_family", "task": "asrr"}]}"#,
    );
    assert_eq!(code, Some(2));
    assert!(
        lines.contains("models[0].family: there is no family `no_such_family`"),
        "{lines}"
    );
    assert!(
        lines.contains("models[0].task: there is no task `asrr`"),
        "{lines}"
    );

    let missing = server(&["--config", "no/such.json", "--check-config"]);
    assert_eq!(missing.status.code(), Some(2));
}

#[test]
fn the_version_and_unknown_flags() {
    let output = server(&["--version"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.starts_with(&format!("audiocpp_server {}", audiocpp::version())),
        "{text}"
    );
    let output = server(&["--chek-config"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--check-config"));
}

#[test]
fn without_a_file_the_installed_models_are_served() {
    let empty = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_audiocpp_server"))
        .args(["--check-config"])
        .env("AUDIOCPP_HOME", empty.path())
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("audiocpp_cli models pull"), "{text}");
}

#[test]
fn the_schema_is_printed() {
    let output = server(&["--print-schema"]);
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(schema["title"], "Config");
}
