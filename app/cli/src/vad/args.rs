//! What `vad` may be told, and what `transcribe --vad` takes of it.

use std::path::PathBuf;

use audiocpp::engine::{ActivityFormat, ChunkRules, DetectSpeechRequest, SpeechOnly, SpeechRules};
use clap::{
    ArgAction, Args, Parser,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};

use crate::{
    args::ModelArgs,
    failure::{Failure, Outcome},
};

/// `vad INPUT...`.
#[derive(Debug, Args)]
pub struct Vad {
    /// Recordings: files, folders, patterns such as 'talks/*.mp3', or - for standard input
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<String>,
    /// The model
    #[command(flatten)]
    pub model: ModelArgs,
    /// The request and the results
    #[command(flatten)]
    pub request: VadArgs,
}

/// What is wanted, in both forms of the command.
#[derive(Clone, Debug, Default, Args)]
pub struct VadArgs {
    /// What counts as speech
    #[command(flatten)]
    pub rules: RuleArgs,
    /// Windows for other models
    #[command(flatten)]
    pub chunks: ChunkArgs,
    /// Give windows instead of stretches of speech; JSON has both
    #[arg(long)]
    pub chunked: bool,
    /// With JSON: also the probability of every frame
    #[arg(long)]
    pub probabilities: bool,
    /// Another option of the family; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub request_option: Vec<String>,
    /// Form of the result [default: from the name given to -o, else text]
    #[arg(short, long, value_parser = formats())]
    pub format: Option<ActivityFormat>,
    /// Where to write: a file, a folder, or - for standard output [default: -]
    #[arg(short, long, value_name = "PATH")]
    pub out: Option<PathBuf>,
    /// Also write the stretches of speech to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub segments_out: Option<PathBuf>,
    /// Also write the windows to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub vad_chunks_out: Option<PathBuf>,
    /// Also write to this file, as JSON, how long loading and each input took
    #[arg(long, value_name = "FILE")]
    pub timing_json: Option<PathBuf>,
}

/// What counts as speech.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct RuleArgs {
    /// Probability at which speech begins, 0 to 1 [default: 0.5]
    #[arg(long, value_name = "P")]
    pub vad_threshold: Option<f64>,
    /// Probability below which speech ends [default: 0.15 below the threshold]
    #[arg(long, value_name = "P")]
    pub vad_neg_threshold: Option<f64>,
    /// Shorter speech is dropped [default: 0.25]
    #[arg(long, value_name = "SECONDS")]
    pub vad_min_speech_seconds: Option<f64>,
    /// Shorter silence does not end speech [default: 0.1]
    #[arg(long, value_name = "SECONDS")]
    pub vad_min_silence_seconds: Option<f64>,
    /// Added at both ends of speech [default: 0.03]
    #[arg(long, value_name = "SECONDS")]
    pub vad_padding_seconds: Option<f64>,
    /// Longer speech is cut, at its longest silence if it has one
    #[arg(long, value_name = "SECONDS")]
    pub vad_max_speech_seconds: Option<f64>,
}

/// `transcribe --vad`.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct SpeechOnlyArgs {
    /// Recognise speech alone: silence, music and noise are left out, times stay as they are
    #[arg(long)]
    pub vad: bool,
    /// Model that finds the speech: catalogue id, file or folder [default: silero-vad]
    #[arg(long, value_name = "MODEL")]
    pub vad_model: Option<String>,
    /// What counts as speech
    #[command(flatten)]
    pub rules: RuleArgs,
    /// How much of it the recogniser is given at a time
    #[command(flatten)]
    pub chunks: ChunkArgs,
}

/// How speech is gathered into windows.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct ChunkArgs {
    /// Longest window [default: 45; of transcribe: 30]
    #[arg(long, value_name = "SECONDS")]
    pub vad_chunk_max_seconds: Option<f64>,
    /// Speech after a longer silence begins a new window [default: 0.5; of transcribe: 1.5]
    #[arg(long, value_name = "SECONDS")]
    pub vad_chunk_merge_gap_seconds: Option<f64>,
    /// Sound before and after the speech of a window [default: 0.25; of transcribe: 0.2]
    #[arg(long, value_name = "SECONDS")]
    pub vad_chunk_padding_seconds: Option<f64>,
}

impl RuleArgs {
    /// `rules` with what was given in their place.
    pub fn over(&self, rules: SpeechRules) -> SpeechRules {
        SpeechRules {
            threshold: self.vad_threshold.unwrap_or(rules.threshold),
            neg_threshold: self.vad_neg_threshold.or(rules.neg_threshold),
            min_speech: self.vad_min_speech_seconds.unwrap_or(rules.min_speech),
            min_silence: self.vad_min_silence_seconds.unwrap_or(rules.min_silence),
            padding: self.vad_padding_seconds.unwrap_or(rules.padding),
            max_speech: self.vad_max_speech_seconds.or(rules.max_speech),
            ..rules
        }
    }
}

impl SpeechOnlyArgs {
    /// What was asked for, if anything; flags that would do nothing without --vad are refused.
    pub fn speech_only(&self) -> Outcome<Option<SpeechOnly>> {
        if !self.vad {
            return match *self == SpeechOnlyArgs::default() {
                true => Ok(None),
                false => Err(Failure::usage(
                    "the --vad-... flags do nothing without --vad",
                )),
            };
        }
        let usual = SpeechOnly::default();
        let chunks = self.chunks.over(usual.chunks);
        chunks.check().map_err(Failure::setup)?;
        let mut rules = self.rules.over(SpeechRules::default());
        rules.check().map_err(Failure::setup)?;
        let longest = rules.max_speech.unwrap_or(f64::INFINITY);
        rules.max_speech = Some(longest.min(chunks.max_speech()));
        let detect = DetectSpeechRequest {
            rules,
            ..usual.detect
        };
        Ok(Some(SpeechOnly { detect, chunks }))
    }
}

impl ChunkArgs {
    /// `rules` with what was given in their place.
    pub fn over(&self, rules: ChunkRules) -> ChunkRules {
        ChunkRules {
            max_length: self.vad_chunk_max_seconds.unwrap_or(rules.max_length),
            merge_gap: self.vad_chunk_merge_gap_seconds.unwrap_or(rules.merge_gap),
            padding: self.vad_chunk_padding_seconds.unwrap_or(rules.padding),
        }
    }
}

/// `--task vad ...`: audio.cpp's flags for voice activity.
#[derive(Debug, Parser)]
#[command(name = "audiocpp_cli", disable_version_flag = true)]
pub struct VadFlags {
    /// What to do: vad
    #[arg(long)]
    pub task: String,
    /// Recording to read; may be repeated
    #[arg(long, value_name = "FILE")]
    pub audio: Vec<String>,
    /// Folder of recordings to read
    #[arg(long, value_name = "FOLDER")]
    pub batch_audio_dir: Vec<String>,
    /// How to run: offline
    #[arg(long, default_value = "offline", value_parser = ["offline"])]
    pub mode: String,
    /// Folder for the results
    #[arg(long, value_name = "FOLDER", conflicts_with = "out")]
    pub out_dir: Option<PathBuf>,
    /// The model
    #[command(flatten)]
    pub model: ModelArgs,
    /// The request and the results
    #[command(flatten)]
    pub request: VadArgs,
    /// Say more on stderr (-vv: even more); RUST_LOG has the last word
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}

/// The forms by name; clap suggests the nearest for a slip.
fn formats() -> impl TypedValueParser<Value = ActivityFormat> {
    let names = ActivityFormat::ALL.map(|format| match format {
        ActivityFormat::Text => PossibleValue::new(format.name()).alias("txt"),
        _ => PossibleValue::new(format.name()),
    });
    PossibleValuesParser::new(names).try_map(|name| match name.as_str() {
        "txt" => Ok(ActivityFormat::Text),
        name => name.parse::<ActivityFormat>(),
    })
}
