//! WAV writing: whole files with true sizes (hound), and headers for streams of unknown length.
use super::{Audio, Error, Result};
use std::{
    fs::File,
    io::{self, BufWriter, Cursor, Seek, Write},
    path::Path,
};

/// How samples are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WavFormat {
    /// 16-bit integers.
    #[default]
    Pcm16,
    /// 24-bit integers.
    Pcm24,
    /// 32-bit integers.
    Pcm32,
    /// 32-bit floats, unclipped.
    F32,
}

impl WavFormat {
    /// Bits a sample.
    pub fn bits(self) -> u16 {
        match self {
            Self::Pcm16 => 16,
            Self::Pcm24 => 24,
            Self::Pcm32 | Self::F32 => 32,
        }
    }

    /// Appends samples as little-endian bytes, without any header. Integers are rounded and
    /// clipped at full scale; what is no number becomes 0.
    pub fn encode(self, samples: &[f32], out: &mut Vec<u8>) {
        match self {
            Self::Pcm16 => {
                out.extend(
                    samples
                        .iter()
                        .flat_map(|&s| (integer(s, 16) as i16).to_le_bytes()),
                );
            }
            Self::Pcm24 => {
                for &s in samples {
                    out.extend_from_slice(&integer(s, 24).to_le_bytes()[..3]);
                }
            }
            Self::Pcm32 => {
                out.extend(samples.iter().flat_map(|&s| integer(s, 32).to_le_bytes()));
            }
            Self::F32 => out.extend(samples.iter().flat_map(|s| s.to_le_bytes())),
        }
    }

    fn spec(self, rate: u32, channels: u16) -> hound::WavSpec {
        let sample_format = match self {
            Self::F32 => hound::SampleFormat::Float,
            _ => hound::SampleFormat::Int,
        };
        hound::WavSpec {
            channels,
            sample_rate: rate,
            bits_per_sample: self.bits(),
            sample_format,
        }
    }
}

/// A sample as an integer of 8 to 32 bits. A Rust cast takes NaN to 0 and clips the rest.
pub(super) fn integer(sample: f32, bits: u32) -> i32 {
    let full = 1i64 << (bits - 1);
    let value = (f64::from(sample) * full as f64).round() as i64;
    value.clamp(-full, full - 1) as i32
}

/// Writes frames as they come and puts the true sizes into the header at the end.
pub struct WavWriter<W: Write + Seek> {
    inner: hound::WavWriter<W>,
    format: WavFormat,
    what: String,
}

impl WavWriter<BufWriter<File>> {
    /// Creates or replaces a file.
    pub fn create(
        path: impl AsRef<Path>,
        rate: u32,
        channels: u16,
        format: WavFormat,
    ) -> Result<Self> {
        let what = path.as_ref().display().to_string();
        let file = File::create(path).map_err(|source| Error::Write {
            what: what.clone(),
            source,
        })?;
        Self::new(BufWriter::new(file), rate, channels, format, &what)
    }
}

impl<W: Write + Seek> WavWriter<W> {
    /// Writes to anything seekable; `what` names it in messages.
    pub fn new(out: W, rate: u32, channels: u16, format: WavFormat, what: &str) -> Result<Self> {
        if rate == 0 || channels == 0 {
            return Err(Error::Invalid(format!(
                "cannot write {what}: {channels} channels at {rate} Hz; wanted at least 1 of each"
            )));
        }
        let inner =
            hound::WavWriter::new(out, format.spec(rate, channels)).map_err(|e| failed(what, e))?;
        Ok(Self {
            inner,
            format,
            what: what.to_owned(),
        })
    }

    /// Appends interleaved frames.
    pub fn write(&mut self, samples: &[f32]) -> Result<()> {
        let bits = u32::from(self.format.bits());
        for &sample in samples {
            let written = match self.format {
                WavFormat::F32 => self.inner.write_sample(sample),
                _ => self.inner.write_sample(integer(sample, bits)),
            };
            written.map_err(|e| failed(&self.what, e))?;
        }
        Ok(())
    }

    /// Writes the sizes; without this call the file's header is not complete.
    pub fn finish(self) -> Result<()> {
        self.inner.finalize().map_err(|e| failed(&self.what, e))
    }
}

fn failed(what: &str, error: hound::Error) -> Error {
    let source = match error {
        hound::Error::IoError(source) => source,
        other => io::Error::other(other.to_string()),
    };
    Error::Write {
        what: what.to_owned(),
        source,
    }
}

/// Writes a clip to a file.
pub fn write_wav(path: impl AsRef<Path>, audio: &Audio, format: WavFormat) -> Result<()> {
    let mut out = WavWriter::create(path, audio.rate, audio.channels, format)?;
    out.write(&audio.samples)?;
    out.finish()
}

/// A clip as the bytes of a WAV file.
pub fn wav_bytes(audio: &Audio, format: WavFormat) -> Result<Vec<u8>> {
    let mut bytes = Cursor::new(Vec::new());
    let mut out = WavWriter::new(&mut bytes, audio.rate, audio.channels, format, "wav")?;
    out.write(&audio.samples)?;
    out.finish()?;
    Ok(bytes.into_inner())
}

/// A 44-byte header for a stream whose length is not known yet: both sizes are 0xFFFFFFFF, which
/// players take for "until the end". Samples follow as [`WavFormat::encode`] gives them.
pub fn stream_header(rate: u32, channels: u16, format: WavFormat) -> [u8; 44] {
    let tag: u16 = if format == WavFormat::F32 { 3 } else { 1 };
    let align = channels.saturating_mul(format.bits() / 8);
    let mut head = [0; 44];
    let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0");
    put(20, &tag.to_le_bytes());
    put(22, &channels.to_le_bytes());
    put(24, &rate.to_le_bytes());
    put(28, &rate.saturating_mul(align.into()).to_le_bytes());
    put(32, &align.to_le_bytes());
    put(34, &format.bits().to_le_bytes());
    put(36, b"data\xff\xff\xff\xff");
    head
}

#[cfg(test)]
mod tests {
    use super::super::Reader;
    use super::*;

    const FORMATS: [(WavFormat, f32); 4] = [
        (WavFormat::Pcm16, 1.0 / 65_536.0),
        (WavFormat::Pcm24, 1e-7),
        (WavFormat::Pcm32, 1e-7),
        (WavFormat::F32, 0.0),
    ];

    fn sweep() -> Audio {
        let samples = (0..2000)
            .map(|i| (i as f32 * i as f32 * 1e-4).sin() * 0.9)
            .collect();
        Audio::new(samples, 22_050, 2).unwrap()
    }

    fn read(bytes: Vec<u8>) -> Audio {
        Audio::from_source(&mut Reader::from_bytes(bytes, "wav").unwrap(), None).unwrap()
    }

    #[test]
    fn every_format_reads_back_within_its_own_step() {
        for (format, tolerance) in FORMATS {
            let bytes = wav_bytes(&sweep(), format).unwrap();
            let riff = u32::from_le_bytes(bytes[4..8].try_into().unwrap());
            assert_eq!(riff as usize, bytes.len() - 8, "true size in the header");
            let back = read(bytes);
            assert_eq!((back.rate, back.channels, back.frames()), (22_050, 2, 1000));
            for (a, b) in back.samples.iter().zip(&sweep().samples) {
                assert!((a - b).abs() <= tolerance, "{format:?}: {a} for {b}");
            }
        }
    }

    #[test]
    fn a_stream_header_reads_until_the_end() {
        for (format, tolerance) in FORMATS {
            let mut bytes = stream_header(22_050, 2, format).to_vec();
            format.encode(&sweep().samples, &mut bytes);
            let back = read(bytes);
            assert_eq!((back.rate, back.channels, back.frames()), (22_050, 2, 1000));
            for (a, b) in back.samples.iter().zip(&sweep().samples) {
                assert!((a - b).abs() <= tolerance, "{format:?}: {a} for {b}");
            }
        }
    }

    #[test]
    fn integers_clip_at_full_scale() {
        assert_eq!(integer(1.0, 16), 32_767);
        assert_eq!(integer(-7.0, 16), -32_768);
        assert_eq!(integer(f32::NAN, 16), 0);
        assert_eq!(integer(f32::INFINITY, 24), 8_388_607);
        assert_eq!(integer(0.5, 24), 4_194_304);
        assert_eq!(integer(2.0, 32), i32::MAX);
        assert_eq!(integer(-1.0, 32), i32::MIN);
    }

    #[test]
    fn a_file_without_rate_is_refused_and_a_bad_folder_is_named() {
        let bad = Audio {
            samples: vec![],
            rate: 0,
            channels: 1,
        };
        assert!(wav_bytes(&bad, WavFormat::Pcm16).is_err());
        let err = write_wav("/no/such/folder/x.wav", &sweep(), WavFormat::Pcm16).unwrap_err();
        assert!(err.to_string().contains("/no/such/folder/x.wav"), "{err}");
    }
}
