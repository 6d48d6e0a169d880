//! What a configuration of ggml's build may not ask for is an error that says so.

use std::process::Command;

/// Runs the checks with these definitions; what CMake said, and whether it went on.
fn check(definitions: &[&str]) -> (bool, String) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/cmake/checks.cmake");
    let output = Command::new("cmake")
        .args(definitions.iter().map(|text| format!("-D{text}")))
        .args(["-P", script])
        .output()
        .expect("cmake made this build");
    // CMake breaks its messages into lines.
    let said = String::from_utf8_lossy(&output.stderr);
    let words: Vec<&str> = said.split_whitespace().collect();
    (output.status.success(), words.join(" "))
}

#[test]
fn good_configurations_pass() {
    for definitions in [
        &[][..],
        &["GGML_CUDA=ON"],
        &[
            "GGML_HIP=ON",
            "GGML_BACKEND_DL=ON",
            "GPU_TARGETS=gfx1100;gfx90a:xnack-",
        ],
        &["GGML_CUDA=OFF", "GGML_HIP=OFF"],
    ] {
        let (passed, said) = check(definitions);
        assert!(passed, "{definitions:?}: {said}");
    }
}

#[test]
fn bad_configurations_are_refused_by_name() {
    let hip = ["GGML_HIP=ON", "GGML_BACKEND_DL=ON"];
    for (definitions, wanted) in [
        (vec!["GGML_CUDA=ON", hip[0]], "make two packs"),
        (vec![hip[0], hip[1]], "GGML_HIP needs GPU_TARGETS"),
        (
            vec![hip[0], hip[1], "GPU_TARGETS=gfx1100;gfx1999"],
            "unknown GPU target gfx1999",
        ),
        (vec![hip[0], "GPU_TARGETS=gfx1100"], "as a plugin only"),
        (vec!["GPU_TARGETS=gfx1100"], "without GGML_HIP"),
        (
            vec!["GGML_HIPBLAS=ON"],
            "GGML_HIPBLAS is retired; use GGML_HIP=ON",
        ),
        (vec!["GGML_CUBLAS=OFF"], "GGML_CUBLAS is retired"),
        (vec!["ENGINE_ENABLE_HIP=ON"], "ENGINE_ENABLE_HIP is retired"),
    ] {
        let (passed, said) = check(&definitions);
        assert!(!passed && said.contains(wanted), "{definitions:?}: {said}");
    }
}

/// A name that ggml itself defines is in the cache after the first configuration; to call it
/// retired would refuse the second.
#[test]
fn no_retired_name_is_an_option_of_ggml() {
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    let checks = read(concat!(env!("CARGO_MANIFEST_DIR"), "/cmake/checks.cmake"));
    let options = read(concat!(env!("GGML_SOURCE_INCLUDE"), "/../CMakeLists.txt"));
    let retired: Vec<&str> = checks
        .split('"')
        .filter_map(|text| text.split_once(':'))
        .map(|(name, _)| name)
        .filter(|name| {
            name.chars()
                .all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit())
        })
        .collect();
    assert!(retired.len() > 10, "{retired:?}");
    for name in retired {
        let defined = options.contains(&format!("option({name} "))
            || options.contains(&format!("set({name} "));
        assert!(!defined, "{name} is an option of ggml");
    }
}
