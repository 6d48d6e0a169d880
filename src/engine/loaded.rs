//! What every loaded model holds beside its network, and the way from options to a model.

use std::path::Path;

use super::{
    Options, Session, Task,
    check::Stage,
    device::DeviceReport,
    error::Result,
    registry::{LoadOptions, Model, ModelInfo},
    run::RunContext,
    speech::VoiceInfo,
};
use crate::{
    graph::{Buffer, Device},
    weights::{LoadError, Loader},
};

/// A model's weights, where they lie, and what the model is called.
pub struct Loaded {
    device: Device,
    buffers: Vec<Buffer>,
    parameters: u64,
    variant: String,
}

impl Loaded {
    /// Nothing yet, for the package at `path` on `device`.
    pub fn new(path: &Path, device: &Device) -> Loaded {
        Loaded {
            device: device.clone(),
            buffers: Vec::new(),
            parameters: 0,
            variant: ModelInfo::variant_of(path),
        }
    }

    /// Allocates and fills what was fetched through `loader`, and keeps it.
    ///
    /// # Errors
    /// As [`Loader::finish`].
    pub fn finish(&mut self, loader: Loader) -> std::result::Result<(), LoadError> {
        self.parameters += loader.parameters();
        self.buffers.push(loader.finish()?);
        Ok(())
    }

    /// Counts parameters that lie in no buffer.
    pub fn count(&mut self, parameters: u64) {
        self.parameters += parameters;
    }

    /// Where the weights lie.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What the package is called.
    pub fn variant(&self) -> &str {
        &self.variant
    }

    /// Describes the model: `languages` as ISO 639 codes, `rate` in samples per second.
    pub fn info(&self, family: &str, languages: &[&str], rate: u32) -> ModelInfo {
        ModelInfo {
            family: family.to_owned(),
            variant: self.variant.clone(),
            languages: languages.iter().copied().map(str::to_owned).collect(),
            sample_rate: rate,
            parameters: self.parameters,
            device: DeviceReport::of(&self.device),
            weight_bytes: self.buffers.iter().map(|b| b.bytes() as u64).sum(),
        }
    }
}

impl LoadOptions {
    /// Loads a model on the device that these options ask for, as [`on_device`](Self::on_device)
    /// finds it; the model's description says how it was found.
    ///
    /// # Errors
    /// As [`on_device`](Self::on_device).
    pub fn load<M: Model + 'static>(
        &self,
        context: &RunContext,
        load: impl FnMut(&Device) -> Result<M>,
    ) -> Result<Box<dyn Model>> {
        let (model, report) = self.on_device(context, load)?;
        Ok(Box::new(Placed { model, report }))
    }
}

/// A model, and how its device was found.
struct Placed<M> {
    model: M,
    report: DeviceReport,
}

impl<M: Model> Model for Placed<M> {
    fn info(&self) -> ModelInfo {
        ModelInfo {
            device: self.report.clone(),
            ..self.model.info()
        }
    }

    fn session(&self, task: Task, options: &Options) -> Result<Session> {
        self.model.session(task, options)
    }

    fn voices(&self) -> Vec<VoiceInfo> {
        self.model.voices()
    }

    fn stages(&self) -> Result<Vec<Stage>> {
        self.model.stages()
    }
}
