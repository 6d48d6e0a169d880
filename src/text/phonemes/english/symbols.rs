//! From the dictionary's symbols (misaki's) to IPA as espeak-ng writes it.

/// Single symbols of diphthongs and affricates.
const SPELLED_OUT: [(char, &str); 8] = [
    ('A', "eɪ"),
    ('I', "aɪ"),
    ('O', "oʊ"),
    ('W', "aʊ"),
    ('Y', "ɔɪ"),
    ('ʤ', "dʒ"),
    ('ʧ', "tʃ"),
    ('ᵊ', "ə"),
];

const VOWELS: &str = "æɑɔəɛɜɪiuʊʌᵻᵊAIOWY";

/// `sounds` of a word in IPA. Length marks follow from the vowel and its stress.
pub fn to_ipa(sounds: &str, word: &str) -> String {
    let sounds: Vec<char> = sounds.chars().collect();
    let mut ipa = String::new();
    let mut i = 0;
    while let Some(&sound) = sounds.get(i) {
        let stressed = i > 0 && matches!(sounds[i - 1], 'ˈ' | 'ˌ');
        let next = sounds.get(i + 1).copied();
        let vowel_at = |at: usize| sounds.get(at).is_some_and(|c| VOWELS.contains(*c));
        let mark_at = |at: usize| matches!(sounds.get(at), Some('ˈ' | 'ˌ'));
        match sound {
            'ə' if next == Some('ɹ') => {
                // The r of a stressed syllable behind it is no part of this vowel.
                if mark_at(i + 2) {
                    ipa.push_str(if i == 0 && starts_with_a(word) {
                        "ɐɹ"
                    } else {
                        "əɹ"
                    });
                } else {
                    ipa.push_str(if vowel_at(i + 2) { "ɚɹ" } else { "ɚ" });
                }
                i += 1;
            }
            'ə' if i == 0 && sounds.len() > 1 && starts_with_a(word) => ipa.push('ɐ'),
            // The glide of `graduate` and `usual` is that of a long u.
            'ə' | 'ʊ' if next == Some('w') && vowel_at(i + 2) && i > 0 => {
                ipa.push_str("uː");
                i += 1;
            }
            'ɜ' => {
                ipa.push_str("ɜː");
                let r = next == Some('ɹ');
                if r && (vowel_at(i + 2) || mark_at(i + 2)) {
                    ipa.push('ɹ');
                }
                i += usize::from(r);
            }
            'i' => ipa.push_str(if stressed { "iː" } else { "i" }),
            'u' => ipa.push_str("uː"),
            'ɑ' => ipa.push_str("ɑː"),
            'ɔ' => ipa.push_str("ɔː"),
            'n' if i > 0 && sounds[i - 1] == 'ʔ' => ipa.push_str("n\u{329}"),
            _ => match SPELLED_OUT.iter().find(|(short, _)| *short == sound) {
                Some((_, long)) => ipa.push_str(long),
                None => ipa.push(sound),
            },
        }
        i += 1;
    }
    ipa
}

fn starts_with_a(word: &str) -> bool {
    word.starts_with(['a', 'A'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_become_ipa() {
        for (sounds, word, wanted) in [
            ("həlˈO", "hello", "həlˈoʊ"),
            ("wˈɜɹld", "world", "wˈɜːld"),
            ("əɹˈWnd", "around", "ɐɹˈaʊnd"),
            ("lˈɛɾəɹ", "letter", "lˈɛɾɚ"),
            ("fˈɜɹi", "furry", "fˈɜːɹi"),
            ("kˈæməɹə", "camera", "kˈæmɚɹə"),
            ("bˈʌʔn", "button", "bˈʌʔn\u{329}"),
            ("ʤˈɪɹi", "jeery", "dʒˈɪɹi"),
            ("θˈɔt", "thought", "θˈɔːt"),
            ("əkˈɜɹ", "occur", "əkˈɜː"),
            ("bˈiɪŋ", "being", "bˈiːɪŋ"),
            ("ɡɹˈæʤəwət", "graduate", "ɡɹˈædʒuːət"),
        ] {
            assert_eq!(to_ipa(sounds, word), wanted, "{word}");
        }
    }
}
