//! `check`: whether a device computes what the CPU computes.

use std::process::{Command, Stdio};

use audiocpp::engine::{
    CancelToken, Registry, Task,
    check::{Difference, compare, digest, read_goldens, write_goldens},
};
use serde::Serialize;

use crate::{
    args::{Check, DeviceArgs, ModelArgs},
    failure::{Failure, Outcome},
    model::Choice,
    progress::Progress,
};

/// Relative difference that f32 weights may show: rounding in another order.
const EXACT: f64 = 1e-4;
/// Relative difference that 16-bit and quantised weights may show.
const ROUNDED: f64 = 1e-2;

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    device: String,
    name: String,
    reference: String,
    tolerance: f64,
    stages: Vec<Difference>,
    first_bad_stage: Option<String>,
    digest: String,
    runs: usize,
    runs_agree: bool,
}

/// Runs the check; the exit code is 1 if a stage or a repetition differs.
pub fn run(args: &Check, registry: &Registry, cancel: &CancelToken) -> Outcome {
    let progress = Progress::new();
    let context = progress.context(cancel);
    // Whatever the model does; recognition, and its errors, where it does nothing that is known.
    let mut tasks = Task::ALL.into_iter().map(|(task, ..)| task);
    let fits = |task: &Task| Choice::new(&args.model, *task, registry).is_ok();
    let task = tasks.find(fits).unwrap_or(Task::Asr);
    let load = |model: &ModelArgs| -> Outcome<_> {
        let choice = Choice::new(model, task, registry)?;
        let path = choice.fetch(&progress, &context)?;
        choice.load(&path, &context)
    };
    let model = load(&args.model)?;
    let found = model.stages().map_err(Failure::run)?;
    let own_digest = digest(&found);
    if args.digest {
        println!("{own_digest}");
        return Ok(());
    }
    let info = model.info();
    drop(model);
    if let Some(path) = &args.write_golden {
        write_goldens(path, &found).map_err(Failure::run)?;
    }
    let (reference, label) = match &args.golden {
        Some(path) => (
            read_goldens(path).map_err(Failure::run)?,
            path.display().to_string(),
        ),
        None => {
            let on_cpu = ModelArgs {
                device: DeviceArgs {
                    device: Some("cpu".into()),
                    ..DeviceArgs::default()
                },
                ..args.model.clone()
            };
            (
                load(&on_cpu)?.stages().map_err(Failure::run)?,
                "cpu".to_owned(),
            )
        }
    };
    let exact = args.model.weight_type.as_deref() == Some("f32");
    let tolerance = args
        .tolerance
        .unwrap_or(if exact { EXACT } else { ROUNDED });
    let stages = compare(&found, &reference, tolerance).map_err(Failure::run)?;
    let digests = repeat(args.repeat)?;
    let report = Report {
        device: info.device.device,
        name: info.device.name,
        reference: label,
        tolerance,
        first_bad_stage: stages.iter().find(|s| !s.passed).map(|s| s.stage.clone()),
        stages,
        runs: digests.len() + 1,
        runs_agree: digests.iter().all(|other| *other == own_digest),
        digest: own_digest,
    };
    if args.json {
        let text =
            serde_json::to_string_pretty(&report).map_err(|e| Failure::usage(e.to_string()))?;
        println!("{text}");
    } else {
        print_table(&report);
    }
    match (&report.first_bad_stage, report.runs_agree) {
        (None, true) => Ok(()),
        (Some(stage), _) => Err(Failure::failed(format!(
            "{}: stage `{stage}` differs from {} by more than {tolerance:.0e}; do not trust this device with this model",
            report.device, report.reference
        ))),
        (None, false) => Err(Failure::failed(format!(
            "{}: {} runs of the same input gave different results",
            report.device, report.runs
        ))),
    }
}

/// Digests of `repeat - 1` more runs, each in a process of its own.
fn repeat(repeat: u16) -> Outcome<Vec<String>> {
    (1..repeat)
        .map(|_| {
            let failed =
                |e: &dyn std::fmt::Display| Failure::failed(format!("a repetition failed: {e}"));
            let program = std::env::current_exe().map_err(|e| failed(&e))?;
            let output = Command::new(program)
                .args(without_outputs())
                .arg("--digest")
                .stderr(Stdio::inherit())
                .output()
                .map_err(|e| failed(&e))?;
            if !output.status.success() {
                return Err(failed(&output.status));
            }
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        })
        .collect()
}

/// This command's own arguments without those that only the first run serves.
fn without_outputs() -> Vec<std::ffi::OsString> {
    let mut kept = Vec::new();
    let mut skip_value = false;
    for word in std::env::args_os().skip(1) {
        let text = word.to_string_lossy();
        if std::mem::take(&mut skip_value) || text == "--json" {
            continue;
        }
        let flag = text.split('=').next().unwrap_or_default();
        if ["--repeat", "--golden", "--write-golden", "--tolerance"].contains(&flag) {
            skip_value = !text.contains('=');
            continue;
        }
        kept.push(word);
    }
    kept
}

fn print_table(report: &Report) {
    println!(
        "{} ({}) against {}, tolerance {:.0e}",
        report.device, report.name, report.reference, report.tolerance
    );
    println!(
        "{:<22} {:>9} {:>10} {:>10} {:>10} {:>12}",
        "stage", "values", "max abs", "rms", "relative", "cosine"
    );
    for s in &report.stages {
        println!(
            "{:<22} {:>9} {:>10.2e} {:>10.2e} {:>10.2e} {:>12.9} {}",
            s.stage,
            s.count,
            s.max_abs,
            s.rms,
            s.relative,
            s.cosine,
            if s.passed { "ok" } else { "BAD" }
        );
    }
    if report.runs > 1 {
        let verdict = if report.runs_agree {
            "agree in every bit"
        } else {
            "DIFFER"
        };
        println!("{} runs in fresh processes {verdict}", report.runs);
    }
    println!("digest {}", report.digest);
}
