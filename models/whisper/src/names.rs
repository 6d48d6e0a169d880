//! The tensor names of each container, and loading the network by them.

use audiocpp::{
    nn::{LayerNorm, Linear},
    weights::{Format, LoadError, Source, Weights},
};

use crate::{
    config::Config,
    net::{Decoder, DecoderBlock, Encoder, EncoderBlock, Net},
};

/// How a container names Whisper's tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// `model.encoder.layers.0.self_attn.q_proj.weight`.
    HuggingFace,
    /// As above without `model.`.
    HuggingFaceBare,
    /// `encoder.blocks.0.attn.query.weight`: OpenAI's own checkpoints and whisper.cpp.
    OpenAi,
    /// `encoder/layer_0/self_attention/linear_0/weight`, projections fused.
    CTranslate2,
}

/// Names outside the blocks.
pub struct Names {
    /// First convolution.
    pub encoder_conv1_weight: String,
    /// Sinusoids.
    pub encoder_positions: String,
    /// Token embeddings.
    pub token_table: String,
    /// Learned positions.
    pub decoder_positions: String,
}

const EPS: f32 = 1e-5;

impl Naming {
    /// The naming that `source` uses, if it holds a Whisper model.
    pub fn of(source: &dyn Source) -> Option<Naming> {
        let all = [
            Naming::CTranslate2,
            Naming::HuggingFace,
            Naming::HuggingFaceBare,
            Naming::OpenAi,
        ];
        all.into_iter().find(|naming| {
            let fits = (*naming == Naming::CTranslate2) == (source.format() == Format::CTranslate2);
            let names = naming.names();
            fits && [
                &names.encoder_conv1_weight,
                &names.token_table,
                &names.decoder_positions,
            ]
            .iter()
            .all(|name| source.find(name).is_some())
        })
    }

    fn root(self) -> &'static str {
        if self == Naming::HuggingFace {
            "model."
        } else {
            ""
        }
    }

    /// Names outside the blocks.
    pub fn names(self) -> Names {
        let root = self.root();
        let (conv1, audio, tokens, text) = match self {
            Naming::CTranslate2 => (
                "encoder/conv1/weight",
                "encoder/position_encodings/encodings",
                "decoder/embeddings/weight",
                "decoder/position_encodings/encodings",
            ),
            Naming::OpenAi => (
                "encoder.conv1.weight",
                "encoder.positional_embedding",
                "decoder.token_embedding.weight",
                "decoder.positional_embedding",
            ),
            Naming::HuggingFace | Naming::HuggingFaceBare => (
                "encoder.conv1.weight",
                "encoder.embed_positions.weight",
                "decoder.embed_tokens.weight",
                "decoder.embed_positions.weight",
            ),
        };
        let full = |name: &str| format!("{root}{name}");
        Names {
            encoder_conv1_weight: full(conv1),
            encoder_positions: full(audio),
            token_table: full(tokens),
            decoder_positions: full(text),
        }
    }

    fn block(self, side: &str, i: usize) -> String {
        match self {
            Naming::CTranslate2 => format!("{side}/layer_{i}"),
            Naming::OpenAi => format!("{side}.blocks.{i}"),
            Naming::HuggingFace | Naming::HuggingFaceBare => {
                format!("{}{side}.layers.{i}", self.root())
            }
        }
    }

    /// A tensor that every encoder block has.
    pub fn encoder_probe(self, i: usize) -> String {
        self.probe("encoder", i)
    }

    /// A tensor that every decoder block has.
    pub fn decoder_probe(self, i: usize) -> String {
        self.probe("decoder", i)
    }

    fn probe(self, side: &str, i: usize) -> String {
        let block = self.block(side, i);
        match self {
            Naming::CTranslate2 => format!("{block}/ffn/linear_0/weight"),
            Naming::OpenAi => format!("{block}.mlp.0.weight"),
            Naming::HuggingFace | Naming::HuggingFaceBare => format!("{block}.fc1.weight"),
        }
    }

    /// Loads the whole network.
    pub fn load(self, weights: &Weights, config: Config) -> Result<Net, LoadError> {
        let names = self.names();
        let w = weights;
        let (d, t) = (config.audio_width, config.text_width);
        let (side_a, side_t) = (
            format!("{}encoder", self.root()),
            format!("{}decoder", self.root()),
        );
        let final_norm = match self {
            Naming::OpenAi => ["ln_post", "ln"],
            _ => ["layer_norm"; 2],
        };
        let conv = |name: &str, inputs: usize| -> Result<Linear, LoadError> {
            let w = w.pp(&side_a).pp(name);
            Ok(Linear {
                weight: w.conv1d(d, inputs, 3, "weight")?,
                bias: Some(w.get(&[d], "bias")?),
            })
        };
        let encoder = Encoder {
            conv1: conv("conv1", config.mels)?,
            conv2: conv("conv2", d)?,
            positions: w.get_f32(&[config.audio_ctx, d], &names.encoder_positions)?,
            blocks: (0..config.audio_layers)
                .map(|i| {
                    self.encoder_block(&w.pp(self.block("encoder", i)), d, config.audio_hidden)
                })
                .collect::<Result<_, _>>()?,
            norm: self.norm(&w.pp(&side_a), final_norm[0], d)?,
        };
        let decoder = Decoder {
            tokens: w.get(&[config.vocab, t], &names.token_table)?,
            positions: w.get_f32(&[config.text_ctx, t], &names.decoder_positions)?,
            blocks: (0..config.text_layers)
                .map(|i| self.decoder_block(&w.pp(self.block("decoder", i)), t, config.text_hidden))
                .collect::<Result<_, _>>()?,
            norm: self.norm(&w.pp(&side_t), final_norm[1], t)?,
        };
        Ok(Net {
            config,
            encoder,
            decoder,
        })
    }

    fn norm(self, w: &Weights, name: &str, d: usize) -> Result<LayerNorm, LoadError> {
        let w = w.pp(name);
        let (gain, bias) = match self {
            Naming::CTranslate2 => ("gamma", "beta"),
            _ => ("weight", "bias"),
        };
        Ok(LayerNorm {
            gain: w.get(&[d], gain)?,
            bias: w.get(&[d], bias)?,
            eps: EPS,
        })
    }

    fn linear(
        self,
        w: &Weights,
        name: &str,
        inputs: usize,
        out: usize,
    ) -> Result<Linear, LoadError> {
        let w = w.pp(name);
        Ok(Linear {
            weight: w.get(&[out, inputs], "weight")?,
            bias: Some(w.get(&[out], "bias")?),
        })
    }

    /// Several projections of one input as one; keys have no bias.
    fn fused(self, w: &Weights, d: usize, parts: &[&str]) -> Result<Linear, LoadError> {
        let rows = parts.len() * d;
        let names: Vec<(String, String)> = parts
            .iter()
            .map(|part| (format!("{part}.weight"), format!("{part}.bias")))
            .collect();
        let matrices: Vec<_> = names
            .iter()
            .map(|(weight, _)| (Some(weight.as_str()), d))
            .collect();
        let biases: Vec<_> = names
            .iter()
            .map(|(_, bias)| (Some(bias.as_str()).filter(|bias| w.has(bias)), d))
            .collect();
        Ok(Linear {
            weight: w.rows(&[rows, d], &matrices)?,
            bias: Some(w.rows(&[rows], &biases)?),
        })
    }

    /// Norm, fused query-key-value and output of self-attention.
    fn self_attention(
        self,
        w: &Weights,
        d: usize,
    ) -> Result<(LayerNorm, Linear, Linear), LoadError> {
        Ok(match self {
            Naming::CTranslate2 => {
                let w = w.pp("self_attention");
                (
                    self.norm(&w, "layer_norm", d)?,
                    self.linear(&w, "linear_0", d, 3 * d)?,
                    self.linear(&w, "linear_1", d, d)?,
                )
            }
            Naming::OpenAi => (
                self.norm(w, "attn_ln", d)?,
                self.fused(&w.pp("attn"), d, &["query", "key", "value"])?,
                self.linear(w, "attn.out", d, d)?,
            ),
            Naming::HuggingFace | Naming::HuggingFaceBare => (
                self.norm(w, "self_attn_layer_norm", d)?,
                self.fused(&w.pp("self_attn"), d, &["q_proj", "k_proj", "v_proj"])?,
                self.linear(w, "self_attn.out_proj", d, d)?,
            ),
        })
    }

    /// Norm and both layers of the feed-forward part.
    fn mlp(
        self,
        w: &Weights,
        d: usize,
        hidden: usize,
    ) -> Result<(LayerNorm, Linear, Linear), LoadError> {
        let (w, norm, first, second) = match self {
            Naming::CTranslate2 => (w.pp("ffn"), "layer_norm", "linear_0", "linear_1"),
            Naming::OpenAi => (w.clone(), "mlp_ln", "mlp.0", "mlp.2"),
            Naming::HuggingFace | Naming::HuggingFaceBare => {
                (w.clone(), "final_layer_norm", "fc1", "fc2")
            }
        };
        Ok((
            self.norm(&w, norm, d)?,
            self.linear(&w, first, d, hidden)?,
            self.linear(&w, second, hidden, d)?,
        ))
    }

    fn encoder_block(
        self,
        w: &Weights,
        d: usize,
        hidden: usize,
    ) -> Result<EncoderBlock, LoadError> {
        let (attention_norm, qkv, attention_out) = self.self_attention(w, d)?;
        let (mlp_norm, mlp_in, mlp_out) = self.mlp(w, d, hidden)?;
        Ok(EncoderBlock {
            attention_norm,
            qkv,
            attention_out,
            mlp_norm,
            mlp_in,
            mlp_out,
        })
    }

    fn decoder_block(
        self,
        w: &Weights,
        d: usize,
        hidden: usize,
    ) -> Result<DecoderBlock, LoadError> {
        let (self_norm, self_qkv, self_out) = self.self_attention(w, d)?;
        let (cross_norm, cross_query, cross_kv, cross_out) = match self {
            Naming::CTranslate2 => {
                let w = w.pp("attention");
                (
                    self.norm(&w, "layer_norm", d)?,
                    self.linear(&w, "linear_0", d, d)?,
                    self.linear(&w, "linear_1", d, 2 * d)?,
                    self.linear(&w, "linear_2", d, d)?,
                )
            }
            Naming::OpenAi => (
                self.norm(w, "cross_attn_ln", d)?,
                self.linear(w, "cross_attn.query", d, d)?,
                self.fused(&w.pp("cross_attn"), d, &["key", "value"])?,
                self.linear(w, "cross_attn.out", d, d)?,
            ),
            Naming::HuggingFace | Naming::HuggingFaceBare => (
                self.norm(w, "encoder_attn_layer_norm", d)?,
                self.linear(w, "encoder_attn.q_proj", d, d)?,
                self.fused(&w.pp("encoder_attn"), d, &["k_proj", "v_proj"])?,
                self.linear(w, "encoder_attn.out_proj", d, d)?,
            ),
        };
        let (mlp_norm, mlp_in, mlp_out) = self.mlp(w, d, hidden)?;
        Ok(DecoderBlock {
            self_norm,
            self_qkv,
            self_out,
            cross_norm,
            cross_query,
            cross_kv,
            cross_out,
            mlp_norm,
            mlp_in,
            mlp_out,
        })
    }
}
