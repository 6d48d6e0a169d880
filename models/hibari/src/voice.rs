//! A voice that speaks chunk by chunk.

use std::{collections::HashMap, sync::Arc};

use audiocpp::{
    audio::Audio,
    engine::{
        ChunkSound, ChunkVoice, Error, OptionKind, OptionSpec, Result, RunContext, Scope,
        SynthesizeRequest, VoiceInput, VoicePlan,
    },
    sampling::TorchRandom,
    text::{
        chunks::{Chunk, ChunkLimits},
        phonemes::{Phonemes, misaki::respelled},
    },
};

use crate::{
    machine::{Machine, STEP},
    sound::RATE,
};

/// What the family takes.
pub(crate) const OPTIONS: &[OptionSpec] = &[OptionSpec {
    name: "noise",
    scope: Scope::Request,
    kind: OptionKind::Bool,
    default: Some("true"),
    doc: "Noise in the sound; without it the same text always sounds the same.",
}];

/// Symbols of one chunk: what the network was made for.
const MOST_SYMBOLS: usize = 400;

/// The numbers of a chunk, and where each of its characters went.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Numbered {
    /// What the network reads: the symbols between two zeros.
    pub numbers: Vec<i32>,
    /// For each character of the phonemes, how many numbers there are up to its end; a fraction
    /// where several characters are one symbol.
    pub ends: Vec<f64>,
    /// Characters that the voice does not know, each once.
    pub unknown: Vec<char>,
}

/// Numbers of the symbols of `phonemes`.
pub fn number(phonemes: &Phonemes, vocab: &HashMap<char, i32>) -> Numbered {
    let mut out = Numbered {
        numbers: vec![0],
        ..Numbered::default()
    };
    for (i, word) in phonemes.words.iter().enumerate() {
        if i > 0 && !word.joined {
            out.push(" ", 1, vocab);
        }
        let marks = |out: &mut Numbered, marks: &str| {
            for mark in marks.chars() {
                out.push(mark.encode_utf8(&mut [0; 4]), 1, vocab);
            }
        };
        marks(&mut out, &word.before);
        for (symbols, characters) in respelled(&word.ipa) {
            out.push(&symbols, characters, vocab);
        }
        marks(&mut out, &word.after);
    }
    out.numbers.push(0);
    out
}

impl Numbered {
    /// Adds symbols that stand for so many characters.
    fn push(&mut self, symbols: &str, characters: usize, vocab: &HashMap<char, i32>) {
        let before = self.numbers.len() as f64;
        for symbol in symbols.chars() {
            match vocab.get(&symbol) {
                Some(&number) => self.numbers.push(number),
                None if !self.unknown.contains(&symbol) => self.unknown.push(symbol),
                None => {}
            }
        }
        let each = (self.numbers.len() as f64 - before) / characters.max(1) as f64;
        let ends = (1..=characters).map(|i| before + each * i as f64);
        self.ends.extend(ends);
    }
}

/// A voice with state of its own.
pub struct Voice {
    machine: Machine,
    vocab: Arc<HashMap<char, i32>>,
    random: Option<TorchRandom>,
    speed: f32,
}

impl Voice {
    /// A voice that speaks with `machine`.
    pub fn new(machine: Machine, vocab: Arc<HashMap<char, i32>>) -> Voice {
        Voice {
            machine,
            vocab,
            random: None,
            speed: 1.0,
        }
    }
}

impl ChunkVoice for Voice {
    fn begin(&mut self, request: &SynthesizeRequest) -> Result<VoicePlan> {
        request.options.check("hibari", OPTIONS, Scope::Request)?;
        let refused = [
            ("a reference recording", !request.references.is_empty()),
            ("instructions", request.instructions.is_some()),
        ];
        if let Some((what, _)) = refused.iter().find(|(_, given)| *given) {
            return Err(Error::unsupported(format!("hibari does not take {what}")));
        }
        if let Some(voice) = request.voice.as_deref().filter(|voice| *voice != "0") {
            return Err(Error::not_found(format!(
                "there is no voice `{voice}`: this model has a single one"
            )));
        }
        self.speed = request.speed.unwrap_or(1.0);
        let noise = request.options.bool("noise").unwrap_or(true);
        self.random = noise.then(|| TorchRandom::new(request.seed.unwrap_or(0)));
        Ok(VoicePlan {
            language: "en-us".into(),
            input: VoiceInput::Phonemes,
            limits: ChunkLimits {
                join: 0,
                first: 0,
                max: MOST_SYMBOLS,
            },
            rate: RATE,
            channels: 1,
        })
    }

    fn speak(&mut self, chunk: &Chunk, context: &RunContext) -> Result<ChunkSound> {
        let numbered = number(&chunk.phonemes, &self.vocab);
        let random = self.random.as_mut();
        let (samples, lengths) =
            self.machine
                .speak(&numbered.numbers, self.speed, random, context)?;
        let seconds = STEP as f64 / f64::from(RATE);
        let ends = numbered
            .ends
            .iter()
            .map(|end| steps_until(&lengths, *end) * seconds);
        Ok(ChunkSound {
            audio: Audio::new(samples, RATE, 1)?,
            symbol_ends: Some(ends.collect()),
            warnings: unknown(&numbered.unknown),
        })
    }
}

/// Steps of the first `count` symbols, of the last of them a part.
fn steps_until(lengths: &[u32], count: f64) -> f64 {
    let whole = (count as usize).min(lengths.len());
    let steps: u32 = lengths[..whole].iter().sum();
    let part = lengths.get(whole);
    f64::from(steps) + part.map_or(0.0, |&n| f64::from(n) * count.fract())
}

fn unknown(chars: &[char]) -> Vec<String> {
    let list: Vec<String> = chars.iter().map(|c| format!("`{c}`")).collect();
    match chars.is_empty() {
        true => Vec::new(),
        false => vec![format!(
            "left out, as the voice does not know it: {}",
            list.join(", ")
        )],
    }
}

#[cfg(test)]
mod tests {
    use audiocpp::text::phonemes::PhonemeWord;

    use super::*;

    #[test]
    fn every_character_has_its_end() {
        let word = |ipa: &str, after: &str| PhonemeWord {
            ipa: ipa.into(),
            after: after.into(),
            ..PhonemeWord::default()
        };
        let phonemes = Phonemes {
            words: vec![word("maɪ", ","), word("bˈɜːd", "‽")],
        };
        let vocab: HashMap<char, i32> = "mI, bˈɜɹd".chars().zip(1..).collect();
        let found = number(&phonemes, &vocab);
        assert_eq!(found.numbers, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0]);
        let ends = [2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 10.0];
        assert_eq!(found.ends, ends);
        assert_eq!(found.ends.len(), phonemes.symbols().len());
        assert_eq!(found.unknown, ['‽']);
        assert_eq!(steps_until(&[3, 10, 4], 1.5), 8.0);
        assert_eq!(steps_until(&[3, 10, 4], 9.0), 17.0);
    }
}
