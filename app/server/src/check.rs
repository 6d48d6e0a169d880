//! Checking a configuration against what this build can do.

mod server;

use std::path::Path;

use audiocpp::engine::{
    Options, Registry, Scope, Task,
    package::{Catalogue, Located, locate},
};

use crate::{
    config::{Config, DefaultVoice, Mode, ModelConfig, VoicePreset, plan::OWN_DEFAULT, resolve},
    worker::spec::Package,
};

/// What is wrong, and what is only ignored; each line begins with the path of the key.
#[derive(Debug, Default)]
pub struct Findings {
    /// Reasons why the server would not start.
    pub errors: Vec<String>,
    /// Keys that have no effect here.
    pub warnings: Vec<String>,
}

/// Compares `config`, read from `file`, with the registry, the catalogue and the disk.
pub fn check(config: &Config, file: &Path, registry: &Registry) -> Findings {
    let mut findings = Findings::default();
    server::check(config, file, &mut findings);
    if config.models.is_empty() {
        findings
            .errors
            .push("models: empty, wanted at least one model".into());
    }
    for (index, model) in config.models.iter().enumerate() {
        let at = |key: &str| format!("models[{index}].{key}");
        if config.models[..index]
            .iter()
            .any(|other| other.id == model.id)
        {
            findings
                .errors
                .push(format!("{}: `{}` is there twice", at("id"), model.id));
        }
        if model.id.is_empty() {
            findings
                .errors
                .push(format!("{}: empty, wanted a name", at("id")));
        }
        // The server's own device is reported once.
        if (model.backend.is_some() || model.device.is_some())
            && let Err(message) = config.device_of(model)
        {
            findings.errors.push(format!("{}: {message}", at("device")));
        }
        check_model(model, file, registry, &at, &mut findings);
    }
    findings
}

fn ignored(key: &str) -> String {
    format!("{key}: has no effect: packages are recognised by their content")
}

fn check_model(
    model: &ModelConfig,
    file: &Path,
    registry: &Registry,
    at: &dyn Fn(&str) -> String,
    findings: &mut Findings,
) {
    for (key, given) in [
        ("config", model.config.is_some()),
        ("model_spec_override", model.model_spec_override.is_some()),
    ] {
        if given {
            findings.warnings.push(ignored(&at(key)));
        }
    }
    let mut refuse = |key: &str, message: &str| {
        findings.errors.push(format!("{}: {message}", at(key)));
    };
    let task = model.task.parse::<Task>();
    if let Err(error) = &task {
        refuse("task", &error.message);
    }
    if model.workers == 0 {
        refuse("workers", "0, wanted at least 1");
    }
    if model.threads == Some(0) {
        refuse("threads", "0, wanted at least 1");
    }
    if let Some(vad) = &model.vad {
        if model.task != Task::Asr.name() {
            refuse(
                "vad",
                "only a recogniser (task asr) has a detector of speech",
            );
        } else if let Err(error) = Package::find(vad, file) {
            refuse("vad", &error.message);
        }
    }
    if model.mode == Mode::Streaming {
        refuse("mode", "no family in this build streams: wanted offline");
    }
    match registry.family(&model.family) {
        Err(error) => refuse("family", &error.message),
        Ok(family) => {
            let info = family.info();
            if let Ok(task) = task
                && !info.tasks.contains(&task)
            {
                let does: Vec<&str> = info.tasks.iter().map(|task| task.name()).collect();
                let does = does.join(", ");
                refuse(
                    "task",
                    &format!("family `{}` does {does}, not {task}", info.name),
                );
            }
            for (key, options, scope) in [
                ("load_options", &model.load_options, Scope::Load),
                ("session_options", &model.session_options, Scope::Session),
            ] {
                if let Err(error) = Options::parse(&options.pairs(), info.name, info.options, scope)
                {
                    refuse(key, &error.message);
                }
            }
            if let Err(message) = check_path(model, file, registry) {
                refuse("path", &message);
            }
        }
    }
    for (key, message) in check_voices(model, file) {
        refuse(&key, &message);
    }
}

/// The path must be a model of the catalogue, or be there and be read by the family.
fn check_path(model: &ModelConfig, file: &Path, registry: &Registry) -> Result<(), String> {
    let catalogue = Catalogue::built_in().map_err(|error| error.message)?;
    let text = model.path.to_string_lossy();
    if catalogue.find(&text).is_some() {
        return Ok(());
    }
    let path = resolve(file, &model.path);
    match locate(&path.to_string_lossy(), catalogue) {
        Ok(Located::Path(path)) => match registry.detect(&path, Some(&model.family)) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.message),
        },
        Ok(Located::Known(_)) => Ok(()),
        // A slip in a catalogue id is likelier than one in a path without separators.
        Err(error) if model.path.components().count() == 1 => {
            let ids = catalogue.models.iter().map(|entry| entry.id.as_str());
            match audiocpp::engine::nearest(&text, ids) {
                Some(near) => Err(format!("{}; did you mean `{near}`?", error.message)),
                None => Err(error.message),
            }
        }
        Err(error) => Err(error.message),
    }
}

/// Wrong voice presets, by key.
fn check_voices(model: &ModelConfig, file: &Path) -> Vec<(String, String)> {
    let mut wrong = Vec::new();
    for (name, preset) in &model.voice_presets.0 {
        if let Some(message) = check_voice(preset, file) {
            wrong.push((format!("voice_presets.{name}"), message));
        }
    }
    let key = "default_voice_preset".to_owned();
    match &model.default_voice_preset {
        Some(DefaultVoice::Name(name)) if !model.voice_presets.0.contains_key(name) => {
            let names = model.voice_presets.0.keys().map(String::as_str);
            let hint = audiocpp::engine::hint(name, names);
            wrong.push((key, format!("there is no preset `{name}`{hint}")));
        }
        Some(DefaultVoice::Preset(_)) if model.voice_presets.0.contains_key(OWN_DEFAULT) => {
            wrong.push((
                key,
                format!("there is a preset `{OWN_DEFAULT}` already: name it"),
            ));
        }
        Some(DefaultVoice::Preset(preset)) => {
            wrong.extend(check_voice(preset, file).map(|message| (key, message)));
        }
        _ => {}
    }
    wrong
}

fn check_voice(preset: &VoicePreset, file: &Path) -> Option<String> {
    match (&preset.voice_id, &preset.voice_ref) {
        (None, None) => Some("wanted voice_id or voice_ref".into()),
        (_, Some(recording)) => {
            let path = resolve(file, recording);
            (!path.is_file()).then(|| format!("no recording at {}", path.display()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;
    use audiocpp::engine::{
        Family, FamilyInfo, LoadOptions, Model, OptionKind, OptionSpec, Result, RunContext,
    };

    struct Fake;

    impl Family for Fake {
        fn info(&self) -> FamilyInfo {
            FamilyInfo {
                name: "fake",
                title: "Fake",
                tasks: &[Task::Asr],
                formats: "a folder with fake.bin",
                options: &[OptionSpec {
                    name: "beam",
                    scope: Scope::Session,
                    kind: OptionKind::Int { min: 1, max: 9 },
                    default: None,
                    doc: "Beams.",
                }],
            }
        }
        fn can_load(&self, path: &Path) -> bool {
            path.join("fake.bin").is_file()
        }
        fn load(&self, _: &Path, _: &LoadOptions, _: &RunContext) -> Result<Box<dyn Model>> {
            Err(audiocpp::engine::Error::model("fake"))
        }
    }

    fn check_text(text: &str, file: &Path) -> Findings {
        check(
            &parse(text).unwrap(),
            file,
            &Registry::new(vec![Box::new(Fake)]),
        )
    }

    #[test]
    fn a_sound_file_passes_and_paths_start_at_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("m")).unwrap();
        std::fs::write(folder.path().join("m/fake.bin"), "x").unwrap();
        let text = r#"{"models":[
            {"id":"a","path":"m","family":"fake","task":"asr","session_options":{"beam":3}},
            {"id":"b","path":"whisper-base","family":"fake","task":"asr","config":"x"}]}"#;
        let findings = check_text(text, &folder.path().join("server.json"));
        assert!(findings.errors.is_empty(), "{:?}", findings.errors);
        assert!(findings.warnings[0].starts_with("models[1].config: has no effect"));
    }

    #[test]
    fn everything_wrong_is_reported_at_once_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"{"port":0,"threads":0,"backend":"cpuu","cors_origins":"http://x","models":[
            {"id":"a","path":"none","family":"fake","session_options":{"bean":3}},
            {"id":"a","path":"whisper-bass","family":"fakee","task":"asrr","mode":"streaming",
             "voice_presets":{"v":{"voice_ref":"r.wav"}},"default_voice_preset":"w"}]}"#;
        let errors = check_text(text, &folder.path().join("server.json")).errors;
        for wanted in [
            "device: ",
            "port: 0",
            "threads: 0",
            "cors_origins: `http://x`",
            "models[0].task: family `fake` does asr, not tts",
            "models[0].session_options: fake has no session option `bean`; did you mean `beam`?",
            "models[0].path: no model file or folder at",
            "models[1].id: `a` is there twice",
            "models[1].task: there is no task `asrr`; did you mean `asr`?",
            "models[1].mode: no family",
            "models[1].family: there is no family `fakee`; did you mean `fake`?",
            "models[1].voice_presets.v: no recording at",
            "models[1].default_voice_preset: there is no preset `w`",
        ] {
            assert!(
                errors.iter().any(|line| line.starts_with(wanted)),
                "{wanted}: {errors:#?}"
            );
        }
        assert_eq!(errors.len(), 13, "{errors:#?}");
    }
}
