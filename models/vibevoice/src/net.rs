//! The boxes of the figure in the crate's documentation.

use audiocpp::{
    engine::Loaded,
    graph::{DeviceTensor, Tensor},
    nn::{CausalLm, Linear, RmsNorm},
    weights::{Loader, Policy, Source, Weights},
};

use crate::{
    LoadError,
    config::Config,
    head::Head,
    tokenizer::{Decoder, Encoder},
};

/// From a tokenizer's latents to the language model's embeddings.
#[derive(Debug, Clone)]
pub struct Connector {
    pub fc1: Linear,
    pub norm: RmsNorm,
    pub fc2: Linear,
}

impl Connector {
    /// Reads `fc1`, `norm` and `fc2`.
    pub fn load(weights: &Weights, inputs: usize, width: usize) -> Result<Connector, LoadError> {
        let linear = |name, inputs| -> Result<Linear, LoadError> {
            let part = weights.pp(name);
            Ok(Linear {
                weight: part.get(&[width, inputs], "weight")?,
                bias: Some(part.get_f32(&[width], "bias")?),
            })
        };
        Ok(Connector {
            fc1: linear("fc1", inputs)?,
            norm: RmsNorm::load(&weights.pp("norm"), width, 1e-6)?,
            fc2: linear("fc2", width)?,
        })
    }

    /// `[frames, latent]` -> `[frames, width]`.
    pub fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        self.fc2.forward(self.norm.forward(self.fc1.forward(x)))
    }
}

/// The types of the language model, the diffusion head and everything else under `policy`. What is
/// sensitive keeps more bits: the head, whose errors add up over the steps, has 8 at least, and the
/// tokenizers and connectors 16.
pub fn types(policy: Policy) -> [Policy; 3] {
    match policy {
        Policy::Q4K | Policy::Q8_0 => [policy, Policy::Q8_0, Policy::F16],
        other => [other; 3],
    }
}

/// How latents of the tokenizer and those of the diffusion head belong together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaling {
    /// Factor.
    pub scale: f32,
    /// Added before it.
    pub bias: f32,
}

impl Scaling {
    /// Reads `speech_scaling_factor` and `speech_bias_factor`.
    pub fn load(weights: &Weights) -> Result<Scaling, LoadError> {
        let scalar = |name| -> Result<f32, LoadError> {
            let value = weights.host(&[1], name)?;
            Ok(value.data.first().copied().unwrap_or(1.0))
        };
        Ok(Scaling {
            scale: scalar("speech_scaling_factor")?,
            bias: scalar("speech_bias_factor")?,
        })
    }

    /// The tokenizer's latents as the head and the connector know them.
    pub fn inward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        x.scale_add(self.scale, self.bias * self.scale)
    }

    /// The way back.
    pub fn outward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        x.scale_add(1.0 / self.scale, -self.bias)
    }
}

/// The whole network.
pub struct Net {
    pub config: Config,
    pub acoustic_encoder: Encoder,
    pub acoustic_decoder: Decoder,
    pub semantic_encoder: Encoder,
    pub acoustic_connector: Connector,
    pub semantic_connector: Connector,
    pub scaling: Scaling,
    pub lm: CausalLm,
    /// Of a model whose output projection is not its embeddings, `[vocab, width]`.
    pub lm_head: Option<DeviceTensor>,
    pub head: Head,
}

impl Net {
    /// Reads all parts from `source` (by the original names) into `loaded`, in [`types`] of `policy`.
    ///
    /// # Errors
    /// A tensor that is missing or has another shape; a device without room.
    pub fn load(
        source: &dyn Source,
        config: Config,
        loaded: &mut Loaded,
        policy: Policy,
    ) -> Result<Net, LoadError> {
        let loaders = types(policy).map(|p| Loader::new(source, loaded.device(), p));
        let [lm_part, head_part, plain_part] = loaders.each_ref().map(|l| l.root().pp("model"));
        let width = config.lm.width;
        let (acoustic, semantic) = (&config.acoustic, &config.semantic);
        let tokenizer = plain_part.pp("acoustic_tokenizer");
        let decoder = tokenizer.pp("decoder");
        let hears = plain_part.pp("semantic_tokenizer.encoder");
        let connector = |name, inputs| Connector::load(&plain_part.pp(name), inputs, width);
        let head_table = || {
            let table = loaders[0]
                .root()
                .table(&[config.lm.vocab, width], "lm_head.weight");
            table.map(Some)
        };
        let net = Net {
            acoustic_encoder: Encoder::load(&tokenizer.pp("encoder"), acoustic)?,
            acoustic_decoder: Decoder::load(&decoder, acoustic, &config.decoder_depths)?,
            semantic_encoder: Encoder::load(&hears, semantic)?,
            acoustic_connector: connector("acoustic_connector", acoustic.latent)?,
            semantic_connector: connector("semantic_connector", semantic.latent)?,
            scaling: Scaling::load(&plain_part)?,
            lm: CausalLm::load(&lm_part.pp("language_model"), config.lm, true)?,
            lm_head: if config.tied { None } else { head_table()? },
            head: Head::load(&head_part.pp("prediction_head"), &config.head)?,
            config,
        };
        for loader in loaders {
            loaded.finish(loader)?;
        }
        Ok(net)
    }

    /// The embedding of frames that were spoken, from their latents `[frames, latent]` as the head
    /// makes them and what the semantic encoder heard of them `[frames, latent]`: `[frames, width]`.
    pub fn spoken<'g>(&self, latents: Tensor<'g>, heard: Tensor<'g>) -> Tensor<'g> {
        self.acoustic_connector.forward(latents) + self.semantic_connector.forward(heard)
    }
}
