//! Bounded little-endian reading of a file in memory, with offsets in the errors.

use super::{Error, Format, Result};
use bytes::Bytes;
use std::{fmt::Display, path::Path};

/// A reading position in a file's bytes. Slices it hands out share the file's memory.
pub(super) struct Cursor<'a> {
    pub path: &'a Path,
    pub format: Format,
    pub data: &'a Bytes,
    pub pos: usize,
}

macro_rules! number {
    ($name:ident, $type:ty) => {
        pub fn $name(&mut self, what: impl Display) -> Result<$type> {
            self.array(what).map(<$type>::from_le_bytes)
        }
    };
}

impl<'a> Cursor<'a> {
    pub fn new(path: &'a Path, format: Format, data: &'a Bytes) -> Self {
        Cursor {
            path,
            format,
            data,
            pos: 0,
        }
    }

    /// The next `n` bytes, shared, or an error that names `what` and the offset.
    pub fn take(&mut self, n: u64, what: impl Display) -> Result<Bytes> {
        let left = self.data.len().saturating_sub(self.pos);
        match usize::try_from(n) {
            Ok(n) if n <= left => {
                let slice = self.data.slice(self.pos..self.pos + n);
                self.pos += n;
                Ok(slice)
            }
            _ => Err(Error::Truncated {
                path: self.path.to_owned(),
                what: what.to_string(),
                offset: self.pos,
                wanted: n,
                left,
            }),
        }
    }

    fn array<const N: usize>(&mut self, what: impl Display) -> Result<[u8; N]> {
        let slice = self.take(N as u64, what)?;
        let mut array = [0; N];
        array.copy_from_slice(&slice);
        Ok(array)
    }

    number!(u8, u8);
    number!(u16, u16);
    number!(u32, u32);
    number!(i32, i32);
    number!(u64, u64);
    number!(i64, i64);

    /// `n` bytes as UTF-8 text.
    pub fn text(&mut self, n: u64, what: impl Display) -> Result<String> {
        let start = self.pos;
        let bytes = self.take(n, &what)?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(self.invalid(format!("{what} at offset {start} is not UTF-8"))),
        }
    }

    /// Refuses a count of items that the rest of the file cannot hold, before anything is
    /// allocated for them; each item takes `least` bytes or more.
    pub fn count(&self, n: u64, least: u64, what: impl Display) -> Result<usize> {
        let left = (self.data.len() - self.pos) as u64;
        if n.checked_mul(least).is_none_or(|wanted| wanted > left) {
            return Err(Error::Truncated {
                path: self.path.to_owned(),
                what: format!("{n} {what}"),
                offset: self.pos,
                wanted: n.saturating_mul(least),
                left: left as usize,
            });
        }
        Ok(n as usize)
    }

    pub fn at_end(&self) -> bool {
        self.pos >= self.data.len()
    }

    pub fn invalid(&self, detail: impl Into<String>) -> Error {
        Error::Invalid {
            path: self.path.to_owned(),
            format: self.format,
            detail: detail.into(),
        }
    }
}
