//! Scripts, and the prompt that a script and its voices become.

use audiocpp::{
    engine::{Error, Result},
    text::tokenizer::{Tokenizer, TokenizerError},
};

use crate::config::Tokens;

/// Most speakers of a script.
pub const MOST_SPEAKERS: usize = 4;

const SYSTEM: &str = " Transform the text provided by various speakers into speech output, utilizing \
                      the distinct voice of each respective speaker.\n";

/// Who says what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Counts from 0.
    pub speaker: usize,
    /// Without the speaker's name.
    pub text: String,
}

/// The lines of a script; those without a speaker's name go on with the speaker before them, the
/// first speaker at the beginning. Speakers count from 1, or from 0 if there is a `Speaker 0:`.
///
/// # Errors
/// `BadInput` for a text without words, and for more than four speakers.
pub fn lines(text: &str) -> Result<Vec<Line>> {
    let mut lines: Vec<Line> = Vec::new();
    let mut named = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (speaker, said) = match speaker(line) {
            Some((speaker, said)) => {
                named.push(speaker);
                (Some(speaker), said)
            }
            None => (None, line),
        };
        let speaker = speaker.unwrap_or_else(|| match lines.last() {
            Some(before) => before.speaker,
            None => 1,
        });
        lines.push(Line {
            speaker,
            text: said.to_owned(),
        });
    }
    if lines.is_empty() {
        return Err(Error::bad_input("there is nothing to say in the text"));
    }
    if !named.contains(&0) {
        lines.iter_mut().for_each(|line| line.speaker -= 1);
    }
    match lines.iter().find(|line| line.speaker >= MOST_SPEAKERS) {
        None => Ok(lines),
        Some(line) => Err(Error::bad_input(format!(
            "speaker {} in the script; at most {MOST_SPEAKERS} can speak",
            line.speaker + 1
        ))),
    }
}

/// The number and the words of `Speaker 2: words`.
fn speaker(line: &str) -> Option<(usize, &str)> {
    const NAME: &str = "speaker";
    let name = line.get(..NAME.len())?;
    let rest = &line[NAME.len()..];
    if !name.eq_ignore_ascii_case(NAME) || !rest.starts_with(char::is_whitespace) {
        return None;
    }
    let (number, said) = rest.split_once(':')?;
    let number = number.trim();
    let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    Some((number.parse().ok().filter(|_| digits)?, said.trim()))
}

/// What the language model reads before it speaks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompt {
    /// Ids.
    pub tokens: Vec<u32>,
    /// Places whose embeddings are those of the voices' frames, in order.
    pub frames: Vec<usize>,
}

impl Prompt {
    fn add(&mut self, tokenizer: &Tokenizer, text: &str) -> Result<(), TokenizerError> {
        self.tokens.extend(tokenizer.encode(text)?);
        Ok(())
    }
}

/// The prompt of a script with voices of so many frames each.
///
/// # Errors
/// A text that the vocabulary cannot spell (`BadInput`).
pub fn prompt(
    lines: &[Line],
    voices: &[usize],
    tokenizer: &Tokenizer,
    tokens: &Tokens,
) -> Result<Prompt> {
    let spell = || -> Result<Prompt, TokenizerError> {
        let mut prompt = Prompt::default();
        prompt.add(tokenizer, SYSTEM)?;
        if !voices.is_empty() {
            prompt.add(tokenizer, " Voice input:\n")?;
        }
        for (speaker, &frames) in voices.iter().enumerate() {
            prompt.add(tokenizer, &format!(" Speaker {speaker}:"))?;
            prompt.tokens.push(tokens.start);
            let first = prompt.tokens.len();
            prompt.frames.extend(first..first + frames);
            prompt.tokens.resize(first + frames, tokens.frame);
            prompt.tokens.push(tokens.end);
            prompt.add(tokenizer, "\n")?;
        }
        prompt.add(tokenizer, " Text input:\n")?;
        for Line { speaker, text } in lines {
            prompt.add(tokenizer, &format!(" Speaker {speaker}: {text}\n"))?;
        }
        prompt.add(tokenizer, " Speech output:\n")?;
        prompt.tokens.push(tokens.start);
        Ok(prompt)
    };
    spell().map_err(|error| Error::bad_input(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<(usize, String)> {
        let lines = lines(text).unwrap().into_iter();
        lines.map(|line| (line.speaker, line.text)).collect()
    }

    #[test]
    fn speakers_count_from_one_or_from_nought() {
        let text = "Speaker 1: Hello: there.\n\nspeaker  2 :  Hi.\nStill me.";
        assert_eq!(
            said(text),
            [
                (0, "Hello: there.".into()),
                (1, "Hi.".into()),
                (1, "Still me.".into())
            ]
        );
        assert_eq!(said("Speaker 0: a\nSpeaker 1: b")[1].0, 1);
        assert_eq!(said("Just a text.\nAnd more.")[1], (0, "And more.".into()));
        assert_eq!(said("Speakers: many")[0].1, "Speakers: many");
        assert_eq!(said("Speaker x: many")[0].1, "Speaker x: many");
    }

    #[test]
    fn too_many_speakers_and_no_words_are_refused() {
        assert!(lines(" \n\t").is_err());
        assert!(lines("Speaker 5: a").is_err());
        assert!(
            lines("Speaker 99999999999999999999999: a").unwrap()[0]
                .text
                .contains("999")
        );
    }
}
