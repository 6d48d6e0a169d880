//! Misaki's symbols, which Kokoro and its kin were trained on: one character for each diphthong and
//! affricate, and no length marks.

use super::{PhonemeWord, Phonemes};

/// IPA as espeak-ng writes it, and misaki's symbols, longest first.
const RESPELLED: [(&str, &str); 19] = [
    ("ʔn\u{329}", "ʔn"),
    ("n\u{329}", "ᵊn"),
    ("ɜːɹ", "ɜɹ"),
    ("ɜː", "ɜɹ"),
    ("ɚɹ", "əɹ"),
    ("ɚ", "əɹ"),
    ("eɪ", "A"),
    ("aɪ", "I"),
    ("oʊ", "O"),
    ("aʊ", "W"),
    ("ɔɪ", "Y"),
    ("dʒ", "ʤ"),
    ("tʃ", "ʧ"),
    ("oː", "ɔ"),
    ("ɐ", "ə"),
    ("r", "ɹ"),
    ("x", "k"),
    ("g", "ɡ"),
    ("ː", ""),
];

/// The same words in misaki's symbols for American English.
pub fn to_misaki(phonemes: &Phonemes) -> Phonemes {
    let words = phonemes.words.iter().map(|word| PhonemeWord {
        ipa: respell(&word.ipa),
        ..word.clone()
    });
    Phonemes {
        words: words.collect(),
    }
}

fn respell(ipa: &str) -> String {
    respelled(ipa).into_iter().map(|(to, _)| to).collect()
}

/// The sounds of one word, piece by piece: misaki's symbols, and how many characters of `ipa` they
/// stand for.
pub fn respelled(ipa: &str) -> Vec<(String, usize)> {
    let mut pieces: Vec<(String, usize)> = Vec::new();
    let mut rest = ipa;
    while let Some(first) = rest.chars().next() {
        let (from, to) = match RESPELLED.iter().find(|(from, _)| rest.starts_with(from)) {
            Some((from, to)) => (*from, (*to).to_owned()),
            None => (&rest[..first.len_utf8()], first.to_string()),
        };
        pieces.push((to, from.chars().count()));
        rest = &rest[from.len()..];
    }
    // A weak vowel before a last l is hardly one.
    if let [.., before, vowel, last] = &mut pieces[..]
        && (vowel.0.as_str(), last.0.as_str()) == ("ə", "l")
        && !before.0.ends_with('ɹ')
    {
        vowel.0 = "ᵊ".into();
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::phonemes::{Phonemizer, english::English};

    #[test]
    fn symbols_are_respelled_and_words_stay() {
        for (ipa, wanted) in [
            ("həlˈoʊ", "həlˈO"),
            ("wˈɜːld", "wˈɜɹld"),
            ("tʃˈɔɪs", "ʧˈYs"),
            ("fˈɜːɹi", "fˈɜɹi"),
            ("bˈʌʔn\u{329}", "bˈʌʔn"),
            ("lˈɪɾəl", "lˈɪɾᵊl"),
            ("mˈoːɹ", "mˈɔɹ"),
        ] {
            assert_eq!(respell(ipa), wanted);
            let characters: usize = respelled(ipa).iter().map(|(_, n)| n).sum();
            assert_eq!(characters, ipa.chars().count());
        }
        let phonemes = English.phonemize("Hello, my father!").unwrap();
        assert_eq!(to_misaki(&phonemes).ipa(), "həlˈO, mI fˈɑðəɹ!");
    }
}
