//! Tokens grouped into words.

use std::ops::Range;

use audiocpp::text::Utf8Stream;

use crate::languages::is_unspaced;
use crate::tokenizer::WhisperTokenizer;

/// A run of tokens that makes one word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordTokens {
    /// The text, with the blank before it; empty for a control token.
    pub text: String,
    /// Which of the given tokens.
    pub tokens: Range<usize>,
}

/// ASCII punctuation in code order; a run of it in this order counts as punctuation too.
const PUNCTUATION: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

/// Groups tokens into words of `language` (a code): at blanks, or at every whole character for
/// languages written without them. A control token stands alone. The ranges cover all tokens in
/// order, and each text is whole characters.
pub fn split_words(
    tokenizer: &WhisperTokenizer,
    tokens: &[u32],
    language: &str,
) -> Vec<WordTokens> {
    let parts = split_characters(tokenizer, tokens);
    if is_unspaced(language) {
        return parts;
    }
    let mut words: Vec<WordTokens> = Vec::new();
    let mut after_control = true;
    for part in parts {
        let control = tokens[part.tokens.start] >= tokenizer.special().eot;
        let starts_word = part.text.starts_with(' ') || PUNCTUATION.contains(part.text.trim());
        match words.last_mut() {
            Some(word) if !control && !after_control && !starts_word => {
                word.text.push_str(&part.text);
                word.tokens.end = part.tokens.end;
            }
            _ => words.push(part),
        }
        after_control = control;
    }
    words
}

/// Groups tokens so that each group is whole characters.
fn split_characters(tokenizer: &WhisperTokenizer, tokens: &[u32]) -> Vec<WordTokens> {
    let mut parts: Vec<WordTokens> = Vec::new();
    let mut stream = Utf8Stream::new();
    let (mut text, mut start) = (String::new(), 0);
    for (i, token) in tokens.iter().enumerate() {
        let control = *token >= tokenizer.special().eot;
        if control {
            text += &stream.finish();
            if start < i {
                parts.push(WordTokens {
                    text: std::mem::take(&mut text),
                    tokens: start..i,
                });
                start = i;
            }
        } else {
            text += &stream.push(tokenizer.bytes(*token));
        }
        if control || stream.is_complete() {
            parts.push(WordTokens {
                text: std::mem::take(&mut text),
                tokens: start..i + 1,
            });
            start = i + 1;
        }
    }
    text += &stream.finish();
    if start < tokens.len() {
        parts.push(WordTokens {
            text,
            tokens: start..tokens.len(),
        });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::tests::english;
    use proptest::prelude::*;

    fn texts(words: &[WordTokens]) -> Vec<&str> {
        words.iter().map(|word| word.text.as_str()).collect()
    }

    #[test]
    fn words_begin_at_blanks_and_punctuation_stands_alone() {
        let tokenizer = english();
        let tokens = tokenizer.encode(" Hello, my name's Ana. 42!").unwrap();
        let words = split_words(&tokenizer, &tokens, "en");
        assert_eq!(
            texts(&words),
            [" Hello", ",", " my", " name's", " Ana", ".", " 42", "!"]
        );
        assert_eq!(words[0].tokens.start, 0);
        assert_eq!(words[7].tokens.end, tokens.len());
    }

    #[test]
    fn characters_are_never_cut() {
        let tokenizer = english();
        let tokens = tokenizer.encode("日本 🎵").unwrap();
        assert_eq!(
            texts(&split_words(&tokenizer, &tokens, "ja")),
            ["日", "本", " ", "🎵"]
        );
        assert_eq!(
            texts(&split_words(&tokenizer, &tokens, "en")),
            ["日本", " 🎵"]
        );
    }

    #[test]
    fn control_tokens_stand_alone_and_open_characters_end() {
        let tokenizer = english();
        let eot = tokenizer.special().eot;
        let mut tokens = tokenizer.encode("語").unwrap();
        tokens.pop();
        let open = tokens.len();
        tokens.push(eot);
        let words = split_words(&tokenizer, &tokens, "en");
        assert_eq!(texts(&words), ["\u{fffd}", ""]);
        assert_eq!(words[1].tokens, open..open + 1);
    }

    proptest! {
        #[test]
        fn ranges_cover_all_tokens(tokens in prop::collection::vec(0u32..51864, 0..60)) {
            let tokenizer = english();
            for language in ["en", "ja"] {
                let words = split_words(&tokenizer, &tokens, language);
                let mut next = 0;
                for word in &words {
                    prop_assert_eq!(word.tokens.start, next);
                    prop_assert!(word.tokens.end > next);
                    next = word.tokens.end;
                }
                prop_assert_eq!(next, tokens.len());
                let text: String = words.iter().map(|word| word.text.as_str()).collect();
                if tokens.iter().all(|token| *token < tokenizer.special().eot) {
                    prop_assert_eq!(text, tokenizer.decode(&tokens));
                }
            }
        }
    }
}
