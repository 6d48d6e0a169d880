//! Breaking text into lines, for subtitles.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

/// Number of characters as a reader counts them (grapheme clusters).
pub fn width(text: &str) -> usize {
    text.graphemes(true).count()
}

/// Marks that may not begin a line, and marks that may not end one, in scripts without blanks.
const CLOSING: &str = "、。，．！？：；…ー々）」』】〉》〕］｝”’";
const OPENING: &str = "（「『【〈《〔［｛“‘";

/// Whether a line may end between two neighbouring pieces of a text: at a blank, or between
/// characters of scripts that are written without blanks.
pub fn may_break(before: &str, after: &str) -> bool {
    let (Some(last), Some(first)) = (before.chars().next_back(), after.chars().next()) else {
        return true;
    };
    if last.is_whitespace() || first.is_whitespace() {
        return true;
    }
    let unspaced = is_unspaced(last) || is_unspaced(first);
    unspaced && !CLOSING.contains(first) && !OPENING.contains(last)
}

/// Whether a character belongs to a script written without blanks between words, or to its
/// punctuation.
fn is_unspaced(character: char) -> bool {
    matches!(u32::from(character),
        0x0e00..=0x0eff       // Thai, Lao
        | 0x1000..=0x109f     // Myanmar
        | 0x1780..=0x17ff     // Khmer
        | 0x2e80..=0x9fff     // CJK, kana, their punctuation
        | 0xa9e0..=0xa9ff | 0xaa60..=0xaa7f // Myanmar, extended
        | 0xf900..=0xfaff     // CJK, compatibility
        | 0xff00..=0xffef     // full and half width forms
        | 0x1b000..=0x1b16f   // kana, supplement
        | 0x20000..=0x3ffff   // CJK, extended
    )
}

/// Fills lines with pieces, from left to right: at most `max_width` graphemes a line (blanks at
/// its ends not counted) and `max_words` pieces. A word is never cut: pieces between which no
/// line may end stay together, even when they are too wide. Returns the pieces of each line.
pub fn fill<S: AsRef<str>>(
    pieces: &[S],
    max_width: Option<usize>,
    max_words: Option<usize>,
) -> Vec<Range<usize>> {
    let max_width = max_width.unwrap_or(usize::MAX);
    let max_words = max_words.unwrap_or(usize::MAX).max(1);
    let mut lines: Vec<Range<usize>> = Vec::new();
    // Text and words of the last line.
    let (mut line, mut count) = (String::new(), 0);
    for word in words(pieces) {
        let text: String = pieces[word.clone()].iter().map(AsRef::as_ref).collect();
        match lines.last_mut() {
            Some(last)
                if count < max_words && width(format!("{line}{text}").trim()) <= max_width =>
            {
                last.end = word.end;
                line.push_str(&text);
                count += 1;
            }
            _ => {
                lines.push(word);
                (line, count) = (text, 1);
            }
        }
    }
    lines
}

/// Pieces grouped so that a line may end after each group.
fn words<S: AsRef<str>>(pieces: &[S]) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    for (i, piece) in pieces.iter().enumerate() {
        match words.last_mut() {
            Some(word) if !may_break(pieces[i - 1].as_ref(), piece.as_ref()) => word.end = i + 1,
            _ => words.push(i..i + 1),
        }
    }
    words
}

/// Cuts a text into pieces between which a line may end; joined they are the text again. Blanks
/// stay at the front of the piece that follows them.
pub fn pieces(text: &str) -> Vec<&str> {
    let mut cuts = vec![0];
    let mut before: Option<&str> = None;
    for (at, part) in text.split_word_bound_indices() {
        let blank = |part: &str| part.chars().all(char::is_whitespace);
        if let Some(before) = before
            && !blank(before)
            && may_break(before, part)
        {
            cuts.push(at);
        }
        before = Some(part);
    }
    cuts.push(text.len());
    let between = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]);
    between.filter(|piece| !piece.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filled(text: &str, max_width: usize) -> Vec<String> {
        let pieces = pieces(text);
        fill(&pieces, Some(max_width), None)
            .into_iter()
            .map(|line| pieces[line].concat().trim().to_owned())
            .collect()
    }

    #[test]
    fn lines_break_at_blanks_and_between_unspaced_characters() {
        assert_eq!(
            filled(" The quick brown fox", 9),
            ["The quick", "brown fox"]
        );
        assert_eq!(
            filled("well-known co-operation", 6),
            ["well-known", "co-operation"]
        );
        assert_eq!(filled("今日は天気がいい", 3), ["今日は", "天気が", "いい"]);
        assert_eq!(filled("「はい」。そう", 3), ["「は", "い」。", "そう"]);
        assert_eq!(filled("", 5), [""; 0]);
    }

    #[test]
    fn width_counts_graphemes() {
        assert_eq!(width("ģēņš"), 4);
        assert_eq!(width("👩‍👩‍👧‍👦e\u{301}"), 2);
        assert_eq!(filled("👩‍👩‍👧‍👦👍🏽 ok", 5), ["👩‍👩‍👧‍👦👍🏽 ok"]);
    }

    #[test]
    fn pieces_of_one_word_stay_together() {
        // Word pieces as a recogniser gives them; " semi" and "-colon" are one word.
        let pieces = [" a", " semi", "-colon", " b", " c"];
        assert_eq!(fill(&pieces, Some(6), None), [0..1, 1..3, 3..5]);
        assert_eq!(fill(&pieces, None, Some(2)), [0..3, 3..5]);
        assert_eq!(fill(&pieces[1..], None, Some(2)), [0..3, 3..4]);
        assert_eq!(fill(&pieces, None, None).len(), 1);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_single_words_alone_are_too_wide(
            text in "[a-c é日本👍\\-]{0,60}", max_width in 1usize..12,
        ) {
            let pieces = pieces(&text);
            prop_assert_eq!(&pieces.concat(), &text);
            let lines = fill(&pieces, Some(max_width), None);
            let mut next = 0;
            for line in lines {
                prop_assert_eq!(line.start, next);
                next = line.end;
                let words = super::words(&pieces[line.clone()]).len();
                let joined = pieces[line].concat();
                prop_assert!(words == 1 || width(joined.trim()) <= max_width);
            }
            prop_assert_eq!(next, pieces.len());
        }
    }
}
