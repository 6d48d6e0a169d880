//! Dates, in numbers and with the name of the month.

use super::pattern;
use crate::text::normalize::{
    language::{Date, Language},
    scan::{Said, Scan, goes_on},
};

/// `2024-12-24`, `24.12.2024`, `12/24/2024`, `24.12.`
pub fn in_numbers(scan: &Scan, language: &Language) -> Option<Said> {
    let rest = scan.rest();
    let iso = pattern!(r"(\d{4})-(\d{2})-(\d{2})\b").captures(rest);
    let (found, date) = if let Some(found) = iso {
        let part = |i| part(&found, i);
        let bytes = found.get(0)?.end();
        (bytes, (part(3)?, part(2)?, Some(part(1)?)))
    } else {
        let found = pattern!(r"(\d{1,2})([./-])(\d{1,2})([./-])(\d{4}|\d{2})?").captures(rest)?;
        let point = &found[2] == "." && language.ordinal_point;
        let year = part(&found, 5).map(|year| match (year, found[5].len()) {
            (0..50, 2) => 2000 + year,
            (_, 2) => 1900 + year,
            _ => year,
        });
        let short = found.get(5).is_some_and(|year| year.len() == 2);
        let clear =
            year.is_some() && (&found[2] == "/" || !short || point) || year.is_none() && point;
        if found[2] != found[4] || !clear {
            return None;
        }
        let (first, second) = (part(&found, 1)?, part(&found, 3)?);
        // A number above twelve is no month, whatever the language's order.
        let month_first = first <= 12 && (second > 12 || language.dates.month_first);
        let (month, day) = if month_first {
            (first, second)
        } else {
            (second, first)
        };
        (found.get(0)?.end(), (day, month, year))
    };
    let (day, month, year) = date;
    let valid = (1..=31).contains(&day) && (1..=12).contains(&month);
    if !valid || goes_on(&rest[found..]) {
        return None;
    }
    let date = Date {
        day,
        last_day: None,
        month: month as usize,
        year,
        after: scan.word_before().to_lowercase(),
    };
    Said::new(found, (language.dates.say)(language, &date))
}

fn part(found: &regex::Captures, index: usize) -> Option<u64> {
    found.get(index)?.as_str().parse().ok()
}

/// `March 3rd, 2024`, `3 March`, `3. Oktober 1990`, `March 3-5`.
pub fn with_name(scan: &Scan, language: &Language) -> Option<Said> {
    let rest = scan.rest();
    let mut date = Date {
        day: 0,
        last_day: None,
        month: 0,
        year: None,
        after: scan.word_before().to_lowercase(),
    };
    let mut at = 0;
    if language.dates.month_first
        && let Some((month, bytes)) = month(rest, language)
    {
        let found = pattern!(r"[ \u{a0}](\d{1,2})(?:[-–](\d{1,2}))?").captures(&rest[bytes..])?;
        date.month = month;
        (date.day, date.last_day) = (part(&found, 1)?, part(&found, 2));
        at = bytes + found.get(0)?.end();
        at += mark(&rest[at..], language);
    } else {
        let found = pattern!(r"(\d{1,2})(?:(?:\.|[-–])+(\d{1,2}))?").captures(rest)?;
        (date.day, date.last_day) = (part(&found, 1)?, part(&found, 2));
        at += found.get(0)?.end();
        at += mark(&rest[at..], language);
        at += filler(&rest[at..], language)?;
        let (month, bytes) = month(&rest[at..], language)?;
        date.month = month;
        at += bytes;
    }
    let valid = (1..=31).contains(&date.day) && date.last_day.is_none_or(|last| last > date.day);
    if !valid || goes_on(&rest[at..]) {
        return None;
    }
    let comma = rest[at..].strip_prefix(',').unwrap_or(&rest[at..]);
    if let Some(blank) = filler(comma, language)
        && let Some(year) = pattern!(r"(1\d{3}|20\d{2})\b").find(&comma[blank..])
    {
        date.year = year.as_str().parse().ok();
        at = rest.len() - comma.len() + blank + year.end();
    }
    Said::new(at, (language.dates.say)(language, &date))
}

/// The mark of an ordinal behind a day, in bytes.
fn mark(rest: &str, language: &Language) -> usize {
    let marks = language.ordinal_marks.iter().map(|(mark, _)| *mark);
    let point = language.ordinal_point.then_some(".");
    let fits = marks
        .chain(point)
        .filter(|mark| rest.strip_prefix(mark).is_some_and(|after| !goes_on(after)));
    fits.map(str::len).max().unwrap_or(0)
}

/// Blanks between the parts of a date, with the words that may stand there; bytes.
fn filler(rest: &str, language: &Language) -> Option<usize> {
    let blank = rest.len() - rest.trim_start_matches([' ', '\u{a0}']).len();
    if blank == 0 {
        return None;
    }
    let word = language.dates.fillers.iter().find_map(|word| {
        let after = rest[blank..].strip_prefix(word)?;
        after.starts_with(' ').then_some(word.len() + 1)
    });
    Some(blank + word.unwrap_or(0))
}

/// The month that a text begins with, and its bytes.
fn month(rest: &str, language: &Language) -> Option<(usize, usize)> {
    let word = rest.split(|c: char| !c.is_alphabetic()).next()?;
    let small = word.to_lowercase();
    let place = |names: &[&str; 12]| names.iter().position(|name| name.to_lowercase() == small);
    if word.is_empty() {
        return None;
    }
    if let Some(index) = place(&language.dates.months) {
        return Some((index + 1, word.len()));
    }
    let index = place(&language.dates.short)?;
    let point = usize::from(rest[word.len()..].starts_with('.'));
    Some((index + 1, word.len() + point))
}
