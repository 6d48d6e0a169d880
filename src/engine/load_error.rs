//! Why a model could not be loaded, for families that have no reasons of their own.

use std::path::{Path, PathBuf};

use super::{Error, ErrorClass};
use crate::{graph::GraphError, weights};

/// Why a model could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The weights, or the device that should hold them.
    #[error(transparent)]
    Weights(#[from] weights::LoadError),
    /// Files that make no model: settings beside the weights, or weights of another network.
    #[error("{}: {problem}", path.display())]
    Package {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

impl LoadError {
    /// What is wrong with the file or folder at `path`.
    pub fn package(path: &Path, problem: impl Into<String>) -> LoadError {
        LoadError::Package {
            path: path.to_owned(),
            problem: problem.into(),
        }
    }
}

impl From<weights::Error> for LoadError {
    fn from(error: weights::Error) -> Self {
        LoadError::Weights(error.into())
    }
}

impl From<GraphError> for LoadError {
    fn from(error: GraphError) -> Self {
        LoadError::Weights(error.into())
    }
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Weights(weights::LoadError::Device(e)) => e.into(),
            other => Error::from_error(ErrorClass::Model, &other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_room_is_no_damaged_model() {
        let full = || GraphError::OutOfMemory {
            device: "CUDA0".into(),
            what: "the weights".into(),
            mib: 4,
        };
        let through_weights = LoadError::Weights(weights::LoadError::Device(full()));
        for error in [LoadError::from(full()), through_weights] {
            assert_eq!(Error::from(error).class, Error::from(full()).class);
        }
        let error = Error::from(LoadError::package(Path::new("a/b.onnx"), "no network"));
        assert_eq!(error.class, ErrorClass::Model);
        assert_eq!(error.message, "a/b.onnx: no network");
    }
}
