//! A tiny network of formula weights beside the original code and transformers' port, stage by stage
//! (`tests/reference/vibevoice_reference.py`).

mod package;

use audiocpp::{
    graph::{DType, Device, Graph, GraphError},
    sampling::TorchRandom,
    weights::Policy,
};
use audiocpp_testing::{
    expected::{Expected, relative_error},
    formula,
    package::data,
};
use audiocpp_vibevoice::{
    VibeVoiceModel,
    head::time_features,
    machine::{Frame, Guidance, decode},
    open,
    script::Prompt,
    speech::{Plan, add_noise, speak},
};

const HOP: usize = 3200;
const LATENT: usize = 16;
const WIDTH: usize = 64;
const GUIDANCE: Guidance = Guidance {
    steps: 5,
    scale: 1.5,
};

fn values(name: &str, count: usize, scale: f32) -> Vec<f32> {
    let values = formula::unit(name, count).into_iter();
    values.map(|v| v * scale).collect()
}

/// An error far below what a mistake makes and far above rounding.
fn check(name: &str, found: &[f32], wanted: &[f32], limit: f64) {
    let error = relative_error(found, wanted);
    println!("{name}: {error:.2e}");
    assert!(error < limit, "{name}: {error}");
}

/// Ids with three frames of a voice at 5.
fn prompt() -> Prompt {
    let mut tokens: Vec<u32> = (0..24).map(|i| (7 * i * i + 3 * i) % 499).collect();
    tokens[4..9].copy_from_slice(&[501, 503, 503, 503, 502]);
    tokens[23] = 501;
    Prompt {
        tokens,
        frames: vec![5, 6, 7],
    }
}

fn head(model: &VibeVoiceModel) -> Vec<f32> {
    let head = &model.net().head;
    let mut velocity = Vec::new();
    for (i, time) in [799.0, 20.0].into_iter().enumerate() {
        let mut graph = Graph::build_exact(model.device(), |g| {
            let x = g.input("x", DType::F32, &[1, LATENT]);
            let c = g.input("c", DType::F32, &[1, WIDTH]);
            let times = head.times(g.input("times", DType::F32, &[1, 256]));
            g.output("v", head.velocity(x, c, times));
            Ok(())
        })
        .unwrap();
        let row = |name, width: usize| values(name, 2 * width, 1.0)[i * width..][..width].to_vec();
        graph.write("x", &row("head.x", LATENT)).unwrap();
        graph.write("c", &row("head.c", WIDTH)).unwrap();
        graph.write("times", &time_features(&[time])).unwrap();
        graph.compute().unwrap();
        velocity.extend(graph.read::<f32>("v").unwrap());
    }
    velocity
}

/// The loop with the tokens of the reference: scores `[steps, 4]`, hidden states of the frames with
/// and without the text, latents, samples.
struct Spoken {
    scores: Vec<f32>,
    latents: Vec<f32>,
    samples: Vec<f32>,
}

fn run_loop(model: &VibeVoiceModel, tokens: &[u32], voice: &[f32]) -> Spoken {
    let mut machine = model.machine().unwrap();
    let mut spoken = Spoken {
        scores: Vec::new(),
        latents: Vec::new(),
        samples: Vec::new(),
    };
    let (mut said, mut frame) = (tokens.iter(), 0);
    let plan = Plan {
        guidance: GUIDANCE,
        most: 20,
    };
    let finished = speak(
        &mut machine,
        (&prompt(), voice),
        plan,
        || {
            frame += 1;
            values(&format!("noise.{}", frame - 1), 2 * LATENT, 1.7)[..LATENT].to_vec()
        },
        |scores| {
            spoken.scores.extend(scores);
            *said.next().expect("no more tokens than in the reference")
        },
        |frame: Frame| {
            spoken.latents.extend(frame.latent);
            spoken.samples.extend(frame.samples);
            Ok(())
        },
        || Ok(()),
    )
    .unwrap();
    assert!(finished && said.next().is_none());
    spoken
}

fn compare(kind: &str, tokens: &[u32]) {
    let expected = Expected::read(data(&format!("vibevoice/{kind}/expected.safetensors")));
    let folder = package::write(kind, |_, _| ());
    let device = Device::cpu(2).unwrap();
    let model = open(folder.path(), &device, Policy::F32).unwrap();
    let mut machine = model.machine().unwrap();
    let latents = machine.encode(&values("wave", 3 * HOP, 0.3)).unwrap();
    check("acoustic", &latents, &expected.f32("acoustic"), 1e-4);
    let decoded = decode(&device, model.net(), &values("latents", 4 * LATENT, 2.0)).unwrap();
    check("decoded", &decoded, &expected.f32("decoded"), 1e-4);
    check("head", &head(&model), &expected.f32("head"), 1e-4);
    let voice = machine.connect(&latents).unwrap();
    let spoken = run_loop(&model, tokens, &voice);
    // Errors come back through the loop.
    check("scores", &spoken.scores, &expected.f32("loop_scores"), 1e-3);
    check(
        "latents",
        &spoken.latents,
        &expected.f32("loop_latents"),
        1e-3,
    );
    check(
        "samples",
        &spoken.samples,
        &expected.f32("loop_audio"),
        1e-3,
    );

    // The hidden states of the first frame, read in pieces and at once.
    let prompt = prompt();
    let mut embeddings = vec![None; 23];
    for i in 0..3 {
        embeddings[5 + i] = Some(&voice[i * WIDTH..(i + 1) * WIDTH]);
    }
    for pieces in [vec![23], vec![6, 1, 16]] {
        machine.begin(30, 30).unwrap();
        let mut at = 0;
        for piece in pieces {
            machine
                .read(
                    &prompt.tokens[at..at + piece],
                    &embeddings[at..at + piece],
                    || Ok::<_, GraphError>(()),
                )
                .unwrap();
            at += piece;
        }
        machine.say(501).unwrap();
        let hidden = machine.hidden().unwrap();
        let (positive, negative) = hidden.split_at(WIDTH);
        check(
            "positive",
            positive,
            &expected.f32("loop_positive")[..WIDTH],
            1e-4,
        );
        check(
            "negative",
            negative,
            &expected.f32("loop_negative")[..WIDTH],
            1e-4,
        );
    }
}

#[test]
fn the_original_s_numbers() {
    compare("original", &[503, 503, 503, 502, 501, 503, 503, 500]);
}

#[test]
fn the_port_s_numbers_under_its_names() {
    compare("hf", &[503, 503, 503, 503, 501, 503, 503, 500]);
}

#[test]
fn noise_of_voices_is_torch_s() {
    let expected = Expected::read(data("vibevoice/original/expected.safetensors"));
    let mut voices = vec![vec![0.0; 3 * LATENT]; 2];
    add_noise(&mut voices, LATENT, &mut TorchRandom::new(5));
    check(
        "noise",
        &voices.concat(),
        &expected.f32("voice_noise"),
        1e-5,
    );
}

#[test]
fn damaged_packages_are_errors() {
    let device = Device::cpu(1).unwrap();
    let problem = |folder: &tempfile::TempDir| {
        let found = open(folder.path(), &device, Policy::Native);
        found.err().expect("an error").to_string()
    };
    let empty = tempfile::tempdir().unwrap();
    assert!(problem(&empty).contains("no VibeVoice"));
    let folder = package::write("original", |_, _| ());
    let at = |file: &str| folder.path().join(file);
    let tokenizer = std::fs::read(at("tokenizer.json")).unwrap();
    std::fs::remove_file(at("tokenizer.json")).unwrap();
    assert!(problem(&folder).contains("Qwen/Qwen2.5-1.5B"));
    std::fs::write(at("tokenizer.json"), &tokenizer[..50]).unwrap();
    assert!(problem(&folder).contains("tokenizer.json"));
    std::fs::write(at("tokenizer.json"), &tokenizer).unwrap();
    let config = std::fs::read_to_string(at("config.json")).unwrap();
    std::fs::write(
        at("config.json"),
        config.replace("\"vocab_size\": 512", "\"vocab_size\": 400"),
    )
    .unwrap();
    assert!(problem(&folder).contains("503"), "{}", problem(&folder));
    let wide = config.replace("\"intermediate_size\": 96", "\"intermediate_size\": 128");
    std::fs::write(at("config.json"), wide).unwrap();
    assert!(
        problem(&folder).contains("gate_proj"),
        "{}",
        problem(&folder)
    );
}
