//! Times encoding and decoding at the size of the released models, with formula weights: how long a
//! network takes does not depend on what it has learned.
//!
//! `time DEVICE THREADS SECONDS VARIANT` (`time cpu 2 10 24k`; variants `24k`, `44k`, `mel`) writes a
//! line of JSON for each of three runs on so many seconds of noise: seconds of each way (`encode`,
//! `decode`), the same as parts of real time (`encode_rtf`, `decode_rtf`), and the process's greatest
//! resident size so far in MiB (`peak_mib`). The first run finds no graphs and no pages ready.

use std::time::Instant;

use audiocpp::{
    engine::{LoadOptions, RunContext},
    graph::Device,
    nn::WavLmSize,
    weights::{Computed, Policy},
};
use audiocpp_miocodec::{
    Sources, build,
    config::{Config, DecoderKind, GlobalConfig, TransformerConfig},
    vocoder::VocoderConfig,
};
use audiocpp_testing::formula;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, device, threads, seconds, variant] = &arguments[..] else {
        return Err("usage: time DEVICE THREADS SECONDS VARIANT".into());
    };
    let config = released(variant)?;
    let vocoder = config.mels().map(|mels| VocoderConfig {
        mels,
        rates: vec![8, 8, 2, 2, 2],
        channels: 512,
        kernels: vec![3, 7, 11],
        dilations: vec![vec![1, 3, 5]; 3],
    });
    let weights = Computed::new(formula::tensor);
    let options = LoadOptions {
        device: device.clone(),
        threads: Some(threads.parse()?),
        ..LoadOptions::default()
    };
    let load = |device: &Device| {
        let sources = Sources {
            config: config.clone(),
            vocoder: vocoder.clone(),
            weights: &weights,
            wavlm: Some((&weights, "ssl_feature_extractor.model", WavLmSize::base(9))),
        };
        Ok(build(sources, variant.as_ref(), device, Policy::Native)?)
    };
    let (model, report) = options.on_device(&RunContext::new(), load)?;
    eprintln!("{}", report.device);
    let mut machine = model.machine()?;
    let seconds: f64 = seconds.parse()?;
    let count = (seconds * f64::from(config.sample_rate)) as usize;
    let samples = formula::unit("noise", count);
    for _ in 0..3 {
        let start = Instant::now();
        let made = machine.encode(&samples)?;
        let encode = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let frames = count / machine.frame_samples();
        let spectra = machine.spectra(&made.tokens, &made.global, frames)?;
        let spectra_took = start.elapsed().as_secs_f64();
        let sound = machine.samples(&spectra, || Ok(()))?;
        let decode = start.elapsed().as_secs_f64();
        let report = serde_json::json!({
            "encode": encode,
            "decode": decode,
            "spectra": spectra_took,
            "encode_rtf": encode / seconds,
            "decode_rtf": decode / seconds,
            "tokens": made.tokens.len(),
            "samples": sound.len(),
            "peak_mib": peak_mib(),
        });
        println!("{report}");
    }
    Ok(())
}

/// The sizes of a released variant.
fn released(variant: &str) -> Result<Config, Failure> {
    let text = match variant {
        "24k" => include_str!("../../../tests/data/miocodec/config.yaml"),
        "44k" => include_str!("../../../tests/data/miocodec/config_wave_44k.yaml"),
        "mel" => include_str!("../../../tests/data/miocodec/config_mel.yaml"),
        other => return Err(format!("there is no variant `{other}`: 24k, 44k or mel").into()),
    };
    let mut config = Config::parse(text)?;
    let sized =
        |of: &TransformerConfig, [dim, layers, heads, window]: [usize; 4]| TransformerConfig {
            dim,
            layers,
            heads,
            window: Some(window),
            condition: of.condition.map(|_| 128),
            ..of.clone()
        };
    config.local_encoder = sized(&config.local_encoder, [768, 6, 12, 125]);
    config.content = 768;
    config.global = GlobalConfig {
        input: 768,
        output: 128,
        layers: 4,
        dim: 384,
        hidden: 1152,
    };
    let decoder = &mut config.decoder;
    decoder.prenet = TransformerConfig {
        output: Some(512),
        ..sized(&decoder.prenet, [768, 6, 12, 65])
    };
    let mel = matches!(decoder.kind, DecoderKind::Mel { .. });
    decoder.decoder = TransformerConfig {
        output: mel.then_some(128),
        ..sized(&decoder.decoder, [512, if mel { 6 } else { 8 }, 8, 65])
    };
    if let DecoderKind::Mel { channels, .. } = &mut decoder.kind {
        *channels = 256;
    }
    Ok(config)
}

/// The greatest resident size of this process, where the system tells.
fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}
