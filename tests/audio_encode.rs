//! Written sound, read by a decoder that is not ours: ffmpeg, where it is installed.

use std::{path::Path, process::Command};

use audiocpp::audio::{Audio, AudioFormat, AudioWriter, Codec, WavFormat};

const FORMATS: [(&str, Codec); 9] = [
    ("s16.wav", Codec::Wav(WavFormat::Pcm16)),
    ("s24.wav", Codec::Wav(WavFormat::Pcm24)),
    ("s32.wav", Codec::Wav(WavFormat::Pcm32)),
    ("f32.wav", Codec::Wav(WavFormat::F32)),
    ("s16.flac", Codec::Flac { bits: 16 }),
    ("s24.flac", Codec::Flac { bits: 24 }),
    ("a.mp3", Codec::Mp3),
    ("a.opus", Codec::Opus),
    ("a.ogg", Codec::Opus),
];

fn tone(rate: u32, channels: u16) -> Audio {
    let frames = rate as usize * 5 / 4 + 17;
    let samples = (0..frames).flat_map(|i| {
        let t = i as f32 / rate as f32;
        (0..channels)
            .map(move |c| 0.5 * (std::f32::consts::TAU * (440.0 + 110.0 * f32::from(c)) * t).sin())
    });
    Audio::new(samples.collect(), rate, channels).unwrap()
}

/// What ffmpeg's tools print for a file; nothing where they are not installed.
fn ffmpeg(program: &str, args: &[&str], path: &Path) -> Option<Vec<u8>> {
    let output = Command::new(program).args(args).arg(path).output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.trim().is_empty(),
        "{}: {said}",
        path.display()
    );
    Some(output.stdout)
}

#[test]
fn ffmpeg_reads_every_format_with_its_rate_length_and_channels() {
    if Command::new("ffmpeg").arg("-version").output().is_err() {
        eprintln!("skipped: ffmpeg is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (rate, channels) in [(22_050, 1), (24_000, 1), (44_100, 2)] {
        let audio = tone(rate, channels);
        for (name, codec) in FORMATS {
            let path = folder.path().join(name);
            let format = AudioFormat { codec, rate: None };
            let mut writer = AudioWriter::create(&path, format, rate, channels).unwrap();
            audio
                .samples
                .chunks(5000)
                .for_each(|part| writer.write(part).unwrap());
            writer.finish().unwrap();
            let entries = "stream=sample_rate,channels:format=duration";
            let shown = ffmpeg(
                "ffprobe",
                &["-v", "error", "-of", "csv=p=0", "-show_entries", entries],
                &path,
            );
            let Some(shown) = shown else { return };
            let shown = String::from_utf8(shown).unwrap();
            let numbers: Vec<f64> = shown
                .split([',', '\n'])
                .filter_map(|number| number.parse().ok())
                .collect();
            // Opus has a clock of its own.
            let wanted = if codec == Codec::Opus {
                48_000
            } else {
                codec.rate(rate)
            };
            assert_eq!(
                numbers[..2],
                [f64::from(wanted), f64::from(channels)],
                "{name} at {rate}: {shown}"
            );
            let output = Command::new("ffmpeg")
                .args(["-v", "error", "-i"])
                .arg(&path)
                .args(["-f", "f32le", "-c:a", "pcm_f32le", "pipe:1"])
                .output()
                .unwrap();
            assert!(
                output.status.success() && output.stderr.is_empty(),
                "{name}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            let samples: Vec<f32> = output
                .stdout
                .chunks_exact(4)
                .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                .collect();
            let found = Audio::new(samples, wanted, channels).unwrap();
            let expected = audio.resampled(wanted).unwrap();
            let off = found.frames().abs_diff(expected.frames());
            assert!(
                off <= 2,
                "{name} at {rate}: {} of {} frames",
                found.frames(),
                expected.frames()
            );
            let middle = expected.samples.len() / 4..expected.samples.len() / 2;
            let error: f64 = middle
                .clone()
                .map(|i| f64::from(found.samples[i] - expected.samples[i]).powi(2))
                .sum();
            let power: f64 = middle.map(|i| f64::from(expected.samples[i]).powi(2)).sum();
            let decibels = 10.0 * (power / error.max(1e-12)).log10();
            assert!(decibels > 15.0, "{name} at {rate}: {decibels:.1} dB");
        }
    }
}
