//! Times the loop on weights that are made up: of the released sizes, without a checkpoint.
//!
//! `time SIZE DEVICE WEIGHTS [THREADS [PROMPT [FRAMES [STEPS]]]]`, say `time 1.5b cuda bf16 2 1024 450`.
//! SIZE is `1.5b`, `7b` or `tiny`; WEIGHTS `f32`, `f16`, `bf16`, `q8_0` or `q4_K`; the script has PROMPT
//! tokens (512), then FRAMES frames are made (75, which is 10 s) with STEPS steps each (10). It writes
//! one line of JSON: the real-time factor; milliseconds a frame of the whole loop, of the language
//! model's step, and of the rest, which is one graph; and of that graph's parts, each run by itself as
//! often; seconds of reading the script and of encoding 30 s of a voice; bytes of the weights.

use std::time::Instant;

use audiocpp::{
    engine::{LoadOptions, Loaded, RunContext},
    graph::{BufferBuilder, DType, Device, DeviceTensor, Graph, GraphError, Scope},
    weights::{Computed, Policy},
};
use audiocpp_vibevoice::{
    config::{Config, RATE},
    layers::{Memory, Past},
    machine::{Guidance, Machine},
    net::Net,
    solver,
};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

const SCALE: f32 = 1.3;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [size, device, weights, rest @ ..] = &arguments[..] else {
        return Err("usage: time SIZE DEVICE WEIGHTS [THREADS [PROMPT [FRAMES [STEPS]]]]".into());
    };
    let number = |i: usize, other: usize| rest.get(i).map_or(Ok(other), |text| text.parse());
    let (threads, prompt) = (number(0, 2)?, number(1, 512)?);
    let (frames, steps) = (number(2, 75)?, number(3, 10)?);
    let options = LoadOptions {
        device: device.clone(),
        threads: Some(threads),
        ..LoadOptions::default()
    };
    let (device, report) = options.on_device(&RunContext::new(), |device| Ok(device.clone()))?;
    let policy: Policy = weights.parse()?;
    let config = Config::read(&settings(size)?, "config.json".as_ref())?;
    let tokens = config.tokens;
    let begun = Instant::now();
    let mut loaded = Loaded::new(size.as_ref(), &device);
    let net = Net::load(&Computed::new(fill), config, &mut loaded, policy)?;
    let load = begun.elapsed().as_secs_f64();
    let (net, info) = (
        std::sync::Arc::new(net),
        loaded.info("vibevoice", &[], RATE),
    );
    let mut machine = Machine::new(&device, net.clone())?;

    let voice = vec![0.05f32; 30 * RATE as usize];
    machine.encode(&voice[..1])?; // the graph is made
    let voice = seconds(|| machine.encode(&voice).map(drop))?;
    let ids: Vec<u32> = (0..prompt as u32).map(|i| i * 31 % 500).collect();
    let guidance = Guidance {
        steps,
        scale: SCALE,
    };
    let noise = |i: usize| -> Vec<f32> {
        let values = 0..net.config.acoustic.latent;
        values
            .map(|k| ((i * 97 + k * 13) as f32).sin() * 1.4)
            .collect()
    };
    let (mut read, mut lm, mut rest) = (0.0, 0.0, 0.0);
    for round in 0..2 {
        machine.begin(prompt + frames + 1, frames)?;
        read = seconds(|| machine.read(&ids, &[], || Ok::<_, GraphError>(())))?;
        machine.say(tokens.start)?;
        (lm, rest) = (0.0, 0.0);
        // The first round makes the graphs.
        for i in 0..if round == 0 { frames.min(3) } else { frames } {
            rest += seconds(|| machine.frame(&noise(i), guidance).map(drop))?;
            lm += seconds(|| machine.hear().map(drop))?;
        }
    }
    let each = |total: f64| total / frames as f64 * 1e3;
    let frame_s = net.config.acoustic.hop() as f64 / f64::from(RATE);
    let parts = parts(&device, &net, steps, frames)?;
    let line = json!({
        "size": size, "device": report.device, "name": report.name, "weights": policy.to_string(),
        "threads": threads, "prompt": prompt, "frames": frames, "steps": steps,
        "real_time_factor": (lm + rest) / (frames as f64 * frame_s),
        "frame_ms": each(lm + rest), "language_model_ms": each(lm), "speech_ms": each(rest),
        "parts_ms": parts, "read_s": read, "voice_30s_s": voice, "load_s": load,
        "weight_mib": info.weight_bytes >> 20, "parameters": info.parameters, "peak_mib": peak_mib(),
    });
    println!("{line}");
    Ok(())
}

fn seconds<E>(work: impl FnOnce() -> Result<(), E>) -> Result<f64, E> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed().as_secs_f64())
}

/// Milliseconds of diffusion head, decoder, and semantic encoder with the connectors.
fn parts(device: &Device, net: &Net, steps: usize, frames: usize) -> Result<Value, Failure> {
    let config = &net.config;
    let [latent, heard] = [config.acoustic.latent, config.semantic.latent];
    let (width, hop) = (config.lm.width, config.acoustic.hop());
    let times = state(device, &[[steps, width]])?.remove(0);
    let path = solver::steps(steps);
    let head = timed(device, frames, [latent, 2 * width], |g| {
        let noise = g.input("x", DType::F32, &[1, 1, latent]);
        let conditions = g.input("conditions", DType::F32, &[2, width]);
        g.output(
            "y",
            net.head.sample(noise, conditions, &times, &path, SCALE),
        );
        Ok(())
    })?;
    let memory = state(device, &net.acoustic_decoder.memories())?;
    let decoder = timed(device, frames, [latent, 0], |g| {
        let x = g.input("x", DType::F32, &[1, 1, latent]);
        g.output("y", net.acoustic_decoder.forward(x, Past::of(&memory)));
        Ok(())
    })?;
    let memory = state(device, &net.semantic_encoder.memories())?;
    let hears = timed(device, frames, [hop, latent], |g| {
        let samples = g.input("x", DType::F32, &[1, hop, 1]);
        let x = g.input("conditions", DType::F32, &[1, latent]);
        let y = net.semantic_encoder.forward(samples, Past::of(&memory));
        g.output("y", net.spoken(x, y.reshape(&[1, heard])));
        Ok(())
    })?;
    Ok(json!({"diffusion": head, "decoder": decoder, "semantic_encoder": hears}))
}

fn state(device: &Device, shapes: &[Memory]) -> Result<Vec<DeviceTensor>, Failure> {
    let mut buffer = BufferBuilder::new(device, shapes.len());
    let tensors: Result<Vec<DeviceTensor>, _> = shapes
        .iter()
        .map(|&[steps, channels]| match shapes.len() {
            1 => buffer.declare("times", DType::F32, &[steps, channels]),
            _ => buffer.declare("memory", DType::F32, &[1, steps, channels]),
        })
        .collect();
    buffer.allocate()?;
    Ok(tensors?)
}

/// Milliseconds of one run of a graph with the inputs `x` and `conditions` of `sizes` values; none of
/// 0.
fn timed<F>(device: &Device, runs: usize, sizes: [usize; 2], describe: F) -> Result<f64, Failure>
where
    F: for<'g> Fn(&'g Scope) -> Result<(), GraphError>,
{
    let mut graph = Graph::build(device, describe)?;
    let mut begun = Instant::now();
    for run in 0..runs + 3 {
        if run == 3 {
            begun = Instant::now();
        }
        for (name, count) in ["x", "conditions"].into_iter().zip(sizes) {
            if count > 0 {
                graph.write(name, &vec![0.3f32; count])?;
            }
        }
        graph.compute()?;
        graph.read::<f32>("y")?;
    }
    Ok(begun.elapsed().as_secs_f64() * 1e3 / runs as f64)
}

/// The released sizes.
fn settings(size: &str) -> Result<Value, Failure> {
    let [width, layers, heads, kv, ffn, vocab, filters] = match size {
        "1.5b" => [1536, 28, 12, 2, 8960, 151_936, 32],
        "7b" => [3584, 28, 28, 4, 18_944, 152_064, 32],
        "tiny" => [256, 4, 4, 2, 512, 151_936, 4],
        other => return Err(format!("no size `{other}`: 1.5b, 7b or tiny").into()),
    };
    let tokenizer = |latent: usize| {
        json!({
            "encoder_ratios": [8, 5, 5, 4, 2, 2], "encoder_depths": "3-3-3-3-3-3-8",
            "encoder_n_filters": filters, "vae_dim": latent
        })
    };
    Ok(json!({
        "acoustic_tokenizer_config": tokenizer(64), "semantic_tokenizer_config": tokenizer(128),
        "decoder_config": {
            "hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": kv, "intermediate_size": ffn, "vocab_size": vocab,
            "max_position_embeddings": 65_536, "rope_theta": 1e6, "tie_word_embeddings": true
        },
        "diffusion_head_config": {"head_layers": 4, "head_ffn_ratio": 3.0}
    }))
}

/// Values that keep a deep network within range: matrices that keep the size of what they multiply,
/// gains near 1, branches of the tokenizers near nothing.
fn fill(name: &str, shape: &[usize]) -> Vec<f32> {
    let count = shape.iter().product();
    let (offset, scale) = match shape.len() {
        _ if name.ends_with("scaling_factor") => (0.2, 0.0),
        _ if name.ends_with("gamma") => (0.1, 0.0),
        0 | 1 if name.ends_with("weight") => (1.0, 0.05),
        0 | 1 => (0.0, 0.05),
        _ => {
            let fan_in: usize = shape[1..].iter().product();
            (0.0, (3.0 / fan_in as f32).sqrt())
        }
    };
    let mut seed = name
        .bytes()
        .fold(1u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193))
        | 1;
    (0..count)
        .map(|_| {
            seed ^= seed << 13;
            seed ^= seed >> 17;
            seed ^= seed << 5;
            offset + scale * (seed as f32 / (1u32 << 31) as f32 - 1.0)
        })
        .collect()
}

/// The greatest resident size of this process, where the system tells.
fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}
