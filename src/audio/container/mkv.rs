//! The parts of a Matroska or WebM file that say where the sound starts and ends: each track's
//! codec delay, and the padding that the last block asks to discard.
use super::{bytes_at, span::Patch};
use std::io::{self, Read, Seek};

/// Elements looked at in one file; beyond that the end is taken as unknown.
const MAX_ELEMENTS: usize = 2_000_000;

const SEGMENT: u32 = 0x1853_8067;
const TRACKS: u32 = 0x1654_AE6B;
const TRACK_ENTRY: u32 = 0xAE;
const TRACK_NUMBER: u32 = 0xD7;
const TRACK_TYPE: u32 = 0x83;
const CODEC_ID: u32 = 0x86;
const CODEC_DELAY: u32 = 0x56AA;
const CLUSTER: u32 = 0x1F43_B675;
const BLOCK_GROUP: u32 = 0xA0;
const BLOCK: u32 = 0xA1;
const DISCARD_PADDING: u32 = 0x75A2;

/// One track of a Matroska file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MkvTrack {
    /// Track number, as the demuxer uses it.
    pub number: u64,
    /// 1 video, 2 audio, 17 subtitles.
    pub kind: u64,
    /// Codec name, such as `A_OPUS`.
    pub codec: String,
    /// Nanoseconds to drop at the start.
    pub delay_ns: u64,
    /// Nanoseconds to drop at the end.
    pub padding_ns: u64,
}

/// What a Matroska file says about its sound.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Matroska {
    /// All tracks, in file order.
    pub tracks: Vec<MkvTrack>,
    /// Sizes that lead beyond the end of a cut file, replaced by "unknown".
    pub cut: Vec<Patch>,
}

struct Element {
    id: u32,
    start: u64,
    /// End of the body; the end of the parent where the size is unknown.
    end: u64,
    sized: bool,
    /// Makes the size unknown where it leads beyond the parent.
    cut: Option<Patch>,
}

/// Reads the tracks of `input` (`len` bytes); none where there is no track list.
pub fn read(input: &mut (impl Read + Seek), len: u64) -> io::Result<Matroska> {
    let mut budget = MAX_ELEMENTS;
    let top = children(input, 0, len, &mut budget)?;
    let Some(segment) = top.into_iter().find(|e| e.id == SEGMENT) else {
        return Ok(Matroska::default());
    };
    let mut matroska = Matroska {
        tracks: Vec::new(),
        cut: segment.cut.into_iter().collect(),
    };
    let mut last = None;
    let mut pos = segment.start;
    while let Some(element) = element(input, pos, segment.end)? {
        if budget == 0 {
            return Ok(matroska);
        }
        budget -= 1;
        match element.id {
            TRACKS => {
                for entry in children(input, element.start, element.end, &mut budget)? {
                    if entry.id == TRACK_ENTRY {
                        matroska.tracks.push(track(input, &entry, &mut budget)?);
                    }
                }
            }
            // A cluster without a size is a live recording: no padding is ever written there.
            CLUSTER if !element.sized => return Ok(matroska),
            CLUSTER => {
                last = Some((element.start, element.end));
                matroska.cut.extend(element.cut);
            }
            _ => {}
        }
        pos = element.end;
    }
    if let Some((start, end)) = last {
        padding(input, start, end, &mut matroska.tracks, &mut budget)?;
    }
    Ok(matroska)
}

/// Notes the padding of the last cluster's block groups on their tracks.
fn padding(
    input: &mut (impl Read + Seek),
    start: u64,
    end: u64,
    tracks: &mut [MkvTrack],
    budget: &mut usize,
) -> io::Result<()> {
    for group in children(input, start, end, budget)? {
        if group.id != BLOCK_GROUP {
            continue;
        }
        let (mut number, mut discard) = (None, 0);
        for part in children(input, group.start, group.end, budget)? {
            match part.id {
                BLOCK => number = vint(input, part.start)?.map(|(value, _)| value),
                DISCARD_PADDING => discard = unsigned(input, &part)?,
                _ => {}
            }
        }
        // A negative value (top bit of its own width) would add frames: never written for audio.
        if let Some(track) = tracks.iter_mut().find(|t| Some(t.number) == number) {
            track.padding_ns = discard;
        }
    }
    Ok(())
}

fn track(
    input: &mut (impl Read + Seek),
    entry: &Element,
    budget: &mut usize,
) -> io::Result<MkvTrack> {
    let mut track = MkvTrack::default();
    for part in children(input, entry.start, entry.end, budget)? {
        match part.id {
            TRACK_NUMBER => track.number = unsigned(input, &part)?,
            TRACK_TYPE => track.kind = unsigned(input, &part)?,
            CODEC_DELAY => track.delay_ns = unsigned(input, &part)?,
            CODEC_ID => {
                let mut name = Vec::new();
                input.seek(io::SeekFrom::Start(part.start))?;
                input
                    .by_ref()
                    .take((part.end - part.start).min(64))
                    .read_to_end(&mut name)?;
                track.codec = String::from_utf8_lossy(&name)
                    .trim_end_matches('\0')
                    .to_owned();
            }
            _ => {}
        }
    }
    Ok(track)
}

/// The elements between `start` and `end`.
fn children(
    input: &mut (impl Read + Seek),
    start: u64,
    end: u64,
    budget: &mut usize,
) -> io::Result<Vec<Element>> {
    let mut found = Vec::new();
    let mut pos = start;
    while *budget > 0 {
        let Some(next) = element(input, pos, end)? else {
            break;
        };
        *budget -= 1;
        pos = next.end;
        found.push(next);
    }
    Ok(found)
}

/// The element at `pos`, if one with a body within `end` starts there.
fn element(input: &mut (impl Read + Seek), pos: u64, end: u64) -> io::Result<Option<Element>> {
    let Some(first) = bytes_at::<1>(input, pos)? else {
        return Ok(None);
    };
    let width = first[0].leading_zeros() as u64 + 1;
    if pos >= end || width > 4 {
        return Ok(None);
    }
    let Some(bytes) = up_to_8(input, pos, width)? else {
        return Ok(None);
    };
    let id = bytes as u32;
    let Some((size, size_width)) = vint(input, pos + width)? else {
        return Ok(None);
    };
    let start = pos + width + size_width;
    let sized = size != (1 << (7 * size_width)) - 1;
    let stated = if sized {
        start.saturating_add(size)
    } else {
        end
    };
    let cut = (stated > end).then(|| {
        // All bits behind the marker set.
        let mut unknown = vec![0xFF; size_width as usize];
        unknown[0] >>= size_width - 1;
        (pos + width, unknown)
    });
    let element = Element {
        id,
        start,
        end: stated.min(end),
        sized,
        cut,
    };
    Ok((start <= end).then_some(element))
}

/// A variable-length number without its marker, and its width in bytes.
fn vint(input: &mut (impl Read + Seek), pos: u64) -> io::Result<Option<(u64, u64)>> {
    let Some([first]) = bytes_at::<1>(input, pos)? else {
        return Ok(None);
    };
    let width = u64::from(first.leading_zeros()) + 1;
    if width > 8 {
        return Ok(None);
    }
    let value = up_to_8(input, pos, width)?;
    Ok(value.map(|v| (v & ((1 << (7 * width)) - 1), width)))
}

/// `width` bytes (at most 8) as one big-endian number.
fn up_to_8(input: &mut (impl Read + Seek), pos: u64, width: u64) -> io::Result<Option<u64>> {
    let mut bytes = Vec::with_capacity(8);
    input.seek(io::SeekFrom::Start(pos))?;
    input.by_ref().take(width.min(8)).read_to_end(&mut bytes)?;
    let whole = bytes.len() as u64 == width.min(8);
    Ok(whole.then(|| bytes.iter().fold(0, |value, &b| value << 8 | u64::from(b))))
}

/// The number in an element's body; 0 where it is empty.
fn unsigned(input: &mut (impl Read + Seek), element: &Element) -> io::Result<u64> {
    Ok(up_to_8(input, element.start, element.end - element.start)?.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn el(id: &[u8], body: &[u8]) -> Vec<u8> {
        [id, &[0x40, body.len() as u8], body].concat()
    }

    fn file(cluster_size: Option<u8>) -> Vec<u8> {
        let entry = [
            el(&[0xD7], &[1]),
            el(&[0x83], &[2]),
            el(&[0x86], b"A_OPUS"),
            el(&[0x56, 0xAA], &6_500_000u32.to_be_bytes()),
        ];
        let group = [
            el(&[0xA1], &[0x81, 0, 0, 0, 9]),
            el(&[0x75, 0xA2], &[0xCD, 0xFE, 0x60]),
        ];
        let mut cluster = el(&[0x1F, 0x43, 0xB6, 0x75], &el(&[0xA0], &group.concat()));
        if let Some(size) = cluster_size {
            cluster[4..6].copy_from_slice(&[0x7F, size]);
        }
        let tracks = el(&[0x16, 0x54, 0xAE, 0x6B], &el(&[0xAE], &entry.concat()));
        let mut segment = el(&[0x18, 0x53, 0x80, 0x67], &[tracks, cluster].concat());
        segment[4..6].copy_from_slice(&[0x7F, 0xFF]);
        [el(&[0x1A, 0x45, 0xDF, 0xA3], &[]), segment].concat()
    }

    #[test]
    fn delay_and_padding_belong_to_their_track() {
        let bytes = file(None);
        let len = bytes.len() as u64;
        let Matroska { tracks, cut } = read(&mut io::Cursor::new(bytes), len).unwrap();
        let want = MkvTrack {
            number: 1,
            kind: 2,
            codec: "A_OPUS".into(),
            delay_ns: 6_500_000,
            padding_ns: 13_500_000,
        };
        assert_eq!((&tracks[..], cut), (&[want][..], vec![]));
    }

    #[test]
    fn live_recordings_have_no_padding() {
        let bytes = file(Some(0xFF));
        let len = bytes.len() as u64;
        assert_eq!(
            read(&mut io::Cursor::new(bytes), len).unwrap().tracks[0].padding_ns,
            0
        );
    }

    #[test]
    fn cut_files_never_fail() {
        let whole = file(None);
        for cut in 0..whole.len() {
            let bytes = &whole[..cut];
            read(&mut io::Cursor::new(bytes), cut as u64).unwrap();
        }
    }

    #[test]
    fn sizes_beyond_the_end_are_made_unknown() {
        let mut bytes = file(None);
        let len = bytes.len() - 3;
        bytes.truncate(len);
        let segment = bytes
            .windows(4)
            .position(|w| w == [0x18, 0x53, 0x80, 0x67])
            .unwrap();
        // A stated size instead of the unknown one of the helper.
        bytes[segment + 4..segment + 6].copy_from_slice(&[0x40, 0xF0]);
        let cluster = bytes
            .windows(4)
            .position(|w| w == [0x1F, 0x43, 0xB6, 0x75])
            .unwrap();
        let got = read(&mut io::Cursor::new(bytes), len as u64).unwrap().cut;
        let unknown = |at: usize| (at as u64 + 4, vec![0x7F, 0xFF]);
        assert_eq!(got, [unknown(segment), unknown(cluster)]);
    }
}
