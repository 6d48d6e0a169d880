//! What `codec` may be told.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::{args::ModelArgs, convert_voice::args::SoundArgs};

/// `codec ...`.
#[derive(Clone, Debug, Subcommand)]
pub enum Tokens {
    /// Turn a recording into a token file
    Encode(Box<Encode>),
    /// Turn a token file into sound
    Decode(Box<Decode>),
}

/// `codec encode INPUT`.
#[derive(Clone, Debug, Args)]
pub struct Encode {
    /// The recording, or - for standard input
    #[arg(value_name = "INPUT")]
    pub input: String,
    /// The model
    #[command(flatten)]
    pub model: ModelArgs,
    /// Another option of the family; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub request_option: Vec<String>,
    /// File for the tokens, or - for standard output
    #[arg(short, long, value_name = "FILE")]
    pub out: PathBuf,
    /// Form of the tokens [default: json for a name that ends in .json, else binary]
    #[arg(short, long, value_name = "FORMAT", value_parser = ["binary", "json"])]
    pub format: Option<String>,
}

/// `codec decode TOKENS`.
#[derive(Clone, Debug, Args)]
pub struct Decode {
    /// The token file, or - for standard input
    #[arg(value_name = "TOKENS")]
    pub input: PathBuf,
    /// The model
    #[command(flatten)]
    pub model: ModelArgs,
    /// Recording whose voice is taken, instead of that of the tokens
    #[arg(long, value_name = "FILE")]
    pub voice_from: Option<PathBuf>,
    /// Another option of the family; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub request_option: Vec<String>,
    /// Where the sound goes
    #[command(flatten)]
    pub out: SoundArgs,
}
