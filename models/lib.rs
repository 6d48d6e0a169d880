//! The one list of model families.
#![forbid(unsafe_code)]

use audiocpp::engine::Registry;

/// Every family that the programs know.
pub fn registry() -> Registry {
    Registry::new(vec![
        Box::new(audiocpp_whisper::Whisper),
        Box::new(audiocpp_piper::Piper),
        Box::new(audiocpp_kokoro::Kokoro),
        Box::new(audiocpp_silero_vad::SileroVad),
        Box::new(audiocpp_hibari::Hibari),
        Box::new(audiocpp_spleeter::Spleeter),
        Box::new(audiocpp_demucs::Demucs),
        Box::new(audiocpp_miocodec::MioCodec),
        Box::new(audiocpp_vibevoice::VibeVoice),
        Box::new(audiocpp_vibevoice::asr::VibeVoiceAsr),
        Box::new(audiocpp_vibevoice::realtime::VibeVoiceRealtime),
    ])
}
