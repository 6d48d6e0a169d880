//! The formats that sound is written in, and their names.

use std::{fmt, path::Path};

use crate::audio::{Error, Result, WavFormat};

/// A codec in its usual container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// RIFF WAVE.
    Wav(WavFormat),
    /// FLAC with 16 or 24 bits.
    Flac {
        /// Bits a sample.
        bits: u16,
    },
    /// MPEG layer III.
    Mp3,
    /// Opus in Ogg.
    Opus,
    /// Little-endian samples without any header.
    Pcm(WavFormat),
}

/// How sound is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AudioFormat {
    /// The codec.
    pub codec: Codec,
    /// Frames a second; `None` keeps the rate of the sound where the codec has it.
    pub rate: Option<u32>,
}

impl Default for AudioFormat {
    fn default() -> Self {
        AudioFormat {
            codec: Codec::Wav(WavFormat::Pcm16),
            rate: None,
        }
    }
}

/// Rates of MPEG 1, 2 and 2.5.
const MP3_RATES: [u32; 9] = [
    8000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000,
];

/// Rates of Opus.
const OPUS_RATES: [u32; 5] = [8000, 12_000, 16_000, 24_000, 48_000];

impl Codec {
    /// The names that [`Codec::named`] takes.
    pub const NAMES: [&'static str; 5] = ["wav", "flac", "mp3", "opus", "pcm"];

    /// The codec with a name, for samples of a kind; an error if it has no such samples.
    pub fn named(name: &str, samples: Option<WavFormat>) -> Result<Codec> {
        let form = samples.unwrap_or_default();
        let refuse = |wanted: &str| {
            Err(Error::Invalid(format!(
                "{name} has no samples of this kind; wanted {wanted}"
            )))
        };
        Ok(match name.to_ascii_lowercase().as_str() {
            "wav" | "wave" => Codec::Wav(form),
            "pcm" | "raw" => Codec::Pcm(form),
            "flac" => match form {
                WavFormat::Pcm16 => Codec::Flac { bits: 16 },
                WavFormat::Pcm24 => Codec::Flac { bits: 24 },
                _ => return refuse("s16 or s24"),
            },
            "mp3" if samples.is_none() => Codec::Mp3,
            "opus" | "ogg" | "oga" if samples.is_none() => Codec::Opus,
            "mp3" | "opus" | "ogg" | "oga" => return refuse("none, since it stores no samples"),
            _ => {
                let known = Self::NAMES.join(", ");
                return Err(Error::Invalid(format!(
                    "there is no audio format `{name}`; wanted one of {known}"
                )));
            }
        })
    }

    /// The name of the codec that the extension of a file stands for.
    pub fn name_by_extension(path: &Path) -> Option<&'static str> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "wav" | "wave" => "wav",
            "flac" => "flac",
            "mp3" => "mp3",
            "opus" | "ogg" | "oga" => "opus",
            "pcm" | "raw" => "pcm",
            _ => return None,
        })
    }

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Codec::Wav(_) => "wav",
            Codec::Flac { .. } => "flac",
            Codec::Mp3 => "mp3",
            Codec::Opus => "opus",
            Codec::Pcm(_) => "pcm",
        }
    }

    /// The MIME type, for servers.
    pub fn mime(self) -> &'static str {
        match self {
            Codec::Wav(_) => "audio/wav",
            Codec::Flac { .. } => "audio/flac",
            Codec::Mp3 => "audio/mpeg",
            Codec::Opus => "audio/ogg",
            Codec::Pcm(_) => "audio/pcm",
        }
    }

    /// The nearest rate that the codec has: `rate`, else the next above it, else its highest.
    pub fn rate(self, rate: u32) -> u32 {
        let rates: &[u32] = match self {
            Codec::Mp3 => &MP3_RATES,
            Codec::Opus => &OPUS_RATES,
            // 20 bits in the header, and no more than 16 bits of kHz in frames.
            Codec::Flac { .. } => return rate.min(655_350),
            Codec::Wav(_) | Codec::Pcm(_) => return rate,
        };
        let above = rates.iter().find(|known| **known >= rate);
        *above.unwrap_or(&48_000)
    }

    /// The most channels that it has.
    pub(super) fn channels(self) -> u16 {
        match self {
            Codec::Mp3 | Codec::Opus => 2,
            Codec::Flac { .. } => 8,
            Codec::Wav(_) | Codec::Pcm(_) => 64,
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
