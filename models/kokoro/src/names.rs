//! Which tensor is which: checkpoints of the original code and ONNX exports with weights in 8 bits,
//! both seen under the original names.

use std::{borrow::Cow, collections::HashMap, path::Path};

use audiocpp::weights::{Format, Result, Source, StoredType, TensorInfo, Value, onnx::Graph};

use crate::onnx::{Recipe, recipes};

/// A weight file seen under the names of the original code (`bert`, `bert_encoder`, `predictor`,
/// `decoder`, `text_encoder`).
pub struct Named {
    source: Box<dyn Source>,
    tensors: Vec<TensorInfo>,
    index: HashMap<String, (usize, Recipe)>,
}

impl Named {
    /// Finds out the names of `source`.
    pub fn new(source: Box<dyn Source>) -> Named {
        let found: Vec<(TensorInfo, Recipe)> = match source.onnx() {
            Some(graph) => recipes(&*source, graph),
            None => source.tensors().iter().map(renamed).collect(),
        };
        let mut tensors = Vec::with_capacity(found.len());
        let mut index = HashMap::new();
        for (info, recipe) in found {
            index.insert(info.name.clone(), (tensors.len(), recipe));
            tensors.push(info);
        }
        Named {
            source,
            tensors,
            index,
        }
    }
}

/// Checkpoints are dictionaries of state dictionaries, whose keys a wrapper for several devices
/// began with `module.`.
fn renamed(info: &TensorInfo) -> (TensorInfo, Recipe) {
    let name = info.name.replacen(".module.", ".", 1);
    let seen = TensorInfo {
        name,
        ..info.clone()
    };
    (seen, Recipe::Stored(info.name.clone()))
}

impl Source for Named {
    fn path(&self) -> &Path {
        self.source.path()
    }
    fn format(&self) -> Format {
        self.source.format()
    }
    fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }
    fn find(&self, name: &str) -> Option<&TensorInfo> {
        self.index.get(name).map(|(at, _)| &self.tensors[*at])
    }
    fn bytes(&self, info: &TensorInfo) -> Result<Cow<'_, [u8]>> {
        let stored = |name: &str| {
            let stored = self.source.find(name);
            stored.map_or(Ok(Cow::Borrowed(&[][..])), |stored| {
                self.source.bytes(stored)
            })
        };
        match self.index.get(&info.name) {
            Some((_, Recipe::Stored(name))) => stored(name),
            Some((at, recipe)) => {
                let values = recipe.values(&*self.source, &self.tensors[*at].shape)?;
                let mut bytes = Vec::with_capacity(4 * values.len());
                for x in values {
                    bytes.extend_from_slice(&x.to_le_bytes());
                }
                Ok(Cow::Owned(bytes))
            }
            None => self.source.bytes(info),
        }
    }
    fn metadata(&self) -> &Value {
        self.source.metadata()
    }
    fn onnx(&self) -> Option<&Graph> {
        self.source.onnx()
    }
}

/// A tensor's type and shape under another name.
pub(crate) fn info(name: String, shape: &[usize]) -> TensorInfo {
    TensorInfo {
        name,
        dtype: StoredType::F32,
        shape: shape.to_vec(),
    }
}
