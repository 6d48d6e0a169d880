//! Text: tokenizers, UTF-8 streaming, languages, line breaking, and the way from a text to speech:
//! spans, chunks, phonemes.

pub mod chunks;
mod error;
pub mod languages;
pub mod lines;
pub mod normalize;
pub mod phonemes;
pub mod sentences;
pub mod spans;
pub mod tokenizer;
pub mod utf8;

pub use error::{Error, Result};
pub use spans::SpokenText;
pub use tokenizer::{Tokenizer, TokenizerError};
pub use utf8::Utf8Stream;
