//! Pronunciations that the user gives: in the text, and in a dictionary.

use std::collections::BTreeMap;

use super::{PhonemeWord, Phonemes, Phonemizer};
use crate::text::{
    error::{Error, Result},
    spans::{Given, SpokenText},
};

/// Words and how they are pronounced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pronunciations {
    /// IPA by word in small letters.
    words: BTreeMap<String, String>,
}

impl Pronunciations {
    /// From pairs of a word and its IPA; capitals of words do not matter.
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let words = pairs
            .into_iter()
            .map(|(word, ipa)| (key(word), ipa.trim().to_owned()));
        Pronunciations {
            words: words.collect(),
        }
    }

    /// Reads a dictionary: on each line a word, blanks or a tab, and its IPA; `#` begins a comment.
    pub fn parse(text: &str) -> Result<Self> {
        let mut words = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let plain = line.trim();
            if plain.is_empty() || plain.starts_with('#') {
                continue;
            }
            let (word, ipa) =
                plain
                    .split_once(char::is_whitespace)
                    .ok_or_else(|| Error::Dictionary {
                        line: index + 1,
                        found: plain.chars().take(60).collect(),
                    })?;
            words.insert(key(word), ipa.trim().to_owned());
        }
        Ok(Pronunciations { words })
    }

    /// The pairs, words in small letters.
    pub fn pairs(&self) -> &BTreeMap<String, String> {
        &self.words
    }
}

fn key(word: &str) -> String {
    word.trim().to_lowercase().replace('’', "'")
}

/// The phonemes of `text`: of what the user gave as it was given, of the rest as the phonemizer
/// finds them.
pub fn pronounce(
    phonemizer: &dyn Phonemizer,
    text: &SpokenText,
    known: &Pronunciations,
) -> Result<Phonemes> {
    let mut phonemes = phonemizer.phonemize(text.text())?;
    for word in &mut phonemes.words {
        if let Some(ipa) = known.words.get(&key(&text.text()[word.text.clone()])) {
            word.ipa = ipa.split_whitespace().collect();
        }
    }
    phonemes.words.retain(|word| !word.ipa.is_empty());
    for given in text.given() {
        insert(&mut phonemes.words, given, text.text());
    }
    Ok(phonemes)
}

/// Puts the given words in the place of those that the phonemizer made of their letters.
fn insert(words: &mut Vec<PhonemeWord>, given: &Given, text: &str) {
    let first = words.partition_point(|word| word.text.end <= given.text.start);
    let last = words
        .partition_point(|word| word.text.start < given.text.end)
        .max(first);
    let replaced: Vec<PhonemeWord> = words.drain(first..last).collect();
    let marks = |side: fn(&PhonemeWord) -> &String, word: Option<&PhonemeWord>| {
        word.map_or_else(String::new, |word| side(word).clone())
    };
    let mut before = marks(|word| &word.before, replaced.first());
    // What is no word to the phonemizer leaves its marks in the text.
    let after = match replaced.last() {
        Some(last) => last.after.clone(),
        None => text[given.text.end..]
            .chars()
            .take_while(|c| ".,;:!?…".contains(*c))
            .collect(),
    };
    if replaced.is_empty() && first > 0 {
        // Without a word of their own those marks went to the word before.
        let earlier = &mut words[first - 1];
        let own = earlier
            .after
            .strip_suffix(after.as_str())
            .map(str::to_owned);
        let direct = text[earlier.text.end..].starts_with(|c: char| ".,;:!?…".contains(c));
        if let Some(own) = own.filter(|_| !direct) {
            earlier.after = own;
        }
    }
    let parts: Vec<&str> = given.ipa.split_whitespace().collect();
    let made = parts.iter().enumerate().map(|(index, ipa)| PhonemeWord {
        ipa: (*ipa).to_owned(),
        text: given.text.clone(),
        joined: false,
        before: std::mem::take(&mut before),
        after: if index + 1 == parts.len() {
            after.clone()
        } else {
            String::new()
        },
    });
    let made: Vec<PhonemeWord> = made.collect();
    words.splice(first..first, made);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{normalize::Normalizer, phonemes::english::English};

    fn spoken(text: &str, dictionary: &str) -> String {
        let text = Normalizer::new("en").normalize(text, 0);
        let known = Pronunciations::parse(dictionary).unwrap();
        pronounce(&English, &text, &known).unwrap().ipa()
    }

    #[test]
    fn given_sounds_replace_found_ones() {
        assert_eq!(
            spoken("Say [[ˈhɛlo wˈɜld]], please.", ""),
            "sˈeɪ ˈhɛlo wˈɜld, plˈiːz."
        );
        assert_eq!(spoken("[[kˈa]] [[mˈa]]", ""), "kˈa mˈa");
        assert_eq!(
            spoken("Hello Hibari!", "# names\nhibari\thɪbˈɑːɹi\n"),
            "həlˈoʊ hɪbˈɑːɹi!"
        );
    }

    #[test]
    fn a_line_without_sounds_is_named() {
        let error = Pronunciations::parse("ok oʊkˈeɪ\n\nwrong\n").unwrap_err();
        assert_eq!(
            error,
            Error::Dictionary {
                line: 3,
                found: "wrong".into()
            }
        );
    }
}
