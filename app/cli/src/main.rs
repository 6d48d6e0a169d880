//! `audiocpp_cli`: run models from the command line.
#![forbid(unsafe_code)]

mod ancestor;
mod args;
mod bench;
mod check;
mod codec;
mod convert;
mod convert_voice;
mod device_trial;
mod devices;
mod doctor;
mod failure;
mod fast_paths;
mod formats;
mod inputs;
mod launch;
mod loaders;
mod model;
mod models;
mod output;
mod progress;
mod say;
mod separate;
mod targets;
mod tokens;
mod transcribe;
mod vad;

use std::{ffi::OsString, io::IsTerminal, process::ExitCode, time::Duration};

use audiocpp::engine::{CancelToken, Registry, Task};
use clap::{
    Parser,
    error::{ContextKind, ContextValue, ErrorKind},
};
use tracing_subscriber::EnvFilter;

use crate::{
    args::{Cli, Command, DeviceArgs, FlagForm},
    convert_voice::args::ConvertFlags,
    failure::{Failure, Outcome},
    say::args::SpeechFlags,
    separate::args::SeparateFlags,
    transcribe::Job,
    vad::args::VadFlags,
};

fn main() -> ExitCode {
    let registry = audiocpp_models::registry();
    let mut words: Vec<OsString> = std::env::args_os().collect();
    // As the first word only: checks that documented commands are understood.
    let parse_only = words.get(1).is_some_and(|word| word == "--parse-only");
    if parse_only {
        words.remove(1);
    }
    if asks_for(&words, &["tts", "clon", "vdes"]) {
        return run_flags::<SpeechFlags>(words, parse_only, &registry);
    }
    if asks_for(&words, &["vad"]) {
        return run_flags::<VadFlags>(words, parse_only, &registry);
    }
    if asks_for(&words, &["sep"]) {
        return run_flags::<SeparateFlags>(words, parse_only, &registry);
    }
    if asks_for(&words, &["vc"]) {
        return run_flags::<ConvertFlags>(words, parse_only, &registry);
    }
    let cli = match Cli::try_parse_from(words) {
        Ok(_) if parse_only => return ExitCode::SUCCESS,
        Ok(cli) => cli,
        Err(error) => return refuse(&error, &registry),
    };
    log_to_stderr(cli.verbose);
    if let Some(code) = launch::again_if_needed(&cli) {
        return code;
    }
    let outcome = stop_on_interrupt().and_then(|cancel| run(cli, &registry, &cancel));
    end(outcome)
}

/// Whether the words are audio.cpp's flags for one of `tasks`.
fn asks_for(words: &[OsString], tasks: &[&str]) -> bool {
    let named = words
        .windows(2)
        .any(|pair| pair[0] == "--task" && tasks.iter().any(|task| pair[1] == *task));
    let joined = |word: &OsString| {
        let task = word.to_str().and_then(|word| word.strip_prefix("--task="));
        task.is_some_and(|task| tasks.contains(&task))
    };
    named || words.iter().any(joined)
}

/// audio.cpp's flags for some tasks.
trait Flags: Parser {
    /// How much to say on stderr, and the device.
    fn common(&self) -> (u8, &DeviceArgs);

    /// Runs what they ask for.
    fn run(self, registry: &Registry, cancel: &CancelToken) -> Outcome;
}

impl Flags for SpeechFlags {
    fn common(&self) -> (u8, &DeviceArgs) {
        (self.verbose, &self.model.device)
    }

    fn run(self, registry: &Registry, cancel: &CancelToken) -> Outcome {
        let task: Task = self.task.parse().map_err(Failure::setup)?;
        registry.require_task(task).map_err(Failure::setup)?;
        say::run(&self.into_say(), registry, cancel)
    }
}

impl Flags for VadFlags {
    fn common(&self) -> (u8, &DeviceArgs) {
        (self.verbose, &self.model.device)
    }

    fn run(self, registry: &Registry, cancel: &CancelToken) -> Outcome {
        vad::run(&self.into(), registry, cancel)
    }
}

impl Flags for SeparateFlags {
    fn common(&self) -> (u8, &DeviceArgs) {
        (self.verbose, &self.model.device)
    }

    fn run(self, registry: &Registry, cancel: &CancelToken) -> Outcome {
        separate::run(&self.into_separate(), registry, cancel)
    }
}

impl Flags for ConvertFlags {
    fn common(&self) -> (u8, &DeviceArgs) {
        (self.verbose, &self.model.device)
    }

    fn run(self, registry: &Registry, cancel: &CancelToken) -> Outcome {
        convert_voice::run(&self.into_convert(), registry, cancel)
    }
}

/// Runs `--task ...`.
fn run_flags<F: Flags>(words: Vec<OsString>, parse_only: bool, registry: &Registry) -> ExitCode {
    let flags = match F::try_parse_from(words) {
        Ok(_) if parse_only => return ExitCode::SUCCESS,
        Ok(flags) => flags,
        Err(error) => return refuse(&error, registry),
    };
    let (verbose, device) = flags.common();
    log_to_stderr(verbose);
    if let Some(code) = launch::again_for(device) {
        return code;
    }
    end(stop_on_interrupt().and_then(|cancel| flags.run(registry, &cancel)))
}

fn end(outcome: Outcome) -> ExitCode {
    let code = match outcome {
        Ok(()) => 0,
        Err(failure) => {
            if !failure.message.is_empty() {
                eprintln!("error: {failure}");
            }
            failure.code
        }
    };
    audiocpp::backend::launch::exit(code)
}

fn run(cli: Cli, registry: &Registry, cancel: &CancelToken) -> Outcome {
    if cli.version {
        return loaders::version("audiocpp_cli");
    }
    if cli.list_loaders {
        return loaders::list(registry, cli.json);
    }
    match cli.command {
        Some(Command::Transcribe(args)) => {
            let job = Job {
                inputs: args.inputs,
                model: args.model,
                request: args.request,
                folder: None,
            };
            transcribe::run(&job, registry, cancel)
        }
        Some(Command::Vad(args)) => vad::run(&(*args).into(), registry, cancel),
        Some(Command::Say(args)) => say::run(&args, registry, cancel),
        Some(Command::Separate(args)) => separate::run(&args, registry, cancel),
        Some(Command::Codec(command)) => tokens::run(&command, registry, cancel),
        Some(Command::ConvertVoice(args)) => convert_voice::run(&args, registry, cancel),
        Some(Command::Voices(args)) => say::voices::run(&args, registry, cancel),
        Some(Command::Models(command)) => models::run(&command, cancel),
        Some(Command::Convert(args)) => convert::run(&args, registry, cancel),
        Some(Command::Check(args)) => check::run(&args, registry, cancel),
        Some(Command::Bench(args)) => bench::run(&args, registry, cancel),
        Some(Command::Devices { json }) => devices::run(json),
        Some(Command::Doctor {
            json,
            bundle,
            no_trial,
            trial_limit,
        }) => {
            let limit = Duration::from_secs(trial_limit.into());
            doctor::run(json, bundle, (!no_trial).then_some(limit))
        }
        Some(Command::FastPaths { device, json }) => fast_paths::run(&device, registry, json),
        Some(Command::DeviceTrial { device, load_only }) => device_trial::run(&device, load_only),
        None => transcribe::run(&flag_form(cli.flags, registry)?, registry, cancel),
    }
}

/// The job that audio.cpp's flags ask for.
fn flag_form(flags: FlagForm, registry: &Registry) -> Outcome<Job> {
    let task = flags.task.as_deref().unwrap_or_default();
    if task.is_empty() {
        return Err(Failure::usage(
            "name a task with --task, or use a command: see --help",
        ));
    }
    let task: Task = task.parse().map_err(Failure::setup)?;
    registry.require_task(task).map_err(Failure::setup)?;
    if task != Task::Asr {
        let phrase = task.phrase();
        return Err(Failure::usage(format!(
            "{phrase} is not run from here: wanted --task asr"
        )));
    }
    if flags.mode != "offline" {
        let mode = flags.mode;
        return Err(Failure::usage(format!(
            "--mode {mode} is not available: wanted offline"
        )));
    }
    let mut inputs = flags.audio;
    inputs.extend(flags.batch_audio_dir);
    if inputs.is_empty() {
        return Err(Failure::usage("name a recording with --audio FILE"));
    }
    Ok(Job {
        inputs,
        model: flags.model,
        request: flags.request,
        folder: flags.out_dir,
    })
}

/// Reports what clap found wrong; flags of audio.cpp get a better answer than "unknown".
fn refuse(error: &clap::Error, registry: &Registry) -> ExitCode {
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg)
        && let Some(line) = ancestor::explain(flag, registry)
    {
        eprintln!("error: {line}");
        return ExitCode::from(2);
    }
    // If even stderr is gone there is nobody left to tell.
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

fn log_to_stderr(verbose: u8) {
    let level = ["warn", "info", "debug", "trace"][usize::from(verbose.min(3))];
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .without_time()
        .init();
}

/// Ctrl-C asks for an end; a second one does not ask.
fn stop_on_interrupt() -> Outcome<CancelToken> {
    let cancel = CancelToken::default();
    let token = cancel.clone();
    let set = ctrlc::set_handler(move || {
        if token.is_cancelled() {
            std::process::exit(130);
        }
        token.cancel();
        eprintln!("stopping; press Ctrl-C again to end at once");
    });
    set.map_err(|error| Failure {
        code: 1,
        message: format!("cannot watch for Ctrl-C: {error}"),
    })?;
    Ok(cancel)
}
