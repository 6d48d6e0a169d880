//! Runs of the real program with a downloaded model.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use audiocpp_testing::models;

const MODEL: &str = "whisper-tiny.en";

fn speech(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/speech");
    root.join(name)
}

fn command(model: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_audiocpp_cli"));
    command.args(args).arg("--model").arg(model).args([
        "--device",
        "cpu",
        "--beam-size",
        "1",
        "--offline",
    ]);
    command
}

fn run(model: &Path, args: &[&str]) -> Output {
    command(model, args).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn both_forms_and_standard_input_write_the_same_words() {
    let Some(model) = models::folder(MODEL) else {
        return;
    };
    let clip = speech("jfk.flac");
    let path = clip.to_str().expect("a plain path");
    let friendly = run(&model, &["transcribe", path]);
    let said = text(&friendly.stdout);
    assert!(friendly.status.success(), "{}", text(&friendly.stderr));
    assert!(
        said.contains("ask not what your country can do for you"),
        "{said}"
    );
    assert!(friendly.stderr.is_empty(), "{}", text(&friendly.stderr));

    let flags = run(
        &model,
        &[
            "--task",
            "asr",
            "--family",
            "whisper",
            "--audio",
            path,
            "--threads",
            "2",
        ],
    );
    assert_eq!(text(&flags.stdout), said);

    let mut piped = command(&model, &["transcribe", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = piped.stdin.take().expect("a pipe");
    stdin
        .write_all(&fs::read(&clip).expect("the clip"))
        .expect("the program reads");
    drop(stdin);
    assert_eq!(
        text(&piped.wait_with_output().expect("it ends").stdout),
        said
    );
}

#[test]
fn a_batch_writes_what_it_can_and_says_what_it_cannot() {
    let Some(model) = models::folder(MODEL) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name);
    fs::copy(speech("sense-and-sensibility-0880.flac"), place("a.flac")).expect("a copy");
    let cut = fs::read(speech("jfk.flac")).expect("the clip");
    fs::write(place("cut.flac"), &cut[..cut.len() / 2]).expect("half the clip");
    fs::write(place("page.mp3"), "<html><body>404</body></html>").expect("a page");
    let results = place("results");
    let output = run(
        &model,
        &[
            "transcribe",
            folder.path().to_str().expect("a plain path"),
            "--format",
            "verbose_json",
            "--words",
            "--out",
            results.to_str().expect("a plain path"),
        ],
    );
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("page.mp3") && said.contains("not audio"),
        "{said}"
    );
    assert!(
        said.lines()
            .any(|line| line.starts_with("warning: ") && line.contains("cut.flac")),
        "{said}"
    );
    assert!(said.contains("2 done, 1 failed"), "{said}");
    assert!(!results.join("page.json").exists());
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(results.join("a.json")).expect("a result")).expect("JSON");
    let words = json["words"].as_array().expect("words");
    assert!(words.len() > 5, "{json:#}");
    let (start, end) = (&words[0]["start"], &words[words.len() - 1]["end"]);
    assert!(start.as_f64() < end.as_f64() && end.as_f64() <= json["duration"].as_f64());
}

#[test]
fn a_bench_measures_in_fresh_processes() {
    let Some(model) = models::folder(MODEL) else {
        return;
    };
    let clip = speech("sense-and-sensibility-0880.flac");
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.md");
    let mut bench = Command::new(env!("CARGO_BIN_EXE_audiocpp_cli"));
    let output = bench
        .arg("bench")
        .arg(&clip)
        .arg("--model")
        .arg(&model)
        .args(["--devices", "cpu,vulkan:99", "--weight-types", "f16,q8_0"])
        .args(["--rounds", "2", "--warmup", "1", "--reps", "3", "--json"])
        .arg("--markdown-out")
        .arg(&page)
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let figures = report["figures"].as_array().unwrap();
    assert_eq!(figures.len(), 2);
    assert_eq!(report["not_run"].as_array().unwrap().len(), 2);
    let mut processes = Vec::new();
    for setting in figures {
        assert_eq!(setting["runs"], 6);
        assert_eq!(setting["results_agree"], true);
        let number = |name: &str| setting[name].as_f64().unwrap();
        assert!(number("p50") > 0.0 && number("worst_p90") > 0.0);
        assert!(number("first_p50") <= number("p50"));
        let audio = report["audio_seconds"].as_f64().unwrap();
        assert!((number("real_time_factor") - number("p50") / audio).abs() < 1e-9);
        for stage in ["read", "features", "encode", "decode", "rest"] {
            assert!(setting["stage_means"][stage].as_f64().is_some(), "{stage}");
        }
        assert!(setting["peak_memory"].is_null() != cfg!(target_os = "linux"));
        let rounds = setting["rounds"].as_array().unwrap();
        processes.extend(rounds.iter().map(|r| r["process"].as_u64().unwrap()));
    }
    assert_eq!(processes.len(), 4);
    processes.sort_unstable();
    processes.dedup();
    assert_eq!(processes.len(), 4, "each round has a process of its own");
    let page = fs::read_to_string(&page).unwrap();
    assert_eq!(page.matches("| cpu f16 |").count(), 2, "{page}");
    assert!(page.contains("| vulkan:99 q8_0 |"), "{page}");
}
