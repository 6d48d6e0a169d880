//! The network against transformers' Whisper: stage by stage, teacher-forced.

use std::{path::Path, sync::Arc};

use audiocpp::{
    audio::{Audio, Reader},
    backend::Choices,
    graph::Device,
    weights::Policy,
};
use audiocpp_testing::{
    expected::{Expected, relative_error},
    formula, models, speech,
};
use audiocpp_whisper::{
    machine::{Lane, Machine, first_rows},
    net::Frames,
    open, open_net,
};

/// Every 50th frame is kept in the files of expected values.
const FRAME_STEP: usize = 50;

fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/whisper")
        .join(name)
}

/// Scores after each of `tokens`, `[tokens, vocabulary]`, all in one run.
fn forced(machine: &mut Machine, tokens: &[u32]) -> Vec<f32> {
    let rows = first_rows(tokens.len());
    let all: Vec<usize> = (0..tokens.len()).collect();
    machine.score(&Lane::text(tokens, &rows), &all).unwrap()
}

/// As [`forced`], one token at a time through the cache.
fn stepped(machine: &mut Machine, tokens: &[u32]) -> Vec<f32> {
    let rows = first_rows(tokens.len());
    let lanes = Lane::text(tokens, &rows);
    let scores = lanes
        .iter()
        .map(|&lane| machine.score(&[lane], &[0]).unwrap());
    scores.flatten().collect()
}

fn norm(values: &[f32]) -> f32 {
    values
        .iter()
        .map(|v| f64::from(*v).powi(2))
        .sum::<f64>()
        .sqrt() as f32
}

fn every_50th(features: &[f32], width: usize) -> Vec<f32> {
    features
        .chunks_exact(width)
        .step_by(FRAME_STEP)
        .flatten()
        .copied()
        .collect()
}

fn assert_close(what: &str, found: &[f32], wanted: &[f32], limit: f64) {
    let error = relative_error(found, wanted);
    println!("{what}: relative error {error:.1e} (limit {limit:.0e})");
    assert!(
        error < limit,
        "{what}: relative error {error:.2e}, limit {limit:.0e}"
    );
}

/// A folder with the checkpoint that the formula gives.
fn formula_checkpoint() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.json");
    std::fs::copy(data("formula/config.json"), config).unwrap();
    let weights = folder.path().join("model.safetensors");
    formula::write_checkpoint(&data("formula/layout.json"), &weights).unwrap();
    folder
}

/// The mel frames that the formula gives: as [80, 3000]; the encoder reads [3000, 80].
fn formula_mel() -> Vec<f32> {
    let bands = formula::unit("input.mel", 80 * 3000);
    (0..3000)
        .flat_map(|t| (0..80).map(move |m| (m, t)))
        .map(|(m, t)| bands[m * 3000 + t])
        .collect()
}

#[test]
fn fast_paths_change_what_runs_and_not_what_comes_out() {
    let folder = formula_checkpoint();
    let cpu = Device::cpu(2).unwrap();
    let run = |forced: &[&str]| {
        // ggml's operators, which have names, unless told otherwise.
        let forced = ["blocked-product=off"].iter().chain(forced).copied();
        let choices = Choices::from_options(None, forced).unwrap();
        let device = cpu.with_fast_paths(choices);
        let net = Arc::new(open_net(folder.path(), &device, Policy::F16).unwrap());
        let blocks = net.encoder.blocks.len() + net.decoder.blocks.len();
        let frames = Frames::new(400, net.config.audio_ctx);
        let mut machine = Machine::new(&device, net, 64).unwrap();
        let mel = &formula_mel()[..frames.mels() * 80];
        machine.encode(mel, &frames).unwrap();
        let scores = forced_scores(&mut machine);
        let operators = machine.operators();
        let count = |name: &str| operators.iter().filter(|op| **op == name).count();
        (scores, count("FLASH_ATTN_EXT"), count("MUL_MAT"), blocks)
    };
    let (wanted, fused, products, blocks) = run(&[]);
    assert_eq!(fused, blocks);
    let (scores, fused, plain_products, _) = run(&["flash_attention=off"]);
    assert_eq!((fused, plain_products), (0, products + 2 * blocks));
    assert_close("without flash-attention", &scores, &wanted, 5e-3);
    let (scores, fused, single_products, _) = run(&["packed-projection=off"]);
    // Query, key and value everywhere, and the audio's keys and values in the decoder's half.
    assert_eq!(fused, blocks);
    assert_eq!(single_products, products + 2 * blocks + blocks / 2);
    assert_close("without packed-projection", &scores, &wanted, 1e-5);
    let (scores, fused, fewer_products, _) = run(&["blocked-product=on"]);
    assert!(fused < blocks && fewer_products < products);
    assert_close("with blocked-product", &scores, &wanted, 5e-3);
}

/// Scores after a few tokens.
fn forced_scores(machine: &mut Machine) -> Vec<f32> {
    forced(machine, &[1, 300, 411, 22])
}

#[test]
fn formula_weights_agree_in_f32_and_stay_near_in_smaller_types() {
    let folder = formula_checkpoint();
    let expected = Expected::read(data("formula/expected.safetensors"));
    let tokens: Vec<u32> = expected.i32("tokens").iter().map(|&t| t as u32).collect();
    let mel = formula_mel();
    let device = Device::cpu(1).unwrap();
    for (policy, limit) in [
        (Policy::F32, 1e-5),
        (Policy::F16, 5e-3),
        (Policy::BF16, 3e-2),
        (Policy::Q8_0, 3e-2),
    ] {
        let net = Arc::new(open_net(folder.path(), &device, policy).unwrap());
        let width = net.config.audio_width;
        let frames = Frames::new(net.config.audio_ctx, net.config.audio_ctx);
        let mut machine = Machine::new(&device, net, 64).unwrap();
        let features = machine.features(&mel, &frames).unwrap();
        assert_close(
            &format!("{policy:?} encoder"),
            &every_50th(&features, width),
            &expected.f32("encoder"),
            limit,
        );
        assert_close(
            &format!("{policy:?} encoder norm"),
            &[norm(&features)],
            &expected.f32("encoder.norm"),
            limit,
        );
        machine.encode(&mel, &frames).unwrap();
        let wanted = expected.f32("logits");
        assert_close(
            &format!("{policy:?} logits"),
            &forced(&mut machine, &tokens),
            &wanted,
            limit,
        );
        assert_close(
            &format!("{policy:?} cached"),
            &stepped(&mut machine, &tokens),
            &wanted,
            limit,
        );
    }
}

#[test]
fn published_weights_agree_with_transformers() {
    for id in ["tiny.en", "base"] {
        let Some(folder) = models::folder(&format!("whisper-{id}")) else {
            return;
        };
        let device = Device::cpu(1).unwrap();
        let model = open(&folder, &device, Policy::F32).unwrap();
        for clip in ["jfk", "sense-and-sensibility-0870"] {
            let expected = Expected::read(data(&format!("{id}/{clip}.safetensors")));
            compare_clip(
                &model,
                &speech::folder().join(format!("{clip}.flac")),
                &expected,
                &format!("{id} {clip}"),
            );
        }
    }
}

fn compare_clip(
    model: &audiocpp_whisper::WhisperModel,
    path: &Path,
    expected: &Expected,
    what: &str,
) {
    let mut reader = Reader::open(path).unwrap();
    let audio = Audio::from_source(&mut reader, None).unwrap();
    assert_eq!((audio.rate, audio.channels), (16_000, 1));
    let config = &model.net().config;
    let frames = Frames::new(config.audio_ctx, config.audio_ctx);
    let mel = model.mel().window(&audio.samples, frames.mels()).unwrap();
    assert_close(
        &format!("{what} mel norm"),
        &[norm(&mel)],
        &expected.f32("mel.norm"),
        1e-4,
    );
    let mut machine = model.machine().unwrap();
    let features = machine.features(&mel, &frames).unwrap();
    let found = every_50th(&features, config.audio_width);
    assert_close(
        &format!("{what} encoder"),
        &found,
        &expected.f32("encoder"),
        1e-3,
    );
    assert_close(
        &format!("{what} encoder norm"),
        &[norm(&features)],
        &expected.f32("encoder.norm"),
        1e-3,
    );
    machine.encode(&mel, &frames).unwrap();
    let tokens: Vec<u32> = expected.i32("tokens").iter().map(|&t| t as u32).collect();
    let ids = expected.i32("logits.ids");
    let pick = |scores: &[f32]| -> Vec<f32> {
        let per_step = ids.len() / tokens.len();
        ids.iter()
            .enumerate()
            .map(|(i, &id)| scores[i / per_step * config.vocab + id as usize])
            .collect()
    };
    let wanted = expected.f32("logits");
    let all = forced(&mut machine, &tokens);
    assert_close(&format!("{what} logits"), &pick(&all), &wanted, 1e-3);
    let norms: Vec<f32> = all.chunks_exact(config.vocab).map(norm).collect();
    assert_close(
        &format!("{what} logits norms"),
        &norms,
        &expected.f32("logits.norm"),
        1e-3,
    );
    assert_close(
        &format!("{what} cached"),
        &pick(&stepped(&mut machine, &tokens)),
        &wanted,
        1e-3,
    );
}
