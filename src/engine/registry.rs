//! Families of models, and the way from a folder on disk to a running session.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{
    check::Stage,
    device::DeviceReport,
    error::{Error, Result},
    options::{OptionSpec, Options},
    run::RunContext,
    speech::VoiceInfo,
    suggest::hint,
    task::*,
};
use crate::backend::FastPath;

/// How a model is loaded; crosses process borders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoadOptions {
    /// `auto`, `cpu`, `hip:1`, ...; an explicit device is never swapped for another.
    pub device: String,
    /// CPU threads; `None` is one for every physical core this process may use.
    pub threads: Option<usize>,
    /// Type the weights are kept in (`native`, `f32`, `f16`, `q8_0`, ...); `None` is `native`.
    pub weight_type: Option<String>,
    /// Make an operation that the device lacks an error instead of running it on the CPU.
    pub strict_device: bool,
    /// Let the CPU stand in for an explicit device that fails, as `auto` always does.
    pub fallback_cpu: bool,
    /// Fast paths to force, each `NAME=on`, `NAME=off` or `NAME=auto`.
    pub fast_paths: Vec<String>,
    /// The family's declared load options.
    pub options: Options,
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions {
            device: "auto".into(),
            threads: None,
            weight_type: None,
            strict_device: false,
            fallback_cpu: false,
            fast_paths: Vec::new(),
            options: Options::default(),
        }
    }
}

impl LoadOptions {
    /// The thread count to use: the one asked for, else one per available physical core.
    pub fn thread_count(&self) -> usize {
        self.threads.unwrap_or_else(super::threads::physical_cores)
    }
}

/// What a family says about itself.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FamilyInfo {
    /// The name in commands and configs, in snake case.
    pub name: &'static str,
    /// The name as its authors write it, with a few words.
    pub title: &'static str,
    /// What its models can do.
    pub tasks: &'static [Task],
    /// Package formats that it reads, for the error about a folder that it does not.
    pub formats: &'static str,
    /// Every option that it takes.
    pub options: &'static [OptionSpec],
}

/// A model architecture: recognises its packages and loads them.
pub trait Family: Send + Sync {
    /// Describes the family.
    fn info(&self) -> FamilyInfo;

    /// The fast paths that its models ask their device for.
    fn fast_paths(&self) -> &'static [FastPath] {
        &[]
    }

    /// Whether a file that is converted to 8 bits or less keeps 16 for the tensor `name`, because
    /// errors in it are heard.
    fn precise(&self, _name: &str) -> bool {
        false
    }

    /// Whether the file or folder at `path` looks like one of its packages; reads little.
    fn can_load(&self, path: &Path) -> bool;

    /// Loads the package at `path` (file or folder).
    fn load(
        &self,
        path: &Path,
        options: &LoadOptions,
        context: &RunContext,
    ) -> Result<Box<dyn Model>>;
}

/// What a loaded model says about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Its family.
    pub family: String,
    /// Which of the family (`tiny.en`, `base`, ...), as far as the package tells.
    pub variant: String,
    /// ISO 639 codes; empty where languages do not matter.
    pub languages: Vec<String>,
    /// Samples per second that it takes or gives.
    pub sample_rate: u32,
    /// Number of parameters.
    pub parameters: u64,
    /// What it runs on.
    pub device: DeviceReport,
    /// Bytes of weights on that device.
    pub weight_bytes: u64,
}

impl ModelInfo {
    /// The variant as the package at `path` is called: of a folder the whole name
    /// (`whisper-tiny.en`), of a file the name without its ending.
    pub fn variant_of(path: &Path) -> String {
        let name = match path.is_dir() {
            true => path.file_name(),
            false => path.file_stem(),
        };
        name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }
}

/// Loaded weights; sessions share them.
pub trait Model: Send + Sync {
    /// Describes the model.
    fn info(&self) -> ModelInfo;

    /// Opens a session with its own state; `options` are the family's session options.
    /// An error of class `Unsupported` if this model cannot do `task`.
    fn session(&self, task: Task, options: &Options) -> Result<Session>;

    /// The voices that it speaks with; empty for models that do not speak, or in any voice.
    fn voices(&self) -> Vec<VoiceInfo> {
        Vec::new()
    }

    /// What every stage makes of a fixed input of the family's choosing, for comparing devices.
    fn stages(&self) -> Result<Vec<Stage>>;
}

/// A session, by what can be asked of it.
pub enum Session {
    /// Speech recognition.
    Transcribe(Box<dyn Transcribe>),
    /// Speech synthesis in any kind of voice.
    Synthesize(Box<dyn Synthesize>),
    /// Voice activity.
    DetectSpeech(Box<dyn DetectSpeech>),
    /// Separation.
    Separate(Box<dyn Separate>),
    /// Voice conversion.
    Convert(Box<dyn Convert>),
    /// Coding.
    Codec(Box<dyn Codec>),
    /// Diarization.
    Diarize(Box<dyn Diarize>),
    /// Alignment.
    Align(Box<dyn Align>),
    /// Generation.
    Generate(Box<dyn Generate>),
}

impl Session {
    /// The recogniser in this session, or an error of class `Unsupported`.
    pub fn into_transcribe(self) -> Result<Box<dyn Transcribe>> {
        match self {
            Session::Transcribe(session) => Ok(session),
            other => Err(Error::unsupported(format!(
                "{other:?} does not turn speech into text"
            ))),
        }
    }

    /// The detector in this session, or an error of class `Unsupported`.
    pub fn into_detect_speech(self) -> Result<Box<dyn DetectSpeech>> {
        match self {
            Session::DetectSpeech(session) => Ok(session),
            other => Err(Error::unsupported(format!(
                "{other:?} does not find speech"
            ))),
        }
    }

    /// The speaker in this session, or an error of class `Unsupported`.
    pub fn into_synthesize(self) -> Result<Box<dyn Synthesize>> {
        match self {
            Session::Synthesize(session) => Ok(session),
            other => Err(Error::unsupported(format!(
                "{other:?} does not turn text into speech"
            ))),
        }
    }

    /// The codec in this session, or an error of class `Unsupported`.
    pub fn into_codec(self) -> Result<Box<dyn Codec>> {
        match self {
            Session::Codec(session) => Ok(session),
            other => Err(Error::unsupported(format!(
                "{other:?} does not turn sound into tokens"
            ))),
        }
    }

    /// The converter in this session, or an error of class `Unsupported`.
    pub fn into_convert(self) -> Result<Box<dyn Convert>> {
        match self {
            Session::Convert(session) => Ok(session),
            other => Err(Error::unsupported(format!(
                "{other:?} does not change voices"
            ))),
        }
    }

    /// The separator in this session, or an error of class `Unsupported`.
    pub fn into_separate(self) -> Result<Box<dyn Separate>> {
        match self {
            Session::Separate(session) => Ok(session),
            other => Err(Error::unsupported(format!(
                "{other:?} does not split a mix into stems"
            ))),
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Session::Transcribe(_) => "Session::Transcribe",
            Session::Synthesize(_) => "Session::Synthesize",
            Session::DetectSpeech(_) => "Session::DetectSpeech",
            Session::Separate(_) => "Session::Separate",
            Session::Convert(_) => "Session::Convert",
            Session::Codec(_) => "Session::Codec",
            Session::Diarize(_) => "Session::Diarize",
            Session::Align(_) => "Session::Align",
            Session::Generate(_) => "Session::Generate",
        })
    }
}

/// The families that a program knows.
#[derive(Default)]
pub struct Registry {
    families: Vec<Box<dyn Family>>,
}

impl Registry {
    /// A registry of `families`, asked in this order when a package has to be recognised.
    pub fn new(families: Vec<Box<dyn Family>>) -> Self {
        Registry { families }
    }

    /// All families.
    pub fn families(&self) -> impl Iterator<Item = &dyn Family> {
        self.families.iter().map(|family| &**family)
    }

    /// The family called `name` (`-` and `_` are alike), or an error that names the nearest.
    pub fn family(&self, name: &str) -> Result<&dyn Family> {
        let plain = |text: &str| text.replace('-', "_");
        self.families()
            .find(|family| plain(family.info().name) == plain(name))
            .ok_or_else(|| {
                let names = self.families.iter().map(|family| family.info().name);
                Error::unsupported(format!("there is no family `{name}`{}", hint(name, names)))
            })
    }

    /// An error unless some family does `task`.
    pub fn require_task(&self, task: Task) -> Result<()> {
        if self
            .families()
            .any(|family| family.info().tasks.contains(&task))
        {
            return Ok(());
        }
        let phrase = task.phrase();
        Err(Error::unsupported(format!(
            "no family in this build does {phrase} (task `{task}`)"
        )))
    }

    /// The family that reads the package at `path`: the one called `family`, or the first that
    /// recognises it. The error says what is there and what would be read.
    pub fn detect(&self, path: &Path, family: Option<&str>) -> Result<&dyn Family> {
        let named = family.map(|name| self.family(name)).transpose()?;
        if !path.exists() {
            return Err(Error::not_found(format!(
                "no model file or folder at {}",
                path.display()
            )));
        }
        let found = match named {
            Some(family) => Some(family).filter(|family| family.can_load(path)),
            None => self.families().find(|family| family.can_load(path)),
        };
        found.ok_or_else(|| {
            let wanted: Vec<String> = self
                .families()
                .map(|family| family.info())
                .filter(|info| named.is_none_or(|named| named.info().name == info.name))
                .map(|info| format!("{}: {}", info.name, info.formats))
                .collect();
            let found = describe(path);
            let wanted = wanted.join("; ");
            let path = path.display();
            Error::model(match named {
                Some(family) => {
                    let name = family.info().name;
                    format!("{path} is not a {name} model: {found}; wanted {wanted}")
                }
                None => format!("no family reads {path}: {found}; known: {wanted}"),
            })
        })
    }
}

/// What is at `path`, in a few words.
fn describe(path: &Path) -> String {
    if path.is_file() {
        let bytes = path.metadata().map_or(0, |meta| meta.len());
        return format!("it is a file of {bytes} bytes");
    }
    let mut names: Vec<String> = std::fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    match names.len() {
        0 => "the folder is empty".into(),
        n if n > 6 => format!(
            "the folder has {} and {} more",
            names[..6].join(", "),
            n - 6
        ),
        _ => format!("the folder has {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ErrorClass;

    struct Fake;

    impl Family for Fake {
        fn info(&self) -> FamilyInfo {
            FamilyInfo {
                name: "fake_net",
                title: "Fake",
                tasks: &[Task::Vad],
                formats: "a folder with fake.bin",
                options: &[],
            }
        }
        fn can_load(&self, path: &Path) -> bool {
            path.join("fake.bin").is_file()
        }
        fn load(&self, _: &Path, _: &LoadOptions, _: &RunContext) -> Result<Box<dyn Model>> {
            Err(Error::model("fake.bin has no weights"))
        }
    }

    #[test]
    fn families_are_found_by_name_and_by_content() {
        let registry = Registry::new(vec![Box::new(Fake)]);
        assert!(registry.family("fake-net").is_ok());
        let error = registry.family("fake_met").err().unwrap();
        assert!(error.message.contains("did you mean `fake_net`"), "{error}");

        let folder = tempfile::tempdir().unwrap();
        let error = registry.detect(folder.path(), None).err().unwrap();
        assert_eq!(error.class, ErrorClass::Model);
        assert!(error.message.contains("the folder is empty"), "{error}");
        assert!(error.message.contains("fake.bin"), "{error}");

        std::fs::write(folder.path().join("fake.bin"), b"x").unwrap();
        assert_eq!(
            registry.detect(folder.path(), None).unwrap().info().name,
            "fake_net"
        );
        let missing = folder.path().join("nothing");
        let error = registry.detect(&missing, Some("fake_net")).err().unwrap();
        assert_eq!(error.class, ErrorClass::NotFound);
    }

    #[test]
    fn a_task_without_a_family_is_an_error_that_says_so() {
        let registry = Registry::new(vec![Box::new(Fake)]);
        assert!(registry.require_task(Task::Vad).is_ok());
        let error = registry.require_task(Task::Sep).unwrap_err();
        assert!(error.message.contains("source separation"), "{error}");
    }

    #[test]
    fn a_dot_in_a_folder_s_name_is_no_ending() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("whisper-tiny.en");
        std::fs::create_dir(&folder).unwrap();
        assert_eq!(ModelInfo::variant_of(&folder), "whisper-tiny.en");
        assert_eq!(
            ModelInfo::variant_of(Path::new("models/ggml-tiny.en.bin")),
            "ggml-tiny.en"
        );
    }
}
