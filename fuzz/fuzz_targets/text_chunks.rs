//! Any text through sentences, writing out, English sounds and chunks.
#![no_main]
use audiocpp::text::{
    chunks::{ChunkLimits, FrontEnd},
    normalize::Normalizer,
    phonemes::{Pronunciations, english::English},
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let front = FrontEnd {
        language: "en".into(),
        normalizer: Normalizer::new("en"),
        phonemizer: Some(Box::new(English)),
        pronunciations: Pronunciations::default(),
        limits: ChunkLimits { join: 40, max: 80 },
    };
    let Ok(chunks) = front.chunks(text) else {
        return;
    };
    for chunk in chunks {
        let Ok(chunk) = chunk else { return };
        assert!(text.get(chunk.text.whole()).is_some());
        for word in &chunk.phonemes.words {
            assert!(chunk.text.text().get(word.text.clone()).is_some() && !word.ipa.is_empty());
        }
    }
});
