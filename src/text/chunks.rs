//! The stretches that a model speaks one at a time.

use super::{phonemes::Phonemes, spans::SpokenText};

/// What stands after a chunk: how long the pause is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Boundary {
    /// A long sentence was cut between words.
    Word,
    /// A long sentence was cut at a comma, semicolon, colon or dash.
    Clause,
    /// The end of a sentence.
    Sentence,
    /// The end of a paragraph, or of the text.
    Paragraph,
}

/// A stretch that is spoken at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// What is said, with its map to the original text.
    pub text: SpokenText,
    /// The same as sounds; their `text` ranges are offsets in `text`. Without words for models
    /// that read text.
    pub phonemes: Phonemes,
    /// What comes after it.
    pub ends: Boundary,
}

/// How much a model speaks at a time, in symbols of [`Phonemes::symbols`] for models that read
/// phonemes, else in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLimits {
    /// Sentences of a paragraph are joined while they fit in this; 0 keeps them apart.
    pub join: usize,
    /// A sentence that is longer than this is cut.
    pub max: usize,
}
