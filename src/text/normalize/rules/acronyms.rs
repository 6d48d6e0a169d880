//! Words that are read letter by letter, and names made of letters and digits.

use crate::text::normalize::{
    language::Language,
    scan::{Said, Scan, goes_on},
};

/// `FBI`, `U.S.A.`, `CEOs`, `MP3`, `4K`, `H2O`.
pub fn acronym(scan: &Scan, language: &Language) -> Option<Said> {
    dotted(scan)
        .or_else(|| mixed(scan, language))
        .or_else(|| capitals(scan, language))
}

/// Capitals with points: `U.S.A.`, `J.R.R.`
fn dotted(scan: &Scan) -> Option<Said> {
    let rest = scan.rest();
    let mut letters = Vec::new();
    let mut bytes = 0;
    let mut chars = rest.chars().peekable();
    while let Some(c) = chars.next_if(|c| c.is_uppercase()) {
        if chars.next_if_eq(&'.').is_none() {
            break;
        }
        letters.push(c.to_string());
        bytes += c.len_utf8() + 1;
    }
    let last = rest[bytes..]
        .chars()
        .next()
        .filter(|c| c.is_uppercase() && !letters.is_empty());
    if let Some(last) = last
        && !goes_on(&rest[bytes + last.len_utf8()..])
    {
        letters.push(last.to_string());
        bytes += last.len_utf8();
    }
    if letters.len() < 2 || goes_on(&rest[bytes..]) {
        return None;
    }
    let end = rest[..bytes].ends_with('.') && rest[bytes..].trim().is_empty();
    Said::new(
        bytes,
        format!("{}{}", letters.join(" "), if end { "." } else { "" }),
    )
}

/// A row of letters and digits, read in parts.
fn mixed(scan: &Scan, language: &Language) -> Option<Said> {
    let word = &scan.rest()[..scan.word_length()];
    let digit = |c: char| c.is_ascii_digit();
    if !word.is_ascii()
        || !word.contains(digit)
        || !word.contains(|c: char| c.is_ascii_alphabetic())
    {
        return None;
    }
    let mut parts = Vec::new();
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let end = rest
            .find(|c: char| digit(c) != digit(first))
            .unwrap_or(rest.len());
        let part = &rest[..end];
        rest = &rest[end..];
        let long = part.starts_with('0') && part.len() > 1 || part.len() > 4;
        parts.push(if !digit(first) {
            letters_or_word(part, language)
        } else if long {
            language.cardinals.digits(part)
        } else {
            let value = part.parse().unwrap_or(0);
            let year = part.len() == 4 && (1900..2100).contains(&value);
            if year {
                (language.year)(language, value)
            } else {
                language.count(value)
            }
        });
    }
    Said::new(word.len(), parts.join(" "))
}

fn letters_or_word(part: &str, language: &Language) -> String {
    let capitals = part.chars().all(char::is_uppercase);
    let plural = part.len() > 1
        && part.ends_with('s')
        && part[..part.len() - 1].chars().all(char::is_uppercase);
    if part.len() == 1 || capitals && spelled(part, language) {
        spell(part)
    } else if plural {
        format!("{}'s", spell(&part[..part.len() - 1]))
    } else {
        part.to_owned()
    }
}

/// Two to six capitals, with or without a plural `s`.
fn capitals(scan: &Scan, language: &Language) -> Option<Said> {
    let word = &scan.rest()[..scan.word_length()];
    let end = word.find(|c: char| !c.is_uppercase()).unwrap_or(word.len());
    let (stem, tail) = word.split_at(end);
    let count = stem.chars().count();
    if !(2..=6).contains(&count)
        || !matches!(tail, "" | "s")
        || shouted(scan, word)
        || !spelled(stem, language)
    {
        return None;
    }
    let plural = if tail == "s" { "'s" } else { "" };
    Said::new(word.len(), format!("{}{plural}", spell(stem)))
}

/// Whether capitals are read one by one: unless they are known to be a word, or are long enough
/// to be one and are in the language.
fn spelled(stem: &str, language: &Language) -> bool {
    if language.read_as_words.contains(&stem) {
        return false;
    }
    let vowels = stem.chars().any(|c| "AEIOUYÄÖÜÉÈÁÍÓÚ".contains(c));
    let long = stem.chars().count() > 3;
    !(long && vowels && (language.is_word)(&stem.to_lowercase()))
}

fn spell(stem: &str) -> String {
    let letters: Vec<String> = stem.to_uppercase().chars().map(String::from).collect();
    letters.join(" ")
}

/// Whether the words around are in capitals, too, so that the writer is shouting.
fn shouted(scan: &Scan, word: &str) -> bool {
    let loud = |word: &str| {
        let letters = word.chars().filter(|c| c.is_alphabetic()).count();
        letters > 3 && !word.chars().any(char::is_lowercase)
    };
    let after = scan.rest()[word.len()..].trim_start();
    let after = after
        .split(|c: char| !c.is_alphanumeric())
        .next()
        .unwrap_or("");
    loud(scan.word_before()) || loud(after)
}
