//! Any bytes through the reader, the downmix and the resampler. Start it on the clips:
//! `cargo +nightly fuzz run decode_any fuzz/corpus/decode_any tests/data/audio`.
#![no_main]
use audiocpp::audio::{AudioSource, Reader, mono_at};
use libfuzzer_sys::fuzz_target;

/// Half a minute is enough to reach every state of a decoder.
const FRAMES: usize = 30 * 16_000;

fuzz_target!(|bytes: &[u8]| {
    let Ok(reader) = Reader::from_bytes(bytes, "fuzz") else {
        return;
    };
    let Ok(mut stream) = mono_at(reader, 16_000) else {
        return;
    };
    let mut out = Vec::new();
    let mut frames = 0;
    while let Ok(n @ 1..) = stream.read(&mut out, 4096) {
        assert!(n <= 4096 && out.len() == n && out.iter().all(|s| s.is_finite()));
        out.clear();
        frames += n;
        if frames > FRAMES {
            break;
        }
    }
});
