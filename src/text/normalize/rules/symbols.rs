//! Characters that are not spoken, and those that are words.

use super::amounts::sign_of;
use crate::text::normalize::{
    language::Language,
    scan::{Said, Scan},
};

/// Characters without a sound in any language: emoji, control and invisible characters, marks of
/// formatting.
pub fn unseen(scan: &Scan) -> Option<Said> {
    let rest = scan.rest();
    let end = rest.find(|c| !is_unseen(c)).unwrap_or(rest.len());
    if end > 0 {
        return Said::new(end, "");
    }
    // `**bold**`, `__so__`, `# heading`, `code`
    let marks = rest.len() - rest.trim_start_matches(['*', '`', '~', '_']).len();
    let apart = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    let after = rest[marks..].chars().next();
    let formatting = marks > 0
        && (apart(scan.before()) || apart(after))
        && !(marks == 1
            && rest.starts_with(['*', '~'])
            && after.is_none_or(|c| c.is_whitespace() || c.is_ascii_digit()));
    if formatting {
        return Said::new(marks, "");
    }
    let heading = rest.len() - rest.trim_start_matches('#').len();
    let line_start = scan.text[..scan.at].trim_end_matches(' ').ends_with('\n')
        || scan.text[..scan.at].trim().is_empty();
    if heading > 0 && line_start && rest[heading..].starts_with(' ') {
        return Said::new(heading, "");
    }
    None
}

fn is_unseen(c: char) -> bool {
    let keycap = matches!(u32::from(c), 0x20e3);
    c.is_control() && !c.is_whitespace()
        || keycap
        || matches!(u32::from(c),
            0xad | 0x61c | 0x180e | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0xfeff
            | 0x2300..=0x23ff | 0x2500..=0x27bf | 0x2b00..=0x2bff | 0xe000..=0xf8ff | 0xfe00..=0xfe0f
            | 0xfffc..=0xfffd | 0x1f000..=0x1faff | 0xe0000..=0xe007f | 0xf0000..)
        || matches!(c, '©' | '®' | '™' | '•' | '†' | '‡' | '¶')
}

/// Symbols that are words between words or before numbers.
pub fn symbol(scan: &Scan, language: &Language) -> Option<Said> {
    let rest = scan.rest();
    let c = rest.chars().next()?;
    let after = &rest[c.len_utf8()..];
    let next = after.chars().next();
    let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let before = scan.before();
    let say = |words: &str| Said::new(c.len_utf8(), format!(" {words} "));
    match c {
        // Ranges: between digits, also with blanks around a dash.
        '-' | '–' if digit(before) && digit(next) => say(language.to),
        '–' if digit(scan.text[..scan.at].trim_end().chars().next_back())
            && digit(after.trim_start().chars().next()) =>
        {
            say(language.to)
        }
        '-' | '–' if scan.numeric && (digit(next) || next.is_some_and(|c| "$€£¥".contains(c))) => {
            say(language.to)
        }
        '#' if digit(next) => say(language.number_sign),
        '#' if next.is_some_and(char::is_alphabetic) => say(language.hash),
        '~' | '≈' if digit(after.trim_start().chars().next()) => say(language.about),
        '%' | '‰' => say(sign_of(language, &c.to_string())?),
        '°' => say(sign_of(language, "°")?),
        '&' => say(language.and),
        '/' if scan.numeric && next.is_some_and(char::is_alphabetic) => say(language.per),
        ':' if digit(before) && digit(next) => say(language.ratio),
        '^' if after.starts_with('2') => Said::new(2, format!(" {} ", word_of(language, '²'))),
        '^' if after.starts_with('3') => Said::new(2, format!(" {} ", word_of(language, '³'))),
        '/' if before.is_some_and(char::is_alphabetic) && next.is_some_and(char::is_alphabetic) => {
            say(language.web[1])
        }
        '\\' | '|' | '^' | '_' | '[' | ']' | '{' | '}' | '<' | '>' | '#' | '~' | '*' | '`'
        | '+' | '=' | '@' => {
            let math = matches!(c, '<' | '>' | '+' | '=' | '*')
                && !(matches!(c, '+') && before.is_some_and(char::is_alphabetic));
            let sides = before.is_none_or(|c| c.is_whitespace() || c.is_alphanumeric() || c == ')');
            let at = c == '@' && (next.is_some_and(char::is_alphanumeric) || next == Some(' '));
            let word = language
                .symbols
                .iter()
                .find(|(sign, _)| *sign == c)
                .map(|(_, word)| *word);
            match word {
                Some(word) if at || math && sides && !after.trim_start().is_empty() => say(word),
                Some(word) if c == '+' => say(word),
                _ => Said::new(c.len_utf8(), " "),
            }
        }
        _ if c.is_ascii() => None,
        _ => {
            let (_, word) = language.symbols.iter().find(|(sign, _)| *sign == c)?;
            say(word)
        }
    }
}

/// The word for a symbol; nothing where the language has none.
fn word_of(language: &Language, sign: char) -> &'static str {
    let found = language.symbols.iter().find(|(known, _)| *known == sign);
    found.map_or("", |(_, word)| word)
}
