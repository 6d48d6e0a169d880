//! The real program speaking with Kokoro.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use audiocpp_testing::models;

fn run(model: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_audiocpp_cli"));
    command.args(args).arg("--model").arg(model);
    let command = command.args(["--device", "cpu", "--threads", "2"]);
    command.output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn voices_are_listed_chosen_and_mixed() {
    let Some(model) = models::folder("kokoro") else {
        return;
    };
    let list = run(&model, &["voices"]);
    assert!(list.status.success(), "{}", text(&list.stderr));
    let list = text(&list.stdout);
    for voice in ["jf_alpha", "jf_gongitsune", "jf_nezumi", "jf_tebukuro"] {
        let line = list.lines().find(|line| line.starts_with(voice));
        assert!(line.is_some_and(|line| line.contains("female")), "{list}");
    }
    let man = list.lines().find(|line| line.starts_with("jm_kumo"));
    assert!(
        man.is_some_and(|line| line.contains(" male")) && list.lines().count() == 6,
        "{list}"
    );

    let folder = tempfile::tempdir().unwrap();
    let say = |name: &str, args: &[&str]| {
        let path = folder.path().join(name);
        let out = path.to_str().expect("a plain path");
        let all = [&["say", "Good morning.", "--seed", "3", "-o", out], args].concat();
        let said = run(&model, &all);
        assert!(said.status.success(), "{}", text(&said.stderr));
        let wav = fs::read(path).unwrap();
        assert_eq!(
            u32::from_le_bytes([wav[24], wav[25], wav[26], wav[27]]),
            24_000
        );
        wav
    };
    let plain = say("plain.wav", &["--voice", "jf_alpha"]);
    let mixed = say("mixed.wav", &["--voice", "jf_alpha(2)+jm_kumo(1)"]);
    assert_ne!(plain, mixed);
    let fast = say("fast.wav", &["--voice", "jf_alpha", "--speed", "2"]);
    let ratio = fast.len() as f64 / plain.len() as f64;
    assert!((0.35..0.8).contains(&ratio), "{ratio}");

    let unknown = run(&model, &["say", "hi", "--voice", "jf_alfa"]);
    assert!(!unknown.status.success());
    let error = text(&unknown.stderr);
    assert!(
        error.contains("jf_alfa") && error.contains("jf_alpha"),
        "{error}"
    );
}
