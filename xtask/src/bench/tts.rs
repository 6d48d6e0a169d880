//! `cargo xtask bench tts`: a Piper voice or Kokoro here and in onnxruntime, on the same symbols.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};

use super::{
    table::median,
    workshop::{Workshop, file_ending},
};
use crate::sh;

/// Options of `cargo xtask bench tts`.
#[derive(Args)]
pub struct Options {
    /// Model of the catalogue, of the families piper or kokoro.
    #[arg(long, default_value = "piper-joe")]
    model: String,
    /// CPU threads of both engines.
    #[arg(long, default_value_t = 2)]
    threads: u16,
    /// Processes of each engine, in turn.
    #[arg(long, default_value_t = 5)]
    rounds: u16,
    /// Print the whole record as JSON.
    #[arg(long)]
    json: bool,
}

/// One text in one process.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Run {
    /// Seconds until the first samples were there.
    first: f64,
    /// Seconds until all were.
    all: f64,
    /// Seconds of sound.
    sound: f64,
    /// Greatest resident size of the process so far.
    peak_mib: f64,
}

/// All runs of one text.
#[derive(Serialize)]
struct Measured {
    audiocpp: Vec<Run>,
    onnxruntime: Vec<Run>,
}

/// Builds, fetches and prepares what is missing, runs the engines in turn, prints the table.
pub fn run(options: &Options) -> Result<()> {
    let workshop = Workshop::for_speech()?;
    let folder = sh::model_folder(&sh::release_cli()?, &options.model)?;
    let (family, weights) = match folder.join("vocab.json").exists() {
        true => ("kokoro", folder.clone()),
        false => ("piper", file_ending(&folder, "onnx")?),
    };
    let sentences = workshop.sentences(family, &weights)?;
    sh::run(&mut timer("build", family))?;
    let mut measured: Vec<Measured> = Vec::new();
    for round in 1..=options.rounds {
        eprintln!("round {round} of {}", options.rounds);
        let threads = options.threads.to_string();
        let mut ours = timer("run", family);
        let ours = ours.args(["--quiet", "--"]).arg(&folder).arg(&threads);
        let audiocpp = speak(ours, &sentences)?;
        let driver = sh::root().join(format!("xtask/peers/{family}_driver.py"));
        let mut peer = workshop.python(&driver);
        let onnxruntime = speak(peer.arg(&weights).arg(&threads), &sentences)?;
        ensure!(
            audiocpp.len() == onnxruntime.len(),
            "the engines spoke different texts"
        );
        measured.resize_with(audiocpp.len(), || Measured {
            audiocpp: Vec::new(),
            onnxruntime: Vec::new(),
        });
        for ((slot, ours), theirs) in measured.iter_mut().zip(audiocpp).zip(onnxruntime) {
            slot.audiocpp.push(ours);
            slot.onnxruntime.push(theirs);
        }
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&measured)?);
    } else {
        println!("{}", markdown(options, &measured));
    }
    Ok(())
}

/// The program that times our engine, started by Cargo, which tells it where ggml's libraries lie.
fn timer(what: &str, family: &str) -> Command {
    let mut command = sh::cargo([what]);
    command.args(["--release", "--locked", "--example", "time", "--package"]);
    command.arg(format!("audiocpp-{family}"));
    command
}

/// Gives every text to a process twice in a row, and keeps the second time: the first finds no
/// graphs, no pages and no threads ready, in either engine.
fn speak(command: &mut Command, sentences: &str) -> Result<Vec<Run>> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().context("the process has no input")?;
    let twice: String = sentences
        .lines()
        .map(|line| format!("{line}\n{line}\n"))
        .collect();
    input.write_all(twice.as_bytes())?;
    drop(input);
    let output = child.wait_with_output()?;
    ensure!(
        output.status.success(),
        "{command:?} ended with {}",
        output.status
    );
    let text = String::from_utf8(output.stdout)?;
    let runs: Vec<Run> = text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    Ok(runs.into_iter().skip(1).step_by(2).collect())
}

/// A row for each text. Times are medians; ratios are medians of each round's ratio, since the
/// speed of a shared machine changes from round to round.
fn markdown(options: &Options, measured: &[Measured]) -> String {
    let row = |m: &Measured| {
        let of = |runs: &[Run], value: fn(&Run) -> f64| median(runs.iter().map(value).collect());
        let ratio = |value: fn(&Run) -> f64| {
            let pairs = m.audiocpp.iter().zip(&m.onnxruntime);
            median(
                pairs
                    .map(|(ours, theirs)| value(ours) / value(theirs))
                    .collect(),
            )
        };
        let most = |runs: &[Run]| runs.iter().map(|run| run.peak_mib).fold(0.0, f64::max);
        let all = |run: &Run| run.all;
        let first = |run: &Run| run.first;
        format!(
            "| {:.1} s | {:.3} | {:.3} | {:.2} | {:.3} | {:.3} | {:.2} | {:.0} | {:.0} |",
            of(&m.audiocpp, |run| run.sound),
            of(&m.audiocpp, all),
            of(&m.onnxruntime, all),
            ratio(all),
            of(&m.audiocpp, first),
            of(&m.onnxruntime, first),
            ratio(first),
            most(&m.audiocpp),
            most(&m.onnxruntime),
        )
    };
    let head = format!(
        "{}, {} threads, median of {} runs; seconds here, in onnxruntime, and the ratio.\n\n\
         | speech | all s | ort | ratio | first s | ort | ratio | MiB | ort |\n\
         |--:|--:|--:|--:|--:|--:|--:|--:|--:|",
        options.model, options.threads, options.rounds
    );
    let rows: Vec<String> = measured.iter().map(row).collect();
    format!("{head}\n{}", rows.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_round_by_round() {
        let run = |all: f64| Run {
            first: all / 2.0,
            all,
            sound: 1.0,
            peak_mib: 10.0 * all,
        };
        let measured = Measured {
            // The second round met a machine that was ten times slower.
            audiocpp: vec![run(1.0), run(10.0), run(1.0)],
            onnxruntime: vec![run(2.0), run(20.0), run(4.0)],
        };
        let options = Options {
            model: "v".into(),
            threads: 2,
            rounds: 3,
            json: false,
        };
        let text = markdown(&options, &[measured]);
        let row = "| 1.0 s | 1.000 | 4.000 | 0.50 | 0.500 | 2.000 | 0.50 | 100 | 200 |";
        assert!(text.ends_with(row), "{text}");
    }
}
