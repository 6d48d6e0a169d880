//! From a text to the stretches that a model speaks one at a time.

use std::collections::VecDeque;

use super::{
    error::{Error, Result},
    normalize::Normalizer,
    phonemes::{Phonemes, Phonemizer, Pronunciations, pronounce},
    sentences::{Sentence, sentences},
    spans::SpokenText,
};

/// What stands after a chunk: how long the pause is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Boundary {
    /// A long sentence was cut between words.
    Word,
    /// A long sentence was cut at a comma, semicolon, colon or dash.
    Clause,
    /// The end of a sentence.
    Sentence,
    /// The end of a paragraph, or of the text.
    Paragraph,
}

/// A stretch that is spoken at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// What is said, with its map to the original text.
    pub text: SpokenText,
    /// The same as sounds; their `text` ranges are offsets in `text`. Without words for models
    /// that read text.
    pub phonemes: Phonemes,
    /// What comes after it.
    pub ends: Boundary,
}

/// How much a model speaks at a time, in symbols of [`Phonemes::symbols`] for models that read
/// phonemes, else in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLimits {
    /// Sentences of a paragraph are joined while they fit in this; 0 keeps them apart.
    pub join: usize,
    /// The same for the first chunk of a text, which somebody may be waiting for.
    pub first: usize,
    /// A sentence that is longer than this is cut.
    pub max: usize,
}

/// Everything between a text and a model: sentences, writing out, sounds, chunks.
pub struct FrontEnd {
    /// Language of the texts: a code, tag or English name.
    pub language: String,
    /// Writes out numbers and the like.
    pub normalizer: Normalizer,
    /// Finds the sounds, for models that read phonemes.
    pub phonemizer: Option<Box<dyn Phonemizer>>,
    /// The user's pronunciations.
    pub pronunciations: Pronunciations,
    /// How much goes into a chunk.
    pub limits: ChunkLimits,
}

impl FrontEnd {
    /// The chunks of `text`, made one by one as they are asked for. An error if the text is blank;
    /// parts of it without a letter, digit or sound are left out.
    pub fn chunks<'a>(&'a self, text: &'a str) -> Result<Chunks<'a>> {
        if text.trim().is_empty() {
            return Err(Error::Empty);
        }
        Ok(Chunks {
            front: self,
            text,
            sentences: sentences(text, &self.language).into(),
            ready: VecDeque::new(),
            unspoken: Vec::new(),
            made: false,
        })
    }

    fn chunk(&self, text: SpokenText, ends: Boundary) -> Result<Chunk> {
        let phonemes = match &self.phonemizer {
            Some(phonemizer) => pronounce(&**phonemizer, &text, &self.pronunciations)?,
            None => Phonemes::default(),
        };
        Ok(Chunk {
            text,
            phonemes,
            ends,
        })
    }

    fn size(&self, chunk: &Chunk) -> usize {
        match self.phonemizer {
            Some(_) => chunk.phonemes.symbols().len(),
            None => chunk.text.text().chars().count(),
        }
    }

    /// Whether there is something in the chunk for the model.
    fn is_spoken(&self, chunk: &Chunk) -> bool {
        chunk.text.is_speakable() && (self.phonemizer.is_none() || !chunk.phonemes.words.is_empty())
    }

    /// The chunk in parts that are not too long.
    fn cut(&self, chunk: Chunk, out: &mut VecDeque<Chunk>) -> Result<()> {
        let place = if self.size(&chunk) > self.limits.max {
            cut_place(chunk.text.text())
        } else {
            None
        };
        let Some((at, boundary)) = place else {
            if self.is_spoken(&chunk) {
                out.push_back(chunk);
            }
            return Ok(());
        };
        let end = chunk.text.text().len();
        let left = self.chunk(chunk.text.slice(0..at).trimmed(), boundary)?;
        let right = self.chunk(chunk.text.slice(at..end).trimmed(), chunk.ends)?;
        self.cut(left, out)?;
        self.cut(right, out)
    }

    fn joined(&self, first: &Chunk, second: &Chunk) -> Chunk {
        let mut text = first.text.clone();
        let gap = first.text.whole().end..second.text.whole().start;
        text.push(" ", gap);
        let shift = text.text().len();
        text.extend(&second.text);
        let mut phonemes = first.phonemes.clone();
        phonemes
            .words
            .extend(second.phonemes.words.iter().cloned().map(|mut word| {
                word.text = word.text.start + shift..word.text.end + shift;
                word
            }));
        Chunk {
            text,
            phonemes,
            ends: second.ends,
        }
    }
}

/// Where a text is best cut in two: near its middle, at a clause if there is one, else between
/// words, else between characters.
fn cut_place(text: &str) -> Option<(usize, Boundary)> {
    let middle = text.len() / 2;
    let nearest =
        |places: &mut dyn Iterator<Item = usize>| places.min_by_key(|at| at.abs_diff(middle));
    let inner = |at: &usize| *at >= text.len() / 5 && *at <= text.len() * 4 / 5;
    let after_mark = |(at, c): (usize, char)| {
        let end = at + c.len_utf8();
        let spaced =
            text[end..].starts_with(char::is_whitespace) || matches!(c, '，' | '、' | '；' | '—');
        (matches!(c, ',' | ';' | ':' | '—' | '–' | '，' | '、' | '；') && spaced).then_some(end)
    };
    if let Some(at) = nearest(&mut text.char_indices().filter_map(after_mark).filter(inner)) {
        return Some((at, Boundary::Clause));
    }
    let blanks = text
        .char_indices()
        .filter(|(_, c)| c.is_whitespace())
        .map(|(at, _)| at);
    if let Some(at) = nearest(&mut blanks.filter(|at| *at > 0)) {
        return Some((at, Boundary::Word));
    }
    let places = text.char_indices().map(|(at, _)| at).filter(|at| *at > 0);
    nearest(&mut places.into_iter()).map(|at| (at, Boundary::Word))
}

/// The chunks of a text, made as they are asked for.
pub struct Chunks<'a> {
    front: &'a FrontEnd,
    text: &'a str,
    sentences: VecDeque<Sentence>,
    /// Chunks of sentences that were read already.
    ready: VecDeque<Chunk>,
    /// Sentences that nothing could be made of.
    unspoken: Vec<String>,
    made: bool,
}

impl Chunks<'_> {
    /// Bytes of the text in sentences that were not read yet.
    pub fn bytes_left(&self) -> usize {
        self.sentences
            .front()
            .map_or(0, |next| self.text.len() - next.text.start)
    }

    /// Takes the sentences that were left out since the last call, because the model's language
    /// has no sounds for them.
    pub fn unspoken(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unspoken)
    }

    /// Makes chunks of the next sentence, if there is one.
    fn read_sentence(&mut self) -> Result<bool> {
        let Some(sentence) = self.sentences.pop_front() else {
            return Ok(false);
        };
        let written = &self.text[sentence.text.clone()];
        let spoken = self
            .front
            .normalizer
            .normalize(written, sentence.text.start);
        let last = sentence.ends_paragraph || self.sentences.is_empty();
        let ends = if last {
            Boundary::Paragraph
        } else {
            Boundary::Sentence
        };
        if spoken.is_speakable() {
            let chunk = self.front.chunk(spoken, ends)?;
            let before = self.ready.len();
            self.front.cut(chunk, &mut self.ready)?;
            if self.ready.len() == before {
                self.unspoken.push(written.to_owned());
            }
        }
        Ok(true)
    }

    fn take(&mut self) -> Result<Option<Chunk>> {
        let limits = self.front.limits;
        let join = if self.made { limits.join } else { limits.first };
        while self.ready.is_empty() {
            if !self.read_sentence()? {
                if self.made {
                    return Ok(None);
                }
                self.made = true;
                let text = self.text.trim();
                let text: String = text
                    .chars()
                    .take(40)
                    .chain((text.chars().count() > 40).then_some('…'))
                    .collect();
                return Err(Error::NothingToSpeak { text });
            }
        }
        self.made = true;
        let Some(mut chunk) = self.ready.pop_front() else {
            return Ok(None);
        };
        while chunk.ends == Boundary::Sentence {
            let room = join.min(limits.max);
            let size = self.front.size(&chunk);
            if size + 1 >= room {
                break;
            }
            if self.ready.is_empty() && !self.read_sentence()? {
                break;
            }
            match self.ready.front() {
                Some(next)
                    if size + 1 + self.front.size(next) <= room
                        && next.ends >= Boundary::Sentence =>
                {
                    chunk = self.front.joined(&chunk, next);
                    self.ready.pop_front();
                }
                Some(_) => break,
                None => {}
            }
        }
        Ok(Some(chunk))
    }
}

impl Iterator for Chunks<'_> {
    type Item = Result<Chunk>;

    fn next(&mut self) -> Option<Result<Chunk>> {
        self.take().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::phonemes::english::English;
    use proptest::prelude::*;

    fn front(join: usize, max: usize, sounds: bool) -> FrontEnd {
        FrontEnd {
            language: "en".into(),
            normalizer: Normalizer::new("en"),
            phonemizer: sounds.then(|| Box::new(English) as Box<dyn Phonemizer>),
            pronunciations: Pronunciations::default(),
            limits: ChunkLimits {
                join,
                first: join,
                max,
            },
        }
    }

    fn texts(front: &FrontEnd, text: &str) -> Vec<String> {
        let chunks = front.chunks(text).unwrap();
        chunks
            .map(|chunk| chunk.unwrap().text.text().to_owned())
            .collect()
    }

    #[test]
    fn sentences_are_joined_within_a_paragraph() {
        let text = "One. Two. Three.\n\nFour. Five is a longer one.";
        assert_eq!(texts(&front(0, 99, false), text).len(), 5);
        let joined = texts(&front(10, 99, false), text);
        assert_eq!(
            joined,
            ["One. Two.", "Three.", "Four.", "Five is a longer one."]
        );
        let mut soon = front(99, 99, false);
        soon.limits.first = 10;
        let joined = texts(&soon, "One. Two. Three. Four. Five.");
        assert_eq!(joined, ["One. Two.", "Three. Four. Five."]);
    }

    #[test]
    fn long_sentences_are_cut_at_clauses_then_words() {
        let text =
            "When the rain had stopped at last, they went out for a walk in the wet green garden.";
        let parts = texts(&front(0, 50, false), text);
        assert_eq!(parts[0], "When the rain had stopped at last,");
        let parts = texts(&front(0, 30, false), text);
        assert!(
            parts.iter().all(|part| part.chars().count() <= 30),
            "{parts:?}"
        );
        assert_eq!(parts.join(" "), text);
        let chunks: Vec<Chunk> = front(0, 30, true)
            .chunks(text)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert!(
            chunks
                .iter()
                .all(|chunk| chunk.phonemes.symbols().len() <= 30)
        );
        assert_eq!(chunks.last().unwrap().ends, Boundary::Paragraph);
    }

    #[test]
    fn what_cannot_be_spoken_is_left_out_or_an_error() {
        let front = front(0, 99, true);
        assert_eq!(front.chunks(" \n ").err(), Some(Error::Empty));
        for silent in ["...", "— !", "🎉🎉", "«»"] {
            let error = front.chunks(silent).unwrap().next().unwrap().unwrap_err();
            assert!(
                matches!(error, Error::NothingToSpeak { .. }),
                "{silent}: {error}"
            );
        }
        let mut chunks = front.chunks("Hello. Привет, мир. 🎉 Bye.").unwrap();
        let spoken: Vec<String> = chunks
            .by_ref()
            .map(|chunk| chunk.unwrap().text.text().to_owned())
            .collect();
        assert_eq!(spoken.len(), 2, "{spoken:?}");
        assert_eq!(chunks.unspoken(), ["Привет, мир."]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn words_of_any_text_lie_in_their_chunk(text in "\\PC{0,80}|[a-zA-Z' .,\"()\\[\\]-]{0,80}") {
            let front = front(20, 60, true);
            let Ok(chunks) = front.chunks(&text) else { return Ok(()); };
            for chunk in chunks {
                let Ok(chunk) = chunk else { return Ok(()); };
                let mut last = 0;
                for word in &chunk.phonemes.words {
                    prop_assert!(chunk.text.text().get(word.text.clone()).is_some());
                    prop_assert!(!word.ipa.is_empty() && word.text.start >= last);
                    last = word.text.start;
                }
            }
        }

        #[test]
        fn chunks_cover_the_text_in_order(text in "[a-zA-Z ,.!?0-9$%\n'é日👍-]{1,200}", max in 8usize..60) {
            let front = front(max / 2, max, false);
            let Ok(chunks) = front.chunks(&text) else { return Ok(()); };
            let mut last = 0;
            for chunk in chunks {
                let Ok(chunk) = chunk else { return Ok(()); };
                prop_assert!(chunk.text.text().chars().count() <= max);
                let place = chunk.text.whole();
                prop_assert!(place.start >= last && place.end <= text.len(), "{:?} behind {}", place, last);
                prop_assert!(text.get(place.clone()).is_some());
                last = place.start;
            }
        }
    }
}
