//! `device-trial`: the child process of `doctor` and `devices`, and its parent's side.

use std::{process::Command, time::Duration};

use audiocpp::{
    backend::{
        BackendType, DeviceInfo, Inventory, LoadReport, Request,
        load::Attempt,
        probe::child::{self, End, Step, Trial},
    },
    graph::{DeviceOptions, trial},
};

use crate::{
    failure::{Failure, Outcome},
    output::print,
};

const LOAD_LIMIT: Duration = Duration::from_secs(60);

/// The child: takes the steps and prints each one when it is done.
pub fn run(device: &str, load_only: bool) -> Outcome {
    let spec = device.parse();
    let request = Request::new(spec.map_err(|e| Failure::usage(format!("{e}")))?);
    let inventory = Inventory::for_request(&request);
    let plan = inventory.plan(&request);
    let info = match plan {
        Ok(plan) => plan.candidates.into_iter().next(),
        Err(error) => {
            // A backend that loads and has no device has passed the step of loading.
            let loaded = load_only && inventory.report.loaded(request.spec.kind());
            say("load", loaded, error.to_string())?;
            return if loaded {
                Ok(())
            } else {
                Err(Failure::reported())
            };
        }
    };
    let Some(info) = info else {
        say("load", false, "there is no device".to_owned())?;
        return Err(Failure::reported());
    };
    say("load", true, info.name.clone())?;
    if load_only {
        return Ok(());
    }
    let mut broken = Ok(());
    let taken = trial(&info, &DeviceOptions::default(), |step, detail| {
        if broken.is_ok() {
            broken = say(step, true, detail);
        }
    });
    broken?;
    taken.or_else(|(step, error)| {
        say(step, false, error.to_string())?;
        Err(Failure::reported())
    })
}

fn say(step: &str, ok: bool, detail: String) -> Outcome {
    let step = Step {
        step: step.to_owned(),
        ok,
        detail,
    };
    let line = serde_json::to_string(&step).map_err(|e| Failure::usage(e.to_string()))?;
    print(&format!("{line}\n"))
}

fn child_process(arguments: &[&str], limit: Duration) -> Trial {
    match std::env::current_exe() {
        Ok(program) => child::run(
            Command::new(program).arg("device-trial").args(arguments),
            limit,
        ),
        Err(error) => Trial {
            steps: Vec::new(),
            end: End::NotStarted {
                reason: error.to_string(),
            },
        },
    }
}

/// The parent: tries a device for at most `limit`.
pub fn try_device(info: &DeviceInfo, limit: Duration) -> Trial {
    child_process(&[&info.spec()], limit)
}

/// Everything that this machine offers. Each GPU backend is first loaded in a process of its own:
/// a library that ends or hangs the process while it is loaded is left out, with the reason.
pub fn inventory() -> Inventory {
    let mut kinds = Vec::new();
    let mut deadly = Vec::new();
    for kind in BackendType::all() {
        match load_alone(kind) {
            None => kinds.push(kind),
            Some(reason) => deadly.push((kind, reason)),
        }
    }
    let mut inventory = Inventory::discover(&kinds);
    for (kind, reason) in deadly {
        note(&mut inventory.report, kind, reason);
    }
    inventory
}

/// How loading a backend ends the process; none if it does not.
fn load_alone(kind: BackendType) -> Option<String> {
    if !kind.is_gpu() {
        return None;
    }
    let trial = child_process(&[kind.name(), "--load-only"], LOAD_LIMIT);
    let said = trial.steps.iter().any(|step| step.step == "load");
    match trial.end {
        End::Crashed { reason } | End::TimedOut { reason } if !said => Some(reason),
        _ => None,
    }
}

fn note(report: &mut LoadReport, kind: BackendType, reason: String) {
    let files = audiocpp::backend::Search::standard().files(kind);
    report.attempts.push(Attempt {
        backend: kind,
        path: files.into_iter().next().unwrap_or_default(),
        pack: None,
        registry: None,
        error: Some(format!("loading it ends the process: {reason}")),
    });
}
