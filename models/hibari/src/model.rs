//! The family: recognising packages, loading them, sessions.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use audiocpp::{
    engine::{
        Error, Family, FamilyInfo, LoadOptions, Loaded, Model, ModelInfo, Options, Result,
        RunContext, Scope, Session, Speaker, Stage, Task, VoiceInfo,
    },
    graph::Device,
    text::phonemes::vocabulary,
    weights::{self, Loader, Policy},
};

use crate::{
    LoadError,
    machine::{Machine, durations},
    names::Named,
    net::Net,
    size::NetSize,
    sound::{RATE, Sounder},
    voice::{OPTIONS, Voice},
};

/// The hibari family.
pub struct Hibari;

/// Files that are larger are not of this family; they are not opened to be recognised.
const LARGEST: u64 = 64 << 20;

/// Weights and symbols: an `.onnx` file, or the only one of a folder, with `vocab.json` beside it.
fn package(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let is_weights = |path: &Path| {
        path.extension().is_some_and(|ending| ending == "onnx")
            && path.metadata().is_ok_and(|meta| meta.len() <= LARGEST)
    };
    let weights = if path.is_file() {
        Some(path.to_owned()).filter(|path| is_weights(path))
    } else {
        let usual = path.join("hibari.onnx");
        let entries = || std::fs::read_dir(path).into_iter().flatten().flatten();
        let mut files = entries().map(|e| e.path()).filter(|path| is_weights(path));
        match usual.is_file() {
            true => Some(usual),
            false => files.next().filter(|_| files.next().is_none()),
        }
    }?;
    let symbols = weights.with_file_name("vocab.json");
    symbols.is_file().then_some((weights, symbols))
}

impl Family for Hibari {
    fn info(&self) -> FamilyInfo {
        FamilyInfo {
            name: "hibari",
            title: "hibari: small English speech synthesis, distilled from Kokoro",
            tasks: &[Task::Tts],
            formats: "a folder with hibari.onnx and vocab.json",
            options: OPTIONS,
        }
    }

    fn can_load(&self, path: &Path) -> bool {
        package(path)
            .and_then(|(file, _)| weights::open(&file).ok())
            .is_some_and(|source| Named::new(source).is_hibari())
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
pub struct HibariModel {
    net: Arc<Net>,
    sounder: Arc<Sounder>,
    vocab: Arc<HashMap<char, i32>>,
    loaded: Loaded,
}

/// Loads the voice at `path` (file or folder) on `device`.
///
/// # Errors
/// [`LoadError`]: not a hibari, a damaged file, a device without room.
pub fn open(
    path: &Path,
    device: &Device,
    policy: Policy,
) -> std::result::Result<HibariModel, LoadError> {
    let (file, symbols) = package(path).ok_or_else(|| {
        let wanted = "no hibari: an .onnx file with vocab.json beside it is wanted";
        LoadError::package(path, wanted)
    })?;
    let named = Named::new(weights::open(&file)?);
    if !named.is_hibari() {
        let problem = "this is not a hibari: its tensors have other names";
        return Err(LoadError::package(&file, problem));
    }
    let size = NetSize::read(&named)?;
    let sounder = Sounder::new().map_err(|e| LoadError::package(&file, e.to_string()))?;
    if size.bins != sounder.bins() {
        let problem = format!("it has {} bins, wanted {}", size.bins, sounder.bins());
        return Err(LoadError::package(&file, problem));
    }
    let rows = size.text.symbols.min(size.prosody.symbols);
    let vocab = symbol_numbers(&symbols, rows)?;
    let loader = Loader::new(&named, device, policy);
    let net = Net::load(&loader.root(), size).map_err(LoadError::Weights)?;
    let mut loaded = Loaded::new(path, device);
    loaded.finish(loader)?;
    Ok(HibariModel {
        net: Arc::new(net),
        sounder: Arc::new(sounder),
        vocab: Arc::new(vocab),
        loaded,
    })
}

/// Numbers of the symbols; each must be one of the `rows` of the network's tables.
fn symbol_numbers(path: &Path, rows: usize) -> std::result::Result<HashMap<char, i32>, LoadError> {
    let wrong = |problem: String| LoadError::package(path, problem);
    let json = std::fs::read(path).map_err(|e| wrong(e.to_string()))?;
    let symbols: HashMap<String, u32> =
        serde_json::from_slice(&json).map_err(|e| wrong(e.to_string()))?;
    let symbols = symbols
        .into_iter()
        .map(|(symbol, row)| (symbol, row.into()));
    vocabulary(symbols, rows).map_err(|e| wrong(e.to_string()))
}

impl HibariModel {
    /// The network with state of its own.
    pub fn machine(&self) -> Machine {
        Machine::new(self.loaded.device(), self.net.clone(), self.sounder.clone())
    }

    /// Numbers of the symbols.
    pub fn vocab(&self) -> &HashMap<char, i32> {
        &self.vocab
    }
}

impl Model for HibariModel {
    fn info(&self) -> ModelInfo {
        self.loaded.info("hibari", &["en"], RATE)
    }

    fn session(&self, task: Task, options: &Options) -> Result<Session> {
        options.check("hibari", OPTIONS, Scope::Session)?;
        match task {
            Task::Tts => {
                let voice = Voice::new(self.machine(), self.vocab.clone());
                Ok(Session::Synthesize(Box::new(Speaker::new(voice))))
            }
            other => Err(Error::other_task("hibari", Task::Tts, other)),
        }
    }

    fn voices(&self) -> Vec<VoiceInfo> {
        vec![VoiceInfo {
            id: "0".into(),
            name: self.loaded.variant().to_owned(),
            language: "en-us".into(),
            gender: None,
        }]
    }

    fn stages(&self) -> Result<Vec<Stage>> {
        stages(self)
    }
}

/// Symbols of the test sentence.
const SYMBOLS: usize = 24;

/// A fixed sentence through every stage, for comparing devices.
fn stages(model: &HibariModel) -> Result<Vec<Stage>> {
    let mut machine = model.machine();
    let table = model.net.size.text.symbols;
    let symbols: Vec<i32> = (0..SYMBOLS).map(|i| (i * 7 % table) as i32).collect();
    let encoded = machine.encode(&symbols)?;
    // Rounding may differ from device to device; what follows must not.
    let lengths = durations(&[3.5f32.ln(); SYMBOLS], 1.0)?;
    let melody = machine.melody(&encoded, &lengths)?;
    let spectra = machine.decode(&encoded, &lengths, &melody)?;
    let samples = model.sounder.samples(&spectra, &melody.pitch, None)?;
    let stage = |name: &str, values| Stage {
        name: name.into(),
        values,
    };
    Ok(vec![
        stage("text encoder", [encoded.text, encoded.prosody].concat()),
        stage("durations", encoded.durations),
        stage("melody", [melody.pitch, melody.loudness].concat()),
        stage("spectra", spectra),
        stage("samples", samples),
    ])
}
