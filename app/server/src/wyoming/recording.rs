//! Sound that a client sends, kept in a file until it is complete.

use std::path::Path;

use audiocpp::{
    audio::{RATES, WavFormat, stream_header},
    engine::{Error, ErrorClass},
};
use serde_json::Value;
use tempfile::TempPath;
use tokio::{fs::File, io::AsyncWriteExt};

use super::{fault::Fault, frame::Event};

/// Most channels that a client may send.
const MAX_CHANNELS: u64 = 8;

/// How samples lie in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    rate: u32,
    samples: WavFormat,
    channels: u16,
}

impl Layout {
    /// What `event` says: `rate`, `width` in bytes and `channels`.
    ///
    /// # Errors
    /// A field that is missing, or that asks for what cannot be read.
    pub fn of(event: &Event) -> Result<Layout, Error> {
        let field = |name: &str| {
            let value = event.data.get(name).and_then(Value::as_u64);
            value.ok_or_else(|| {
                Error::bad_input(format!("`{}` has no whole number `{name}`", event.kind))
            })
        };
        let (rate, width, channels) = (field("rate")?, field("width")?, field("channels")?);
        let samples = match width {
            2 => WavFormat::Pcm16,
            3 => WavFormat::Pcm24,
            4 => WavFormat::Pcm32,
            _ => {
                return Err(Error::bad_input(format!(
                    "samples of {width} bytes, wanted integers of 2, 3 or 4"
                )));
            }
        };
        let rate = u32::try_from(rate).ok().filter(|r| RATES.contains(r));
        let rate = rate.ok_or_else(|| {
            Error::bad_input(format!(
                "a rate outside {} to {} Hz",
                RATES.start(),
                RATES.end()
            ))
        })?;
        if !(1..=MAX_CHANNELS).contains(&channels) {
            return Err(Error::bad_input(format!(
                "{channels} channels, wanted 1 to {MAX_CHANNELS}"
            )));
        }
        Ok(Layout {
            rate,
            samples,
            channels: channels as u16,
        })
    }

    /// Bytes of one sample of every channel.
    fn frame(self) -> u64 {
        u64::from(self.samples.bits() / 8) * u64::from(self.channels)
    }
}

/// A recording that grows.
#[derive(Debug)]
pub struct Recording {
    layout: Layout,
    file: File,
    path: TempPath,
    bytes: u64,
    max_seconds: f64,
}

impl Recording {
    /// An empty recording in folder `spool` that may become `max_seconds` long.
    ///
    /// # Errors
    /// The file cannot be made.
    pub async fn begin(layout: Layout, spool: &Path, max_seconds: f64) -> Result<Self, Fault> {
        let made = tempfile::Builder::new()
            .prefix("wyoming-")
            .suffix(".wav")
            .tempfile_in(spool)
            .map_err(|error| Error::file(spool, &error))?;
        let (file, path) = made.into_parts();
        let mut file = File::from_std(file);
        let header = stream_header(layout.rate, layout.channels, layout.samples);
        let written = file.write_all(&header).await;
        written.map_err(|error| Error::file(&path, &error))?;
        Ok(Recording {
            layout,
            file,
            path,
            bytes: 0,
            max_seconds,
        })
    }

    /// Adds the sound of `chunk`, which has to lie as the recording began.
    ///
    /// # Errors
    /// Another layout, too much sound, a full disk.
    pub async fn push(&mut self, chunk: &Event) -> Result<(), Fault> {
        let says_layout = chunk.data.contains_key("rate");
        if says_layout && Layout::of(chunk)? != self.layout {
            return Err(Error::bad_input("rate, width or channels changed in a recording").into());
        }
        self.bytes += chunk.payload.len() as u64;
        let seconds = (self.bytes / self.layout.frame()) as f64 / f64::from(self.layout.rate);
        if seconds > self.max_seconds {
            return Err(Error::new(
                ErrorClass::TooLarge,
                format!("more than {} s of sound, the limit", self.max_seconds),
            )
            .into());
        }
        let written = self.file.write_all(&chunk.payload).await;
        written.map_err(|error| Error::file(&self.path, &error).into())
    }

    /// The finished file, which is removed with the path; `None` if there is no sound in it.
    ///
    /// # Errors
    /// A full disk.
    pub async fn finish(mut self) -> Result<Option<TempPath>, Fault> {
        let frames = self.bytes / self.layout.frame();
        let broken = |error| Error::file(&self.path, &error);
        self.file.flush().await.map_err(broken)?;
        if frames == 0 {
            return Ok(None);
        }
        if !self.bytes.is_multiple_of(self.layout.frame()) {
            let header = stream_header(1, 1, WavFormat::Pcm16).len() as u64;
            let whole = header + frames * self.layout.frame();
            self.file.set_len(whole).await.map_err(broken)?;
        }
        Ok(Some(self.path))
    }
}

#[cfg(test)]
mod tests {
    use audiocpp::audio::Audio;
    use serde_json::json;

    use super::*;

    fn chunk(width: u64, payload: Vec<u8>) -> Event {
        let data = json!({"rate": 16_000, "width": width, "channels": 1});
        Event::new("audio-chunk", data).with_payload(payload)
    }

    #[tokio::test]
    async fn chunks_become_a_file_that_the_engine_reads_and_that_goes_away() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::of(&chunk(3, Vec::new())).unwrap();
        let mut recording = Recording::begin(layout, folder.path(), 1.0).await.unwrap();
        // Half of full scale in 24 bits, cut across chunks, with a byte too many at the end.
        for part in [vec![0, 0], vec![0x40, 0, 0, 0xc0], vec![1]] {
            recording.push(&chunk(3, part)).await.unwrap();
        }
        let path = recording.finish().await.unwrap().unwrap();
        let audio = Audio::open(&path).unwrap();
        assert_eq!((audio.rate, audio.channels), (16_000, 1));
        assert_eq!(audio.samples, [0.5, -0.5]);
        drop(path);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn too_long_and_changed_sound_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::of(&chunk(2, Vec::new())).unwrap();
        let mut recording = Recording::begin(layout, folder.path(), 0.01).await.unwrap();
        recording.push(&chunk(2, vec![0; 320])).await.unwrap();
        let long = recording.push(&chunk(2, vec![0; 2])).await.unwrap_err();
        let said = long.event("1").unwrap();
        assert_eq!(said.text("code"), Some("too-large"));
        let other = recording.push(&chunk(4, Vec::new())).await.unwrap_err();
        assert_eq!(other.event("1").unwrap().text("code"), Some("bad-input"));
        assert!(recording.finish().await.unwrap().is_some());
    }

    #[test]
    fn layouts_that_cannot_be_read_are_named() {
        let said = |data| {
            let event = Event::new("audio-start", data);
            Layout::of(&event).unwrap_err().message
        };
        let with = |rate: u64, width: u64, channels: u64| json!({"rate": rate, "width": width, "channels": channels});
        assert!(said(json!({"rate": 16000})).contains("no whole number `width`"));
        assert!(said(with(16_000, 1, 1)).contains("samples of 1 bytes"));
        assert!(said(with(1 << 40, 2, 1)).contains("rate outside"));
        assert!(said(with(16_000, 2, 9)).contains("9 channels"));
    }
}
