//! Many sessions of one model at the same time, each writing a file of its own.

use std::path::Path;

use audiocpp::{
    audio::{Audio, AudioFormat, AudioWriter, Codec, Reader, WavFormat},
    engine::{Family, LoadOptions, Model, Options, RunContext, SynthesizeRequest, Task},
    text::phonemes::for_language,
};
use audiocpp_piper::Piper;
use audiocpp_testing::models;

const FORMATS: [(&str, Codec); 6] = [
    ("s16.wav", Codec::Wav(WavFormat::Pcm16)),
    ("f32.wav", Codec::Wav(WavFormat::F32)),
    ("flac", Codec::Flac { bits: 16 }),
    ("mp3", Codec::Mp3),
    ("opus", Codec::Opus),
    ("s24.wav", Codec::Wav(WavFormat::Pcm24)),
];

const TEXTS: [&str; 8] = [
    "Good morning.",
    "The cat sat on the mat today.",
    "One, two, three, four.",
    "It rains, and nobody minds. The river is high.",
    "Where are you going?",
    "Nothing is as it was before.",
    "A short walk along the harbour does no harm to anybody, or so they say.",
    "Stop!",
];

/// Speaks text `number` to a file; its bytes, and the frames and the rate of what was spoken.
fn spoken(model: &dyn Model, folder: &Path, number: usize) -> (Vec<u8>, usize, u32) {
    let request = SynthesizeRequest {
        text: TEXTS[number % TEXTS.len()].into(),
        seed: Some(number as u64),
        ..SynthesizeRequest::default()
    };
    let session = model.session(Task::Tts, &Options::default()).unwrap();
    let mut session = session.into_synthesize().unwrap();
    let audio = session
        .synthesize(&request, &RunContext::new())
        .unwrap()
        .audio;
    let (ending, codec) = FORMATS[number % FORMATS.len()];
    let path = folder.join(format!("{number}.{ending}"));
    let format = AudioFormat { codec, rate: None };
    let mut writer = AudioWriter::create(&path, format, audio.rate, audio.channels).unwrap();
    writer.write(&audio.samples).unwrap();
    writer.finish().unwrap();
    (std::fs::read(path).unwrap(), audio.frames(), audio.rate)
}

#[test]
fn sixteen_at_once_are_the_same_as_one_by_one() {
    let Some(package) = models::folder("piper-joe") else {
        return;
    };
    if for_language("en-us", None).is_err() {
        return;
    }
    let options = LoadOptions {
        device: "cpu".into(),
        threads: Some(2),
        ..LoadOptions::default()
    };
    let model = Piper.load(&package, &options, &RunContext::new()).unwrap();
    let model = &*model;
    let (alone, together) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let at_once: Vec<_> = std::thread::scope(|scope| {
        let folder = together.path();
        let speak = |number| scope.spawn(move || spoken(model, folder, number));
        let threads: Vec<_> = (0..16).map(speak).collect();
        let joined = threads.into_iter().map(|thread| thread.join().unwrap());
        joined.collect()
    });
    for (number, (bytes, frames, rate)) in at_once.into_iter().enumerate() {
        let (wanted, ..) = spoken(model, alone.path(), number);
        assert!(bytes == wanted, "text {number} is not what it is alone");
        let ending = FORMATS[number % FORMATS.len()].0;
        let name = format!("{number}.{ending}");
        let mut reader = Reader::from_bytes(bytes, &name).unwrap();
        let decoded = Audio::from_source(&mut reader, None).unwrap();
        let seconds = decoded.frames() as f64 / f64::from(decoded.rate);
        let spoken = frames as f64 / f64::from(rate);
        assert!(
            (seconds - spoken).abs() < 0.06 && decoded.channels == 1,
            "{name}: {seconds} s of {spoken} s"
        );
    }
}
