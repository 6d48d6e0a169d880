//! A tolerant walk over WAV chunks. It finds the format and the true extent of the samples, so
//! that the demuxer can be given a clean header: unknown sizes (0, 0x7FFFFFFF, 0xFFFFFFFF),
//! RF64/BW64, odd chunks without their pad byte, and cut files all end in the same few fields.
use super::bytes_at;
use std::io::{self, Read, Seek, SeekFrom};

/// Channel counts above this are taken for damage.
pub const MAX_CHANNELS: u16 = 64;
/// A format chunk longer than this is damage.
const MAX_FMT: u32 = 4096;
/// Writers that cannot seek back put this or more where a size belongs.
const PLACEHOLDER: u64 = 0x7FFF_0000;
/// Chunk names that decide between a padded and an unpadded reading.
const KNOWN: &[&[u8; 4]] = &[
    b"fmt ", b"data", b"fact", b"LIST", b"JUNK", b"junk", b"bext", b"PEAK", b"cue ", b"smpl",
    b"inst", b"id3 ", b"ID3 ", b"iXML", b"_PMX", b"PAD ", b"FLLR", b"note", b"DISP", b"ds64",
    b"axml", b"chna", b"plst", b"afsp", b"LGWV",
];

/// Where the sound of a WAV file lies, and in what form.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Wave {
    /// Body of the `fmt ` chunk.
    pub fmt: Vec<u8>,
    /// Format tag, with WAVE_FORMAT_EXTENSIBLE resolved.
    pub tag: u16,
    /// Channels as declared.
    pub channels: u16,
    /// Frames a second as declared.
    pub rate: u32,
    /// Frames that the `fact` chunk declares.
    pub fact: Option<u32>,
    /// First byte of the samples.
    pub data_start: u64,
    /// Bytes of samples that are there.
    pub data_len: u64,
    /// Bytes that the header promises beyond the end of the file.
    pub missing: u64,
}

/// Walks the chunks of `input` (`len` bytes). The inner error says what is wrong with the file.
pub fn read(input: &mut (impl Read + Seek), len: u64) -> io::Result<Result<Wave, String>> {
    let mut wave = Wave::default();
    let mut long_data = None;
    let mut pos = 12;
    while let Some(header) = bytes_at::<8>(input, pos)? {
        let (id, size) = header.split_at(4);
        let size = u32::from_le_bytes([size[0], size[1], size[2], size[3]]);
        let body = pos + 8;
        match id {
            b"data" => {
                wave.data_start = body;
                let size = match long_data {
                    Some(long) if size == u32::MAX => long,
                    _ => u64::from(size),
                };
                (wave.data_len, wave.missing) = extent(input, body, size, len)?;
                return Ok(check(wave));
            }
            b"ds64" => {
                long_data = bytes_at::<16>(input, body)?
                    .and_then(|b| b[8..].try_into().ok())
                    .map(u64::from_le_bytes);
            }
            b"fmt " if size <= MAX_FMT => {
                input.seek(SeekFrom::Start(body))?;
                wave.fmt.clear();
                input
                    .by_ref()
                    .take(u64::from(size))
                    .read_to_end(&mut wave.fmt)?;
            }
            b"fact" => wave.fact = bytes_at::<4>(input, body)?.map(u32::from_le_bytes),
            _ => {}
        }
        pos = next_chunk(input, body + u64::from(size), size % 2 == 1)?;
    }
    Ok(Err("WAV without a data chunk".into()))
}

/// Start of the chunk after one that ends at `end`. Odd chunks have a pad byte, which some
/// writers forget: whichever reading gives a known name wins, else the standard.
fn next_chunk(input: &mut (impl Read + Seek), end: u64, odd: bool) -> io::Result<u64> {
    let mut known = |pos| -> io::Result<bool> {
        Ok(bytes_at::<4>(input, pos)?.is_some_and(|id| KNOWN.contains(&&id)))
    };
    let unpadded = odd && !known(end + 1)? && known(end)?;
    Ok(if odd && !unpadded { end + 1 } else { end })
}

/// Bytes of samples present from `start`, and how many more the header promised.
fn extent(
    input: &mut (impl Read + Seek),
    start: u64,
    size: u64,
    len: u64,
) -> io::Result<(u64, u64)> {
    let rest = len.saturating_sub(start);
    Ok(match size {
        // A stream whose writer never came back, unless only chunks follow.
        0 if rest > 0 && !only_chunks(input, start, len)? => (rest, 0),
        size if size <= rest => (size, 0),
        size if size >= PLACEHOLDER => (rest, 0),
        size => (rest, size - rest),
    })
}

/// Whether known chunks follow each other from `pos` to the very end.
fn only_chunks(input: &mut (impl Read + Seek), mut pos: u64, len: u64) -> io::Result<bool> {
    while pos < len {
        match bytes_at::<8>(input, pos)? {
            Some([a, b, c, d, size @ ..]) if KNOWN.contains(&&[a, b, c, d]) => {
                let size = u32::from_le_bytes(size);
                pos = next_chunk(input, pos + 8 + u64::from(size), size % 2 == 1)?;
            }
            _ => return Ok(false),
        }
    }
    Ok(pos <= len + 1)
}

fn check(mut wave: Wave) -> Result<Wave, String> {
    let fmt = &wave.fmt;
    let word = |at: usize| {
        fmt.get(at..at + 2)
            .map(|b| u16::from_le_bytes([b[0], b[1]]))
    };
    let (Some(tag), Some(channels), Some(low), Some(high)) = (word(0), word(2), word(4), word(6))
    else {
        return Err("WAV without a usable fmt chunk before its data".into());
    };
    // WAVE_FORMAT_EXTENSIBLE keeps the tag at the head of its GUID.
    wave.tag = if tag == 0xFFFE {
        word(24).unwrap_or(tag)
    } else {
        tag
    };
    wave.channels = channels;
    wave.rate = u32::from(high) << 16 | u32::from(low);
    if channels == 0 || channels > MAX_CHANNELS {
        return Err(format!(
            "{channels} channels in the header; wanted 1 to {MAX_CHANNELS}"
        ));
    }
    Ok(wave)
}

impl Wave {
    /// A clean header for the samples; sizes beyond 32 bits are written as unknown.
    pub fn header(&self) -> Vec<u8> {
        let pad = self.fmt.len() % 2;
        let before = 4 + 8 + self.fmt.len() + pad + 8;
        let size = |n: u64| u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes();
        // One unknown size makes the outer one unknown too.
        let riff = size(self.data_len.saturating_add(before as u64));
        let data = if riff == [0xFF; 4] {
            riff
        } else {
            size(self.data_len)
        };
        let mut head = Vec::with_capacity(before + 8);
        head.extend(b"RIFF");
        head.extend(riff);
        head.extend(b"WAVEfmt ");
        head.extend(size(self.fmt.len() as u64));
        head.extend(&self.fmt);
        head.resize(head.len() + pad, 0);
        head.extend(b"data");
        head.extend(data);
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn chunk(id: &[u8; 4], body: &[u8]) -> Vec<u8> {
        [&id[..], &(body.len() as u32).to_le_bytes(), body].concat()
    }

    fn fmt() -> Vec<u8> {
        chunk(
            b"fmt ",
            &[1, 0, 1, 0, 0x80, 0x3e, 0, 0, 0, 0x7d, 0, 0, 2, 0, 16, 0],
        )
    }

    fn wav(chunks: &[Vec<u8>]) -> Vec<u8> {
        [&b"RIFF\0\0\0\0WAVE"[..], &chunks.concat()].concat()
    }

    fn walk(bytes: Vec<u8>) -> Result<Wave, String> {
        let len = bytes.len() as u64;
        read(&mut Cursor::new(bytes), len).unwrap()
    }

    #[test]
    fn sizes_that_lie_become_the_bytes_that_are_there() {
        let with_size = |size: u32| {
            let mut data = chunk(b"data", &[7; 100]);
            data[4..8].copy_from_slice(&size.to_le_bytes());
            let wave = walk(wav(&[fmt(), data])).unwrap();
            (wave.data_start, wave.data_len, wave.missing)
        };
        for size in [100, 0, u32::MAX, 0x7FFF_FFFF] {
            assert_eq!(with_size(size), (44, 100, 0), "declared {size}");
        }
        assert_eq!(with_size(150), (44, 100, 50));
        assert_eq!(with_size(60), (44, 60, 0));
    }

    #[test]
    fn an_empty_data_chunk_before_metadata_stays_empty() {
        let file = wav(&[fmt(), chunk(b"data", &[]), chunk(b"LIST", b"INFO")]);
        assert_eq!(walk(file).unwrap().data_len, 0);
    }

    #[test]
    fn odd_chunks_are_read_with_and_without_their_pad_byte() {
        let junk = chunk(b"JUNK", &[0; 5]);
        let padded = [junk.clone(), vec![0]].concat();
        for (junk, start) in [(padded, 58), (junk, 57)] {
            let wave = walk(wav(&[junk, fmt(), chunk(b"data", &[1; 8])])).unwrap();
            assert_eq!((wave.data_start, wave.data_len), (start, 8));
        }
    }

    #[test]
    fn rf64_takes_the_size_from_ds64() {
        let mut ds64 = vec![0; 28];
        ds64[8] = 20;
        let mut data = chunk(b"data", &[3; 40]);
        data[4..8].fill(0xFF);
        let mut file = wav(&[chunk(b"ds64", &ds64), fmt(), data]);
        file[..4].copy_from_slice(b"RF64");
        assert_eq!(walk(file).unwrap().data_len, 20);
    }

    #[test]
    fn headers_without_sense_are_told_apart() {
        assert!(
            walk(wav(&[fmt()]))
                .unwrap_err()
                .contains("without a data chunk")
        );
        assert!(
            walk(wav(&[chunk(b"data", &[0; 4])]))
                .unwrap_err()
                .contains("fmt chunk")
        );
        let mut none = fmt();
        none[10] = 0;
        let err = walk(wav(&[none, chunk(b"data", &[0; 4])])).unwrap_err();
        assert!(err.starts_with("0 channels"), "{err}");
    }

    #[test]
    fn the_clean_header_reads_back_as_itself() {
        let wave = walk(wav(&[fmt(), chunk(b"data", &[1; 10])])).unwrap();
        let again = walk([wave.header(), vec![1; 10]].concat()).unwrap();
        assert_eq!(again, wave);
        let long = Wave {
            data_len: 5 << 30,
            ..wave
        };
        assert_eq!(long.header()[4..8], [0xFF; 4]);
        assert_eq!(long.header()[40..44], [0xFF; 4]);
    }
}
