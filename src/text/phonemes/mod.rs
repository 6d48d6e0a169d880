//! From words to sounds: phonemizers, and what they give.
//!
//! Pronunciations are IPA as espeak-ng writes it (`həlˈoʊ`): stress marks stand right before the
//! vowel, length is `ː`. Models that were trained on other symbols translate from there.

mod align;
pub mod english;
mod espeak;
pub mod misaki;
mod pronounce;
mod tokens;
mod vocabulary;

pub use espeak::Espeak;
pub use pronounce::{Pronunciations, pronounce};
pub use tokens::{Token, tokens};
pub use vocabulary::{VocabularyError, vocabulary};

use std::ops::Range;

use super::error::{Error, Result};

/// The names that [`for_language`] takes.
pub const NAMES: [&str; 2] = ["english", "espeak"];

/// The phonemizer for a language as espeak-ng writes it (`en-us`, `de`): the one called `wanted`,
/// else our own for American English, else espeak-ng.
pub fn for_language(language: &str, wanted: Option<&str>) -> Result<Box<dyn Phonemizer>> {
    let english = super::languages::code(language) == Some("en");
    match wanted {
        Some("english") if english => Ok(Box::new(english::English)),
        Some("english") => Err(Error::Language {
            phonemizer: "english",
            language: language.to_owned(),
        }),
        Some("espeak" | "espeak-ng") => Ok(Box::new(Espeak::new(language)?)),
        Some(other) => Err(Error::UnknownPhonemizer {
            name: other.to_owned(),
        }),
        None => {
            let american = matches!(
                language.to_lowercase().replace('_', "-").as_str(),
                "en" | "en-us" | "english"
            );
            let ours = american || english && !Espeak::is_installed();
            if ours {
                Ok(Box::new(english::English))
            } else {
                Ok(Box::new(Espeak::new(language)?))
            }
        }
    }
}

/// Turns text of one language into phonemes.
pub trait Phonemizer: Send + Sync {
    /// What it is called in messages (`english`, `espeak-ng`).
    fn name(&self) -> &'static str;

    /// The words of `text` in order, with their sounds and the marks around them. Text without
    /// words gives no words; what cannot be pronounced is left out.
    fn phonemize(&self, text: &str) -> Result<Phonemes>;
}

/// A text as phonemes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phonemes {
    /// The words in order.
    pub words: Vec<PhonemeWord>,
}

/// One word and its sounds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhonemeWord {
    /// IPA with stress marks, without blanks; never empty.
    pub ipa: String,
    /// Its bytes in the text that was phonemized, without the marks around it.
    pub text: Range<usize>,
    /// It is spoken as one with the word before, without a blank (`ɪnðə` for "in the").
    pub joined: bool,
    /// Marks before it: `“`, `(`, `—`.
    pub before: String,
    /// Marks after it: `,` `;` `:` `.` `?` `!` `…` `—` `”` `)`.
    pub after: String,
}

/// What a symbol is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// A sound, a stress mark or a length mark of a word.
    Sound,
    /// A mark before or after a word.
    Mark,
    /// The blank between two words.
    Blank,
}

/// One character of the phonemes of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The character.
    pub char: char,
    /// What it is.
    pub kind: SymbolKind,
    /// Index of its word in [`Phonemes::words`]; a blank belongs to the word before it.
    pub word: usize,
}

impl Phonemes {
    /// All characters in the order in which models read them: words with their marks, a blank
    /// between words.
    pub fn symbols(&self) -> Vec<Symbol> {
        let mut symbols = Vec::new();
        for (index, word) in self.words.iter().enumerate() {
            if let Some(before) = index.checked_sub(1)
                && !word.joined
            {
                symbols.push(Symbol {
                    char: ' ',
                    kind: SymbolKind::Blank,
                    word: before,
                });
            }
            let parts = [
                (&word.before, SymbolKind::Mark),
                (&word.ipa, SymbolKind::Sound),
                (&word.after, SymbolKind::Mark),
            ];
            for (text, kind) in parts {
                symbols.extend(text.chars().map(|char| Symbol {
                    char,
                    kind,
                    word: index,
                }));
            }
        }
        symbols
    }

    /// The same as one string: `həlˈoʊ, wˈɜːld.`
    pub fn ipa(&self) -> String {
        self.symbols().iter().map(|symbol| symbol.char).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_belong_to_their_words() {
        let word = |ipa: &str, joined, before: &str, after: &str| PhonemeWord {
            ipa: ipa.into(),
            joined,
            before: before.into(),
            after: after.into(),
            ..PhonemeWord::default()
        };
        let phonemes = Phonemes {
            words: vec![
                word("ɪn", false, "“", ""),
                word("ðə", true, "", ""),
                word("wˈɜːld", false, "", ".”"),
            ],
        };
        assert_eq!(phonemes.ipa(), "“ɪnðə wˈɜːld.”");
        let symbols = phonemes.symbols();
        let of = |word| symbols.iter().filter(move |symbol| symbol.word == word);
        assert_eq!(of(0).count(), 3);
        assert_eq!(of(1).count(), 3, "two sounds and the blank after them");
        let marks = of(2).filter(|symbol| symbol.kind == SymbolKind::Mark);
        assert_eq!(marks.count(), 2);
    }
}
