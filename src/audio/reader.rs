//! Decoding: any supported file, buffer or pipe as an [`AudioSource`].
//!
//! Symphonia demuxes and decodes (libopus for Opus). Around it stand the things that users' files
//! need: sniffing by content, a clean header for broken WAV files, exact starts and ends
//! ([`super::container`]), damaged packets replaced by silence, and one clear error for the rest.
//!
//! AAC with implicitly signalled SBR plays its core (half rate, lower band); explicit HE-AAC is
//! refused.
use super::container::span::Bytes;
use super::decoder::{self, Decoder, Trim};
use super::outline::{Outline, media_seconds, no_track, pick, refused};
use super::{AudioSource, Error, RATES, Result};
use std::{
    fs::File,
    io::{self, Read, Seek},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};
use symphonia::core::{
    codecs::CodecParameters,
    errors::Error as SymphoniaError,
    formats::{FormatReader, Track},
    io::MediaSourceStream,
};

/// Packets in a row that may fail before the rest of the file is given up.
const MAX_FAILURES: u32 = 20_000;
/// Demuxer errors in a row before the rest of the file is given up.
const MAX_LOST: u32 = 16;

/// A decoded stream of interleaved frames at the file's own rate and channel count. Memory does
/// not depend on the length of the file.
pub struct Reader {
    name: String,
    format: Box<dyn FormatReader>,
    decoder: Decoder,
    track: u32,
    /// Frames that the track promises, after trimming.
    promised: Option<u64>,
    /// Length in seconds of all tracks together, where the track itself promises nothing.
    media_seconds: Option<f64>,
    trim: Trim,
    /// Decoded samples, of which those before `next` were handed out.
    ready: Vec<f32>,
    next: usize,
    /// Frames handed to `ready` so far.
    decoded: u64,
    ended: bool,
    warnings: Vec<String>,
}

impl Reader {
    /// Opens a file by path. Pipes and devices are first copied to an anonymous temporary file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let open = |source| Error::Open {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(open)?;
        let kind = file.metadata().map_err(open)?;
        if kind.is_dir() {
            return Err(open(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        let name = path.display().to_string();
        if kind.is_file() {
            Self::new(Box::new(file), name)
        } else {
            Self::spool(file, name)
        }
    }

    /// Decodes a file that is already in memory; `name` is used in messages only.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>, name: &str) -> Result<Self> {
        Self::new(Box::new(io::Cursor::new(bytes.into())), name.to_owned())
    }

    /// Copies a pipe to an anonymous temporary file, so that containers with their index at the
    /// end work, and decodes that. Bound the size with [`Read::take`].
    pub fn from_pipe(pipe: impl Read, name: &str) -> Result<Self> {
        Self::spool(pipe, name.to_owned())
    }

    fn spool(mut pipe: impl Read, name: String) -> Result<Self> {
        let copy = tempfile::tempfile().and_then(|mut file| {
            io::copy(&mut pipe, &mut file)?;
            file.rewind()?;
            Ok(file)
        });
        match copy {
            Ok(file) => Self::new(Box::new(file), name),
            Err(source) => Err(Error::Read { name, source }),
        }
    }

    fn new(bytes: Box<dyn Bytes>, name: String) -> Result<Self> {
        let mut warnings = Vec::new();
        let (span, outline) = Outline::read(bytes, &name, &mut warnings)?;
        let stream = MediaSourceStream::new(Box::new(span), Default::default());
        let format = match guarded(|| decoder::probe(stream)) {
            Ok(format) => format,
            Err(e) => return Err(refused(name, &outline, &e)),
        };
        let (track, promised) =
            pick(&*format, &outline).ok_or_else(|| no_track(&*format, &outline, &name))?;
        let decoder = match Decoder::new(&track) {
            Ok(decoder) => decoder,
            Err(found) => return Err(Error::Unsupported { name, found }),
        };
        let mut reader = Self {
            name,
            media_seconds: media_seconds(&*format, Some(&track))
                .or_else(|| media_seconds(&*format, None)),
            format,
            track: track.id,
            promised,
            trim: Trim::default(),
            ready: Vec::new(),
            next: 0,
            decoded: 0,
            ended: false,
            warnings,
            decoder,
        };
        reader.start(&track, &outline)?;
        Ok(reader)
    }

    /// Decodes up to the first frame, which fixes rate and channels, and sets the trim.
    fn start(&mut self, track: &Track, outline: &Outline) -> Result<()> {
        let mut first = Vec::new();
        while !self.ended && first.is_empty() {
            self.packet(&mut first);
        }
        if first.is_empty() {
            self.start_empty(track, outline)?;
        }
        if !RATES.contains(&self.decoder.rate) {
            let found = format!(
                "sample rate {} Hz; wanted {} to {} Hz",
                self.decoder.rate,
                RATES.start(),
                RATES.end()
            );
            return Err(Error::Damaged {
                name: self.name.clone(),
                found,
            });
        }
        self.trim = outline.trim(track, &self.decoder);
        // Opus streams count their run-in.
        let run_in = self.decoder.pre_skip;
        self.promised = self
            .trim
            .keep
            .or(self.promised.map(|p| p.saturating_sub(run_in)));
        self.accept(first);
        Ok(())
    }

    /// A file without a frame is fine where its header says how the silence would sound.
    fn start_empty(&mut self, track: &Track, outline: &Outline) -> Result<()> {
        let declared = match (&outline.wave, &track.codec_params) {
            (Some(wave), _) => Some((wave.rate, wave.channels)),
            (None, Some(CodecParameters::Audio(audio))) if self.promised == Some(0) => {
                let channels = audio.channels.as_ref().map(|c| c.count() as u16);
                audio.sample_rate.zip(channels)
            }
            _ => None,
        };
        match declared {
            Some((rate, channels)) if self.decoder.damaged == 0 => {
                (self.decoder.rate, self.decoder.channels) = (rate, channels);
                Ok(())
            }
            _ => Err(Error::NoFrames {
                name: self.name.clone(),
                found: self.decoder.verdict(),
            }),
        }
    }

    /// Decodes the next packet of the track into `out`; sets `ended` when there is none.
    fn packet(&mut self, out: &mut Vec<f32>) {
        let mut lost = 0;
        while lost < MAX_LOST && self.decoder.failures < MAX_FAILURES {
            match guarded(|| self.format.next_packet()) {
                Ok(Some(packet)) if packet.track_id != self.track => lost = 0,
                Ok(Some(packet)) => {
                    self.decoder.decode(&packet, out);
                    return;
                }
                Ok(None) => return self.end(),
                // Streams without a stated length end like this, after any number of frames.
                Err(SymphoniaError::IoError(e)) if e.kind() == io::ErrorKind::UnexpectedEof => {
                    return self.end();
                }
                Err(SymphoniaError::IoError(e)) => {
                    self.warnings.push(format!("reading stopped: {e}"));
                    return self.end();
                }
                Err(SymphoniaError::ResetRequired) => {
                    if !self.next_link() {
                        return self.end();
                    }
                }
                Err(e) => {
                    self.decoder.note(&e);
                    lost += 1;
                }
            }
        }
        self.warnings.push(format!(
            "the rest is unreadable: {}",
            self.decoder.verdict()
        ));
        self.end();
    }

    /// Goes on with the next link of a chained stream, if it sounds like the one before.
    fn next_link(&mut self) -> bool {
        let next = pick(&*self.format, &Outline::default());
        let Some((track, _)) = next else { return false };
        match Decoder::new(&track) {
            Ok(mut decoder) => {
                decoder.follow(&self.decoder);
                self.trim.start += decoder.pre_skip;
                self.track = track.id;
                self.decoder = decoder;
                true
            }
            Err(found) => {
                self.warnings
                    .push(format!("the next part of the stream is {found}: left out"));
                false
            }
        }
    }

    fn end(&mut self) {
        self.ended = true;
        // Some containers count the run-in and padding that the decoder has dropped.
        let decoded = self.decoded + self.decoder.dropped;
        if let Some(promised) = self.promised.filter(|&p| p > decoded && decoded > 0) {
            let seconds = |frames: u64| frames as f64 / f64::from(self.decoder.rate.max(1));
            let (have, want) = (seconds(decoded), seconds(promised));
            if want - have > 0.02 {
                let text = format!("parts of the file are missing: {have:.2} s of {want:.2} s");
                self.warnings.push(text);
            }
        }
    }

    /// Applies the trim to decoded samples and makes the rest ready.
    fn accept(&mut self, samples: Vec<f32>) {
        let width = usize::from(self.decoder.channels);
        let frames = (samples.len() / width) as u64;
        let skip = frames.min(self.trim.start);
        self.trim.start -= skip;
        let mut take = frames - skip;
        if let Some(keep) = self.trim.keep {
            take = take.min(keep - self.decoded);
            self.ended |= self.decoded + take == keep;
        }
        self.decoded += take;
        let (from, to) = (skip as usize * width, (skip + take) as usize * width);
        if self.ready.is_empty() && from == 0 && to == samples.len() {
            self.ready = samples;
        } else {
            self.ready.extend_from_slice(&samples[from..to]);
        }
    }

    /// Frames that may be handed out: the container's padding is held back until the end, when
    /// it is known to be padding.
    fn available(&mut self) -> usize {
        let width = usize::from(self.decoder.channels);
        let frames = (self.ready.len() - self.next) / width;
        frames.saturating_sub(self.trim.end as usize)
    }
}

impl AudioSource for Reader {
    fn rate(&self) -> u32 {
        self.decoder.rate
    }

    fn channels(&self) -> u16 {
        self.decoder.channels
    }

    fn duration_hint(&self) -> Option<f64> {
        self.promised
            .map(|frames| frames as f64 / f64::from(self.decoder.rate))
            .or(self.media_seconds.filter(|&s| s > 0.0))
    }

    fn read(&mut self, out: &mut Vec<f32>, max_frames: usize) -> Result<usize> {
        let width = usize::from(self.decoder.channels);
        let mut done = 0;
        while done < max_frames {
            let available = self.available();
            if available == 0 {
                if self.ended {
                    break;
                }
                self.ready.drain(..self.next);
                self.next = 0;
                let mut samples = Vec::new();
                self.packet(&mut samples);
                self.accept(samples);
                continue;
            }
            let take = available.min(max_frames - done);
            out.extend_from_slice(&self.ready[self.next..self.next + take * width]);
            self.next += take * width;
            done += take;
        }
        Ok(done)
    }

    fn warnings(&mut self) -> Vec<String> {
        self.warnings.extend(self.decoder.warnings());
        std::mem::take(&mut self.warnings)
    }
}

/// Runs foreign code over hostile bytes: a panic there is damage to the file, not to the program.
fn guarded<T>(
    run: impl FnOnce() -> symphonia::core::errors::Result<T>,
) -> symphonia::core::errors::Result<T> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or(Err(SymphoniaError::DecodeError(
        "the demuxer gave up on these bytes",
    )))
}
