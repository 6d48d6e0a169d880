//! Opening the device that a model is to run on, and loading the model there.

use serde::{Deserialize, Serialize};

use super::{
    error::{Error, ErrorClass, Result},
    registry::LoadOptions,
    run::RunContext,
};
use crate::{
    backend::{
        Banner, Choices, DeviceInfo, DeviceSpec, FastPath, Inventory, Plan, Request, SelectError,
    },
    graph::{Device, DeviceOptions, GraphError},
    weights::{self, Policy, StoredType},
};

/// What a model runs on, and what was tried before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceReport {
    /// The device string, such as `hip:0`.
    pub device: String,
    /// The vendor's name of the hardware.
    pub name: String,
    /// Devices that were preferred and failed, each with its reason.
    pub fallbacks: Vec<String>,
    /// What the device is and how it computes; none before a device is opened.
    #[serde(default)]
    pub banner: Option<Banner>,
}

impl DeviceReport {
    /// An opened device, of which nothing more is known.
    pub fn of(device: &Device) -> DeviceReport {
        DeviceReport {
            device: device.name().to_owned(),
            name: device.description().to_owned(),
            ..DeviceReport::default()
        }
    }
}

impl LoadOptions {
    /// Opens the device that these options ask for and gives it to `load`. Under `auto` (or with
    /// `fallback_cpu`) a device on which opening or loading fails is followed by the next one,
    /// with a warning.
    ///
    /// # Errors
    /// A device string that makes no sense (`BadInput`), a device that is not there
    /// (`Unsupported`), and whatever `load` reports for an explicit device.
    pub fn on_device<T>(
        &self,
        context: &RunContext,
        mut load: impl FnMut(&Device) -> Result<T>,
    ) -> Result<(T, DeviceReport)> {
        let spec: DeviceSpec = self
            .device
            .parse()
            .map_err(|e| Error::bad_input(format!("{e}")))?;
        let flags = self.fast_paths.iter().map(String::as_str);
        let fast_paths =
            Choices::from_options(None, flags).map_err(|e| Error::bad_input(e.to_string()))?;
        let request = Request {
            spec,
            fallback_cpu: self.fallback_cpu,
        };
        let inventory = Inventory::for_request(&request);
        let plan = inventory
            .plan(&request)
            .map_err(|e| Error::unsupported(e.to_string()))?;
        let options = DeviceOptions {
            threads: self.thread_count(),
            strict: self.strict_device,
            fast_paths,
        };
        self.try_in_order(&plan, context, |info| {
            let device = Device::open(info, &options).map_err(Error::from)?;
            load(&device)
        })
    }

    /// The type of weights that was asked for, if any.
    ///
    /// # Errors
    /// A type that does not exist (`BadInput`).
    fn asked_policy(&self) -> Result<Option<Policy>> {
        let asked = self.weight_type.as_deref().map(str::parse);
        asked.transpose().map_err(Error::bad_input)
    }

    /// The type to keep a model's weights in: the one asked for, else the file's own.
    ///
    /// # Errors
    /// A type that does not exist (`BadInput`).
    pub fn policy(&self) -> Result<Policy> {
        Ok(self.asked_policy()?.unwrap_or(Policy::Native))
    }

    /// The type to keep a model's weights in: the one asked for, else the file's own, except where
    /// the device's fast paths say otherwise.
    ///
    /// # Errors
    /// A type that does not exist (`BadInput`).
    pub fn weight_policy(&self, device: &Device, source: &dyn weights::Source) -> Result<Policy> {
        if let Some(asked) = self.asked_policy()? {
            return Ok(asked);
        }
        let matrices = source.tensors().iter().filter(|t| t.shape.len() > 1);
        let stored: Vec<StoredType> = matrices.map(|t| t.dtype).collect();
        let single = !stored.is_empty()
            && stored.iter().all(|t| *t == StoredType::F32)
            && device.fast_path(FastPath::F16Weights);
        let expand = stored.iter().any(|t| t.is_quantized())
            && !device.fast_path(FastPath::QuantizedWeights);
        Ok(match single || expand {
            true => Policy::F16,
            false => Policy::Native,
        })
    }

    fn try_in_order<T>(
        &self,
        plan: &Plan,
        context: &RunContext,
        mut load: impl FnMut(&DeviceInfo) -> Result<T>,
    ) -> Result<(T, DeviceReport)> {
        let mut failure: Option<Error> = None;
        let opened = plan.open(|info| {
            load(info).inspect_err(|error| {
                failure.get_or_insert_with(|| error.clone());
            })
        });
        match opened {
            Ok(opened) => {
                let fallbacks: Vec<String> =
                    opened.fallbacks.iter().map(ToString::to_string).collect();
                for text in &fallbacks {
                    context.warn(format!("{text}; using {} instead", opened.device.spec()));
                }
                let report = DeviceReport {
                    device: opened.device.spec(),
                    name: opened.device.description.clone(),
                    fallbacks,
                    banner: Some(Banner::of(&opened.device)),
                };
                Ok((opened.value, report))
            }
            // The model's own failure says more than that its device did not open.
            Err(error) => Err(match (failure, &error) {
                (Some(failure), SelectError::Failed { .. }) => failure,
                (Some(failure), _) if !is_of_device(failure.class) => failure,
                _ => Error::unsupported(error.to_string()),
            }),
        }
    }
}

/// Whether another device could do better.
fn is_of_device(class: ErrorClass) -> bool {
    matches!(
        class,
        ErrorClass::OutOfMemory | ErrorClass::Unsupported | ErrorClass::Internal
    )
}

impl From<GraphError> for Error {
    fn from(error: GraphError) -> Self {
        let class = match error {
            GraphError::OutOfMemory { .. } => ErrorClass::OutOfMemory,
            GraphError::Cancelled => return Error::cancelled(),
            GraphError::MissingOp { .. } | GraphError::Device { .. } => ErrorClass::Unsupported,
            _ => ErrorClass::Internal,
        };
        Error::from_error(class, &error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(device: &str) -> LoadOptions {
        LoadOptions {
            device: device.into(),
            threads: Some(1),
            ..LoadOptions::default()
        }
    }

    #[test]
    fn the_cpu_opens_and_says_so() {
        let (name, report) = options("cpu")
            .on_device(&RunContext::new(), |device| Ok(device.name().to_owned()))
            .unwrap();
        assert_eq!(name, "CPU");
        assert_eq!(report.device, "cpu");
        assert!(report.fallbacks.is_empty());
        let banner = report.banner.unwrap().to_string();
        assert!(banner.starts_with("backend=CPU device=0"), "{banner}");
    }

    #[test]
    fn the_model_s_own_error_comes_through() {
        for device in ["cpu", "auto"] {
            let error = options(device)
                .on_device(&RunContext::new(), |_| {
                    Err::<(), _>(Error::model("no such tensor"))
                })
                .unwrap_err();
            assert_eq!(error, Error::model("no such tensor"), "{device}");
        }
    }

    #[test]
    fn nonsense_and_missing_devices_are_told_apart() {
        let run = |device: &str| {
            options(device)
                .on_device(&RunContext::new(), |_| Ok(()))
                .unwrap_err()
        };
        assert_eq!(run("gpu:banana").class, ErrorClass::BadInput);
        let missing = run("hip:9");
        assert_eq!(missing.class, ErrorClass::Unsupported);
        assert!(
            missing.message.contains("cpu"),
            "it lists what exists: {}",
            missing.message
        );
    }
}
