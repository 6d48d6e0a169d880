//! Abbreviated words and Roman numerals.

use super::numerals::digits;
use crate::text::normalize::{
    language::{Abbreviation, Language, Place},
    scan::{Said, Scan, goes_on},
};

/// Names that would be taken for something else: `9/11`, `.NET`.
pub fn abbreviation_with_sign(scan: &Scan, language: &Language) -> Option<Said> {
    let first = scan.rest().chars().next()?;
    let odd = first == '.' || first.is_ascii_digit();
    if odd {
        abbreviation(scan, language)
    } else {
        None
    }
}

/// `Dr.`, `etc.`, `No. 5`, `z. B.`
pub fn abbreviation(scan: &Scan, language: &Language) -> Option<Said> {
    let rest = scan.rest();
    let fits = language.abbreviations.iter().filter_map(|known| {
        let bytes = length(rest, known.short)?;
        let after = &rest[bytes..];
        let letters = known.short.ends_with(char::is_alphanumeric);
        let whole = !letters || !goes_on(after);
        (whole && stands(scan, known, after)).then_some((known, bytes))
    });
    let (known, bytes) = fits.max_by_key(|(_, bytes)| *bytes)?;
    let after = &rest[bytes..];
    // The point at the end of a sentence stays for the pause.
    let last =
        known.short.ends_with('.') && after.trim_matches(['"', '”', '’', ')', ' ']).is_empty();
    let stop = if last { "." } else { "" };
    Said::new(bytes, format!("{}{stop}", known.long))
}

/// Bytes of `short` at the start of a text: capitals may begin it, blanks may follow its points.
fn length(rest: &str, short: &str) -> Option<usize> {
    let mut found = rest.char_indices().peekable();
    let mut end = 0;
    for (index, wanted) in short.chars().enumerate() {
        if wanted == ' ' {
            while found
                .next_if(|(_, c)| matches!(c, ' ' | '\u{a0}' | '\u{202f}'))
                .is_some()
            {}
            continue;
        }
        let (at, c) = found.next()?;
        let equal = c == wanted
            || index == 0 && c.to_lowercase().eq(wanted.to_lowercase()) && wanted.is_lowercase();
        if !equal {
            return None;
        }
        end = at + c.len_utf8();
    }
    Some(end)
}

fn stands(scan: &Scan, known: &Abbreviation, after: &str) -> bool {
    let next = after.trim_start();
    let before = scan.word_before();
    let capital_before = before.starts_with(char::is_uppercase);
    match known.place {
        Place::Title => after.starts_with([' ', '\u{a0}']) && next.starts_with(char::is_uppercase),
        Place::Number => !digits(next).is_empty(),
        Place::AfterName => capital_before || before.ends_with(|c: char| c.is_ascii_digit()),
        Place::Inside | Place::Anywhere => true,
    }
}

/// `Henry VIII`, `World War II`, `Chapter IV`.
pub fn roman(scan: &Scan, language: &Language) -> Option<Said> {
    let rest = scan.rest();
    let numeral = &rest[..rest
        .find(|c: char| !"IVXL".contains(c))
        .unwrap_or(rest.len())];
    if numeral.is_empty() || goes_on(&rest[numeral.len()..]) {
        return None;
    }
    let before = scan.word_before();
    let touching = scan.text[..scan.at].ends_with(' ');
    let value = value(numeral)?;
    let mut bytes = numeral.len();
    if language.rulers.contains(&before) && touching {
        let point = language.ordinal_point && rest[bytes..].starts_with(". ");
        bytes += usize::from(point);
        let alone = numeral == "I" && !rest[bytes..].starts_with([',', '.', ' ']);
        return if alone {
            None
        } else {
            Said::new(bytes, (language.ruler)(language, value))
        };
    }
    let named = before.starts_with(char::is_uppercase) && before.chars().any(char::is_lowercase);
    let numbered = language.numbered.contains(&before.to_lowercase().as_str());
    if touching && (numbered || named && numeral.len() > 1) {
        return Said::new(bytes, language.count(value));
    }
    None
}

/// The value of a Roman numeral in its usual form.
fn value(numeral: &str) -> Option<u64> {
    const PARTS: [(&str, u64); 7] = [
        ("XL", 40),
        ("L", 50),
        ("X", 10),
        ("IX", 9),
        ("V", 5),
        ("IV", 4),
        ("I", 1),
    ];
    let (mut rest, mut total) = (numeral, 0);
    for (sign, worth) in [
        PARTS[1], PARTS[0], PARTS[2], PARTS[3], PARTS[5], PARTS[4], PARTS[6],
    ] {
        let most = if matches!(sign, "X" | "I") { 3 } else { 1 };
        for _ in 0..most {
            if let Some(after) = rest.strip_prefix(sign) {
                (rest, total) = (after, total + worth);
            }
        }
    }
    (rest.is_empty() && total > 0).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roman_numerals_have_one_form() {
        for (numeral, wanted) in [
            ("I", 1),
            ("IV", 4),
            ("VIII", 8),
            ("XIV", 14),
            ("XXI", 21),
            ("XLIX", 49),
            ("LII", 52),
        ] {
            assert_eq!(value(numeral), Some(wanted), "{numeral}");
        }
        for wrong in ["IIII", "VX", "IIX", "VV", "XIIV"] {
            assert_eq!(value(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn abbreviations_allow_blanks_and_capitals() {
        assert_eq!(length("Z. B. so", "z. B."), Some(5));
        assert_eq!(length("z.B. so", "z. B."), Some(4));
        assert_eq!(length("dr. x", "Dr."), None);
        assert_eq!(length("Etc", "etc."), None);
    }
}
