//! The table of fast paths: every shortcut that depends on the backend, with its status.
//!
//! A model asks `device.fast_path(FastPath::X)` and never compares a backend. Whether a device
//! *can* run a path is asked of the device, operation by operation; whether it *should* is read
//! here; and a user may force or forbid a row in order to measure it.
mod table;

pub use table::{Row, TABLE};

use super::kind::BackendType;
use serde::Serialize;
use std::{collections::BTreeMap, fmt, str::FromStr};

/// The environment variable with rows to force, `NAME=on,NAME=off`.
pub const FAST_PATH_VARIABLE: &str = "AUDIOCPP_FAST_PATH";

/// A shortcut that a model can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(into = "&'static str")]
pub enum FastPath {
    /// Depthwise 1-D convolution as one operation.
    DepthwiseConv1d,
    /// Transposed 1-D convolution as a matrix product and an overlap-add.
    ConvTransposeCol2im,
    /// Projections of one input as one matrix product.
    PackedProjection,
    /// Attention without the matrix of scores.
    FlashAttention,
    /// The inverse short-time Fourier transform in the graph.
    GraphIstft,
    /// The snake activation as one kernel.
    FusedSnake,
    /// Weights kept as bfloat16.
    Bf16Weights,
    /// Single-precision weights stored in half precision.
    F16Weights,
    /// Quantised weights in language models.
    QuantizedWeights,
    /// Weights used where the file is mapped.
    MappedWeights,
    /// Random numbers in the order of PyTorch on CUDA.
    TorchCudaRandom,
    /// Voice prompts of up to 30 seconds instead of 10.
    LongVoicePrompt,
    /// One convolution for a whole batch.
    BatchedConv,
    /// The prompt through the device in one pass.
    BatchedPrefill,
    /// Reference voices encoded on the device.
    DeviceVoiceEncoder,
    /// Products and attention of many rows by code of ours.
    BlockedProduct,
    /// Convolutions along time with fewer products.
    ShortConv,
    /// Snakes at twice the rate with their filters in one pass.
    AliasFreeSnake,
}

/// How far a path may be trusted on a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Used; its numbers were compared with the plain path on this kind of hardware.
    Validated,
    /// Used where the device has the operations; not yet compared on this kind of hardware.
    Allowed,
    /// Not used unless forced.
    Off,
}

impl FastPath {
    /// Every path, in the order of the table.
    pub fn all() -> impl Iterator<Item = FastPath> {
        TABLE.iter().map(|row| row.path)
    }

    /// The row of the table.
    pub fn row(self) -> &'static Row {
        // The order is proven by a test.
        &TABLE[self as usize]
    }

    /// The name that options and output use.
    pub fn name(self) -> &'static str {
        self.row().name
    }
}

impl From<FastPath> for &'static str {
    fn from(path: FastPath) -> &'static str {
        path.name()
    }
}

impl fmt::Display for FastPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A `--fast-path` argument that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FastPathError {
    /// No row has this name.
    #[error(
        "unknown fast path `{name}`{}; `audiocpp_cli fast-paths` lists them",
        hint(name)
    )]
    Name {
        /// What was given.
        name: String,
    },
    /// Not `NAME=on|off|auto`.
    #[error("fast path `{0}`: expected NAME=on, NAME=off or NAME=auto")]
    Shape(String),
}

fn hint(name: &str) -> String {
    TABLE
        .iter()
        .map(|row| (strsim::jaro_winkler(row.name, name), row.name))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(similarity, _)| *similarity > 0.8)
        .map_or(String::new(), |(_, near)| {
            format!(", did you mean `{near}`")
        })
}

impl FromStr for FastPath {
    type Err = FastPathError;

    fn from_str(name: &str) -> Result<FastPath, FastPathError> {
        TABLE
            .iter()
            .find(|row| row.name.eq_ignore_ascii_case(&name.replace('_', "-")))
            .map(|row| row.path)
            .ok_or_else(|| FastPathError::Name {
                name: name.to_owned(),
            })
    }
}

/// Rows that the user forced, by path: `true` on, `false` off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Choices(BTreeMap<FastPath, bool>);

impl Choices {
    /// Reads arguments `NAME=on|off|auto`, the environment's list first so that flags win.
    pub fn from_options<'a>(
        environment: Option<&'a str>,
        flags: impl IntoIterator<Item = &'a str>,
    ) -> Result<Choices, FastPathError> {
        let mut choices = Choices::default();
        let listed = environment.unwrap_or_default().split(',').map(str::trim);
        for text in listed.filter(|text| !text.is_empty()).chain(flags) {
            choices.set(text)?;
        }
        Ok(choices)
    }

    /// Applies one argument; `auto` takes an earlier choice back.
    pub fn set(&mut self, text: &str) -> Result<(), FastPathError> {
        let shape = || FastPathError::Shape(text.to_owned());
        let (name, value) = text.split_once('=').ok_or_else(shape)?;
        let path: FastPath = name.trim().parse()?;
        match value.trim().to_ascii_lowercase().as_str() {
            "on" => self.0.insert(path, true),
            "off" => self.0.insert(path, false),
            "auto" => self.0.remove(&path),
            _ => return Err(shape()),
        };
        Ok(())
    }

    /// Decides for a device of kind `backend`; `supports` says whether it has a ggml operation.
    pub fn decide(
        &self,
        path: FastPath,
        backend: BackendType,
        supports: impl Fn(&str) -> bool,
    ) -> Decision {
        let row = path.row();
        let (status, reason) = row.status(backend);
        let missing: Vec<&'static str> =
            row.ops.iter().copied().filter(|op| !supports(op)).collect();
        let forced = self.0.get(&path).copied();
        let on = forced.unwrap_or(status != Status::Off && missing.is_empty());
        let mut reason = reason.to_owned();
        if !missing.is_empty() {
            let ops = missing.join(", ");
            reason = match on {
                true => format!("the device lacks {ops}, which the CPU runs"),
                false => format!("the device lacks {ops}"),
            };
        }
        if let Some(on) = forced {
            let word = if on { "on" } else { "off" };
            reason = format!("forced {word}; {reason}");
        }
        Decision {
            path,
            on,
            status,
            forced: forced.is_some(),
            reason,
        }
    }

    /// The decisions for every row.
    pub fn decide_all(
        &self,
        backend: BackendType,
        supports: impl Fn(&str) -> bool,
    ) -> Vec<Decision> {
        TABLE
            .iter()
            .map(|row| self.decide(row.path, backend, &supports))
            .collect()
    }

    /// Whether nothing is forced.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What a device does about a row, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// The path.
    pub path: FastPath,
    /// Whether models take it.
    pub on: bool,
    /// Its status in the table.
    pub status: Status,
    /// Whether the user forced or forbade it.
    pub forced: bool,
    /// Why, in words.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::{
        super::kind::BackendType::{Cpu, Cuda, Hip},
        Status::{Allowed, Validated},
        *,
    };
    use std::{fs, path::Path};

    #[test]
    fn the_table_is_in_order_and_complete() {
        let mut names: Vec<&str> = Vec::new();
        for (i, row) in TABLE.iter().enumerate() {
            assert_eq!(row.path as usize, i, "{}", row.name);
            assert_eq!(row.name.parse(), Ok(row.path));
            let kinds: Vec<BackendType> = row.status.iter().map(|(kind, ..)| *kind).collect();
            assert_eq!(
                kinds,
                BackendType::all().collect::<Vec<_>>(),
                "{}",
                row.name
            );
            for (_, _, reason) in row.status {
                assert!(!reason.is_empty(), "{} gives no reason", row.name);
            }
            names.push(row.name);
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), TABLE.len());
    }

    #[test]
    fn nothing_claims_to_be_validated_on_amd_hardware_that_computes_there() {
        for row in &TABLE {
            let (status, _) = row.status(Hip);
            assert!(status != Validated || row.ops.is_empty(), "{}", row.name);
        }
    }

    #[test]
    fn status_capability_and_force_decide_together() {
        let auto = Choices::default();
        let all = |_: &str| true;
        let decision = auto.decide(FastPath::ConvTransposeCol2im, Hip, all);
        assert!(decision.on && decision.status == Allowed && !decision.forced);
        let lacking = auto.decide(FastPath::ConvTransposeCol2im, Hip, |op| op != "COL2IM_1D");
        assert!(
            !lacking.on && lacking.reason.contains("COL2IM_1D"),
            "{lacking:?}"
        );
        assert!(!auto.decide(FastPath::MappedWeights, Hip, all).on);
        assert!(
            !auto
                .decide(FastPath::FlashAttention, BackendType::Best, all)
                .on
        );

        let forced = Choices::from_options(
            Some("mapped-weights=on, flash-attention=off"),
            ["flash-attention=auto", "conv-transpose-col2im=on"],
        )
        .unwrap();
        assert!(forced.decide(FastPath::MappedWeights, Hip, all).on);
        let back = forced.decide(FastPath::FlashAttention, Cuda, all);
        assert!(back.on && !back.forced);
        let anyway = forced.decide(FastPath::ConvTransposeCol2im, Hip, |_| false);
        assert!(
            anyway.on && anyway.reason.contains("which the CPU runs"),
            "{anyway:?}"
        );
        let mut off = Choices::default();
        off.set("Flash_Attention=OFF").unwrap();
        assert!(!off.decide(FastPath::FlashAttention, Cpu, all).on);
        assert_eq!(off.decide_all(Cpu, all).len(), TABLE.len());
    }

    #[test]
    fn bad_arguments_name_the_nearest_row() {
        let fail = |text: &str| Choices::default().set(text).unwrap_err().to_string();
        assert!(fail("flash-attn=on").contains("flash-attention"));
        assert!(fail("flash-attention").contains("NAME=on"));
        assert!(fail("flash-attention=maybe").contains("NAME=on"));
        assert!(fail("zzz=on").contains("fast-paths"));
    }

    /// Rust files below a folder.
    fn sources(dir: &Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }

    #[test]
    fn no_model_names_a_backend() {
        let mut files = Vec::new();
        sources(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("models"),
            &mut files,
        );
        assert!(!files.is_empty());
        let words = [
            "BackendType",
            "\"CUDA\"",
            "\"ROCm\"",
            "\"Vulkan\"",
            "\"Metal\"",
        ];
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            for word in words {
                assert!(
                    !text.contains(word),
                    "{} names {word}: ask device.fast_path(FastPath::…) instead",
                    file.display()
                );
            }
        }
    }
}
