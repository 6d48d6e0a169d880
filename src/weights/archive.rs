//! Zip archives in memory: torch checkpoints and `.npz`.

use super::{Error, Format, Result};
use bytes::Bytes;
use std::{
    collections::HashMap,
    fmt::Display,
    io::{Cursor, Read},
    path::Path,
};
use zip::{CompressionMethod, ZipArchive};

/// First bytes of a zip archive.
pub(super) const ZIP: &[u8] = b"PK\x03\x04";
/// A compressed entry may grow this much, plus [`BASE_SIZE`]: real numbers hardly compress.
const MAX_GROWTH: u64 = 64;
const BASE_SIZE: u64 = 1 << 20;

/// An open archive.
pub(super) struct Archive<'a> {
    path: &'a Path,
    format: Format,
    data: &'a Bytes,
    zip: ZipArchive<Cursor<Bytes>>,
    /// Entries that had to be unpacked.
    unpacked: HashMap<String, Bytes>,
}

impl<'a> Archive<'a> {
    pub fn open(path: &'a Path, format: Format, data: &'a Bytes) -> Result<Self> {
        let zip = ZipArchive::new(Cursor::new(data.clone())).map_err(|e| Error::Invalid {
            path: path.to_owned(),
            format,
            detail: format!("not a whole zip archive ({e}); download it again"),
        })?;
        Ok(Archive {
            path,
            format,
            data,
            zip,
            unpacked: HashMap::new(),
        })
    }

    /// Names of the entries, in the archive's order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.zip.file_names()
    }

    pub fn contains(&self, name: &str) -> bool {
        self.zip.index_for_name(name).is_some()
    }

    /// An entry's content: a piece of the file where it is stored as it is.
    pub fn entry(&mut self, name: &str) -> Result<Bytes> {
        if let Some(bytes) = self.unpacked.get(name) {
            return Ok(bytes.clone());
        }
        let bad = |e: &dyn Display| Error::Invalid {
            path: self.path.to_owned(),
            format: self.format,
            detail: format!("archive entry `{name}`: {e}"),
        };
        let mut file = self.zip.by_name(name).map_err(|e| bad(&e))?;
        if file.compression() == CompressionMethod::Stored {
            let start = usize::try_from(file.data_start()).ok();
            let size = usize::try_from(file.size()).ok();
            let end = start.zip(size).and_then(|(s, n)| s.checked_add(n));
            return match (start, end) {
                (Some(start), Some(end)) if end <= self.data.len() => {
                    Ok(self.data.slice(start..end))
                }
                _ => Err(bad(
                    &"reaches beyond the end of the file; download it again",
                )),
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
