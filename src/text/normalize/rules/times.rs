//! Times of day.

use super::pattern;
use crate::text::normalize::{
    language::{Clock, Language},
    scan::{Said, Scan, goes_on},
};

/// `8:00`, `10:30 pm`, `5 p.m.`, `14:05:30`, `14.30 Uhr`, `14h30`.
pub fn time(scan: &Scan, language: &Language) -> Option<Said> {
    let rest = scan.rest();
    let found = pattern!(
        r"(?i)(\d{1,2}):([0-5]\d)(?::([0-5]\d))?(?:[ \u{a0}\u{202f}]?([ap])(?:\.[ ]?m\.|m\b))?|(\d{1,2})[ \u{a0}\u{202f}]?([ap])(?:\.[ ]?m\.|m\b)"
    )
    .captures(rest);
    let part = |found: &regex::Captures, i: usize| {
        found
            .get(i)
            .and_then(|text| text.as_str().parse::<u64>().ok())
    };
    let half = |found: &regex::Captures, i: usize| {
        found
            .get(i)
            .map(|text| text.as_str().eq_ignore_ascii_case("p"))
    };
    let (clock, mut bytes) = match &found {
        Some(found) if found.get(5).is_some() => (
            Clock {
                hour: part(found, 5)?,
                minute: 0,
                second: None,
                afternoon: half(found, 6),
            },
            found.get(0)?.end(),
        ),
        Some(found) => (
            Clock {
                hour: part(found, 1)?,
                minute: part(found, 2)?,
                second: part(found, 3),
                afternoon: half(found, 4),
            },
            found.get(0)?.end(),
        ),
        None => with_word(rest, language)?,
    };
    let word = language.clock_word;
    if let Some(after) = rest[bytes..]
        .trim_start_matches([' ', '\u{a0}'])
        .strip_prefix(word)
        && !word.is_empty()
        && !goes_on(after)
    {
        bytes = rest.len() - after.len();
    }
    let good = clock.hour <= if clock.afternoon.is_some() { 12 } else { 24 };
    if !good || goes_on(&rest[bytes..]) {
        return None;
    }
    // The point of `p.m.` also ends the sentence; it is kept for the pause.
    let last = rest[bytes..].trim().is_empty() && rest[..bytes].ends_with('.');
    let stop = if last { "." } else { "" };
    Said::new(bytes, format!("{}{stop}", (language.time)(language, clock)))
}

/// Hours and minutes around a word or letter of the language: `14.30 Uhr`, `14h30`, `8 h`.
fn with_word(rest: &str, language: &Language) -> Option<(Clock, usize)> {
    let found =
        pattern!(r"(\d{1,2})(?:\.([0-5]\d))?[ \u{a0}\u{202f}]?(Uhr|uur|h|H)(?:([0-5]\d))?\b")
            .captures(rest)?;
    let word = found.get(3)?.as_str();
    let inner = found.get(2).or(found.get(4));
    let known = if word.eq_ignore_ascii_case("h") {
        language.hour_letter && (found.get(4).is_some() || found.get(2).is_none())
    } else {
        word == language.clock_word
    };
    let clock = Clock {
        hour: found[1].parse().ok()?,
        minute: inner.map_or(Some(0), |minute| minute.as_str().parse().ok())?,
        second: None,
        afternoon: None,
    };
    known.then_some((clock, found.get(0)?.end()))
}
