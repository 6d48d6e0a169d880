//! Starting again with settings that must be in the environment from the beginning.

use std::process::{Command as Process, ExitCode};

use audiocpp::backend::{Host, launch::variables};

use crate::args::{Cli, Command, DeviceArgs};

/// Whether the command uses a device, and if so, whether GPU graphs are unwanted.
fn uses_device(cli: &Cli) -> Option<bool> {
    let args = match &cli.command {
        Some(Command::Transcribe(args)) => &args.model.device,
        Some(Command::Check(args)) => &args.model.device,
        Some(Command::Bench(args)) => &args.model.device,
        Some(Command::Vad(args)) => &args.model.device,
        Some(Command::Say(args)) => &args.model.device,
        Some(Command::Voices(args)) => &args.model.device,
        Some(Command::FastPaths { device, .. }) => device,
        Some(Command::DeviceTrial { .. } | Command::Devices { .. }) => return Some(false),
        Some(_) => return None,
        None => &cli.flags.model.device,
    };
    Some(args.no_gpu_graphs)
}

/// Runs this program again, with the same arguments, if its environment lacks a setting. None if
/// it may go on; otherwise the exit code of the run that took its place.
pub fn again_if_needed(cli: &Cli) -> Option<ExitCode> {
    again(uses_device(cli)?)
}

/// The same for flags that are parsed elsewhere.
pub fn again_for(device: &DeviceArgs) -> Option<ExitCode> {
    again(device.no_gpu_graphs)
}

fn again(no_gpu_graphs: bool) -> Option<ExitCode> {
    let missing = variables(no_gpu_graphs, &Host::here());
    if missing.is_empty() {
        return None;
    }
    let program = std::env::current_exe().ok()?;
    let mut process = Process::new(program);
    process.args(std::env::args_os().skip(1)).envs(missing);
    replace(&mut process)
}

#[cfg(unix)]
fn replace(process: &mut Process) -> Option<ExitCode> {
    use std::os::unix::process::CommandExt;
    // Returns only if it failed; then going on without the setting is the better answer.
    let error = process.exec();
    tracing::warn!("GPU graphs stay on: {error}");
    None
}

#[cfg(not(unix))]
fn replace(process: &mut Process) -> Option<ExitCode> {
    match process.status() {
        Ok(status) => {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            Some(ExitCode::from(code.unwrap_or(1)))
        }
        Err(error) => {
            tracing::warn!("GPU graphs stay on: {error}");
            None
        }
    }
}
