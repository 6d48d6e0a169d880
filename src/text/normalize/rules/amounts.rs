//! Amounts with a unit.

use super::{
    money::blank,
    numerals::{Number, minus},
    pattern,
};
use crate::text::normalize::{
    language::{Language, Unit},
    scan::{Said, Scan, goes_on},
};

/// `5 km`, `60 km/h`, `25°C`, `5%`, `3.5 GB`, `5'10"`.
pub fn measure(scan: &Scan, language: &Language) -> Option<Said> {
    let rest = scan.rest();
    let sign = minus(scan).unwrap_or(0);
    let number = Number::parse(&rest[sign..], language)?;
    if sign == 0
        && let Some(said) = feet(rest, language)
    {
        return Some(said);
    }
    let at = sign + number.bytes;
    let gap = blank(&rest[at..]);
    let hyphen = usize::from(gap == 0 && rest[at..].starts_with('-'));
    let (unit, bytes) = unit(
        &rest[at + gap + hyphen..],
        language,
        gap == 0 && hyphen == 0,
    )?;
    let mut end = at + gap + hyphen + bytes;
    let mut per = String::new();
    if let Some(after) = rest[end..].strip_prefix('/')
        && let Some((below, bytes)) = self::unit(after, language, true)
    {
        per = format!(" {} {}", language.per, below.names[0]);
        end += 1 + bytes;
    }
    let adjective = hyphen > 0
        || language
            .articles
            .contains(&scan.word_before().to_lowercase().as_str())
            && rest[end..].starts_with(' ')
            && rest[end..].trim_start().starts_with(char::is_alphabetic);
    let one = number.is_one() || adjective;
    let minus = if sign > 0 {
        format!("{} ", language.minus)
    } else {
        String::new()
    };
    let name = unit.names[usize::from(!one)];
    // The point of an abbreviation also ends the sentence; it is kept for the pause.
    let last = rest[..end].ends_with('.') && rest[end..].trim().is_empty();
    let stop = if last { "." } else { "" };
    Said::new(
        end,
        format!(
            "{minus}{} {name}{per}{stop}",
            number.words(language, unit.gender)
        ),
    )
}

/// The unit at the start of a text, and its bytes. Units of one letter have to touch the number,
/// unless nothing else could be meant.
fn unit(rest: &str, language: &Language, touching: bool) -> Option<(&'static Unit, usize)> {
    let fits = language.units.iter().filter(|unit| {
        rest.strip_prefix(unit.sign).is_some_and(|after| {
            let letters = unit.sign.ends_with(char::is_alphabetic);
            let clear = touching
                || unit.sign.len() > 1
                || !letters
                || matches!(unit.sign, "m" | "g" | "h" | "l" | "L" | "W" | "V");
            clear && !(letters && goes_on(after))
        })
    });
    fits.map(|unit| (unit, unit.sign.len()))
        .max_by_key(|(_, bytes)| *bytes)
}

/// Feet and inches: `5'10"`.
fn feet(rest: &str, language: &Language) -> Option<Said> {
    let found = pattern!(r#"(\d{1,2})['′’](\d{1,2})(?:["″”]|''|’’)"#).captures(rest)?;
    let named = |sign: &str| language.units.iter().find(|unit| unit.sign == sign);
    let (foot, inch) = (named("ft")?, named("in.")?);
    let feet = language.count_of(found[1].parse().ok()?, foot.names, foot.gender);
    let inches = language.count_of(found[2].parse().ok()?, inch.names, inch.gender);
    Said::new(found.get(0)?.end(), format!("{feet} {inches}"))
}

/// Degrees, percent and the like as words, for numbers that stand apart from them.
pub fn sign_of(language: &Language, sign: &str) -> Option<&'static str> {
    language
        .units
        .iter()
        .find(|unit| unit.sign == sign)
        .map(|unit| unit.names[1])
}
