//! Where sentences and paragraphs end.

use std::ops::Range;

use super::normalize::{Language, Place};

/// A sentence of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// Its bytes in the text, without blanks at its ends.
    pub text: Range<usize>,
    /// It is the last of its paragraph.
    pub ends_paragraph: bool,
}

/// The sentences of a text in a language (a code, tag or English name) in order. Points of
/// abbreviations, initials, ordinals and decimals end no sentence; an empty line, a line that
/// begins like an item of a list, and the end of a heading do.
pub fn sentences(text: &str, language: &str) -> Vec<Sentence> {
    let language = Language::find(language);
    let mut found = Vec::new();
    for paragraph in blocks(text) {
        let first = found.len();
        let mut start = paragraph.start;
        let mut at = paragraph.start;
        while let Some(c) = text[at..paragraph.end].chars().next() {
            let next = at + c.len_utf8();
            match end_of_sentence(&text[..paragraph.end], at, c, language) {
                Some(end) => {
                    add(&mut found, text, start..end);
                    (start, at) = (end, end);
                }
                None => at = next,
            }
        }
        add(&mut found, text, start..paragraph.end);
        if let Some(last) = found[first..].last_mut() {
            last.ends_paragraph = true;
        }
    }
    found
}

fn add(found: &mut Vec<Sentence>, text: &str, range: Range<usize>) {
    let part = &text[range.clone()];
    let start = range.start + part.len() - part.trim_start().len();
    let end = start + part.trim().len();
    if start < end {
        found.push(Sentence {
            text: start..end,
            ends_paragraph: false,
        });
    }
}

/// Stretches that no sentence crosses: paragraphs, items of lists, headings.
fn blocks(text: &str) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    let mut open = false;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        let plain = line.trim();
        if plain.is_empty() {
            open = false;
            continue;
        }
        let heading = plain.starts_with('#');
        match blocks.last_mut() {
            Some(block) if open && !begins_item(plain) && !heading => block.end = range.end,
            _ => blocks.push(range),
        }
        open = !heading;
    }
    blocks
}

/// Whether a line begins like an item of a list.
fn begins_item(line: &str) -> bool {
    let bullet = ["- ", "* ", "• ", "– ", "— ", "+ "]
        .iter()
        .any(|bullet| line.starts_with(bullet));
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let number = (1..=3).contains(&digits)
        && line[digits..].starts_with([')', '.'])
        && line[digits + 1..].starts_with(' ');
    bullet || number
}

/// The end of the sentence that the character `c` at byte `at` closes, with its quotes and
/// brackets.
fn end_of_sentence(
    text: &str,
    at: usize,
    c: char,
    language: Option<&'static Language>,
) -> Option<usize> {
    let wide = matches!(c, '。' | '！' | '？' | '．' | '।' | '؟' | '۔');
    if !wide && !matches!(c, '.' | '!' | '?' | '…') {
        return None;
    }
    let mut end = at + c.len_utf8();
    let more = |c: char| matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？');
    let closing = |c: char| {
        matches!(
            c,
            '"' | '\'' | '”' | '’' | ')' | ']' | '»' | '」' | '』' | '*' | '_'
        )
    };
    let run = text[end..]
        .chars()
        .take_while(|c| more(*c))
        .map(char::len_utf8)
        .sum::<usize>();
    let single = run == 0;
    end += run;
    let open = text[end..]
        .chars()
        .take_while(|c| closing(*c))
        .map(char::len_utf8)
        .sum::<usize>();
    end += open;
    let rest = &text[end..];
    if wide {
        return Some(end);
    }
    if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
        return None;
    }
    let next = rest.trim_start();
    let first = next.chars().find(|c| {
        !matches!(
            c,
            '"' | '\'' | '“' | '‘' | '(' | '[' | '«' | '„' | '¿' | '¡' | '*' | '_'
        )
    });
    // `"Stop!" she said`, `so ... it goes`
    if first.is_some_and(char::is_lowercase) {
        return None;
    }
    if c == '.' && single && open == 0 && !point_ends(&text[..at], next, language) {
        return None;
    }
    Some(end)
}

/// Whether a single point behind `before` ends a sentence when `next` follows.
fn point_ends(before: &str, next: &str, language: Option<&'static Language>) -> bool {
    if next.is_empty() {
        return true;
    }
    let word_start = before
        .rfind(|c: char| c.is_whitespace() || matches!(c, '(' | '[' | '"' | '“' | '„' | '«'))
        .map_or(0, |i| {
            i + before[i..].chars().next().map_or(1, char::len_utf8)
        });
    let word = &before[word_start..];
    let letters = word.chars().filter(|c| c.is_alphabetic()).count();
    // Initials: `J. K. Rowling`. `I.` may well end a sentence.
    let initial = letters == 1
        && word.chars().count() == 1
        && word.chars().all(char::is_uppercase)
        && word != "I";
    if initial {
        return false;
    }
    let Some(language) = language else {
        return true;
    };
    // `3. Oktober`
    let digits = word.bytes().all(|byte| byte.is_ascii_digit()) && !word.is_empty();
    if digits && language.ordinal_point && word.len() < 3 {
        return false;
    }
    let dotted = format!("{word}.");
    // The first part of `z. B.`
    let goes_on = language.abbreviations.iter().any(|known| {
        let rest = known
            .short
            .strip_prefix(&dotted)
            .filter(|rest| rest.starts_with(' '));
        rest.is_some_and(|rest| next.starts_with(rest.trim_start()))
    });
    if goes_on {
        return false;
    }
    let short = language.abbreviations.iter().filter(|known| {
        let same = known.short == dotted
            || known.short.ends_with(&format!(" {dotted}"))
                && before.ends_with(known.short.trim_end_matches('.'))
            || known.short.replace(' ', "") == dotted
            || known.short.to_lowercase() == dotted.to_lowercase()
                && known.short.chars().all(|c| !c.is_uppercase());
        same && known.short.ends_with('.')
    });
    let mut places = short.map(|known| known.place).peekable();
    if places.peek().is_none() {
        // `U.S. Army`, but `in the U.S. He`
        let acronym = word.contains('.') && word.chars().all(|c| c.is_uppercase() || c == '.');
        return !acronym || starts_like_a_sentence(next, language);
    }
    !places.any(|place| match place {
        Place::Title => next.starts_with(char::is_uppercase),
        Place::Number => next.starts_with(|c: char| c.is_ascii_digit()),
        Place::Inside => true,
        Place::AfterName | Place::Anywhere => !starts_like_a_sentence(next, language),
    })
}

/// Whether a text begins with a word that often begins sentences and seldom names.
fn starts_like_a_sentence(next: &str, language: &Language) -> bool {
    let word = next
        .split(|c: char| !c.is_alphanumeric())
        .next()
        .unwrap_or("");
    let bare = next.trim_start_matches(['"', '“', '(', '‘', '„', '«']);
    bare.len() < next.len()
        || language.starters.contains(&word)
        || !next.starts_with(char::is_uppercase) && !next.starts_with(|c: char| c.is_ascii_digit())
}
