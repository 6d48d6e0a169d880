//! What `separate` may be told.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, ValueEnum};

use crate::args::ModelArgs;

/// `separate INPUT...`.
#[derive(Clone, Debug, Default, Args)]
pub struct Separate {
    /// Mixes: files, folders, patterns such as 'songs/*.mp3', or - for standard input
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<String>,
    /// The model
    #[command(flatten)]
    pub model: ModelArgs,
    /// The request and the results
    #[command(flatten)]
    pub request: SeparateArgs,
}

/// What is wanted, in both forms of the command.
#[derive(Clone, Debug, Default, Args)]
pub struct SeparateArgs {
    /// Write this stem, and everything else as no_STEM
    #[arg(long, value_name = "STEM", conflicts_with = "stems")]
    pub two_stems: Option<String>,
    /// What everything else is made of: the sum of the other stems, or the difference of the mix
    /// and the stem
    #[arg(long, value_name = "HOW", default_value = "sum", value_parser = ["sum", "difference"], requires = "two_stems")]
    pub rest: String,
    /// Write these stems only
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub stems: Vec<String>,
    /// Average over this many random shifts in time, for models that take them
    #[arg(long, value_name = "N")]
    pub shifts: Option<u16>,
    /// Part of a segment that overlaps the next, for models that take it
    #[arg(long, value_name = "PART")]
    pub overlap: Option<f64>,
    /// Seconds of a segment, for models that take them
    #[arg(long, value_name = "SECONDS")]
    pub segment: Option<f64>,
    /// Seed of the shifts
    #[arg(long)]
    pub seed: Option<u64>,
    /// Another option of the family; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub request_option: Vec<String>,
    /// Folder for the stems
    #[arg(
        short,
        long,
        visible_alias = "out-dir",
        value_name = "FOLDER",
        default_value = "separated"
    )]
    pub out: PathBuf,
    /// Names of the files in it, of {track}, {stem}, {model} and {ext}
    #[arg(long, value_name = "TEMPLATE", default_value = "{track}/{stem}.{ext}")]
    pub filename: String,
    /// Form of the stems
    #[arg(short, long, value_name = "FORMAT", default_value = "wav", value_parser = audiocpp::audio::Codec::NAMES)]
    pub format: String,
    /// Samples of wav, flac and pcm [default: s16]
    #[arg(long, value_name = "KIND", value_parser = crate::codec::SAMPLES)]
    pub samples: Option<String>,
    /// What becomes of a stem that is louder than full scale
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    pub clip_mode: ClipMode,
    /// Also write what became of each input, as JSONL
    #[arg(long, value_name = "FILE")]
    pub manifest: Option<PathBuf>,
}

/// What becomes of samples beyond full scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ClipMode {
    /// The whole stem is made quieter
    #[default]
    Rescale,
    /// They are cut off just below full scale
    Clamp,
    /// They stay where the format has room for them
    None,
}

/// `--task sep ...`: audio.cpp's flags for separation.
#[derive(Debug, Parser)]
#[command(name = "audiocpp_cli", disable_version_flag = true)]
pub struct SeparateFlags {
    /// What to do: sep
    #[arg(long)]
    pub task: String,
    /// Mix to read; may be repeated
    #[arg(long, value_name = "FILE", required_unless_present = "batch_audio_dir")]
    pub audio: Vec<String>,
    /// Folder of mixes to read
    #[arg(long, value_name = "FOLDER")]
    pub batch_audio_dir: Vec<String>,
    /// How to run: offline
    #[arg(long, default_value = "offline", value_parser = ["offline"])]
    pub mode: String,
    /// The model
    #[command(flatten)]
    pub model: ModelArgs,
    /// The request and the results
    #[command(flatten)]
    pub request: SeparateArgs,
    /// Say more on stderr (-vv: even more); RUST_LOG has the last word
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}

impl SeparateFlags {
    /// The same as the friendly form.
    pub fn into_separate(self) -> Separate {
        let mut inputs = self.audio;
        inputs.extend(self.batch_audio_dir);
        Separate {
            inputs,
            model: self.model,
            request: self.request,
        }
    }
}
