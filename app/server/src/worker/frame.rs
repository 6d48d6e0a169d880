//! The frames between the server and its workers: a JSON head, and samples as they are in memory.
//!
//! ```text
//! "acf1" | bytes of head: u32 | bytes of sound: u32 | head | sound
//! ```
//! Numbers are little-endian. Both ends are one program on one machine, but a worker can be broken
//! in any way, so nothing in a frame is believed: room is made as bytes arrive, never by a size
//! that was only announced.

use std::io::{self, Read, Write};

use bytes::{Buf, BytesMut};
use serde::{Deserialize, Serialize};
use tokio_util::codec::{Decoder, Encoder};

use super::message::Message;

/// What every frame begins with.
const MARK: [u8; 4] = *b"acf1";
/// Bytes before the head.
const PREFIX: usize = 12;
/// Most bytes of a head: a transcript of a day with all its words.
pub const MAX_HEAD: usize = 64 << 20;
/// Most bytes of sound: an hour of stereo at 44.1 kHz, or three hours of speech at 24 kHz. Longer
/// results have to be streamed.
pub const MAX_SOUND: usize = 1280 << 20;
/// Bytes that are read at a time.
const BLOCK: usize = 64 << 10;

/// What is wrong with a frame.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// Bytes that begin no frame, such as a message that a library printed.
    #[error("not a frame: it begins with {0:02x?}, wanted {MARK:02x?}")]
    NoFrame([u8; 4]),
    /// It announces more than any frame may have.
    #[error("a frame announces a {part} of {found} bytes; the limit is {limit}")]
    TooLong {
        /// `head` or `sound`.
        part: &'static str,
        /// Bytes that it announces.
        found: usize,
        /// The most.
        limit: usize,
    },
    /// A head that is not a known message.
    #[error("a frame's head is no message: {0}")]
    Head(#[from] serde_json::Error),
    /// Sound that does not fit the head.
    #[error(
        "a frame's head speaks of {wanted} samples in {sounds} sounds, and it has {found} bytes for {places}"
    )]
    Sound {
        /// Samples by the head.
        wanted: usize,
        /// Lengths in the head.
        sounds: usize,
        /// Bytes of sound.
        found: usize,
        /// Sounds that the message has room for.
        places: usize,
    },
    /// The other end is gone, or the system failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// One frame as bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// JSON.
    pub head: BytesMut,
    /// Samples, one sound after the other.
    pub sound: BytesMut,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head<M> {
    /// Samples of each sound of the message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sounds: Vec<usize>,
    message: M,
}

impl Frame {
    /// Reads the message in the frame, its samples put back where they belong.
    ///
    /// # Errors
    /// [`FrameError::Head`], [`FrameError::Sound`].
    pub fn open<M: Message>(self) -> Result<M, FrameError> {
        let Head {
            sounds,
            mut message,
        }: Head<M> = serde_json::from_slice(&self.head)?;
        let places = message.sounds();
        let total = sounds.iter().try_fold(0usize, |sum, n| sum.checked_add(*n));
        let bytes = total.and_then(|total| total.checked_mul(size_of::<f32>()));
        let fits =
            bytes == Some(self.sound.len()) && (sounds.len() == places.len() || sounds.is_empty());
        if !fits {
            return Err(FrameError::Sound {
                wanted: total.unwrap_or(usize::MAX),
                sounds: sounds.len(),
                found: self.sound.len(),
                places: places.len(),
            });
        }
        let mut rest = self.sound.chunks_exact(size_of::<f32>());
        for (place, count) in places.into_iter().zip(sounds) {
            place.samples = rest.by_ref().take(count).map(sample).collect();
        }
        Ok(message)
    }
}

fn sample(bytes: &[u8]) -> f32 {
    bytes.try_into().map_or(0.0, f32::from_le_bytes)
}

/// A message as what goes over the wire: the bytes up to the sound, and the sounds.
struct Parts {
    start: Vec<u8>,
    sounds: Vec<Vec<f32>>,
}

impl Parts {
    fn of<M: Message>(mut message: M) -> Result<Parts, FrameError> {
        let sounds: Vec<Vec<f32>> = message
            .sounds()
            .into_iter()
            .map(|audio| std::mem::take(&mut audio.samples))
            .collect();
        let silent = sounds.iter().all(Vec::is_empty);
        let lengths = if silent {
            Vec::new()
        } else {
            sounds.iter().map(Vec::len).collect()
        };
        let head = serde_json::to_vec(&Head {
            sounds: lengths,
            message,
        })?;
        let bytes = sounds.iter().map(Vec::len).sum::<usize>() * size_of::<f32>();
        within("head", head.len(), MAX_HEAD)?;
        within("sound", bytes, MAX_SOUND)?;
        let mut start = Vec::with_capacity(PREFIX + head.len());
        start.extend(MARK);
        start.extend((head.len() as u32).to_le_bytes());
        start.extend((bytes as u32).to_le_bytes());
        start.extend(head);
        Ok(Parts { start, sounds })
    }
}

fn within(part: &'static str, found: usize, limit: usize) -> Result<usize, FrameError> {
    if found <= limit {
        return Ok(found);
    }
    Err(FrameError::TooLong { part, found, limit })
}

/// Samples as bytes, a block at a time.
fn blocks(samples: &[f32]) -> impl Iterator<Item = Vec<u8>> {
    let bytes = |block: &[f32]| block.iter().flat_map(|s| s.to_le_bytes()).collect();
    samples.chunks(BLOCK / size_of::<f32>()).map(bytes)
}

/// Writes one message and flushes.
///
/// # Errors
/// [`FrameError::TooLong`], before anything was written; [`FrameError::Io`].
pub fn write<M: Message>(out: &mut impl Write, message: M) -> Result<(), FrameError> {
    let parts = Parts::of(message)?;
    out.write_all(&parts.start)?;
    for block in parts.sounds.iter().flat_map(|sound| blocks(sound)) {
        out.write_all(&block)?;
    }
    out.flush()?;
    Ok(())
}

/// Cuts a stream of bytes into frames.
#[derive(Debug, Default)]
pub struct Frames {
    /// Bytes of head and sound of the frame whose beginning was read.
    open: Option<(usize, usize)>,
}

impl Decoder for Frames {
    type Item = Frame;
    type Error = FrameError;

    fn decode(&mut self, bytes: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        let (head, sound) = match self.open {
            Some(sizes) => sizes,
            None => match prefix(bytes)? {
                Some(sizes) => *self.open.insert(sizes),
                None => return Ok(None),
            },
        };
        if bytes.len() < head + sound {
            return Ok(None);
        }
        self.open = None;
        let head = bytes.split_to(head);
        let sound = bytes.split_to(sound);
        Ok(Some(Frame { head, sound }))
    }
}

/// Takes the prefix of a frame off `bytes`, if it is whole.
fn prefix(bytes: &mut BytesMut) -> Result<Option<(usize, usize)>, FrameError> {
    let Some((start, _)) = bytes.split_first_chunk::<PREFIX>() else {
        return Ok(None);
    };
    let [a, b, c, d, h0, h1, h2, h3, s0, s1, s2, s3] = *start;
    if [a, b, c, d] != MARK {
        return Err(FrameError::NoFrame([a, b, c, d]));
    }
    let size = |bytes| u32::from_le_bytes(bytes) as usize;
    let head = within("head", size([h0, h1, h2, h3]), MAX_HEAD)?;
    let sound = within("sound", size([s0, s1, s2, s3]), MAX_SOUND)?;
    bytes.advance(PREFIX);
    Ok(Some((head, sound)))
}

impl<M: Message> Encoder<M> for Frames {
    type Error = FrameError;

    fn encode(&mut self, message: M, out: &mut BytesMut) -> Result<(), FrameError> {
        let parts = Parts::of(message)?;
        out.extend_from_slice(&parts.start);
        for block in parts.sounds.iter().flat_map(|sound| blocks(sound)) {
            out.extend_from_slice(&block);
        }
        Ok(())
    }
}

/// Reads messages from a blocking stream.
pub struct Incoming<R> {
    stream: R,
    bytes: BytesMut,
    frames: Frames,
}

impl<R: Read> Incoming<R> {
    /// Messages of `stream`.
    pub fn new(stream: R) -> Self {
        Incoming {
            stream,
            bytes: BytesMut::new(),
            frames: Frames::default(),
        }
    }

    /// The next message; none once the stream has ended between two frames.
    ///
    /// # Errors
    /// [`FrameError`]; a stream that ends within a frame is [`FrameError::Io`].
    pub fn receive<M: Message>(&mut self) -> Result<Option<M>, FrameError> {
        let mut block = vec![0; BLOCK];
        loop {
            if let Some(frame) = self.frames.decode(&mut self.bytes)? {
                return frame.open().map(Some);
            }
            let count = match self.stream.read(&mut block) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            if count == 0 {
                let between = self.bytes.is_empty() && self.frames.open.is_none();
                let cut = io::Error::from(io::ErrorKind::UnexpectedEof);
                return if between { Ok(None) } else { Err(cut.into()) };
            }
            self.bytes.extend_from_slice(&block[..count]);
        }
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
