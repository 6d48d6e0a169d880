//! `audiocpp_server`: serves models over HTTP, each in a process of its own.
#![forbid(unsafe_code)]

use std::{
    ffi::OsString, io::IsTerminal, net::IpAddr, path::PathBuf, process::ExitCode, time::Duration,
};

use anyhow::Context;
use audiocpp::engine::Registry;
use audiocpp_server::{
    config, http,
    launch::{self, Checked, Flags},
    pool::Pool,
    worker, wyoming,
};
use clap::Parser;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// How long answers may be on their way once every job has ended.
const ANSWERS: Duration = Duration::from_secs(5);

/// Serve open speech and audio models over HTTP.
///
/// Without a configuration file it serves every installed model to this machine only.
#[derive(Debug, Parser)]
#[command(name = "audiocpp_server", disable_version_flag = true)]
struct Cli {
    /// Print the version, the commit and the backends that are loaded
    #[arg(short = 'V', long)]
    version: bool,
    /// Configuration file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Check the configuration, say what would be served, and end
    #[arg(long)]
    check_config: bool,
    /// Print the JSON schema of the configuration file
    #[arg(long)]
    print_schema: bool,
    /// Address to listen on, instead of the configuration's
    #[arg(long, value_name = "ADDRESS")]
    host: Option<IpAddr>,
    /// Port to listen on, instead of the configuration's
    #[arg(long)]
    port: Option<u16>,
}

fn main() -> ExitCode {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if words.get(1).is_some_and(|word| word == worker::WORD) {
        audiocpp::backend::launch::exit(worker::process::run());
    }
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
    if cli.print_schema {
        print!("{}", config::schema());
        return ExitCode::SUCCESS;
    }
    run(&cli)
}

fn run(cli: &Cli) -> ExitCode {
    let registry = audiocpp_models::registry();
    let flags = Flags {
        host: cli.host,
        port: cli.port,
    };
    let place = match &cli.config {
        Some(file) => format!("{}: ", file.display()),
        None => String::new(),
    };
    let checked = match launch::read(cli.config.as_deref(), flags, &registry) {
        Ok(checked) => checked,
        Err(lines) => {
            for line in lines {
                eprintln!("error: {place}{line}");
            }
            return ExitCode::from(2);
        }
    };
    for line in &checked.warnings {
        eprintln!("warning: {place}{line}");
    }
    let done = if cli.check_config {
        checked
            .summary(&registry)
            .map(|summary| print!("{summary}"))
    } else {
        log_to_stderr();
        serve(&checked, &registry)
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn log_to_stderr() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
}

#[tokio::main]
async fn serve(checked: &Checked, registry: &Registry) -> anyhow::Result<()> {
    let address = checked.address();
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}"))?;
    let pool = Pool::start(checked.plan(registry)?)?;
    let stop = CancellationToken::new();
    let stopped = stop.clone().cancelled_owned();
    let settings = checked.http_settings()?;
    let mut http = tokio::spawn(http::serve(listener, pool.clone(), settings, stopped));
    let home = match checked.wyoming() {
        Some((address, settings)) => {
            let listener = TcpListener::bind(address)
                .await
                .with_context(|| format!("cannot listen on {address}"))?;
            let stopped = stop.clone().cancelled_owned();
            let serving = wyoming::serve(listener, pool.clone(), settings, stopped);
            Some(tokio::spawn(serving))
        }
        None => None,
    };
    print!("{}", checked.summary(registry)?);
    let limit = Duration::from_secs(checked.config.drain_seconds);
    let done = tokio::select! {
        asked = launch::asked_to_end() => asked,
        served = &mut http => served?.context("cannot serve"),
    };
    tracing::info!("shutting down");
    stop.cancel();
    pool.shutdown(limit).await;
    // Answers that are still on their way; who does not read them does not keep the server.
    let _ = tokio::time::timeout(ANSWERS, async {
        if !http.is_finished() {
            let _ = http.await;
        }
        if let Some(home) = home {
            let _ = home.await;
        }
    })
    .await;
    done
}
