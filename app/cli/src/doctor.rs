//! `doctor`: why a GPU is or is not used.

use std::time::Duration;

use audiocpp::backend::{
    Host,
    doctor::{Subject, examine},
    probe::dev,
};

use crate::{
    device_trial::{inventory, try_device},
    failure::{Failure, Outcome},
    models::print_json,
    output::print,
};

/// Examines this machine and prints the report. Each GPU is tried for at most `trial`; none leaves
/// the trials out.
pub fn run(as_json: bool, bundle: bool, trial: Option<Duration>) -> Outcome {
    let host = Host::here();
    let inventory = inventory();
    let gpus = inventory.devices.iter().filter(|device| device.is_gpu());
    let trials = match trial {
        None => Vec::new(),
        Some(limit) => gpus
            .map(|gpu| (gpu.clone(), try_device(gpu, limit)))
            .collect(),
    };
    let report = examine(&Subject {
        host: &host,
        inventory: &inventory,
        opener: &dev::System,
        trials,
    });
    if as_json {
        print_json(&serde_json::json!(report))?;
    } else if bundle {
        print(&report.bundle(&host))?;
    } else {
        print(&report.to_string())?;
    }
    match report.exit_code() {
        0 => Ok(()),
        code => Err(Failure {
            code,
            message: String::new(),
        }),
    }
}
