//! The family: recognising packages, loading them, sessions.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use audiocpp::{
    audio::{AudioSource, LogMel, LogMelConfig},
    backend::FastPath,
    engine::{
        Error, Family, FamilyInfo, LoadOptions, Loaded, Model, ModelInfo, OptionKind, OptionSpec,
        Options, Result, RunContext, Scope, Session, Stage, Task, Transcribe, TranscribeRequest,
        Transcript,
    },
    graph::Device,
    weights::{self, Format, Loader, Policy, Source, Value},
};

use crate::{
    LoadError,
    config::Config,
    machine::Machine,
    names::Naming,
    net::Net,
    tokenizer::WhisperTokenizer,
    transcribe::{RATE, Run, Settings},
};

const fn option(
    name: &'static str,
    kind: OptionKind,
    default: &'static str,
    doc: &'static str,
) -> OptionSpec {
    OptionSpec {
        name,
        scope: Scope::Request,
        kind,
        default: Some(default),
        doc,
    }
}

const OPTIONS: &[OptionSpec] = &[
    option(
        "best_of",
        OptionKind::Int { min: 1, max: 16 },
        "5",
        "Hypotheses drawn side by side at temperatures above 0; the most probable is kept.",
    ),
    option(
        "condition_on_previous_text",
        OptionKind::Bool,
        "true",
        "Give the text of earlier windows to the decoder as context.",
    ),
    option(
        "temperature_fallback",
        OptionKind::Bool,
        "true",
        "Decode a window again at higher temperatures when its text fails the thresholds.",
    ),
    option(
        "compression_ratio_threshold",
        OptionKind::Float {
            min: 0.0,
            max: 100.0,
        },
        "2.4",
        "Text that compresses better than this is taken for a repetition.",
    ),
    option(
        "logprob_threshold",
        OptionKind::Float {
            min: -100.0,
            max: 0.0,
        },
        "-1.0",
        "A mean log probability below this is taken for a failure.",
    ),
    option(
        "no_speech_threshold",
        OptionKind::Float { min: 0.0, max: 1.0 },
        "0.6",
        "An improbable text over a no-speech probability above this is dropped.",
    ),
    option(
        "timestamps",
        OptionKind::Bool,
        "true",
        "Let the decoder write timestamps; without them each window is one segment.",
    ),
    option(
        "full_window",
        OptionKind::Bool,
        "false",
        "Encode 30 seconds even when there is less audio, as the model was trained.",
    ),
];

/// The Whisper family.
pub struct Whisper;

impl Family for Whisper {
    fn info(&self) -> FamilyInfo {
        FamilyInfo {
            name: "whisper",
            title: "Whisper: multilingual speech recognition and translation (OpenAI)",
            tasks: &[Task::Asr],
            formats: "a Hugging Face folder (safetensors), a CTranslate2 folder (model.bin), a whisper.cpp \
                      file (ggml-*.bin)",
            options: OPTIONS,
        }
    }

    fn fast_paths(&self) -> &'static [FastPath] {
        &[
            FastPath::FlashAttention,
            FastPath::PackedProjection,
            FastPath::F16Weights,
            FastPath::QuantizedWeights,
            FastPath::BlockedProduct,
        ]
    }

    fn can_load(&self, path: &Path) -> bool {
        weights::open(path).is_ok_and(|source| Naming::of(&*source).is_some())
    }

    fn load(
        &self,
        path: &Path,
        options: &LoadOptions,
        context: &RunContext,
    ) -> Result<Box<dyn Model>> {
        options.load(context, |device| {
            let source = weights::open(path).map_err(LoadError::from)?;
            let policy = options.weight_policy(device, &*source)?;
            Ok(open_source(&*source, path, device, policy)?)
        })
    }
}

/// A loaded Whisper; sessions share its weights.
pub struct WhisperModel {
    net: Arc<Net>,
    tokenizer: Arc<WhisperTokenizer>,
    mel: Arc<LogMel>,
    loaded: Loaded,
}

/// Loads the model at `path` (file or folder) on `device`.
///
/// # Errors
/// [`LoadError`]: not a Whisper model, a damaged file, a device without room.
pub fn open(
    path: &Path,
    device: &Device,
    policy: Policy,
) -> std::result::Result<WhisperModel, LoadError> {
    open_source(&*weights::open(path)?, path, device, policy)
}

/// As [`open`], from the weights at `path`.
fn open_source(
    source: &dyn Source,
    path: &Path,
    device: &Device,
    policy: Policy,
) -> std::result::Result<WhisperModel, LoadError> {
    let (naming, config) = read_config(source, path)?;
    let mel = LogMel::new(LogMelConfig::whisper(config.mels)).map_err(|e| LoadError::Config {
        path: path.to_owned(),
        problem: e.to_string(),
    })?;
    let loader = Loader::new(source, device, policy);
    let vocab = config.vocab;
    let net = naming.load(&loader.root(), config)?;
    let mut loaded = Loaded::new(path, device);
    // A vocabulary of 50,000 tokens takes about as long to read as the weights of a small model.
    let folder = model_folder(path);
    let (tokenizer, finished) = std::thread::scope(|scope| {
        let tokenizer = scope.spawn(|| read_tokenizer(source, folder.as_deref(), vocab));
        let finished = loaded.finish(loader);
        (tokenizer.join(), finished)
    });
    let tokenizer = tokenizer.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    finished?;
    Ok(WhisperModel {
        net: Arc::new(net),
        tokenizer: Arc::new(tokenizer),
        mel: Arc::new(mel),
        loaded,
    })
}

/// Loads the network alone, without a vocabulary.
///
/// # Errors
/// As [`open`].
pub fn open_net(
    path: &Path,
    device: &Device,
    policy: Policy,
) -> std::result::Result<Net, LoadError> {
    let source = weights::open(path)?;
    let (naming, config) = read_config(&*source, path)?;
    let loader = Loader::new(&*source, device, policy);
    let net = naming.load(&loader.root(), config)?;
    loader.finish()?;
    Ok(net)
}

fn read_config(
    source: &dyn Source,
    path: &Path,
) -> std::result::Result<(Naming, Config), LoadError> {
    let naming = Naming::of(source).ok_or_else(|| LoadError::Config {
        path: path.to_owned(),
        problem: "this is not a Whisper model: its tensors have other names".into(),
    })?;
    let config = Config::read(source, naming, model_folder(path).as_deref())?;
    Ok((naming, config))
}

/// The folder whose files belong to the weights at `path`.
fn model_folder(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        return Some(path.to_owned());
    }
    path.parent().map(Path::to_owned)
}

fn read_tokenizer(
    source: &dyn Source,
    folder: Option<&Path>,
    vocab: usize,
) -> std::result::Result<WhisperTokenizer, LoadError> {
    if source.format() == Format::WhisperCpp {
        let pieces: Vec<&[u8]> = source
            .metadata()
            .get("vocab")
            .and_then(Value::as_list)
            .unwrap_or_default()
            .iter()
            .filter_map(Value::as_bytes)
            .collect();
        return Ok(WhisperTokenizer::from_pieces(&pieces, vocab)?);
    }
    let folder = folder.unwrap_or(Path::new("."));
    Ok(WhisperTokenizer::from_folder(folder, vocab)?)
}

impl WhisperModel {
    /// The network.
    pub fn net(&self) -> &Arc<Net> {
        &self.net
    }

    /// The vocabulary.
    pub fn tokenizer(&self) -> &WhisperTokenizer {
        &self.tokenizer
    }

    /// The front end.
    pub fn mel(&self) -> &LogMel {
        &self.mel
    }

    /// The network with state of its own, for scoring tokens directly.
    ///
    /// # Errors
    /// A device without room for the state.
    pub fn machine(&self) -> std::result::Result<Machine, LoadError> {
        Ok(Machine::new(
            self.loaded.device(),
            self.net.clone(),
            self.net.config.text_ctx,
        )?)
    }
}

impl Model for WhisperModel {
    fn info(&self) -> ModelInfo {
        let languages = match self.tokenizer.is_multilingual() {
            false => vec!["en"],
            true => self
                .tokenizer
                .special()
                .languages()
                .filter_map(|token| self.tokenizer.language_of(token))
                .collect(),
        };
        self.loaded.info("whisper", &languages, RATE)
    }

    fn session(&self, task: Task, options: &Options) -> Result<Session> {
        options.check("whisper", OPTIONS, Scope::Session)?;
        match task {
            Task::Asr => Ok(Session::Transcribe(Box::new(WhisperSession {
                machine: self.machine()?,
                tokenizer: self.tokenizer.clone(),
                mel: self.mel.clone(),
            }))),
            other => Err(Error::other_task("whisper", Task::Asr, other)),
        }
    }

    fn stages(&self) -> Result<Vec<Stage>> {
        crate::stages::stages(self)
    }
}

struct WhisperSession {
    machine: Machine,
    tokenizer: Arc<WhisperTokenizer>,
    mel: Arc<LogMel>,
}

impl Transcribe for WhisperSession {
    fn transcribe(
        &mut self,
        request: &TranscribeRequest,
        audio: &mut dyn AudioSource,
        context: &RunContext,
    ) -> Result<Transcript> {
        request.options.check("whisper", OPTIONS, Scope::Request)?;
        let _request = self.machine.request();
        let run = Run {
            settings: Settings::new(request, &self.tokenizer)?,
            machine: &mut self.machine,
            tokenizer: &self.tokenizer,
            mel: &self.mel,
            context,
        };
        run.transcribe(audio)
    }
}
