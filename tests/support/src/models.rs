//! Downloaded models for tests: only where the caller has fetched them and says where they are.

use std::{env, path::PathBuf};

/// Names the folder that `audiocpp_cli models path` prints; `cargo xtask test` sets it.
pub const VARIABLE: &str = "AUDIOCPP_TEST_MODELS";

/// The folder of the catalogue's model `id`. `None`, with a line on stderr, where
/// [`VARIABLE`] is not set: the test is to be skipped.
///
/// # Panics
/// Panics when the variable is set and the model is not there.
pub fn folder(id: &str) -> Option<PathBuf> {
    let Some(models) = env::var_os(VARIABLE) else {
        eprintln!("skipped: it needs {id}, and {VARIABLE} is not set (cargo xtask test sets it)");
        return None;
    };
    let folder = PathBuf::from(models).join(id);
    assert!(
        folder.is_dir(),
        "{} is missing: audiocpp_cli models pull {id}",
        folder.display()
    );
    Some(folder)
}
