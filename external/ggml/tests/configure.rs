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
