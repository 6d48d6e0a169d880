//! Sizes and token lists of a checkpoint, read from whichever container it came in.

use std::path::Path;

use audiocpp::weights::{Format, Source, Value};
use serde::Deserialize;

use crate::{LoadError, alignment_heads::alignment_heads, names::Naming};

/// The numbers that shape the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Mel bands: 80, or 128 since large-v3.
    pub mels: usize,
    /// Encoder positions: 1500, that is 30 s.
    pub audio_ctx: usize,
    /// Width of the encoder.
    pub audio_width: usize,
    /// Hidden width of the encoder's MLPs: four times the width in every published size.
    pub audio_hidden: usize,
    /// Attention heads of the encoder.
    pub audio_heads: usize,
    /// Blocks of the encoder.
    pub audio_layers: usize,
    /// Tokens of the vocabulary.
    pub vocab: usize,
    /// Decoder positions: 448.
    pub text_ctx: usize,
    /// Width of the decoder.
    pub text_width: usize,
    /// Hidden width of the decoder's MLPs.
    pub text_hidden: usize,
    /// Attention heads of the decoder.
    pub text_heads: usize,
    /// Blocks of the decoder.
    pub text_layers: usize,
    /// Cross-attention heads `(block, head)` that follow time, for word timing.
    pub alignment_heads: Vec<(usize, usize)>,
}

/// Hugging Face's `config.json`.
#[derive(Deserialize)]
struct HfConfig {
    num_mel_bins: usize,
    max_source_positions: usize,
    d_model: usize,
    encoder_attention_heads: usize,
    encoder_layers: usize,
    vocab_size: usize,
    max_target_positions: usize,
    decoder_attention_heads: usize,
    decoder_layers: usize,
}

/// What other files say: Hugging Face's `generation_config.json`, CTranslate2's `config.json`.
#[derive(Deserialize, Default)]
struct Extra {
    alignment_heads: Option<Vec<(usize, usize)>>,
}

impl Config {
    /// Reads the sizes of the model in `source`, and what the files in `folder` add.
    pub fn read(
        source: &dyn Source,
        naming: Naming,
        folder: Option<&Path>,
    ) -> Result<Config, LoadError> {
        let mut config = match source.format() {
            Format::WhisperCpp => Config::from_whisper_cpp(source)?,
            _ => match (naming, folder) {
                (Naming::HuggingFace, Some(folder)) => {
                    Config::from_json(&folder.join("config.json"))?
                }
                _ => Config::from_shapes(source, naming)?,
            },
        };
        let rows = |name: String| {
            source
                .find(&name)
                .and_then(|info| info.shape.first().copied())
                .unwrap_or(0)
        };
        config.audio_hidden = rows(naming.encoder_probe(0));
        config.text_hidden = rows(naming.decoder_probe(0));
        config.check(source)?;
        let extra = |name: &str| -> Option<Extra> {
            let text = std::fs::read(folder?.join(name)).ok()?;
            serde_json::from_slice(&text).ok()
        };
        let named = ["generation_config.json", "config.json"]
            .into_iter()
            .find_map(|name| extra(name)?.alignment_heads);
        config.alignment_heads = named.unwrap_or_else(|| {
            alignment_heads(
                config.text_layers,
                config.audio_layers,
                config.vocab,
                config.text_heads,
            )
        });
        config
            .alignment_heads
            .retain(|&(layer, head)| layer < config.text_layers && head < config.text_heads);
        config.alignment_heads.sort_unstable();
        Ok(config)
    }

    fn from_json(path: &Path) -> Result<Config, LoadError> {
        let bad = |problem: String| LoadError::Config {
            path: path.to_owned(),
            problem,
        };
        let text = std::fs::read(path).map_err(|e| bad(e.to_string()))?;
        let json: HfConfig = serde_json::from_slice(&text).map_err(|e| bad(e.to_string()))?;
        Ok(Config {
            mels: json.num_mel_bins,
            audio_ctx: json.max_source_positions,
            audio_width: json.d_model,
            audio_hidden: 0,
            audio_heads: json.encoder_attention_heads,
            audio_layers: json.encoder_layers,
            vocab: json.vocab_size,
            text_ctx: json.max_target_positions,
            text_width: json.d_model,
            text_hidden: 0,
            text_heads: json.decoder_attention_heads,
            text_layers: json.decoder_layers,
            alignment_heads: Vec::new(),
        })
    }

    fn from_whisper_cpp(source: &dyn Source) -> Result<Config, LoadError> {
        let size = |key: &str| {
            source
                .metadata()
                .at(&["hparams", key])
                .and_then(Value::as_usize)
                .ok_or_else(|| LoadError::Config {
                    path: source.path().to_owned(),
                    problem: format!("the header has no usable {key}"),
                })
        };
        Ok(Config {
            mels: size("n_mels")?,
            audio_ctx: size("n_audio_ctx")?,
            audio_width: size("n_audio_state")?,
            audio_hidden: 0,
            audio_heads: size("n_audio_head")?,
            audio_layers: size("n_audio_layer")?,
            vocab: size("n_vocab")?,
            text_ctx: size("n_text_ctx")?,
            text_width: size("n_text_state")?,
            text_hidden: 0,
            text_heads: size("n_text_head")?,
            text_layers: size("n_text_layer")?,
            alignment_heads: Vec::new(),
        })
    }

    /// Every published Whisper has heads of 64, so the shapes of its tensors say everything.
    fn from_shapes(source: &dyn Source, naming: Naming) -> Result<Config, LoadError> {
        let names = naming.names();
        let shape = |name: &str| {
            source
                .find(name)
                .map(|info| info.shape.clone())
                .ok_or_else(|| LoadError::Config {
                    path: source.path().to_owned(),
                    problem: format!("tensor `{name}` is missing; this is not a Whisper model"),
                })
        };
        let at = |shape: &[usize], axis: usize| shape.get(axis).copied().unwrap_or(0);
        let conv = shape(&names.encoder_conv1_weight)?;
        let tokens = shape(&names.token_table)?;
        let count = |prefix: &dyn Fn(usize) -> String| {
            (0..)
                .take_while(|&i| source.find(&prefix(i)).is_some())
                .count()
        };
        let width = at(&conv, 0);
        Ok(Config {
            mels: at(&conv, 1),
            audio_ctx: at(&shape(&names.encoder_positions)?, 0),
            audio_width: width,
            audio_hidden: 0,
            audio_heads: width / 64,
            audio_layers: count(&|i| naming.encoder_probe(i)),
            vocab: at(&tokens, 0),
            text_ctx: at(&shape(&names.decoder_positions)?, 0),
            text_width: at(&tokens, 1),
            text_hidden: 0,
            text_heads: at(&tokens, 1) / 64,
            text_layers: count(&|i| naming.decoder_probe(i)),
            alignment_heads: Vec::new(),
        })
    }

    /// Refuses sizes that no network can have, before anything is allocated by them.
    fn check(&self, source: &dyn Source) -> Result<(), LoadError> {
        let sizes = [
            ("mels", self.mels, 512),
            ("audio_ctx", self.audio_ctx, 1 << 16),
            ("audio_width", self.audio_width, 1 << 14),
            ("audio_hidden", self.audio_hidden, 1 << 16),
            ("audio_heads", self.audio_heads, 1 << 8),
            ("audio_layers", self.audio_layers, 1 << 8),
            ("vocab", self.vocab, 1 << 20),
            ("text_ctx", self.text_ctx, 1 << 14),
            ("text_width", self.text_width, 1 << 14),
            ("text_hidden", self.text_hidden, 1 << 16),
            ("text_heads", self.text_heads, 1 << 8),
            ("text_layers", self.text_layers, 1 << 8),
        ];
        let wrong = sizes
            .iter()
            .find(|(_, value, limit)| *value == 0 || value > limit);
        let divides = self.audio_width.is_multiple_of(self.audio_heads.max(1))
            && self.text_width.is_multiple_of(self.text_heads.max(1));
        let problem = match wrong {
            Some((name, value, limit)) => format!("{name} is {value}, expected 1 to {limit}"),
            None if !divides => "the widths are no multiples of the head counts".to_owned(),
            None => return Ok(()),
        };
        Err(LoadError::Config {
            path: source.path().to_owned(),
            problem,
        })
    }
}
