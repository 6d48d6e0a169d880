//! The family: recognising packages, loading them, sessions; and the loop.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use audiocpp::{
    backend::FastPath,
    engine::{
        Error, Family, FamilyInfo, LoadOptions, Loaded, Model, ModelInfo, OptionSpec, Options,
        Result, RunContext, Scope, Session, Speech, Stage, Synthesize, SynthesizeRequest, Task,
        VoiceInfo,
    },
    graph::Device,
    sampling::TorchRandom,
    text::tokenizer::Tokenizer,
    weights::{self, Policy},
};

use super::{
    machine::{RealtimeFrame, RealtimeMachine, WINDOW},
    net::RealtimeNet,
    voice::Voice,
};
use crate::{
    LoadError,
    config::{RATE, RealtimeConfig},
    machine::Guidance,
    model::{fitting, precise, settings, tokenizer},
    speech::{Output, Plan, guidance, steps},
};

/// What the family takes.
const OPTIONS: &[OptionSpec] = &[
    steps("5"),
    guidance(
        "1.5",
        "How closely each frame follows the text and the voice; 1 is not at all more.",
    ),
];

/// Frames after each window of text.
const FRAMES: usize = 6;
/// Frames that a token of text may become, and some more for the end.
const FRAMES_PER_TOKEN: usize = 8;
const MORE_FRAMES: usize = 60;

/// The VibeVoice-Realtime family.
pub struct VibeVoiceRealtime;

impl Family for VibeVoiceRealtime {
    fn info(&self) -> FamilyInfo {
        FamilyInfo {
            name: "vibevoice_realtime",
            title: "VibeVoice-Realtime: speech that begins while the text is read",
            tasks: &[Task::Tts],
            formats: "a folder with the published checkpoint (config.json, *.safetensors), \
                      Qwen2.5's tokenizer.json and the published voices as voices/*.pt",
            options: OPTIONS,
        }
    }

    fn fast_paths(&self) -> &'static [FastPath] {
        &[
            FastPath::DepthwiseConv1d,
            FastPath::FlashAttention,
            FastPath::PackedProjection,
        ]
    }

    fn precise(&self, name: &str) -> bool {
        precise(name)
    }

    fn can_load(&self, path: &Path) -> bool {
        settings(path).is_some_and(|(_, json)| RealtimeConfig::fits(&json))
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
pub struct RealtimeModel {
    net: Arc<RealtimeNet>,
    tokenizer: Arc<Tokenizer>,
    voices: Arc<BTreeMap<String, PathBuf>>,
    loaded: Loaded,
}

/// Loads the model at `path` (a folder, or the weights in it) on `device`.
///
/// # Errors
/// [`LoadError`]: not a VibeVoice-Realtime, no tokenizer or voices, a damaged file, a device without
/// room.
pub fn open(
    path: &Path,
    device: &Device,
    policy: Policy,
) -> std::result::Result<RealtimeModel, LoadError> {
    let (file, json) = fitting(path, "VibeVoice-Realtime", RealtimeConfig::fits)?;
    let config = RealtimeConfig::read(&json, &file)?;
    let tokenizer = tokenizer(&file)?;
    let voices = voices(&file.with_file_name("voices"))?;
    let mut loaded = Loaded::new(path, device);
    let net = RealtimeNet::load(&*weights::open(path)?, config, &mut loaded, policy)?;
    Ok(RealtimeModel {
        net: Arc::new(net),
        tokenizer: Arc::new(tokenizer),
        voices: Arc::new(voices),
        loaded,
    })
}

/// The voices in a folder by their names.
fn voices(folder: &Path) -> std::result::Result<BTreeMap<String, PathBuf>, LoadError> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let voice = |path: PathBuf| {
        let ending = path.extension()?.to_str()?;
        let known = ["pt", "safetensors"].contains(&ending);
        Some((path.file_stem()?.to_str()?.to_owned(), path.clone())).filter(|_| known)
    };
    let voices: BTreeMap<_, _> = entries.filter_map(|entry| voice(entry.path())).collect();
    if voices.is_empty() {
        let problem =
            "no voices: put those of the model's code (demo/voices/streaming_model/*.pt) here";
        return Err(LoadError::package(folder, problem));
    }
    Ok(voices)
}

impl RealtimeModel {
    /// The network with state of its own.
    ///
    /// # Errors
    /// A device without room.
    pub fn machine(&self) -> Result<RealtimeMachine> {
        Ok(RealtimeMachine::new(
            self.loaded.device(),
            self.net.clone(),
        )?)
    }

    /// The voice called `name`, or the first.
    ///
    /// # Errors
    /// No such voice; a damaged file.
    pub fn voice(&self, name: Option<&str>) -> Result<Voice> {
        read_voice(&self.voices, name, &self.net)
    }
}

fn read_voice(
    voices: &BTreeMap<String, PathBuf>,
    name: Option<&str>,
    net: &RealtimeNet,
) -> Result<Voice> {
    let found = match name {
        Some(name) => voices.get(name),
        None => voices.values().next(),
    };
    let path = found.ok_or_else(|| {
        let known: Vec<&str> = voices.keys().map(String::as_str).collect();
        let name = name.unwrap_or_default();
        Error::not_found(format!("no voice `{name}`; there are {}", known.join(", ")))
    })?;
    Ok(Voice::read(path, &net.config)?)
}

impl Model for RealtimeModel {
    fn info(&self) -> ModelInfo {
        self.loaded.info("vibevoice_realtime", &["en"], RATE)
    }

    fn session(&self, task: Task, options: &Options) -> Result<Session> {
        options.check("vibevoice_realtime", OPTIONS, Scope::Session)?;
        match task {
            Task::Tts => Ok(Session::Synthesize(Box::new(RealtimeTalker {
                machine: self.machine()?,
                tokenizer: self.tokenizer.clone(),
                voices: self.voices.clone(),
                voice: None,
            }))),
            other => Err(Error::other_task("vibevoice_realtime", Task::Tts, other)),
        }
    }

    /// The names begin with the language: `en-Emma_woman`.
    fn voices(&self) -> Vec<VoiceInfo> {
        let voice = |id: &String| {
            let (language, name) = id.split_once('-').unwrap_or(("en", id));
            VoiceInfo {
                id: id.clone(),
                name: name.to_owned(),
                language: language.to_owned(),
                gender: None,
            }
        };
        self.voices.keys().map(voice).collect()
    }

    /// A window of text and two frames with fixed noise, for comparing devices.
    fn stages(&self) -> Result<Vec<Stage>> {
        let mut machine = self.machine()?;
        machine.begin(&self.voice(None)?, WINDOW, 2)?;
        machine.window(&[3, 1, 4, 1, 5])?;
        let [hidden, _] = machine.hidden()?;
        let guidance = Guidance {
            steps: 5,
            scale: 1.5,
        };
        let values = 0..self.net.config.acoustic.latent;
        let noise: Vec<f32> = values.map(|i| (i as f32).sin()).collect();
        let first = machine.frame(&noise, guidance)?;
        let second = machine.frame(&noise, guidance)?;
        let stage = |name: &str, values| Stage {
            name: name.into(),
            values,
        };
        Ok(vec![
            stage("hidden", hidden),
            stage("latent", first.latent),
            stage("samples", first.samples),
            stage("second latent", second.latent),
        ])
    }
}

/// A session.
struct RealtimeTalker {
    machine: RealtimeMachine,
    tokenizer: Arc<Tokenizer>,
    voices: Arc<BTreeMap<String, PathBuf>>,
    /// The voice that was read last.
    voice: Option<(Option<String>, Voice)>,
}

/// Speaks text of the tokens `ids` with a voice. `noise` gives the noise `[latent]` of each frame,
/// `heard` takes each frame, `stop` is asked before each step and may end it all with an error. True
/// if the model came to an end.
///
/// # Errors
/// Those of the device, of `heard` and of `stop`.
pub fn speak(
    machine: &mut RealtimeMachine,
    voice: &Voice,
    ids: &[u32],
    plan: Plan,
    mut noise: impl FnMut() -> Vec<f32>,
    mut heard: impl FnMut(RealtimeFrame) -> Result<()>,
    mut stop: impl FnMut() -> Result<()>,
) -> Result<bool> {
    machine.begin(voice, ids.len(), plan.most)?;
    let mut windows = ids.chunks(WINDOW);
    for frame in 0..plan.most {
        stop()?;
        if frame % FRAMES == 0
            && let Some(window) = windows.next()
        {
            machine.window(window)?;
        }
        let made = machine.frame(&noise(), plan.guidance)?;
        let ends = made.ending > 0.0;
        heard(made)?;
        if ends {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Synthesize for RealtimeTalker {
    fn synthesize(&mut self, request: &SynthesizeRequest, context: &RunContext) -> Result<Speech> {
        let family = "vibevoice_realtime";
        request.options.check(family, OPTIONS, Scope::Request)?;
        let refused = [
            (!request.references.is_empty(), "recordings of voices"),
            (request.instructions.is_some(), "instructions"),
            (
                request.speed.is_some_and(|speed| speed != 1.0),
                "another speed",
            ),
        ];
        if let Some((_, what)) = refused.iter().find(|(asked, _)| *asked) {
            return Err(Error::unsupported(format!("{family} does not take {what}")));
        }
        let text = request.text.trim();
        if text.is_empty() {
            return Err(Error::bad_input("there is nothing to say in the text"));
        }
        let _busy = self.machine.request();
        let known = self.voice.take().filter(|(name, _)| *name == request.voice);
        let voice = match known {
            Some((_, voice)) => voice,
            None => read_voice(&self.voices, request.voice.as_deref(), self.machine.net())?,
        };
        let ids = self.tokenizer.encode(&format!("{text}\n"));
        let ids = ids.map_err(|error| Error::bad_input(error.to_string()))?;
        let config = &self.machine.net().config;
        let latent = config.acoustic.latent;
        let taken = ids.len() + voice.upper.steps;
        let left = config.max_positions.saturating_sub(taken);
        let steps = request.options.int("steps").unwrap_or(5);
        let plan = Plan {
            guidance: Guidance {
                steps: usize::try_from(steps).unwrap_or(5),
                scale: request.options.float("guidance").unwrap_or(1.5) as f32,
            },
            most: left.min(FRAMES_PER_TOKEN * ids.len() + MORE_FRAMES),
        };
        let mut out = Output::new(request, context);
        let mut random = TorchRandom::new(request.seed.unwrap_or(0));
        let finished = speak(
            &mut self.machine,
            &voice,
            &ids,
            plan,
            // The original draws for both branches and uses the first.
            || random.randn(2 * latent)[..latent].to_vec(),
            |frame| out.add(frame.samples, plan.most),
            || context.check(),
        );
        self.voice = Some((request.voice.clone(), voice));
        if !finished? {
            out.warn("the model did not come to an end: the speech was cut".into());
        }
        out.finish()
    }
}
