//! Times segments of a network on one device, for comparison with PyTorch on the same card
//! (`xtask/peers/demucs_segments.py`).
//!
//! `segments MODEL [DEVICE] [WEIGHTS] [SEGMENTS]` (cpu, native, 8) runs SEGMENTS segments of noise, one
//! after the other, five times, and writes a line of JSON for each time.

use std::{path::Path, time::Instant};

use audiocpp::engine::{LoadOptions, RunContext};
use audiocpp_demucs::open;
use audiocpp_testing::formula;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().collect();
    let word = |i: usize, other: &str| words.get(i).map_or(other, String::as_str).to_owned();
    let path = words
        .get(1)
        .ok_or("usage: segments MODEL [DEVICE] [WEIGHTS] [SEGMENTS]")?;
    let segments: usize = word(4, "8").parse()?;
    let options = LoadOptions {
        device: word(2, "cpu"),
        weight_type: Some(word(3, "native")),
        ..LoadOptions::default()
    };
    let policy = options.policy()?;
    let context = RunContext::new();
    let (model, report) = options.on_device(&context, |device| {
        Ok(open(Path::new(path), device, policy)?)
    })?;
    eprintln!("{report:?}");
    let mut machines = model.machines()?;
    let machine = machines.first_mut().ok_or("no network")?;
    let config = &machine.net().config;
    let (count, rate) = (config.segment, config.samplerate);
    let sound = (segments * count) as f64 / f64::from(rate);
    let mix = formula::unit("mix", config.audio_channels * count);
    for _ in 0..5 {
        let start = Instant::now();
        for _ in 0..segments {
            machine.separate(&mix)?;
        }
        let wall = start.elapsed().as_secs_f64();
        let report = serde_json::json!({
            "segments": segments,
            "wall": wall,
            "real_time": wall / sound,
        });
        println!("{report}");
    }
    Ok(())
}
