//! Uploads on disk while they are worked on: unique names, private, gone on every path.

use std::{
    io,
    path::{Path, PathBuf},
};

use audiocpp::audio::{AudioSource, Reader};
use axum::http::StatusCode;
use tempfile::{NamedTempFile, TempPath};
use tokio::io::AsyncWriteExt;

use super::error::{ApiError, Result};

/// A file that is deleted when this is dropped.
#[derive(Debug)]
pub struct Spooled {
    path: TempPath,
}

impl Spooled {
    /// Where it lies.
    pub fn path(&self) -> PathBuf {
        self.path.to_path_buf()
    }
}

/// A file that is being written.
pub struct Spool {
    file: tokio::fs::File,
    path: TempPath,
}

impl Spool {
    /// A new file in `folder`.
    pub fn create(folder: &Path) -> Result<Spool> {
        let (file, path) = temporary(folder)?.into_parts();
        Ok(Spool {
            file: tokio::fs::File::from_std(file),
            path,
        })
    }

    /// Appends `bytes`.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_all(bytes).await;
        written.map_err(|error| failed(&error))
    }

    /// The whole file.
    pub async fn finish(mut self) -> Result<Spooled> {
        self.file.flush().await.map_err(|error| failed(&error))?;
        Ok(Spooled { path: self.path })
    }
}

/// An empty file with a name that no other has.
pub fn temporary(folder: &Path) -> Result<NamedTempFile> {
    let made = tempfile::Builder::new()
        .prefix("audiocpp-")
        .tempfile_in(folder);
    made.map_err(|error| failed(&error))
}

/// What the caller is told when the spool cannot take more.
pub fn failed(error: &io::Error) -> ApiError {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => ApiError::new(
            StatusCode::INSUFFICIENT_STORAGE,
            "storage_full",
            "the server has no room for this upload; free space in its spool folder",
        ),
        _ => {
            tracing::error!(%error, "the spool folder cannot be written");
            ApiError::internal(format!("the upload could not be kept: {}", error.kind()))
        }
    }
}

/// Refuses what is no sound, or more of it than `most` seconds, before a model is bothered. Lengths
/// come from the header; sound without one is counted. `field` is named in errors.
pub async fn check_sound(path: PathBuf, field: &'static str, most: f64) -> Result<()> {
    let looked = tokio::task::spawn_blocking(move || look(&path, field, most)).await;
    looked.map_err(|_| ApiError::bad("invalid_input", "the file broke its decoder").param(field))?
}

fn look(path: &Path, field: &str, most: f64) -> Result<()> {
    let refuse = |error: audiocpp::audio::Error| -> ApiError {
        let own = path.display().to_string();
        let mut error = ApiError::from(audiocpp::engine::Error::from(error)).param(field);
        // The name on this machine is nobody else's business.
        error.message = error.message.replace(&own, &format!("`{field}`"));
        error
    };
    let file = std::fs::File::open(path).map_err(|error| failed(&error))?;
    let length = file.metadata().map_or(0, |meta| meta.len());
    if length == 0 {
        let message = format!("`{field}` is empty (0 bytes)");
        return Err(ApiError::bad("empty_file", message).param(field));
    }
    let mut reader = Reader::open(path).map_err(refuse)?;
    let seconds = match reader.duration_hint() {
        Some(seconds) => seconds,
        None => counted(&mut reader, most).map_err(refuse)?,
    };
    if seconds > most {
        return Err(ApiError::too_large(
            field,
            format!(
                "`{field}` lasts {seconds:.0} s, at most {most} s are taken; cut it into parts"
            ),
        ));
    }
    Ok(())
}

/// Seconds of `source`, or a little more than `most`.
fn counted(source: &mut dyn AudioSource, most: f64) -> audiocpp::audio::Result<f64> {
    let rate = f64::from(source.rate());
    let (mut samples, mut frames) = (Vec::new(), 0_usize);
    loop {
        samples.clear();
        let read = source.read(&mut samples, 16 * 1024)?;
        frames += read;
        if read == 0 || frames as f64 / rate > most {
            return Ok(frames as f64 / rate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_apart_from_a_broken_one() {
        let full = failed(&io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!((full.status.as_u16(), full.code), (507, "storage_full"));
        let denied = failed(&io::Error::from(io::ErrorKind::PermissionDenied));
        assert_eq!(denied.status, 500);
    }

    #[tokio::test]
    async fn files_have_their_own_names_and_are_gone_when_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let mut spools = Vec::new();
        for _ in 0..8 {
            let mut spool = Spool::create(folder.path()).unwrap();
            spool.write(b"12345").await.unwrap();
            spools.push(spool.finish().await.unwrap());
        }
        let entries = || std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(entries(), 8);
        assert_eq!(std::fs::read(spools[7].path()).unwrap(), b"12345");
        drop(spools);
        assert_eq!(entries(), 0);
        let unfinished = Spool::create(folder.path()).unwrap();
        drop(unfinished);
        assert_eq!(entries(), 0);
    }
}
