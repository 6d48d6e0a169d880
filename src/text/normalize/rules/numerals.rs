//! Numbers as they are written: parsing, and those that are read in pieces.

use super::pattern;
use crate::text::normalize::{
    language::Language,
    numbers::Gender,
    scan::{Said, Scan, goes_on},
};

/// A number as it stands in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// Digits before the separator, without groups.
    pub whole: String,
    /// Digits after it.
    pub fraction: Option<String>,
    /// How many bytes of the text it is.
    pub bytes: usize,
}

impl Number {
    /// The number at the start of `rest`, with the separators of the language. A number that goes
    /// on like a version (`1.2.3`) is none.
    pub fn parse(rest: &str, language: &Language) -> Option<Number> {
        let mut whole = digits(rest);
        let mut bytes = whole.len();
        if bytes == 0 {
            return None;
        }
        let mut plain = whole.to_owned();
        if bytes <= 3 && whole != "0" {
            while let Some((group, length)) = next_group(&rest[bytes..], language) {
                plain.push_str(group);
                bytes += length;
            }
        }
        let mut fraction = None;
        if let Some(after) = rest[bytes..].strip_prefix(language.decimal) {
            whole = digits(after);
            if !whole.is_empty() {
                fraction = Some(whole.to_owned());
                bytes += 1 + whole.len();
            }
        }
        let after = &rest[bytes..];
        let more = after.strip_prefix(['.', ',']).unwrap_or("");
        if fraction.is_some() && goes_on_in_digits(more) {
            return None;
        }
        Some(Number {
            whole: plain,
            fraction,
            bytes,
        })
    }

    /// Its value, if it is whole and not too large.
    pub fn value(&self) -> Option<u64> {
        if self.fraction.is_some() {
            return None;
        }
        self.whole.parse().ok()
    }

    /// Whether it is exactly one.
    pub fn is_one(&self) -> bool {
        self.value() == Some(1)
    }

    /// The words for it.
    pub fn words(&self, language: &Language, gender: Gender) -> String {
        let cardinals = &language.cardinals;
        let spelled = self.whole.len() > 1 && self.whole.starts_with('0');
        let gender = match self.fraction {
            Some(_) => Gender::Counted,
            None => gender,
        };
        let whole = match self.whole.parse::<u64>() {
            Ok(value) if !spelled => cardinals.agreeing(value, gender),
            _ => cardinals.digits(&self.whole),
        };
        let Some(fraction) = &self.fraction else {
            return whole;
        };
        let as_number =
            language.whole_fraction && fraction.len() <= 2 && !fraction.starts_with('0');
        let fraction = match fraction.parse::<u64>() {
            Ok(value) if as_number => cardinals.words(value),
            _ => cardinals.digits(fraction),
        };
        format!("{whole} {} {fraction}", language.point)
    }
}

/// The digits at the start of a text.
pub fn digits(rest: &str) -> &str {
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    &rest[..end]
}

fn goes_on_in_digits(rest: &str) -> bool {
    !digits(rest).is_empty()
}

/// The next three digits of a grouped number and their length with the separator.
fn next_group<'a>(rest: &'a str, language: &Language) -> Option<(&'a str, usize)> {
    let separator = rest.chars().next()?;
    let fits = match separator {
        '.' | ',' => separator != language.decimal,
        '\u{a0}' | '\u{202f}' | '\u{2009}' => true,
        '\'' | '’' => language.decimal == ',',
        ' ' => language.decimal == ',',
        _ => false,
    };
    let group = digits(&rest[separator.len_utf8()..]);
    (fits && group.len() == 3).then_some((group, separator.len_utf8() + 3))
}

/// Whether a minus sign stands here that belongs to the digits behind it; its length.
pub fn minus(scan: &Scan) -> Option<usize> {
    let rest = scan.rest();
    let sign = rest
        .chars()
        .next()
        .filter(|c| matches!(c, '-' | '−' | '–'))?;
    let free = scan
        .before()
        .is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '[' | '=' | '<' | '>' | '×' | '*'));
    let length = sign.len_utf8();
    let number = rest[length..].starts_with(|c: char| c.is_ascii_digit());
    (free && number).then_some(length)
}

/// Telephone and other numbers in groups: digit by digit, a pause between the groups.
pub fn phone(scan: &Scan, language: &Language) -> Option<Said> {
    let found = pattern!(
        r"(?:\+\d{1,3}[ \-./]?)(?:\(0?\d{1,5}\)[ \-./]?)?\d{1,5}(?:[ \-./]\d{2,8}){1,5}|\(\d{3,5}\)[ \-]?\d{3,4}[ \-]?\d{3,5}|\d{3}[\-.]\d{3}[\-.]\d{4}|\d{1,5}(?:-\d{1,7}){2,5}|555-\d{4}|\+\d{8,15}"
    )
    .find(scan.rest())?;
    let count = found.as_str().bytes().filter(u8::is_ascii_digit).count();
    let short = found.as_str().starts_with('+') && count < 8;
    if goes_on(&scan.rest()[found.end()..]) || short {
        return None;
    }
    let groups = found.as_str().split(|c: char| !c.is_ascii_digit());
    let groups: Vec<String> = groups
        .filter(|group| !group.is_empty())
        .map(|group| language.cardinals.digits(group))
        .collect();
    let plus = language.symbols.iter().find(|(sign, _)| *sign == '+');
    let plus = match plus {
        Some((_, word)) if found.as_str().starts_with('+') => format!("{word} "),
        _ => String::new(),
    };
    Said::new(found.end(), format!("{plus}{}", groups.join(", ")))
}

/// Versions and addresses of machines: `1.2.3`, `v2.0`, `192.168.0.1`.
pub fn version(scan: &Scan, language: &Language) -> Option<Said> {
    let found = pattern!(r"([vV]\.?)?(\d+(?:\.\d+)+)").captures(scan.rest())?;
    let (all, number) = (found.get(0)?, found.get(2)?.as_str());
    let marked = found.get(1).is_some();
    let parts = number.split('.').count();
    let odd = language.decimal == ',' && parts == 2;
    if goes_on(&scan.rest()[all.end()..]) || !(marked || parts > 2 || odd) {
        return None;
    }
    if !marked && Number::parse(number, language).is_some_and(|plain| plain.bytes == number.len()) {
        return None;
    }
    let words = number.split('.').map(|part| match part.parse::<u64>() {
        Ok(value) if part.len() < 5 && (part == "0" || !part.starts_with('0')) => {
            language.count(value)
        }
        _ => language.cardinals.digits(part),
    });
    let words: Vec<String> = words.collect();
    let point = if language.decimal == '.' {
        language.point
    } else {
        language.web[0]
    };
    let said = scan.word_before().to_lowercase().starts_with("version");
    let before = if marked && !said { "version " } else { "" };
    Said::new(
        all.end(),
        format!("{before}{}", words.join(&format!(" {point} "))),
    )
}
