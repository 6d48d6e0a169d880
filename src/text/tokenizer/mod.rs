//! Text to token ids and back to bytes.
//!
//! Every published form of a vocabulary becomes one [`Tokenizer`]: Hugging Face `tokenizer.json`,
//! `vocab.json` + `merges.txt`, and a bare list of byte strings in merge order (tiktoken,
//! whisper.cpp). Decoding gives bytes, since a token may end inside a character; see
//! [`Utf8Stream`](crate::text::Utf8Stream).

mod alphabet;
mod pieces;
mod ranks;

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;
use tokenizers::models::bpe::{BPE, Merges, Vocab};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{
    Model, NormalizedString, Normalizer, OffsetReferential, OffsetType, PreTokenizedString,
    PreTokenizer,
};

use alphabet::Alphabet;
use pieces::Pieces;

/// Why a vocabulary could not be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// The file cannot be read.
    #[error("tokenizer file {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The content is not what its format asks for.
    #[error("{what}: {reason}")]
    Format {
        /// Which part, for example `tokenizer.json`.
        what: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The text holds something that the vocabulary cannot spell.
    #[error("text cannot be encoded: {0}")]
    Encode(String),
}

/// This module's results.
pub type Result<T> = std::result::Result<T, TokenizerError>;

/// A vocabulary with its rules for cutting text.
pub struct Tokenizer {
    rules: tokenizers::Tokenizer,
    /// Bytes that each id stands for.
    pieces: Pieces,
    /// Ids outside the model proper: control tokens and other added strings.
    added: HashMap<u32, String>,
    len: usize,
}

impl Tokenizer {
    /// Reads a Hugging Face `tokenizer.json`.
    pub fn from_file(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|source| TokenizerError::Read {
            path: path.display().to_string(),
            source,
        })?;
        Self::from_json(&bytes)
    }

    /// Reads the content of a Hugging Face `tokenizer.json`.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        let what = "tokenizer.json";
        let spelling: Spelling = serde_json::from_slice(json).map_err(|e| format_error(what, e))?;
        let rules = tokenizers::Tokenizer::from_bytes(json).map_err(|e| format_error(what, e))?;
        Self::new(rules, spelling.alphabet(), what)
    }

    /// Reads `vocab.json` (token to id) with `merges.txt`, byte-level as GPT-2's.
    ///
    /// Ids that no merge leads to and that are not single bytes are kept for decoding only.
    pub fn from_vocab_merges(vocab_json: &[u8], merges_txt: &str) -> Result<Self> {
        let vocab: HashMap<String, u32> =
            serde_json::from_slice(vocab_json).map_err(|e| format_error("vocab.json", e))?;
        let mut merges = Merges::new();
        for (number, line) in merges_txt.lines().enumerate() {
            if line.is_empty() || line.starts_with("#version") {
                continue;
            }
            let pair = line.split_once(' ').ok_or_else(|| {
                let reason = format!("line {}: expected two tokens, found `{line}`", number + 1);
                format_error("merges.txt", reason)
            })?;
            merges.push((pair.0.to_owned(), pair.1.to_owned()));
        }
        Self::byte_level(vocab.into_iter().collect(), merges, "vocab.json")
    }

    /// Takes a byte-level vocabulary whose ids are merge ranks: `pieces[id]` are the bytes of
    /// token `id`, in the order in which training made them (GPT-2, tiktoken, whisper.cpp).
    pub fn from_ranks<P: AsRef<[u8]>>(pieces: &[P]) -> Result<Self> {
        let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.as_ref().to_vec()).collect();
        let spelled: Vec<String> = pieces
            .iter()
            .map(|piece| alphabet::byte_level(piece))
            .collect();
        let mut vocab = Vocab::default();
        for (id, token) in spelled.iter().enumerate() {
            vocab.entry(token.clone()).or_insert(id as u32);
        }
        let merges = ranks::merges(&pieces)
            .into_iter()
            .map(|(left, right)| (spelled[left].clone(), spelled[right].clone()))
            .collect();
        Self::byte_level(vocab, merges, "token list")
    }

    fn byte_level(vocab: Vocab, merges: Merges, what: &'static str) -> Result<Self> {
        let model = BPE::builder()
            .vocab_and_merges(vocab, merges)
            .build()
            .map_err(|e| format_error(what, e))?;
        let mut rules = tokenizers::Tokenizer::new(model);
        rules.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
        Self::new(rules, Alphabet::ByteLevel, what)
    }

    fn new(rules: tokenizers::Tokenizer, alphabet: Alphabet, what: &'static str) -> Result<Self> {
        let added: HashMap<u32, String> = rules
            .get_added_tokens_decoder()
            .into_iter()
            .map(|(id, token)| (id, token.content))
            .collect();
        let model = rules.get_vocab(false).into_iter().map(|(token, id)| {
            // A string outside the alphabet is an added one that sits in the model's table.
            (id, alphabet.bytes(&token).unwrap_or(token.into_bytes()))
        });
        let also = added
            .iter()
            .map(|(id, content)| (*id, content.clone().into_bytes()));
        let pieces = Pieces::new(model.chain(also));
        let last = pieces.last();
        let last = last.ok_or_else(|| format_error(what, "the vocabulary is empty"))?;
        Ok(Tokenizer {
            rules,
            pieces,
            added,
            len: last as usize + 1,
        })
    }

    /// One more than the highest id.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never true: an empty vocabulary is refused when it is read.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The id of a token as the vocabulary spells it (`Ġthe`, `▁the`, `<|endoftext|>`).
    pub fn id(&self, token: &str) -> Option<u32> {
        self.rules.token_to_id(token)
    }

    /// The bytes that `id` stands for.
    pub fn piece(&self, id: u32) -> Option<&[u8]> {
        self.pieces.get(id)
    }

    /// The string of a control token or other added token; None for ordinary tokens.
    pub fn added_token(&self, id: u32) -> Option<&str> {
        self.added.get(&id).map(String::as_str)
    }

    /// Token ids of `text`. Nothing in the text counts as a control token: `<|endoftext|>` from
    /// a user is spelled out, and no template is added.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let mut normalized = NormalizedString::from(text);
        if let Some(normalizer) = self.rules.get_normalizer() {
            normalizer
                .normalize(&mut normalized)
                .map_err(encode_error)?;
        }
        let mut parts = PreTokenizedString::from(normalized);
        if let Some(cut) = self.rules.get_pre_tokenizer() {
            cut.pre_tokenize(&mut parts).map_err(encode_error)?;
        }
        let model = self.rules.get_model();
        parts
            .tokenize(|part| model.tokenize(part.get()))
            .map_err(encode_error)?;
        Ok(parts
            .get_splits(OffsetReferential::Original, OffsetType::Byte)
            .into_iter()
            .flat_map(|(_, _, tokens)| tokens.iter().flatten().map(|token| token.id))
            .collect())
    }

    /// Token ids of `text` in which added tokens (`<|im_start|>`, ...) are taken as such;
    /// `template` adds what the vocabulary's own template puts around a text.
    pub fn encode_with_added(&self, text: &str, template: bool) -> Result<Vec<u32>> {
        let encoding = self
            .rules
            .encode_fast(text, template)
            .map_err(encode_error)?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The bytes of a run of tokens; unknown ids give none.
    pub fn decode_bytes(&self, ids: &[u32]) -> Vec<u8> {
        ids.iter()
            .filter_map(|id| self.piece(*id))
            .flatten()
            .copied()
            .collect()
    }

    /// The text of a run of tokens; bytes that are not UTF-8 become U+FFFD.
    pub fn decode(&self, ids: &[u32]) -> String {
        String::from_utf8_lossy(&self.decode_bytes(ids)).into_owned()
    }
}

/// The bytes behind a token spelled in GPT-2's byte-level alphabet (`Ġthe` is ` the`); None when
/// a character is not of that alphabet, as in control tokens with letters beyond Latin-1.
pub fn byte_level_bytes(token: &str) -> Option<Vec<u8>> {
    Alphabet::ByteLevel.bytes(token)
}

/// The parts of a `tokenizer.json` that tell how its strings spell bytes; its tables are left out.
#[derive(serde::Deserialize)]
struct Spelling {
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(default)]
    decoder: Value,
}

impl Spelling {
    fn alphabet(&self) -> Alphabet {
        let mut names = Vec::new();
        collect_types(&self.pre_tokenizer, &mut names);
        collect_types(&self.decoder, &mut names);
        if names.contains(&"ByteLevel") {
            Alphabet::ByteLevel
        } else if names.contains(&"Metaspace") || names.contains(&"ByteFallback") {
            Alphabet::Metaspace
        } else {
            Alphabet::Plain
        }
    }
}

/// All `"type"` names inside a part of a `tokenizer.json`.
fn collect_types<'a>(value: &'a Value, names: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            names.extend(fields.get("type").and_then(Value::as_str));
            fields
                .values()
                .for_each(|field| collect_types(field, names));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_types(item, names)),
        _ => {}
    }
}

fn format_error(what: &'static str, reason: impl ToString) -> TokenizerError {
    TokenizerError::Format {
        what,
        reason: reason.to_string(),
    }
}

fn encode_error(error: tokenizers::Error) -> TokenizerError {
    TokenizerError::Encode(error.to_string())
}

#[cfg(test)]
mod tests;
