//! Words of a text and the marks around them.

use std::ops::Range;

/// A word with the marks around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its bytes in the text.
    pub text: Range<usize>,
    /// Marks before it.
    pub before: String,
    /// Marks after it.
    pub after: String,
    /// It follows the word before without a blank, behind a hyphen.
    pub hyphenated: bool,
}

/// The words of a text in order; hyphens part them. Marks without a word are left out.
pub fn tokens(text: &str) -> Vec<Token> {
    let mut found: Vec<Token> = Vec::new();
    let mut before = String::new();
    let mut quoted = false;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let length = word_length(&text[at..]);
        if length > 0 {
            let touching = found
                .last()
                .is_some_and(|last| text[last.text.end..at] == *"-");
            found.push(Token {
                text: at..at + length,
                before: std::mem::take(&mut before),
                after: String::new(),
                hyphenated: touching,
            });
            at += length;
            continue;
        }
        let rest = &text[at + c.len_utf8()..];
        match mark(c, &text[..at], rest, &mut quoted) {
            Some(Mark::Opening(mark)) => before.push(mark),
            Some(Mark::Closing(mark)) => push_closing(&mut found, &mut before, mark),
            None => {}
        }
        at += c.len_utf8();
    }
    found
}

enum Mark {
    Opening(char),
    Closing(char),
}

/// Adds a mark behind the last word; rows of the same kind shrink to their strongest.
fn push_closing(found: &mut [Token], before: &mut String, mark: char) {
    let Some(last) = found.last_mut() else {
        return;
    };
    if !before.is_empty() {
        return before.push(mark);
    }
    let ends = |c: char| matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '…' | '—');
    match last.after.chars().next_back() {
        Some(earlier) if ends(earlier) && ends(mark) => {
            if strength(mark) > strength(earlier) {
                last.after.pop();
                last.after.push(mark);
            }
        }
        _ => last.after.push(mark),
    }
}

fn strength(mark: char) -> usize {
    ",—;:…"
        .chars()
        .chain(".!?".chars())
        .position(|known| known == mark)
        .unwrap_or(0)
}

/// What a character is between words, if it is kept.
fn mark(c: char, before: &str, rest: &str, quoted: &mut bool) -> Option<Mark> {
    use Mark::{Closing, Opening};
    let free_before = before.chars().next_back().is_none_or(char::is_whitespace);
    // `Node.js`, `3.14`
    let inner = !free_before && rest.starts_with(char::is_alphanumeric);
    Some(match c {
        '.' | ',' | ':' if inner => return None,
        '.' | ',' | ';' | ':' | '!' | '?' | '…' => Closing(c),
        '。' | '．' => Closing('.'),
        '，' | '、' => Closing(','),
        '！' => Closing('!'),
        '？' => Closing('?'),
        '；' => Closing(';'),
        '：' => Closing(':'),
        '—' | '―' => Closing('—'),
        // A dash between blanks; within a word it is a hyphen.
        '–' | '-' if free_before && rest.starts_with([' ', '\u{a0}', '-']) => Closing('—'),
        '(' => Opening('('),
        ')' => Closing(')'),
        '“' | '«' | '„' => Opening('“'),
        '”' | '»' => Closing('”'),
        '"' => {
            *quoted = !*quoted;
            if *quoted {
                Opening('“')
            } else {
                Closing('”')
            }
        }
        _ => return None,
    })
}

/// Bytes of the word at the start of a text: letters, digits and accents, with apostrophes inside.
fn word_length(rest: &str) -> usize {
    let mut end = 0;
    let mut chars = rest.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let inside = c.is_alphanumeric() || matches!(u32::from(c), 0x300..=0x36f);
        let apostrophe =
            matches!(c, '\'' | '’') && chars.peek().is_some_and(|(_, next)| next.is_alphabetic());
        // An apostrophe may begin a word that is cut short (`'em`).
        let leading = apostrophe && end == 0 && rest[at + c.len_utf8()..].starts_with("em");
        if !(inside || apostrophe && end > 0 || leading) {
            break;
        }
        end = at + c.len_utf8();
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let show = |token: Token| {
            format!(
                "{}{}{}",
                token.before,
                &text[token.text.clone()],
                token.after
            )
        };
        tokens(text).into_iter().map(show).collect()
    }

    #[test]
    fn words_keep_their_marks() {
        assert_eq!(
            shown("Hello, \"big\" world!"),
            ["Hello,", "“big”", "world!"]
        );
        assert_eq!(
            shown("It's (really) John's..."),
            ["It's", "(really)", "John's."]
        );
        assert_eq!(shown("Wait - what?! No."), ["Wait—", "what?", "No."]);
        assert_eq!(shown("— … !"), [""; 0]);
        let words = tokens("well-known");
        assert!(words[1].hyphenated && !words[0].hyphenated);
        assert_eq!(words[1].text, 5..10);
    }
}
