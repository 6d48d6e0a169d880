//! `cargo xtask bench sep`: a network of Demucs here and in PyTorch, on the same weights and sound.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};

use super::{table::median, workshop::Workshop};
use crate::sh;

/// Options of `cargo xtask bench sep`.
#[derive(Args)]
pub struct Options {
    /// Released size: htdemucs, htdemucs_6s or hdemucs_mmi.
    #[arg(long, default_value = "htdemucs")]
    network: String,
    /// Seconds of sound.
    #[arg(long, default_value_t = 60)]
    seconds: u16,
    /// CPU threads of both engines.
    #[arg(long, default_value_t = 2)]
    threads: u16,
    /// Processes of each engine, in turn.
    #[arg(long, default_value_t = 3)]
    rounds: u16,
    /// Print the whole record as JSON.
    #[arg(long)]
    json: bool,
}

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Run {
    /// Seconds that it took.
    wall: f64,
    /// Seconds of sound.
    sound: f64,
    /// Greatest resident size of the process so far.
    peak_mib: f64,
}

/// The runs of both engines, by round.
#[derive(Default, Serialize)]
struct Measured {
    audiocpp: Vec<Run>,
    pytorch: Vec<Run>,
}

/// Builds and prepares what is missing, runs the engines in turn, prints the table.
pub fn run(options: &Options) -> Result<()> {
    let workshop = Workshop::for_separation()?;
    let (model, clip) = workshop.network(&options.network, options.seconds)?;
    sh::run(&mut timer("build"))?;
    let threads = options.threads.to_string();
    let mut measured = Measured::default();
    for round in 1..=options.rounds {
        eprintln!("round {round} of {}", options.rounds);
        let mut ours = timer("run");
        ours.args(["--quiet", "--"]);
        let ours = ours.arg(&model).arg(&clip).arg(&threads);
        measured.audiocpp.push(last(ours)?);
        let driver = sh::root().join("xtask/peers/demucs_driver.py");
        let mut peer = workshop.python(&driver);
        let peer = peer.arg(&model).arg(&clip).arg(&threads);
        measured.pytorch.push(last(peer)?);
    }
    match options.json {
        true => println!("{}", serde_json::to_string_pretty(&measured)?),
        false => println!("{}", markdown(options, &measured)),
    }
    Ok(())
}

/// The program that times our engine, started by Cargo, which tells it where ggml's libraries lie.
fn timer(what: &str) -> Command {
    let mut command = sh::cargo([what]);
    command.args(["--release", "--locked", "--package", "audiocpp-demucs"]);
    command.args(["--example", "time"]);
    command
}

/// The last run that a process tells of: earlier ones find no graphs and no pages ready.
fn last(command: &mut Command) -> Result<Run> {
    let output = sh::capture(command)?;
    let line = output.lines().last().context("the process told nothing")?;
    let run: Run = serde_json::from_str(line)?;
    ensure!(run.wall > 0.0, "a run without time");
    Ok(run)
}

/// One row. The ratio is the median of each round's ratio, since the speed of a shared machine
/// changes from round to round.
fn markdown(options: &Options, measured: &Measured) -> String {
    let of = |runs: &[Run], value: fn(&Run) -> f64| median(runs.iter().map(value).collect());
    let most = |runs: &[Run]| runs.iter().map(|run| run.peak_mib).fold(0.0, f64::max);
    let pairs = measured.audiocpp.iter().zip(&measured.pytorch);
    let ratio = median(
        pairs
            .map(|(ours, theirs)| ours.wall / theirs.wall)
            .collect(),
    );
    format!(
        "{}, {} threads, median of {} runs.\n\n\
         | sound | seconds | PyTorch | ratio | MiB | PyTorch |\n\
         |--:|--:|--:|--:|--:|--:|\n\
         | {:.0} s | {:.2} | {:.2} | {ratio:.2} | {:.0} | {:.0} |",
        options.network,
        options.threads,
        options.rounds,
        of(&measured.audiocpp, |run| run.sound),
        of(&measured.audiocpp, |run| run.wall),
        of(&measured.pytorch, |run| run.wall),
        most(&measured.audiocpp),
        most(&measured.pytorch),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_round_by_round() {
        let run = |wall: f64| Run {
            wall,
            sound: 60.0,
            peak_mib: 10.0 * wall,
        };
        let measured = Measured {
            // The second round met a machine that was ten times slower.
            audiocpp: vec![run(1.0), run(10.0), run(1.0)],
            pytorch: vec![run(2.0), run(20.0), run(4.0)],
        };
        let options = Options {
            network: "n".into(),
            seconds: 60,
            threads: 2,
            rounds: 3,
            json: false,
        };
        let text = markdown(&options, &measured);
        assert!(
            text.ends_with("| 60 s | 1.00 | 4.00 | 0.50 | 100 | 200 |"),
            "{text}"
        );
    }
}
