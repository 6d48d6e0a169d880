//! Times the model on chunks that are given as phonemes, for comparison with other programs on the
//! same phonemes (`cargo xtask bench tts --model kokoro`).
//!
//! `time MODEL THREADS [FOLDER]` reads lines of JSON from its input, each a text as a list of
//! chunks, each chunk a string of Kokoro's own symbols; and writes for each a line of JSON: seconds
//! until the first samples were there (`first`) and until all were (`all`), seconds of sound
//! (`sound`), seconds in each stage, and the process's greatest resident size so far in MiB
//! (`peak_mib`). It speaks with the model's first voice. With a folder, the sound goes there as
//! `N.wav`.

use std::{io::BufRead, path::Path, time::Instant};

use audiocpp::{
    audio::{Audio, WavFormat, write_wav},
    graph::Device,
    sampling::TorchRandom,
    weights::Policy,
};
use audiocpp_kokoro::{machine::Machine, source::RATE};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let (model, threads, folder) = match &arguments[..] {
        [_, model, threads] => (model, threads, None),
        [_, model, threads, folder] => (model, threads, Some(folder)),
        _ => return Err("usage: time MODEL THREADS [FOLDER]".into()),
    };
    let device = Device::cpu(threads.parse()?)?;
    let model = audiocpp_kokoro::open(Path::new(model), &device, Policy::Native)?;
    let voice = model.styles().names().next().ok_or("no voice")?;
    let style = model.styles().mix(voice)?;
    let mut machine = model.machine();
    for (i, line) in std::io::stdin().lock().lines().enumerate() {
        let text: Vec<String> = serde_json::from_str(&line?)?;
        let mut random = TorchRandom::new(0);
        let (mut samples, mut stages, mut first) = (Vec::new(), [0.0; 5], None);
        let start = Instant::now();
        for chunk in &text {
            let known = chunk
                .chars()
                .filter_map(|c| model.vocab().get(&c).copied())
                .collect::<Vec<_>>();
            let symbols: Vec<i32> = [&[0], &known[..], &[0]].concat();
            let style = style.of(known.len());
            samples.extend(speak(
                &mut machine,
                &symbols,
                style,
                &mut random,
                &mut stages,
            )?);
            first.get_or_insert_with(|| start.elapsed().as_secs_f64());
        }
        let report = serde_json::json!({
            "first": first,
            "all": start.elapsed().as_secs_f64(),
            "sound": samples.len() as f64 / f64::from(RATE),
            "stages": stages,
            "peak_mib": peak_mib(),
        });
        println!("{report}");
        if let Some(folder) = folder {
            let path = Path::new(folder).join(format!("{i}.wav"));
            write_wav(&path, &Audio::new(samples, RATE, 1)?, WavFormat::Pcm16)?;
        }
    }
    Ok(())
}

/// The samples; adds the seconds of encoder, prosody, source, decoder and transform.
fn speak(
    machine: &mut Machine,
    symbols: &[i32],
    style: &[f32],
    random: &mut TorchRandom,
    stages: &mut [f64; 5],
) -> Result<Vec<f32>, Failure> {
    let (acoustic, prosodic) = style.split_at(style.len() / 2);
    let mut at = Instant::now();
    let mut lap = |stage: usize| {
        stages[stage] += at.elapsed().as_secs_f64();
        at = Instant::now();
    };
    let encoded = machine.encode(symbols, prosodic)?;
    let lengths = machine.durations(&encoded, 1.0)?;
    lap(0);
    let [pitch, energy] = machine.prosody(&encoded, &lengths, prosodic)?;
    lap(1);
    let source = machine.source().spectrum(&pitch, Some(random))?;
    lap(2);
    let spectrum = machine.decode(&encoded, &lengths, [&pitch, &energy], &source, acoustic)?;
    lap(3);
    let samples = machine.source().head().samples(&spectrum)?;
    lap(4);
    Ok(samples)
}

/// The greatest resident size of this process, where the system tells.
fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}
