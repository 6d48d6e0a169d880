//! The family: recognising packages, loading them, sessions.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use audiocpp::{
    engine::{
        Error, Family, FamilyInfo, LoadOptions, Loaded, Model, ModelInfo, Options, Result,
        RunContext, Scope, Session, Speaker, Stage, Task, VoiceInfo,
    },
    graph::Device,
    sampling::TorchRandom,
    weights::{self, Loader, Policy, Source},
};

use crate::{
    LoadError,
    config::{MmsConfig, VoiceConfig},
    machine::{Machine, Manner},
    names::Named,
    net::Net,
    size::NetSize,
    voice::{OPTIONS, Voice},
};

/// The Piper family: VITS as Piper and MMS publish it.
pub struct Piper;

/// The files of a voice.
enum Package {
    /// Weights, and the settings beside them.
    Piper(PathBuf, PathBuf),
    /// A Hugging Face folder.
    Mms(PathBuf),
}

impl Package {
    /// What is at `path`: an `.onnx` file with its `.onnx.json`, a folder with one such pair, or a
    /// folder whose `config.json` describes a VITS.
    fn find(path: &Path) -> Option<Package> {
        if path.is_file() {
            return Package::pair(path);
        }
        let config = path.join("config.json");
        if config.is_file() && path.join("vocab.json").is_file() {
            return MmsConfig::read(&config)
                .is_ok()
                .then(|| Package::Mms(path.to_owned()));
        }
        let entries = std::fs::read_dir(path).ok()?;
        let mut pairs = entries
            .flatten()
            .filter_map(|entry| Package::pair(&entry.path()));
        let first = pairs.next();
        first.filter(|_| pairs.next().is_none())
    }

    fn pair(weights: &Path) -> Option<Package> {
        let onnx = weights.extension().is_some_and(|ending| ending == "onnx");
        let mut settings = weights.as_os_str().to_owned();
        settings.push(".json");
        let settings = PathBuf::from(settings);
        (onnx && settings.is_file()).then(|| Package::Piper(weights.to_owned(), settings))
    }
}

impl Family for Piper {
    fn info(&self) -> FamilyInfo {
        FamilyInfo {
            name: "piper",
            title: "Piper and MMS: speech synthesis with VITS",
            tasks: &[Task::Tts],
            formats: "a Piper voice (an .onnx file with its .onnx.json, or a folder with one such \
                      pair), a Hugging Face folder of a VITS (facebook/mms-tts-*)",
            options: OPTIONS,
        }
    }

    fn can_load(&self, path: &Path) -> bool {
        match Package::find(path) {
            Some(Package::Piper(_, settings)) => VoiceConfig::piper(&settings).is_ok(),
            Some(Package::Mms(_)) => true,
            None => false,
        }
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

/// A loaded voice; sessions share its weights.
pub struct PiperModel {
    net: Arc<Net>,
    config: Arc<VoiceConfig>,
    loaded: Loaded,
}

/// Loads the voice at `path` (file or folder) on `device`.
///
/// # Errors
/// [`LoadError`]: not a voice, a damaged file, a device without room.
pub fn open(
    path: &Path,
    device: &Device,
    policy: Policy,
) -> std::result::Result<PiperModel, LoadError> {
    let package = Package::find(path).ok_or_else(|| {
        let wanted = "neither a Piper voice (.onnx with .onnx.json) nor a Hugging Face VITS";
        LoadError::package(path, wanted)
    })?;
    let (source, config, mms) = match &package {
        Package::Piper(weights, settings) => {
            (weights::open(weights)?, VoiceConfig::piper(settings)?, None)
        }
        Package::Mms(folder) => {
            let mms = MmsConfig::read(&folder.join("config.json"))?;
            let config = VoiceConfig::mms(folder, &mms)?;
            (weights::open(folder)?, config, Some(mms))
        }
    };
    let source = Named::new(source);
    if !source.is_vits() {
        let problem = "this is not a VITS: its tensors have other names";
        return Err(LoadError::package(source.path(), problem));
    }
    let size = NetSize::read(&source, mms.as_ref())?;
    check(&config, &size, path)?;
    let loader = Loader::new(&source, device, policy);
    let net = Net::load(&loader.root(), size, device)?;
    let mut loaded = Loaded::new(path, device);
    loaded.finish(loader)?;
    Ok(PiperModel {
        net: Arc::new(net),
        config: Arc::new(config),
        loaded,
    })
}

/// The settings must be those of the network.
fn check(config: &VoiceConfig, size: &NetSize, path: &Path) -> std::result::Result<(), LoadError> {
    let frame = [
        &config.frame.start,
        &config.frame.between,
        &config.frame.end,
    ];
    let numbers = config.symbols.values().chain(frame).flatten();
    if let Some(number) = numbers
        .copied()
        .find(|&n| n < 0 || n as usize >= size.symbols)
    {
        return Err(LoadError::package(
            path,
            format!(
                "a symbol has the number {number}; the network knows {}",
                size.symbols
            ),
        ));
    }
    let wanted = size.speakers.0.max(1);
    match config.speakers.len().max(1) {
        n if n <= wanted => Ok(()),
        n => Err(LoadError::package(
            path,
            format!("{n} speakers are named; the network knows {wanted}"),
        )),
    }
}

impl PiperModel {
    /// The network with state of its own.
    pub fn machine(&self) -> Machine {
        Machine::new(self.loaded.device(), self.net.clone())
    }

    /// The network.
    pub fn net(&self) -> &Arc<Net> {
        &self.net
    }

    /// The voice's settings.
    pub fn config(&self) -> &Arc<VoiceConfig> {
        &self.config
    }
}

impl Model for PiperModel {
    fn info(&self) -> ModelInfo {
        let language = self.config.language.split('-').next().unwrap_or_default();
        self.loaded.info("piper", &[language], self.config.rate)
    }

    fn session(&self, task: Task, options: &Options) -> Result<Session> {
        options.check("piper", OPTIONS, Scope::Session)?;
        match task {
            Task::Tts => {
                let voice = Voice::new(self.machine(), self.config.clone());
                Ok(Session::Synthesize(Box::new(Speaker::new(voice))))
            }
            other => Err(Error::other_task("piper", Task::Tts, other)),
        }
    }

    fn voices(&self) -> Vec<VoiceInfo> {
        let voice = |name: &str| VoiceInfo {
            id: name.to_owned(),
            name: name.to_owned(),
            language: self.config.language.clone(),
            gender: None,
        };
        match &self.config.speakers[..] {
            [] => vec![voice("0")],
            names => names.iter().map(|name| voice(name)).collect(),
        }
    }

    fn stages(&self) -> Result<Vec<Stage>> {
        stages(self)
    }
}

/// Symbols of the test sentence.
const SYMBOLS: usize = 24;

/// A fixed sentence with fixed durations through every stage, for comparing devices.
fn stages(model: &PiperModel) -> Result<Vec<Stage>> {
    let mut machine = model.machine();
    let table = model.net.size.symbols;
    let symbols: Vec<i32> = (0..SYMBOLS).map(|i| (i * 7 % table) as i32).collect();
    let manner = Manner {
        speaker: 0,
        noise_scale: 0.5,
        length_scale: 1.0,
        noise_w: 0.5,
    };
    let mut random = TorchRandom::new(1);
    let encoded = machine.encode(&symbols, manner.speaker)?;
    let durations = machine.log_durations(&encoded, &manner, &mut random)?;
    let latents = machine.latents(&encoded, &[2; SYMBOLS], &manner, &mut random);
    let frames = machine.flow(&latents, manner.speaker)?;
    let mut samples = Vec::new();
    machine.vocode(&frames, manner.speaker, &RunContext::new(), |window| {
        samples.extend_from_slice(window);
        Ok(())
    })?;
    let stage = |name: &str, values| Stage {
        name: name.into(),
        values,
    };
    Ok(vec![
        stage("text encoder", encoded.means),
        stage("durations", durations),
        stage("flow", frames),
        stage("samples", samples),
    ])
}
