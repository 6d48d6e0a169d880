//! Records the commit for `--version` and hands ggml's library folder on to the programs.
use std::{env, process::Command};

fn main() {
    let commit = Command::new("git")
        .args(["rev-parse", "--short=12", "HEAD"])
        .output()
        .ok()
        .filter(|o| o.status.success())
        .map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
        .unwrap_or_else(|| "unknown".into());
    println!("cargo:rustc-env=AUDIOCPP_COMMIT={commit}");
    println!("cargo:rerun-if-changed=.git/HEAD");
    println!("cargo:rerun-if-changed=.git/index");
    // Cargo passes `links` metadata down one level only, so the programs get it through us.
    if let Some(lib) = env::var_os("DEP_GGML_LIB") {
        println!("cargo:ggml_lib={}", lib.to_string_lossy());
    }
}
