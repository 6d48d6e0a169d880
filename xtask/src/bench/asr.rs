//! `cargo xtask bench asr`: load time, speed, memory and errors of Whisper in three engines.

use super::{
    table::{Measured, Report, Run},
    workshop::{Clip, Workshop},
};
use crate::sh;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use std::{fmt, path::PathBuf};

/// Options of `cargo xtask bench asr`.
#[derive(Args)]
pub struct Options {
    /// Model of the catalogue.
    #[arg(long, default_value = "whisper-base")]
    model: String,
    /// One round, without the long recording.
    #[arg(long)]
    quick: bool,
    /// CPU threads of every engine.
    #[arg(long, default_value_t = 2)]
    threads: u16,
    /// Times that every engine hears every recording.
    #[arg(long, default_value_t = 3)]
    rounds: u16,
    /// Only these engines; may be repeated.
    #[arg(long, value_enum)]
    engine: Vec<Engine>,
    /// Print the whole record as JSON.
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print the table as Markdown.
    #[arg(long)]
    markdown: bool,
}

/// A program that transcribes; the order is the table's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// This project, weights as published (f16).
    #[value(name = "audiocpp")]
    Audiocpp,
    /// This project, weights in 8 bits.
    #[value(name = "audiocpp-q8_0")]
    AudiocppQ8,
    /// whisper.cpp through pywhispercpp's wheel.
    #[value(name = "whisper.cpp")]
    WhisperCpp,
    /// faster-whisper on CTranslate2, weights in 8 bits.
    #[value(name = "faster-whisper-int8")]
    FasterWhisper,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            self.to_possible_value()
                .expect("no engine is hidden")
                .get_name(),
        )
    }
}

/// Where each engine finds its program and the weights in its format.
struct Models {
    program: PathBuf,
    ct2: PathBuf,
    ggml: PathBuf,
}

/// Builds, fetches and prepares what is missing, runs the engines in turn, prints the table.
pub fn run(options: &Options) -> Result<()> {
    let workshop = Workshop::open()?;
    let models = models(&options.model, &workshop)?;
    let mut clips = workshop.clips()?;
    let mut rounds = options.rounds;
    if options.quick {
        clips.retain(|clip| clip.name != "long");
        rounds = 1;
    }
    let chosen = |engine: &Engine| options.engine.is_empty() || options.engine.contains(engine);
    let engines: Vec<Engine> = Engine::value_variants()
        .iter()
        .copied()
        .filter(chosen)
        .collect();
    let mut measured: Vec<Measured> = clips
        .iter()
        .flat_map(|clip| {
            engines
                .iter()
                .map(move |engine| Measured::new(clip, engine.to_string()))
        })
        .collect();
    for round in 1..=rounds {
        // The engines alternate, so that a slow spell of the machine meets all of them.
        for (at, slot) in measured.iter_mut().enumerate() {
            let (clip, engine) = (&clips[at / engines.len()], engines[at % engines.len()]);
            eprintln!("round {round} of {rounds}: {engine} on {}", clip.name);
            slot.runs.push(transcribe(
                engine,
                &models,
                &workshop,
                clip,
                options.threads,
            )?);
        }
    }
    let report = Report {
        model: options.model.clone(),
        threads: options.threads,
        rounds,
        measured,
    };
    let text = if options.json {
        serde_json::to_string_pretty(&report)?
    } else if options.markdown {
        report.markdown()
    } else {
        report.text()
    };
    println!("{text}");
    Ok(())
}

/// Our program in release, and the model in the formats of the three engines.
fn models(id: &str, workshop: &Workshop) -> Result<Models> {
    let program = sh::release_cli()?;
    let ct2 = sh::model_folder(&program, id)?;
    let ggml = workshop.ggml_model(id, &ct2)?;
    Ok(Models { program, ct2, ggml })
}

/// One run of `engine` in a process of its own.
fn transcribe(
    engine: Engine,
    models: &Models,
    workshop: &Workshop,
    clip: &Clip,
    threads: u16,
) -> Result<Run> {
    let (script, model) = match engine {
        Engine::Audiocpp | Engine::AudiocppQ8 => ("audiocpp_driver.py", &models.ct2),
        Engine::WhisperCpp => ("whisper_cpp_driver.py", &models.ggml),
        Engine::FasterWhisper => ("faster_whisper_driver.py", &models.ct2),
    };
    let mut driver = workshop.python(&sh::root().join("xtask/peers").join(script));
    driver
        .arg(model)
        .arg(workshop.recording(clip))
        .arg(threads.to_string());
    match engine {
        Engine::Audiocpp => driver.arg("native").arg(&models.program),
        Engine::AudiocppQ8 => driver.arg("q8_0").arg(&models.program),
        Engine::WhisperCpp | Engine::FasterWhisper => &mut driver,
    };
    let output = sh::capture(&mut driver)?;
    let line = output.lines().last().unwrap_or_default();
    serde_json::from_str(line).with_context(|| format!("{script} printed `{line}`"))
}
