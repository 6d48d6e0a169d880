//! Times the encoder and forced greedy decoding of a checkpoint that needs no vocabulary:
//!
//! `forced MODEL [DEVICE] [TOKENS]` prints one line of JSON. `tests/reference/whisper_forced.py`
//! makes such a checkpoint and does the same with transformers.

use std::{path::Path, sync::Arc, time::Instant};

use anyhow::{Context, Result, bail};
use audiocpp::{
    engine::{LoadOptions, RunContext},
    simd,
    weights::Policy,
};
use audiocpp_whisper::{
    machine::{FIRST_ROW, Lane, Machine, first_rows},
    open_net,
};

/// Runs of which the fastest counts.
const RUNS: usize = 5;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments
        .next()
        .context("usage: forced MODEL [DEVICE] [TOKENS]")?;
    let device = arguments.next().unwrap_or_else(|| "auto".into());
    let tokens: usize = arguments.next().map_or(Ok(100), |n| n.parse())?;
    let options = LoadOptions {
        device,
        ..LoadOptions::default()
    };
    let started = Instant::now();
    let ((net, device), report) = options.on_device(&RunContext::default(), |device| {
        let net = open_net(Path::new(&model), device, Policy::Native)
            .map_err(audiocpp::engine::Error::from)?;
        Ok((Arc::new(net), device.clone()))
    })?;
    let load = started.elapsed().as_secs_f64();
    let mut machine = Machine::new(&device, net.clone(), net.config.text_ctx)?;
    let frames = machine.layout(net.config.audio_ctx);
    let mel: Vec<f32> = (0..frames.mels() * net.config.mels)
        .map(|i| (i as f32 * 0.37).sin())
        .collect();
    let mut encode = f64::MAX;
    let mut steps: Vec<f64> = Vec::new();
    let mut total = f64::MAX;
    for _ in 0..RUNS {
        let started = Instant::now();
        machine.encode(&mel, &frames)?;
        encode = encode.min(started.elapsed().as_secs_f64());
        steps.clear();
        decode(&mut machine, tokens, &mut steps)?;
        total = total.min(started.elapsed().as_secs_f64());
    }
    steps.sort_by(f64::total_cmp);
    println!(
        "{{\"device\": {:?}, \"load_s\": {load:.3}, \"encode_ms\": {:.2}, \"total_ms\": {:.1}, \
         \"tokens\": {tokens}, \"step_p50_ms\": {:.3}, \"step_p90_ms\": {:.3}}}",
        report.device,
        1e3 * encode,
        1e3 * total,
        1e3 * steps[steps.len() / 2],
        1e3 * steps[steps.len() * 9 / 10],
    );
    Ok(())
}

/// Four tokens of prompt, then the most probable token again and again; times of the steps.
fn decode(machine: &mut Machine, tokens: usize, steps: &mut Vec<f64>) -> Result<()> {
    let rows = first_rows(4 + tokens);
    let mut next = 1;
    for position in 3..3 + tokens {
        let started = Instant::now();
        let scores = if position == 3 {
            machine.score(&Lane::text(&[2, 3, 4, 5], &rows[..4]), &[3])?
        } else {
            let lane = Lane {
                token: next,
                position,
                row: FIRST_ROW + position,
                past: &rows[..position],
            };
            machine.score(&[lane], &[0])?
        };
        let most = simd::max(&scores);
        let Some(token) = scores.iter().position(|s| *s == most) else {
            bail!("the decoder gave no scores");
        };
        next = token as u32;
        steps.push(started.elapsed().as_secs_f64());
    }
    Ok(())
}
