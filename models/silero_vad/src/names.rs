//! Which tensor is which: every published file under the names of the original code.
//!
//! | file | prefix |
//! |---|---|
//! | `silero_vad.onnx`, branches of an `If` | `If_0_then_branch__Inline_0__`, `.._else_..` |
//! | `silero_vad_op18_ifless.onnx` | `model.`, `model_8k.` |
//! | `silero_vad_16k_op15.onnx` | `model.` |
//! | `silero_vad_half.onnx` | none |
//! | `silero_vad_16k.safetensors` | none, and names of its own |

use std::{borrow::Cow, path::Path, sync::Arc};

use audiocpp::weights::{Format, Result, Source, TensorInfo, Value};

/// The tensor that every network has, and that tells its rate by its shape.
pub const STFT: &str = "stft.forward_basis_buffer";

/// Original name, and the name in safetensors files.
const SHORT: [(&str, &str); 15] = [
    (STFT, "stft_conv.weight"),
    ("encoder.0.reparam_conv.weight", "conv1.weight"),
    ("encoder.0.reparam_conv.bias", "conv1.bias"),
    ("encoder.1.reparam_conv.weight", "conv2.weight"),
    ("encoder.1.reparam_conv.bias", "conv2.bias"),
    ("encoder.2.reparam_conv.weight", "conv3.weight"),
    ("encoder.2.reparam_conv.bias", "conv3.bias"),
    ("encoder.3.reparam_conv.weight", "conv4.weight"),
    ("encoder.3.reparam_conv.bias", "conv4.bias"),
    ("decoder.rnn.weight_ih", "lstm_cell.weight_ih"),
    ("decoder.rnn.weight_hh", "lstm_cell.weight_hh"),
    ("decoder.rnn.bias_ih", "lstm_cell.bias_ih"),
    ("decoder.rnn.bias_hh", "lstm_cell.bias_hh"),
    ("decoder.decoder.2.weight", "final_conv.weight"),
    ("decoder.decoder.2.bias", "final_conv.bias"),
];

/// One network of a file, seen under the original names.
pub struct Named {
    source: Arc<dyn Source>,
    naming: Naming,
}

enum Naming {
    Prefix(String),
    Short,
}

impl Named {
    /// Every network in `source`.
    pub fn all(source: Arc<dyn Source>) -> Vec<Named> {
        let naming = |info: &TensorInfo| match info.name.strip_suffix(STFT) {
            Some(prefix) => Some(Naming::Prefix(prefix.to_owned())),
            None => (info.name == SHORT[0].1).then_some(Naming::Short),
        };
        let found: Vec<Naming> = source.tensors().iter().filter_map(naming).collect();
        let named = |naming| Named {
            source: source.clone(),
            naming,
        };
        found.into_iter().map(named).collect()
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
        match &self.naming {
            Naming::Prefix(prefix) => self.source.find(&format!("{prefix}{name}")),
            Naming::Short => {
                let short = SHORT.iter().find(|(original, _)| *original == name)?;
                self.source.find(short.1)
            }
        }
    }
    fn bytes(&self, info: &TensorInfo) -> Result<Cow<'_, [u8]>> {
        self.source.bytes(info)
    }
    fn metadata(&self) -> &Value {
        self.source.metadata()
    }
}
