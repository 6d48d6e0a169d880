//! The parts of an MP4 movie header that say where the sound starts and ends: edit lists, the
//! sample table's total, and iTunes' `iTunSMPB` note. Encoders put 1024 or more frames of run-in
//! before the sound; played back they would shift every time stamp.
use super::{bytes_at, rescale};
use std::io::{self, Read, Seek, SeekFrom};

/// Boxes looked at inside one parent; a file with more is hostile.
const MAX_BOXES: usize = 10_000;
/// Entries read of one table.
const MAX_ENTRIES: u32 = 1 << 22;

/// One track of a movie.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Mp4Track {
    /// Track number, as the demuxer uses it.
    pub id: u32,
    /// Handler: `soun`, `vide`, ...
    pub kind: [u8; 4],
    /// Code of the first sample description: `mp4a`, `alac`, ...
    pub codec: [u8; 4],
    /// Ticks a second of the fields below.
    pub timescale: u32,
    /// Sum of the sample table's durations; 0 in fragmented files.
    pub duration: u64,
    /// Where the first edit starts in the media.
    pub start: u64,
    /// Length of that edit in movie ticks, 0 where unknown.
    pub edit: u64,
}

/// The tracks of a movie and what it says about its sound.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Movie {
    /// Ticks a second of [`Mp4Track::edit`].
    pub timescale: u32,
    /// All tracks, in file order.
    pub tracks: Vec<Mp4Track>,
    /// iTunes' note: frames to drop at the start, frames to keep after them.
    pub gapless: Option<(u64, u64)>,
    /// Place of the size of a media data box that reaches beyond the end of a cut file.
    pub cut: Option<u64>,
}

/// A box by name, and where its body starts and ends.
type Box4 = ([u8; 4], u64, u64);

/// Reads the movie header of `input` (`len` bytes); `None` if there is none.
pub fn read(input: &mut (impl Read + Seek), len: u64) -> io::Result<Option<Movie>> {
    let top = boxes(input, 0, len)?;
    let Some(&(_, start, end)) = top.iter().find(|b| &b.0 == b"moov") else {
        return Ok(None);
    };
    let mut movie = Movie::default();
    if let Some(&(_, body, _)) = top.last().filter(|b| &b.0 == b"mdat" && b.2 == len) {
        movie.cut = cut(input, body, len)?;
    }
    for (name, start, end) in boxes(input, start, end)? {
        match &name {
            b"mvhd" => movie.timescale = timescale(input, start)?,
            b"trak" => movie.tracks.push(track(input, start, end)?),
            b"udta" => movie.gapless = itunes(input, start, end)?,
            _ => {}
        }
    }
    Ok(Some(movie))
}

impl Movie {
    /// Frames to drop at the start of a track, and frames to keep after them where that is known.
    pub fn trim(&self, track: &Mp4Track, rate: u32) -> (u64, Option<u64>) {
        if let Some((start, keep)) = self.gapless {
            return (start, Some(keep));
        }
        let frames = |ticks| rescale(ticks, rate.into(), track.timescale.into());
        let start = frames(track.start);
        let table = (track.duration > track.start).then(|| frames(track.duration - track.start));
        let edit =
            (track.edit > 0).then(|| rescale(track.edit, rate.into(), self.timescale.into()));
        // The edit is rounded to movie ticks, often milliseconds; the table is exact. Only an edit
        // that is shorter by more than its own rounding cuts something off.
        let tick = rescale(1, rate.into(), self.timescale.into()) + 1;
        let keep = match (table, edit) {
            (Some(table), Some(edit)) if edit + tick < table => Some(edit),
            (Some(table), _) => Some(table),
            // Fragments: there is no table, so a rounded edit is no safe end.
            (None, _) => None,
        };
        (start, keep)
    }
}

/// Place of the size of the box whose body starts at `body`, if that size leads beyond `len`.
fn cut(input: &mut (impl Read + Seek), body: u64, len: u64) -> io::Result<Option<u64>> {
    let size = bytes_at::<4>(input, body - 8)?.map_or(0, u32::from_be_bytes);
    if bytes_at::<4>(input, body - 4)? == Some(*b"mdat") {
        return Ok((u64::from(size) > len - (body - 8)).then_some(body - 8));
    }
    let size = bytes_at::<8>(input, body - 8)?.map_or(0, u64::from_be_bytes);
    Ok((size > len - (body - 16)).then_some(body - 16))
}

/// The boxes between `start` and `end`.
fn boxes(input: &mut (impl Read + Seek), start: u64, end: u64) -> io::Result<Vec<Box4>> {
    let mut found = Vec::new();
    let mut pos = start;
    while pos + 8 <= end && found.len() < MAX_BOXES {
        let Some([a, b, c, d, name @ ..]) = bytes_at::<8>(input, pos)? else {
            break;
        };
        let (head, size) = match u32::from_be_bytes([a, b, c, d]) {
            0 => (8, end - pos),
            1 => match bytes_at::<8>(input, pos + 8)? {
                Some(long) => (16, u64::from_be_bytes(long)),
                None => break,
            },
            size => (8, u64::from(size)),
        };
        if size < head {
            break;
        }
        let next = pos.saturating_add(size);
        found.push((name, pos + head, next.min(end)));
        pos = next;
    }
    Ok(found)
}

/// The first box of a name inside a parent.
fn child(
    input: &mut (impl Read + Seek),
    (_, start, end): Box4,
    name: &[u8; 4],
) -> io::Result<Option<Box4>> {
    Ok(boxes(input, start, end)?.into_iter().find(|b| &b.0 == name))
}

/// Walks down a path of names.
fn descend(
    input: &mut (impl Read + Seek),
    from: Box4,
    path: &[&[u8; 4]],
) -> io::Result<Option<Box4>> {
    let mut at = Some(from);
    for name in path {
        at = match at {
            Some(parent) => child(input, parent, name)?,
            None => None,
        };
    }
    Ok(at)
}

/// The time scale of an `mvhd` or `mdhd` box, whose version moves it.
fn timescale(input: &mut (impl Read + Seek), start: u64) -> io::Result<u32> {
    let version = bytes_at::<1>(input, start)?.map_or(0, |v| v[0]);
    let at = start + if version == 1 { 20 } else { 12 };
    Ok(bytes_at::<4>(input, at)?.map_or(0, u32::from_be_bytes))
}

fn track(input: &mut (impl Read + Seek), start: u64, end: u64) -> io::Result<Mp4Track> {
    let trak = (*b"trak", start, end);
    let mut track = Mp4Track::default();
    if let Some((_, at, _)) = child(input, trak, b"tkhd")? {
        let version = bytes_at::<1>(input, at)?.map_or(0, |v| v[0]);
        let at = at + if version == 1 { 20 } else { 12 };
        track.id = bytes_at::<4>(input, at)?.map_or(0, u32::from_be_bytes);
    }
    if let Some((_, at, _)) = descend(input, trak, &[b"mdia", b"mdhd"])? {
        track.timescale = timescale(input, at)?;
    }
    if let Some((_, at, _)) = descend(input, trak, &[b"mdia", b"hdlr"])? {
        track.kind = bytes_at::<4>(input, at + 8)?.unwrap_or_default();
    }
    if let Some(stbl) = descend(input, trak, &[b"mdia", b"minf", b"stbl"])? {
        if let Some((_, at, _)) = child(input, stbl, b"stsd")? {
            track.codec = bytes_at::<4>(input, at + 12)?.unwrap_or_default();
        }
        if let Some((_, at, end)) = child(input, stbl, b"stts")? {
            track.duration = total_duration(input, at, end)?;
        }
    }
    if let Some((_, at, end)) = descend(input, trak, &[b"edts", b"elst"])? {
        (track.start, track.edit) = first_edit(input, at, end)?;
    }
    Ok(track)
}

/// Sum of count x delta over the time-to-sample table.
fn total_duration(input: &mut (impl Read + Seek), start: u64, end: u64) -> io::Result<u64> {
    let count = bytes_at::<4>(input, start + 4)?
        .map_or(0, u32::from_be_bytes)
        .min(MAX_ENTRIES);
    let bytes = (u64::from(count) * 8).min(end.saturating_sub(start + 8));
    input.seek(SeekFrom::Start(start + 8))?;
    let mut table = io::BufReader::new(input.by_ref().take(bytes));
    let mut entry = [0; 8];
    let mut total = 0u64;
    while table.read_exact(&mut entry).is_ok() {
        let [a, b, c, d, delta @ ..] = entry;
        let samples = u64::from(u32::from_be_bytes([a, b, c, d]));
        total = total.saturating_add(samples * u64::from(u32::from_be_bytes(delta)));
    }
    Ok(total)
}

/// Media start and length of the first edit that plays something.
fn first_edit(input: &mut (impl Read + Seek), start: u64, end: u64) -> io::Result<(u64, u64)> {
    let version = bytes_at::<1>(input, start)?.map_or(0, |v| v[0]);
    let count = bytes_at::<4>(input, start + 4)?.map_or(0, u32::from_be_bytes);
    let width = if version == 1 { 20 } else { 12 };
    for at in (0..u64::from(count.min(64))).map(|i| start + 8 + i * width) {
        if at + width > end {
            break;
        }
        let (length, media) = if version == 1 {
            let Some(e) = bytes_at::<16>(input, at)? else {
                break;
            };
            let half = |i: usize| u64::from_be_bytes(e[i..i + 8].try_into().unwrap_or_default());
            (half(0), half(8) as i64)
        } else {
            let Some([a, b, c, d, media @ ..]) = bytes_at::<8>(input, at)? else {
                break;
            };
            (
                u32::from_be_bytes([a, b, c, d]).into(),
                i32::from_be_bytes(media).into(),
            )
        };
        // A negative start is a pause before the sound, not a part of it.
        if let Ok(media) = u64::try_from(media) {
            return Ok((media, length));
        }
    }
    Ok((0, 0))
}

/// iTunes' gapless note inside `udta`: hexadecimal words, of which the second is the delay and
/// the fourth the number of frames.
fn itunes(input: &mut (impl Read + Seek), start: u64, end: u64) -> io::Result<Option<(u64, u64)>> {
    let Some((_, meta, meta_end)) = child(input, (*b"udta", start, end), b"meta")? else {
        return Ok(None);
    };
    let Some(list) = child(input, (*b"meta", meta + 4, meta_end), b"ilst")? else {
        return Ok(None);
    };
    for note in boxes(input, list.1, list.2)?
        .into_iter()
        .filter(|b| &b.0 == b"----")
    {
        let name = child(input, note, b"name")?.map_or(0, |b| b.1);
        if bytes_at::<8>(input, name + 4)? != Some(*b"iTunSMPB") {
            continue;
        }
        let Some((_, at, end)) = child(input, note, b"data")? else {
            continue;
        };
        let mut text = String::new();
        input.seek(SeekFrom::Start(at + 8))?;
        // A note that is not text is no note.
        if input
            .by_ref()
            .take(end.saturating_sub(at + 8).min(256))
            .read_to_string(&mut text)
            .is_err()
        {
            continue;
        }
        let words: Vec<_> = text
            .split_whitespace()
            .map(|w| u64::from_str_radix(w, 16).unwrap_or(0))
            .collect();
        if let [_, delay, _, frames, ..] = words[..] {
            return Ok((frames > 0 && delay < 1 << 16).then_some((delay, frames)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bx(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
        [&((body.len() + 8) as u32).to_be_bytes(), &name[..], body].concat()
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_be_bytes()).collect()
    }

    /// A movie with a 1000 Hz clock and one 44.1 kHz track of 40 s behind 1024 frames of run-in.
    fn movie(edit_ms: u32, extra: &[u8]) -> Movie {
        let stbl = bx(
            b"stbl",
            &[
                bx(b"stsd", &[words(&[0, 1, 16]), b"mp4a".to_vec()].concat()),
                bx(b"stts", &words(&[0, 2, 1723, 1024, 1, 672])),
            ]
            .concat(),
        );
        let mdia = [
            bx(b"mdhd", &words(&[0, 0, 0, 44_100, 0])),
            bx(b"hdlr", &[words(&[0, 0]), b"soun".to_vec()].concat()),
            bx(b"minf", &stbl),
        ];
        let trak = [
            bx(b"tkhd", &words(&[0, 0, 0, 7])),
            bx(
                b"edts",
                &bx(
                    b"elst",
                    &words(&[0, 2, 90, u32::MAX, 1 << 16, edit_ms, 1024, 1 << 16]),
                ),
            ),
            bx(b"mdia", &mdia.concat()),
        ];
        let moov = [
            &bx(b"mvhd", &words(&[0, 0, 0, 1000])),
            &bx(b"trak", &trak.concat()),
            extra,
        ]
        .concat();
        let file = [bx(b"ftyp", b"M4A "), bx(b"moov", &moov)].concat();
        let len = file.len() as u64;
        read(&mut io::Cursor::new(file), len).unwrap().unwrap()
    }

    #[test]
    fn an_edit_list_cuts_the_run_in_and_keeps_the_exact_length() {
        let movie = movie(40_000, &[]);
        let track = &movie.tracks[0];
        assert_eq!((track.id, &track.kind, &track.codec), (7, b"soun", b"mp4a"));
        assert_eq!(movie.trim(track, 44_100), (1024, Some(1_764_000)));
    }

    #[test]
    fn a_shorter_edit_cuts_the_end() {
        let movie = movie(10_000, &[]);
        assert_eq!(movie.trim(&movie.tracks[0], 44_100), (1024, Some(441_000)));
    }

    #[test]
    fn media_data_beyond_the_end_is_found_by_its_size() {
        let cut = |media: &[u8]| {
            let file = [bx(b"moov", &bx(b"mvhd", &words(&[0; 4]))), media.to_vec()].concat();
            let len = file.len() as u64;
            read(&mut io::Cursor::new(file), len).unwrap().unwrap().cut
        };
        assert_eq!(cut(b"\0\0\0\x0cmdatabcd"), None);
        assert_eq!(cut(b"\0\0\0\x0dmdatabcd"), Some(32));
        assert_eq!(cut(b"\0\0\0\x01mdat\0\0\0\0\0\0\0\x14abcd"), None);
        assert_eq!(cut(b"\0\0\0\x01mdat\0\0\0\0\0\0\0\x15abcd"), Some(32));
        assert_eq!(cut(b"\0\0\0\0mdatabcd"), None);
    }

    #[test]
    fn the_itunes_note_wins() {
        let text = " 00000000 00000840 000001CA 00000000003F31F6 00000000";
        let note = bx(
            b"----",
            &[
                bx(b"mean", b"\0\0\0\0com.apple.iTunes"),
                bx(b"name", b"\0\0\0\0iTunSMPB"),
                bx(b"data", &[&words(&[1, 0]), text.as_bytes()].concat()),
            ]
            .concat(),
        );
        let meta = bx(b"meta", &[words(&[0]), bx(b"ilst", &note)].concat());
        let movie = movie(40_000, &bx(b"udta", &meta));
        assert_eq!(movie.gapless, Some((0x840, 0x3F31F6)));
    }

    #[test]
    fn cut_and_nonsense_files_give_no_movie() {
        for bytes in [
            &b""[..],
            b"\0\0\0\x02moov",
            b"\0\0\0\x01moov\0",
            &[0xFF; 64],
        ] {
            let len = bytes.len() as u64;
            assert_eq!(read(&mut io::Cursor::new(bytes), len).unwrap(), None);
        }
    }
}
