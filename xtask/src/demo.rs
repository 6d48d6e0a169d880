//! `cargo xtask demo`: from a fresh clone to a transcript and a spoken sentence.

use crate::{setup, sh};
use anyhow::{Context, Result};
use clap::Args;
use serde::Deserialize;
use std::{fs, path::Path, process::Command};

/// Options of `cargo xtask demo`.
#[derive(Args)]
pub struct Options {
    /// Model of the catalogue that transcribes.
    #[arg(long, default_value = "whisper-base")]
    model: String,

    /// Model of the catalogue that speaks.
    #[arg(long, default_value = "piper-joe")]
    voice_model: String,
}

/// Public-domain speech that lies in the checkout.
const SAMPLE: &str = "tests/speech/jfk.flac";
/// What the demo says.
const SENTENCE: &str = "Dr. Smith paid $42 for the third edition. It works on this machine!";

/// What `audiocpp_cli --timing-json` writes.
#[derive(Deserialize)]
struct Timing {
    load_seconds: f64,
    inputs: Vec<Input>,
}

#[derive(Deserialize)]
struct Input {
    audio_seconds: f64,
    seconds: f64,
}

/// Installs the tools, builds the release program, fetches the models, transcribes the sample,
/// speaks a sentence and transcribes that.
pub fn run(options: &Options) -> Result<()> {
    setup::run(&setup::Options::default())?;
    let program = sh::release_cli()?;
    sh::run(Command::new(&program).args(["models", "pull", &options.model]))?;

    let timing = sh::target_dir().join("demo-timing.json");
    let mut transcribe = Command::new(&program);
    transcribe.args([
        "transcribe",
        SAMPLE,
        "--model",
        &options.model,
        "--timing-json",
    ]);
    sh::run(transcribe.arg(&timing).current_dir(sh::root()))?;
    let json = fs::read(&timing).with_context(|| timing.display().to_string())?;
    println!("\n{}", summary(&serde_json::from_slice(&json)?));
    speak(&program, options)?;
    println!(
        "Next: {0} transcribe your-recording.mp3\n      {0} say \"Hello!\" -o hello.mp3",
        sh::relative(&program)
    );
    Ok(())
}

/// Says the sentence into a file, and shows what the recogniser makes of it.
fn speak(program: &Path, options: &Options) -> Result<()> {
    sh::run(Command::new(program).args(["models", "pull", &options.voice_model]))?;
    let speech = sh::target_dir().join("demo.wav");
    let mut say = Command::new(program);
    say.args(["say", SENTENCE, "--model", &options.voice_model, "--out"]);
    sh::run(say.arg(&speech))?;
    let mut transcribe = Command::new(program);
    transcribe.args(["transcribe", "--model", &options.model]);
    sh::run(transcribe.arg(&speech))?;
    println!();
    Ok(())
}

/// The real-time factor is processing time over recording time: below 1 is faster than speech.
fn summary(timing: &Timing) -> String {
    let (audio, seconds) = timing
        .inputs
        .iter()
        .fold((0.0, 0.0), |(audio, seconds), i| {
            (audio + i.audio_seconds, seconds + i.seconds)
        });
    format!(
        "{audio:.1} s of speech in {seconds:.2} s: real-time factor {:.3} ({:.1} times real time); \
         model loaded in {:.2} s",
        seconds / audio,
        audio / seconds,
        timing.load_seconds
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_time_factor_is_processing_over_recording() {
        let json = r#"{"load_seconds": 0.5, "inputs": [{"audio_seconds": 11.0, "seconds": 2.2}]}"#;
        let text = summary(&serde_json::from_str(json).unwrap());
        assert_eq!(
            text,
            "11.0 s of speech in 2.20 s: real-time factor 0.200 (5.0 times real time); \
             model loaded in 0.50 s"
        );
    }
}
