//! Broken headers, damage and things that are no sound: what there is comes out, or one clear
//! error does.
use audiocpp::audio::{Audio, AudioSource, Error, Reader, WavFormat, stream_header, wav_bytes};

fn data(name: &str) -> Vec<u8> {
    std::fs::read(format!(
        "{}/tests/data/audio/{name}",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap()
}

fn ramp(frames: usize, channels: u16) -> Audio {
    let samples = (0..frames * usize::from(channels))
        .map(|i| (i % 200) as f32 / 256.0)
        .collect();
    Audio::new(samples, 16_000, channels).unwrap()
}

fn decode(bytes: Vec<u8>) -> Result<(Audio, Vec<String>), Error> {
    let mut reader = Reader::from_bytes(bytes, "upload")?;
    let audio = Audio::from_source(&mut reader, None)?;
    Ok((audio, reader.warnings()))
}

fn error(bytes: Vec<u8>) -> String {
    decode(bytes).expect_err("refused").to_string()
}

/// A WAV file of any format chunk and sample bytes.
fn wav(fmt: &[u8], samples: &[u8]) -> Vec<u8> {
    let chunk = |id: &[u8], body: &[u8]| [id, &(body.len() as u32).to_le_bytes(), body].concat();
    let body = [
        b"WAVE".to_vec(),
        chunk(b"fmt ", fmt),
        chunk(b"data", samples),
    ]
    .concat();
    chunk(b"RIFF", &body)
}

fn fmt(tag: u16, channels: u16, rate: u32, bits: u16) -> Vec<u8> {
    let align = u32::from(channels) * u32::from(bits) / 8;
    let mut fmt = [tag.to_le_bytes(), channels.to_le_bytes()].concat();
    fmt.extend(rate.to_le_bytes());
    fmt.extend((rate.wrapping_mul(align)).to_le_bytes());
    fmt.extend([(align as u16).to_le_bytes(), bits.to_le_bytes()].concat());
    fmt
}

/// WAVE_FORMAT_EXTENSIBLE around a plain tag, with no channel mask.
fn extensible(tag: u16, channels: u16, bits: u16, valid: u16) -> Vec<u8> {
    let mut all = fmt(0xFFFE, channels, 16_000, bits);
    all.extend([22, 0]);
    all.extend(valid.to_le_bytes());
    all.extend([0; 4]);
    all.extend(tag.to_le_bytes());
    all.extend([0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71]);
    all
}

#[test]
fn every_plain_wav_format_reads_its_value() {
    let cases: &[(&str, Vec<u8>, Vec<u8>)] = &[
        ("u8", fmt(1, 1, 16_000, 8), vec![192]),
        ("s16", fmt(1, 1, 16_000, 16), vec![0, 0x40]),
        ("s24", fmt(1, 1, 16_000, 24), vec![0, 0, 0x40]),
        ("s32", fmt(1, 1, 16_000, 32), vec![0, 0, 0, 0x40]),
        ("f32", fmt(3, 1, 16_000, 32), 0.5f32.to_le_bytes().to_vec()),
        ("f64", fmt(3, 1, 16_000, 64), 0.5f64.to_le_bytes().to_vec()),
        ("extensible s16", extensible(1, 1, 16, 16), vec![0, 0x40]),
        ("extensible s24", extensible(1, 1, 24, 24), vec![0, 0, 0x40]),
        (
            "extensible s24 in 32",
            extensible(1, 1, 32, 24),
            vec![0, 0, 0, 0x40],
        ),
        (
            "extensible f32",
            extensible(3, 1, 32, 32),
            0.5f32.to_le_bytes().to_vec(),
        ),
    ];
    for (name, fmt, sample) in cases {
        let (audio, warnings) = decode(wav(fmt, &sample.repeat(500))).expect(name);
        assert_eq!(
            (audio.rate, audio.channels, audio.frames()),
            (16_000, 1, 500),
            "{name}"
        );
        assert!(
            audio.samples.iter().all(|&s| s == 0.5),
            "{name}: {}",
            audio.samples[0]
        );
        assert!(warnings.is_empty(), "{name}: {warnings:?}");
    }
}

#[test]
fn many_channels_and_odd_format_chunks_are_read() {
    let six = wav(&fmt(1, 6, 16_000, 16), &[0; 6 * 2 * 300]);
    assert_eq!(decode(six).unwrap().0.channels, 6);
    let long_fmt = [fmt(1, 1, 16_000, 16), vec![0, 0]].concat();
    assert_eq!(decode(wav(&long_fmt, &[0; 600])).unwrap().0.frames(), 300);
    let mut bad_align = fmt(1, 1, 16_000, 16);
    bad_align[12] = 7;
    assert_eq!(decode(wav(&bad_align, &[0; 600])).unwrap().0.frames(), 300);
}

#[test]
fn wav_sizes_that_lie_do_not_matter() {
    let good = wav_bytes(&ramp(1000, 1), WavFormat::Pcm16).unwrap();
    for size in [0u32, u32::MAX, 0x7FFF_FFFF, 0x7FFF_F000] {
        let mut file = good.clone();
        file[40..44].copy_from_slice(&size.to_le_bytes());
        for riff in [0, size, 36] {
            file[4..8].copy_from_slice(&riff.to_le_bytes());
            let (audio, warnings) = decode(file.clone()).unwrap();
            assert_eq!(audio, ramp(1000, 1), "data {size}, riff {riff}");
            assert!(warnings.is_empty(), "{warnings:?}");
        }
    }
    let mut odd = good.clone();
    odd.truncate(good.len() - 1);
    odd[40..44].copy_from_slice(&1999u32.to_le_bytes());
    assert_eq!(decode(odd).unwrap().0.frames(), 999);
    let trailing = [good, b"LIST\x04\0\0\0INFOgarbage".to_vec()].concat();
    assert_eq!(decode(trailing).unwrap().0.frames(), 1000);
}

#[test]
fn chunks_before_the_format_are_walked_over() {
    let good = wav_bytes(&ramp(1000, 1), WavFormat::Pcm16).unwrap();
    for junk in [
        &b"JUNK\x04\0\0\0abcd"[..],
        b"JUNK\x05\0\0\0abcde\0",
        b"JUNK\x05\0\0\0abcde",
    ] {
        let file = [&good[..12], junk, &good[12..]].concat();
        assert_eq!(decode(file).unwrap().0, ramp(1000, 1));
    }
}

#[test]
fn rf64_is_read() {
    let good = wav_bytes(&ramp(1000, 1), WavFormat::Pcm16).unwrap();
    let mut ds64 = b"ds64\x1c\0\0\0".to_vec();
    ds64.extend(
        [
            2072u64.to_le_bytes(),
            2000u64.to_le_bytes(),
            1000u64.to_le_bytes(),
        ]
        .concat(),
    );
    ds64.extend([0; 4]);
    let mut file = [&b"RF64\xff\xff\xff\xffWAVE"[..], &ds64, &good[12..]].concat();
    let data = file.len() - 2004;
    file[data..data + 4].fill(0xFF);
    assert_eq!(decode(file).unwrap().0, ramp(1000, 1));
}

#[test]
fn a_cut_wav_gives_what_is_there_and_says_so() {
    let mut file = wav_bytes(&ramp(1000, 2), WavFormat::Pcm16).unwrap();
    file.truncate(44 + 1200);
    let (audio, warnings) = decode(file).unwrap();
    assert_eq!(audio.frames(), 300);
    assert!(
        warnings[0].contains("ends early: 1200 of 4000 bytes"),
        "{warnings:?}"
    );
}

#[test]
fn an_empty_wav_is_no_sound_but_no_error() {
    let (audio, warnings) = decode(wav(&fmt(1, 2, 44_100, 16), &[])).unwrap();
    assert_eq!((audio.rate, audio.channels, audio.frames()), (44_100, 2, 0));
    assert!(warnings.is_empty());
    let stream = stream_header(24_000, 1, WavFormat::F32).to_vec();
    assert_eq!(decode(stream).unwrap().0.frames(), 0);
}

#[test]
fn samples_that_are_no_numbers_become_silence() {
    let values = [0.5, f32::NAN, f32::INFINITY, -0.25, f32::NEG_INFINITY];
    let bytes: Vec<u8> = values.iter().flat_map(|v: &f32| v.to_le_bytes()).collect();
    let (audio, warnings) = decode(wav(&fmt(3, 1, 16_000, 32), &bytes)).unwrap();
    assert_eq!(audio.samples, [0.5, 0.0, 0.0, -0.25, 0.0]);
    assert!(warnings[0].starts_with("3 samples"), "{warnings:?}");
}

#[test]
fn headers_without_sense_are_refused_by_name() {
    let zero_rate = error(wav(&fmt(1, 1, 0, 16), &[0; 100]));
    assert!(
        zero_rate.contains("sample rate 0 Hz; wanted 1000 to"),
        "{zero_rate}"
    );
    let no_channels = error(wav(&fmt(1, 0, 16_000, 16), &[0; 100]));
    assert!(no_channels.contains("0 channels"), "{no_channels}");
    let crowd = error(wav(&fmt(1, 9999, 16_000, 8), &[0; 100]));
    assert!(crowd.contains("9999 channels"), "{crowd}");
    let huge = error(wav(&fmt(1, 1, 4_000_000_000, 16), &[0; 100]));
    assert!(huge.contains("sample rate 4000000000"), "{huge}");
    let tag = error(wav(&fmt(0x1234, 1, 16_000, 16), &[0; 100]));
    assert!(
        tag.contains("0x1234") && tag.contains("not supported"),
        "{tag}"
    );
}

#[test]
fn things_that_are_no_sound_say_what_they_look_like() {
    for (bytes, words) in [
        (&b""[..], "upload: empty file (0 bytes)"),
        (
            b"<!DOCTYPE html><html><body>404",
            "not audio (looks like an HTML page)",
        ),
        (b"{\"error\": \"not found\"}", "not audio (looks like JSON)"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a PNG image"),
        (b"just words", "plain text"),
        (b"#!AMR\n\x3c\x08", "AMR is not supported"),
        (
            b"\x1f\x43\xb6\x75\xff\0",
            "WebM fragment without its header",
        ),
        (
            b"\0\0\0\x18ftypM4A \0\0\0\0M4A isom",
            "without its index (moov)",
        ),
        (b"RIFF\x24\0\0\0WAVEfmt ", "without a data chunk"),
    ] {
        let got = error(bytes.to_vec());
        assert!(got.contains(words), "{got}");
    }
    let noise: Vec<u8> = (0..5000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let got = error(noise);
    assert!(got.contains("upload: "), "{got}");
}

#[test]
fn a_film_without_sound_has_no_audio_track() {
    let got = error(data("silent.mp4"));
    assert!(
        got.contains("no audio track") && got.contains("1 of them video"),
        "{got}"
    );
}

#[test]
fn he_aac_is_refused_by_name() {
    // The first bits of the decoder's configuration, after the tag and length of its descriptor,
    // say AAC-LC (2); 5 is HE-AAC.
    let mut file = data("moov_first.m4a");
    let at = file.windows(4).position(|w| w == b"esds").unwrap();
    let tag = at + file[at..].iter().position(|&b| b == 5).unwrap();
    let config = tag + 1 + file[tag + 1..].iter().take_while(|&&b| b == 0x80).count() + 1;
    assert_eq!(file[config] >> 3, 2, "AAC-LC in the clip");
    file[config] = 5 << 3 | file[config] & 7;
    let got = error(file);
    assert!(
        got.contains("HE-AAC") && got.contains("not supported"),
        "{got}"
    );
}

#[test]
fn cut_files_give_their_beginning() {
    for (name, tenths) in [
        ("cbr.mp3", 6),
        ("opus.ogg", 6),
        ("moov_first.m4a", 6),
        ("clip.flac", 6),
        ("adts.aac", 6),
        ("opus.webm", 6),
        ("clip.aiff", 6),
        ("clip.caf", 6),
        // Most of this file is the header that a decoder cannot do without.
        ("vorbis.ogg", 9),
    ] {
        let whole = decode(data(name)).unwrap().0.frames();
        let mut bytes = data(name);
        bytes.truncate(bytes.len() * tenths / 10);
        match decode(bytes) {
            Ok((audio, warnings)) => {
                println!("{name}: {} of {whole} frames, {warnings:?}", audio.frames());
                assert!(audio.frames() > 0 && audio.frames() < whole, "{name}");
                assert!(
                    !warnings.is_empty() || name == "adts.aac",
                    "{name} says nothing"
                );
            }
            Err(e) => panic!("{name}: {e}"),
        }
    }
}

#[test]
fn damage_in_the_middle_costs_its_packets_and_not_the_time() {
    for name in ["moov_first.m4a", "cbr.mp3", "vorbis.ogg", "opus.mp4"] {
        let whole = decode(data(name)).unwrap().0;
        let mut bytes = data(name);
        let middle = bytes.len() * 4 / 5;
        bytes[middle..middle + 60].fill(0xFF);
        let (audio, warnings) = decode(bytes).unwrap();
        println!(
            "{name}: {} of {} frames, {warnings:?}",
            audio.frames(),
            whole.frames()
        );
        let lost = whole.frames().abs_diff(audio.frames());
        assert!(
            lost <= whole.frames() / 5,
            "{name}: {} frames",
            audio.frames()
        );
    }
}

#[test]
fn what_a_demuxer_skips_in_silence_is_still_reported() {
    let mut bytes = data("clip.flac");
    let middle = bytes.len() * 2 / 3;
    bytes[middle..middle + 150].fill(0xFF);
    let (audio, warnings) = decode(bytes).unwrap();
    assert!(audio.frames() < 13_230);
    assert!(warnings[0].contains("s of 0.30 s"), "{warnings:?}");
}
