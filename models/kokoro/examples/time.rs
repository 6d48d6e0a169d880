//! Times the model on chunks that are given as phonemes, for comparison with other programs on the
//! same phonemes.
//!
//! `time MODEL VOICE THREADS [FOLDER]` reads lines of phonemes in Kokoro's own symbols from its
//! input, and writes for each a line of JSON: seconds until all samples were there (`all`), seconds
//! of sound (`sound`) and seconds in each stage. With a folder, the sound goes there as `N.wav`.

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
    let (model, voice, threads, folder) = match &arguments[..] {
        [_, model, voice, threads] => (model, voice, threads, None),
        [_, model, voice, threads, folder] => (model, voice, threads, Some(folder)),
        _ => return Err("usage: time MODEL VOICE THREADS [FOLDER]".into()),
    };
    let device = Device::cpu(threads.parse()?)?;
    let model = audiocpp_kokoro::open(Path::new(model), &device, Policy::Native)?;
    let style = model.styles().mix(voice)?;
    let mut machine = model.machine();
    for (i, line) in std::io::stdin().lock().lines().enumerate() {
        let known = line?
            .chars()
            .filter_map(|c| model.vocab().get(&c).copied())
            .collect::<Vec<_>>();
        let symbols: Vec<i32> = [&[0], &known[..], &[0]].concat();
        let start = Instant::now();
        let (samples, stages) = speak(&mut machine, &symbols, style.of(known.len()))?;
        let report = serde_json::json!({
            "all": start.elapsed().as_secs_f64(),
            "sound": samples.len() as f64 / f64::from(RATE),
            "stages": stages,
        });
        println!("{report}");
        if let Some(folder) = folder {
            let path = Path::new(folder).join(format!("{i}.wav"));
            write_wav(&path, &Audio::new(samples, RATE, 1)?, WavFormat::Pcm16)?;
        }
    }
    Ok(())
}

/// The samples, and the seconds of encoder, prosody, source, decoder and transform.
fn speak(
    machine: &mut Machine,
    symbols: &[i32],
    style: &[f32],
) -> Result<(Vec<f32>, [f64; 5]), Failure> {
    let (acoustic, prosodic) = style.split_at(style.len() / 2);
    let mut at = Instant::now();
    let mut lap = || {
        let seconds = at.elapsed().as_secs_f64();
        at = Instant::now();
        seconds
    };
    let encoded = machine.encode(symbols, prosodic)?;
    let lengths = machine.durations(&encoded, 1.0)?;
    let encoder = lap();
    let [pitch, energy] = machine.prosody(&encoded, &lengths, prosodic)?;
    let prosody = lap();
    let mut random = TorchRandom::new(0);
    let source = machine.source().spectrum(&pitch, Some(&mut random))?;
    let sources = lap();
    let spectrum = machine.decode(&encoded, &lengths, [&pitch, &energy], &source, acoustic)?;
    let decoder = lap();
    let samples = machine.source().head().samples(&spectrum)?;
    Ok((samples, [encoder, prosody, sources, decoder, lap()]))
}
