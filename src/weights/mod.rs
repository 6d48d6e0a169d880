//! Readers for the weight files in which open models are published.
//!
//! [`open`] takes a file or a model folder, looks at the content (never only at the name) and
//! gives a [`Source`]: names, shapes and types of the tensors, their bytes on demand from a
//! memory map, and the values that the file carries beside them. A [`Loader`] fetches weights
//! by name with the shape that the model expects, so that loading is the shape check.
//!
//! | format | read from |
//! |---|---|
//! | safetensors | one file, or the shards that `*.safetensors.index.json` lists |
//! | GGUF | versions 2 and 3, every type that ggml knows, split files |
//! | whisper.cpp | `ggml-*.bin`, also quantised |
//! | CTranslate2 | `model.bin`, binary versions 2 to 6 |
//! | ONNX | initialisers and `Constant` nodes, external data files; also the node list |
//! | torch | zip and older pickles, numpy arrays in pickles; no code is ever run |
//! | numpy | `.npy`, `.npz` |
//!
//! Shapes are in the reader's order, as PyTorch and numpy print them. No reader panics or
//! allocates by a size that a file merely declares.

mod archive;
mod computed;
mod container;
mod convert;
mod ct2;
mod cursor;
mod detect;
mod dtype;
mod error;
mod gguf;
mod gguf_write;
mod host;
mod loader;
mod map;
mod numpy;
pub mod onnx;
mod policy;
mod safetensors;
pub mod torch;
mod upload;
mod value;
mod whisper_cpp;

pub use computed::Computed;
pub use container::Container;
pub use convert::{ConvertFault, convert, to_f32};
pub use detect::{open, open_bytes};
pub use dtype::{StoredType, element_count};
pub use error::{Error, Result};
pub use gguf_write::write_gguf;
pub use host::HostTensor;
pub use loader::{LoadError, Loader, Weights};
pub use policy::{LEAST_QUANTIZED, Policy};
pub use value::Value;

use std::{borrow::Cow, fmt, path::Path};

/// A published weight format.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Safetensors,
    Gguf,
    WhisperCpp,
    CTranslate2,
    Onnx,
    Torch,
    Numpy,
}

impl Format {
    /// Every format, in the order in which messages list them.
    pub const ALL: [Format; 7] = [
        Format::Safetensors,
        Format::Gguf,
        Format::WhisperCpp,
        Format::CTranslate2,
        Format::Onnx,
        Format::Torch,
        Format::Numpy,
    ];
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Safetensors => "safetensors",
            Format::Gguf => "GGUF",
            Format::WhisperCpp => "whisper.cpp",
            Format::CTranslate2 => "CTranslate2",
            Format::Onnx => "ONNX",
            Format::Torch => "torch",
            Format::Numpy => "numpy",
        })
    }
}

/// Name, type and shape (reader's order) of a stored tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Full name in the file; for nested torch dictionaries the keys joined by dots.
    pub name: String,
    /// Type of the elements in the file.
    pub dtype: StoredType,
    /// Dimensions, outermost first; empty for a scalar.
    pub shape: Vec<usize>,
}

/// An opened weight container.
pub trait Source: Send + Sync {
    /// The file or folder it was opened from.
    fn path(&self) -> &Path;

    /// The format that its content has.
    fn format(&self) -> Format;

    /// All tensors, in file order.
    fn tensors(&self) -> &[TensorInfo];

    /// The tensor called `name`, also by an alias that the file defines.
    fn find(&self, name: &str) -> Option<&TensorInfo>;

    /// Extents of the tensor called `name`.
    fn shape(&self, name: &str) -> Option<&[usize]> {
        self.find(name).map(|info| &info.shape[..])
    }

    /// Row-major little-endian bytes of a tensor that this source listed; borrowed from the
    /// memory map unless the file's layout forces a copy.
    fn bytes(&self, info: &TensorInfo) -> Result<Cow<'_, [u8]>>;

    /// Values that the file carries beside its tensors; a map, empty if there are none.
    fn metadata(&self) -> &Value;

    /// The node list, where the file is an ONNX graph.
    fn onnx(&self) -> Option<&onnx::Graph> {
        None
    }

    /// What `name` is when the model wants it with shape `wanted`: [`Source::find`], except in
    /// sources that make their tensors up.
    fn resolve(&self, name: &str, _wanted: &[usize]) -> Option<Cow<'_, TensorInfo>> {
        self.find(name).map(Cow::Borrowed)
    }
}

/// The error for a tensor that is not in `source`, with the three nearest names.
pub(crate) fn missing(source: &dyn Source, name: &str, wanted: &[usize]) -> Error {
    let mut scored: Vec<_> = source
        .tensors()
        .iter()
        .map(|t| (strsim::normalized_levenshtein(name, &t.name), t))
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    Error::Missing {
        path: source.path().to_owned(),
        name: name.to_owned(),
        wanted: wanted.to_vec(),
        nearest: scored
            .into_iter()
            .take(3)
            .map(|(_, t)| (t.name.clone(), t.shape.clone()))
            .collect(),
    }
}
