//! The family: recognising packages, loading them, sessions.

use std::{collections::HashMap, path::Path, sync::Arc};

use audiocpp::{
    engine::{
        Error, Family, FamilyInfo, LoadOptions, Loaded, Model, ModelInfo, Options, Result,
        RunContext, Scope, Session, Speaker, Stage, Task, VoiceInfo,
    },
    graph::Device,
    nn::IstftHead,
    sampling::TorchRandom,
    text::phonemes::vocabulary,
    weights::{self, Loader, Policy},
};

use crate::{
    LoadError,
    config::{Config, Package},
    machine::Machine,
    names::Named,
    net::Net,
    size::NetSize,
    source::{RATE, Source},
    styles::Styles,
    voice::{OPTIONS, Voice, language_of},
};

/// The Kokoro family.
pub struct Kokoro;

impl Family for Kokoro {
    fn info(&self) -> FamilyInfo {
        FamilyInfo {
            name: "kokoro",
            title: "Kokoro-82M: speech synthesis with StyleTTS 2 and iSTFTNet",
            tasks: &[Task::Tts],
            formats: "a folder with the published checkpoint (config.json, kokoro-v1_0.pth, \
                      voices/*.pt), or with an ONNX export in 8 bits (.onnx, vocab.json, voices in \
                      an .npz or .bin)",
            options: OPTIONS,
        }
    }

    fn can_load(&self, path: &Path) -> bool {
        Package::find(path).is_some_and(|package| !package.voices.is_empty())
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

/// A loaded model; sessions share its weights.
pub struct KokoroModel {
    net: Arc<Net>,
    source: Arc<Source>,
    styles: Arc<Styles>,
    vocab: Arc<HashMap<char, i32>>,
    loaded: Loaded,
}

/// Loads the model at `path` (a folder, or the weights in it) on `device`.
///
/// # Errors
/// [`LoadError`]: not a Kokoro, a damaged file, a device without room.
pub fn open(
    path: &Path,
    device: &Device,
    policy: Policy,
) -> std::result::Result<KokoroModel, LoadError> {
    let package = Package::find(path).ok_or_else(|| {
        let wanted = "no Kokoro: a config.json or vocab.json with a `vocab`, and one weight file \
                      beside it, are wanted";
        LoadError::package(path, wanted)
    })?;
    let config = Config::read(&package.config)?;
    let named = Named::new(weights::open(&package.weights)?);
    let size = NetSize::read(&named, &config)?;
    let symbols = config
        .vocab
        .iter()
        .map(|(symbol, &row)| (symbol, row.into()));
    let vocab = vocabulary(symbols, size.symbols.min(size.bert.symbols))
        .map_err(|error| LoadError::package(&package.config, error.to_string()))?;
    let styles = Styles::read(&package.voices, 2 * size.style, path)?;
    let (n_fft, hop) = size.generator.transform;
    let head = IstftHead::new(n_fft, hop)
        .map_err(|error| LoadError::package(&package.config, error.to_string()))?;
    let loader = Loader::new(&named, device, policy);
    let root = loader.root();
    let source = Source::load(
        &root.pp("decoder.generator"),
        &size.generator,
        head,
        device.threads(),
    )?;
    let net = Net::load(&root, size, device)?;
    let mut loaded = Loaded::new(path, device);
    loaded.finish(loader)?;
    Ok(KokoroModel {
        net: Arc::new(net),
        source: Arc::new(source),
        styles: Arc::new(styles),
        vocab: Arc::new(vocab),
        loaded,
    })
}

impl KokoroModel {
    /// The network with state of its own.
    pub fn machine(&self) -> Machine {
        Machine::new(self.loaded.device(), self.net.clone(), self.source.clone())
    }

    /// The voices.
    pub fn styles(&self) -> &Arc<Styles> {
        &self.styles
    }

    /// Numbers of the symbols.
    pub fn vocab(&self) -> &Arc<HashMap<char, i32>> {
        &self.vocab
    }
}

impl Model for KokoroModel {
    fn info(&self) -> ModelInfo {
        let languages = ["en", "es", "fr", "hi", "it", "pt"];
        self.loaded.info("kokoro", &languages, RATE)
    }

    fn session(&self, task: Task, options: &Options) -> Result<Session> {
        options.check("kokoro", OPTIONS, Scope::Session)?;
        match task {
            Task::Tts => {
                let (styles, vocab) = (self.styles.clone(), self.vocab.clone());
                let voice = Voice::new(self.machine(), styles, vocab);
                Ok(Session::Synthesize(Box::new(Speaker::new(voice))))
            }
            other => Err(Error::other_task("kokoro", Task::Tts, other)),
        }
    }

    fn voices(&self) -> Vec<VoiceInfo> {
        let gender = |name: &str| match name.chars().nth(1) {
            Some('f') => Some("female".to_owned()),
            Some('m') => Some("male".to_owned()),
            _ => None,
        };
        let voice = |id: &str| {
            let name = id.split_once('_').map_or(id, |(_, name)| name);
            VoiceInfo {
                id: id.to_owned(),
                name: name.to_owned(),
                language: language_of(id).to_owned(),
                gender: gender(id),
            }
        };
        self.styles.names().map(voice).collect()
    }

    fn stages(&self) -> Result<Vec<Stage>> {
        stages(self)
    }
}

/// A fixed chunk with fixed durations through every stage, for comparing devices.
fn stages(model: &KokoroModel) -> Result<Vec<Stage>> {
    const SYMBOLS: usize = 24;
    let mut machine = model.machine();
    let rows = model.net.size.symbols;
    let symbols: Vec<i32> = (0..SYMBOLS).map(|i| (i * 7 % rows) as i32).collect();
    let first = model.styles.names().next().unwrap_or_default();
    let style = model.styles.mix(first)?;
    let (acoustic, prosodic) = style.of(SYMBOLS).split_at(model.net.size.style);
    let encoded = machine.encode(&symbols, prosodic)?;
    let lengths = [3; SYMBOLS];
    let [pitch, energy] = machine.prosody(&encoded, &lengths, prosodic)?;
    // Not the pitch that was found: a threshold lies in the way.
    let steady = vec![120.0; pitch.len()];
    let source = model
        .source
        .spectrum(&steady, Some(&mut TorchRandom::new(1)))?;
    let spectrum = machine.decode(&encoded, &lengths, [&steady, &energy], &source, acoustic)?;
    let samples = model.source.head().samples(&spectrum)?;
    let stage = |name: &str, values| Stage {
        name: name.into(),
        values,
    };
    Ok(vec![
        stage("language model", encoded.bert),
        stage("text encoder", encoded.text),
        stage("durations", encoded.durations),
        stage("pitch", pitch),
        stage("energy", energy),
        stage("samples", samples),
    ])
}
