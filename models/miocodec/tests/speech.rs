//! Whole recordings through the session: any rate and channels, other voices, tokens there and back,
//! and what is refused.

mod common;

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use audiocpp::{
    audio::{Audio, AudioSource},
    engine::{
        CancelToken, Codec, CodecRequest, Codes, Convert, ConvertRequest, ErrorClass, Event,
        Family, LoadOptions, Model, OptionValue, Options, RunContext, Task,
    },
    graph::Device,
    weights::Policy,
};
use audiocpp_miocodec::{MioCodec, MioCodecModel};
use audiocpp_testing::{
    expected::{max_difference, relative_error},
    formula,
};

use common::{Package, data};

fn open(path: &Path) -> MioCodecModel {
    audiocpp_miocodec::open(path, None, &Device::cpu(2).unwrap(), Policy::Native).unwrap()
}

fn codec(model: &MioCodecModel) -> Box<dyn Codec> {
    let session = model.session(Task::Codec, &Options::default()).unwrap();
    session.into_codec().unwrap()
}

fn converter(model: &MioCodecModel) -> Box<dyn Convert> {
    let session = model.session(Task::Vc, &Options::default()).unwrap();
    session.into_convert().unwrap()
}

fn encode(codec: &mut dyn Codec, audio: Audio) -> Result<Codes, audiocpp::engine::Error> {
    let mut source = audio.into_source();
    codec.encode(&CodecRequest::default(), &mut source, &RunContext::new())
}

/// A voice-like tone with noise, `seconds` long.
fn voice(name: &str, hertz: f32, rate: u32, seconds: f64) -> Audio {
    let count = (seconds * f64::from(rate)) as usize;
    let noise = formula::unit(name, count);
    let value = |(i, x): (usize, f32)| {
        let t = i as f32 / rate as f32;
        let tone = |k: f32| (std::f32::consts::TAU * hertz * k * t).sin() / k;
        0.1 * x + 0.2 * (tone(1.0) + tone(2.0) + tone(3.0)) * (1.0 + (9.0 * t).sin())
    };
    let samples = noise.into_iter().enumerate().map(value).collect();
    Audio::new(samples, rate, 1).unwrap()
}

#[test]
fn tokens_go_there_and_back_through_files() {
    let package = Package::wave();
    let model = open(package.path());
    let mut codec = codec(&model);
    let codes = encode(&mut *codec, voice("a", 150.0, 24_000, 2.0)).unwrap();
    assert_eq!((codes.steps(), codes.samples), (50, 48_000));
    assert_eq!(
        (codes.sample_rate, &codes.codebooks[..]),
        (24_000, &[12_800][..])
    );
    assert_eq!(codes.global.len(), 32);
    let request = CodecRequest::default();
    let sound = codec.decode(&request, &codes, &RunContext::new()).unwrap();
    assert_eq!((sound.audio.rate, sound.audio.channels), (24_000, 1));
    assert_eq!(sound.audio.frames(), 48_000);
    for form in [
        codes.to_bytes().unwrap(),
        codes.to_json().unwrap().into_bytes(),
    ] {
        let again = Codes::parse(&form).unwrap();
        let other = codec.decode(&request, &again, &RunContext::new()).unwrap();
        assert_eq!(other.audio, sound.audio);
    }
    // The other variants have the same tokens.
    for package in [Package::wave_44k(), Package::mel()] {
        let model = open(package.path());
        let session = model.session(Task::Codec, &Options::default()).unwrap();
        let sound = session.into_codec().unwrap();
        let sound = { sound }
            .decode(&request, &codes, &RunContext::new())
            .unwrap();
        assert_eq!(sound.audio.rate, 44_100);
        let short = 88_200 - sound.audio.frames();
        assert!(short < 1024, "{short} samples less");
    }
}

#[test]
fn any_rate_and_channels_and_level_are_the_same_to_it() {
    let package = Package::wave();
    let model = open(package.path());
    let mut codec = codec(&model);
    let plain = encode(&mut *codec, voice("a", 150.0, 24_000, 1.0)).unwrap();
    let mut stereo = voice("a", 150.0, 24_000, 1.0);
    stereo.samples = stereo
        .samples
        .iter()
        .flat_map(|x| [0.5 * x, 0.25 * x])
        .collect();
    stereo.channels = 2;
    let found = encode(&mut *codec, stereo).unwrap();
    assert_eq!(found.tokens, plain.tokens);
    assert!(max_difference(&found.global, &plain.global) < 1e-4);
    for rate in [8_000, 44_100, 48_000] {
        let found = encode(&mut *codec, voice("a", 150.0, rate, 1.0)).unwrap();
        assert_eq!((found.steps(), found.samples), (25, 24_000), "{rate}");
    }
}

#[test]
fn a_conversion_is_the_tokens_of_one_with_the_voice_of_another() {
    let package = Package::wave();
    let model = open(package.path());
    let (source, target) = (
        voice("a", 150.0, 24_000, 1.5),
        voice("b", 230.0, 16_000, 2.0),
    );
    let request = ConvertRequest {
        seed: Some(1),
        ..ConvertRequest::default()
    };
    let context = RunContext::new();
    let sound = converter(&model)
        .convert(
            &request,
            &mut source.clone().into_source(),
            &target,
            &context,
        )
        .unwrap();
    assert_eq!(sound.audio.frames(), 36_000);
    assert!(sound.warnings[0].contains("seed"), "{:?}", sound.warnings);
    let mut codec = codec(&model);
    let mut codes = encode(&mut *codec, source).unwrap();
    let own = codec
        .decode(&CodecRequest::default(), &codes, &context)
        .unwrap();
    codes.global = codec.voice(&target, &context).unwrap();
    let other = codec
        .decode(&CodecRequest::default(), &codes, &context)
        .unwrap();
    assert_eq!(other.audio, sound.audio);
    assert!(relative_error(&own.audio.samples, &other.audio.samples) > 1e-3);
    // The same voice whichever way it is found.
    let whole = encode(&mut *codec, target).unwrap();
    assert!(max_difference(&whole.global, &codes.global) < 1e-5);
}

#[test]
fn a_bad_reference_is_told_by_what_is_wrong_with_it() {
    let package = Package::wave();
    let model = open(package.path());
    let mut session = converter(&model);
    let source = voice("a", 150.0, 24_000, 1.0);
    let mut refused = |target: Audio, class: ErrorClass, says: &str| {
        let mut source = source.clone().into_source();
        let found = session.convert(
            &ConvertRequest::default(),
            &mut source,
            &target,
            &RunContext::new(),
        );
        let error = found.unwrap_err();
        assert_eq!(error.class, class, "{error}");
        assert!(error.message.contains("reference"), "{error}");
        assert!(error.message.contains(says), "{error}");
    };
    let of = |samples: Vec<f32>| Audio::new(samples, 16_000, 1).unwrap();
    refused(of(Vec::new()), ErrorClass::BadInput, "empty");
    refused(of(vec![0.0; 32_000]), ErrorClass::BadInput, "silent");
    refused(of(vec![1e-5; 32_000]), ErrorClass::BadInput, "silent");
    refused(of(vec![0.5; 1_600]), ErrorClass::BadInput, "0.10 s long");
    refused(
        of(vec![0.5; 16_000 * 130]),
        ErrorClass::TooLarge,
        "at most 120 s",
    );
    let mut damaged = vec![0.5; 32_000];
    damaged[16_000] = f32::NAN;
    refused(of(damaged), ErrorClass::BadInput, "a sample is NaN");
}

#[test]
fn bad_recordings_and_tokens_are_refused() {
    let package = Package::wave();
    let model = open(package.path());
    let mut codec = codec(&model);
    let mut refused = |samples: Vec<f32>, says: &str| {
        let error = encode(&mut *codec, Audio::new(samples, 24_000, 1).unwrap()).unwrap_err();
        assert_eq!(error.class, ErrorClass::BadInput);
        assert!(error.message.contains(says), "{error}");
    };
    refused(Vec::new(), "empty");
    refused(vec![0.0; 24_000], "silent");
    refused(vec![0.5; 100], "shorter than a token");
    let good = encode(&mut *codec, voice("a", 150.0, 24_000, 1.0)).unwrap();
    let mut refused = |change: fn(&mut Codes), says: &str| {
        let mut codes = good.clone();
        change(&mut codes);
        let found = codec.decode(&CodecRequest::default(), &codes, &RunContext::new());
        let error = found.unwrap_err();
        assert_eq!(error.class, ErrorClass::BadInput);
        assert!(error.message.contains(says), "{error}");
    };
    refused(|c| c.family = "other".into(), "`other`");
    refused(|c| c.codebooks = vec![12_801], "12801");
    refused(|c| c.tokens[3] = 12_800, "token 3");
    refused(|c| c.tokens.clear(), "there are none");
    refused(|c| c.global.truncate(31), "31 values");
    refused(|c| c.samples *= 3, "3.00 s");
    refused(|c| c.samples = u64::MAX, "the file says");
    refused(|c| c.tokens = vec![0; 1_000_000], "longer than");
    let mut options = Options::default();
    options.set("speed", OptionValue::Int(1));
    let error = codec
        .decode(&CodecRequest { options }, &good, &RunContext::new())
        .unwrap_err();
    assert!(error.message.contains("speed"), "{error}");
}

/// Sound without an end that says how long it is.
struct Endless;

impl AudioSource for Endless {
    fn rate(&self) -> u32 {
        24_000
    }
    fn channels(&self) -> u16 {
        1
    }
    fn duration_hint(&self) -> Option<f64> {
        Some(7200.0)
    }
    fn read(&mut self, _: &mut Vec<f32>, _: usize) -> audiocpp::audio::Result<usize> {
        panic!("its length was told before")
    }
    fn warnings(&mut self) -> Vec<String> {
        Vec::new()
    }
}

#[test]
fn a_recording_of_hours_is_refused_before_it_is_read() {
    let package = Package::wave();
    let model = open(package.path());
    let found = codec(&model).encode(&CodecRequest::default(), &mut Endless, &RunContext::new());
    let error = found.unwrap_err();
    assert_eq!(error.class, ErrorClass::TooLarge);
    assert!(error.message.contains("1800 s"), "{error}");
}

#[test]
fn long_recordings_go_in_stretches_and_can_be_stopped() {
    let package = Package::wave();
    let model = open(package.path());
    let mut codec = codec(&model);
    let long = voice("long", 140.0, 24_000, 52.3);
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = events.clone();
    let sink = move |event: Event| {
        if let Event::Progress {
            stage, done, total, ..
        } = event
        {
            seen.lock().unwrap().push((stage, done, total));
        }
    };
    let context = RunContext::with_sink(CancelToken::default(), Arc::new(sink));
    let request = CodecRequest::default();
    let codes = codec
        .encode(&request, &mut long.clone().into_source(), &context)
        .unwrap();
    // 52.3 s are 2615 steps of WavLM, of which the last one has no pair.
    assert_eq!(codes.steps(), 1307);
    let sound = codec.decode(&request, &codes, &context).unwrap();
    assert_eq!(sound.audio.frames(), (52.3 * 24_000.0) as usize / 480 * 480);
    let events = events.lock().unwrap();
    let of = |wanted: &str| -> Vec<f64> {
        let of_stage = events.iter().filter(|(stage, ..)| stage == wanted);
        of_stage.map(|(_, done, _)| *done).collect()
    };
    assert_eq!(of("encode"), [24.0, 48.0, 52.3]);
    assert_eq!(of("decode"), [24.0, 48.0, 52.3]);
    assert!(events.iter().all(|(_, _, total)| *total == Some(52.3)));

    // A stretch sees enough of its neighbours: in its middle it is what it would be alone.
    let alone = Audio::new(long.samples[21 * 24_000..51 * 24_000].to_vec(), 24_000, 1).unwrap();
    let alone = encode(&mut *codec, alone).unwrap();
    let same = alone.tokens[75..675].iter().zip(&codes.tokens[600..1200]);
    let same = same.filter(|(a, b)| a == b).count();
    assert!(same > 590, "{same} of 600");

    let cancel = CancelToken::default();
    let token = cancel.clone();
    let stop = move |event: Event| {
        if matches!(event, Event::Progress { done, .. } if done < 25.0) {
            token.cancel();
        }
    };
    let context = RunContext::with_sink(cancel, Arc::new(stop));
    let found = codec.encode(&request, &mut long.into_source(), &context);
    assert_eq!(found.unwrap_err().class, ErrorClass::Cancelled);
}

/// torchaudio's names as transformers has them; the stacked projections are cut apart.
fn as_transformers(tensors: &common::Tensors) -> common::Tensors {
    let mut renamed = Vec::new();
    for (name, shape, values) in tensors {
        let Some(name) = name.strip_prefix("ssl_feature_extractor.model.") else {
            continue;
        };
        let name = name
            .replace("encoder.feature_projection.", "feature_projection.")
            .replace("encoder.transformer.", "encoder.")
            .replace("attention.attention.out_proj", "attention.out_proj");
        match name.split_once("attention.attention.in_proj_") {
            Some((layer, kind)) => {
                let parts = values.chunks(values.len() / 3);
                for (part, which) in parts.zip(["q", "k", "v"]) {
                    let mut shape = shape.clone();
                    shape[0] /= 3;
                    let name = format!("{layer}attention.{which}_proj.{kind}");
                    renamed.push((name, shape, part.to_vec()));
                }
            }
            None => renamed.push((name, shape.clone(), values.clone())),
        }
    }
    renamed
}

#[test]
fn wavlm_comes_from_a_file_of_its_own_under_either_naming() {
    let package = Package::wave();
    let sound = voice("a", 150.0, 24_000, 1.0);
    let wanted = encode(&mut *codec(&open(package.path())), sound.clone()).unwrap();
    let all = common::tensors(&["tensors.json"]);
    let weights = package.path().join("model.safetensors");
    let own = |name: &str| (!name.starts_with("ssl_")).then(|| name.to_owned());
    common::write(&weights, &all, own);

    // Without WavLM: tokens are decoded, and the error about encoding says what to do.
    let mut without = codec(&open(package.path()));
    let again = without.decode(&CodecRequest::default(), &wanted, &RunContext::new());
    assert_eq!(again.unwrap().audio.frames(), 24_000);
    let error = encode(&mut *without, sound.clone()).unwrap_err();
    assert_eq!(error.class, ErrorClass::Model);
    assert!(error.message.contains("wavlm-base-plus"), "{error}");

    let folder = package.path().join("wavlm-base-plus");
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("model.safetensors");
    let transformers = as_transformers(&all);
    assert!(
        transformers
            .iter()
            .any(|(name, ..)| name == "encoder.layers.3.attention.q_proj.weight")
    );
    common::write(&file, &transformers, |name| Some(name.to_owned()));
    assert_eq!(
        encode(&mut *codec(&open(package.path())), sound.clone()).unwrap(),
        wanted
    );
    common::write(&file, &transformers, |name| Some(format!("wavlm.{name}")));
    assert_eq!(
        encode(&mut *codec(&open(package.path())), sound.clone()).unwrap(),
        wanted
    );
    let plain = |name: &str| {
        name.strip_prefix("ssl_feature_extractor.model.")
            .map(str::to_owned)
    };
    common::write(&file, &all, plain);
    assert_eq!(
        encode(&mut *codec(&open(package.path())), sound.clone()).unwrap(),
        wanted
    );

    // By the load option, from elsewhere.
    let elsewhere = tempfile::tempdir().unwrap();
    let moved = elsewhere.path().join("any-name.safetensors");
    std::fs::rename(&file, &moved).unwrap();
    std::fs::remove_dir(&folder).unwrap();
    let mut options = LoadOptions {
        device: "cpu".into(),
        ..LoadOptions::default()
    };
    let path = moved.to_str().unwrap().to_owned();
    options.options.set("wavlm", OptionValue::Text(path));
    let model = MioCodec
        .load(package.path(), &options, &RunContext::new())
        .unwrap();
    let session = model.session(Task::Codec, &Options::default()).unwrap();
    assert_eq!(
        encode(&mut *session.into_codec().unwrap(), sound).unwrap(),
        wanted
    );
    options
        .options
        .set("wavlm", OptionValue::Text(weights.to_str().unwrap().into()));
    let error = MioCodec
        .load(package.path(), &options, &RunContext::new())
        .err()
        .unwrap();
    assert!(error.message.contains("no WavLM"), "{error}");
}

#[test]
fn a_damaged_package_is_an_error() {
    let package = Package::mel();
    assert!(MioCodec.can_load(package.path()));
    assert!(MioCodec.can_load(&package.path().join("config.yaml")));
    let device = Device::cpu(1).unwrap();
    let refused = |says: &str| {
        let found = audiocpp_miocodec::open(package.path(), None, &device, Policy::Native);
        let error = found.err().expect("an error").to_string();
        assert!(error.contains(says), "{error}");
    };
    let at = |name: &str| package.path().join(name);
    let vocoder = std::fs::read_to_string(data("vocoder_config.json")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(at(name), text).unwrap();
    write(
        "vocoder_config.json",
        &vocoder.replace("\"n_mel\": 16", "\"n_mel\": 17"),
    );
    refused("17 mel bins");
    write("vocoder_config.json", "[]");
    refused("vocoder_config.json");
    std::fs::remove_file(at("vocoder_config.json")).unwrap();
    let model = open(package.path());
    let session = model.session(Task::Codec, &Options::default()).unwrap();
    let codes = Codes {
        family: "miocodec".into(),
        sample_rate: 44_100,
        samples: 44_100,
        codebooks: vec![12_800],
        tokens: vec![7; 25],
        global: vec![0.1; 32],
    };
    let found = { session.into_codec().unwrap() }.decode(
        &CodecRequest::default(),
        &codes,
        &RunContext::new(),
    );
    assert!(found.unwrap_err().message.contains("no vocoder"));
    let config = std::fs::read_to_string(data("config_mel.yaml")).unwrap();
    write("config.yaml", &config.replace("n_layers: 2", "n_layers: 3"));
    refused("layers.2");
    write("config.yaml", "model: {}");
    refused("model.class_path");
    assert!(!MioCodec.can_load(package.path()));
    std::fs::remove_file(at("config.yaml")).unwrap();
    refused("config.yaml");
    let other = model.session(Task::Asr, &Options::default()).err().unwrap();
    assert_eq!(other.class, ErrorClass::Unsupported);
    assert_eq!(model.stages().unwrap().len(), 1);
}

#[test]
fn stages_for_comparing_devices_are_finite() {
    for (package, count) in [
        (Package::wave(), 4),
        (Package::wave_44k(), 2),
        (Package::mel(), 2),
    ] {
        let stages = open(package.path()).stages().unwrap();
        assert_eq!(stages.len(), count);
        let values = stages.iter().flat_map(|stage| &stage.values);
        assert!(values.clone().all(|x| x.is_finite()));
        assert!(values.fold(0.0f32, |m, x| m.max(x.abs())) > 0.1);
    }
}

#[test]
fn the_vocoder_in_stretches_gives_what_it_gives_at_once() {
    let mut machine = open(Package::mel().path()).machine().unwrap();
    let frames = 300;
    let mel: Vec<f32> = formula::unit("mel", frames * 16);
    let mut stretches = 0;
    let count = || {
        stretches += 1;
        Ok(())
    };
    let parts = machine.samples(&mel, count).unwrap();
    assert_eq!((stretches, parts.len()), (2, frames * 512));
    let whole = machine.vocode(&mel).unwrap();
    let off = max_difference(&parts, &whole);
    assert!(off < 1e-4, "{off:.1e}");
}
