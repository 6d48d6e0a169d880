//! Writing out what is not written as it is spoken: numbers, dates, times, money, units,
//! abbreviations, addresses, symbols.
//!
//! A text is read from left to right. Where a word may begin, the rules are asked in turn; the
//! first that knows what stands there says how it is spoken. What no rule knows stays as it is.
//! Languages are data; a language without data passes through, except for pronunciations that
//! the user wrote into the text.

mod language;
mod languages;
mod numbers;
mod rules;
mod scan;

pub use language::{Abbreviation, Language, Place};

use std::ops::Range;

use super::spans::SpokenText;
use scan::Scan;

/// Writes out texts of one language.
#[derive(Clone, Copy, Debug)]
pub struct Normalizer {
    language: Option<&'static Language>,
}

impl Normalizer {
    /// A normalizer for a language given as a code, tag or English name. Of languages without
    /// data it only takes blanks and invisible characters in order.
    pub fn new(language: &str) -> Self {
        Normalizer {
            language: Language::find(language),
        }
    }

    /// A normalizer that writes nothing out.
    pub fn off() -> Self {
        Normalizer { language: None }
    }

    /// Whether it knows the habits of its language.
    pub fn knows_language(&self) -> bool {
        self.language.is_some()
    }

    /// The spoken form of `text`, which starts at byte `at` of the original.
    pub fn normalize(&self, text: &str, at: usize) -> SpokenText {
        let mut out = Writer::default();
        let mut scan = Scan::new(text, self.language);
        while let Some(next) = text[scan.at..].chars().next() {
            let start = at + scan.at;
            if let Some((ipa, bytes)) = rules::given::pronunciation(scan.rest()) {
                out.word(ipa, start);
                out.spoken.push_given(ipa, ipa, start..start + bytes);
                scan.at += bytes;
            } else if let Some(said) = rules::apply(&scan) {
                scan.numeric = scan.rest()[..said.bytes].contains(|c: char| c.is_ascii_digit());
                out.rewritten(&said.words, start..start + said.bytes);
                scan.at += said.bytes;
                continue;
            } else {
                let bytes = scan.word_length().max(next.len_utf8());
                let written = &scan.rest()[..bytes];
                if next.is_whitespace() {
                    out.blank(start..start + bytes);
                } else {
                    out.word(written, start);
                    out.spoken.push_verbatim(written, start);
                }
                scan.at += bytes;
            }
            scan.numeric = false;
        }
        out.spoken
    }
}

/// Puts the spoken text together: one blank between words, none at the ends.
#[derive(Default)]
struct Writer {
    spoken: SpokenText,
    /// A blank of the original that is not written yet.
    blank: Option<Range<usize>>,
    /// The last thing of the original is not spoken.
    dropped: bool,
    /// The last thing was rewritten, so that what follows has to be kept apart.
    rewritten: bool,
}

impl Writer {
    fn blank(&mut self, original: Range<usize>) {
        self.blank.get_or_insert(original);
    }

    /// Gets ready for `words`, which stand at byte `at` of the original.
    fn word(&mut self, words: &str, at: usize) {
        let closes = words.starts_with(['.', ',', ';', ':', '!', '?', ')', '”']);
        let blank = self.blank.take().filter(|_| !(self.dropped && closes));
        let last = self.spoken.text().chars().next_back();
        let touching = last.is_some_and(char::is_alphanumeric)
            && words.starts_with(char::is_alphanumeric)
            && self.rewritten;
        match blank {
            Some(blank) if last.is_some() => self.spoken.push(" ", blank),
            None if touching => self.spoken.push(" ", at..at),
            _ => {}
        }
        (self.dropped, self.rewritten) = (false, false);
    }

    /// Writes what a rule says; blanks around it are wishes, not words.
    fn rewritten(&mut self, words: &str, original: Range<usize>) {
        let plain = words.trim();
        if words.starts_with(' ') {
            self.blank(original.start..original.start);
        }
        if plain.is_empty() {
            self.dropped = true;
        } else {
            self.rewritten = true;
            self.word(plain, original.start);
            self.spoken.push(plain, original.clone());
            self.rewritten = true;
        }
        if words.ends_with(' ') {
            self.blank(original.end..original.end);
        }
    }
}

/// A number in English words.
pub(crate) fn count_in_english(n: u64) -> String {
    Language::find("en").map_or(String::new(), |language| language.count(n))
}
