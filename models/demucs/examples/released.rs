//! Networks of the released sizes under formula weights beside what PyTorch gave
//! (`tests/reference/demucs_reference.py --released NAME tests/data/demucs/released/NAME.safetensors`).
//!
//! `released [NAME ..]` prints the relative error of each stage of each network (all of them without
//! names), and fails where one reaches 1e-3.

use std::{path::PathBuf, sync::Arc};

use audiocpp::{
    backend::FastPath,
    graph::Device,
    weights::{Computed, Loader, Policy},
};
use audiocpp_demucs::{
    config::{Kind, NetConfig},
    machine::{Branches, Machine},
    net::Net,
};
use audiocpp_testing::{
    expected::{Expected, relative_error},
    formula,
};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

const NAMES: [&str; 4] = ["htdemucs", "htdemucs_ft", "htdemucs_6s", "hdemucs_mmi"];
/// Every STEP-th value is stored.
const STEP: usize = 1009;
/// The greatest relative error that passes.
const LIMIT: f64 = 1e-3;

fn arguments(name: &str) -> Option<(Kind, Value)> {
    let four = ["drums", "bass", "other", "vocals"];
    let six = [&four[..], &["guitar", "piano"]].concat();
    let segment = json!({"numerator": 39, "denominator": 5});
    let transformer = |sources: &[&str]| json!({"sources": sources, "bottom_channels": 512, "dconv_mode": 3, "segment": segment});
    Some(match name {
        "htdemucs" | "htdemucs_ft" => (Kind::Transformer, transformer(&four)),
        "htdemucs_6s" => (Kind::Transformer, transformer(&six)),
        "hdemucs_mmi" => {
            let kwargs = json!({"sources": four, "dconv_mode": 3, "segment": 44});
            (Kind::Hybrid, kwargs)
        }
        _ => return None,
    })
}

/// What a network makes of the mix: both branches, and the stems. `index` is its number in a bag.
fn run(
    device: &Device,
    kind: Kind,
    kwargs: &Value,
    index: usize,
) -> Result<(Branches, Vec<Vec<f32>>), Failure> {
    let config = NetConfig::new(kind, &[], kwargs.as_object().ok_or("arguments")?)?;
    // As `tuned` of the reference.
    let source = Computed::new(move |name, shape| {
        let factor = 1.0 - 0.05 * (index * (name.len() % 2)) as f32;
        let values = formula::tensor(name, shape);
        values.into_iter().map(|x| x * factor).collect()
    });
    let loader = Loader::new(&source, device, Policy::Native);
    let short = device.fast_path(FastPath::ShortConv);
    let net = Net::load(&loader.root(), config, short)?;
    loader.finish()?;
    let count = match kind {
        Kind::Transformer => net.config.segment,
        Kind::Hybrid => 10 * net.config.samplerate as usize,
    };
    let noise = formula::unit("mix", 2 * count);
    let value = |(i, x): (usize, f32)| 0.2 * x + 0.3 * ((i / 2) as f32 * 0.01).sin();
    let mix: Vec<f32> = noise.into_iter().enumerate().map(value).collect();
    let mut machine = Machine::new(device, Arc::new(net))?;
    let made = machine.branches(&mix)?;
    let start = std::time::Instant::now();
    let stems = machine.separate(&mix)?;
    eprintln!("{:.2} s", start.elapsed().as_secs_f64());
    Ok((made, stems))
}

/// The stages by name.
fn stages(device: &Device, name: &str) -> Result<Vec<(&'static str, Vec<f32>)>, Failure> {
    let (kind, kwargs) = arguments(name).ok_or_else(|| format!("no network is called {name}"))?;
    if name == "htdemucs_ft" {
        // A bag whose weights leave each stem to one network.
        let stem = |index| {
            let (_, mut stems) = run(device, kind, &kwargs, index)?;
            Ok::<_, Failure>(stems.swap_remove(index))
        };
        let stems = (0..4).map(stem).collect::<Result<Vec<_>, _>>()?;
        return Ok(vec![("stems", stems.concat())]);
    }
    let (made, stems) = run(device, kind, &kwargs, 0)?;
    Ok(vec![
        ("bins", made.bins),
        ("samples", made.samples),
        ("stems", stems.concat()),
    ])
}

fn main() -> Result<(), Failure> {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        names.extend(NAMES.map(str::to_owned));
    }
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/demucs/released");
    let device = Device::cpu(2)?;
    let mut worst: f64 = 0.0;
    for name in &names {
        let stages = stages(&device, name)?;
        let expected = Expected::read(data.join(format!("{name}.safetensors")));
        for (stage, values) in stages {
            let every: Vec<f32> = values.iter().step_by(STEP).copied().collect();
            let error = relative_error(&every, &expected.f32(stage));
            println!("{name} {stage}: {error:.2e}");
            worst = error.max(worst);
        }
    }
    match worst < LIMIT {
        true => Ok(()),
        false => Err(format!("an error of {worst:.2e}, where {LIMIT:.0e} is the limit").into()),
    }
}
