//! What the command line may say.

use std::path::PathBuf;

use audiocpp::engine::TranscriptFormat;
use clap::{
    ArgAction, Args, Parser, Subcommand,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};

use crate::{
    convert_voice::args::ConvertVoice,
    say::args::{Say, Voices},
    separate::args::Separate,
    tokens::args::Tokens,
    vad::args::{SpeechOnlyArgs, Vad},
};

/// Run open speech and audio models on CPU, NVIDIA, AMD, Vulkan and Metal.
#[derive(Debug, Parser)]
#[command(
    name = "audiocpp_cli",
    disable_version_flag = true,
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 done, 1 an input or a model failed, 2 the command cannot work as \
                  written, 130 interrupted."
)]
pub struct Cli {
    /// Print the version, the commit and the backends that are loaded
    #[arg(short = 'V', long)]
    pub version: bool,
    /// List the families of models that this program runs
    #[arg(long)]
    pub list_loaders: bool,
    /// With --list-loaders: print JSON
    #[arg(long, requires = "list_loaders")]
    pub json: bool,
    /// Say more on stderr (-vv: even more); RUST_LOG has the last word
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// The flag form, as in audio.cpp: --task asr --model M --audio FILE ..., --task vad --audio FILE
    /// ..., --task sep --audio FILE ..., --task vc --audio FILE --voice-ref FILE, or --task tts --text ...
    #[command(flatten)]
    pub flags: FlagForm,
    /// The friendly form
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Turn speech into text
    Transcribe(Box<Transcribe>),
    /// Find out where there is speech
    Vad(Box<Vad>),
    /// Turn text into speech
    Say(Box<Say>),
    /// List the voices of a model, with samples if wanted
    Voices(Box<Voices>),
    /// Split mixes into stems
    Separate(Box<Separate>),
    /// Turn sound into tokens, and tokens into sound
    #[command(subcommand)]
    Codec(Tokens),
    /// Give the words of a recording the voice of another
    ConvertVoice(Box<ConvertVoice>),
    /// List, fetch, show and remove models
    #[command(subcommand)]
    Models(Models),
    /// Write a model as one GGUF file, settings and all
    Convert(Box<Convert>),
    /// Compare what a device computes with the CPU, stage by stage
    Check(Box<Check>),
    /// Measure how long a task takes, in fresh processes
    Bench(Box<Bench>),
    /// List the devices that models can run on
    Devices {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Find out why a GPU is not used; exit code 0: all is well, 1: warnings, 2: faults
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Print text for a bug report, without names of users and home folders
        #[arg(long, conflicts_with = "json")]
        bundle: bool,
        /// Look only; do not try each GPU in a process of its own
        #[arg(long)]
        no_trial: bool,
        /// How long a trial may take before it counts as hanging; compiling kernels for the first
        /// time can take a minute
        #[arg(long, value_name = "SECONDS", default_value_t = 180)]
        trial_limit: u32,
    },
    /// Show which fast paths a device takes, and why
    FastPaths {
        /// The device
        #[command(flatten)]
        device: DeviceArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Take a device step by step, for `doctor`
    #[command(hide = true)]
    DeviceTrial {
        /// The device; or a backend, with --load-only
        device: String,
        /// Only load the backend
        #[arg(long)]
        load_only: bool,
    },
}

/// Where to run.
#[derive(Clone, Debug, Default, Args)]
pub struct DeviceArgs {
    /// Where to run: auto, cpu, hip:1, cuda:0, vulkan, metal, rocm:pci=0000:c1:00.0
    #[arg(long)]
    pub device: Option<String>,
    /// Kind of device, as in audio.cpp: cpu, cuda, hip (alias rocm), vulkan, metal, best
    #[arg(long)]
    pub backend: Option<String>,
    /// Fail when the device lacks an operation, instead of running it on the CPU
    #[arg(long)]
    pub strict_device: bool,
    /// Let the CPU stand in for a device that was named and fails
    #[arg(long, value_name = "DEVICE", value_parser = ["cpu"])]
    pub fallback: Option<String>,
    /// Force a fast path on or off (see `fast-paths`); may be repeated
    #[arg(long, value_name = "NAME=on|off|auto")]
    pub fast_path: Vec<String>,
    /// Do not let the backend capture and replay its kernels as GPU graphs
    #[arg(long)]
    pub no_gpu_graphs: bool,
}

/// `--task ... --audio ...`: one flag for everything.
#[derive(Debug, Args)]
pub struct FlagForm {
    /// What to do: asr, vad (see `vad` for its flags), sep (see `separate`), vc (see `convert-voice`)
    /// or tts (see `say`)
    #[arg(long)]
    pub task: Option<String>,
    /// Recording to read; may be repeated
    #[arg(long, value_name = "FILE")]
    pub audio: Vec<String>,
    /// Folder of recordings to read
    #[arg(long, value_name = "FOLDER")]
    pub batch_audio_dir: Vec<String>,
    /// How to run: offline
    #[arg(long, default_value = "offline")]
    pub mode: String,
    /// Folder for the results
    #[arg(long, value_name = "FOLDER", conflicts_with = "out")]
    pub out_dir: Option<PathBuf>,
    /// The model
    #[command(flatten)]
    pub model: ModelArgs,
    /// The request
    #[command(flatten)]
    pub request: TranscribeArgs,
}

/// `check`: the same model and input on a device and on the CPU.
#[derive(Debug, Args)]
pub struct Check {
    /// The model, and the device to be checked
    #[command(flatten)]
    pub model: ModelArgs,
    /// Largest relative difference of a stage [default: 1e-4 for f32 weights, else 1e-2]
    #[arg(long)]
    pub tolerance: Option<f64>,
    /// Compute this often in fresh processes and compare every bit of the results
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub repeat: u16,
    /// Compare with the results kept in this file instead of the CPU's
    #[arg(long, value_name = "FILE", conflicts_with = "write_golden")]
    pub golden: Option<PathBuf>,
    /// Keep the device's results in this file
    #[arg(long, value_name = "FILE")]
    pub write_golden: Option<PathBuf>,
    /// Print a digest of the device's results and nothing else
    #[arg(long, conflicts_with_all = ["golden", "write_golden", "json"])]
    pub digest: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `bench INPUT...`: a task under the clock.
#[derive(Clone, Debug, Args)]
pub struct Bench {
    /// Recordings: files, folders or patterns; a run takes all of them in turn
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<String>,
    /// What to do: asr, vad or sep
    #[arg(long, default_value = "asr")]
    pub task: String,
    /// The model
    #[command(flatten)]
    pub model: ModelArgs,
    /// Processes for each setting
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub rounds: u16,
    /// Runs of each process before the clock starts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(0..=100))]
    pub warmup: u16,
    /// Timed runs of each process
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub reps: u16,
    /// Compare every usable device (or --devices) with every type of weights (or --weight-types)
    #[arg(long)]
    pub matrix: bool,
    /// Devices to compare
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub devices: Vec<String>,
    /// Types of weights to compare
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub weight_types: Vec<String>,
    /// Language of the speech as an ISO 639 code; auto finds out
    #[arg(short, long)]
    pub language: Option<String>,
    /// Give every word its times
    #[arg(short, long)]
    pub words: bool,
    /// Hypotheses of beam search; 1 is greedy
    #[arg(long, visible_alias = "num-beams", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub beam_size: Option<u16>,
    /// Another option of the family; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub request_option: Vec<String>,
    /// Print JSON, with every single run
    #[arg(long)]
    pub json: bool,
    /// Print Markdown tables; the default
    #[arg(long)]
    pub markdown: bool,
    /// Write the JSON to this file
    #[arg(long, value_name = "FILE")]
    pub json_out: Option<PathBuf>,
    /// Write the Markdown to this file
    #[arg(long, value_name = "FILE")]
    pub markdown_out: Option<PathBuf>,
    /// Measure one round in this process, for `bench`
    #[arg(long, hide = true)]
    pub measure: bool,
}

/// `transcribe INPUT...`.
#[derive(Debug, Args)]
pub struct Transcribe {
    /// Recordings: files, folders, patterns such as 'talks/*.mp3', or - for standard input
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<String>,
    /// The model
    #[command(flatten)]
    pub model: ModelArgs,
    /// The request
    #[command(flatten)]
    pub request: TranscribeArgs,
}

/// Which model, and how it is loaded.
#[derive(Clone, Debug, Default, Args)]
pub struct ModelArgs {
    /// Catalogue id (see `models list`), or a model file or folder [default: the first that does it]
    #[arg(short, long)]
    pub model: Option<String>,
    /// Family of the model; found out from its files when absent
    #[arg(long)]
    pub family: Option<String>,
    /// Where to run
    #[command(flatten)]
    pub device: DeviceArgs,
    /// CPU threads [default: one for every physical core]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Type to keep weights in: native, f32, f16, bf16, q8_0, ...
    #[arg(long, value_name = "TYPE")]
    pub weight_type: Option<String>,
    /// Never use the network
    #[arg(long, env = "AUDIOCPP_OFFLINE", value_parser = clap::builder::FalseyValueParser::new())]
    pub offline: bool,
    /// An option of the family for loading; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub load_option: Vec<String>,
    /// An option of the family for the session; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub session_option: Vec<String>,
}

/// `convert`.
#[derive(Debug, Args)]
pub struct Convert {
    /// A model file or folder
    #[arg(value_name = "MODEL")]
    pub model: String,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    pub out: PathBuf,
    /// Type of the weights: f32, f16, bf16, q8_0 or q4_K; what errors are heard in keeps 16 bits
    #[arg(long, value_name = "TYPE", default_value = "f16")]
    pub weight_type: String,
    /// Family of the model; found out from its files when absent
    #[arg(long)]
    pub family: Option<String>,
}

/// What is wanted from the recordings.
#[derive(Clone, Debug, Default, Args)]
pub struct TranscribeArgs {
    /// Language of the speech as an ISO 639 code; auto finds out
    #[arg(short, long)]
    pub language: Option<String>,
    /// Write English, whatever is spoken
    #[arg(long)]
    pub translate: bool,
    /// Text that comes before: names, spelling and style to follow
    #[arg(long)]
    pub prompt: Option<String>,
    /// Give every word its times
    #[arg(short, long)]
    pub words: bool,
    /// Hypotheses of beam search; 1 is greedy
    #[arg(long, visible_alias = "num-beams", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub beam_size: Option<u16>,
    /// Sampling temperature, 0 to 1
    #[arg(long)]
    pub temperature: Option<f32>,
    /// Seed of the sampler
    #[arg(long)]
    pub seed: Option<u64>,
    /// Leaving out what is no speech
    #[command(flatten)]
    pub speech: SpeechOnlyArgs,
    /// Another option of the family; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub request_option: Vec<String>,
    /// Form of the result [default: from the name given to -o, else text]
    #[arg(short, long, value_parser = formats())]
    pub format: Option<TranscriptFormat>,
    /// Most characters in a line of subtitles
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub max_line_width: Option<u16>,
    /// Most lines in a subtitle
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub max_line_count: Option<u16>,
    /// Most words in a line of subtitles
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub max_words_per_line: Option<u16>,
    /// Where to write: a file, a folder, or - for standard output [default: -]
    #[arg(short, long, value_name = "PATH")]
    pub out: Option<PathBuf>,
    /// Also write the plain text to this file
    #[arg(long, value_name = "FILE")]
    pub text_out: Option<PathBuf>,
    /// Also write the words and their times to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub words_out: Option<PathBuf>,
    /// Also write the segments to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub segments_out: Option<PathBuf>,
    /// Also write to this file, as JSON, how long loading and each input took
    #[arg(long, value_name = "FILE")]
    pub timing_json: Option<PathBuf>,
}

/// The forms by name; clap suggests the nearest for a slip.
fn formats() -> impl TypedValueParser<Value = TranscriptFormat> {
    let names = TranscriptFormat::ALL.map(|format| match format {
        TranscriptFormat::Text => PossibleValue::new(format.name()).alias("txt"),
        TranscriptFormat::VerboseJson => PossibleValue::new(format.name()).alias("verbose-json"),
        _ => PossibleValue::new(format.name()),
    });
    PossibleValuesParser::new(names).try_map(|name| match name.as_str() {
        "txt" => Ok(TranscriptFormat::Text),
        "verbose-json" => Ok(TranscriptFormat::VerboseJson),
        name => name.parse::<TranscriptFormat>(),
    })
}

/// `models ...`.
#[derive(Debug, Subcommand)]
pub enum Models {
    /// List the models that are known by name
    List {
        /// Only those that are on this machine
        #[arg(long)]
        installed: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Fetch models, going on with interrupted downloads
    Pull {
        /// Catalogue ids
        #[arg(required = true)]
        ids: Vec<String>,
        /// Fetch again what is installed
        #[arg(long)]
        force: bool,
        /// Only check that they are installed
        #[arg(long, env = "AUDIOCPP_OFFLINE", value_parser = clap::builder::FalseyValueParser::new())]
        offline: bool,
    },
    /// Show what is known about a model
    Show {
        /// Catalogue id
        id: String,
        /// Read every installed file and compare its hash
        #[arg(long)]
        verify: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove models from this machine
    Rm {
        /// Catalogue ids
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Print the folder of an installed model, or of all models
    Path {
        /// Catalogue id
        id: Option<String>,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn both_forms_fill_the_same_fields() {
        let flags = Cli::parse_from([
            "audiocpp_cli",
            "--task",
            "asr",
            "--family",
            "whisper",
            "--model",
            "m",
            "--audio",
            "a.wav",
            "--backend",
            "cpu",
            "--threads",
            "2",
            "--num-beams",
            "3",
            "--words-out",
            "w",
        ]);
        assert_eq!(flags.flags.audio, ["a.wav"]);
        let friendly = Cli::parse_from([
            "audiocpp_cli",
            "transcribe",
            "a.wav",
            "--family",
            "whisper",
            "-m",
            "m",
            "--backend",
            "cpu",
            "--threads",
            "2",
            "--beam-size",
            "3",
            "--words-out",
            "w",
        ]);
        let Some(Command::Transcribe(friendly)) = friendly.command else {
            panic!("a command was given");
        };
        assert_eq!(friendly.inputs, ["a.wav"]);
        assert_eq!(
            format!("{:?}", friendly.model),
            format!("{:?}", flags.flags.model)
        );
        assert_eq!(
            format!("{:?}", friendly.request),
            format!("{:?}", flags.flags.request)
        );
    }
}
