//! American English without any other program: a dictionary, inflections, a network for unknown
//! words, and the weak forms of running speech.
//!
//! The dictionary is that of misaki (Apache-2.0), see `scripts/english`.

mod connected;
mod letters;
mod lexicon;
mod speech_parts;
mod symbols;

use super::{
    PhonemeWord, Phonemes, Phonemizer,
    tokens::{Token, tokens},
};
use crate::text::{error::Result, normalize};

pub use letters::guess as guess_from_letters;

/// Names of letters where they differ from the dictionary's.
const LETTER_A: &str = "ˈeɪ";

/// Parts of hyphenated words, which the dictionary has only as other words.
const PARTS: [(&str, &str); 3] = [("wi", "wˈaɪ"), ("fi", "fˈaɪ"), ("sci", "sˈaɪ")];

/// The phonemizer.
#[derive(Clone, Copy, Debug, Default)]
pub struct English;

/// Whether a word, in small letters, is in the dictionary.
pub fn is_word(word: &str) -> bool {
    lexicon::lexicon().has(word)
}

impl Phonemizer for English {
    fn name(&self) -> &'static str {
        "english"
    }

    fn phonemize(&self, text: &str) -> Result<Phonemes> {
        let tokens = tokens(text);
        let small: Vec<String> = tokens
            .iter()
            .map(|token| text[token.text.clone()].to_lowercase().replace('’', "'"))
            .collect();
        let clauses = clauses(&tokens);
        let mut words = Vec::new();
        for (start, end) in clauses {
            let small: Vec<&str> = small[start..end].iter().map(String::as_str).collect();
            let clause = Clause {
                text,
                tokens: &tokens[start..end],
                small: &small,
            };
            words.extend(clause.words());
        }
        Ok(Phonemes { words })
    }
}

/// Stretches of words without a pause in them.
fn clauses(tokens: &[Token]) -> Vec<(usize, usize)> {
    let mut clauses = Vec::new();
    let mut start = 0;
    for (index, token) in tokens.iter().enumerate() {
        let pause = |c: char| matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '…' | '—');
        if token.after.contains(pause) || index + 1 == tokens.len() {
            clauses.push((start, index + 1));
            start = index + 1;
        }
    }
    clauses
}

/// Words between two pauses.
struct Clause<'a> {
    text: &'a str,
    tokens: &'a [Token],
    small: &'a [&'a str],
}

impl Clause<'_> {
    fn words(&self) -> Vec<PhonemeWord> {
        let mut words: Vec<(usize, PhonemeWord)> = Vec::new();
        for (index, token) in self.tokens.iter().enumerate() {
            let word = PhonemeWord {
                ipa: self.ipa(index),
                text: token.text.clone(),
                joined: index > 0
                    && self.is_letter(index)
                    && self.is_letter(index - 1)
                    && token.before.is_empty(),
                before: token.before.clone(),
                after: token.after.clone(),
            };
            if word.ipa.is_empty() {
                pass_marks(&mut words, word);
            } else {
                words.push((index, word));
            }
        }
        self.connect(&mut words);
        words.into_iter().map(|(_, word)| word).collect()
    }

    fn written(&self, index: usize) -> &str {
        &self.text[self.tokens[index].text.clone()]
    }

    /// Whether the word at `index` is the name of a letter: a capital by itself next to another,
    /// or one that is no word.
    fn is_letter(&self, index: usize) -> bool {
        let single = |i: usize| {
            let plain = self.written(i).trim_end_matches("'s");
            plain.chars().count() == 1 && plain.chars().all(char::is_uppercase)
        };
        let beside =
            index > 0 && single(index - 1) || index + 1 < self.tokens.len() && single(index + 1);
        let word = self.small[index];
        let lonely_a = word == "a" && index > 0;
        single(index) && (beside || lonely_a || !matches!(word, "a" | "i" | "o"))
    }

    /// The sounds of one word as it stands in its clause.
    fn ipa(&self, index: usize) -> String {
        let (written, small) = (self.written(index), self.small[index]);
        let last = index + 1 == self.tokens.len();
        if self.is_letter(index) {
            let name = letter(written);
            let more = !last && self.is_letter(index + 1);
            return if more { name.replace('ˈ', "ˌ") } else { name };
        }
        if small.starts_with(|c: char| c.is_ascii_digit()) {
            return number(small);
        }
        if let Some(weak) = connected::weak(small, last && index > 0) {
            return weak.to_owned();
        }
        let parts = speech_parts::parts_of_speech(self.small, index);
        let ipa = word_ipa(written, parts);
        // Words that are weak inside a clause are not at its end.
        if last && !ipa.contains('ˈ') {
            ipa.replacen('ˌ', "ˈ", 1)
        } else {
            ipa
        }
    }

    /// Pairs that lean on each other, and forms before vowels.
    fn connect(&self, words: &mut [(usize, PhonemeWord)]) {
        for i in 0..words.len() {
            let vowel_next = words
                .get(i + 1)
                .is_some_and(|(_, next)| connected::begins_with_vowel(&next.ipa));
            let (index, word) = &mut words[i];
            if vowel_next && let Some(ipa) = connected::before_vowel(self.small[*index], &word.ipa)
            {
                word.ipa = ipa;
            }
        }
        for i in 1..words.len() {
            let vowel_next = words
                .get(i + 1)
                .is_some_and(|(_, next)| connected::begins_with_vowel(&next.ipa));
            let (before, rest) = words.split_at_mut(i);
            let ((first, left), (second, right)) = (&mut before[i - 1], &mut rest[0]);
            let last = i + 1 == self.tokens.len();
            let touching =
                left.after.is_empty() && right.before.is_empty() && !left.joined && !last;
            let pair = connected::joined(self.small[*first], self.small[*second]);
            if let Some((a, b)) = pair
                && touching
                && !(vowel_next && self.small[*second] == "the")
            {
                (left.ipa, right.ipa, right.joined) = (a.into(), b.into(), true);
            }
        }
    }
}

/// Gives the marks of a word without sounds to its neighbours.
fn pass_marks(words: &mut [(usize, PhonemeWord)], silent: PhonemeWord) {
    if let Some((_, last)) = words.last_mut()
        && last.after.is_empty()
    {
        last.after = silent.after;
    }
}

fn letter(written: &str) -> String {
    let first: String = written.chars().take(1).collect();
    let mut sounds = lexicon::lexicon().sounds(&first, "").unwrap_or_default();
    if !sounds.contains('ˈ') {
        // Letters are stressed, whatever the dictionary thinks of them as words.
        let at = sounds.find(|c| "æɑɔəɛɜɪiuʊʌAIOWY".contains(c)).unwrap_or(0);
        sounds.insert(at, 'ˈ');
    }
    let name = if first == "A" {
        LETTER_A.to_owned()
    } else {
        symbols::to_ipa(&sounds, "")
    };
    if written.chars().count() > 1 {
        plural(&name)
    } else {
        name
    }
}

/// Digits that were not written out.
fn number(digits: &str) -> String {
    let words = match digits.parse() {
        Ok(value) => normalize::count_in_english(value),
        Err(_) => return String::new(),
    };
    let words = words.split([' ', '-']).map(|word| word_ipa(word, ""));
    words.collect()
}

/// The sounds of a word by itself.
pub fn word_ipa(written: &str, parts: &str) -> String {
    let written = written.replace('’', "'");
    if let Some((_, ipa)) = PARTS
        .iter()
        .find(|(part, _)| written.eq_ignore_ascii_case(part))
    {
        return (*ipa).to_owned();
    }
    sounds(&written, parts)
        .or_else(|| humps(&written))
        .unwrap_or_else(|| unknown(&plain_letters(&written.to_lowercase())))
}

/// Words that are written together with capitals (`GitHub`, `ChatGPT`), part by part.
fn humps(word: &str) -> Option<String> {
    let letters: Vec<(usize, char)> = word.char_indices().collect();
    let border = |pair: &[(usize, char)]| pair[0].1.is_lowercase() && pair[1].1.is_uppercase();
    let at = letters.windows(2).find(|pair| border(pair))?[1].0;
    let (first, rest) = word.split_at(at);
    let spelled = rest.chars().count() > 1 && rest.chars().all(char::is_uppercase);
    let rest = if spelled {
        spell(rest)
    } else {
        word_ipa(rest, "")
    };
    Some(format!("{}{rest}", word_ipa(first, "")))
}

/// Letter by letter, with the stress on the last.
fn spell(letters: &str) -> String {
    let mut names: Vec<String> = letters
        .chars()
        .map(|c| letter(&c.to_uppercase().to_string()))
        .collect();
    if let Some((_, first)) = names.split_last_mut() {
        first
            .iter_mut()
            .for_each(|name| *name = name.replace('ˈ', "ˌ"));
    }
    names.concat()
}

/// A word that is in no dictionary; without a vowel it is spelled.
fn unknown(word: &str) -> String {
    if word.contains(['a', 'e', 'i', 'o', 'u', 'y']) {
        return symbols::to_ipa(&letters::guess(word), word);
    }
    spell(
        &word
            .chars()
            .filter(char::is_ascii_lowercase)
            .collect::<String>(),
    )
}

/// From the dictionary: the word as it is written, in small letters, as a name, or by its stem.
fn sounds(written: &str, parts: &str) -> Option<String> {
    let small = written.to_lowercase();
    let mut capital = small.clone();
    if let Some(first) = capital.get_mut(0..1) {
        first.make_ascii_uppercase();
    }
    let lexicon = lexicon::lexicon();
    let folded = plain_letters(&small);
    let found = [written, &small, &capital, &folded]
        .into_iter()
        .find_map(|form| lexicon.sounds(form, parts));
    found
        .map(|sounds| symbols::to_ipa(&sounds, &small))
        .or_else(|| inflected(&small, parts))
}

/// Endings that the dictionary leaves to the reader.
fn inflected(word: &str, parts: &str) -> Option<String> {
    let stem = |ending: &str| {
        word.strip_suffix(ending)
            .filter(|stem| stem.chars().count() > 1)
    };
    let find = |stem: &str| {
        lexicon::lexicon()
            .sounds(stem, parts)
            .map(|sounds| symbols::to_ipa(&sounds, stem))
    };
    for (ending, ipa) in [
        ("'ll", "əl"),
        ("'ve", "v"),
        ("'re", "ɚ"),
        ("'d", "d"),
        ("n't", "ənt"),
    ] {
        if let Some(stem) = stem(ending) {
            return Some(format!("{}{ipa}", word_ipa(stem, parts)));
        }
    }
    if let Some(stem) = stem("'s").or_else(|| stem("s'")) {
        return Some(plural(&word_ipa(stem, parts)));
    }
    let with_y = |stem: &str| find(&format!("{stem}y"));
    if let Some(found) = stem("ies").and_then(with_y) {
        return Some(plural(&found));
    }
    if let Some(found) = stem("ied").and_then(with_y) {
        return Some(past(&found));
    }
    if let Some(found) = stem("es")
        .filter(|stem| stem.ends_with(['s', 'x', 'z', 'h']))
        .and_then(find)
    {
        return Some(plural(&found));
    }
    if let Some(found) = stem("s").filter(|stem| !stem.ends_with('s')).and_then(find) {
        return Some(plural(&found));
    }
    if let Some(found) =
        stem("ed").and_then(|stem| find(&format!("{stem}e")).or_else(|| find(stem)))
    {
        return Some(past(&found));
    }
    let ing = stem("ing")?;
    let doubled = ing.chars().rev().take(2).collect::<Vec<_>>();
    let short = doubled.len() == 2 && doubled[0] == doubled[1];
    let found = find(&format!("{ing}e")).or_else(|| find(ing)).or_else(|| {
        if short {
            find(&ing[..ing.len() - 1])
        } else {
            None
        }
    })?;
    Some(format!("{found}ɪŋ"))
}

fn plural(ipa: &str) -> String {
    let ending = match ipa.chars().next_back() {
        Some('s' | 'z' | 'ʃ' | 'ʒ') => "ᵻz",
        Some('p' | 't' | 'k' | 'f' | 'θ') => "s",
        _ => "z",
    };
    format!("{ipa}{ending}")
}

fn past(ipa: &str) -> String {
    match ipa.chars().next_back() {
        Some('t') => format!("{}ɾᵻd", &ipa[..ipa.len() - 1]),
        Some('d') => format!("{ipa}ᵻd"),
        Some('p' | 'k' | 'f' | 'θ' | 's' | 'ʃ') => format!("{ipa}t"),
        _ => format!("{ipa}d"),
    }
}

/// Latin letters without their accents.
fn plain_letters(word: &str) -> String {
    let mut plain = String::new();
    for c in word.chars() {
        match c {
            'à'..='å' | 'ā' | 'ă' | 'ą' => plain.push('a'),
            'ç' | 'ć' | 'č' => plain.push('c'),
            'ď' | 'đ' | 'ð' => plain.push('d'),
            'è'..='ë' | 'ē' | 'ę' | 'ě' => plain.push('e'),
            'ğ' => plain.push('g'),
            'ì'..='ï' | 'ī' | 'ı' => plain.push('i'),
            'ł' => plain.push('l'),
            'ñ' | 'ń' | 'ň' => plain.push('n'),
            'ò'..='ö' | 'ø' | 'ō' | 'ő' => plain.push('o'),
            'ř' => plain.push('r'),
            'ś' | 'š' | 'ş' | 'ș' => plain.push('s'),
            'ť' | 'ț' => plain.push('t'),
            'ù'..='ü' | 'ū' | 'ů' | 'ű' => plain.push('u'),
            'ý' | 'ÿ' => plain.push('y'),
            'ź' | 'ż' | 'ž' => plain.push('z'),
            'ß' => plain.push_str("ss"),
            'æ' => plain.push_str("ae"),
            'œ' => plain.push_str("oe"),
            'þ' => plain.push_str("th"),
            _ => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ipa(text: &str) -> String {
        English.phonemize(text).unwrap().ipa()
    }

    #[test]
    fn sentences_sound_as_spoken() {
        for (text, wanted) in [
            ("Hello, world.", "həlˈoʊ, wˈɜːld."),
            (
                "The cat in the house of the king.",
                "ðə kˈæt ɪnðə hˈaʊs ʌvðə kˈɪŋ.",
            ),
            ("The apple is at the end.", "ðɪ ˈæpᵊl ɪz æt ðɪ ˈɛnd."),
            (
                "They were only going to go to it.",
                "ðeɪ wɜːɹ ˈoʊnli ɡˈoʊɪŋ tə ɡˌoʊ tʊ ɪt.",
            ),
            ("Where are you going to?", "wˌɛɹ ɑːɹ juː ɡˈoʊɪŋ tuː?"),
            (
                "I want to record a record.",
                "aɪ wˈɑːnt tə ɹᵻkˈɔːɹd ɐ ɹˈɛkɚd.",
            ),
            ("The F B I", "ðɪ ˌɛfbˌiːˈaɪ"),
        ] {
            assert_eq!(ipa(text), wanted.replace('ᵊ', "ə"), "{text}");
        }
    }

    #[test]
    fn unknown_words_names_and_endings_are_spoken() {
        assert_eq!(ipa("googled"), "ɡˈuːɡəld");
        assert_eq!(ipa("copies copied"), "kˈɑːpiz kˈɑːpid");
        assert_eq!(ipa("GitHub ChatGPT"), "ɡˈɪthˈʌb tʃˈætdʒˌiːpˌiːtˈiː");
        assert_eq!(ipa("Wi-Fi xkcd"), "wˈaɪ fˈaɪ ˌɛkskˌeɪsˌiːdˈiː");
        assert!(ipa("café").starts_with("kæfˈeɪ"), "{}", ipa("café"));
        assert_eq!(ipa("42"), ipa("forty-two").replace(' ', ""));
        assert_eq!(ipa("Привет 你好"), "");
        let words = English.phonemize("So blicket, yes.").unwrap().words;
        assert_eq!(words.len(), 3);
        assert_eq!(words[1].after, ",");
        assert_eq!(words[1].text, 3..10);
    }
}
