//! Compares a network of a released size under formula weights with what PyTorch gave
//! (`tests/reference/demucs_reference.py --released NAME OUT.safetensors`).
//!
//! `released NAME EXPECTED.safetensors` prints the relative error of each stage.

use std::{path::Path, sync::Arc};

use audiocpp::{
    graph::Device,
    weights::{Computed, Loader, Policy},
};
use audiocpp_demucs::{
    config::{Kind, NetConfig},
    machine::Machine,
    net::Net,
};
use audiocpp_testing::{
    expected::{Expected, relative_error},
    formula,
};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

/// Every STEP-th value is stored.
const STEP: usize = 1009;

fn arguments(name: &str) -> Option<(Kind, Value)> {
    let four = ["drums", "bass", "other", "vocals"];
    let six = [&four[..], &["guitar", "piano"]].concat();
    let segment = json!({"numerator": 39, "denominator": 5});
    let transformer = |sources: &[&str]| json!({"sources": sources, "bottom_channels": 512, "dconv_mode": 3, "segment": segment});
    Some(match name {
        "htdemucs" => (Kind::Transformer, transformer(&four)),
        "htdemucs_6s" => (Kind::Transformer, transformer(&six)),
        "hdemucs_mmi" => {
            let kwargs = json!({"sources": four, "dconv_mode": 3, "segment": 44});
            (Kind::Hybrid, kwargs)
        }
        _ => return None,
    })
}

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().collect();
    let [_, name, expected] = &words[..] else {
        return Err("usage: released NAME EXPECTED.safetensors".into());
    };
    let (kind, kwargs) = arguments(name).ok_or("no such network")?;
    let config = NetConfig::new(kind, &[], kwargs.as_object().ok_or("arguments")?)?;
    let device = Device::cpu(2)?;
    let source = Computed::new(formula::tensor);
    let loader = Loader::new(&source, &device, Policy::Native);
    let net = Net::load(&loader.root(), config)?;
    loader.finish()?;
    let count = match kind {
        Kind::Transformer => net.config.segment,
        Kind::Hybrid => 10 * net.config.samplerate as usize,
    };
    let noise = formula::unit("mix", 2 * count);
    let value = |(i, x): (usize, f32)| 0.2 * x + 0.3 * ((i / 2) as f32 * 0.01).sin();
    let mix: Vec<f32> = noise.into_iter().enumerate().map(value).collect();
    let mut machine = Machine::new(&device, Arc::new(net))?;
    let made = machine.branches(&mix)?;
    let start = std::time::Instant::now();
    let stems = machine.separate(&mix)?.concat();
    println!("{name}: {:.2} s", start.elapsed().as_secs_f64());
    let expected = Expected::read(Path::new(expected));
    for (stage, values) in [
        ("bins", &made.bins),
        ("samples", &made.samples),
        ("stems", &stems),
    ] {
        let every: Vec<f32> = values.iter().step_by(STEP).copied().collect();
        let error = relative_error(&every, &expected.f32(stage));
        println!("{stage}: {error:.2e}");
    }
    Ok(())
}
