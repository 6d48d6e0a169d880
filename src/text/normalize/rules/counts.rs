//! Bare numbers: fractions, ordinals, decades, years, whole and decimal numbers.

use super::{
    money::blank,
    numerals::{Number, digits, minus},
    pattern,
};
use crate::text::normalize::{
    language::Language,
    numbers::Gender,
    scan::{Said, Scan, goes_on},
};

/// Fractions that have a character of their own.
const VULGAR: [(char, u64, u64); 15] = [
    ('½', 1, 2),
    ('⅓', 1, 3),
    ('⅔', 2, 3),
    ('¼', 1, 4),
    ('¾', 3, 4),
    ('⅕', 1, 5),
    ('⅖', 2, 5),
    ('⅗', 3, 5),
    ('⅘', 4, 5),
    ('⅙', 1, 6),
    ('⅚', 5, 6),
    ('⅛', 1, 8),
    ('⅜', 3, 8),
    ('⅝', 5, 8),
    ('⅞', 7, 8),
];

/// `1/2`, `2 1/2`, `3½`, `¾`.
pub fn fraction(scan: &Scan, language: &Language) -> Option<Said> {
    let rest = scan.rest();
    let whole = digits(rest);
    let gap = blank(&rest[whole.len()..]);
    if !whole.is_empty()
        && let Some((n, d, bytes)) = ratio(&rest[whole.len() + gap..])
        && (gap > 0 || !rest[whole.len()..].starts_with(|c: char| c.is_ascii_digit()))
        && let Some(words) = say(n, d, language)
    {
        let whole_words = language.count(whole.parse().ok()?);
        let bytes = whole.len() + gap + bytes;
        return Said::new(bytes, format!("{whole_words} {} {words}", language.and));
    }
    let (n, d, bytes) = ratio(rest)?;
    if goes_on(&rest[bytes..]) || rest[bytes..].starts_with('/') {
        return None;
    }
    if let Some(words) = say(n, d, language) {
        return Said::new(bytes, words);
    }
    let joint = if n == d || (n, d) == (24, 7) {
        ""
    } else {
        language.over
    };
    let words = format!("{} {joint} {}", language.count(n), language.count(d));
    Said::new(bytes, words.replace("  ", " "))
}

/// Numerator, denominator and bytes of the fraction at the start of a text.
fn ratio(rest: &str) -> Option<(u64, u64, usize)> {
    let first = rest.chars().next()?;
    if let Some((_, n, d)) = VULGAR.into_iter().find(|(sign, _, _)| *sign == first) {
        return Some((n, d, first.len_utf8()));
    }
    let found = pattern!(r"(\d{1,4})[/⁄](\d{1,4})").captures(rest)?;
    let parts = (found[1].parse().ok()?, found[2].parse().ok()?);
    Some((parts.0, parts.1, found.get(0)?.end()))
}

/// A fraction whose denominator has a name, and that is less than one.
fn say(n: u64, d: u64, language: &Language) -> Option<String> {
    let (_, one, many) = language
        .fractions
        .iter()
        .find(|(below, _, _)| *below == d)?;
    if n == 0 || n >= d {
        return None;
    }
    let gender = if one.ends_with('a') {
        Gender::Feminine
    } else {
        Gender::Masculine
    };
    Some(language.count_of(n, [one, many], gender))
}

/// `1st`, `3.` before a noun, `2º`.
pub fn ordinal(scan: &Scan, language: &Language) -> Option<Said> {
    let rest = scan.rest();
    let number = Number::parse(rest, language)?;
    let value = number.value()?;
    let after = &rest[number.bytes..];
    let marks = language.ordinal_marks.iter().filter(|(mark, _)| {
        after
            .strip_prefix(mark)
            .is_some_and(|after| !goes_on(after))
    });
    if let Some((mark, gender)) = marks.max_by_key(|(mark, _)| mark.len()) {
        let words = (language.ordinal)(value, *gender)?;
        return Said::new(number.bytes + mark.len(), words);
    }
    let goes_on = after
        .strip_prefix(". ")
        .is_some_and(|noun| noun.starts_with(char::is_alphabetic));
    if language.ordinal_point && goes_on && value < 1000 {
        let words = (language.ordinal)(value, Gender::Counted)?;
        // As an adjective behind one that is declined: `am 3. Tag`, `des 2. Weltkriegs`.
        let declined = [
            "am", "im", "vom", "zum", "beim", "dem", "den", "des", "der", "seit", "ab", "zur",
        ];
        let before = scan.word_before().to_lowercase();
        let ending = if declined.contains(&before.as_str()) && before != "der" {
            "n"
        } else {
            ""
        };
        return Said::new(number.bytes + 1, format!("{words}{ending}"));
    }
    None
}

/// `1990s`, `'80s`.
pub fn decade(scan: &Scan, language: &Language) -> Option<Said> {
    let say = language.decade?;
    let found = pattern!(r"['’]?(\d{1,3}0)(?:'|’)?s\b").captures(scan.rest())?;
    Said::new(found.get(0)?.end(), say(language, found[1].parse().ok()?))
}

/// Years, whole and decimal numbers; long rows of digits one by one.
pub fn number(scan: &Scan, language: &Language) -> Option<Said> {
    let rest = scan.rest();
    let sign = minus(scan).unwrap_or(0);
    let number = Number::parse(&rest[sign..], language)?;
    let bytes = sign + number.bytes;
    // Letters behind it make it a name (`4K`): digits apart, then letters.
    let year =
        sign == 0 && number.bytes == 4 && number.fraction.is_none() && !goes_on(&rest[bytes..]);
    let words = match number.value() {
        Some(value) if year && (1010..2100).contains(&value) => (language.year)(language, value),
        _ => number.words(language, Gender::Counted),
    };
    let words = if sign > 0 {
        format!("{} {words}", language.minus)
    } else {
        words
    };
    let tens = tens_power(&rest[bytes..], language);
    match tens {
        Some((power, more)) => Said::new(bytes + more, format!("{words} {power}")),
        None => Said::new(bytes, words),
    }
}

/// `e-5` behind a number: times ten to the minus five.
fn tens_power(rest: &str, language: &Language) -> Option<(String, usize)> {
    let found = pattern!(r"[eE]([+-]?)(\d{1,3})\b").captures(rest)?;
    let power = language.count(found[2].parse().ok()?);
    let sign = if &found[1] == "-" {
        format!("{} ", language.minus)
    } else {
        String::new()
    };
    let words = language.ten_to.replace("{}", &format!("{sign}{power}"));
    Some((words, found.get(0)?.end()))
}
