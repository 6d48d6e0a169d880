//! IPA to the symbols that Kokoro was trained on, and those to numbers.

use std::collections::HashMap;

/// The numbers of a chunk, and where each of its characters went.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Numbered {
    /// What the network reads: the symbols between two zeros.
    pub numbers: Vec<i32>,
    /// For each character given, how many numbers there are up to its end; a fraction where
    /// several characters are one symbol.
    pub ends: Vec<f64>,
    /// Characters that the model does not know, each once.
    pub unknown: Vec<char>,
}

/// Sounds of two characters that are one symbol.
const PAIRS: [(&str, &str); 11] = [
    ("aɪ", "I"),
    ("aʊ", "W"),
    ("eɪ", "A"),
    ("oʊ", "O"),
    ("əʊ", "Q"),
    ("ɔɪ", "Y"),
    ("dʒ", "ʤ"),
    ("tʃ", "ʧ"),
    ("ts", "ʦ"),
    ("dz", "ʣ"),
    ("r\u{329}", "əɹ"),
];

/// Those of them that English spells by two sounds of two words, so that it has no symbol.
const NOT_ENGLISH: [&str; 2] = ["ts", "dz"];

/// What English sounds are to Kokoro.
const ENGLISH: [(char, &str); 12] = [
    ('ɚ', "əɹ"),
    ('ɝ', "ɜɹ"),
    ('ɐ', "ə"),
    ('r', "ɹ"),
    ('g', "ɡ"),
    ('ɾ', "T"),
    ('ʔ', "t"),
    ('x', "k"),
    ('ç', "k"),
    ('ɬ', "l"),
    ('e', "A"),
    ('ː', ""),
];

/// Numbers of the symbols of `chars`, IPA of a language that [`crate::config::Config::vocab`]
/// knows.
pub fn number(chars: &[char], vocab: &HashMap<char, i32>, english: bool) -> Numbered {
    let mut out = Numbered {
        numbers: vec![0],
        ..Numbered::default()
    };
    let mut at = 0;
    while at < chars.len() {
        let pair = PAIRS.iter().find(|(pair, _)| {
            let mut both = pair.chars();
            (both.next(), both.next()) == (Some(chars[at]), chars.get(at + 1).copied())
                && !(english && NOT_ENGLISH.contains(pair))
        });
        let before = out.numbers.len() as f64;
        match pair {
            Some((_, symbol)) => {
                push(&mut out, symbol, vocab);
                let after = out.numbers.len() as f64;
                out.ends.extend([(before + after) / 2.0, after]);
                at += 2;
            }
            None => {
                single(&mut out, chars, at, vocab, english);
                out.ends.push(out.numbers.len() as f64);
                at += 1;
            }
        }
    }
    out.numbers.push(0);
    out
}

fn single(
    out: &mut Numbered,
    chars: &[char],
    at: usize,
    vocab: &HashMap<char, i32>,
    english: bool,
) {
    let char = chars[at];
    // American `ɜː` has its `ɹ` in it, unless one follows.
    let colours = chars.get(at + 1) == Some(&'ː') && !matches!(chars.get(at + 2), Some('ɹ' | 'r'));
    if english && char == 'ɜ' && colours {
        return push(out, "ɜɹ", vocab);
    }
    match ENGLISH.iter().find(|(ipa, _)| english && *ipa == char) {
        Some((_, symbols)) => push(out, symbols, vocab),
        None => push(out, char.encode_utf8(&mut [0; 4]), vocab),
    }
}

fn push(out: &mut Numbered, symbols: &str, vocab: &HashMap<char, i32>) {
    for symbol in symbols.chars() {
        match vocab.get(&symbol) {
            Some(&number) => out.numbers.push(number),
            None if !out.unknown.contains(&symbol) => out.unknown.push(symbol),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(ipa: &str, english: bool) -> (String, Numbered) {
        let symbols = " ,.AIOWYQTabdefhijklmnopstuvwzæðŋɑɔəɛɜɡɪɹʃʊʌʒʣʤʦʧˈˌːθ";
        let vocab: HashMap<char, i32> = symbols.chars().zip(1..).collect();
        let chars: Vec<char> = ipa.chars().collect();
        let numbered = number(&chars, &vocab, english);
        let all: Vec<char> = symbols.chars().collect();
        let inner = &numbered.numbers[1..numbered.numbers.len() - 1];
        (
            inner.iter().map(|&n| all[n as usize - 1]).collect(),
            numbered,
        )
    }

    #[test]
    fn english_is_written_as_kokoro_knows_it() {
        let pairs = [
            ("həlˈoʊ, wˈɜːld.", "həlˈO, wˈɜɹld."),
            ("tʃˈɪɹɪʃ dʒˈʌdʒ", "ʧˈɪɹɪʃ ʤˈʌʤ"),
            ("wˈɔːɾɚ", "wˈɔTəɹ"),
            ("bˈɜːɹd", "bˈɜɹd"),
            ("kˈæts ɐ bˈɔɪ", "kˈæts ə bˈY"),
            ("maɪ haʊs", "mI hWs"),
        ];
        for (ipa, wanted) in pairs {
            assert_eq!(spelled(ipa, true).0, wanted);
        }
    }

    #[test]
    fn other_languages_keep_their_sounds() {
        assert_eq!(spelled("pˈitsa dˈeːn", false).0, "pˈiʦa dˈeːn");
        let (_, numbered) = spelled("pˈɛʁ%ʁ", false);
        assert_eq!(numbered.unknown, ['ʁ', '%']);
    }

    #[test]
    fn every_character_has_its_end() {
        let (_, numbered) = spelled("aɪˈɚ", true);
        assert_eq!(numbered.ends, [1.5, 2.0, 3.0, 5.0]);
        assert_eq!(numbered.numbers.len(), 6);
        assert_eq!(spelled("", true).1.numbers, [0, 0]);
    }
}
