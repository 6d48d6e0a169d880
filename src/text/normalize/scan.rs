//! The place in a text where rules look for something to write out.

use super::language::Language;

/// A place in a text.
#[derive(Clone, Debug)]
pub struct Scan<'a> {
    /// The whole text.
    pub text: &'a str,
    /// The place, in bytes.
    pub at: usize,
    /// Habits of its language, if they are known.
    pub language: Option<&'static Language>,
    /// What stands right before the place was a number of any kind.
    pub numeric: bool,
}

/// What a rule found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// How many bytes of the text it is.
    pub bytes: usize,
    /// How it is spoken; empty for what is not.
    pub words: String,
}

impl Said {
    /// `bytes` of the text are spoken as `words`.
    pub fn new(bytes: usize, words: impl Into<String>) -> Option<Said> {
        Some(Said {
            bytes,
            words: words.into(),
        })
    }
}

impl<'a> Scan<'a> {
    /// The start of `text`.
    pub fn new(text: &'a str, language: Option<&'static Language>) -> Self {
        Scan {
            text,
            at: 0,
            language,
            numeric: false,
        }
    }

    /// The text from here on.
    pub fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The character before.
    pub fn before(&self) -> Option<char> {
        self.text[..self.at].chars().next_back()
    }

    /// The text before, without blanks at its end.
    fn earlier(&self) -> &'a str {
        self.text[..self.at].trim_end()
    }

    /// The word before, over blanks; without the point of an abbreviation.
    pub fn word_before(&self) -> &'a str {
        let earlier = self.earlier();
        let earlier = earlier.strip_suffix('.').unwrap_or(earlier);
        let end = |c: char| !(c.is_alphanumeric() || c == '\'' || c == '’');
        earlier.rsplit(end).next().unwrap_or("")
    }

    /// Whether a word may begin here.
    pub fn at_word_start(&self) -> bool {
        !self.before().is_some_and(char::is_alphanumeric)
    }

    /// Bytes of the word or number here, 0 if there is none.
    pub fn word_length(&self) -> usize {
        let rest = self.rest();
        // Raised digits and fractions are words of their own.
        let inside = |c: char| c.is_alphabetic() || c.is_ascii_digit() || is_joiner(c);
        rest.find(|c| !inside(c)).unwrap_or(rest.len())
    }
}

/// Marks that belong to the letter before, such as accents written apart.
fn is_joiner(c: char) -> bool {
    matches!(u32::from(c), 0x300..=0x36f | 0x200c..=0x200d)
}

/// Whether the text goes on with something that would make what stands before it a part of a
/// longer word.
pub fn goes_on(rest: &str) -> bool {
    rest.chars().next().is_some_and(char::is_alphanumeric)
}
