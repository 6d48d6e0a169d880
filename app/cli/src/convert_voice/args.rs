//! What `convert-voice` may be told.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser};

use crate::args::ModelArgs;

/// `convert-voice INPUT`.
#[derive(Clone, Debug, Default, Args)]
pub struct ConvertVoice {
    /// The recording whose words are wanted, or - for standard input
    #[arg(value_name = "INPUT")]
    pub input: String,
    /// The model
    #[command(flatten)]
    pub model: ModelArgs,
    /// The request and the result
    #[command(flatten)]
    pub request: ConvertArgs,
}

/// What is wanted, in both forms of the command.
#[derive(Clone, Debug, Default, Args)]
pub struct ConvertArgs {
    /// Recording of the wanted voice
    #[arg(
        short,
        long,
        visible_alias = "voice-ref",
        alias = "target-voice",
        value_name = "FILE"
    )]
    pub reference: PathBuf,
    /// Seed of the sampler, for models that have one
    #[arg(long)]
    pub seed: Option<u64>,
    /// Another option of the family; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub request_option: Vec<String>,
    /// Where the sound goes
    #[command(flatten)]
    pub out: SoundArgs,
}

/// Where sound goes, and in what form.
#[derive(Clone, Debug, Default, Args)]
pub struct SoundArgs {
    /// File for the sound, or - for standard output
    #[arg(short, long, value_name = "FILE")]
    pub out: PathBuf,
    /// Form of the sound [default: from the name given to -o, else wav]
    #[arg(short, long, value_name = "FORMAT", value_parser = audiocpp::audio::Codec::NAMES)]
    pub format: Option<String>,
    /// Samples of wav, flac and pcm [default: s16]
    #[arg(long, value_name = "KIND", value_parser = crate::codec::SAMPLES)]
    pub samples: Option<String>,
}

/// `--task vc ...`: audio.cpp's flags for voice conversion.
#[derive(Debug, Parser)]
#[command(name = "audiocpp_cli", disable_version_flag = true)]
pub struct ConvertFlags {
    /// What to do: vc
    #[arg(long)]
    pub task: String,
    /// The recording whose words are wanted
    #[arg(long, alias = "source-audio", value_name = "FILE")]
    pub audio: String,
    /// How to run: offline
    #[arg(long, default_value = "offline", value_parser = ["offline"])]
    pub mode: String,
    /// The model
    #[command(flatten)]
    pub model: ModelArgs,
    /// The request and the result
    #[command(flatten)]
    pub request: ConvertArgs,
    /// Say more on stderr (-vv: even more); RUST_LOG has the last word
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}

impl ConvertFlags {
    /// The same as the friendly form.
    pub fn into_convert(self) -> ConvertVoice {
        ConvertVoice {
            input: self.audio,
            model: self.model,
            request: self.request,
        }
    }
}
