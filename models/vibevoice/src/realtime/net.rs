//! The boxes of the figure.

use audiocpp::{
    engine::Loaded,
    graph::{DeviceTensor, Tensor},
    nn::{CausalLm, Linear},
    weights::{Loader, Policy, Source},
};

use crate::{
    LoadError,
    config::RealtimeConfig,
    head::Head,
    net::{Connector, Scaling, types},
    tokenizer::Decoder,
};

/// What a position of the upper language model holds: row of the table of types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Speech = 0,
    Text = 1,
}

/// The whole network.
pub struct RealtimeNet {
    pub config: RealtimeConfig,
    pub lower: CausalLm,
    pub upper: CausalLm,
    /// `[2, width]`.
    pub types: DeviceTensor,
    pub connector: Connector,
    pub head: Head,
    pub scaling: Scaling,
    pub decoder: Decoder,
    pub ends: [Linear; 2],
}

impl RealtimeNet {
    /// Reads all parts from `source` into `loaded`, in [`types`] of `policy`.
    pub fn load(
        source: &dyn Source,
        config: RealtimeConfig,
        loaded: &mut Loaded,
        policy: Policy,
    ) -> Result<RealtimeNet, LoadError> {
        let loaders = types(policy).map(|p| Loader::new(source, loaded.device(), p));
        let [lm_part, head_part, plain_part] = loaders.each_ref().map(|l| l.root().pp("model"));
        let width = config.upper.width;
        let decoder = plain_part.pp("acoustic_tokenizer.decoder");
        let connector = plain_part.pp("acoustic_connector");
        let ends = |name, out| -> Result<Linear, LoadError> {
            let part = loaders[2].root().pp("tts_eos_classifier").pp(name);
            Ok(Linear {
                weight: part.get(&[out, width], "weight")?,
                bias: Some(part.get_f32(&[out], "bias")?),
            })
        };
        let net = RealtimeNet {
            lower: CausalLm::load(&lm_part.pp("language_model"), config.lower, true)?,
            upper: CausalLm::load(&lm_part.pp("tts_language_model"), config.upper, false)?,
            types: plain_part.get_f32(&[2, width], "tts_input_types.weight")?,
            connector: Connector::load(&connector, config.acoustic.latent, width)?,
            head: Head::load(&head_part.pp("prediction_head"), &config.head)?,
            scaling: Scaling::load(&plain_part)?,
            decoder: Decoder::load(&decoder, &config.acoustic, &config.decoder_depths)?,
            ends: [ends("fc1", width)?, ends("fc2", 1)?],
            config,
        };
        for loader in loaders {
            loaded.finish(loader)?;
        }
        Ok(net)
    }

    /// x `[n, width]` as the upper language model is given it.
    pub fn typed<'g>(&self, x: Tensor<'g>, kind: Kind) -> Tensor<'g> {
        x + x.scope().stored(&self.types).slice(0, kind as usize, 1)
    }

    /// How much a hidden state `[1, width]` looks like the end: a logit `[1, 1]`.
    pub fn ending<'g>(&self, hidden: Tensor<'g>) -> Tensor<'g> {
        let [first, second] = &self.ends;
        second.forward(first.forward(hidden).relu())
    }
}
