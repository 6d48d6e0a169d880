//! The numbers that shape the network, as both kinds of releases write them.

use std::path::Path;

use audiocpp::nn::CausalLmSize;
use serde_json::Value;

use crate::LoadError;

/// Samples a second of everything that is heard or spoken.
pub const RATE: u32 = 24_000;
/// Values of the embedding of a time step.
pub const TIME_FEATURES: usize = 256;
/// Taps of the convolutions that do not change the rate.
pub const KERNEL: usize = 7;
/// Sizes beyond this are of no network.
const MOST: usize = 1 << 20;

/// A convolutional tokenizer, or one of its halves.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenizerSize {
    /// Values of a latent.
    pub latent: usize,
    /// Channels next to the samples.
    pub filters: usize,
    /// How many steps become one, from the samples on.
    pub ratios: Vec<usize>,
    /// Blocks of each stage, from the samples on; one more than ratios.
    pub depths: Vec<usize>,
    /// Added to the mean of squares in normalisations.
    pub eps: f32,
}

impl TokenizerSize {
    /// Samples of a latent.
    pub fn hop(&self) -> usize {
        self.ratios.iter().product()
    }
}

/// The diffusion head.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadSize {
    /// Values of a hidden state, those of the language model.
    pub width: usize,
    /// Values of a latent.
    pub latent: usize,
    /// Blocks.
    pub layers: usize,
    /// Inner values of the feed-forward networks.
    pub ffn: usize,
    /// Added to the mean of squares in normalisations.
    pub eps: f32,
}

/// The four tokens that the language model says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tokens {
    /// Speech begins.
    pub start: u32,
    /// Speech ends.
    pub end: u32,
    /// One frame of speech.
    pub frame: u32,
    /// The script has been read.
    pub eos: u32,
}

impl Tokens {
    /// In the order in which their scores are given.
    pub fn all(&self) -> [u32; 4] {
        [self.start, self.end, self.frame, self.eos]
    }
}

/// Ids in Qwen2.5's vocabulary, of tokens that were made for pictures.
const QWEN: Tokens = Tokens {
    start: 151_652,
    end: 151_653,
    frame: 151_654,
    eos: 151_643,
};

/// Everything.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The language model.
    pub lm: CausalLmSize,
    /// Whether its embeddings are also its output projection.
    pub tied: bool,
    /// Most tokens of a text.
    pub max_positions: usize,
    /// The tokenizer that speech is made with.
    pub acoustic: TokenizerSize,
    /// Blocks of the acoustic decoder's stages, from the latents on.
    pub decoder_depths: Vec<usize>,
    /// The tokenizer that hears what was said.
    pub semantic: TokenizerSize,
    /// The diffusion head.
    pub head: HeadSize,
    /// The language model's tokens.
    pub tokens: Tokens,
    /// Whether tensors have the names of the `-hf` releases.
    pub renamed: bool,
}

impl Config {
    /// Whether the values of a `config.json` are those of a model that speaks.
    pub fn fits(json: &Value) -> bool {
        let halves = json.get("decoder_config").or(json.get("text_config"));
        json.get("model_type").and_then(Value::as_str) == Some("vibevoice")
            && !AsrConfig::fits(json)
            && halves.is_some()
            && json.get("diffusion_head_config").is_some()
    }

    /// Reads the values of the `config.json` at `path`.
    ///
    /// # Errors
    /// A value that is missing, or that no network can have.
    pub fn read(json: &Value, path: &Path) -> Result<Config, LoadError> {
        let fields = Fields {
            json,
            part: "",
            path,
        };
        let renamed = json.get("text_config").is_some();
        let names = match renamed {
            true => ["text_config", "audio_config", "semantic_model_config"],
            false => [
                "decoder_config",
                "acoustic_tokenizer_config",
                "semantic_tokenizer_config",
            ],
        };
        let [text, acoustic, semantic] = names.map(|name| fields.part(name));
        let (text, acoustic_fields) = (text?, acoustic?);
        let lm = language_model(&text)?;
        let acoustic = tokenizer(&acoustic_fields, renamed)?;
        let decoder_depths = decoder_depths(&acoustic_fields, &acoustic, renamed)?;
        Ok(Config {
            lm,
            tied: tied(&fields, &text),
            max_positions: text.size("max_position_embeddings")?,
            decoder_depths,
            semantic: tokenizer(&semantic?, renamed)?,
            head: head(&fields.part("diffusion_head_config")?, &lm, acoustic.latent)?,
            acoustic,
            tokens: Tokens {
                start: fields.id("audio_bos_token_id").unwrap_or(QWEN.start),
                end: fields.id("audio_eos_token_id").unwrap_or(QWEN.end),
                frame: fields.id("audio_token_id").unwrap_or(QWEN.frame),
                eos: fields.id("eos_token_id").unwrap_or(QWEN.eos),
            },
            renamed,
        })
    }
}

/// Everything of VibeVoice-Realtime.
#[derive(Debug, Clone, PartialEq)]
pub struct RealtimeConfig {
    /// The language model that reads text.
    pub lower: CausalLmSize,
    /// The language model above it.
    pub upper: CausalLmSize,
    /// Most steps of the upper language model.
    pub max_positions: usize,
    /// The tokenizer that speech is made with.
    pub acoustic: TokenizerSize,
    /// Blocks of the acoustic decoder's stages, from the latents on.
    pub decoder_depths: Vec<usize>,
    /// The diffusion head.
    pub head: HeadSize,
}

impl RealtimeConfig {
    /// Whether the values of a `config.json` are those of a VibeVoice that streams.
    pub fn fits(json: &Value) -> bool {
        json.get("model_type").and_then(Value::as_str) == Some("vibevoice_streaming")
    }

    /// Reads the values of the `config.json` at `path`.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn read(json: &Value, path: &Path) -> Result<RealtimeConfig, LoadError> {
        let fields = Fields {
            json,
            part: "",
            path,
        };
        let text = fields.part("decoder_config")?;
        let acoustic_fields = fields.part("acoustic_tokenizer_config")?;
        let whole = language_model(&text)?;
        let above = fields.size("tts_backbone_num_hidden_layers")?;
        if above >= whole.layers {
            let wanted = format!("fewer than the {} layers in all", whole.layers);
            return Err(fields.wrong("tts_backbone_num_hidden_layers", &wanted));
        }
        let acoustic = tokenizer(&acoustic_fields, false)?;
        Ok(RealtimeConfig {
            lower: CausalLmSize {
                layers: whole.layers - above,
                final_norm: false,
                ..whole
            },
            upper: CausalLmSize {
                layers: above,
                ..whole
            },
            max_positions: text.size("max_position_embeddings")?,
            decoder_depths: decoder_depths(&acoustic_fields, &acoustic, false)?,
            head: head(
                &fields.part("diffusion_head_config")?,
                &whole,
                acoustic.latent,
            )?,
            acoustic,
        })
    }
}

/// Blocks of a decoder's stages, from the latents on: those of the encoder in reverse if nothing is
/// said.
fn decoder_depths(
    fields: &Fields,
    encoder: &TokenizerSize,
    renamed: bool,
) -> Result<Vec<usize>, LoadError> {
    let reversed = || encoder.depths.iter().rev().copied().collect();
    let found = match fields.get("decoder_depths") {
        Some(value) if !renamed => depths(value).unwrap_or_else(reversed),
        _ => reversed(),
    };
    match found.len() == encoder.ratios.len() + 1 {
        true => Ok(found),
        false => Err(fields.wrong("decoder_depths", "one more than ratios")),
    }
}

/// The tokens around the sound that VibeVoice-ASR hears, and around turns of its dialogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsrTokens {
    /// The sound begins.
    pub start: u32,
    /// The sound ends.
    pub end: u32,
    /// One frame of sound.
    pub frame: u32,
    /// A turn begins.
    pub turn_start: u32,
    /// A turn ends.
    pub turn_end: u32,
    /// The answer has been given.
    pub eos: u32,
}

impl AsrTokens {
    /// As `id` numbers them by their names, where it knows them.
    pub fn named(self, id: impl Fn(&str) -> Option<u32>) -> AsrTokens {
        let named = |name: &str, other: u32| id(name).unwrap_or(other);
        AsrTokens {
            start: named("<|object_ref_start|>", self.start),
            end: named("<|object_ref_end|>", self.end),
            frame: named("<|box_start|>", self.frame),
            turn_start: named("<|im_start|>", self.turn_start),
            turn_end: named("<|im_end|>", self.turn_end),
            eos: named("<|endoftext|>", self.eos),
        }
    }

    /// All of them.
    pub fn all(&self) -> [u32; 6] {
        [
            self.start,
            self.end,
            self.frame,
            self.eos,
            self.turn_start,
            self.turn_end,
        ]
    }
}

/// Everything of VibeVoice-ASR.
#[derive(Debug, Clone, PartialEq)]
pub struct AsrConfig {
    /// The language model.
    pub lm: CausalLmSize,
    /// Whether its embeddings are also its output projection.
    pub tied: bool,
    /// Most tokens of a text.
    pub max_positions: usize,
    /// What hears the sound.
    pub acoustic: TokenizerSize,
    /// What hears the words.
    pub semantic: TokenizerSize,
    /// Special tokens.
    pub tokens: AsrTokens,
    /// Whether tensors have the names of the `-hf` release.
    pub renamed: bool,
}

impl AsrConfig {
    /// Whether the values of a `config.json` are those of a VibeVoice that listens.
    pub fn fits(json: &Value) -> bool {
        let kind = json.get("model_type").and_then(Value::as_str);
        let classes = json.get("architectures").and_then(Value::as_array);
        let listens = classes.is_some_and(|all| {
            let names = all.iter().filter_map(Value::as_str);
            names
                .map(str::to_lowercase)
                .any(|name| name.contains("asr"))
        });
        kind == Some("vibevoice_asr") || (kind == Some("vibevoice") && listens)
    }

    /// Reads the values of the `config.json` at `path`.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn read(json: &Value, path: &Path) -> Result<AsrConfig, LoadError> {
        let fields = Fields {
            json,
            part: "",
            path,
        };
        let renamed = json.get("text_config").is_some();
        let names = match renamed {
            true => [
                "text_config",
                "acoustic_tokenizer_encoder_config",
                "semantic_tokenizer_encoder_config",
            ],
            false => [
                "decoder_config",
                "acoustic_tokenizer_config",
                "semantic_tokenizer_config",
            ],
        };
        let [text, acoustic, semantic] = names.map(|name| fields.part(name));
        let text = text?;
        let (acoustic, semantic) = (
            tokenizer(&acoustic?, renamed)?,
            tokenizer(&semantic?, renamed)?,
        );
        if acoustic.hop() != semantic.hop() {
            return Err(fields.wrong(
                names[2],
                "as many samples a frame as the other tokenizer has",
            ));
        }
        Ok(AsrConfig {
            lm: language_model(&text)?,
            tied: tied(&fields, &text),
            max_positions: text.size("max_position_embeddings")?,
            acoustic,
            semantic,
            tokens: AsrTokens {
                start: fields.id("audio_bos_token_id").unwrap_or(151_646),
                end: fields.id("audio_eos_token_id").unwrap_or(151_647),
                frame: fields.id("audio_token_id").unwrap_or(151_648),
                turn_start: 151_644,
                turn_end: 151_645,
                eos: QWEN.eos,
            },
            renamed,
        })
    }
}

/// Whether the language model's embeddings are also its output projection.
fn tied(fields: &Fields, text: &Fields) -> bool {
    let said = |part: &Fields| part.get("tie_word_embeddings")?.as_bool();
    said(text).or(said(fields)).unwrap_or(false)
}

fn language_model(text: &Fields) -> Result<CausalLmSize, LoadError> {
    let (width, heads) = (text.size("hidden_size")?, text.size("num_attention_heads")?);
    let kv_heads = text.size("num_key_value_heads")?;
    let base = text
        .json
        .pointer("/rope_parameters/rope_theta")
        .or(text.get("rope_theta"));
    let qwen3 = text.get("model_type").and_then(Value::as_str) == Some("qwen3");
    if !heads.is_multiple_of(kv_heads) {
        return Err(text.wrong("num_key_value_heads", "a divisor of the heads"));
    }
    Ok(CausalLmSize {
        width,
        layers: text.size("num_hidden_layers")?,
        heads,
        kv_heads,
        head_width: match text.get("head_dim").is_some_and(|v| !v.is_null()) {
            true => text.size("head_dim")?,
            false => width / heads,
        },
        ffn: text.size("intermediate_size")?,
        vocab: text.size("vocab_size")?,
        eps: text.number("rms_norm_eps").unwrap_or(1e-6),
        rotary_base: base.and_then(Value::as_f64).unwrap_or(1e6) as f32,
        qkv_bias: !qwen3,
        qk_norm: qwen3,
        final_norm: true,
    })
}

fn tokenizer(fields: &Fields, renamed: bool) -> Result<TokenizerSize, LoadError> {
    let name = |original, port| if renamed { port } else { original };
    let ratios_name = name("encoder_ratios", "downsampling_ratios");
    let depths_name = name("encoder_depths", "depths");
    // The original counts from the latents on.
    let mut ratios = fields.sizes(ratios_name)?;
    if !renamed {
        ratios.reverse();
    }
    let found = fields.get(depths_name).and_then(depths);
    let depths = found.ok_or_else(|| fields.wrong(depths_name, "numbers of blocks"))?;
    let sane = (1..=16).contains(&ratios.len()) && ratios.iter().all(|r| (2..=64).contains(r));
    if !sane || depths.len() != ratios.len() + 1 {
        return Err(fields.wrong(ratios_name, "ratios of 2 and more, one fewer than depths"));
    }
    Ok(TokenizerSize {
        latent: fields.size(name("vae_dim", "hidden_size"))?,
        filters: fields.size(name("encoder_n_filters", "num_filters"))?,
        ratios,
        depths,
        eps: fields
            .number(name("layernorm_eps", "rms_norm_eps"))
            .unwrap_or(1e-5),
    })
}

fn head(fields: &Fields, lm: &CausalLmSize, latent: usize) -> Result<HeadSize, LoadError> {
    let ffn = match fields.number("head_ffn_ratio") {
        Some(ratio) => (ratio * lm.width as f32) as usize,
        None => fields.size("intermediate_size")?,
    };
    let layers = ["head_layers", "num_hidden_layers"];
    let layers = layers.into_iter().find(|name| fields.get(name).is_some());
    Ok(HeadSize {
        width: lm.width,
        latent,
        layers: fields.size(layers.unwrap_or("head_layers"))?,
        ffn,
        eps: fields.number("rms_norm_eps").unwrap_or(1e-5),
    })
}

/// `"3-3-8"` or `[3, 3, 8]`.
fn depths(value: &Value) -> Option<Vec<usize>> {
    let all: Option<Vec<usize>> = match value {
        Value::String(text) => text.split('-').map(|n| n.parse().ok()).collect(),
        Value::Array(list) => list.iter().map(as_size).collect(),
        _ => None,
    };
    all.filter(|all| all.iter().all(|&n| n <= 256))
}

fn as_size(value: &Value) -> Option<usize> {
    let size = usize::try_from(value.as_u64()?).ok()?;
    (1..=MOST).contains(&size).then_some(size)
}

/// One part of the file.
struct Fields<'a> {
    json: &'a Value,
    part: &'a str,
    path: &'a Path,
}

impl<'a> Fields<'a> {
    fn part(&self, name: &'a str) -> Result<Fields<'a>, LoadError> {
        let json = self.json.get(name).filter(|part| part.is_object());
        Ok(Fields {
            json: json.ok_or_else(|| self.wrong(name, "a group of settings"))?,
            part: name,
            path: self.path,
        })
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.json.get(name)
    }

    fn wrong(&self, name: &str, wanted: &str) -> LoadError {
        let found = self.get(name).map_or("nothing".into(), Value::to_string);
        let part = self.part;
        let problem = format!("`{part}.{name}` is {found}, wanted {wanted}");
        LoadError::package(self.path, problem)
    }

    fn size(&self, name: &str) -> Result<usize, LoadError> {
        let size = self.get(name).and_then(as_size);
        size.ok_or_else(|| self.wrong(name, &format!("a whole number from 1 to {MOST}")))
    }

    fn sizes(&self, name: &str) -> Result<Vec<usize>, LoadError> {
        let list = self.get(name).and_then(Value::as_array);
        let sizes = list.and_then(|list| list.iter().map(as_size).collect());
        sizes.ok_or_else(|| self.wrong(name, "a list of whole numbers"))
    }

    fn number(&self, name: &str) -> Option<f32> {
        Some(self.get(name)?.as_f64()? as f32)
    }

    fn id(&self, name: &str) -> Option<u32> {
        u32::try_from(self.get(name)?.as_u64()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn released() -> Value {
        serde_json::json!({
            "model_type": "vibevoice",
            "acoustic_tokenizer_config": {
                "encoder_ratios": [8, 5, 5, 4, 2, 2], "encoder_depths": "3-3-3-3-3-3-8",
                "encoder_n_filters": 32, "vae_dim": 64, "decoder_depths": null
            },
            "semantic_tokenizer_config": {
                "encoder_ratios": [8, 5, 5, 4, 2, 2], "encoder_depths": "3-3-3-3-3-3-8",
                "encoder_n_filters": 32, "vae_dim": 128
            },
            "decoder_config": {
                "hidden_size": 1536, "num_attention_heads": 12, "num_key_value_heads": 2,
                "num_hidden_layers": 28, "intermediate_size": 8960, "vocab_size": 151936,
                "max_position_embeddings": 65536, "rope_theta": 1000000.0,
                "tie_word_embeddings": true
            },
            "diffusion_head_config": {"head_layers": 4, "head_ffn_ratio": 3.0}
        })
    }

    #[test]
    fn the_release_is_read_from_the_samples_on() {
        let json = released();
        assert!(Config::fits(&json));
        let config = Config::read(&json, Path::new("config.json")).unwrap();
        assert_eq!(config.acoustic.hop(), 3200);
        assert_eq!(config.acoustic.ratios, [2, 2, 4, 5, 5, 8]);
        assert_eq!(config.decoder_depths, [8, 3, 3, 3, 3, 3, 3]);
        assert_eq!((config.lm.head_width, config.head.ffn), (128, 4608));
        assert_eq!(config.tokens, QWEN);
        assert!(config.tied && !config.renamed);
    }

    #[test]
    fn sizes_that_no_network_has_are_refused() {
        for (pointer, value, name) in [
            ("/decoder_config/hidden_size", 0, "hidden_size"),
            ("/decoder_config/vocab_size", 1i64 << 40, "vocab_size"),
            (
                "/decoder_config/num_key_value_heads",
                5,
                "num_key_value_heads",
            ),
            (
                "/acoustic_tokenizer_config/encoder_ratios/2",
                1,
                "encoder_ratios",
            ),
            (
                "/acoustic_tokenizer_config/encoder_depths",
                3,
                "encoder_depths",
            ),
        ] {
            let mut json = released();
            *json.pointer_mut(pointer).unwrap() = Value::from(value);
            let error = Config::read(&json, Path::new("config.json")).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}
