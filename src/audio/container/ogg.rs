//! Whether an Ogg stream has its end.
use std::io::{self, Read, Seek, SeekFrom};

/// Longer than any page.
const TAIL: u64 = 66_000;
/// Flag of a stream's last page.
const LAST: u8 = 4;

/// Whether the last page of `input` (`len` bytes) says that it is the last.
pub fn has_end(input: &mut (impl Read + Seek), len: u64) -> io::Result<bool> {
    let mut tail = Vec::new();
    input.seek(SeekFrom::Start(len.saturating_sub(TAIL)))?;
    input.by_ref().take(TAIL).read_to_end(&mut tail)?;
    let page = tail.windows(6).rfind(|w| w.starts_with(b"OggS\0"));
    Ok(page.is_some_and(|page| page[5] & LAST != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_page_decides() {
        for (bytes, want) in [
            (&b"OggS\0\x02....OggS\0\x04...."[..], true),
            (b"OggS\0\x04....OggS\0\x00....", false),
            (b"OggS\0\x02", false),
            (b"Ogg", false),
        ] {
            let got = has_end(&mut io::Cursor::new(bytes), bytes.len() as u64).unwrap();
            assert_eq!(got, want);
        }
    }
}
