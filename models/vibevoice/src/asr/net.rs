//! The boxes of the figure.

use audiocpp::{
    engine::Loaded,
    graph::{DeviceTensor, Tensor},
    nn::CausalLm,
    weights::{Loader, Policy, Source},
};

use crate::{
    LoadError,
    config::AsrConfig,
    layers::Past,
    net::{Connector, types},
    tokenizer::Encoder,
};

/// The whole network.
pub struct AsrNet {
    pub config: AsrConfig,
    pub acoustic_encoder: Encoder,
    pub semantic_encoder: Encoder,
    pub acoustic_connector: Connector,
    pub semantic_connector: Connector,
    pub lm: CausalLm,
    /// `[vocab, width]`; the embeddings where a model has none.
    pub lm_head: Option<DeviceTensor>,
}

impl AsrNet {
    /// Reads all parts from `source` (by the original names) into `loaded`, in [`types`] of `policy`.
    pub fn load(
        source: &dyn Source,
        config: AsrConfig,
        loaded: &mut Loaded,
        policy: Policy,
    ) -> Result<AsrNet, LoadError> {
        let [language, _, plain] = types(policy);
        let loaders = [language, plain].map(|p| Loader::new(source, loaded.device(), p));
        let [lm_part, plain_part] = loaders.each_ref().map(|l| l.root().pp("model"));
        let encoder = |name: &str, size| Encoder::load(&plain_part.pp(name).pp("encoder"), size);
        let connector =
            |name, inputs| Connector::load(&plain_part.pp(name), inputs, config.lm.width);
        let shape = [config.lm.vocab, config.lm.width];
        let head = match config.tied {
            true => None,
            false => Some(loaders[0].root().get(&shape, "lm_head.weight")?),
        };
        let net = AsrNet {
            acoustic_encoder: encoder("acoustic_tokenizer", &config.acoustic)?,
            semantic_encoder: encoder("semantic_tokenizer", &config.semantic)?,
            acoustic_connector: connector("acoustic_connector", config.acoustic.latent)?,
            semantic_connector: connector("semantic_connector", config.semantic.latent)?,
            lm: CausalLm::load(&lm_part.pp("language_model"), config.lm, true)?,
            lm_head: head,
            config,
        };
        for loader in loaders {
            loaded.finish(loader)?;
        }
        Ok(net)
    }

    /// Samples `[1, frames * hop, 1]` and noise of the acoustic latents `[1, frames, latent]` ->
    /// embeddings `[frames, width]`.
    pub fn listen<'g>(
        &self,
        samples: Tensor<'g>,
        noise: Tensor<'g>,
        [acoustic, semantic]: [Past; 2],
    ) -> Tensor<'g> {
        let [_, frames, latent] = noise.dims();
        let said = self.acoustic_encoder.forward(samples, acoustic) + noise;
        let meant = self.semantic_encoder.forward(samples, semantic);
        let meant = meant.reshape(&[frames, self.config.semantic.latent]);
        let said = said.reshape(&[frames, latent]);
        self.acoustic_connector.forward(said) + self.semantic_connector.forward(meant)
    }

    /// Hidden states `[n, width]` -> scores of every token `[n, vocab]`.
    pub fn scores<'g>(&self, hidden: Tensor<'g>) -> Tensor<'g> {
        match self.lm_head.as_ref().or(self.lm.embeddings.as_ref()) {
            Some(head) => hidden.linear(head, None),
            None => hidden,
        }
    }
}
