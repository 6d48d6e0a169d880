//! Memory-mapped files.

use super::{Error, Result};
use bytes::Bytes;
use std::{fs::File, path::Path};

/// The file's content, mapped: pages are read when touched and the map lives as long as any
/// slice of it. An empty file gives empty bytes.
///
/// As with every mapped file, another process that shortens the file while it is in use ends
/// this one with a bus error; the process model (one worker a model) contains that.
pub(super) fn map(path: &Path) -> Result<Bytes> {
    let io = |source| Error::Io {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(io)?;
    let meta = file.metadata().map_err(io)?;
    if meta.is_dir() {
        return Err(io(std::io::ErrorKind::IsADirectory.into()));
    }
    if meta.len() == 0 {
        return Ok(Bytes::new());
    }
    let map = map_file(&file).map_err(io)?;
    Ok(Bytes::from_owner(map))
}

#[allow(unsafe_code)]
fn map_file(file: &File) -> std::io::Result<memmap2::Mmap> {
    // SAFETY: the map is private and read-only. Its bytes may change if someone rewrites the
    // file meanwhile; every reader copies or bounds-checks what it takes from them and trusts
    // no earlier check of the same bytes, so a change can give wrong numbers, not a bad access.
    unsafe { memmap2::Mmap::map(file) }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_map_lives_as_long_as_its_last_slice() {
        let file = tempfile::Builder::new()
            .suffix(".weights-map")
            .tempfile()
            .unwrap();
        std::fs::write(file.path(), vec![7; 10_000]).unwrap();
        let is_mapped = || {
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            maps.contains(file.path().to_str().unwrap())
        };
        let whole = map(file.path()).unwrap();
        let slice = whole.slice(5_000..5_001);
        drop(whole);
        assert_eq!(slice[..], [7]);
        assert!(is_mapped());
        drop(slice);
        assert!(!is_mapped());
    }
}
