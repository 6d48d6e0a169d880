//! What is to be served: a checked configuration with its defaults filled in.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use audiocpp::engine::{
    Error, LoadOptions, Options, Registry, Result, Scope, Task, package::Catalogue, physical_cores,
};

use serde::{Deserialize, Serialize};

use super::{Config, DefaultVoice, ModelConfig, VoicePreset, resolve};
use crate::worker::spec::{Package, Spec};

/// The name of a default voice that is a preset of its own.
pub const OWN_DEFAULT: &str = "default";
/// The catalogue's detector, taken where none is named.
const DETECTOR: &str = "silero-vad";

/// The models to serve and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The models, in the order of the configuration.
    pub models: Vec<ModelPlan>,
    /// Bytes that all workers may hold together.
    pub memory_budget: Option<u64>,
    /// How long loading may go on without progress.
    pub load_limit: Duration,
}

/// One model.
#[derive(Clone, Debug)]
pub struct ModelPlan {
    /// What its workers are told.
    pub spec: Spec,
    /// Loaded when it is first asked for, not at the start.
    pub lazy: bool,
    /// Processes, at least 1.
    pub workers: usize,
    /// Jobs that may wait.
    pub queue_length: usize,
    /// The longest wait in the queue; none is for ever.
    pub wait: Option<Duration>,
    /// Unloaded after so long without use; none is never.
    pub idle_unload: Option<Duration>,
    /// The longest silence of a working process; none is for ever.
    pub watchdog: Option<Duration>,
    /// Configured voices by name.
    pub voices: BTreeMap<String, Voice>,
    /// The voice of requests that name none: one of `voices`, or one of the model's own.
    pub default_voice: Option<String>,
    /// Whether its family copies voices.
    pub clones: bool,
}

/// A configured voice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Voice {
    /// One of the model's own voices.
    pub voice: Option<String>,
    /// A recording to copy.
    pub recording: Option<PathBuf>,
    /// Its words.
    pub words: Option<String>,
}

impl Plan {
    /// The plan of `config`, which was read from `file`.
    ///
    /// # Errors
    /// What [`check`](crate::check::check) would have found.
    pub fn new(config: &Config, file: &Path, registry: &Registry) -> Result<Plan> {
        let plan_one = |model: &ModelConfig| {
            ModelPlan::new(config, model, file, registry)
                .map_err(|error| error.context(format!("model `{}`", model.id)))
        };
        let mut models = config
            .models
            .iter()
            .map(plan_one)
            .collect::<Result<Vec<_>>>()?;
        let vad = models.iter().find(|model| model.spec.task == Task::Vad);
        let detector = vad.map(|model| model.spec.package.clone());
        let detector = detector.or_else(|| Package::known(DETECTOR).filter(Package::is_installed));
        for model in &mut models {
            if model.spec.task == Task::Asr && model.spec.detector.is_none() {
                model.spec.detector = detector.clone();
            }
        }
        share_cores(config, &mut models);
        Ok(Plan {
            models,
            memory_budget: config
                .memory_budget_mb
                .map(|mb| mb.saturating_mul(1_000_000)),
            load_limit: Duration::from_secs(config.load_timeout_seconds),
        })
    }
}

/// The models of the catalogue that are installed, as a configuration would list them.
///
/// # Errors
/// A catalogue that cannot be read.
pub fn installed(registry: &Registry) -> Result<Vec<ModelConfig>> {
    let mut models = Vec::new();
    for entry in &Catalogue::built_in()?.models {
        let package = Package::Known(entry.id.clone());
        let task = entry.tasks.first();
        if let Some(task) = task
            && registry.family(&entry.family).is_ok()
            && package.is_installed()
        {
            models.push(ModelConfig::new(&entry.id, &entry.family, *task));
        }
    }
    Ok(models)
}

impl ModelConfig {
    /// A model of the catalogue with all other keys at their defaults.
    pub fn new(id: &str, family: &str, task: Task) -> ModelConfig {
        ModelConfig {
            id: id.to_owned(),
            path: id.into(),
            family: family.to_owned(),
            task: task.name().to_owned(),
            mode: super::Mode::default(),
            lazy: None,
            pull: None,
            backend: None,
            device: None,
            threads: None,
            workers: super::defaults::workers(),
            queue_length: None,
            busy_timeout_ms: None,
            idle_unload_seconds: None,
            watchdog_seconds: None,
            vad: None,
            config: None,
            weight: None,
            load_options: super::UniqueMap::default(),
            session_options: super::UniqueMap::default(),
            voice_presets: super::UniqueMap::default(),
            default_voice_preset: None,
            model_spec_override: None,
        }
    }
}

impl ModelPlan {
    fn new(
        config: &Config,
        model: &ModelConfig,
        file: &Path,
        registry: &Registry,
    ) -> Result<ModelPlan> {
        let info = registry.family(&model.family)?.info();
        let options =
            |pairs: &[String], scope| Options::parse(pairs, info.name, info.options, scope);
        let load = LoadOptions {
            device: config.device_of(model).map_err(Error::bad_input)?,
            threads: model.threads.or(config.threads).map(usize::from),
            weight_type: model.weight.clone(),
            options: options(&model.load_options.pairs(), Scope::Load)?,
            ..LoadOptions::default()
        };
        let detector = model.vad.as_deref();
        let spec = Spec {
            id: model.id.clone(),
            family: info.name.to_owned(),
            package: Package::find(&model.path, file)?,
            pull: model.pull.unwrap_or(config.pull),
            task: model.task.parse()?,
            load,
            session: options(&model.session_options.pairs(), Scope::Session)?,
            detector: detector.map(|vad| Package::find(vad, file)).transpose()?,
            max_seconds: config.limits.audio_seconds,
        };
        let voice = |preset: &VoicePreset| Voice {
            voice: preset.voice_id.clone(),
            recording: preset.voice_ref.as_ref().map(|path| resolve(file, path)),
            words: preset.reference_text.clone(),
        };
        let presets = model.voice_presets.0.iter();
        let mut voices: BTreeMap<String, Voice> = presets
            .map(|(name, preset)| (name.clone(), voice(preset)))
            .collect();
        let default_voice = match &model.default_voice_preset {
            Some(DefaultVoice::Name(name)) => Some(name.clone()),
            Some(DefaultVoice::Preset(preset)) => {
                voices.insert(OWN_DEFAULT.into(), voice(preset));
                Some(OWN_DEFAULT.into())
            }
            None => None,
        };
        let seconds = |own: Option<u64>, all| {
            let seconds = own.unwrap_or(all);
            (seconds > 0).then(|| Duration::from_secs(seconds))
        };
        let wait = model.busy_timeout_ms.unwrap_or(config.busy_timeout_ms);
        Ok(ModelPlan {
            spec,
            lazy: model.lazy.unwrap_or(config.lazy_load),
            workers: model.workers.max(1),
            queue_length: model.queue_length.unwrap_or(config.queue_length),
            wait: (wait > 0).then(|| Duration::from_millis(wait)),
            idle_unload: seconds(model.idle_unload_seconds, config.idle_unload_seconds),
            watchdog: seconds(model.watchdog_seconds, config.watchdog_seconds),
            voices,
            default_voice,
            clones: info.tasks.contains(&Task::Clon),
        })
    }
}

/// Sets the threads of workers that are not told how many to use. ggml's threads spin while they
/// wait for each other, so two workers that each take all cores are much slower than two that
/// share them; one worker alone takes all.
fn share_cores(config: &Config, models: &mut [ModelPlan]) {
    let workers: usize = models.iter().map(|model| model.workers).sum();
    if workers < 2 || config.threads.is_some() {
        return;
    }
    let half = physical_cores().div_ceil(2);
    for model in models {
        model.spec.load.threads.get_or_insert(half);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn plan(text: &str) -> Plan {
        let config = parse(text).unwrap();
        let file = Path::new("/etc/audiocpp/server.json");
        Plan::new(&config, file, &audiocpp_models::registry()).unwrap()
    }

    #[test]
    fn a_model_s_keys_win_over_the_server_s() {
        let plan = plan(
            r#"{"busy_timeout_ms": 0, "idle_unload_seconds": 7, "memory_budget_mb": 3,
            "limits": {"audio_seconds": 60}, "models": [
            {"id": "a", "path": "whisper-base", "family": "whisper", "task": "asr", "vad": "silero-vad"},
            {"id": "b", "path": "piper-joe", "family": "piper", "busy_timeout_ms": 9, "threads": 3,
             "idle_unload_seconds": 0, "watchdog_seconds": 0, "workers": 2, "queue_length": 1,
             "voice_presets": {"v": {"voice_id": "1"}}, "default_voice_preset": {"voice_id": "2"}}]}"#,
        );
        assert_eq!(plan.memory_budget, Some(3_000_000));
        let [a, b] = plan.models.as_slice() else {
            panic!("two models");
        };
        assert_eq!((a.wait, b.wait), (None, Some(Duration::from_millis(9))));
        assert_eq!(a.idle_unload, Some(Duration::from_secs(7)));
        assert_eq!((b.idle_unload, b.watchdog), (None, None));
        assert_eq!((b.workers, b.queue_length), (2, 1));
        assert_eq!(a.spec.detector, Some(Package::Known("silero-vad".into())));
        assert_eq!(a.spec.max_seconds, 60.0);
        // Three workers: those without a number of their own get half of the cores.
        assert_eq!(a.spec.load.threads, Some(physical_cores().div_ceil(2)));
        assert_eq!(b.spec.load.threads, Some(3));
        assert_eq!(b.voices["v"].voice.as_deref(), Some("1"));
        assert_eq!(b.default_voice.as_deref(), Some(OWN_DEFAULT));
        assert_eq!(b.voices[OWN_DEFAULT].voice.as_deref(), Some("2"));
        assert!(!b.clones);
    }

    #[test]
    fn one_worker_takes_all_cores() {
        let plan = plan(r#"{"models": [{"id": "a", "path": "piper-joe", "family": "piper"}]}"#);
        assert_eq!(plan.models[0].spec.load.threads, None);
    }
}
