//! A fixed input through every stage, for comparing devices.

use audiocpp::engine::{Result, Stage};

use crate::{
    machine::{Lane, first_rows},
    model::WhisperModel,
    tokenizer::Task,
};

/// Seconds of the test sound.
const SECONDS: usize = 5;
/// Text tokens that the decoder is forced through.
const TOKENS: u32 = 16;

/// A rising tone that swells and fades, over a little noise: something in every mel band.
fn sound() -> Vec<f32> {
    let n = SECONDS * 16_000;
    let mut state = 1u32;
    (0..n)
        .map(|i| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = state as f32 / u32::MAX as f32 - 0.5;
            let t = i as f32 / 16_000.0;
            let phase = std::f32::consts::TAU * (120.0 + 350.0 * t) * t;
            0.3 * phase.sin() * (2.0 * t).sin().abs() + 0.02 * noise
        })
        .collect()
}

/// Log-mel, encoder, decoder with all tokens at once, decoder token by token.
pub fn stages(model: &WhisperModel) -> Result<Vec<Stage>> {
    let mut machine = model.machine()?;
    let frames = machine.layout(SECONDS * 50 + 14);
    let mel = model
        .mel()
        .window(&sound(), frames.mels())
        .map_err(|e| audiocpp::engine::Error::internal(e.to_string()))?;
    let encoder = machine.features(&mel, &frames)?;
    machine.encode(&mel, &frames)?;
    let mut tokens = model
        .tokenizer()
        .sot_sequence("en", Task::Transcribe, false)
        .map_err(|e| audiocpp::engine::Error::internal(e.to_string()))?;
    // Any text tokens do; these spread over the common part of the vocabulary.
    tokens.extend((0..TOKENS).map(|i| 300 + 211 * i));
    let rows = first_rows(tokens.len());
    let lanes = Lane::text(&tokens, &rows);
    let all: Vec<usize> = (0..tokens.len()).collect();
    let decoder = machine.score(&lanes, &all)?;
    let mut steps = Vec::with_capacity(decoder.len());
    for lane in lanes {
        steps.extend(machine.score(&[lane], &[0])?);
    }
    let stage = |name: &str, values: Vec<f32>| Stage {
        name: name.into(),
        values,
    };
    Ok(vec![
        stage("mel", mel),
        stage("encoder", encoder),
        stage("decoder", decoder),
        stage("decoder step by step", steps),
    ])
}
