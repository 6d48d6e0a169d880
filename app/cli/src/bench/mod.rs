//! `bench`: how long a task takes, in fresh processes, on one setting or on many.
//!
//! The process that the user starts measures nothing: it starts one process for each round of each
//! setting, so that no round finds caches, allocations or captured graphs of another. The settings
//! take turns, so that a machine that grows warm slows all of them alike.

mod report;
mod round;
mod statistics;
mod work;

use std::{
    ffi::OsString,
    fmt,
    process::{Command, Stdio},
};

use audiocpp::{
    backend::{BackendType, Inventory, Verdict},
    engine::{CancelToken, Registry},
};
use serde::Serialize;

use self::{
    report::{Figures, NotRun, Report},
    round::Round,
};
use crate::{
    args::{Bench, ModelArgs},
    failure::{Failure, Outcome},
    model::Choice,
    output,
    progress::Progress,
};

/// What differs between the rows of a report; `None` is the command's own choice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// The device string.
    pub device: Option<String>,
    /// The type of the weights.
    pub weight_type: Option<String>,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<&str> = [&self.device, &self.weight_type]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        match parts.is_empty() {
            true => f.write_str("as given"),
            false => f.write_str(&parts.join(" ")),
        }
    }
}

/// Runs the command.
pub fn run(args: &Bench, registry: &Registry, cancel: &CancelToken) -> Outcome {
    if args.measure {
        let round = round::measure(args, registry, cancel)?;
        return output::print(&format!("{}\n", serde_json::json!(round)));
    }
    let task = work::task(args)?;
    let settings = settings(args)?;
    let progress = Progress::new();
    let context = progress.context(cancel);
    // Checked and fetched once, here, where an error stops everything.
    Choice::new(&args.model, task, registry)?.fetch(&progress, &context)?;
    let mut number = 0;
    let total = settings.len() * usize::from(args.rounds);
    let (rounds, not_run) = alternate(&settings, args.rounds, |setting| {
        context.check().map_err(Failure::run)?;
        number += 1;
        progress.line(&format!("round {number} of {total}: {setting}"));
        in_fresh_process(args, setting)
    });
    context.check().map_err(Failure::run)?;
    let report = report(args, task.name(), rounds, not_run);
    deliver(args, &report)?;
    match report.figures.is_empty() {
        false => Ok(()),
        true => Err(Failure::failed(
            report
                .not_run
                .first()
                .map_or("nothing was measured".into(), |missing| missing.why.clone()),
        )),
    }
}

/// The rows that the command asks for.
fn settings(args: &Bench) -> Outcome<Vec<Setting>> {
    let listed = |list: &[String]| -> Vec<Option<String>> {
        match list.is_empty() {
            true => vec![None],
            false => list.iter().cloned().map(Some).collect(),
        }
    };
    let devices = match args.matrix && args.devices.is_empty() {
        true => usable_devices(),
        false => args.devices.clone(),
    };
    let types = match args.matrix && args.weight_types.is_empty() {
        true => ["native", "f32", "f16", "q8_0"].map(str::to_owned).to_vec(),
        false => args.weight_types.clone(),
    };
    let types = listed(&types);
    let rows = listed(&devices).into_iter().flat_map(|device| {
        types.iter().map(move |weight_type| Setting {
            device: device.clone(),
            weight_type: weight_type.clone(),
        })
    });
    Ok(rows.collect())
}

/// Every device that can be opened, as `devices` lists them.
fn usable_devices() -> Vec<String> {
    let inventory = Inventory::discover(&BackendType::all().collect::<Vec<_>>());
    let usable = inventory
        .devices
        .iter()
        .filter(|device| matches!(inventory.judge(device), Verdict::Usable));
    usable.map(|device| device.spec()).collect()
}

/// The rounds of each setting that could be measured, and the others.
type Measured = (Vec<(Setting, Vec<Round>)>, Vec<NotRun>);

/// Measures every setting once, then every setting again, and so on. A setting that fails is not
/// tried again.
fn alternate(
    settings: &[Setting],
    rounds: u16,
    mut measure: impl FnMut(&Setting) -> Outcome<Round>,
) -> Measured {
    let mut measured: Vec<(Setting, Vec<Round>)> =
        settings.iter().map(|s| (s.clone(), Vec::new())).collect();
    let mut not_run: Vec<NotRun> = Vec::new();
    for _ in 0..rounds {
        for (setting, done) in &mut measured {
            if not_run.iter().any(|missing| missing.setting == *setting) {
                continue;
            }
            match measure(setting) {
                Ok(round) => done.push(round),
                Err(failure) => not_run.push(NotRun {
                    setting: setting.clone(),
                    why: failure.message,
                }),
            }
        }
    }
    measured.retain(|(setting, _)| !not_run.iter().any(|missing| missing.setting == *setting));
    (measured, not_run)
}

/// One round in a process of its own.
fn in_fresh_process(args: &Bench, setting: &Setting) -> Outcome<Round> {
    let failed = |e: &dyn fmt::Display| Failure::failed(format!("the round did not start: {e}"));
    let program = std::env::current_exe().map_err(|e| failed(&e))?;
    let output = Command::new(program)
        .args(round_words(args, setting))
        .stdin(Stdio::null())
        .output()
        .map_err(|e| failed(&e))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let last = said.lines().rev().find(|line| line.starts_with("error: "));
        let why = last.map_or_else(
            || format!("the process ended with {}", output.status),
            |line| line.trim_start_matches("error: ").to_owned(),
        );
        return Err(Failure::failed(why));
    }
    // Warnings of the round are the user's to see.
    eprint!("{said}");
    let bad = |e| Failure::failed(format!("the round printed no figures: {e}"));
    serde_json::from_slice(&output.stdout).map_err(bad)
}

/// The command line of a round: everything that this process understood, with the setting.
fn round_words(args: &Bench, setting: &Setting) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["bench".into(), "--measure".into()];
    let mut flag = |name: &str, value: &str| words.push(format!("{name}={value}").into());
    flag("--task", &args.task);
    flag("--warmup", &args.warmup.to_string());
    flag("--reps", &args.reps.to_string());
    let model = &args.model;
    let types = setting.weight_type.as_ref().or(model.weight_type.as_ref());
    let device = setting.device.as_ref().or(model.device.device.as_ref());
    for (name, value) in [
        ("--language", args.language.as_ref()),
        ("--model", model.model.as_ref()),
        ("--family", model.family.as_ref()),
        ("--weight-type", types),
        ("--device", device),
        ("--fallback", model.device.fallback.as_ref()),
        // A device of the matrix stands for itself.
        (
            "--backend",
            model
                .device
                .backend
                .as_ref()
                .filter(|_| setting.device.is_none()),
        ),
    ] {
        if let Some(value) = value {
            flag(name, value);
        }
    }
    for (name, value) in [
        ("--threads", model.threads),
        ("--beam-size", args.beam_size),
    ] {
        if let Some(value) = value {
            flag(name, &value.to_string());
        }
    }
    for (name, list) in [
        ("--request-option", &args.request_option),
        ("--load-option", &model.load_option),
        ("--session-option", &model.session_option),
        ("--fast-path", &model.device.fast_path),
    ] {
        list.iter().for_each(|value| flag(name, value));
    }
    for (name, given) in [
        ("--words", args.words),
        ("--offline", model.offline),
        ("--strict-device", model.device.strict_device),
        ("--no-gpu-graphs", model.device.no_gpu_graphs),
    ] {
        if given {
            words.push(name.into());
        }
    }
    words.push("--".into());
    words.extend(args.inputs.iter().map(OsString::from));
    words
}

fn report(
    args: &Bench,
    task: &str,
    rounds: Vec<(Setting, Vec<Round>)>,
    mut not_run: Vec<NotRun>,
) -> Report {
    let first = rounds.first().and_then(|(_, rounds)| rounds.last());
    let first = first.map(|round| (round.result.clone(), round.audio_seconds));
    let mut figures = Vec::new();
    for (setting, rounds) in rounds {
        let result = first.as_ref().map(|(result, _)| result.as_str());
        match Figures::of(setting.clone(), rounds, result) {
            Some(found) => figures.push(found),
            None => not_run.push(NotRun {
                setting,
                why: "no timed run".into(),
            }),
        }
    }
    let ModelArgs { model, .. } = &args.model;
    Report {
        schema_version: 1,
        task: task.to_owned(),
        model: model.clone().unwrap_or_else(|| "the default model".into()),
        audio_seconds: first.map_or(0.0, |(_, seconds)| seconds),
        rounds: args.rounds,
        warmup: args.warmup,
        reps: args.reps,
        figures,
        not_run,
    }
}

/// The page on standard output, or the figures as JSON, or one in a file and the other printed.
fn deliver(args: &Bench, report: &Report) -> Outcome {
    let json = || {
        let text = serde_json::to_string_pretty(report).map_err(|e| Failure::usage(e.to_string()));
        Ok::<_, Failure>(text? + "\n")
    };
    let mut files = Vec::new();
    if let Some(path) = &args.json_out {
        files.push((path.as_path(), json()?));
    }
    if let Some(path) = &args.markdown_out {
        files.push((path.as_path(), report.markdown()));
    }
    output::write_all(&files).map_err(Failure::run)?;
    if args.json {
        output::print(&json()?)?;
    }
    if args.markdown || !(args.json || args.json_out.is_some() || args.markdown_out.is_some()) {
        output::print(&report.markdown())?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "bench_tests.rs"]
mod tests;
