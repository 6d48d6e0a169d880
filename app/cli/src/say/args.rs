//! What `say` and `voices` may be told.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser};

use crate::args::ModelArgs;

/// `say TEXT`.
#[derive(Clone, Debug, Default, Args)]
pub struct Say {
    /// What to say; - reads it from standard input
    #[arg(value_name = "TEXT")]
    pub text: Option<String>,
    /// The model
    #[command(flatten)]
    pub model: ModelArgs,
    /// The request and the results
    #[command(flatten)]
    pub request: SayArgs,
}

/// What is wanted, in both forms of the command.
#[derive(Clone, Debug, Default, Args)]
pub struct SayArgs {
    /// Text to read from a file, a folder of .txt files, or a pattern; may be repeated
    #[arg(long, value_name = "FILE")]
    pub text_file: Vec<String>,
    /// Many texts: a JSONL file with one request a line ({"text": ..., "id": ..., "voice": ...})
    #[arg(long, value_name = "FILE", conflicts_with = "text_file")]
    pub batch: Option<PathBuf>,
    /// One of the model's voices (see `voices`)
    #[arg(long, visible_alias = "voice-id")]
    pub voice: Option<String>,
    /// Language of the text as an ISO 639 code [default: the voice's]
    #[arg(short, long)]
    pub language: Option<String>,
    /// 1 is the model's own speed, 2 twice as fast
    #[arg(long, visible_alias = "speaking-rate", value_name = "FACTOR")]
    pub speed: Option<f32>,
    /// Seed of the sampler: the same seed gives the same sound
    #[arg(long)]
    pub seed: Option<u64>,
    /// How to say it, for models that take instructions
    #[arg(long, visible_alias = "instruct", value_name = "TEXT")]
    pub instructions: Option<String>,
    /// Recording of a voice to copy, for models that clone; once for each speaker of the text
    #[arg(long, visible_alias = "voice-ref", value_name = "FILE")]
    pub reference: Vec<PathBuf>,
    /// The words of the first recording
    #[arg(long, value_name = "TEXT", requires = "reference")]
    pub reference_text: Option<String>,
    /// Speak numbers, dates and abbreviations as they are written
    #[arg(long)]
    pub no_normalize: bool,
    /// Who finds the sounds of words: english (built in) or espeak (espeak-ng, if installed)
    #[arg(long, value_name = "NAME", value_parser = audiocpp::text::phonemes::NAMES)]
    pub phonemizer: Option<String>,
    /// File of words and their IPA, one a line
    #[arg(long, value_name = "FILE")]
    pub dictionary: Option<PathBuf>,
    /// Another option of the family; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub request_option: Vec<String>,
    /// Where to write: a file, a folder for many texts, or - for standard output
    #[arg(short, long, value_name = "PATH")]
    pub out: Option<PathBuf>,
    /// Form of the sound [default: from the name given to -o, else wav]
    #[arg(short, long, value_name = "FORMAT", value_parser = audiocpp::audio::Codec::NAMES)]
    pub format: Option<String>,
    /// Samples of wav, flac and pcm [default: s16]
    #[arg(long, value_name = "KIND", value_parser = crate::codec::SAMPLES)]
    pub samples: Option<String>,
    /// Samples a second of the result [default: the model's]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(8000..=192_000))]
    pub rate: Option<u32>,
    /// Scale so that the loudest sample has this level, in decibels of full scale
    #[arg(long, value_name = "DB", allow_negative_numbers = true, conflicts_with_all = ["loudness", "stream"])]
    pub peak: Option<f64>,
    /// Scale to this loudness, in LUFS (podcasts have -16)
    #[arg(
        long,
        value_name = "LUFS",
        allow_negative_numbers = true,
        conflicts_with = "stream"
    )]
    pub loudness: Option<f64>,
    /// Write sound as soon as it is there, also to standard output
    #[arg(long)]
    pub stream: bool,
    /// Play it, as soon as it is there
    #[arg(long)]
    pub play: bool,
    /// Also write the words and their times, as JSON or subtitles: NAME.json, NAME.srt, NAME.vtt
    #[arg(long, value_name = "FILE")]
    pub timings: Option<PathBuf>,
    /// Also write what became of each text, as JSONL [default for many texts: manifest.jsonl in
    /// their folder]
    #[arg(long, value_name = "FILE")]
    pub manifest: Option<PathBuf>,
}

/// `--task tts ...`: audio.cpp's flags for speech.
#[derive(Debug, Parser)]
#[command(name = "audiocpp_cli", disable_version_flag = true)]
pub struct SpeechFlags {
    /// What to do: tts
    #[arg(long)]
    pub task: String,
    /// What to say
    #[arg(long)]
    pub text: Option<String>,
    /// How to run: offline or streaming
    #[arg(long, default_value = "offline", value_parser = ["offline", "streaming"])]
    pub mode: String,
    /// The model
    #[command(flatten)]
    pub model: ModelArgs,
    /// The request and the results
    #[command(flatten)]
    pub request: SayArgs,
    /// Say more on stderr (-vv: even more); RUST_LOG has the last word
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}

/// `voices`.
#[derive(Debug, Args)]
pub struct Voices {
    /// The model
    #[command(flatten)]
    pub model: ModelArgs,
    /// Speak a sentence with each voice into this folder
    #[arg(long, value_name = "FOLDER")]
    pub samples: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl SpeechFlags {
    /// The same as the friendly form.
    pub fn into_say(self) -> Say {
        let mut request = self.request;
        request.stream |= self.mode == "streaming";
        Say {
            text: self.text,
            model: self.model,
            request,
        }
    }
}
