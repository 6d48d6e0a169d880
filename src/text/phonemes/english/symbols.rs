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
    let mut sounds: Vec<char> = sounds.chars().collect();
    spelled_with_i(&mut sounds, word);
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

/// Weak vowels that are written `i` are `ɪ` to espeak-ng (`notice`, `family`), and those of the
/// prefixes `re-`, `de-` and `be-` are `ᵻ`, where the dictionary has `ə` for all; `u` stays long
/// behind its glide (`document`). Letters and
/// sounds are matched by counting vowels.
fn spelled_with_i(sounds: &mut [char], word: &str) {
    let vowels: Vec<usize> = (0..sounds.len())
        .filter(|i| VOWELS.contains(sounds[*i]))
        .collect();
    let vowel = |c: char| "aeiouy".contains(c.to_ascii_lowercase());
    let mut groups: Vec<&str> = word
        .split(|c| !vowel(c))
        .filter(|group| !group.is_empty())
        .collect();
    if groups.len() == vowels.len() + 1 && word.ends_with('e') {
        groups.pop();
    }
    if groups.len() != vowels.len() {
        return;
    }
    let prefix = ["re", "de", "be"]
        .iter()
        .any(|prefix| word.starts_with(prefix));
    for (index, (at, letters)) in vowels.into_iter().zip(groups).enumerate() {
        let marked = at > 0 && matches!(sounds[at - 1], 'ˈ' | 'ˌ');
        let r = sounds.get(at + 1) == Some(&'ɹ');
        if sounds[at] != 'ə' || marked {
            continue;
        }
        if index == 0 && prefix && letters == "e" {
            sounds[at] = 'ᵻ';
        } else if matches!(letters, "i" | "I") && !r {
            sounds[at] = 'ɪ';
        } else if letters == "u" && at > 0 && sounds[at - 1] == 'j' && !r {
            sounds[at] = 'u';
        }
    }
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
            ("nˈOɾəs", "notice", "nˈoʊɾɪs"),
            ("ɹəspˈɛkt", "respect", "ɹᵻspˈɛkt"),
            ("pɹˈɛzədənt", "president", "pɹˈɛzɪdənt"),
        ] {
            assert_eq!(to_ipa(sounds, word), wanted, "{word}");
        }
    }
}
