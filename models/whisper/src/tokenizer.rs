//! Whisper's vocabulary: GPT-2 byte-level text tokens, then the control tokens.
//!
//! ```text
//! 0 .. eot                 text
//! eot  <|endoftext|>
//! sot  <|startoftranscript|>
//!      one token a language (99, or 100 with Cantonese)
//!      <|translate|> <|transcribe|> <|startoflm|> <|startofprev|> <|nospeech|> <|notimestamps|>
//!      <|0.00|> <|0.02|> ... <|30.00|>
//! ```

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use audiocpp::text::tokenizer::{Tokenizer, byte_level_bytes};

use crate::languages::{LANGUAGES, language_code};

/// Seconds between two timestamp tokens.
pub const TIMESTAMP_STEP: f64 = 0.02;
/// Timestamp tokens of a vocabulary: 0.00 to 30.00 seconds.
pub const N_TIMESTAMPS: u32 = 1501;

/// Why Whisper's vocabulary could not be used, or not for this request.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// The text part of the vocabulary is broken.
    #[error(transparent)]
    Text(#[from] audiocpp::text::TokenizerError),
    /// The folder holds no vocabulary that is known.
    #[error(
        "no vocabulary in {folder}: expected tokenizer.json, vocab.json with merges.txt, \
         vocabulary.json or vocabulary.txt"
    )]
    NoVocabulary {
        /// The folder.
        folder: String,
    },
    /// The vocabulary is not one of Whisper's.
    #[error("not a Whisper vocabulary: {0}")]
    NotWhisper(String),
    /// A language that Whisper does not know.
    #[error("unknown language `{language}`; known are: {known}")]
    UnknownLanguage {
        /// What was asked for.
        language: String,
        /// All codes.
        known: String,
    },
    /// A language that this model was not trained on.
    #[error("this model does not know language `{0}`: use a multilingual model")]
    LanguageNotInModel(String),
    /// Translation with an English-only model.
    #[error("an English-only model cannot translate: use a multilingual model")]
    CannotTranslate,
}

/// This module's results.
pub type Result<T> = std::result::Result<T, TokenizerError>;

/// What the model is asked to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Task {
    /// The words as spoken.
    #[default]
    Transcribe,
    /// The words in English.
    Translate,
}

/// Ids of the control tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Special {
    /// `<|endoftext|>`; also the number of text tokens.
    pub eot: u32,
    /// `<|startoftranscript|>`; the language tokens follow it.
    pub sot: u32,
    /// `<|translate|>`.
    pub translate: u32,
    /// `<|transcribe|>`.
    pub transcribe: u32,
    /// `<|startoflm|>`.
    pub sot_lm: u32,
    /// `<|startofprev|>`, before the text of earlier windows.
    pub sot_prev: u32,
    /// `<|nospeech|>`.
    pub no_speech: u32,
    /// `<|notimestamps|>`.
    pub no_timestamps: u32,
    /// `<|0.00|>`.
    pub timestamp_begin: u32,
}

impl Special {
    fn new(eot: u32, n_languages: u32) -> Self {
        let translate = eot + 2 + n_languages;
        Special {
            eot,
            sot: eot + 1,
            translate,
            transcribe: translate + 1,
            sot_lm: translate + 2,
            sot_prev: translate + 3,
            no_speech: translate + 4,
            no_timestamps: translate + 5,
            timestamp_begin: translate + 6,
        }
    }

    /// The control tokens of a model with `n_vocab` output classes: 51864 (English only), 51865
    /// (99 languages) or 51866 (100 languages).
    pub fn for_vocab(n_vocab: usize) -> Result<Self> {
        match n_vocab {
            51864 => Ok(Self::new(50256, 99)),
            51865 => Ok(Self::new(50257, 99)),
            51866 => Ok(Self::new(50257, 100)),
            _ => Err(TokenizerError::NotWhisper(format!(
                "{n_vocab} entries; known are 51864, 51865 and 51866"
            ))),
        }
    }

    /// The control tokens as the vocabulary names them; None when it does not name them.
    fn from_names(text: &Tokenizer) -> Result<Option<Self>> {
        let id = |name: &str| text.id(name);
        let (Some(eot), Some(sot), Some(translate)) = (
            id("<|endoftext|>"),
            id("<|startoftranscript|>"),
            id("<|translate|>"),
        ) else {
            return Ok(None);
        };
        let special = Self::new(eot, translate.saturating_sub(sot + 1));
        let named = [
            ("<|startoftranscript|>", special.sot),
            ("<|translate|>", special.translate),
            ("<|transcribe|>", special.transcribe),
            ("<|startofprev|>", special.sot_prev),
            ("<|notimestamps|>", special.no_timestamps),
        ];
        let wrong = named
            .iter()
            .find(|(name, wanted)| id(name) != Some(*wanted));
        let n_languages = special.n_languages();
        match wrong {
            Some((name, wanted)) => Err(TokenizerError::NotWhisper(format!(
                "token {name} has id {:?}, expected {wanted}",
                id(name)
            ))),
            None if n_languages == 0 || n_languages as usize > LANGUAGES.len() => {
                let reason = format!("{n_languages} language tokens; known are 1 to 100");
                Err(TokenizerError::NotWhisper(reason))
            }
            None => Ok(Some(special)),
        }
    }

    /// Number of language tokens.
    pub fn n_languages(&self) -> u32 {
        self.translate - self.sot - 1
    }

    /// Ids of the language tokens, in the order of [`LANGUAGES`].
    pub fn languages(&self) -> Range<u32> {
        self.sot + 1..self.translate
    }

    /// Number of ids up to the last timestamp.
    pub fn n_vocab(&self) -> usize {
        (self.timestamp_begin + N_TIMESTAMPS) as usize
    }
}

/// Whisper's tokenizer, from any of the published containers.
pub struct WhisperTokenizer {
    text: Tokenizer,
    special: Special,
}

impl WhisperTokenizer {
    /// Puts Whisper's control tokens on a text tokenizer: as the vocabulary names them, else by
    /// `n_vocab`, the number of output classes of the model.
    pub fn new(text: Tokenizer, n_vocab: usize) -> Result<Self> {
        let special = match Special::from_names(&text)? {
            Some(special) => special,
            None => Special::for_vocab(n_vocab)?,
        };
        if text.len() < special.eot as usize {
            return Err(TokenizerError::NotWhisper(format!(
                "{} text tokens, expected {}",
                text.len(),
                special.eot
            )));
        }
        Ok(WhisperTokenizer { text, special })
    }

    /// Reads the vocabulary of a model folder (Hugging Face or CTranslate2): `tokenizer.json`,
    /// else `vocab.json` with `merges.txt`, else CTranslate2's `vocabulary.json` or
    /// `vocabulary.txt`.
    pub fn from_folder(folder: &Path, n_vocab: usize) -> Result<Self> {
        let read = |name: &str| match std::fs::read(folder.join(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(audiocpp::text::TokenizerError::Read {
                path: folder.join(name).display().to_string(),
                source,
            }),
        };
        if let Some(json) = read("tokenizer.json")? {
            return Self::new(Tokenizer::from_json(&json)?, n_vocab);
        }
        if let (Some(vocab), Some(merges)) = (read("vocab.json")?, read("merges.txt")?) {
            let merges = String::from_utf8_lossy(&merges);
            // The control tokens stand in added_tokens.json; n_vocab tells them as well.
            return Self::new(Tokenizer::from_vocab_merges(&vocab, &merges)?, n_vocab);
        }
        if let Some(list) = read("vocabulary.json")? {
            let tokens: Vec<String> = serde_json::from_slice(&list)
                .map_err(|e| TokenizerError::NotWhisper(format!("vocabulary.json: {e}")))?;
            return Self::from_spelled(tokens.iter().map(String::as_str), n_vocab);
        }
        match read("vocabulary.txt")? {
            Some(list) => Self::from_spelled(String::from_utf8_lossy(&list).lines(), n_vocab),
            None => Err(TokenizerError::NoVocabulary {
                folder: folder.display().to_string(),
            }),
        }
    }

    /// Takes the token list of a whisper.cpp file: the bytes of each text token by id. Control
    /// tokens at its end are ignored.
    pub fn from_pieces<P: AsRef<[u8]>>(pieces: &[P], n_vocab: usize) -> Result<Self> {
        let n_text = Special::for_vocab(n_vocab)?.eot as usize;
        let text = Tokenizer::from_ranks(&pieces[..n_text.min(pieces.len())])?;
        Self::new(text, n_vocab)
    }

    /// As [`Self::from_pieces`], for tokens spelled in GPT-2's alphabet.
    fn from_spelled<'a>(tokens: impl Iterator<Item = &'a str>, n_vocab: usize) -> Result<Self> {
        let n_text = Special::for_vocab(n_vocab)?.eot as usize;
        let pieces: Vec<Vec<u8>> = tokens
            .take(n_text)
            .enumerate()
            .map(|(id, token)| {
                byte_level_bytes(token).ok_or_else(|| {
                    let reason = format!("token {id} `{token}` is not byte-level");
                    TokenizerError::NotWhisper(reason)
                })
            })
            .collect::<Result<_>>()?;
        Self::from_pieces(&pieces, n_vocab)
    }

    /// The control tokens.
    pub fn special(&self) -> &Special {
        &self.special
    }

    /// Whether the model knows languages and tasks.
    pub fn is_multilingual(&self) -> bool {
        self.special.eot != 50256
    }

    /// Token ids of plain text; control tokens in it are spelled out.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        Ok(self.text.encode(text)?)
    }

    /// Bytes of one token; none for control tokens and timestamps.
    pub fn bytes(&self, token: u32) -> &[u8] {
        match token < self.special.eot {
            true => self.text.piece(token).unwrap_or_default(),
            false => &[],
        }
    }

    /// Text of a run of tokens without control tokens and timestamps.
    pub fn decode(&self, tokens: &[u32]) -> String {
        let bytes: Vec<u8> = tokens
            .iter()
            .flat_map(|t| self.bytes(*t))
            .copied()
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Seconds of a timestamp token; None for all others.
    pub fn timestamp(&self, token: u32) -> Option<f64> {
        let index = token.checked_sub(self.special.timestamp_begin)?;
        (index < N_TIMESTAMPS).then_some(f64::from(index) * TIMESTAMP_STEP)
    }

    /// The timestamp token nearest to `seconds`, within 0 to 30.
    pub fn timestamp_token(&self, seconds: f64) -> u32 {
        let index = (seconds / TIMESTAMP_STEP).round();
        self.special.timestamp_begin + index.clamp(0.0, f64::from(N_TIMESTAMPS - 1)) as u32
    }

    /// The token of a language given by code or name.
    pub fn language_token(&self, language: &str) -> Result<u32> {
        let code = language_code(language)?;
        let index = LANGUAGES.iter().position(|known| *known == code);
        index
            .and_then(|index| self.special.languages().nth(index))
            .ok_or_else(|| TokenizerError::LanguageNotInModel(code.to_owned()))
    }

    /// The language code of a language token.
    pub fn language_of(&self, token: u32) -> Option<&'static str> {
        let languages = self.special.languages();
        let index = token.checked_sub(languages.start)?;
        let code = LANGUAGES.get(index as usize)?;
        languages.contains(&token).then_some(*code)
    }

    /// The tokens that start a transcript: start, language and task (not with English-only
    /// models), and `<|notimestamps|>` unless `timestamps`.
    pub fn sot_sequence(&self, language: &str, task: Task, timestamps: bool) -> Result<Vec<u32>> {
        let mut sequence = vec![self.special.sot];
        if self.is_multilingual() {
            sequence.push(self.language_token(language)?);
            sequence.push(match task {
                Task::Transcribe => self.special.transcribe,
                Task::Translate => self.special.translate,
            });
        } else {
            let code = language_code(language)?;
            if code != "en" {
                return Err(TokenizerError::LanguageNotInModel(code.to_owned()));
            }
            if task == Task::Translate {
                return Err(TokenizerError::CannotTranslate);
            }
        }
        if !timestamps {
            sequence.push(self.special.no_timestamps);
        }
        Ok(sequence)
    }

    /// Text tokens of a prompt as they stand in running text: with one blank before it.
    pub fn encode_prompt(&self, prompt: &str) -> Result<Vec<u32>> {
        match prompt.trim() {
            "" => Ok(Vec::new()),
            prompt => self.encode(&format!(" {prompt}")),
        }
    }

    /// `<|startofprev|>` and the last `n_text_ctx / 2 - 1` of the earlier text tokens; empty
    /// when there are none.
    pub fn previous_text(&self, tokens: &[u32], n_text_ctx: usize) -> Vec<u32> {
        let keep = (n_text_ctx / 2).saturating_sub(1).min(tokens.len());
        match &tokens[tokens.len() - keep..] {
            [] => Vec::new(),
            last => [&[self.special.sot_prev], last].concat(),
        }
    }

    /// Tokens that may not come first: a lone blank, and the end.
    pub fn blank_tokens(&self) -> Result<Vec<u32>> {
        let mut tokens = self.encode(" ")?;
        tokens.push(self.special.eot);
        Ok(tokens)
    }

    /// Tokens that write what nobody says: brackets, notes, speaker marks. Plain punctuation is
    /// kept; a hyphen or an apostrophe is refused at the start of a word only.
    pub fn non_speech_tokens(&self) -> Result<Vec<u32>> {
        const SYMBOLS: &str = "\" # ( ) * + / : ; < = > @ [ \\ ] ^ _ ` { | } ~ 「 」 『 』 \
             << >> <<< >>> -- --- -( -[ (' (\" (( )) ((( ))) [[ ]] {{ }} ♪♪ ♪♪♪";
        // These may be spelled with several tokens; the first two bytes are shared by symbols
        // (U+2640..U+267F) none of which is speech, so the first token goes.
        const NOTES: &str = "♩ ♪ ♫ ♬ ♭ ♮ ♯";
        let mut refused = BTreeSet::new();
        for word_start in [" -", " '"] {
            refused.extend(self.encode(word_start)?.first());
        }
        for symbol in SYMBOLS.split_whitespace() {
            for tokens in [self.encode(symbol)?, self.encode(&format!(" {symbol}"))?] {
                if let [token] = tokens[..] {
                    refused.insert(token);
                }
            }
        }
        for note in NOTES.split_whitespace() {
            refused.extend(self.encode(note)?.first());
            refused.extend(self.encode(&format!(" {note}"))?.first());
        }
        Ok(refused.into_iter().collect())
    }

    /// All tokens that are never sampled: [`Self::non_speech_tokens`] and the control tokens
    /// that only a prompt may hold.
    pub fn suppressed_tokens(&self) -> Result<Vec<u32>> {
        let s = &self.special;
        let mut tokens = self.non_speech_tokens()?;
        tokens.extend([
            s.sot,
            s.translate,
            s.transcribe,
            s.sot_lm,
            s.sot_prev,
            s.no_speech,
        ]);
        tokens.sort_unstable();
        Ok(tokens)
    }
}

#[cfg(test)]
#[path = "tokenizer_tests.rs"]
pub(crate) mod tests;
