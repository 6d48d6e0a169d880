//! torch's zip archives: `<name>/data.pkl` and one entry a storage under `<name>/data/`.

use super::{
    super::{Error, Result, container::Container},
    build::Allow,
    flatten, invalid, pickle,
};
use bytes::Bytes;
use std::{
    collections::HashMap,
    io::{Cursor, Read},
    path::Path,
};
use zip::{CompressionMethod, ZipArchive};

/// A compressed entry may grow this much, plus [`BASE_SIZE`]: real numbers hardly compress.
const MAX_GROWTH: u64 = 64;
const BASE_SIZE: u64 = 1 << 20;

struct Archive<'a> {
    path: &'a Path,
    data: &'a Bytes,
    zip: ZipArchive<Cursor<Bytes>>,
    /// Entries that had to be unpacked.
    unpacked: HashMap<String, Bytes>,
}

pub(super) fn read(path: &Path, data: &Bytes, allow: &Allow) -> Result<Container> {
    let zip = ZipArchive::new(Cursor::new(data.clone())).map_err(|e| {
        invalid(
            path,
            format!("not a whole zip archive ({e}); download it again"),
        )
    })?;
    let mut archive = Archive {
        path,
        data,
        zip,
        unpacked: HashMap::new(),
    };
    let Some(pickle) = archive
        .zip
        .file_names()
        .filter(|name| *name == "data.pkl" || name.ends_with("/data.pkl"))
        .min_by_key(|name| name.len())
        .map(str::to_owned)
    else {
        return Err(Error::Unsupported {
            path: path.to_owned(),
            found: "is a zip archive without a torch `data.pkl`".into(),
        });
    };
    let prefix = pickle.trim_end_matches("data.pkl").to_owned();
    let order = format!("{prefix}byteorder");
    if archive.zip.index_for_name(&order).is_some() && &archive.entry(&order)?[..] == b"big" {
        return Err(invalid(
            path,
            "is big-endian; save it again on a little-endian machine".into(),
        ));
    }
    let stream = archive.entry(&pickle)?;
    let pickle = pickle::read(path, &stream, allow)?;
    flatten::container(path, pickle, |storage| {
        archive.entry(&format!("{prefix}data/{}", storage.key))
    })
}

impl Archive<'_> {
    /// An entry's content: a piece of the file where it is stored as it is.
    fn entry(&mut self, name: &str) -> Result<Bytes> {
        if let Some(bytes) = self.unpacked.get(name) {
            return Ok(bytes.clone());
        }
        let bad =
            |e: &dyn std::fmt::Display| invalid(self.path, format!("archive entry `{name}`: {e}"));
        let mut file = self.zip.by_name(name).map_err(|e| bad(&e))?;
        if file.compression() == CompressionMethod::Stored {
            let start = usize::try_from(file.data_start()).ok();
            let end = start.and_then(|s| s.checked_add(usize::try_from(file.size()).ok()?));
            return match (start, end) {
                (Some(start), Some(end)) if end <= self.data.len() => {
                    Ok(self.data.slice(start..end))
                }
                _ => Err(bad(&"reaches beyond the end of the file")),
            };
        }
        let limit = file
            .compressed_size()
            .min(self.data.len() as u64)
            .saturating_mul(MAX_GROWTH)
            .saturating_add(BASE_SIZE);
        let mut content = Vec::new();
        let read = (&mut file).take(limit).read_to_end(&mut content);
        read.map_err(|e| bad(&e))?;
        if content.len() as u64 == limit {
            return Err(bad(&"unpacks to far more than its packed size"));
        }
        let content = Bytes::from(content);
        self.unpacked.insert(name.to_owned(), content.clone());
        Ok(content)
    }
}
