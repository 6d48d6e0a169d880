//! What a file is before the demuxer sees it, and the words for what it is not.
use super::container::{
    caf, mkv, mp4, ogg, riff,
    sniff::{self, Kind},
    span::{Bytes, Span},
};
use super::decoder::{self, Decoder, Trim};
use super::{Error, Result};
use std::io::{self, Read, Seek};
use symphonia::core::{
    codecs::CodecParameters,
    errors::Error as SymphoniaError,
    formats::{
        FormatReader, Track, TrackType,
        well_known::{FORMAT_ID_ADTS, FORMAT_ID_CAF, FORMAT_ID_MP1, FORMAT_ID_MP2, FORMAT_ID_MP3},
    },
};

/// What the container said before the demuxer came.
#[derive(Default)]
pub struct Outline {
    /// The chunks of a WAV file.
    pub wave: Option<riff::Wave>,
    /// The header of an MP4 file.
    pub movie: Option<mp4::Movie>,
    /// The tracks of a Matroska file.
    pub mkv: mkv::Matroska,
}

impl Outline {
    /// Sniffs the input and reads what the demuxer will not; broken WAV headers are replaced.
    pub fn read(
        bytes: Box<dyn Bytes>,
        name: &str,
        warnings: &mut Vec<String>,
    ) -> Result<(Span, Outline)> {
        let read = |source| Error::Read {
            name: name.to_owned(),
            source,
        };
        let mut span = Span::whole(bytes).map_err(read)?;
        let len = span.len();
        if len == 0 {
            return Err(Error::Empty {
                name: name.to_owned(),
            });
        }
        let mut head = Vec::new();
        span.rewind().map_err(read)?;
        span.by_ref()
            .take(1024)
            .read_to_end(&mut head)
            .map_err(read)?;
        let mut outline = Outline::default();
        match sniff::sniff(&head) {
            Kind::NotAudio(found) => {
                return Err(Error::NotAudio {
                    name: name.to_owned(),
                    found: found.to_owned(),
                });
            }
            Kind::Unsupported(found) => {
                return Err(Error::Unsupported {
                    name: name.to_owned(),
                    found: found.to_owned(),
                });
            }
            Kind::Wave => span = outline.wave(span, name, warnings)?,
            kind => {
                if outline.survey(&mut span, kind).map_err(read)? {
                    warnings.push("the file was cut off: its end is missing".into());
                }
            }
        }
        span.rewind().map_err(read)?;
        Ok((span, outline))
    }

    /// Reads the chunks of a WAV file and gives its samples a clean header.
    fn wave(&mut self, mut span: Span, name: &str, warnings: &mut Vec<String>) -> Result<Span> {
        let name = || name.to_owned();
        let len = span.len();
        let wave = riff::read(&mut span, len)
            .map_err(|source| Error::Read {
                name: name(),
                source,
            })?
            .map_err(|found| Error::Damaged {
                name: name(),
                found,
            })?;
        if wave.missing > 0 {
            warnings.push(format!(
                "file ends early: {} of {} bytes of samples",
                wave.data_len,
                wave.data_len + wave.missing
            ));
        }
        // MPEG audio in a WAV wrapper: the demuxer for bare MPEG audio reads it.
        let mpeg = matches!(wave.tag, 0x50 | 0x55);
        let head = if mpeg { Vec::new() } else { wave.header() };
        let span = span.spliced(head, wave.data_start, wave.data_len);
        self.wave = Some(wave);
        Ok(span)
    }

    /// Reads the outline of any other container; whether its end is missing. The demuxers refuse
    /// sizes beyond the end of a cut file, so that those are shown to them corrected.
    fn survey(&mut self, span: &mut Span, kind: Kind) -> io::Result<bool> {
        let len = span.len();
        let patches = match kind {
            Kind::Mp4 => {
                self.movie = mp4::read(span, len)?;
                let cut = self.movie.as_ref().and_then(|m| m.cut);
                // Size 0 means "to the end".
                cut.map(|pos| (pos, vec![0; 4])).into_iter().collect()
            }
            Kind::Matroska => {
                self.mkv = mkv::read(span, len)?;
                // The directory of a cut file points beyond its end.
                span.set_seekable(self.mkv.cut.is_empty());
                self.mkv.cut.clone()
            }
            Kind::Caf => caf::cut(span, len)?.into_iter().collect(),
            Kind::Ogg => return Ok(!ogg::has_end(span, len)?),
            Kind::Aiff(stated) => {
                span.set_seekable(stated <= len);
                return Ok(stated > len);
            }
            _ => Vec::new(),
        };
        let cut = !patches.is_empty();
        span.patch(patches);
        Ok(cut)
    }

    /// Frames to drop at both ends of a track beyond what the decoder drops by itself.
    pub fn trim(&self, track: &Track, decoder: &Decoder) -> Trim {
        let rate = decoder.rate;
        let mut trim = Trim {
            start: decoder.pre_skip,
            ..Trim::default()
        };
        let entry = |m: &mp4::Movie| m.tracks.iter().position(|t| t.id == track.id);
        if let Some((movie, at)) = self.movie.as_ref().and_then(|m| Some((m, entry(m)?))) {
            let (start, keep) = movie.trim(&movie.tracks[at], rate);
            trim.start = start.max(decoder.pre_skip);
            trim.keep = keep;
        }
        if let Some(entry) = self
            .mkv
            .tracks
            .iter()
            .find(|t| t.number == u64::from(track.id))
        {
            let frames = |ns| super::container::rescale(ns, rate.into(), 1_000_000_000);
            if decoder.pre_skip == 0 {
                trim.start = frames(entry.delay_ns);
            }
            // More than a second of padding is no padding.
            trim.end = Some(frames(entry.padding_ns))
                .filter(|&n| n <= rate.into())
                .unwrap_or(0);
        }
        // Block codecs in WAV fill their last block; `fact` has the true count.
        if let Some(wave) = self.wave.as_ref().filter(|w| matches!(w.tag, 0x02 | 0x11)) {
            trim.keep = wave.fact.filter(|&frames| frames > 0).map(u64::from);
        }
        trim
    }

    /// The container's name for a track's codec.
    fn codec(&self) -> Option<String> {
        let sound = |t: &&mp4::Mp4Track| &t.kind == b"soun";
        let movie = self
            .movie
            .as_ref()
            .and_then(|m| m.tracks.iter().find(sound));
        movie
            .map(|t| decoder::four_cc_name(t.codec))
            .or_else(|| {
                self.mkv
                    .tracks
                    .iter()
                    .find(|t| t.kind == 2)
                    .map(|t| t.codec.clone())
            })
            .or_else(|| {
                self.wave
                    .as_ref()
                    .map(|w| format!("WAV format tag {:#06x}", w.tag))
            })
    }
}

/// The first audio track with a known codec, and the frames it promises.
pub fn pick(format: &dyn FormatReader, outline: &Outline) -> Option<(Track, Option<u64>)> {
    let track = format.first_track_known_codec(TrackType::Audio)?.clone();
    let rate = match &track.codec_params {
        Some(CodecParameters::Audio(audio)) => audio.sample_rate.unwrap_or(0),
        _ => 0,
    };
    let kind = format.format_info().format;
    // Without an encoder's note the length of a bare MPEG stream is an estimate.
    let bare = [FORMAT_ID_MP1, FORMAT_ID_MP2, FORMAT_ID_MP3, FORMAT_ID_ADTS].contains(&kind);
    // Fragmented movies state a length of 0.
    let live = outline.movie.is_some();
    let frames = track
        .num_frames
        .or_else(|| media_seconds(format, Some(&track)).map(|s| (s * f64::from(rate)) as u64))
        .filter(|&n| (n > 0 || !live) && (!bare || track.delay.is_some()));
    // CAF writers count the last packet as full; ALAC packs 4096 frames.
    let caf = kind == FORMAT_ID_CAF;
    let frames = frames.map(|n| {
        if caf && n > 0 {
            n.saturating_sub(4095).max(1)
        } else {
            n
        }
    });
    Some((track, frames))
}

/// Length in seconds that a track states, or the file as a whole.
pub fn media_seconds(format: &dyn FormatReader, track: Option<&Track>) -> Option<f64> {
    let (base, duration) = match track {
        Some(track) => track.time_base.zip(track.duration),
        None => format
            .media_info()
            .time_base
            .zip(format.media_info().duration),
    }?;
    Some(duration.get() as f64 * f64::from(base.numer.get()) / f64::from(base.denom.get()))
}

/// The error for a file without a track that could be decoded.
pub fn no_track(format: &dyn FormatReader, outline: &Outline, name: &str) -> Error {
    let name = name.to_owned();
    let sound = format
        .tracks()
        .iter()
        .any(|t| t.track_type() == Some(TrackType::Audio))
        || outline
            .movie
            .as_ref()
            .is_some_and(|m| m.tracks.iter().any(|t| &t.kind == b"soun"))
        || outline.mkv.tracks.iter().any(|t| t.kind == 2);
    if sound {
        let found = outline.codec().unwrap_or_else(|| "an unknown codec".into());
        return Error::Unsupported {
            name,
            found: format!("audio coded as {found}"),
        };
    }
    let video = format
        .tracks()
        .iter()
        .filter(|t| t.track_type() == Some(TrackType::Video))
        .count();
    let found = format!(
        "{} with {} tracks, {video} of them video",
        format.format_info().long_name,
        format.tracks().len()
    );
    Error::NoAudioTrack { name, found }
}

/// Turns a demuxer's refusal into one of ours.
pub fn refused(name: String, outline: &Outline, error: &SymphoniaError) -> Error {
    match (error, outline) {
        (
            _,
            Outline {
                wave: Some(wave), ..
            },
        ) => {
            let found = format!(
                "WAV with format tag {:#06x}, {} channels, {} Hz ({error})",
                wave.tag, wave.channels, wave.rate
            );
            Error::Unsupported { name, found }
        }
        (SymphoniaError::Unsupported("core (probe): no suitable format reader found"), _) => {
            Error::NotAudio {
                name,
                found: "unknown binary data".into(),
            }
        }
        (SymphoniaError::Unsupported("isomp4: missing moov atom"), _) => {
            let found = "MP4 without its index (moov): the recording was cut off".into();
            Error::Damaged { name, found }
        }
        (SymphoniaError::IoError(e), _) if e.kind() == io::ErrorKind::UnexpectedEof => {
            Error::Damaged {
                name,
                found: "it ends inside its header".into(),
            }
        }
        _ => Error::Damaged {
            name,
            found: error.to_string(),
        },
    }
}
