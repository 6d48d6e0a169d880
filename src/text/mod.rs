//! Text: tokenizers, UTF-8 streaming, languages, line breaking.

pub mod languages;
pub mod lines;
pub mod tokenizer;
pub mod utf8;

pub use tokenizer::{Tokenizer, TokenizerError};
pub use utf8::Utf8Stream;
