//! Every format is read back by a decoder of its own.

use super::*;
use crate::audio::{Reader, WavFormat};

/// A buffer that can still be read after it was given away.
struct Shared(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn tone(rate: u32, channels: u16, seconds: f64) -> Audio {
    let frames = (f64::from(rate) * seconds) as usize;
    let samples = (0..frames).flat_map(|i| {
        let t = i as f32 / rate as f32;
        (0..channels)
            .map(move |c| 0.6 * (std::f32::consts::TAU * (300.0 + 200.0 * f32::from(c)) * t).sin())
    });
    Audio::new(samples.collect(), rate, channels).unwrap()
}

fn format(codec: Codec) -> AudioFormat {
    AudioFormat { codec, rate: None }
}

const ALL: [Codec; 8] = [
    Codec::Wav(WavFormat::Pcm16),
    Codec::Wav(WavFormat::Pcm24),
    Codec::Wav(WavFormat::Pcm32),
    Codec::Wav(WavFormat::F32),
    Codec::Flac { bits: 16 },
    Codec::Flac { bits: 24 },
    Codec::Mp3,
    Codec::Opus,
];

fn read(bytes: Vec<u8>) -> Audio {
    Audio::from_source(&mut Reader::from_bytes(bytes, "test").unwrap(), None).unwrap()
}

/// Signal over error in decibels, after the best shift of up to a few frames.
fn quality(wanted: &Audio, found: &Audio) -> f64 {
    let (wanted, found) = (wanted.channel(0), found.channel(0));
    let n = wanted.len().min(found.len());
    let edge = n / 10;
    let power: f64 = wanted[edge..n - edge]
        .iter()
        .map(|s| f64::from(*s).powi(2))
        .sum();
    let error: f64 = (edge..n - edge)
        .map(|i| f64::from(wanted[i] - found[i]).powi(2))
        .sum();
    10.0 * (power / error.max(1e-12)).log10()
}

#[test]
fn every_format_keeps_rate_length_channels_and_sound() {
    for codec in ALL {
        for (rate, channels, seconds) in [(22_050, 1, 1.3), (24_000, 1, 0.71), (48_000, 2, 0.5)] {
            let audio = tone(rate, channels, seconds);
            let written = codec.rate(rate);
            let back = read(encoded(&audio, format(codec)).unwrap());
            let name = format!("{codec:?} at {rate}");
            // Opus is decoded at its own clock.
            let decoded = if codec == Codec::Opus {
                48_000
            } else {
                written
            };
            assert_eq!((back.rate, back.channels), (decoded, channels), "{name}");
            let wanted = audio.resampled(decoded).unwrap();
            let off = back.frames().abs_diff(wanted.frames());
            assert!(
                off <= if codec == Codec::Mp3 { 0 } else { 2 },
                "{name}: {} of {} frames",
                back.frames(),
                wanted.frames()
            );
            let least = match codec {
                Codec::Mp3 => 20.0,
                Codec::Opus => 15.0,
                _ => 80.0,
            };
            let quality = quality(&wanted, &back);
            assert!(quality > least, "{name}: {quality:.1} dB");
        }
    }
}

#[test]
fn a_file_has_true_sizes_and_a_stream_reads_until_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let audio = tone(24_000, 1, 1.0);
    for codec in ALL {
        let path = folder.path().join("x");
        let mut writer = AudioWriter::create(&path, format(codec), 24_000, 1).unwrap();
        audio
            .samples
            .chunks(999)
            .for_each(|part| writer.write(part).unwrap());
        writer.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(
            bytes,
            encoded(&audio, format(codec)).unwrap(),
            "{codec:?}: parts do not matter"
        );
        if matches!(codec, Codec::Wav(_)) {
            let size =
                |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
            assert_eq!(
                (size(4), size(40)),
                (bytes.len() - 8, bytes.len() - 44),
                "{codec:?}"
            );
        }
        let whole = read(bytes);
        let shared = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let out = Box::new(Shared(shared.clone()));
        let mut writer = AudioWriter::stream(out, "stream", format(codec), 24_000, 1).unwrap();
        writer.write(&audio.samples).unwrap();
        let early = shared.lock().unwrap().len();
        assert!(early > 1000, "{codec:?}: {early} bytes before the end");
        writer.finish().unwrap();
        let streamed = read(shared.lock().unwrap().clone());
        assert_eq!(streamed.rate, whole.rate);
        assert!(streamed.frames() >= whole.frames(), "{codec:?}");
    }
}

#[test]
fn too_loud_and_strange_samples_never_wrap() {
    let audio = Audio::new(vec![9.0, -9.0, f32::NAN, f32::INFINITY, 0.25], 8000, 1).unwrap();
    let bytes = encoded(&audio, format(Codec::Pcm(WavFormat::Pcm16))).unwrap();
    let samples: Vec<i16> = bytes
        .chunks(2)
        .map(|b| i16::from_le_bytes([b[0], b[1]]))
        .collect();
    assert_eq!(samples, [i16::MAX, i16::MIN, 0, i16::MAX, 8192]);
    for codec in ALL {
        let back = read(encoded(&audio, format(codec)).unwrap());
        assert!(
            back.samples.iter().all(|sample| sample.is_finite()),
            "{codec:?}"
        );
    }
}

#[test]
fn formats_are_named_and_slips_are_refused() {
    let by_name = |name: &str| Codec::name_by_extension(Path::new(name));
    assert_eq!(by_name("a.WAV"), Some("wav"));
    assert_eq!(by_name("b/c.ogg"), Some("opus"));
    assert_eq!(by_name("c.m4a"), None);
    assert_eq!(
        Codec::named("flac", Some(WavFormat::Pcm24)).unwrap(),
        Codec::Flac { bits: 24 }
    );
    assert!(Codec::named("flac", Some(WavFormat::F32)).is_err());
    assert!(Codec::named("mp3", Some(WavFormat::Pcm16)).is_err());
    let error = Codec::named("aac", None).unwrap_err().to_string();
    assert!(error.contains("wav, flac, mp3, opus, pcm"), "{error}");
    let mono = Audio::new(vec![0.0; 8], 8000, 8).unwrap();
    assert!(encoded(&mono, format(Codec::Mp3)).is_err());
}
