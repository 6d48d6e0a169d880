//! Sound into files and streams: wav, flac, mp3, opus, raw samples.
//!
//! An [`AudioWriter`] takes frames as they come. In a file the sizes are true when it is finished;
//! in a stream the headers say that the length is not known.

mod flac;
mod format;
mod mp3;
mod opus;
mod wav;

use std::{
    fs::File,
    io::{self, BufWriter, Seek, SeekFrom, Write},
    path::Path,
};

pub use format::{AudioFormat, Codec};

use super::{Audio, Error, Resampler, Result};

/// Turns frames into the bytes of one format.
trait Encode: Send {
    /// Appends the bytes for `samples`, interleaved; a format may keep some back.
    fn encode(&mut self, samples: &[f32], out: &mut Vec<u8>) -> Result<()>;

    /// Appends what is left.
    fn finish(&mut self, out: &mut Vec<u8>) -> Result<()>;

    /// Bytes to be written over earlier ones after the end, by their place.
    fn corrections(&self) -> Vec<(u64, Vec<u8>)> {
        Vec::new()
    }
}

/// Where the bytes go.
enum Sink {
    File(BufWriter<File>),
    Memory(Vec<u8>),
    Stream(Box<dyn Write + Send>),
}

/// Writes sound in one format, at the rate of its input or the nearest that the format has.
pub struct AudioWriter {
    encoder: Box<dyn Encode>,
    resampler: Option<Resampler>,
    sink: Sink,
    what: String,
    bytes: Vec<u8>,
    resampled: Vec<f32>,
}

impl AudioWriter {
    /// Creates or replaces a file. `rate` and `channels` are those of the samples that will come.
    pub fn create(
        path: impl AsRef<Path>,
        format: AudioFormat,
        rate: u32,
        channels: u16,
    ) -> Result<Self> {
        let what = path.as_ref().display().to_string();
        let file = File::create(path).map_err(|source| Error::Write {
            what: what.clone(),
            source,
        })?;
        Self::new(
            Sink::File(BufWriter::new(file)),
            format,
            rate,
            channels,
            what,
        )
    }

    /// Writes into an open file, from its start.
    pub fn file(
        file: File,
        what: &str,
        format: AudioFormat,
        rate: u32,
        channels: u16,
    ) -> Result<Self> {
        Self::new(
            Sink::File(BufWriter::new(file)),
            format,
            rate,
            channels,
            what.to_owned(),
        )
    }

    /// Writes to a stream, whose bytes are passed on after every call.
    pub fn stream(
        out: Box<dyn Write + Send>,
        what: &str,
        format: AudioFormat,
        rate: u32,
        channels: u16,
    ) -> Result<Self> {
        Self::new(Sink::Stream(out), format, rate, channels, what.to_owned())
    }

    fn new(
        sink: Sink,
        format: AudioFormat,
        rate: u32,
        channels: u16,
        what: String,
    ) -> Result<Self> {
        let most = format.codec.channels();
        if rate == 0 || channels == 0 || channels > most {
            return Err(Error::Invalid(format!(
                "cannot write {what} as {}: {channels} channels at {rate} Hz; wanted 1 to {most} channels",
                format.codec
            )));
        }
        let wanted = format.codec.rate(format.rate.unwrap_or(rate));
        let resampler = (wanted != rate)
            .then(|| Resampler::new(rate, wanted, channels))
            .transpose()?;
        let streams = matches!(sink, Sink::Stream(_));
        let mut bytes = Vec::new();
        let encoder: Box<dyn Encode> = match format.codec {
            Codec::Wav(form) => Box::new(wav::Wav::new(form, wanted, channels, &mut bytes)),
            Codec::Pcm(form) => Box::new(wav::Raw(form)),
            Codec::Flac { bits } => Box::new(flac::Flac::new(bits, wanted, channels, &mut bytes)?),
            Codec::Mp3 => Box::new(mp3::Mp3::new(wanted, channels, streams)),
            Codec::Opus => Box::new(opus::Opus::new(wanted, channels, streams, &mut bytes)?),
        };
        let mut writer = AudioWriter {
            encoder,
            resampler,
            sink,
            what,
            bytes,
            resampled: Vec::new(),
        };
        writer.pass_on()?;
        Ok(writer)
    }

    /// Appends interleaved frames.
    pub fn write(&mut self, samples: &[f32]) -> Result<()> {
        match &mut self.resampler {
            None => self.encoder.encode(samples, &mut self.bytes)?,
            Some(resampler) => {
                self.resampled.clear();
                resampler.push(samples, &mut self.resampled)?;
                self.encoder.encode(&self.resampled, &mut self.bytes)?;
            }
        }
        self.pass_on()
    }

    /// Writes what is left, and true sizes into files.
    pub fn finish(mut self) -> Result<()> {
        self.end().map(drop)
    }

    fn end(&mut self) -> Result<()> {
        if let Some(resampler) = &mut self.resampler {
            self.resampled.clear();
            resampler.finish(&mut self.resampled)?;
            self.encoder.encode(&self.resampled, &mut self.bytes)?;
        }
        self.encoder.finish(&mut self.bytes)?;
        self.pass_on()?;
        for (at, bytes) in self.encoder.corrections() {
            self.correct(at, &bytes)
                .map_err(|source| failed(&self.what, source))?;
        }
        match &mut self.sink {
            Sink::File(file) => file.flush().map_err(|source| failed(&self.what, source)),
            Sink::Memory(_) | Sink::Stream(_) => Ok(()),
        }
    }

    /// Writes over earlier bytes, where that can be done.
    fn correct(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        match &mut self.sink {
            Sink::File(file) => {
                file.seek(SeekFrom::Start(at))?;
                file.write_all(bytes)
            }
            Sink::Memory(memory) => {
                let at = at as usize;
                if let Some(place) = memory.get_mut(at..at + bytes.len()) {
                    place.copy_from_slice(bytes);
                }
                Ok(())
            }
            Sink::Stream(_) => Ok(()),
        }
    }

    fn pass_on(&mut self) -> Result<()> {
        let streams = matches!(self.sink, Sink::Stream(_));
        let out: &mut dyn Write = match &mut self.sink {
            Sink::File(file) => file,
            Sink::Memory(memory) => memory,
            Sink::Stream(out) => out,
        };
        let written = out
            .write_all(&self.bytes)
            .and_then(|()| if streams { out.flush() } else { Ok(()) });
        self.bytes.clear();
        written.map_err(|source| failed(&self.what, source))
    }
}

fn failed(what: &str, source: io::Error) -> Error {
    Error::Write {
        what: what.to_owned(),
        source,
    }
}

/// A clip as the bytes of a file in a format, with true sizes.
pub fn encoded(audio: &Audio, format: AudioFormat) -> Result<Vec<u8>> {
    let name = format.codec.name().to_owned();
    let mut writer = AudioWriter::new(
        Sink::Memory(Vec::new()),
        format,
        audio.rate,
        audio.channels,
        name,
    )?;
    writer.write(&audio.samples)?;
    writer.end()?;
    match writer.sink {
        Sink::Memory(bytes) => Ok(bytes),
        Sink::File(_) | Sink::Stream(_) => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests;
