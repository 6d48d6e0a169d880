//! The family: recognising packages, loading them, sessions.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use audiocpp::{
    backend::FastPath,
    engine::{
        Error, Family, FamilyInfo, LoadOptions, Loaded, Model, ModelInfo, Options, Result,
        RunContext, Scope, Session, Stage, Task, package::held_file,
    },
    graph::Device,
    text::tokenizer::Tokenizer,
    weights::{self, Policy},
};
use serde_json::Value;

use crate::{
    LoadError,
    config::{Config, RATE, Tokens},
    machine::{Guidance, Machine, decode},
    names::{Named, Naming},
    net::Net,
    speech::{OPTIONS, Talker},
};

/// The VibeVoice family.
pub struct VibeVoice;

impl Family for VibeVoice {
    fn info(&self) -> FamilyInfo {
        FamilyInfo {
            name: "vibevoice",
            title: "VibeVoice: long speech of up to four voices",
            tasks: &[Task::Tts, Task::Clon],
            formats: "a folder with the published checkpoint (config.json, *.safetensors; the \
                      original names or those of the -hf releases) and Qwen2.5's tokenizer.json, \
                      which the original checkpoints do not hold",
            options: OPTIONS,
        }
    }

    fn fast_paths(&self) -> &'static [FastPath] {
        &[
            FastPath::DepthwiseConv1d,
            FastPath::FlashAttention,
            FastPath::PackedProjection,
            FastPath::LongVoicePrompt,
            FastPath::F16Weights,
            FastPath::QuantizedWeights,
        ]
    }

    fn precise(&self, name: &str) -> bool {
        precise(name)
    }

    fn can_load(&self, path: &Path) -> bool {
        settings(path).is_some_and(|(_, json)| Config::fits(&json))
    }

    fn load(
        &self,
        path: &Path,
        options: &LoadOptions,
        context: &RunContext,
    ) -> Result<Box<dyn Model>> {
        let policy = options.policy()?;
        options.load(context, |device| Ok(open(path, device, policy)?))
    }
}

/// Whether errors in the tensor `name` are heard: the tokenizers, what leads to them and from them,
/// the head, and tables that rows are looked up in.
pub(crate) fn precise(name: &str) -> bool {
    const PARTS: [&str; 9] = [
        "_tokenizer",
        "audio_tower",
        "connector",
        "projector",
        "prediction_head",
        "diffusion_head",
        "embed_tokens",
        "eos_classifier",
        "input_types",
    ];
    PARTS.iter().any(|part| name.contains(part))
}

/// Whether the package at `path` is one file that holds its settings, too.
fn is_single(path: &Path) -> bool {
    path.is_file() && path.extension().is_some_and(|ending| ending == "gguf")
}

/// The `config.json` of the package at `path` (its folder, or a file in it), or the file that holds
/// it.
pub(crate) fn settings(path: &Path) -> Option<(PathBuf, Value)> {
    if is_single(path) {
        let source = weights::open(path).ok()?;
        let text = held_file(source.metadata(), "config.json")?;
        return Some((path.to_owned(), serde_json::from_str(text).ok()?));
    }
    let folder = if path.is_dir() { path } else { path.parent()? };
    let file = folder.join("config.json");
    let json = serde_json::from_slice(&std::fs::read(&file).ok()?).ok()?;
    Some((file, json))
}

/// As [`settings`], of a package of the family called `title`.
pub(crate) fn fitting(
    path: &Path,
    title: &str,
    fits: fn(&Value) -> bool,
) -> std::result::Result<(PathBuf, Value), LoadError> {
    let found = settings(path).filter(|(_, json)| fits(json));
    found.ok_or_else(|| {
        let problem = format!("no {title}: a config.json with its parts is wanted");
        LoadError::package(path, problem)
    })
}

/// The tokens that a model looks for must be of its vocabulary.
pub(crate) fn check_tokens(
    tokens: &[u32],
    vocab: usize,
    file: &Path,
) -> std::result::Result<(), LoadError> {
    match tokens.iter().max() {
        Some(&most) if most as usize >= vocab => {
            let problem = format!("token {most} of a vocabulary of {vocab}");
            Err(LoadError::package(file, problem))
        }
        _ => Ok(()),
    }
}

/// A loaded model; sessions share its weights.
pub struct VibeVoiceModel {
    net: Arc<Net>,
    tokenizer: Arc<Tokenizer>,
    loaded: Loaded,
}

/// Loads the model at `path` (a folder, or the weights in it) on `device`.
///
/// # Errors
/// [`LoadError`]: not a VibeVoice, no tokenizer, a damaged file, a device without room.
pub fn open(
    path: &Path,
    device: &Device,
    policy: Policy,
) -> std::result::Result<VibeVoiceModel, LoadError> {
    let (file, json) = fitting(path, "VibeVoice", Config::fits)?;
    let mut config = Config::read(&json, &file)?;
    let tokenizer = tokenizer(&file)?;
    config.tokens = tokens(&tokenizer, config.tokens);
    check_tokens(&config.tokens.all(), config.lm.vocab, &file)?;
    let naming = if config.renamed {
        Naming::Hf
    } else {
        Naming::Original
    };
    let source = Named::new(weights::open(path)?, naming);
    let mut loaded = Loaded::new(path, device);
    let net = Net::load(&source, config, &mut loaded, policy)?;
    Ok(VibeVoiceModel {
        net: Arc::new(net),
        tokenizer: Arc::new(tokenizer),
        loaded,
    })
}

/// The tokenizer beside the settings `file`, or in it.
pub(crate) fn tokenizer(file: &Path) -> std::result::Result<Tokenizer, LoadError> {
    const NAME: &str = "tokenizer.json";
    let wrong = |file: &Path, problem: String| LoadError::package(file, problem);
    if is_single(file) {
        let source = weights::open(file)?;
        let held = held_file(source.metadata(), NAME);
        let held = held.ok_or_else(|| wrong(file, format!("it holds no {NAME}")))?;
        let read = Tokenizer::from_json(held.as_bytes());
        return read.map_err(|error| wrong(file, error.to_string()));
    }
    let file = file.with_file_name(NAME);
    if !file.is_file() {
        let problem = "missing: VibeVoice reads with the tokenizer of Qwen2.5 (tokenizer.json of \
                       Qwen/Qwen2.5-1.5B, or of Qwen2.5-7B for the large model); put it here";
        return Err(LoadError::package(&file, problem));
    }
    Tokenizer::from_file(&file).map_err(|error| wrong(&file, error.to_string()))
}

/// The four tokens as the tokenizer numbers them, else as the settings do.
fn tokens(tokenizer: &Tokenizer, other: Tokens) -> Tokens {
    let id = |name: &str, other: u32| tokenizer.id(name).unwrap_or(other);
    Tokens {
        start: id("<|vision_start|>", other.start),
        end: id("<|vision_end|>", other.end),
        frame: id("<|vision_pad|>", other.frame),
        eos: id("<|endoftext|>", other.eos),
    }
}

impl VibeVoiceModel {
    /// The network with state of its own.
    ///
    /// # Errors
    /// A device without room.
    pub fn machine(&self) -> Result<Machine> {
        Ok(Machine::new(self.loaded.device(), self.net.clone())?)
    }

    /// The device that holds the weights.
    pub fn device(&self) -> &Device {
        self.loaded.device()
    }

    /// The network.
    pub fn net(&self) -> &Net {
        &self.net
    }
}

impl Model for VibeVoiceModel {
    fn info(&self) -> ModelInfo {
        self.loaded.info("vibevoice", &["en", "zh"], RATE)
    }

    fn session(&self, task: Task, options: &Options) -> Result<Session> {
        options.check("vibevoice", OPTIONS, Scope::Session)?;
        match task {
            Task::Tts | Task::Clon => {
                let machine = self.machine()?;
                let tokenizer = self.tokenizer.clone();
                let talker = Talker::new(machine, tokenizer, self.loaded.device());
                Ok(Session::Synthesize(Box::new(talker)))
            }
            other => Err(Error::other_task("vibevoice", Task::Tts, other)),
        }
    }

    fn stages(&self) -> Result<Vec<Stage>> {
        stages(self)
    }
}

/// A voice, a few tokens and two frames with fixed noise through every stage, for comparing devices.
fn stages(model: &VibeVoiceModel) -> Result<Vec<Stage>> {
    let mut machine = model.machine()?;
    let config = &model.net.config;
    let samples: Vec<f32> = (0..2 * config.acoustic.hop())
        .map(|i| (i as f32 * 0.05).sin() * 0.1)
        .collect();
    let latents = machine.encode(&samples)?;
    let voice = machine.connect(&latents)?;
    let width = config.lm.width;
    let tokens: Vec<u32> = (0..8)
        .map(|i| i * 37 % config.lm.vocab.min(256) as u32)
        .collect();
    let mut embeddings = vec![None; tokens.len()];
    embeddings[3] = Some(&voice[..width]);
    embeddings[4] = Some(&voice[width..2 * width]);
    machine.begin(16, 16)?;
    machine.read(&tokens, &embeddings, || Ok::<_, Error>(()))?;
    machine.say(config.tokens.start)?;
    let hidden = machine.hidden()?;
    let noise: Vec<f32> = (0..config.acoustic.latent)
        .map(|i| (i as f32).sin())
        .collect();
    let guidance = Guidance {
        steps: 5,
        scale: 1.3,
    };
    let first = machine.frame(&noise, guidance)?;
    machine.hear()?;
    let heard = machine.hidden()?;
    let decoded = decode(model.loaded.device(), &model.net, &latents)?;
    let stage = |name: &str, values| Stage {
        name: name.into(),
        values,
    };
    Ok(vec![
        stage("voice", latents),
        stage("hidden", hidden),
        stage("latent", first.latent),
        stage("samples", first.samples),
        stage("heard", heard),
        stage("decoded", decoded),
    ])
}
