//! Text as it will be spoken, with the way back to the text that was given.

use std::ops::Range;

/// Text as it will be spoken (`forty-two dollars`) with a map to the text it was made from
/// (`$42`). All offsets are bytes and lie on character borders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpokenText {
    text: String,
    /// Stretches of the spoken text in order, without gaps.
    pieces: Vec<Piece>,
    /// Stretches whose pronunciation the user gave, in order.
    given: Vec<Given>,
}

/// A stretch of spoken text and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    /// End of the stretch in the spoken text; it starts where the one before ends.
    end: usize,
    original: Range<usize>,
    /// Both sides are the same text, so that a part of one is a part of the other.
    verbatim: bool,
}

/// A pronunciation that the user wrote into the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The stretch of the spoken text that it is for.
    pub text: Range<usize>,
    /// How it is pronounced.
    pub ipa: String,
}

impl SpokenText {
    /// `text`, which starts at byte `at` of the original, spoken as it is written.
    pub fn verbatim(text: &str, at: usize) -> Self {
        let mut spoken = SpokenText::default();
        spoken.push_verbatim(text, at);
        spoken
    }

    /// Appends `text`, which stands for the bytes `original` of the original.
    pub fn push(&mut self, text: &str, original: Range<usize>) {
        self.append(text, original, false);
    }

    /// Appends `text` as it stands in the original from byte `at` on.
    pub fn push_verbatim(&mut self, text: &str, at: usize) {
        self.append(text, at..at + text.len(), true);
    }

    /// Appends a stretch whose pronunciation the user gave: `text` is shown, `ipa` is spoken.
    pub fn push_given(&mut self, text: &str, ipa: &str, original: Range<usize>) {
        let start = self.text.len();
        self.append(text, original, false);
        self.given.push(Given {
            text: start..self.text.len(),
            ipa: ipa.to_owned(),
        });
    }

    fn append(&mut self, text: &str, original: Range<usize>, verbatim: bool) {
        if text.is_empty() {
            return;
        }
        self.text.push_str(text);
        let end = self.text.len();
        match self.pieces.last_mut() {
            Some(last) if last.verbatim && verbatim && last.original.end == original.start => {
                last.end = end;
                last.original.end = original.end;
            }
            _ => self.pieces.push(Piece {
                end,
                original,
                verbatim,
            }),
        }
    }

    /// Appends another text of the same original.
    pub fn extend(&mut self, other: &SpokenText) {
        let at = self.text.len();
        let mut start = 0;
        for piece in &other.pieces {
            let text = &other.text[start..piece.end];
            self.append(text, piece.original.clone(), piece.verbatim);
            start = piece.end;
        }
        let moved = other.given.iter().map(|given| Given {
            text: given.text.start + at..given.text.end + at,
            ipa: given.ipa.clone(),
        });
        self.given.extend(moved);
    }

    /// The text that is spoken.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The pronunciations that the user gave, in order.
    pub fn given(&self) -> &[Given] {
        &self.given
    }

    /// Whether there is a letter or a digit in it, or a pronunciation: something to speak.
    pub fn is_speakable(&self) -> bool {
        !self.given.is_empty() || self.text.chars().any(char::is_alphanumeric)
    }

    /// The bytes of the original that the bytes `spoken` stand for. What was rewritten (a number)
    /// is one whole: any part of it leads to all of it.
    pub fn original(&self, spoken: Range<usize>) -> Range<usize> {
        let mut found: Option<Range<usize>> = None;
        for (at, piece) in self.touched(&spoken) {
            let from = if piece.verbatim {
                let start = piece.original.start + spoken.start.max(at) - at;
                let end = piece.original.start + spoken.end.min(piece.end) - at;
                start..end.max(start)
            } else {
                piece.original.clone()
            };
            found = Some(match found {
                Some(found) => found.start.min(from.start)..found.end.max(from.end),
                None => from,
            });
        }
        let end = || self.pieces.last().map_or(0, |piece| piece.original.end);
        found.unwrap_or_else(|| end()..end())
    }

    /// The whole stretch of the original.
    pub fn whole(&self) -> Range<usize> {
        self.original(0..self.text.len())
    }

    /// The part at the bytes `spoken`, as a text of its own; its map leads to the same original.
    pub fn slice(&self, spoken: Range<usize>) -> SpokenText {
        let mut part = SpokenText::default();
        for (at, piece) in self.touched(&spoken) {
            let (start, end) = (spoken.start.max(at), spoken.end.min(piece.end));
            let text = &self.text[start..end];
            if piece.verbatim {
                part.push_verbatim(text, piece.original.start + start - at);
            } else {
                part.push(text, piece.original.clone());
            }
        }
        let inside =
            |given: &&Given| given.text.start >= spoken.start && given.text.end <= spoken.end;
        part.given
            .extend(self.given.iter().filter(inside).map(|given| Given {
                text: given.text.start - spoken.start..given.text.end - spoken.start,
                ipa: given.ipa.clone(),
            }));
        part
    }

    /// The part without blanks at both ends.
    pub fn trimmed(&self) -> SpokenText {
        let start = self.text.len() - self.text.trim_start().len();
        let end = start + self.text.trim().len();
        self.slice(start..end)
    }

    /// Pieces that share a byte with `spoken`, each with its own start.
    fn touched<'a>(
        &'a self,
        spoken: &'a Range<usize>,
    ) -> impl Iterator<Item = (usize, &'a Piece)> + 'a {
        let first = self
            .pieces
            .partition_point(|piece| piece.end <= spoken.start);
        let mut at = first.checked_sub(1).map_or(0, |i| self.pieces[i].end);
        self.pieces[first..]
            .iter()
            .map(move |piece| (std::mem::replace(&mut at, piece.end), piece))
            .take_while(|(start, _)| *start < spoken.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `It costs $42 today.`
    fn sample() -> SpokenText {
        let mut spoken = SpokenText::verbatim("It costs ", 0);
        spoken.push("forty-two dollars", 9..12);
        spoken.push_verbatim(" today.", 12);
        spoken
    }

    fn find(spoken: &SpokenText, word: &str) -> Range<usize> {
        let start = spoken.text().find(word).unwrap();
        spoken.original(start..start + word.len())
    }

    #[test]
    fn every_word_leads_back() {
        let spoken = sample();
        assert_eq!(spoken.text(), "It costs forty-two dollars today.");
        assert_eq!(find(&spoken, "costs"), 3..8);
        assert_eq!(find(&spoken, "dollars"), 9..12);
        assert_eq!(find(&spoken, "forty-two dollars today"), 9..18);
        assert_eq!(spoken.whole(), 0..19);
        assert_eq!(spoken.original(33..33), 19..19);
    }

    #[test]
    fn parts_and_sums_keep_the_map() {
        let spoken = sample();
        let part = spoken.slice(9..32).trimmed();
        assert_eq!(part.text(), "forty-two dollars today");
        assert_eq!(find(&part, "today"), 13..18);
        let mut sum = spoken.slice(0..9);
        sum.extend(&spoken.slice(9..26));
        sum.extend(&spoken.slice(26..33));
        assert_eq!(sum, spoken);
    }

    #[test]
    fn given_pronunciations_travel_with_their_text() {
        let mut spoken = SpokenText::verbatim("Say ", 0);
        spoken.push_given("ˈhɛlo", "ˈhɛlo", 4..14);
        spoken.push_verbatim(" now", 14);
        let part = spoken.slice(4..11);
        assert_eq!(part.given()[0].text, 0..7);
        assert_eq!(&part.text()[part.given()[0].text.clone()], "ˈhɛlo");
        assert!(spoken.slice(0..4).given().is_empty());
        assert!(!SpokenText::verbatim(" … — !", 0).is_speakable());
        assert!(part.is_speakable());
    }
}
