//! Tiny packages of formula weights, as `tests/reference/vibevoice_reference.py` describes them.

use std::path::PathBuf;

use audiocpp_testing::package;
use tempfile::TempDir;

/// A file of the tests' data; `kind` is `original`, `hf`, `asr` or `realtime`.
pub fn data(kind: &str, file: &str) -> PathBuf {
    package::data("vibevoice").join(kind).join(file)
}

/// The package of a kind, its tensors as `change` leaves them.
pub fn write(kind: &str, change: impl Fn(&str, &mut Vec<f32>)) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    package::write(&format!("vibevoice/{kind}"), folder.path(), change);
    folder
}
