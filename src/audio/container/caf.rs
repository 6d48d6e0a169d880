//! Whether a Core Audio file has all of its samples.
use super::{bytes_at, span::Patch};
use std::io::{self, Read, Seek};

/// The true size of the data chunk of `input` (`len` bytes), where it is stated too large.
pub fn cut(input: &mut (impl Read + Seek), len: u64) -> io::Result<Option<Patch>> {
    let mut pos = 8u64;
    while let Some([a, b, c, d, size @ ..]) = bytes_at::<12>(input, pos)? {
        // A negative size means "to the end".
        let Ok(size) = u64::try_from(i64::from_be_bytes(size)) else {
            break;
        };
        let end = pos.saturating_add(12).saturating_add(size);
        if [a, b, c, d] == *b"data" {
            let there = len.saturating_sub(pos + 12);
            return Ok((end > len).then(|| (pos + 4, there.to_be_bytes().to_vec())));
        }
        pos = end;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_data_beyond_the_end_is_cut() {
        let file = |size: i64| {
            let mut file = b"caff\0\x01\0\0desc\0\0\0\0\0\0\0\x02..data".to_vec();
            file.extend(size.to_be_bytes());
            file.extend([0; 10]);
            let len = file.len() as u64;
            cut(&mut io::Cursor::new(file), len).unwrap()
        };
        assert_eq!(file(10), None);
        assert_eq!(file(-1), None);
        assert_eq!(file(11), Some((26, vec![0, 0, 0, 0, 0, 0, 0, 10])));
        assert_eq!(cut(&mut io::Cursor::new(b"caff"), 4).unwrap(), None);
    }
}
