//! Tiny packages of formula weights, as `tests/reference/vibevoice_reference.py` describes them.

use tempfile::TempDir;

/// The package of a kind (`original`, `hf`, `asr` or `realtime`), its tensors as `change` leaves them.
pub fn write(kind: &str, change: impl Fn(&str, &mut Vec<f32>)) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    audiocpp_testing::package::write(&format!("vibevoice/{kind}"), folder.path(), change);
    folder
}
