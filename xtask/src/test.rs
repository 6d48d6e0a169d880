//! `cargo xtask test`: every check, in steps that are named and timed; stops at the first failure.

use crate::{docs, setup, sh};
use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Deserialize;
use std::{process::Command, time::Instant};

/// Options of `cargo xtask test`.
#[derive(Args)]
pub struct Options {
    /// Skip what downloads models.
    #[arg(long)]
    quick: bool,
    /// Run only this step.
    #[arg(long, value_name = "STEP", value_parser = STEPS.map(|step| step.name))]
    only: Option<String>,
}

/// Models of the catalogue that some test needs.
const TEST_MODELS: &[&str] = &["whisper-tiny.en", "whisper-base"];

struct Step {
    name: &'static str,
    run: fn() -> Result<()>,
    /// Whether `--quick` leaves it out.
    slow: bool,
}

const STEPS: [Step; 7] = [
    Step {
        name: "setup",
        run: tools,
        slow: false,
    },
    Step {
        name: "format",
        run: format,
        slow: false,
    },
    Step {
        name: "clippy",
        run: clippy,
        slow: false,
    },
    Step {
        name: "unit",
        run: unit,
        slow: false,
    },
    Step {
        name: "integration",
        run: integration,
        slow: false,
    },
    Step {
        name: "models",
        run: models,
        slow: true,
    },
    Step {
        name: "docs",
        run: docs::run,
        slow: false,
    },
];

/// Runs the steps; the error names the first one that failed.
pub fn run(options: &Options) -> Result<()> {
    let chosen: Vec<&Step> = STEPS
        .iter()
        .filter(|step| match &options.only {
            Some(name) => step.name == name,
            None => !(options.quick && step.slow),
        })
        .collect();
    let start = Instant::now();
    let mut times = Vec::new();
    for (at, step) in chosen.iter().enumerate() {
        eprintln!("\n== {} ({} of {})", step.name, at + 1, chosen.len());
        let began = Instant::now();
        let result = (step.run)();
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

fn tools() -> Result<()> {
    setup::run(&setup::Options::default())?;
    setup::rust_components()
}

fn format() -> Result<()> {
    sh::run(&mut sh::cargo(["fmt", "--all", "--check"]))
}

fn clippy() -> Result<()> {
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

fn unit() -> Result<()> {
    sh::run(&mut sh::cargo([
        "test",
        "--locked",
        "--workspace",
        "--lib",
        "--bins",
    ]))?;
    sh::run(&mut sh::cargo(["test", "--locked", "--workspace", "--doc"]))
}

fn integration() -> Result<()> {
    let targets = test_targets()?;
    let chosen: Vec<_> = targets.iter().filter(|t| !t.needs_models()).collect();
    run_targets(&chosen, None)
}

/// Fetches the models that tests need, then runs those tests.
fn models() -> Result<()> {
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
    let targets = test_targets()?;
    let chosen: Vec<_> = targets.iter().filter(|t| t.needs_models()).collect();
    run_targets(&chosen, Some(folder.trim_end()))
}

/// One file under some package's `tests/`.
struct TestTarget {
    package: String,
    name: String,
}

impl TestTarget {
    /// Tests of downloaded models stand in files of their own, whose names begin with `real_`.
    fn needs_models(&self) -> bool {
        self.name.starts_with("real_")
    }
}

/// Runs the targets in one `cargo test`, which finds downloaded models in `models`.
fn run_targets(targets: &[&TestTarget], models: Option<&str>) -> Result<()> {
    if targets.is_empty() {
        eprintln!("no such tests in this workspace");
        return Ok(());
    }
    let mut cargo = sh::cargo(["test", "--locked"]);
    let mut packages: Vec<&str> = targets.iter().map(|t| t.package.as_str()).collect();
    packages.sort_unstable();
    packages.dedup();
    for package in packages {
        cargo.args(["--package", package]);
    }
    for target in targets {
        cargo.args(["--test", &target.name]);
    }
    sh::run(cargo.envs(models.map(|folder| (audiocpp_testing::models::VARIABLE, folder))))
}

/// Every integration test of the workspace.
fn test_targets() -> Result<Vec<TestTarget>> {
    let json = sh::capture(&mut sh::cargo([
        "metadata",
        "--locked",
        "--no-deps",
        "--format-version=1",
    ]))?;
    parse_targets(&json)
}

fn parse_targets(metadata: &str) -> Result<Vec<TestTarget>> {
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
    let mut found: Vec<TestTarget> = Vec::new();
    for package in metadata.packages {
        for target in package.targets {
            if !target.kind.iter().any(|kind| kind == "test") {
                continue;
            }
            // `cargo test --test NAME` cannot tell two of one name apart.
            if let Some(twin) = found.iter().find(|t| t.name == target.name) {
                bail!(
                    "test `{}` stands in both {} and {}: give one another name",
                    target.name,
                    twin.package,
                    package.name
                );
            }
            found.push(TestTarget {
                package: package.name.clone(),
                name: target.name,
            });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"{"packages":[
        {"name":"a","targets":[{"name":"a","kind":["lib"]},{"name":"layers","kind":["test"]}]},
        {"name":"b","targets":[{"name":"real_speech","kind":["test"]}]}]}"#;

    #[test]
    fn test_files_are_told_from_libraries_and_by_their_need_of_models() {
        let targets = parse_targets(TWO).unwrap();
        let names: Vec<_> = targets
            .iter()
            .map(|t| (t.name.as_str(), t.needs_models()))
            .collect();
        assert_eq!(names, [("layers", false), ("real_speech", true)]);
    }

    #[test]
    fn two_tests_of_one_name_are_refused() {
        let twice = TWO.replace("real_speech", "layers");
        let error = parse_targets(&twice).err().unwrap();
        assert!(error.to_string().contains("both a and b"), "{error}");
    }
}
