//! Amounts of money.

use super::{
    numerals::{Number, minus},
    pattern,
};
use crate::text::normalize::{
    language::{Language, Money},
    numbers::Gender,
    scan::{Said, Scan, goes_on},
};

/// `$49.95`, `29,99 €`, `£5`, `EUR 3`, `$1.5 million`, `$5-10`, `-$3`.
pub fn amount(scan: &Scan, language: &Language) -> Option<Said> {
    let rest = scan.rest();
    let sign = sign_before_money(scan);
    let mut at = sign;
    let money = match currency(&rest[at..], language) {
        Some((money, bytes)) => {
            at += bytes;
            at += blank(&rest[at..]);
            Some(money)
        }
        None => None,
    };
    let number = Number::parse(&rest[at..], language)?;
    at += number.bytes;
    let (magnitude, bytes) = magnitude(&rest[at..], language, money.is_some());
    at += bytes;
    let range = range(&rest[at..], language);
    let end = range.as_ref().map_or(at, |(_, bytes)| at + bytes);
    let (money, at, range) = match money {
        Some(money) => (money, end, range),
        None => {
            let gap = blank(&rest[end..]);
            let (money, bytes) = currency(&rest[end + gap..], language)?;
            // A sign that belongs to the next amount: `5 $10 bills`.
            let next = &rest[end + gap + bytes..];
            if gap > 0 && next.starts_with(|c: char| c.is_ascii_digit()) {
                return None;
            }
            (money, end + gap + bytes, range)
        }
    };
    if goes_on(&rest[at..]) {
        return None;
    }
    let mut words = String::new();
    if sign > 0 {
        words = format!("{} ", language.minus);
    }
    if let Some((upper, _)) = range {
        words.push_str(&number.words(language, Gender::Counted));
        words.push_str(&format!(
            " {} {} {}",
            language.to,
            upper.words(language, money.gender),
            money.names[1]
        ));
    } else {
        let article = language
            .articles
            .contains(&scan.word_before().to_lowercase().as_str());
        let after = &rest[at..];
        let hyphen = after
            .strip_prefix('-')
            .is_some_and(|after| after.starts_with(char::is_alphabetic));
        let single = article && (hyphen || after.trim_start().starts_with(char::is_alphabetic));
        words.push_str(&say(&number, magnitude, money, single, language));
    }
    Said::new(at, words)
}

fn sign_before_money(scan: &Scan) -> usize {
    let rest = scan.rest();
    let free = scan.before().is_none_or(|c| c.is_whitespace() || c == '(');
    match rest.chars().next() {
        Some(sign @ ('-' | '−'))
            if free && rest[sign.len_utf8()..].starts_with(['$', '€', '£', '¥']) =>
        {
            sign.len_utf8()
        }
        _ => minus(scan).unwrap_or(0),
    }
}

fn say(
    number: &Number,
    magnitude: Option<&str>,
    money: &Money,
    single: bool,
    language: &Language,
) -> String {
    if let Some(magnitude) = magnitude {
        let number = number.words(language, Gender::Masculine);
        return format!(
            "{number} {magnitude}{}{}",
            language.money_of,
            money.names[usize::from(!single)]
        );
    }
    let parts = number
        .fraction
        .as_deref()
        .filter(|parts| parts.len() == 2 && !money.parts[0].is_empty());
    let whole: Option<u64> = number.whole.parse().ok();
    let (Some(parts), Some(whole)) = (parts.and_then(|parts| parts.parse().ok()), whole) else {
        let one = number.is_one() || single;
        return format!(
            "{} {}",
            number.words(language, money.gender),
            money.names[usize::from(!one)]
        );
    };
    let part_gender = if money.parts[0].ends_with('a') {
        Gender::Feminine
    } else {
        Gender::Masculine
    };
    let parts_of = |n| language.count_of(n, money.parts, part_gender);
    match (whole, parts) {
        (_, 0) if single => format!("{} {}", language.count(whole), money.names[0]),
        (_, 0) => language.count_of(whole, money.names, money.gender),
        (0, parts) => parts_of(parts),
        _ => {
            let whole = language.count_of(whole, money.names, money.gender);
            format!("{whole}{}{}", language.money_join, parts_of(parts))
        }
    }
}

/// The currency at the start of a text, and its bytes.
fn currency(rest: &str, language: &'_ Language) -> Option<(&'static Money, usize)> {
    let all = language
        .money
        .iter()
        .flat_map(|money| money.signs.iter().map(move |sign| (money, *sign)));
    let fits = all.filter(|(_, sign)| {
        rest.strip_prefix(sign).is_some_and(|after| {
            let letters = sign.ends_with(char::is_alphabetic);
            !(letters && after.starts_with(char::is_alphabetic))
        })
    });
    fits.map(|(money, sign)| (money, sign.len()))
        .max_by_key(|(_, bytes)| *bytes)
}

/// The multiplier behind an amount (`million`, `bn`, `k`) and its bytes. Single letters count
/// only where the currency stands before the number.
fn magnitude(rest: &str, language: &Language, money_first: bool) -> (Option<&'static str>, usize) {
    let gap = blank(rest);
    let word = rest[gap..]
        .split(|c: char| !c.is_alphabetic())
        .next()
        .unwrap_or("");
    let found = language.magnitudes.iter().find(|(short, _)| *short == word);
    match found {
        Some((short, long)) if short.len() > 2 || (money_first && gap == 0) => {
            let point = usize::from(
                short.len() < 5 && long != short && rest[gap + word.len()..].starts_with(". "),
            );
            (Some(*long), gap + word.len() + point)
        }
        _ => (None, 0),
    }
}

/// The upper end of a range, with the bytes up to its end.
fn range(rest: &str, language: &Language) -> Option<(Number, usize)> {
    let dash = pattern!(r"[ ]?[-–][ ]?").find(rest)?.end();
    let sign = currency(&rest[dash..], language).map_or(0, |(_, bytes)| bytes);
    let number = Number::parse(&rest[dash + sign..], language)?;
    let bytes = dash + sign + number.bytes;
    (!goes_on(&rest[bytes..])).then_some((number, bytes))
}

/// Bytes of one blank, if there is one.
pub fn blank(rest: &str) -> usize {
    let first = rest.chars().next();
    first
        .filter(|c| matches!(c, ' ' | '\u{a0}' | '\u{202f}'))
        .map_or(0, char::len_utf8)
}
