//! The kinds of backend, and the one table that ties each to what ggml and users call it.
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// A kind of compute backend.
///
/// `Best` is a request, never the kind of an opened device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendType {
    /// The host processor.
    Cpu,
    /// NVIDIA GPUs (and Moore Threads, which share ggml's code).
    Cuda,
    /// AMD GPUs through ROCm/HIP.
    Hip,
    /// Any GPU with a Vulkan driver.
    Vulkan,
    /// Apple GPUs.
    Metal,
    /// Whatever ranks first on this machine.
    Best,
}

/// One row of the table of names.
#[derive(Debug)]
pub struct Names {
    /// The kind this row is about.
    pub kind: BackendType,
    /// What the user types and what output prints.
    pub name: &'static str,
    /// Other spellings that mean the same.
    pub aliases: &'static [&'static str],
    /// Names of the ggml registries that belong to this kind. ggml's HIP build shares the CUDA
    /// sources, so this name, read at run time, is what tells the two apart.
    pub registries: &'static [&'static str],
    /// Plugin names `NAME` in `libggml-NAME.so`, in the order to try.
    pub plugins: &'static [&'static str],
}

/// Names of every kind that a device can have.
pub static NAMES: [Names; 5] = [
    Names {
        kind: BackendType::Cpu,
        name: "cpu",
        aliases: &[],
        registries: &["CPU"],
        plugins: &["cpu"],
    },
    Names {
        kind: BackendType::Cuda,
        name: "cuda",
        aliases: &[],
        registries: &["CUDA", "MUSA"],
        plugins: &["cuda", "musa"],
    },
    Names {
        kind: BackendType::Hip,
        name: "hip",
        aliases: &["rocm"],
        registries: &["ROCm"],
        plugins: &["hip"],
    },
    Names {
        kind: BackendType::Vulkan,
        name: "vulkan",
        aliases: &[],
        registries: &["Vulkan"],
        plugins: &["vulkan"],
    },
    Names {
        kind: BackendType::Metal,
        name: "metal",
        aliases: &[],
        registries: &["Metal", "MTL"],
        plugins: &["metal"],
    },
];

impl BackendType {
    /// Every kind that a device can have, CPU first.
    pub fn all() -> impl Iterator<Item = BackendType> {
        NAMES.iter().map(|row| row.kind)
    }

    /// The row of the table for this kind; none for `Best`.
    pub fn names(self) -> Option<&'static Names> {
        NAMES.iter().find(|row| row.kind == self)
    }

    /// The lower-case name that options and output use.
    pub fn name(self) -> &'static str {
        self.names().map_or("best", |row| row.name)
    }

    /// The kind that owns a ggml registry name, compared without case; none if unknown.
    pub fn of_registry(registry: &str) -> Option<BackendType> {
        NAMES
            .iter()
            .find(|row| {
                row.registries
                    .iter()
                    .any(|name| name.eq_ignore_ascii_case(registry))
            })
            .map(|row| row.kind)
    }

    /// Whether devices of this kind are GPUs.
    pub fn is_gpu(self) -> bool {
        !matches!(self, BackendType::Cpu | BackendType::Best)
    }
}

impl fmt::Display for BackendType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A backend name that is not in the table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown backend `{0}`: expected cpu, cuda, hip (or its alias rocm), vulkan, metal or best"
)]
pub struct UnknownBackend(pub String);

impl FromStr for BackendType {
    type Err = UnknownBackend;

    fn from_str(text: &str) -> Result<Self, UnknownBackend> {
        if text.eq_ignore_ascii_case("best") {
            return Ok(BackendType::Best);
        }
        NAMES
            .iter()
            .find(|row| {
                std::iter::once(&row.name)
                    .chain(row.aliases)
                    .any(|name| name.eq_ignore_ascii_case(text))
            })
            .map(|row| row.kind)
            .ok_or_else(|| UnknownBackend(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registry_name_tells_hip_from_cuda() {
        for (registry, kind) in [
            ("CUDA", BackendType::Cuda),
            ("MUSA", BackendType::Cuda),
            ("ROCm", BackendType::Hip),
            ("rocm", BackendType::Hip),
            ("Vulkan", BackendType::Vulkan),
            ("MTL", BackendType::Metal),
            ("CPU", BackendType::Cpu),
        ] {
            assert_eq!(BackendType::of_registry(registry), Some(kind), "{registry}");
        }
        assert_eq!(BackendType::of_registry("BLAS"), None);
    }

    #[test]
    fn every_name_and_alias_parses_and_prints() {
        for row in &NAMES {
            for name in row.aliases.iter().chain([&row.name]) {
                assert_eq!(name.to_uppercase().parse(), Ok(row.kind));
            }
            assert_eq!(row.kind.to_string(), row.name);
            assert!(!row.registries.is_empty() && !row.plugins.is_empty());
        }
        assert_eq!("best".parse(), Ok(BackendType::Best));
        let error = "opencl".parse::<BackendType>().unwrap_err().to_string();
        assert!(
            error.contains("opencl") && error.contains("rocm"),
            "{error}"
        );
    }
}
