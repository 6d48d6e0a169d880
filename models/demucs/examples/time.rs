//! Times a model on a recording, for comparison with other programs on the same files
//! (`cargo xtask bench sep`).
//!
//! `time MODEL RECORDING THREADS` writes a line of JSON for each of two runs: seconds of the run
//! (`wall`), seconds of sound (`sound`), and the process's greatest resident size so far in MiB
//! (`peak_mib`). The first run finds no graphs and no pages ready.

use std::{path::Path, time::Instant};

use audiocpp::{
    audio::Reader,
    engine::{Model, Options, RunContext, SeparateRequest, Task},
    graph::Device,
    weights::Policy,
};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, model, recording, threads] = &arguments[..] else {
        return Err("usage: time MODEL RECORDING THREADS".into());
    };
    let device = Device::cpu(threads.parse()?)?;
    let model = audiocpp_demucs::open(Path::new(model), &device, Policy::Native)?;
    let session = model.session(Task::Sep, &Options::default())?;
    let mut session = session.into_separate()?;
    let request = SeparateRequest {
        stream: true,
        ..SeparateRequest::default()
    };
    for _ in 0..2 {
        let mut reader = Reader::open(recording)?;
        let start = Instant::now();
        let found = session.separate(&request, &mut reader, &RunContext::new())?;
        let report = serde_json::json!({
            "wall": start.elapsed().as_secs_f64(),
            "sound": found.duration,
            "peak_mib": peak_mib(),
        });
        println!("{report}");
    }
    Ok(())
}

/// The greatest resident size of this process, where the system tells.
fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}
