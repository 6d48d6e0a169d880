//! `cargo xtask bench`: this engine beside others, on the same weights and recordings.

mod asr;
mod listen;
mod sep;
mod table;
mod tts;
mod vad;
mod workshop;

use anyhow::Result;
use clap::{Args, Subcommand};

/// Options of `cargo xtask bench`.
#[derive(Args)]
pub struct Options {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Speech recognition: audiocpp, whisper.cpp and faster-whisper.
    Asr(asr::Options),
    /// Speech synthesis: audiocpp and onnxruntime.
    Tts(tts::Options),
    /// Source separation: audiocpp and PyTorch's demucs.
    Sep(sep::Options),
    /// How well synthesis is understood and how clean it is: audiocpp, piper and kokoro-onnx.
    Listen(listen::Options),
    /// Voice activity: audiocpp and onnxruntime, and how often it is right.
    Vad(vad::Options),
}

/// Runs the benchmark.
pub fn run(options: &Options) -> Result<()> {
    match &options.task {
        Task::Asr(options) => asr::run(options),
        Task::Tts(options) => tts::run(options),
        Task::Sep(options) => sep::run(options),
        Task::Listen(options) => listen::run(options),
        Task::Vad(options) => vad::run(options),
    }
}
