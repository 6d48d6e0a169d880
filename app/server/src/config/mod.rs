//! The configuration file: the keys of audio.cpp's server and those of this one, checked strictly.

mod defaults;
mod model;
mod parse;
pub mod plan;
mod schema;

use std::{
    collections::BTreeMap,
    net::IpAddr,
    path::{Path, PathBuf},
};

use audiocpp::backend::{BackendType, DeviceSpec};
use schemars::JsonSchema;
use serde::Deserialize;

pub use model::{DefaultVoice, Mode, ModelConfig, Scalar, UniqueMap, VoicePreset};
pub use parse::parse;
pub use plan::Plan;
pub use schema::schema;

/// The configuration of `audiocpp_server`. Relative paths start at the file's folder.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The schema that an editor is to use; not read.
    #[serde(rename = "$schema")]
    pub schema: Option<String>,
    /// Address to listen on.
    #[serde(default = "defaults::host")]
    pub host: IpAddr,
    /// Port to listen on.
    #[serde(default = "defaults::port")]
    #[schemars(range(min = 1))]
    pub port: u16,
    /// Kind of device for all models (`cpu`, `cuda`, `hip`, `vulkan`, `metal`); absent is the best
    /// there is.
    pub backend: Option<String>,
    /// Device: a number of that kind, or a device string.
    pub device: Option<Device>,
    /// CPU threads of each worker process; absent is all physical cores if there is one worker, and
    /// half of them if there are more.
    #[schemars(range(min = 1))]
    pub threads: Option<u16>,
    /// Load models when they are first asked for.
    #[serde(default)]
    pub lazy_load: bool,
    /// Fetch models of the catalogue that are not installed.
    #[serde(default)]
    pub pull: bool,
    /// Origins that browsers may call from: "" for none, "*" for any, or a list.
    #[serde(default)]
    pub cors_origins: Origins,
    /// How long a request may wait for a busy model; 0 is for ever.
    #[serde(default = "defaults::busy_timeout")]
    pub busy_timeout_ms: u64,
    /// Requests that may wait for one model; more are refused.
    #[serde(default = "defaults::queue_length")]
    pub queue_length: usize,
    /// Unload a model that was not used for so long; 0 is never.
    #[serde(default = "defaults::idle_unload")]
    pub idle_unload_seconds: u64,
    /// Megabytes (10^6 bytes) that all workers may hold together; beyond them the models that were
    /// not used for longest are unloaded.
    #[schemars(range(min = 1))]
    pub memory_budget_mb: Option<u64>,
    /// End a worker that shows no sign of life for so long while it works; 0 is never.
    #[serde(default = "defaults::watchdog")]
    pub watchdog_seconds: u64,
    /// How long loading a model may go on without progress.
    #[serde(default = "defaults::load_timeout")]
    #[schemars(range(min = 1))]
    pub load_timeout_seconds: u64,
    /// How long running requests may go on once the server is asked to end.
    #[serde(default = "defaults::drain")]
    pub drain_seconds: u64,
    /// What a request may bring.
    #[serde(default)]
    pub limits: Limits,
    /// Keys of which a request must bear one; none lets everybody in.
    #[serde(default)]
    pub api_keys: Vec<String>,
    /// File with further keys, one a line; `#` begins a comment.
    pub api_keys_file: Option<PathBuf>,
    /// Folders of this machine below which requests may name recordings; none forbids it.
    #[serde(default)]
    pub allowed_audio_roots: Vec<PathBuf>,
    /// Serve HTTPS.
    pub tls: Option<Tls>,
    /// Port for Home Assistant's Wyoming protocol; absent is off.
    #[schemars(range(min = 1))]
    pub wyoming_port: Option<u16>,
    /// Other names of models: `{"whisper-1": "whisper-base"}`.
    #[serde(default)]
    pub aliases: UniqueMap<String>,
    /// The model (task vad) that finds turns in live speech; absent is the first there is.
    pub vad_model: Option<String>,
    /// Folder for uploads while they are worked on; absent is the system's.
    pub spool_dir: Option<PathBuf>,
    /// Not used: packages are recognised by their content.
    pub model_spec_override: Option<PathBuf>,
    /// The models.
    pub models: Vec<ModelConfig>,
}

/// What a request may bring at most.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Bytes of an upload.
    pub upload_bytes: u64,
    /// Seconds of sound in a recording, whatever its size.
    pub audio_seconds: f64,
    /// Characters of a text to speak.
    pub text_chars: usize,
    /// Bytes of a JSON body.
    pub json_bytes: usize,
}

impl Default for Limits {
    /// 512 MiB, 4 hours, 100,000 characters, 16 MiB.
    fn default() -> Self {
        Limits {
            upload_bytes: 512 << 20,
            audio_seconds: 4.0 * 3600.0,
            text_chars: 100_000,
            json_bytes: 16 << 20,
        }
    }
}

/// A certificate and its key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The certificate, followed by those that vouch for it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Origins that browsers may call from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "wanted \"\", \"*\" or a list of origins")]
pub enum Origins {
    /// Nothing, or `*`.
    Text(String),
    /// Each `scheme://host[:port]`.
    List(Vec<String>),
}

impl Default for Origins {
    fn default() -> Self {
        Origins::Text(String::new())
    }
}

impl Origins {
    /// The origins; none is off, `*` is any.
    pub fn list(&self) -> Vec<String> {
        match self {
            Origins::Text(text) if text.is_empty() => Vec::new(),
            Origins::Text(text) => vec![text.clone()],
            Origins::List(list) => list.clone(),
        }
    }
}

/// A device as a number or a string.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "wanted a device number or a string such as \"hip:1\""
)]
pub enum Device {
    /// The how-manieth device of the backend.
    Number(u16),
    /// A device string.
    Text(String),
}

impl Config {
    /// The configuration without a file: this machine only, all keys at their defaults, no models.
    pub fn without_file() -> Config {
        Config {
            schema: None,
            host: defaults::host(),
            port: defaults::port(),
            backend: None,
            device: None,
            threads: None,
            lazy_load: true,
            pull: false,
            cors_origins: Origins::default(),
            busy_timeout_ms: defaults::busy_timeout(),
            queue_length: defaults::queue_length(),
            idle_unload_seconds: defaults::idle_unload(),
            memory_budget_mb: None,
            watchdog_seconds: defaults::watchdog(),
            load_timeout_seconds: defaults::load_timeout(),
            drain_seconds: defaults::drain(),
            limits: Limits::default(),
            api_keys: Vec::new(),
            api_keys_file: None,
            allowed_audio_roots: Vec::new(),
            tls: None,
            wyoming_port: None,
            aliases: UniqueMap(BTreeMap::new()),
            vad_model: None,
            spool_dir: None,
            model_spec_override: None,
            models: Vec::new(),
        }
    }

    /// The device string that `backend` and `device` make, or what is wrong with them.
    ///
    /// # Errors
    /// One line: a kind or device that makes no sense, or two that contradict each other.
    pub fn device(&self) -> Result<String, String> {
        device_string(self.backend.as_deref(), self.device.as_ref())
    }

    /// The same for one model: its own keys, else the server's. A model's own `backend` does away
    /// with the server's `device`.
    ///
    /// # Errors
    /// As [`Config::device`].
    pub fn device_of(&self, model: &ModelConfig) -> Result<String, String> {
        let backend = model.backend.as_deref();
        let device = model.device.as_ref();
        match (backend, device) {
            (Some(_), _) => device_string(backend, device),
            // A whole device string needs no kind.
            (None, Some(Device::Text(_))) => device_string(None, device),
            (None, Some(Device::Number(_))) => device_string(self.backend.as_deref(), device),
            (None, None) => self.device(),
        }
    }

    /// All keys: those of the file, of the named file, and of `AUDIOCPP_API_KEYS` (with commas
    /// between them). `file` is where the configuration was read from.
    ///
    /// # Errors
    /// One line about a file that cannot be read.
    pub fn keys(&self, file: &Path) -> Result<Vec<String>, String> {
        let mut keys = self.api_keys.clone();
        if let Some(named) = &self.api_keys_file {
            let path = resolve(file, named);
            let text = std::fs::read_to_string(&path)
                .map_err(|error| format!("api_keys_file: {}: {error}", path.display()))?;
            keys.extend(key_lines(&text));
        }
        if let Ok(list) = std::env::var(defaults::KEYS_VARIABLE) {
            keys.extend(list.split(',').map(|key| key.trim().to_owned()));
        }
        keys.retain(|key| !key.is_empty());
        Ok(keys)
    }
}

fn key_lines(text: &str) -> impl Iterator<Item = String> {
    text.lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim().to_owned())
        .filter(|line| !line.is_empty())
}

fn device_string(backend: Option<&str>, device: Option<&Device>) -> Result<String, String> {
    let backend = backend.map(str::parse::<BackendType>);
    let backend = backend.transpose().map_err(|error| error.to_string())?;
    let device = device.map(|device| match device {
        Device::Number(n) => n.to_string(),
        Device::Text(text) => text.clone(),
    });
    DeviceSpec::from_options(backend, device.as_deref(), None)
        .map(|spec| spec.to_string())
        .map_err(|error| error.to_string())
}

/// `path` as it is when absolute, else below the folder of the configuration file.
pub fn resolve(file: &Path, path: &Path) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).join(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_start_at_the_file() {
        let at = |path: &str| resolve(Path::new("etc/server.json"), Path::new(path));
        assert_eq!(at("m/a"), Path::new("etc/m/a"));
        assert_eq!(at("/m/a"), Path::new("/m/a"));
    }

    #[test]
    fn keys_come_from_the_file_and_the_named_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("keys"), "one # first\n\n# none\n two\n").unwrap();
        let text = r#"{"models":[],"api_keys":["zero"],"api_keys_file":"keys"}"#;
        let config = parse(text).unwrap();
        let file = folder.path().join("server.json");
        assert_eq!(config.keys(&file).unwrap(), ["zero", "one", "two"]);
        let error = config.keys(Path::new("elsewhere/server.json")).unwrap_err();
        assert!(
            error.starts_with("api_keys_file: elsewhere/keys: "),
            "{error}"
        );
    }

    #[test]
    fn a_model_may_run_elsewhere_than_the_others() {
        let devices = |server: &str, model: &str| {
            let text =
                format!(r#"{{{server}"models":[{{"id":"a","path":"p","family":"f"{model}}}]}}"#);
            let config = parse(&text).unwrap();
            config.device_of(&config.models[0])
        };
        let hip = r#""backend":"hip","device":1,"#;
        assert_eq!(devices(hip, "").unwrap(), "hip:1");
        assert_eq!(devices(hip, r#","device":0"#).unwrap(), "hip:0");
        assert_eq!(devices(hip, r#","backend":"cpu""#).unwrap(), "cpu");
        assert_eq!(devices(hip, r#","device":"vulkan:2""#).unwrap(), "vulkan:2");
        assert_eq!(devices("", "").unwrap(), "auto");
        assert!(devices("", r#","backend":"hipp""#).is_err());
    }
}
