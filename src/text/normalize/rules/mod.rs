//! The rules, in the order in which they are asked.

mod acronyms;
mod amounts;
mod counts;
mod dates;
pub mod given;
mod money;
mod numerals;
mod symbols;
mod times;
mod web;
mod words;

use super::{
    language::Language,
    scan::{Said, Scan},
};

/// A rule: what stands at this place, and how it is spoken.
type Rule = fn(&Scan, &Language) -> Option<Said>;

/// Special forms first, so that the plain ones take what is left.
const AT_WORDS: [Rule; 16] = [
    web::address,
    words::abbreviation_with_sign,
    dates::in_numbers,
    dates::with_name,
    times::time,
    money::amount,
    numerals::phone,
    numerals::version,
    counts::decade,
    amounts::measure,
    counts::fraction,
    counts::ordinal,
    counts::number,
    words::abbreviation,
    words::roman,
    acronyms::acronym,
];

/// What the first rule says that knows what stands here.
pub fn apply(scan: &Scan) -> Option<Said> {
    if let Some(said) = symbols::unseen(scan) {
        return Some(said);
    }
    let language = scan.language?;
    if scan.at_word_start()
        && let Some(said) = AT_WORDS.iter().find_map(|rule| rule(scan, language))
    {
        return Some(said);
    }
    symbols::symbol(scan, language)
}

/// A regular expression that is made once.
macro_rules! pattern {
    ($text:expr) => {{
        static PATTERN: std::sync::LazyLock<regex::Regex> = std::sync::LazyLock::new(|| {
            regex::Regex::new(concat!("^(?:", $text, ")"))
                .expect("a constant pattern is well formed")
        });
        &*PATTERN
    }};
}
use pattern;
