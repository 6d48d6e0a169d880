//! Memory-mapped files.

use super::{Error, Result};
use bytes::Bytes;
use memmap2::Mmap;
use std::{
    fs::File,
    path::Path,
    sync::{Arc, Mutex, PoisonError, Weak},
};

/// The maps that are alive, so that [`release`] finds the one that some bytes belong to.
static MAPS: Mutex<Vec<Weak<Mmap>>> = Mutex::new(Vec::new());

/// What a map's bytes keep alive.
struct Owner(Arc<Mmap>);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

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
    let map = Arc::new(map_file(&file).map_err(io)?);
    let mut maps = MAPS.lock().unwrap_or_else(PoisonError::into_inner);
    maps.retain(|map| map.strong_count() > 0);
    maps.push(Arc::downgrade(&map));
    Ok(Bytes::from_owner(Owner(map)))
}

/// Says that `bytes` are not needed again soon: where they lie in a map, their pages leave this
/// process's memory, and are read again when touched. Loading a model so takes the memory of its
/// weights once and not twice.
pub(super) fn release(bytes: &[u8]) {
    let maps = MAPS.lock().unwrap_or_else(PoisonError::into_inner);
    let inside = |map: &Arc<Mmap>| map.as_ptr_range().contains(&bytes.as_ptr());
    if let Some(map) = maps.iter().filter_map(Weak::upgrade).find(inside) {
        let start = bytes.as_ptr().addr() - map.as_ptr().addr();
        release_range(&map, start..start + bytes.len());
    }
}

#[cfg(unix)]
#[allow(unsafe_code)]
fn release_range(map: &Mmap, range: std::ops::Range<usize>) {
    /// A multiple of every page size in use.
    const PAGE: usize = 1 << 16;
    let (start, end) = (range.start.next_multiple_of(PAGE), range.end / PAGE * PAGE);
    if start < end {
        // SAFETY: the map is a read-only view of a file, whose pages come back with the file's
        // bytes when they are touched again.
        let advice = unsafe {
            map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, end - start)
        };
        if let Err(error) = advice {
            tracing::debug!(%error, "mapped pages were not released");
        }
    }
}

#[cfg(not(unix))]
fn release_range(_: &Mmap, _: std::ops::Range<usize>) {}

#[allow(unsafe_code)]
fn map_file(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the map is private and read-only. Its bytes may change if someone rewrites the
    // file meanwhile; every reader copies or bounds-checks what it takes from them and trusts
    // no earlier check of the same bytes, so a change can give wrong numbers, not a bad access.
    unsafe { Mmap::map(file) }
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

    #[test]
    fn released_pages_leave_memory_and_come_back() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![7; 4 << 20]).unwrap();
        let whole = map(file.path()).unwrap();
        let resident = || -> usize {
            let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
            let mine = maps.split_once(file.path().to_str().unwrap()).unwrap().1;
            let rss = mine.lines().find(|l| l.starts_with("Rss:")).unwrap();
            rss.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        assert_eq!(whole.iter().map(|&b| u64::from(b)).sum::<u64>(), 7 << 22);
        assert!(resident() >= 4 << 10);
        release(&whole[1..]);
        assert!(resident() <= 128, "{} KiB are still here", resident());
        assert!(whole.iter().all(|&b| b == 7));
        release(&[1, 2, 3]);
    }
}
