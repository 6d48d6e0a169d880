//! torch's zip archives: `<name>/data.pkl` and one entry a storage under `<name>/data/`.

use super::{
    super::{Format, Result, archive::Archive, container::Container},
    build::Allow,
    flatten, invalid, pickle,
};
use bytes::Bytes;
use std::path::Path;

/// Name of the entry that holds the object tree.
const PICKLE: &str = "data.pkl";

/// The pickle's entry in a torch archive.
pub(in super::super) fn pickle_name(archive: &Archive<'_>) -> Option<String> {
    let is_pickle = |name: &&str| {
        name.strip_suffix(PICKLE)
            .is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('/'))
    };
    archive
        .names()
        .filter(is_pickle)
        .min_by_key(|name| name.len())
        .map(str::to_owned)
}

pub(super) fn read(path: &Path, data: &Bytes, allow: &Allow) -> Result<Container> {
    let mut archive = Archive::open(path, Format::Torch, data)?;
    let Some(name) = pickle_name(&archive) else {
        return Err(invalid(path, format!("the archive has no `{PICKLE}`")));
    };
    let prefix = name.strip_suffix(PICKLE).unwrap_or_default();
    let order = format!("{prefix}byteorder");
    if archive.contains(&order) && archive.entry(&order)? == b"big"[..] {
        let detail = "is big-endian; save it again on a little-endian machine";
        return Err(invalid(path, detail.into()));
    }
    let stream = archive.entry(&name)?;
    let pickle = pickle::read(path, &stream, allow)?;
    flatten::container(path, pickle, |storage| {
        archive.entry(&format!("{prefix}data/{}", storage.key))
    })
}
