//! What the language model is asked.

use audiocpp::{
    engine::{Error, Result},
    text::tokenizer::{Tokenizer, TokenizerError},
};

use crate::config::AsrTokens;

const SYSTEM: &str =
    "You are a helpful assistant that transcribes audio input into text output in JSON format.";
const KEYS: &str = "transcribe it with these keys: Start time, End time, Speaker ID, Content";

/// Ids, and where the frames of the sound are in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsrPrompt {
    /// Ids.
    pub tokens: Vec<u32>,
    /// The first frame.
    pub first: usize,
}

/// The prompt for a sound of `frames` frames and `seconds` seconds, with names and words to expect.
///
/// # Errors
/// A context that the vocabulary cannot spell (`BadInput`).
pub fn prompt(
    tokenizer: &Tokenizer,
    tokens: &AsrTokens,
    frames: usize,
    seconds: f64,
    context: Option<&str>,
) -> Result<AsrPrompt> {
    let request = match context.map(str::trim).filter(|text| !text.is_empty()) {
        Some(context) => format!(
            "\nThis is a {seconds:.2} seconds audio, with extra info: {context}\n\nPlease {KEYS}"
        ),
        None => format!("\nThis is a {seconds:.2} seconds audio, please {KEYS}"),
    };
    let spell = || -> Result<AsrPrompt, TokenizerError> {
        let mut ids = vec![tokens.turn_start];
        ids.extend(tokenizer.encode(&format!("system\n{SYSTEM}"))?);
        ids.push(tokens.turn_end);
        ids.extend(tokenizer.encode("\n")?);
        ids.push(tokens.turn_start);
        ids.extend(tokenizer.encode("user\n")?);
        ids.push(tokens.start);
        let first = ids.len();
        ids.resize(first + frames, tokens.frame);
        ids.push(tokens.end);
        ids.extend(tokenizer.encode(&request)?);
        ids.push(tokens.turn_end);
        ids.extend(tokenizer.encode("\n")?);
        Ok(AsrPrompt { tokens: ids, first })
    };
    spell().map_err(|error| Error::bad_input(error.to_string()))
}
