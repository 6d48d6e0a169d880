//! Times a voice on sentences that are given as symbol numbers, for comparison with other
//! programs on the same numbers (`cargo xtask bench tts`).
//!
//! `time VOICE THREADS` reads lines of JSON from its input, each a text as a list of sentences,
//! each sentence a list of numbers; and writes for each a line of JSON: seconds until the first
//! samples were there (`first`) and until all were (`all`), seconds of sound (`sound`), seconds
//! in each stage, and the process's greatest resident size so far in MiB (`peak_mib`).

use std::{io::BufRead, path::Path, time::Instant};

use audiocpp::{engine::RunContext, graph::Device, sampling::TorchRandom, weights::Policy};
use audiocpp_piper::machine::{Machine, Manner};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, voice, threads] = &arguments[..] else {
        return Err("usage: time VOICE THREADS".into());
    };
    let device = Device::cpu(threads.parse()?)?;
    let model = audiocpp_piper::open(Path::new(voice), &device, Policy::Native)?;
    let rate = f64::from(model.config().rate);
    let manner = Manner {
        speaker: 0,
        noise_scale: model.config().noise_scale,
        length_scale: model.config().length_scale,
        noise_w: model.config().noise_w,
    };
    let mut machine = model.machine();
    for line in std::io::stdin().lock().lines() {
        let text: Vec<Vec<i32>> = serde_json::from_str(&line?)?;
        let mut times = Times::new();
        let mut random = TorchRandom::new(0);
        for sentence in &text {
            speak(&mut machine, sentence, &manner, &mut random, &mut times)?;
        }
        let report = serde_json::json!({
            "first": times.first,
            "all": times.start.elapsed().as_secs_f64(),
            "sound": times.samples as f64 / rate,
            "stages": times.stages,
            "peak_mib": peak_mib(),
        });
        println!("{report}");
    }
    Ok(())
}

struct Times {
    start: Instant,
    first: Option<f64>,
    samples: usize,
    /// Encoder, durations, flow, vocoder.
    stages: [f64; 4],
}

impl Times {
    fn new() -> Times {
        Times {
            start: Instant::now(),
            first: None,
            samples: 0,
            stages: [0.0; 4],
        }
    }
}

fn speak(
    machine: &mut Machine,
    sentence: &[i32],
    manner: &Manner,
    random: &mut TorchRandom,
    times: &mut Times,
) -> Result<(), Failure> {
    let mut mark = Instant::now();
    let mut stage = |times: &mut Times, number: usize| {
        times.stages[number] += mark.elapsed().as_secs_f64();
        mark = Instant::now();
    };
    let encoded = machine.encode(sentence, manner.speaker)?;
    stage(times, 0);
    let lengths = machine.durations(&encoded, manner, random)?;
    stage(times, 1);
    let latents = machine.latents(&encoded, &lengths, manner, random);
    let frames = machine.flow(&latents, manner.speaker)?;
    stage(times, 2);
    let start = times.start;
    machine.vocode(&frames, manner.speaker, &RunContext::new(), |window| {
        times.samples += window.len();
        times
            .first
            .get_or_insert_with(|| start.elapsed().as_secs_f64());
        Ok(())
    })?;
    stage(times, 3);
    Ok(())
}

/// The greatest resident size of this process, where the system tells.
fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}
