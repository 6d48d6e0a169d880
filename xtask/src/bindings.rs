//! `cargo xtask bindings`: external/ggml/src/bindings.rs from ggml's headers, by bindgen.

use crate::sh;
use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Options of `cargo xtask bindings`.
#[derive(Args)]
pub struct Options {
    /// Change nothing; fail where the file differs from what the headers give.
    #[arg(long)]
    check: bool,
}

/// The bindgen release whose output is committed; another one formats differently.
const BINDGEN: &str = "0.72.1";
/// The crate that carries ggml's source.
const CARRIER: &str = "llama-cpp-sys-2";

/// What bindgen is asked for. Everything that lives in a CPU backend plugin is left out: with
/// plugins it is reached through the backend registry, not by linking.
const ARGS: &[&str] = &[
    "--formatter=none",
    "--no-doc-comments",
    "--use-core",
    "--merge-extern-blocks",
    "--no-prepend-enum-name",
    "--default-enum-style=consts",
    "--allowlist-item",
    "(ggml|gguf|GGML|GGUF)_.*",
    "--blocklist-function",
    "ggml_backend_cpu_.*|ggml_backend_is_cpu|ggml_cpu_.*|ggml_graph_compute.*|ggml_threadpool_.*\
     |ggml_graph_plan|ggml_numa_.*|ggml_is_numa|ggml_(set|get|new)_[if]32.*|ggml_get_type_traits_cpu",
];

/// Writes the bindings, or with `--check` compares them with the committed file.
pub fn run(options: &Options) -> Result<()> {
    let bindgen = bindgen()?;
    let include = ggml_include()?;
    let crate_dir = sh::root().join("external/ggml");
    let file = crate_dir.join("src/bindings.rs");
    let mut command = Command::new(bindgen);
    command
        .arg("wrapper.h")
        .args(ARGS)
        .arg("--")
        .arg("-I")
        .arg(&include)
        .current_dir(&crate_dir);
    let raw = sh::capture(&mut command)
        .context("bindgen needs libclang: install it (Debian: apt-get install libclang-dev)")?;
    let fresh = rustfmt(&raw)?;
    if !options.check {
        fs::write(&file, fresh)?;
        println!("wrote external/ggml/src/bindings.rs");
        return Ok(());
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    if let Some((line, old, new)) = first_difference(&committed, &fresh) {
        bail!(
            "external/ggml/src/bindings.rs differs from the headers at line {line}:\n\
             committed: {old}\nheaders:   {new}\nrun `cargo xtask bindings`"
        );
    }
    println!("external/ggml/src/bindings.rs matches the headers");
    Ok(())
}

/// The text as `cargo fmt` leaves it.
fn rustfmt(code: &str) -> Result<String> {
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start rustfmt; add it with `rustup component add rustfmt`")?;
    let mut input = child.stdin.take().expect("stdin is piped");
    let output = std::thread::scope(|scope| {
        // Written beside the reading, so that neither pipe can fill up and stall both.
        let writer = scope.spawn(move || input.write_all(code.as_bytes()));
        let output = child.wait_with_output();
        writer
            .join()
            .expect("the writer does not panic")
            .and(output)
    })?;
    if !output.status.success() {
        bail!("rustfmt ended with {}", output.status);
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// bindgen of the wanted version: the one on the path, else one built into the target folder.
fn bindgen() -> Result<PathBuf> {
    let wanted = format!("bindgen {BINDGEN}");
    let is_wanted = |program: &Path| {
        let output = Command::new(program).arg("--version").output();
        output.is_ok_and(|o| String::from_utf8_lossy(&o.stdout).trim() == wanted)
    };
    let own = sh::target_dir().join("tools");
    let own_program = own
        .join("bin")
        .join(format!("bindgen{}", std::env::consts::EXE_SUFFIX));
    for program in [PathBuf::from("bindgen"), own_program.clone()] {
        if is_wanted(&program) {
            return Ok(program);
        }
    }
    let mut install = sh::cargo([
        "install",
        "--locked",
        "bindgen-cli",
        "--version",
        BINDGEN,
        "--root",
    ]);
    sh::run(install.arg(&own))?;
    Ok(own_program)
}

/// ggml's include folder: in `GGML_SOURCE_DIR`, else in the carrier crate.
fn ggml_include() -> Result<PathBuf> {
    let source = match std::env::var_os("GGML_SOURCE_DIR") {
        Some(dir) => PathBuf::from(dir),
        None => {
            let json = sh::capture(&mut sh::cargo([
                "metadata",
                "--locked",
                "--format-version=1",
            ]))?;
            carrier(&serde_json::from_str(&json)?)?.join("llama.cpp/ggml")
        }
    };
    Ok(source.join("include"))
}

fn carrier(metadata: &Value) -> Result<PathBuf> {
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata lists no packages")?;
    let manifest = packages
        .iter()
        .find(|package| package["name"] == CARRIER)
        .and_then(|package| package["manifest_path"].as_str())
        .with_context(|| format!("{CARRIER} is not in the dependency graph"))?;
    Ok(Path::new(manifest)
        .parent()
        .context("a manifest lies in a folder")?
        .to_owned())
}

/// Number (from 1) and text of the first line that differs.
fn first_difference<'a>(old: &'a str, new: &'a str) -> Option<(usize, &'a str, &'a str)> {
    let (mut old, mut new) = (old.lines(), new.lines());
    for number in 1.. {
        match (old.next(), new.next()) {
            (None, None) => return None,
            (a, b) if a == b => {}
            (a, b) => return Some((number, a.unwrap_or("(end)"), b.unwrap_or("(end)"))),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_found_also_at_the_end() {
        assert_eq!(first_difference("a\nb", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb", "a\nc"), Some((2, "b", "c")));
        assert_eq!(first_difference("a", "a\nb"), Some((2, "(end)", "b")));
    }

    #[test]
    fn code_is_formatted_as_cargo_fmt_does() {
        assert_eq!(rustfmt("pub   fn f ( ) { }").unwrap(), "pub fn f() {}\n");
    }

    #[test]
    fn the_carrier_crate_is_found_by_name() {
        let metadata = serde_json::json!({"packages": [
            {"name": "other", "manifest_path": "/x/other/Cargo.toml"},
            {"name": CARRIER, "manifest_path": "/x/carrier/Cargo.toml"}]});
        assert_eq!(carrier(&metadata).unwrap(), Path::new("/x/carrier"));
        let none = serde_json::json!({"packages": []});
        assert!(carrier(&none).unwrap_err().to_string().contains(CARRIER));
    }
}
