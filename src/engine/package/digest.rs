//! SHA-256 of files and streams.

use std::{
    fs::File,
    io::{Read, Write},
    path::Path,
};

use sha2::{Digest, Sha256};

use crate::engine::{Error, Result, RunContext};

/// Bytes moved at a time.
const BLOCK: usize = 256 * 1024;

/// The SHA-256 of the file at `path`, in lower-case hexadecimal.
pub fn sha256_of_file(path: &Path, context: &RunContext) -> Result<String> {
    let mut file = File::open(path).map_err(|error| Error::file(path, &error))?;
    let mut hash = Sha256::new();
    let mut block = vec![0; BLOCK];
    loop {
        context.check()?;
        let n = file
            .read(&mut block)
            .map_err(|error| Error::file(path, &error))?;
        if n == 0 {
            return Ok(format!("{:x}", hash.finalize()));
        }
        hash.update(&block[..n]);
    }
}

/// Why a copy ended early.
pub enum CopyError {
    /// The run was cancelled.
    Cancelled(Error),
    /// The source failed.
    Read(std::io::Error),
    /// The target failed.
    Write(std::io::Error),
    /// The source had more than the allowed bytes.
    TooLong,
}

/// Copies `from` to `to` until its end, at most `limit` bytes; `moved` hears of every block.
pub fn copy(
    from: &mut dyn Read,
    to: &mut dyn Write,
    limit: u64,
    context: &RunContext,
    moved: &mut dyn FnMut(u64),
) -> Result<u64, CopyError> {
    let mut block = vec![0; BLOCK];
    let mut total = 0u64;
    loop {
        context.check().map_err(CopyError::Cancelled)?;
        let n = match from.read(&mut block) {
            Ok(n) => n,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(CopyError::Read(error)),
        };
        if n == 0 {
            return Ok(total);
        }
        total += n as u64;
        if total > limit {
            return Err(CopyError::TooLong);
        }
        to.write_all(&block[..n]).map_err(CopyError::Write)?;
        moved(n as u64);
    }
}
