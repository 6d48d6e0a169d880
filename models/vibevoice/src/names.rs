//! Which tensor is which: the network asks by the names of the original releases; those of the `-hf`
//! releases are found by one map.

use std::{borrow::Cow, path::Path};

use audiocpp::weights::{Format, Result, Source, TensorInfo, Value};

/// The names that a checkpoint has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// The original ones.
    Original,
    /// Those of the `-hf` releases of the models that speak.
    Hf,
    /// Those of the `-hf` release of the model that listens.
    HfAsr,
}

/// A weight file seen under the original names.
pub struct Named {
    source: Box<dyn Source>,
    naming: Naming,
}

impl Named {
    /// A file with the names `naming`.
    pub fn new(source: Box<dyn Source>, naming: Naming) -> Named {
        Named { source, naming }
    }

    fn stored(&self, name: &str) -> String {
        match self.naming {
            Naming::Original => name.to_owned(),
            Naming::Hf => hf_name(name, &PARTS),
            Naming::HfAsr => hf_name(name, &ASR_PARTS),
        }
    }
}

impl Source for Named {
    fn path(&self) -> &Path {
        self.source.path()
    }
    fn format(&self) -> Format {
        self.source.format()
    }
    fn tensors(&self) -> &[TensorInfo] {
        self.source.tensors()
    }
    fn find(&self, name: &str) -> Option<&TensorInfo> {
        self.source.find(&self.stored(name))
    }
    fn resolve(&self, name: &str, wanted: &[usize]) -> Option<Cow<'_, TensorInfo>> {
        self.source.resolve(&self.stored(name), wanted)
    }
    fn bytes(&self, info: &TensorInfo) -> Result<Cow<'_, [u8]>> {
        self.source.bytes(info)
    }
    fn metadata(&self) -> &Value {
        self.source.metadata()
    }
}

/// Parts whose names differ, as original and port.
const PARTS: [(&str, &str); 16] = [
    ("model.speech_scaling_factor", "model.latent_scaling_factor"),
    ("model.speech_bias_factor", "model.latent_bias_factor"),
    ("acoustic_connector.fc1", "multi_modal_projector.linear_1"),
    ("acoustic_connector.norm", "multi_modal_projector.act"),
    ("acoustic_connector.fc2", "multi_modal_projector.linear_2"),
    ("semantic_connector.fc1", "semantic_connector.linear_1"),
    ("semantic_connector.norm", "semantic_connector.act"),
    ("semantic_connector.fc2", "semantic_connector.linear_2"),
    ("final_layer.adaLN_modulation.1", "final_layer.linear_1"),
    ("final_layer.linear.", "final_layer.linear_2."),
    ("adaLN_modulation.1", "linear"),
    ("t_embedder.mlp.0", "timestep_proj.fc1"),
    ("t_embedder.mlp.2", "timestep_proj.fc2"),
    ("prediction_head", "diffusion_head"),
    ("semantic_tokenizer.encoder", "semantic_tokenizer_encoder"),
    ("acoustic_tokenizer", "audio_tower"),
];

const ASR_PARTS: [(&str, &str); 8] = [
    (
        "acoustic_connector.fc1",
        "multi_modal_projector.acoustic_linear_1",
    ),
    (
        "acoustic_connector.norm",
        "multi_modal_projector.acoustic_norm",
    ),
    (
        "acoustic_connector.fc2",
        "multi_modal_projector.acoustic_linear_2",
    ),
    (
        "semantic_connector.fc1",
        "multi_modal_projector.semantic_linear_1",
    ),
    (
        "semantic_connector.norm",
        "multi_modal_projector.semantic_norm",
    ),
    (
        "semantic_connector.fc2",
        "multi_modal_projector.semantic_linear_2",
    ),
    ("acoustic_tokenizer.encoder", "acoustic_tokenizer_encoder"),
    ("semantic_tokenizer.encoder", "semantic_tokenizer_encoder"),
];

/// The name in a `-hf` release, whose parts are renamed by `parts`, of the tensor that the original
/// calls `name`.
fn hf_name(name: &str, parts: &[(&str, &str)]) -> String {
    let mut name = name.to_owned();
    for (original, port) in parts {
        name = name.replacen(original, port, 1);
    }
    if name.contains("_tokenizer_encoder.") || name.contains("audio_tower.") {
        name = tokenizer_name(&name);
    }
    name
}

/// Stage 0 and the convolution before it are the stem, and stages count from there; kernels lie
/// less deep.
fn tokenizer_name(name: &str) -> String {
    let parts: Vec<&str> = name.split('.').collect();
    let layer = |number: &str, rest: &[&str]| {
        let stage = number.parse::<usize>().unwrap_or(0);
        let layer = match stage {
            0 => "stem".to_owned(),
            n => format!("conv_layers.{}", n - 1),
        };
        format!("{layer}.{}", rest.join("."))
    };
    let at = |what: &str| parts.iter().position(|part| *part == what);
    let (from, tail) = if let Some(i) = at("downsample_layers").or(at("upsample_layers")) {
        // downsample_layers.N.0.conv.conv.weight
        (i, layer(parts[i + 1], &parts[i + 3..]))
    } else if let Some(i) = at("stages") {
        // stages.N.M.mixer.conv.conv.conv.weight
        let block = parts[i + 2..]
            .join(".")
            .replace("mixer.conv.conv.conv", "mixer.conv");
        (i, layer(parts[i + 1], &["stage", &block]))
    } else if let Some(i) = at("head") {
        (
            i,
            parts[i..].join(".").replace("head.conv.conv", "head.conv"),
        )
    } else {
        return name.to_owned();
    };
    format!("{}.{tail}", parts[..from].join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn original_names_lead_to_those_of_the_port() {
        for (original, port) in [
            (
                "model.language_model.norm.weight",
                "model.language_model.norm.weight",
            ),
            (
                "model.semantic_connector.norm.weight",
                "model.semantic_connector.act.weight",
            ),
            (
                "model.prediction_head.layers.3.adaLN_modulation.1.weight",
                "model.diffusion_head.layers.3.linear.weight",
            ),
            (
                "model.prediction_head.final_layer.adaLN_modulation.1.weight",
                "model.diffusion_head.final_layer.linear_1.weight",
            ),
            (
                "model.prediction_head.final_layer.linear.weight",
                "model.diffusion_head.final_layer.linear_2.weight",
            ),
            (
                "model.acoustic_tokenizer.decoder.upsample_layers.0.0.conv.conv.bias",
                "model.audio_tower.decoder.stem.conv.conv.bias",
            ),
            (
                "model.acoustic_tokenizer.decoder.upsample_layers.2.0.convtr.convtr.weight",
                "model.audio_tower.decoder.conv_layers.1.convtr.convtr.weight",
            ),
            (
                "model.semantic_tokenizer.encoder.stages.0.1.mixer.conv.conv.conv.weight",
                "model.semantic_tokenizer_encoder.stem.stage.1.mixer.conv.weight",
            ),
            (
                "model.semantic_tokenizer.encoder.stages.6.7.ffn.linear1.weight",
                "model.semantic_tokenizer_encoder.conv_layers.5.stage.7.ffn.linear1.weight",
            ),
            (
                "model.acoustic_tokenizer.encoder.head.conv.conv.weight",
                "model.audio_tower.encoder.head.conv.weight",
            ),
        ] {
            assert_eq!(hf_name(original, &PARTS), port);
        }
        let original = "model.acoustic_tokenizer.encoder.stages.2.0.ffn.linear1.weight";
        let port = "model.acoustic_tokenizer_encoder.conv_layers.1.stage.0.ffn.linear1.weight";
        assert_eq!(hf_name(original, &ASR_PARTS), port);
        let port = "model.multi_modal_projector.semantic_norm.weight";
        let original = "model.semantic_connector.norm.weight";
        assert_eq!(hf_name(original, &ASR_PARTS), port);
    }
}
