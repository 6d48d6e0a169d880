//! Every container and codec against the formula that its clip was made from.
use audiocpp::audio::{Audio, AudioSource, Reader, mono_at};
use std::f64::consts::PI;

fn data(name: &str) -> String {
    format!("{}/tests/data/audio/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The sound of the clips: interleaved left and right.
fn formula(rate: u32, frames: usize) -> Vec<f32> {
    (0..frames)
        .flat_map(|i| {
            let t = i as f64 / f64::from(rate);
            let left = 0.5 * (2.0 * PI * (200.0 * t + 4666.0 * t * t)).sin();
            let right = 0.25 * (2.0 * PI * 440.0 * t).sin();
            [left as f32, right as f32]
        })
        .collect()
}

/// Signal to noise in dB of `got` against `want`, without the 10 ms at either end of the 0.3 s,
/// where codecs have nothing to predict from.
fn snr(got: &[f32], want: &[f32], rate: u32) -> f64 {
    let edge = rate as usize / 100 * 2;
    let inner = edge..rate as usize * 3 / 10 * 2 - edge;
    let power =
        |f: &dyn Fn(usize) -> f32| inner.clone().map(|i| f64::from(f(i)).powi(2)).sum::<f64>();
    10.0 * (power(&|i| want[i]) / power(&|i| got[i] - want[i]).max(1e-12)).log10()
}

fn read(source: &mut dyn AudioSource) -> Audio {
    Audio::from_source(source, None).unwrap()
}

/// File, rate, exact frames, least SNR in dB.
const CLIPS: &[(&str, u32, usize, f64)] = &[
    ("mulaw.wav", 44_100, 13_230, 30.0),
    ("alaw.wav", 44_100, 13_230, 30.0),
    // ADPCM fills its last block, and its header counts that.
    ("adpcm_ms.wav", 44_100, 14_168, 20.0),
    ("adpcm_ima.wav", 44_100, 14_238, 20.0),
    ("clip.flac", 44_100, 13_230, 80.0),
    ("flac.mkv", 44_100, 13_230, 80.0),
    ("alac.m4a", 44_100, 13_230, 80.0),
    ("alac.caf", 44_100, 13_230, 80.0),
    ("clip.aiff", 44_100, 13_230, 80.0),
    ("clip.caf", 44_100, 13_230, 80.0),
    ("cbr.mp3", 44_100, 13_230, 20.0),
    ("vbr.mp3", 44_100, 13_230, 20.0),
    ("cover.mp3", 44_100, 13_230, 20.0),
    ("vorbis.ogg", 44_100, 13_230, 15.0),
    // Vorbis in WebM has no place for its end.
    ("vorbis.webm", 44_100, 14_016, 15.0),
    ("opus.ogg", 48_000, 14_400, 15.0),
    ("opus.webm", 48_000, 14_400, 15.0),
    ("opus_live.webm", 48_000, 14_400, 15.0),
    ("opus.mp4", 48_000, 14_400, 15.0),
    ("moov_last.m4a", 44_100, 13_230, 15.0),
    ("moov_first.m4a", 44_100, 13_230, 15.0),
    ("film.mp4", 44_100, 13_230, 15.0),
    ("film.webm", 44_100, 14_016, 15.0),
];

#[test]
fn every_clip_has_its_exact_length_and_its_sound_in_time() {
    let mut wrong = Vec::new();
    for &(name, rate, frames, least) in CLIPS {
        let mut reader = match Reader::open(data(name)) {
            Ok(reader) => reader,
            Err(e) => {
                wrong.push(e.to_string());
                continue;
            }
        };
        let clip = read(&mut reader);
        let warnings = reader.warnings();
        let want = formula(rate, frames);
        let got = (clip.rate, clip.channels, clip.frames());
        let snr = if got == (rate, 2, frames) {
            snr(&clip.samples, &want, rate)
        } else {
            f64::NEG_INFINITY
        };
        println!("{name}: {got:?}, {snr:.1} dB, {warnings:?}");
        if got != (rate, 2, frames) || snr < least || !warnings.is_empty() {
            wrong.push(format!("{name}: {got:?}, {snr:.1} dB, {warnings:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// File, frames, and frames of run-in that nothing in the file tells apart from sound.
const RAW: &[(&str, usize, usize)] = &[
    ("adts.aac", 14_336, 1024),
    ("clip.mp2", 13_824, 481),
    ("mp3_in.wav", 14_976, 1105),
];

#[test]
fn bare_streams_keep_the_run_in_of_their_encoder() {
    for &(name, frames, run_in) in RAW {
        let clip = Audio::open(data(name)).unwrap();
        let snr = snr(
            &clip.samples[run_in * 2..],
            &formula(44_100, 13_230),
            44_100,
        );
        println!("{name}: {} frames, {snr:.1} dB", clip.frames());
        assert_eq!(clip.frames(), frames, "{name}");
        assert!(snr > 20.0, "{name}: {snr:.1} dB");
    }
}

#[test]
fn a_fragmented_movie_starts_after_its_run_in() {
    let clip = Audio::open(data("fragmented.m4a")).unwrap();
    let snr = snr(&clip.samples, &formula(44_100, 13_230), 44_100);
    println!("{} frames, {snr:.1} dB", clip.frames());
    assert!(snr > 20.0, "{snr:.1} dB");
}

#[test]
fn any_clip_streams_as_mono_at_any_rate() {
    for rate in [8000, 16_000, 24_000, 44_100] {
        for name in ["clip.flac", "moov_last.m4a", "opus.webm"] {
            let mut stream = mono_at(Reader::open(data(name)).unwrap(), rate).unwrap();
            assert!(
                (stream.duration_hint().unwrap() - 0.3).abs() < 0.03,
                "{name}"
            );
            let clip = read(&mut stream);
            assert_eq!(
                (clip.rate, clip.channels, clip.frames()),
                (rate, 1, rate as usize * 3 / 10)
            );
            let want = Audio::new(formula(rate, clip.frames()), rate, 2)
                .unwrap()
                .to_mono();
            // `snr` wants two channels.
            let double = |mono: Audio| {
                mono.samples
                    .iter()
                    .flat_map(|&s| [s, s])
                    .collect::<Vec<_>>()
            };
            let snr = snr(&double(clip), &double(want), rate);
            assert!(snr > 20.0, "{name} at {rate} Hz: {snr:.1} dB");
        }
    }
}

#[test]
fn chained_streams_play_one_after_the_other() {
    for (name, rate, frames) in [("vorbis.ogg", 44_100, 13_230), ("opus.ogg", 48_000, 14_400)] {
        let link = std::fs::read(data(name)).unwrap();
        let mut reader = Reader::from_bytes(link.repeat(2), name).unwrap();
        let clip = read(&mut reader);
        println!("{name}: {} frames, {:?}", clip.frames(), reader.warnings());
        assert_eq!(clip.frames(), 2 * frames, "{name}");
        let snr = snr(&clip.samples[2 * frames..], &formula(rate, frames), rate);
        assert!(snr > 15.0, "{name}: second link at {snr:.1} dB");
    }
}
