//! Phonemes or letters to the numbers that the network reads.

use unicode_normalization::UnicodeNormalization;

use crate::config::VoiceConfig;

/// The numbers of a sentence, and where each of its characters went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Numbered {
    /// What the network reads.
    pub numbers: Vec<i32>,
    /// For each character given, how many numbers there are up to its end.
    pub ends: Vec<usize>,
    /// Characters that the voice does not know, each once.
    pub unknown: Vec<char>,
}

impl VoiceConfig {
    /// Numbers `chars`, with the voice's own numbers around them.
    pub fn number(&self, chars: impl IntoIterator<Item = char>) -> Numbered {
        let mut out = Numbered {
            numbers: self.frame.start.clone(),
            ..Numbered::default()
        };
        for char in chars {
            for symbol in self.symbols_of(char) {
                match self.symbols.get(&symbol) {
                    Some(numbers) => {
                        out.numbers.extend(numbers);
                        out.numbers.extend(&self.frame.between);
                    }
                    None => {
                        for char in symbol.chars().filter(|c| !c.is_whitespace()) {
                            if !out.unknown.contains(&char) {
                                out.unknown.push(char);
                            }
                        }
                    }
                }
            }
            out.ends.push(out.numbers.len());
        }
        out.numbers.extend(&self.frame.end);
        out
    }

    /// The symbols that write a character: its parts, where the voice knows them all, else itself.
    fn symbols_of(&self, char: char) -> Vec<String> {
        let lower: String = match self.lower_case && !self.symbols.contains_key(&char.to_string()) {
            true => char.to_lowercase().collect(),
            false => char.to_string(),
        };
        let parts: Vec<String> = lower.nfd().map(String::from).collect();
        match parts.len() > 1 && !parts.iter().all(|part| self.symbols.contains_key(part)) {
            true => lower.nfc().map(String::from).collect(),
            false => parts,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::config::{Frame, Reads};

    fn config(symbols: &[(&str, i32)], lower_case: bool) -> VoiceConfig {
        let symbols: HashMap<String, Vec<i32>> = symbols
            .iter()
            .map(|(text, number)| (text.to_string(), vec![*number]))
            .collect();
        VoiceConfig {
            rate: 22_050,
            language: "en-us".into(),
            reads: Reads::Phonemes,
            symbols,
            frame: Frame {
                start: vec![1, 0],
                between: vec![0],
                end: vec![2],
            },
            lower_case,
            speakers: Vec::new(),
            noise_scale: 0.667,
            length_scale: 1.0,
            noise_w: 0.8,
        }
    }

    #[test]
    fn symbols_are_framed_and_parted() {
        let config = config(&[("a", 14), ("c", 16), ("\u{303}", 140)], false);
        let numbered = config.number("a\u{e3}c%x%".chars());
        assert_eq!(numbered.numbers, [1, 0, 14, 0, 14, 0, 140, 0, 16, 0, 2]);
        assert_eq!(numbered.ends, [4, 8, 10, 10, 10, 10]);
        assert_eq!(numbered.unknown, ['%', 'x']);
    }

    #[test]
    fn whole_letters_win_where_parts_are_unknown() {
        let config = config(&[("a", 3), ("\u{e9}", 5)], true);
        assert_eq!(
            config.number("A\u{c9}".chars()).numbers,
            [1, 0, 3, 0, 5, 0, 2]
        );
        let empty = config.number("".chars());
        assert_eq!(empty.numbers, [1, 0, 2]);
    }
}
