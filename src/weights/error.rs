//! What can go wrong with a weight file, each said with the file, the thing and the fix.

use super::{Format, StoredType};
use crate::graph::DType;
use std::{fmt, io, path::PathBuf};

/// Result of this module.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why weights could not be read, fetched or converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused to read.
    #[error("{}: {source}", path.display())]
    Io {
        /// File or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file ends inside something; usually an interrupted download.
    #[error(
        "{}: file ends early: {what} at offset {offset} needs {wanted} bytes, {left} are left; \
         download it again",
        path.display()
    )]
    Truncated {
        /// File.
        path: PathBuf,
        /// What was being read.
        what: String,
        /// Where it starts.
        offset: usize,
        /// Bytes it needs.
        wanted: u64,
        /// Bytes the file has from there.
        left: usize,
    },
    /// The content breaks the rules of its own format.
    #[error("{}: bad {format} file: {detail}", path.display())]
    Invalid {
        /// File.
        path: PathBuf,
        /// Format it was read as.
        format: Format,
        /// The rule and what was found.
        detail: String,
    },
    /// The content is none of the formats read here.
    #[error(
        "{}: {found}; supported are {}",
        path.display(),
        Format::ALL.map(|f| f.to_string()).join(", ")
    )]
    Unsupported {
        /// File or folder.
        path: PathBuf,
        /// What the first bytes, or the folder, look like.
        found: String,
    },
    /// A pickle wants a class that is not on the allow-list; its code is never run.
    #[error(
        "{}: pickle refers to class `{class}`, which is not allowed; allow it by name if the \
         model expects it (it is then read as plain attributes), or convert the file to safetensors",
        path.display()
    )]
    UnknownClass {
        /// File.
        path: PathBuf,
        /// `module.Name`.
        class: String,
    },
    /// No tensor has the wanted name.
    #[error("{}: no tensor `{name}` of shape {wanted:?}{}", path.display(), Nearest(nearest))]
    Missing {
        /// File or folder.
        path: PathBuf,
        /// Wanted name.
        name: String,
        /// Wanted shape, reader's order.
        wanted: Vec<usize>,
        /// Nearest names and their shapes, best first.
        nearest: Vec<(String, Vec<usize>)>,
    },
    /// The tensor has another shape than the model expects.
    #[error("{}: tensor `{name}` has shape {found:?}, the model wants {wanted:?}", path.display())]
    Shape {
        /// File or folder.
        path: PathBuf,
        /// Tensor.
        name: String,
        /// Shape in the file.
        found: Vec<usize>,
        /// Shape the model wants.
        wanted: Vec<usize>,
    },
    /// A weight is NaN or infinite.
    #[error(
        "{}: tensor `{name}` holds a value that is not finite at element {index}; \
         the file is damaged or was saved from a failed training",
        path.display()
    )]
    NonFinite {
        /// File or folder.
        path: PathBuf,
        /// Tensor.
        name: String,
        /// Row-major element number.
        index: usize,
    },
    /// A finite weight leaves the range of the wanted type.
    #[error(
        "{}: tensor `{name}` holds {value:e} at element {index}, beyond the range of {to}; \
         load it as bf16 or f32",
        path.display()
    )]
    OutOfRange {
        /// File or folder.
        path: PathBuf,
        /// Tensor.
        name: String,
        /// Row-major element number.
        index: usize,
        /// The value.
        value: f32,
        /// Wanted type.
        to: DType,
    },
    /// These two types are not converted into each other.
    #[error("{}: tensor `{name}` cannot be converted from {from} to {to}: {why}", path.display())]
    Convert {
        /// File or folder.
        path: PathBuf,
        /// Tensor.
        name: String,
        /// Type in the file.
        from: StoredType,
        /// Wanted type.
        to: DType,
        /// The reason.
        why: &'static str,
    },
}

struct Nearest<'a>(&'a [(String, Vec<usize>)]);

impl fmt::Display for Nearest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("; the file holds no tensors");
        }
        f.write_str("; nearest: ")?;
        for (i, (name, shape)) in self.0.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}`{name}` {shape:?}")?;
        }
        Ok(())
    }
}
