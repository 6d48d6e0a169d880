//! Weights that a function makes up, for tests of whole models without a checkpoint.

use super::{Format, Result, Source, StoredType, TensorInfo, Value};
use std::{borrow::Cow, path::Path};

/// A [`Source`] that has every tensor in every shape: f32 values from a function of name and
/// shape. It lists no tensors.
pub struct Computed<F> {
    fill: F,
    metadata: Value,
}

impl<F: Fn(&str, &[usize]) -> Vec<f32> + Send + Sync> Computed<F> {
    /// `fill(name, shape)` must give as many values as `shape` holds.
    pub fn new(fill: F) -> Self {
        Computed {
            fill,
            metadata: Value::map(),
        }
    }
}

impl<F: Fn(&str, &[usize]) -> Vec<f32> + Send + Sync> Source for Computed<F> {
    fn path(&self) -> &Path {
        Path::new("computed weights")
    }
    fn format(&self) -> Format {
        Format::Safetensors
    }
    fn tensors(&self) -> &[TensorInfo] {
        &[]
    }
    fn find(&self, _name: &str) -> Option<&TensorInfo> {
        None
    }
    fn bytes(&self, info: &TensorInfo) -> Result<Cow<'_, [u8]>> {
        let values = (self.fill)(&info.name, &info.shape);
        Ok(Cow::Owned(bytemuck::cast_slice(&values).to_vec()))
    }
    fn metadata(&self) -> &Value {
        &self.metadata
    }
    fn resolve(&self, name: &str, wanted: &[usize]) -> Option<Cow<'_, TensorInfo>> {
        Some(Cow::Owned(TensorInfo {
            name: name.to_owned(),
            dtype: StoredType::F32,
            shape: wanted.to_vec(),
        }))
    }
}
