//! What lies in `packaging/` agrees with the program and with itself.

use std::{fs, path::PathBuf, process::Command};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

fn read(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap()
}

/// Lines of a Dockerfile with those that go on joined, without comments.
fn instructions(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let joined = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let instructions = joined.lines().filter(|line| !line.trim().is_empty());
    instructions.map(str::to_owned).collect()
}

#[test]
fn the_image_copies_what_is_there_and_does_not_run_as_root() {
    let text = read("Dockerfile");
    let all = instructions(&text);
    let starts = |word: &str| all.iter().filter(|line| line.starts_with(word)).count();
    assert_eq!(starts("FROM "), 2);
    let last_stage = text.rfind("\nFROM debian:bookworm-slim").unwrap();
    assert!(text[last_stage..].contains("\nUSER audiocpp\n"));
    for line in &all {
        let mut words = line.split_whitespace();
        let known = [
            "FROM",
            "RUN",
            "COPY",
            "WORKDIR",
            "ENV",
            "VOLUME",
            "USER",
            "EXPOSE",
            "HEALTHCHECK",
            "STOPSIGNAL",
            "ENTRYPOINT",
            "CMD",
        ];
        let word = words.next().unwrap_or_default();
        assert!(known.contains(&word), "{line}");
        if word == "COPY" && !line.contains("--from") {
            let from = words.next().unwrap_or_default();
            assert!(folder().join("..").join(from).exists(), "{line}");
        }
        if matches!(word, "ENTRYPOINT" | "CMD") {
            let list = &line[word.len()..];
            serde_json::from_str::<Vec<String>>(list.trim()).expect(line);
        }
        assert!(!line.contains("apt-get install") || line.contains("--no-install-recommends"));
    }
}

#[test]
fn ports_agree() {
    let config: serde_json::Value = serde_json::from_str(&read("server.json")).unwrap();
    let (http, wyoming) = (&config["port"], &config["wyoming_port"]);
    assert!(read("Dockerfile").contains(&format!("EXPOSE {http} {wyoming}\n")));
    for port in [http, wyoming] {
        let line = format!("- \"127.0.0.1:{port}:{port}\"");
        assert!(read("compose.yaml").contains(&line), "{line}");
    }
}

#[test]
fn the_configuration_names_models_that_can_be_fetched() {
    let config: serde_json::Value = serde_json::from_str(&read("server.json")).unwrap();
    let registry = audiocpp_models::registry();
    let catalogue = audiocpp::engine::package::Catalogue::built_in().unwrap();
    for model in config["models"].as_array().unwrap() {
        let (family, path) = (
            model["family"].as_str().unwrap(),
            model["path"].as_str().unwrap(),
        );
        assert!(registry.family(family).is_ok(), "{family}");
        assert!(catalogue.find(path).is_some(), "{path}");
    }
}

#[test]
fn the_unit_is_understood_by_systemd_where_there_is_one() {
    let text = read("audiocpp.service");
    assert!(text.contains("OOMPolicy=continue") && text.contains("DynamicUser=yes"));
    // The program is not installed where tests run.
    let copy = tempfile::Builder::new()
        .prefix("audiocpp-")
        .suffix(".service")
        .tempfile()
        .unwrap();
    fs::write(
        copy.path(),
        text.replace("/usr/bin/audiocpp_server", "/bin/true"),
    )
    .unwrap();
    let verify = Command::new("systemd-analyze")
        .arg("verify")
        .arg(copy.path())
        .output();
    let Ok(output) = verify else {
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && !said.contains("Unknown"),
        "{said}"
    );
}
