//! Builds and runs the hipBLASLt route's tests on fake libraries: ROCm 7, ROCm 6.4 with its old
//! type numbers, and a hipBLASLt that takes pointer-array batches.
#![cfg(all(unix, not(feature = "static")))]

use std::{path::Path, process::Command};

#[test]
fn the_route_decides_counts_and_frees_as_documented() {
    let build = Path::new(ggml_sys::BUILD_LIB_DIR).parent().unwrap();
    let made = Command::new("cmake")
        .arg("--build")
        .arg(build)
        .args(["--target", "blaslt_tests"])
        .output()
        .expect("cmake made this build");
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stdout)
    );
    for (name, library) in [
        ("blaslt_rocm_7", "hipBLASLt 1.2.0"),
        ("blaslt_rocm_6_4", "hipBLASLt 1.2.0"),
        ("blaslt_pointer_arrays", "hipBLASLt 1.3.0"),
    ] {
        let output = Command::new(build.join("tests").join(name))
            .env_remove("AUDIOCPP_BLASLT")
            .env_remove("AUDIOCPP_BLASLT_F32")
            .env_remove("AUDIOCPP_BLASLT_POINTER_ARRAY")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{name}: {output:?}");
        assert_eq!(said.trim(), format!("{library}: 0 failures"), "{name}");
    }
}
