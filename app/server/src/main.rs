//! `audiocpp_server`: for now, checks the configuration that it will serve.
#![forbid(unsafe_code)]

mod check;
mod config;

use std::{
    ffi::OsString,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{ArgGroup, Parser};

use crate::config::Config;

/// Serve open speech and audio models over HTTP.
#[derive(Debug, Parser)]
#[command(
    name = "audiocpp_server",
    disable_version_flag = true,
    arg_required_else_help = true,
    group = ArgGroup::new("what").required(true).args(["version", "check_config"])
)]
struct Cli {
    /// Print the version, the commit and the backends that are loaded
    #[arg(short = 'V', long)]
    version: bool,
    /// Configuration file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Check the configuration file and end
    #[arg(long, requires = "config")]
    check_config: bool,
}

fn main() -> ExitCode {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    // As the first word only: checks that documented commands are understood.
    let parse_only = words.get(1).is_some_and(|word| word == "--parse-only");
    if parse_only {
        words.remove(1);
    }
    let cli = Cli::parse_from(words);
    if parse_only {
        return ExitCode::SUCCESS;
    }
    if cli.version {
        print!("{}", audiocpp::about("audiocpp_server"));
        return ExitCode::SUCCESS;
    }
    match cli.config {
        Some(file) => check_config(&file),
        None => ExitCode::from(2),
    }
}

/// Reports every fault of the file, one line each; 0 if there is none, else 2.
fn check_config(file: &Path) -> ExitCode {
    let shown = file.display();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("error: {shown}: {error}");
            return ExitCode::from(2);
        }
    };
    let config = match config::parse(&text) {
        Ok(config) => config,
        Err(line) => {
            eprintln!("error: {shown}: {line}");
            return ExitCode::from(2);
        }
    };
    let findings = check::check(&config, file, &audiocpp_models::registry());
    for line in &findings.warnings {
        eprintln!("warning: {shown}: {line}");
    }
    for line in &findings.errors {
        eprintln!("error: {shown}: {line}");
    }
    if !findings.errors.is_empty() {
        return ExitCode::from(2);
    }
    print!("{}", summary(&config, file));
    ExitCode::SUCCESS
}

/// What the server would do with a sound configuration, one line for the address and each model.
fn summary(config: &Config, file: &Path) -> String {
    let device = config.device().unwrap_or_else(|error| error);
    let mut text = format!(
        "address http://{}\n",
        SocketAddr::new(config.host, config.port)
    );
    for model in &config.models {
        let path = config::resolve(file, &model.path);
        let path = if path.exists() {
            path
        } else {
            model.path.clone()
        };
        let when = if model.lazy.unwrap_or(config.lazy_load) {
            "on demand"
        } else {
            "at start"
        };
        let wait = model.busy_timeout_ms.unwrap_or(config.busy_timeout_ms);
        text.push_str(&format!(
            "model {}: {} {} from {}, weights {}, device {device}, loaded {when}, waits {wait} ms\n",
            model.id,
            model.family,
            model.task,
            path.display(),
            model.weight.as_deref().unwrap_or("native"),
        ));
    }
    text
}
