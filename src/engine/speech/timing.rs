//! From the sounds of a chunk and their times to the words of the request and theirs.

use std::ops::Range;

use super::result::{SpokenWord, TimedPhoneme};
use crate::text::{
    chunks::Chunk,
    phonemes::{Symbol, SymbolKind},
};

/// Counts characters up to byte offsets that mostly grow.
pub struct Characters<'a> {
    text: &'a str,
    bytes: usize,
    count: usize,
}

impl<'a> Characters<'a> {
    /// For the offsets of `text`.
    pub fn new(text: &'a str) -> Self {
        Characters {
            text,
            bytes: 0,
            count: 0,
        }
    }

    /// Characters before byte `at`, which lies on a character border.
    pub fn before(&mut self, at: usize) -> usize {
        if at < self.bytes {
            (self.bytes, self.count) = (0, 0);
        }
        self.count += self
            .text
            .get(self.bytes..at)
            .map_or(0, |part| part.chars().count());
        self.bytes = at;
        self.count
    }
}

/// A stretch of spoken text with its time in the chunk.
struct Timed {
    text: Range<usize>,
    start: f64,
    end: f64,
    phonemes: Vec<TimedPhoneme>,
}

/// The words of a chunk with their times in seconds from its start. `ends` are those of its
/// symbols; where they are missing, `duration` is shared out by length.
pub fn words(
    chunk: &Chunk,
    ends: Option<&[f64]>,
    duration: f64,
    characters: &mut Characters,
) -> Vec<SpokenWord> {
    let timed = if chunk.phonemes.words.is_empty() {
        from_text(chunk, duration)
    } else {
        from_symbols(chunk, ends, duration)
    };
    let mut words: Vec<(Range<usize>, SpokenWord)> = Vec::new();
    for part in timed {
        let original = chunk.text.original(part.text);
        match words.last_mut() {
            // Several spoken words for one that is written: `$42`.
            Some((last, word)) if last.end > original.start => {
                last.end = last.end.max(original.end);
                word.end = part.end;
                word.phonemes.extend(part.phonemes);
            }
            _ => words.push((
                original,
                SpokenWord {
                    start: part.start,
                    end: part.end,
                    phonemes: part.phonemes,
                    ..SpokenWord::default()
                },
            )),
        }
    }
    let named = words.into_iter().map(|(original, mut word)| {
        word.word = characters.text[original.clone()].trim().to_owned();
        word.from = characters.before(original.start);
        word.to = characters.before(original.end);
        word
    });
    named.collect()
}

fn from_symbols(chunk: &Chunk, ends: Option<&[f64]>, duration: f64) -> Vec<Timed> {
    let symbols = chunk.phonemes.symbols();
    let known = ends.filter(|ends| ends.len() == symbols.len());
    let ends = known.map_or_else(|| shared_out(&symbols, duration), <[f64]>::to_vec);
    let start_of = |index: usize| index.checked_sub(1).map_or(0.0, |before| ends[before]);
    let mut timed = Vec::new();
    for (index, word) in chunk.phonemes.words.iter().enumerate() {
        let sounds = |symbol: &Symbol| symbol.word == index && symbol.kind == SymbolKind::Sound;
        let (Some(first), Some(last)) = (
            symbols.iter().position(sounds),
            symbols.iter().rposition(sounds),
        ) else {
            continue;
        };
        let mut phonemes: Vec<TimedPhoneme> = Vec::new();
        let mut stress = None;
        for at in first..=last {
            let c = symbols[at].char;
            if matches!(c, 'ˈ' | 'ˌ') {
                stress = Some((c, start_of(at)));
                continue;
            }
            let modifies = matches!(c, 'ː' | 'ʲ' | 'ʰ' | '\u{300}'..='\u{36f}');
            match phonemes.last_mut().filter(|_| modifies) {
                Some(before) => {
                    before.phoneme.push(c);
                    before.end = ends[at];
                }
                None => {
                    let (mark, start) = stress
                        .take()
                        .map_or((None, start_of(at)), |(c, start)| (Some(c), start));
                    phonemes.push(TimedPhoneme {
                        phoneme: mark.into_iter().chain([c]).collect(),
                        start,
                        end: ends[at],
                    });
                }
            }
        }
        timed.push(Timed {
            text: word.text.clone(),
            start: start_of(first),
            end: ends[last],
            phonemes,
        });
    }
    timed
}

/// Ends of symbols by what they usually take.
fn shared_out(symbols: &[Symbol], duration: f64) -> Vec<f64> {
    let weight = |symbol: &Symbol| match (symbol.kind, symbol.char) {
        (SymbolKind::Sound, 'ˈ' | 'ˌ') => 0.2,
        (SymbolKind::Sound, _) => 1.0,
        (SymbolKind::Blank, _) => 0.3,
        (SymbolKind::Mark, ',' | ';' | ':' | '—' | '.' | '!' | '?' | '…') => 2.0,
        (SymbolKind::Mark, _) => 0.0,
    };
    let total: f64 = symbols.iter().map(weight).sum();
    let mut sum = 0.0;
    let ends = symbols.iter().map(|symbol| {
        sum += weight(symbol);
        duration * sum / total.max(1e-9)
    });
    ends.collect()
}

/// Words of models that read text, by the number of their letters.
fn from_text(chunk: &Chunk, duration: f64) -> Vec<Timed> {
    let text = chunk.text.text();
    let total = text.chars().count().max(1) as f64;
    let mut characters = Characters::new(text);
    let tokens = crate::text::phonemes::tokens(text).into_iter();
    let timed = tokens.map(|token| Timed {
        start: duration * characters.before(token.text.start) as f64 / total,
        end: duration * characters.before(token.text.end) as f64 / total,
        text: token.text,
        phonemes: Vec::new(),
    });
    timed.collect()
}
