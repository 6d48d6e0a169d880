//! The published voice beside onnxruntime, without noise (`tests/reference/hibari_reference.py`).
//!
//! Skipped, with a line that says so, where the model is not downloaded.

use std::path::Path;

use audiocpp::{
    engine::{
        ErrorClass, Family, LoadOptions, OptionValue, Options, RunContext, Speech, Synthesize,
        SynthesizeRequest, Task,
    },
    graph::Device,
    weights::Policy,
};
use audiocpp_hibari::{Hibari, machine::durations, sound::Sounder};
use audiocpp_testing::{
    expected::{Expected, relative_error},
    models,
};

fn expected() -> Expected {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/hibari");
    Expected::read(data.join("published.safetensors"))
}

#[test]
fn stages_and_samples_are_those_of_onnxruntime() {
    let Some(folder) = models::folder("hibari") else {
        return;
    };
    let expected = expected();
    let device = Device::cpu(1).unwrap();
    let model = audiocpp_hibari::open(&folder, &device, Policy::Native).unwrap();
    let check = |stage: &str, found: &[f32], tolerance: f64| {
        let error = relative_error(found, &expected.f32(stage));
        println!("{stage} {error:.1e}");
        assert!(error < tolerance, "{stage} {error:.1e}");
    };

    let mut numbers = vec![0];
    let known = |char| model.vocab().get(&char).copied();
    numbers.extend(expected.notes["phonemes"].chars().filter_map(known));
    numbers.push(0);
    assert_eq!(numbers, expected.i32("ids"));

    let mut machine = model.machine();
    let encoded = machine.encode(&numbers).unwrap();
    check("text", &encoded.text, 1e-5);
    check("prosody", &encoded.prosody, 1e-5);
    check("durations", &encoded.durations, 1e-5);
    let lengths = durations(&encoded.durations, 1.0).unwrap();
    assert_eq!(
        lengths.iter().sum::<u32>() as usize,
        expected.shape("melody")[0]
    );
    let melody = machine.melody(&encoded, &lengths).unwrap();
    check("pitch", &melody.pitch, 1e-5);
    let spectra = machine.decode(&encoded, &lengths, &melody).unwrap();
    let width = expected.shape("spectra")[1];
    let some: Vec<f32> = spectra
        .chunks(width)
        .step_by(10)
        .flatten()
        .copied()
        .collect();
    check("spectra", &some, 1e-4);
    let samples = Sounder::new()
        .unwrap()
        .samples(&spectra, &melody.pitch, None)
        .unwrap();
    check("samples", &samples, 2e-3);
}

fn session() -> Option<Box<dyn Synthesize>> {
    let folder = models::folder("hibari")?;
    assert!(Hibari.can_load(&folder));
    let options = LoadOptions {
        device: "cpu".into(),
        threads: Some(1),
        ..LoadOptions::default()
    };
    let model = Hibari.load(&folder, &options, &RunContext::new()).unwrap();
    let session = model.session(Task::Tts, &Options::default()).unwrap();
    Some(session.into_synthesize().unwrap())
}

fn request(text: &str) -> SynthesizeRequest {
    SynthesizeRequest {
        text: text.into(),
        words: true,
        phonemizer: Some("english".into()),
        ..SynthesizeRequest::default()
    }
}

fn speak(session: &mut dyn Synthesize, request: &SynthesizeRequest) -> Speech {
    session.synthesize(request, &RunContext::new()).unwrap()
}

#[test]
fn words_have_times_and_a_seed_gives_the_same_sound() {
    let Some(mut session) = session() else { return };
    let plain = request("Good morning. The cat sat on the mat today.");
    let first = speak(&mut *session, &plain);
    assert_eq!(first.audio.rate, 24_000);
    assert!(first.warnings.is_empty(), "{:?}", first.warnings);
    assert!((2.0..6.0).contains(&first.duration), "{} s", first.duration);
    let words: Vec<_> = first.words().collect();
    assert_eq!(words.len(), 9);
    let mut at = 0.0;
    for word in words {
        assert!(word.start >= at && word.end > word.start, "{word:?}");
        at = word.end;
    }
    assert!(at <= first.duration);
    assert_eq!(speak(&mut *session, &plain), first);
    let other = SynthesizeRequest {
        seed: Some(6),
        ..plain.clone()
    };
    assert_ne!(speak(&mut *session, &other).audio, first.audio);
    // Without noise the seed does not matter.
    let quiet = |seed| {
        let mut still = other.clone();
        still.seed = Some(seed);
        still.options.set("noise", OptionValue::Bool(false));
        still
    };
    let [a, b] = [1, 2].map(|seed| speak(&mut *session, &quiet(seed)));
    assert_eq!(a.audio, b.audio);
    let mut fast = plain;
    fast.speed = Some(2.0);
    let ratio = speak(&mut *session, &fast).duration / first.duration;
    assert!((0.4..0.7).contains(&ratio), "{ratio}");
}

#[test]
fn wrong_requests_are_refused() {
    let Some(mut session) = session() else { return };
    let mut refused = |change: fn(&mut SynthesizeRequest)| {
        let mut request = request("Hello.");
        change(&mut request);
        let result = session.synthesize(&request, &RunContext::new());
        result.unwrap_err().class
    };
    assert_eq!(
        refused(|r| r.voice = Some("x".into())),
        ErrorClass::NotFound
    );
    assert_eq!(
        refused(|r| r.language = Some("de".into())),
        ErrorClass::Unsupported
    );
    assert_eq!(
        refused(|r| r.instructions = Some("whisper".into())),
        ErrorClass::Unsupported
    );
    assert_eq!(
        refused(|r| r.options.set("nois", OptionValue::Bool(true))),
        ErrorClass::Unsupported
    );
}

#[test]
fn damaged_files_are_errors() {
    let Some(folder) = models::folder("hibari") else {
        return;
    };
    let whole = std::fs::read(folder.join("hibari.onnx")).unwrap();
    let symbols = std::fs::read(folder.join("vocab.json")).unwrap();
    let device = Device::cpu(1).unwrap();
    let other = tempfile::tempdir().unwrap();
    let open = |weights: &[u8], symbols: &[u8]| {
        std::fs::write(other.path().join("hibari.onnx"), weights).unwrap();
        std::fs::write(other.path().join("vocab.json"), symbols).unwrap();
        audiocpp_hibari::open(other.path(), &device, Policy::Native).map(drop)
    };
    assert!(open(&whole, &symbols).is_ok());
    for length in [0, 1, 1000, whole.len() / 2, whole.len() - 1] {
        assert!(open(&whole[..length], &symbols).is_err(), "{length} bytes");
    }
    assert!(open(&whole, b"{\"a\": 178}").is_err());
    assert!(open(&whole, b"{\"ab\": 3}").is_err());
    assert!(open(&whole, b"{").is_err());
    // A tensor of the name that the network wants is gone.
    let name = b"m.dec_norm.weight";
    let places: Vec<usize> = (0..whole.len() - name.len())
        .filter(|&at| whole[at..].starts_with(name))
        .collect();
    assert!(!places.is_empty());
    let mut spoiled = whole.clone();
    for place in places {
        spoiled[place] = b'x';
    }
    assert!(open(&spoiled, &symbols).is_err());
}
