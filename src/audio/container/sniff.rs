//! What the first bytes say. The content decides, never the file name.

/// How the input is to be treated.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    /// RIFF, RF64 or BW64 with a WAVE form.
    Wave,
    /// ISO base media: mp4, m4a, mov.
    Mp4,
    /// Matroska or WebM.
    Matroska,
    /// Ogg.
    Ogg,
    /// Core Audio.
    Caf,
    /// AIFF or AIFF-C, with the size that it states for the whole file.
    Aiff(u64),
    /// Anything else: the demuxers look for themselves.
    Other,
    /// Plainly no sound; says what it looks like.
    NotAudio(&'static str),
    /// Sound or video that we name but do not read.
    Unsupported(&'static str),
}

/// Signatures of files that people upload by mistake: offset, bytes, name with its article.
const NOT_AUDIO: &[(usize, &[u8], &str)] = &[
    (0, b"\x89PNG\r\n", "a PNG image"),
    (0, b"\xff\xd8\xff", "a JPEG image"),
    (0, b"GIF8", "a GIF image"),
    (8, b"WEBP", "a WebP image"),
    (0, b"%PDF", "a PDF document"),
    (0, b"PK\x03\x04", "a ZIP archive or an office document"),
    (0, b"\x1f\x8b", "a gzip archive"),
    (0, b"7z\xbc\xaf", "a 7-Zip archive"),
    (0, b"Rar!", "a RAR archive"),
    (0, b"\x7fELF", "a program"),
    (0, b"SQLite format 3", "a database"),
    (0, b"GGUF", "a GGUF model"),
    (0, b"MThd", "a MIDI score"),
];

/// Signatures of media that the reader does not decode.
const UNSUPPORTED: &[(usize, &[u8], &str)] = &[
    (0, b"#!AMR", "AMR"),
    (0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "ASF (WMA, WMV)"),
    (0, b"FLV\x01", "Flash video"),
    (0, b"MAC ", "Monkey's Audio"),
    (0, b"wvpk", "WavPack"),
    (0, b"TTA1", "True Audio"),
    (0, b"MPCK", "Musepack"),
    (0, b"DSD ", "DSD"),
    (0, b".RMF", "RealMedia"),
    (0, b".snd", "Sun AU"),
    (0, b"RIFX", "RIFX (big-endian WAV)"),
    (0, b"riff\x2e\x91\xcf\x11", "Sony Wave64"),
    (8, b"AVI ", "AVI video"),
    (4, b"moov", "a QuickTime movie without a file type"),
    (4, b"wide", "a QuickTime movie without a file type"),
    (4, b"mdat", "a QuickTime movie without a file type"),
    (
        0,
        b"\x1f\x43\xb6\x75",
        "a WebM fragment without its header (send the recording's first chunk too)",
    ),
    (
        4,
        b"moof",
        "an MP4 fragment without its header (send the initialisation segment too)",
    ),
    (
        4,
        b"styp",
        "an MP4 fragment without its header (send the initialisation segment too)",
    ),
];

/// Judges the first bytes (a few hundred are enough).
pub fn sniff(head: &[u8]) -> Kind {
    let find = |table: &[(usize, &[u8], &'static str)]| {
        let hit = |&&(at, magic, _): &&(usize, &[u8], _)| {
            head.get(at..at + magic.len())
                .is_some_and(|bytes| bytes == magic)
        };
        table.iter().find(hit).map(|&(_, _, name)| name)
    };
    if matches!(
        head,
        [b'R', b'I', b'F', b'F', ..] | [b'R', b'F', b'6', b'4', ..] | [b'B', b'W', b'6', b'4', ..]
    ) && head.get(8..12) == Some(b"WAVE")
    {
        return Kind::Wave;
    }
    if head.get(4..8) == Some(b"ftyp") {
        return Kind::Mp4;
    }
    if head.starts_with(b"\x1a\x45\xdf\xa3") {
        return Kind::Matroska;
    }
    if let [
        b'F',
        b'O',
        b'R',
        b'M',
        a,
        b,
        c,
        d,
        b'A',
        b'I',
        b'F',
        b'F' | b'C',
        ..,
    ] = *head
    {
        return Kind::Aiff(u64::from(u32::from_be_bytes([a, b, c, d])) + 8);
    }
    if head.starts_with(b"caff") {
        return Kind::Caf;
    }
    if head.starts_with(b"OggS") {
        return Kind::Ogg;
    }
    if let Some(found) = find(NOT_AUDIO) {
        return Kind::NotAudio(found);
    }
    if let Some(found) = find(UNSUPPORTED) {
        return Kind::Unsupported(found);
    }
    text(head).map_or(Kind::Other, Kind::NotAudio)
}

/// Names readable text; `None` for binary data.
fn text(head: &[u8]) -> Option<&'static str> {
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        // A character cut at the end of the sample is no objection.
        Err(e) if e.error_len().is_none() => std::str::from_utf8(&head[..e.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    if valid
        .chars()
        .any(|c| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\x0c'))
    {
        return None;
    }
    let start = valid
        .trim_start_matches('\u{feff}')
        .trim_start()
        .to_ascii_lowercase();
    Some(match start.as_bytes() {
        [] => "blank text",
        [b'{' | b'[', ..] => "JSON",
        _ if start.starts_with("<!doctype html") || start.contains("<html") => "an HTML page",
        [b'<', ..] => "XML or HTML",
        _ if start.starts_with("version https://git-lfs") => "a Git LFS pointer, not the file",
        _ if start.starts_with("#extm3u") => "a playlist",
        _ => "plain text",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_pictures_and_known_media_are_named() {
        let cases: &[(&[u8], Kind)] = &[
            (b"  <!DOCTYPE html><html>", Kind::NotAudio("an HTML page")),
            (b"\xef\xbb\xbf{\"error\":1}", Kind::NotAudio("JSON")),
            (b"not found", Kind::NotAudio("plain text")),
            ("d\u{e9}j\u{e0} v".as_bytes(), Kind::NotAudio("plain text")),
            (b"\x89PNG\r\n\x1a\n", Kind::NotAudio("a PNG image")),
            (b"#!AMR\n", Kind::Unsupported("AMR")),
            (b"RIFF\0\0\0\0WAVE", Kind::Wave),
            (b"RIFF\0\0\0\0AVI LIST", Kind::Unsupported("AVI video")),
            (b"\0\0\0\x20ftypM4A ", Kind::Mp4),
            (b"\x1a\x45\xdf\xa3", Kind::Matroska),
            (b"FORM\0\0\x01\0AIFF", Kind::Aiff(264)),
            (b"ID3\x04\0\0", Kind::Other),
            (b"OggS\0\x02", Kind::Ogg),
        ];
        for (head, want) in cases {
            assert_eq!(sniff(head), *want, "{}", String::from_utf8_lossy(head));
        }
    }
}
