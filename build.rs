//! Records the commit for `--version` and hands ggml's library folder on to the programs.
use std::{env, path::Path, process::Command};

fn main() {
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".into());
    println!("cargo:rustc-env=AUDIOCPP_COMMIT={commit}");
    println!("cargo:rerun-if-changed=build.rs");
    // Grows with every commit and checkout; a path that does not exist would rebuild every time.
    if let Some(log) =
        git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|path| Path::new(path).exists())
    {
        println!("cargo:rerun-if-changed={log}");
    }
    // Cargo passes `links` metadata down one level only, so the programs get it through us.
    if let Some(lib) = env::var_os("DEP_GGML_LIB") {
        println!("cargo:ggml_lib={}", lib.to_string_lossy());
    }
}

/// What git prints, in one line; none without git or outside a checkout.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
