//! Development tasks: `cargo xtask <task>`.
//!
//! `setup` installs the build tools, `demo` goes from a fresh clone to a transcript, `test` runs
//! every check, `bench` measures beside other engines, `bindings` regenerates ggml's bindings.

mod bench;
mod bindings;
mod demo;
mod docs;
mod pack;
mod setup;
mod sh;
mod test;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Development tasks of audiocpp.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Xtask {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install the tools the build needs, or say the exact command that does.
    Setup(setup::Options),
    /// Build, fetch the default model, transcribe a sample and say how fast it went.
    Demo(demo::Options),
    /// Run every check: format, lints, unit, integration and real-model tests, documentation.
    Test(test::Options),
    /// Measure this engine beside others on the same weights.
    Bench(bench::Options),
    /// Build a GPU backend as a pack that the programs load at run time.
    Pack(pack::Options),
    /// Regenerate external/ggml/src/bindings.rs from ggml's headers.
    Bindings(bindings::Options),
    /// Check the documentation alone: rustdoc, relative links, documented commands.
    Docs,
}

fn main() -> ExitCode {
    let result = match Xtask::parse().task {
        Task::Setup(options) => setup::run(&options),
        Task::Demo(options) => demo::run(&options),
        Task::Test(options) => test::run(&options),
        Task::Bench(options) => bench::run(&options),
        Task::Pack(options) => pack::run(&options),
        Task::Bindings(options) => bindings::run(&options),
        Task::Docs => docs::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
