//! Addresses of the web and of mail.

use super::pattern;
use crate::text::normalize::{
    language::Language,
    scan::{Said, Scan},
};

/// Endings that make a name an address even without `www.` before it.
const DOMAINS: &str = r"com|org|net|edu|gov|io|ai|dev|app|info|biz|me|tv|co\.uk|uk|de|fr|es|it|pt|nl|eu|ch|at|be|br|mx|ca|us|jp|cn|in|au|nz";

/// `https://example.com/a`, `www.example.com`, `example.org`, `me@example.com`.
pub fn address(scan: &Scan, language: &Language) -> Option<Said> {
    let rest = scan.rest();
    let found =
        pattern!(r"(?i)(?:https?://|ftp://|www\.)[^\s<>\x22“”]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
            .find(rest)
            .or_else(|| plain(rest))?;
    let address = found
        .as_str()
        .trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '\'', '"', '*', '_']);
    let spoken = address
        .split_once("://")
        .map_or(address, |(_, rest)| rest)
        .trim_end_matches('/');
    let spoken = spoken.strip_prefix("www.").unwrap_or(spoken);
    let mut words = Vec::new();
    let mut word = String::new();
    for c in spoken.chars().chain([' ']) {
        let same = word
            .chars()
            .next_back()
            .is_none_or(|last| last.is_ascii_digit() == c.is_ascii_digit());
        if c.is_alphanumeric() && same {
            word.push(c);
            continue;
        }
        if !word.is_empty() {
            words.push(part(&std::mem::take(&mut word), language));
        }
        if c.is_alphanumeric() {
            word.push(c);
        }
        words.extend(mark(c, language));
    }
    Said::new(address.len(), words.join(" "))
}

fn plain(rest: &str) -> Option<regex::Match<'_>> {
    static NAME: std::sync::LazyLock<regex::Regex> = std::sync::LazyLock::new(|| {
        let text = format!(r"^(?:[a-zA-Z][\w-]*\.)+(?:{DOMAINS})\b(?:/[^\s<>\x22“”]*)?");
        regex::Regex::new(&text).expect("a constant pattern is well formed")
    });
    let found = NAME.find(rest)?;
    // `end.in the` is a missing blank, not an address.
    let after = &rest[found.end()..];
    let goes_on = after.starts_with(|c: char| c.is_alphanumeric() || c == '@');
    let small =
        found.as_str().chars().all(|c| !c.is_uppercase()) || found.as_str().contains(".com");
    (!goes_on && small).then_some(found)
}

/// One word of an address: digits as digits or as a number, short words without vowels spelled.
fn part(word: &str, language: &Language) -> String {
    if word.starts_with(|c: char| c.is_ascii_digit()) {
        return match word.parse() {
            Ok(value) if word.len() < 5 && !(word.starts_with('0') && word.len() > 1) => {
                language.count(value)
            }
            _ => language.cardinals.digits(word),
        };
    }
    let small = word.to_lowercase();
    let vowels = small.chars().any(|c| "aeiouy".contains(c));
    if small.chars().count() <= 4 && !vowels {
        let letters: Vec<String> = word.to_uppercase().chars().map(String::from).collect();
        return letters.join(" ");
    }
    word.to_owned()
}

fn mark(c: char, language: &Language) -> Option<String> {
    let [dot, slash, hyphen, underscore, at, colon] = language.web;
    let word = match c {
        '.' => dot,
        '/' => slash,
        '-' => hyphen,
        '_' => underscore,
        '@' => at,
        ':' => colon,
        _ => {
            let (_, word) = language.symbols.iter().find(|(sign, _)| *sign == c)?;
            word
        }
    };
    Some(word.to_owned())
}
