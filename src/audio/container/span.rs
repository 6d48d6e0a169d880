//! The bytes that the demuxer sees: a header of ours, then a part of the input.
use std::io::{self, Read, Seek, SeekFrom};
use symphonia::core::io::MediaSource;

/// Anything that can be read at any place.
pub trait Bytes: Read + Seek + Send + Sync {}
impl<T: Read + Seek + Send + Sync> Bytes for T {}

/// A place and what to show there.
pub type Patch = (u64, Vec<u8>);

/// `head` followed by `len` bytes of `inner` from `start`, as one seekable stream.
pub struct Span {
    inner: Box<dyn Bytes>,
    head: Vec<u8>,
    start: u64,
    len: u64,
    pos: u64,
    /// Bytes that are shown instead of those at their places.
    patches: Vec<Patch>,
    seekable: bool,
}

impl Span {
    /// The whole of `inner`.
    pub fn whole(mut inner: Box<dyn Bytes>) -> io::Result<Self> {
        let len = inner.seek(SeekFrom::End(0))?;
        Ok(Self {
            inner,
            head: Vec::new(),
            start: 0,
            len,
            pos: 0,
            patches: Vec::new(),
            seekable: true,
        })
    }

    /// `head`, then `len` bytes of this span's input from `start`.
    pub fn spliced(self, head: Vec<u8>, start: u64, len: u64) -> Self {
        Self {
            inner: self.inner,
            head,
            start,
            len,
            pos: 0,
            patches: Vec::new(),
            seekable: true,
        }
    }

    /// Shows other bytes than those that are there.
    pub fn patch(&mut self, patches: Vec<Patch>) {
        self.patches = patches;
    }

    /// Whether the demuxer may jump; else it reads from the first byte to the last.
    pub fn set_seekable(&mut self, seekable: bool) {
        self.seekable = seekable;
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.head.len() as u64 + self.len
    }
}

impl Read for Span {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let head = self.head.len() as u64;
        let n = if self.pos < head {
            (&self.head[self.pos as usize..]).read(buf)?
        } else {
            let at = self.pos - head;
            let room = self.len.saturating_sub(at).min(buf.len() as u64) as usize;
            if room == 0 {
                return Ok(0);
            }
            self.inner.seek(SeekFrom::Start(self.start + at))?;
            self.inner.read(&mut buf[..room])?
        };
        for (at, bytes) in &self.patches {
            for (place, &byte) in (*at..).zip(bytes) {
                if let Some(i) = place.checked_sub(self.pos).filter(|&i| i < n as u64) {
                    buf[i as usize] = byte;
                }
            }
        }
        self.pos += n as u64;
        Ok(n)
    }
}

impl Seek for Span {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(pos) => Some(pos),
            SeekFrom::End(by) => self.len().checked_add_signed(by),
            SeekFrom::Current(by) => self.pos.checked_add_signed(by),
        };
        self.pos = target.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.pos)
    }
}

impl MediaSource for Span {
    fn is_seekable(&self) -> bool {
        self.seekable
    }
    fn byte_len(&self) -> Option<u64> {
        Some(self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_splice_reads_its_head_then_its_part_and_seeks_across_both() {
        let whole = Span::whole(Box::new(io::Cursor::new(b"0123456789".to_vec()))).unwrap();
        let mut span = whole.spliced(b"ab".to_vec(), 3, 4);
        let mut text = String::new();
        span.read_to_string(&mut text).unwrap();
        assert_eq!(text, "ab3456");
        assert_eq!(span.seek(SeekFrom::End(-5)).unwrap(), 1);
        text.clear();
        span.read_to_string(&mut text).unwrap();
        assert_eq!(text, "b3456");
        assert!(span.seek(SeekFrom::Current(-99)).is_err());
        for at in 0..4 {
            span.patch(vec![(at, b"wxyz".to_vec())]);
            span.rewind().unwrap();
            text.clear();
            span.read_to_string(&mut text).unwrap();
            let mut want = "ab3456".to_owned();
            want.replace_range(
                at as usize..(at as usize + 4).min(6),
                &"wxyz"[..(6 - at as usize).min(4)],
            );
            assert_eq!(text, want);
        }
    }
}
