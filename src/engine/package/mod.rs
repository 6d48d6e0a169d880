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
