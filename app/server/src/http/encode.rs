//! Speech into the formats that requests name, whole or as it comes.

use std::{
    io::{self, Write},
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use audiocpp::audio::{Audio, AudioFormat, AudioWriter, Codec, WavFormat, encode::encoded};
use bytes::Bytes;

use super::{
    app::shown,
    error::{ApiError, Result},
};

/// Formats of `response_format`, the default first.
pub const FORMATS: [&str; 5] = ["mp3", "opus", "flac", "wav", "pcm"];

/// Clients take raw samples for 24 kHz mono, whatever the model speaks.
const PCM_RATE: u32 = 24_000;

/// The format with a name; none is mp3.
pub fn format(name: Option<&str>) -> Result<AudioFormat> {
    let name = name.unwrap_or(FORMATS[0]);
    let rate = (name == "pcm").then_some(PCM_RATE);
    let codec = match name {
        "mp3" => Codec::Mp3,
        "opus" => Codec::Opus,
        "flac" => Codec::Flac { bits: 16 },
        "wav" => Codec::Wav(WavFormat::Pcm16),
        "pcm" => Codec::Pcm(WavFormat::Pcm16),
        other => {
            return Err(ApiError::unsupported(
                "response_format",
                format!(
                    "`response_format` is `{}`, wanted one of {}",
                    shown(other),
                    FORMATS.join(", ")
                ),
            ));
        }
    };
    Ok(AudioFormat { codec, rate })
}

/// Whether the head of a file in this format tells its length, so that a file made in a stream is
/// less than one made whole.
pub fn tells_length(format: AudioFormat) -> bool {
    matches!(format.codec, Codec::Wav(_) | Codec::Flac { .. })
}

/// Frames a second of what is written for sound of `rate`.
pub fn written_rate(format: AudioFormat, rate: u32) -> u32 {
    format.codec.rate(format.rate.unwrap_or(rate))
}

/// The channels that a format is given: raw samples are mono by agreement.
fn fitting(format: AudioFormat, audio: Audio) -> Audio {
    match format.codec {
        Codec::Pcm(_) if audio.channels > 1 => audio.to_mono(),
        _ => audio,
    }
}

/// A clip as a file with true sizes.
pub async fn whole(audio: Audio, format: AudioFormat) -> Result<Bytes> {
    let made = tokio::task::spawn_blocking(move || encoded(&fitting(format, audio), format)).await;
    let bytes = made.map_err(|_| broken(&"the encoder ended"))?;
    bytes.map(Bytes::from).map_err(|error| broken(&error))
}

fn broken(error: &dyn std::fmt::Display) -> ApiError {
    ApiError::internal(format!("the sound could not be encoded: {error}"))
}

/// Bytes on their way from a writer to a body.
#[derive(Clone, Default)]
struct Pipe(Arc<Mutex<Vec<u8>>>);

impl Pipe {
    fn take(&self) -> Bytes {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        mem::take(&mut *bytes).into()
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes one file out of sound that comes in parts; every answer has its own.
pub struct StreamEncoder {
    writer: AudioWriter,
    pipe: Pipe,
    format: AudioFormat,
}

impl StreamEncoder {
    /// Begins a file for sound like `first`.
    pub fn new(format: AudioFormat, first: &Audio) -> Result<Self> {
        let pipe = Pipe::default();
        let channels = match format.codec {
            Codec::Pcm(_) => 1,
            _ => first.channels,
        };
        let out = Box::new(pipe.clone());
        let writer = AudioWriter::stream(out, "the answer", format, first.rate, channels);
        Ok(StreamEncoder {
            writer: writer.map_err(|error| broken(&error))?,
            pipe,
            format,
        })
    }

    /// The bytes that `audio` completes; encoders keep some back.
    pub async fn push(mut self, audio: Audio) -> Result<(Self, Bytes)> {
        let made = tokio::task::spawn_blocking(move || {
            let written = self.writer.write(&fitting(self.format, audio).samples);
            written.map(|()| {
                let bytes = self.pipe.take();
                (self, bytes)
            })
        });
        let made = made.await.map_err(|_| broken(&"the encoder ended"))?;
        made.map_err(|error| broken(&error))
    }

    /// The last bytes.
    pub async fn finish(self) -> Result<Bytes> {
        let made =
            tokio::task::spawn_blocking(move || self.writer.finish().map(|()| self.pipe.take()));
        let made = made.await.map_err(|_| broken(&"the encoder ended"))?;
        made.map_err(|error| broken(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn raw_samples_are_24_khz_mono_whatever_comes() {
        let audio = Audio::new(vec![0.25; 2 * 48_000], 48_000, 2).unwrap();
        let format = format(Some("pcm")).unwrap();
        let whole = whole(audio.clone(), format).await.unwrap();
        assert_eq!(whole.len(), 2 * 24_000);
        let encoder = StreamEncoder::new(format, &audio).unwrap();
        let (encoder, first) = encoder.push(audio).await.unwrap();
        assert!(
            first.len() > 40_000,
            "sound leaves before the end: {}",
            first.len()
        );
        let last = encoder.finish().await.unwrap();
        assert_eq!(first.len() + last.len(), 2 * 24_000);
    }

    #[test]
    fn unknown_formats_are_answered_with_ours() {
        let error = format(Some("aac")).unwrap_err();
        assert_eq!(error.param.as_deref(), Some("response_format"));
        assert!(
            error.message.contains("mp3, opus, flac, wav, pcm"),
            "{}",
            error.message
        );
        assert_eq!(format(None).unwrap().codec, Codec::Mp3);
    }
}
