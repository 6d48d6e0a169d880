//! `cargo xtask test`: every check, in steps that are named and timed; stops at the first failure.

use crate::{docs, pack, setup, sh};
use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Deserialize;
use std::{collections::BTreeMap, process::Command, time::Instant};

/// Options of `cargo xtask test`.
#[derive(Args)]
pub struct Options {
    /// Skip the tests of downloaded models.
    #[arg(long)]
    quick: bool,
    /// Make the ROCm root that the step `hip` compiles in, where it is missing (Debian).
    #[arg(long)]
    hip: bool,
    /// Run only this step.
    #[arg(long, value_name = "STEP", value_parser = STEPS.map(|step| step.name))]
    only: Option<String>,
}

/// Models of the catalogue that some test needs.
const TEST_MODELS: &[&str] = &[
    "whisper-tiny.en",
    "whisper-base",
    "piper-joe",
    "kokoro",
    "silero-vad",
    "hibari",
    "spleeter-2stems",
];

struct Step {
    name: &'static str,
    run: fn(&Options) -> Result<()>,
}

const STEPS: [Step; 7] = [
    Step {
        name: "setup",
        run: tools,
    },
    Step {
        name: "format",
        run: format,
    },
    Step {
        name: "clippy",
        run: clippy,
    },
    Step {
        name: "unit",
        run: unit,
    },
    Step {
        name: "integration",
        run: integration,
    },
    Step {
        name: "hip",
        run: |options| pack::check_compile(options.hip),
    },
    Step {
        name: "docs",
        run: |_| docs::run(),
    },
];

/// Runs the steps; the error names the first one that failed.
pub fn run(options: &Options) -> Result<()> {
    let chosen: Vec<&Step> = STEPS
        .iter()
        .filter(|step| options.only.as_ref().is_none_or(|name| step.name == name))
        .collect();
    let start = Instant::now();
    let mut times = Vec::new();
    for (at, step) in chosen.iter().enumerate() {
        eprintln!("\n== {} ({} of {})", step.name, at + 1, chosen.len());
        let began = Instant::now();
        let result = (step.run)(options);
        let seconds = began.elapsed().as_secs_f64();
        result.with_context(|| format!("step `{}` failed after {seconds:.0} s", step.name))?;
        times.push((step.name, seconds));
    }
    println!("\nstep             time");
    for (name, seconds) in times {
        println!("{name:<12} {seconds:>6.1} s");
    }
    println!(
        "all {} steps passed in {:.0} s",
        chosen.len(),
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

fn tools(_: &Options) -> Result<()> {
    setup::run(&setup::Options::default())?;
    setup::rust_components()
}

fn format(_: &Options) -> Result<()> {
    sh::run(&mut sh::cargo(["fmt", "--all", "--check"]))
}

fn clippy(_: &Options) -> Result<()> {
    sh::run(&mut sh::cargo([
        "clippy",
        "--locked",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))
}

fn unit(_: &Options) -> Result<()> {
    sh::run(&mut sh::cargo([
        "test",
        "--locked",
        "--workspace",
        "--lib",
        "--bins",
    ]))?;
    sh::run(&mut sh::cargo(["test", "--locked", "--workspace", "--doc"]))
}

/// The files in `tests/` folders; with the models they need, unless that is too slow.
fn integration(options: &Options) -> Result<()> {
    let models = if options.quick {
        None
    } else {
        Some(fetch_models()?)
    };
    let targets = test_targets()?;
    if targets.is_empty() {
        bail!("no integration test was found");
    }
    let mut cargo = sh::cargo(["test", "--locked", "--no-fail-fast"]);
    for package in targets.keys() {
        cargo.args(["--package", package]);
    }
    for target in targets.values().flatten() {
        cargo.args(["--test", target]);
    }
    sh::run(cargo.envs(models.map(|folder| (audiocpp_testing::models::VARIABLE, folder))))
}

/// Fetches the models of the tests; returns the folder of all models.
fn fetch_models() -> Result<String> {
    sh::run(&mut sh::cargo([
        "build",
        "--locked",
        "--package",
        "audiocpp-cli",
    ]))?;
    let program = sh::program("audiocpp_cli", "debug");
    sh::run(
        Command::new(&program)
            .args(["models", "pull"])
            .args(TEST_MODELS),
    )?;
    let folder = sh::capture(Command::new(&program).args(["models", "path"]))?;
    Ok(folder.trim_end().to_owned())
}

/// Names of the integration tests by their package.
fn test_targets() -> Result<BTreeMap<String, Vec<String>>> {
    let json = sh::capture(&mut sh::cargo([
        "metadata",
        "--locked",
        "--no-deps",
        "--format-version=1",
    ]))?;
    parse_targets(&json)
}

fn parse_targets(metadata: &str) -> Result<BTreeMap<String, Vec<String>>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
        targets: Vec<Target>,
    }
    #[derive(Deserialize)]
    struct Target {
        name: String,
        kind: Vec<String>,
    }
    let metadata: Metadata = serde_json::from_str(metadata).context("cargo metadata's answer")?;
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in metadata.packages {
        let tests = package
            .targets
            .into_iter()
            .filter(|t| t.kind.iter().any(|kind| kind == "test"));
        let names: Vec<String> = tests.map(|test| test.name).collect();
        if !names.is_empty() {
            found.insert(package.name, names);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_files_are_told_from_libraries() {
        let json = r#"{"packages":[
            {"name":"a","targets":[{"name":"a","kind":["lib"]},{"name":"layers","kind":["test"]}]},
            {"name":"b","targets":[{"name":"b","kind":["bin"]}]}]}"#;
        let targets = parse_targets(json).unwrap();
        assert_eq!(
            targets,
            BTreeMap::from([("a".into(), vec!["layers".into()])])
        );
    }

    #[test]
    fn this_workspace_has_tests_of_models() {
        assert!(test_targets().unwrap()["audiocpp-whisper"].contains(&"parity".into()));
    }
}
