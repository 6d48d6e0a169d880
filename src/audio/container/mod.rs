//! What we read of a container before the demuxer does: faults it cannot take, and the exact
//! start and end of the sound, which it does not apply.
pub mod caf;
pub mod mkv;
pub mod mp4;
pub mod ogg;
pub mod riff;
pub mod sniff;
pub mod span;

use std::io::{self, Read, Seek, SeekFrom};

/// Reads exactly `N` bytes at `pos`; `None` where the input ends before.
pub fn bytes_at<const N: usize>(
    input: &mut (impl Read + Seek),
    pos: u64,
) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    input.seek(SeekFrom::Start(pos))?;
    match input.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(e) => Err(e),
    }
}

/// `value * to / from`, rounded; 0 where `from` is 0.
pub fn rescale(value: u64, to: u64, from: u64) -> u64 {
    if from == 0 {
        return 0;
    }
    let scaled = (u128::from(value) * u128::from(to) + u128::from(from) / 2) / u128::from(from);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}
