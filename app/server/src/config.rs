//! The configuration file: the keys of audio.cpp's server, checked strictly.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    path::{Path, PathBuf},
};

use audiocpp::backend::{BackendType, DeviceSpec};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::Value;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Address to listen on.
    #[serde(default = "default_host")]
    pub host: IpAddr,
    /// Port to listen on.
    #[serde(default = "default_port")]
    pub port: u16,
    /// Kind of device for all models; absent is the best there is.
    pub backend: Option<String>,
    /// Device: a number of that kind, or a device string.
    pub device: Option<Device>,
    /// CPU threads of each model; absent is one for every physical core.
    pub threads: Option<u16>,
    /// Load models when they are first asked for.
    #[serde(default)]
    pub lazy_load: bool,
    /// Origins that browsers may call from: nothing, or `*`.
    #[serde(default)]
    pub cors_origins: String,
    /// How long a request may wait for a busy model; 0 is for ever.
    #[serde(default = "default_busy_timeout")]
    pub busy_timeout_ms: u64,
    /// Not used: packages are recognised by their content.
    pub model_spec_override: Option<PathBuf>,
    /// The models.
    pub models: Vec<ModelConfig>,
}

impl Config {
    /// The device string that `backend` and `device` make, or what is wrong with them.
    pub fn device(&self) -> Result<String, String> {
        let backend = self.backend.as_deref().map(str::parse::<BackendType>);
        let backend = backend.transpose().map_err(|error| error.to_string())?;
        let device = self.device.as_ref().map(|device| match device {
            Device::Number(n) => n.to_string(),
            Device::Text(text) => text.clone(),
        });
        DeviceSpec::from_options(backend, device.as_deref(), None)
            .map(|spec| spec.to_string())
            .map_err(|error| error.to_string())
    }
}

fn default_host() -> IpAddr {
    IpAddr::from([127, 0, 0, 1])
}

fn default_port() -> u16 {
    8080
}

fn default_busy_timeout() -> u64 {
    300_000
}

/// A device as a number or a string.
#[derive(Clone, Debug, PartialEq, Deserialize)]
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

/// One model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// Name in requests.
    pub id: String,
    /// Catalogue id, or a file or folder; relative paths start at the configuration file.
    pub path: PathBuf,
    /// Family that runs it.
    pub family: String,
    /// What it is used for.
    #[serde(default = "default_task")]
    pub task: String,
    /// `offline` or `streaming`.
    #[serde(default)]
    pub mode: Mode,
    /// Load it when it is first asked for; absent is the server's `lazy_load`.
    pub lazy: Option<bool>,
    /// As the server's; also the most that a request may ask for.
    pub busy_timeout_ms: Option<u64>,
    /// Not used: packages are recognised by their content.
    pub config: Option<String>,
    /// Type to keep weights in.
    pub weight: Option<String>,
    /// Load options of the family.
    #[serde(default)]
    pub load_options: UniqueMap<Scalar>,
    /// Session options of the family.
    #[serde(default)]
    pub session_options: UniqueMap<Scalar>,
    /// Voices by name.
    #[serde(default)]
    pub voice_presets: UniqueMap<VoicePreset>,
    /// The voice when a request names none.
    pub default_voice_preset: Option<DefaultVoice>,
    /// Not used: packages are recognised by their content.
    pub model_spec_override: Option<PathBuf>,
}

fn default_task() -> String {
    "tts".into()
}

/// How requests to a model run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The whole input is there before work begins.
    #[default]
    Offline,
    /// Input and results flow.
    Streaming,
}

/// A voice made from a model's own voice or from a recording.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VoicePreset {
    /// One of the model's voices.
    pub voice_id: Option<String>,
    /// Recording to copy; relative paths start at the configuration file.
    pub voice_ref: Option<PathBuf>,
    /// The words of the recording.
    pub reference_text: Option<String>,
}

/// The default voice: the name of a preset, or a preset.
#[derive(Clone, Debug, PartialEq)]
pub enum DefaultVoice {
    /// Name of one of the model's presets.
    Name(String),
    /// A preset of its own.
    Preset(VoicePreset),
}

impl<'de> Deserialize<'de> for DefaultVoice {
    // By hand, so that a wrong key inside the object is named instead of "no variant matched".
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(name) => Ok(DefaultVoice::Name(name)),
            object @ Value::Object(_) => {
                let preset = VoicePreset::deserialize(object).map_err(serde::de::Error::custom)?;
                Ok(DefaultVoice::Preset(preset))
            }
            _ => Err(serde::de::Error::custom(
                "wanted the name of a preset, or an object",
            )),
        }
    }
}

/// An option's value; options are checked as text, as the command line gives them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged, expecting = "wanted a string, a number, true or false")]
pub enum Scalar {
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// Text.
    Text(String),
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Scalar::Bool(value) => value.fmt(f),
            Scalar::Int(value) => value.fmt(f),
            Scalar::Float(value) => value.fmt(f),
            Scalar::Text(value) => value.fmt(f),
        }
    }
}

/// A map in which a key that is there twice is an error, not a silent loss.
#[derive(Clone, Debug, PartialEq)]
pub struct UniqueMap<V>(pub BTreeMap<String, V>);

impl<V> Default for UniqueMap<V> {
    fn default() -> Self {
        UniqueMap(BTreeMap::new())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for UniqueMap<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<V>(std::marker::PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for Entries<V> {
            type Value = UniqueMap<V>;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
                let mut map = BTreeMap::new();
                while let Some((key, value)) = access.next_entry::<String, V>()? {
                    if map.insert(key.clone(), value).is_some() {
                        return Err(serde::de::Error::custom(format!("`{key}` is there twice")));
                    }
                }
                Ok(UniqueMap(map))
            }
        }
        deserializer.deserialize_map(Entries(std::marker::PhantomData))
    }
}

/// Reads the text of a configuration file. The error is one line: the place in the file, the path
/// of the key (`models[1].task`), what was found, and the nearest known key.
pub fn parse(text: &str) -> Result<Config, String> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let config = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        let message = with_hint(&error.into_inner().to_string());
        if path == "." {
            message
        } else {
            format!("{path}: {message}")
        }
    })?;
    reader.end().map_err(|error| error.to_string())?;
    Ok(config)
}

/// Shortens serde's list of every known key to the nearest one, where there is one.
fn with_hint(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let wanted = if message.starts_with("unknown field") {
        "key"
    } else {
        "value"
    };
    let is_unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
    if let [found, known @ ..] = quoted.as_slice()
        && is_unknown
        && let Some(near) = audiocpp::engine::nearest(found, known.iter().copied())
    {
        let place = message
            .rsplit_once(" at line ")
            .map_or("", |(_, place)| place);
        let place = if place.is_empty() {
            String::new()
        } else {
            format!(" at line {place}")
        };
        return format!("unknown {wanted} `{found}`, did you mean `{near}`?{place}");
    }
    message.to_owned()
}

/// `path` as it is when absolute, else below the folder of the configuration file.
pub fn resolve(file: &Path, path: &Path) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).join(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"{
        "host": "0.0.0.0", "port": 9000, "backend": "hip", "device": 1, "threads": 4,
        "lazy_load": true, "cors_origins": "*", "busy_timeout_ms": 0,
        "model_spec_override": "specs",
        "models": [{
            "id": "a", "path": "m/a", "family": "whisper", "task": "asr", "mode": "offline",
            "lazy": false, "busy_timeout_ms": 5, "config": "c", "weight": "f16",
            "load_options": {"x": 1}, "session_options": {"y": true, "z": "w", "f": 0.5},
            "voice_presets": {"v": {"voice_id": "1", "voice_ref": "r.wav", "reference_text": "t"}},
            "default_voice_preset": "v", "model_spec_override": "s"
        }]
    }"#;

    #[test]
    fn every_key_of_the_ancestor_is_read() {
        let config = parse(WHOLE).unwrap();
        assert_eq!(
            (config.port, config.device.clone()),
            (9000, Some(Device::Number(1)))
        );
        assert_eq!(config.device().unwrap(), "hip:1");
        let model = &config.models[0];
        assert_eq!(model.load_options.0["x"], Scalar::Int(1));
        assert_eq!(model.session_options.0["f"].to_string(), "0.5");
        assert_eq!(
            model.default_voice_preset,
            Some(DefaultVoice::Name("v".into()))
        );
        let least = parse(r#"{"models":[{"id":"a","path":"p","family":"f"}]}"#).unwrap();
        assert_eq!((least.port, least.busy_timeout_ms), (8080, 300_000));
        assert_eq!(least.device().unwrap(), "auto");
        assert!(least.host.is_loopback());
        assert_eq!(
            (least.models[0].task.as_str(), least.models[0].mode),
            ("tts", Mode::Offline)
        );
    }

    #[test]
    fn wrong_keys_and_types_are_named_with_their_path() {
        let error = |from: &str, to: &str| parse(&WHOLE.replace(from, to)).unwrap_err();
        let line = error("\"port\"", "\"prot\"");
        assert!(
            line.starts_with("prot: unknown key `prot`, did you mean `port`? at line 2"),
            "{line}"
        );
        let line = error("\"task\"", "\"taks\"");
        assert!(
            line.starts_with("models[0].taks: unknown key `taks`, did you mean `task`"),
            "{line}"
        );
        let line = error("\"mode\": \"offline\"", "\"mode\": \"ofline\"");
        assert!(
            line.contains("models[0].mode: unknown value `ofline`, did you mean `offline`"),
            "{line}"
        );
        let line = error("\"task\": \"asr\"", "\"task\": 5");
        assert!(
            line.starts_with("models[0].task: invalid type: integer `5`"),
            "{line}"
        );
        let line = error("\"voice_ref\"", "\"voice_reff\"");
        assert!(
            line.contains("models[0].voice_presets.v.voice_reff: unknown key"),
            "{line}"
        );
        let line = error(
            "\"default_voice_preset\": \"v\"",
            "\"default_voice_preset\": {\"voice\": 1}",
        );
        assert!(
            line.starts_with("models[0].default_voice_preset: unknown key `voice`"),
            "{line}"
        );
        let line = error("\"lazy\": false", "\"lazy\": false, \"lazy\": true");
        assert!(line.contains("duplicate field"), "{line}");
        let line = error("\"x\": 1", "\"x\": 1, \"x\": 2");
        assert!(line.contains("`x` is there twice"), "{line}");
        assert!(
            parse(&format!("{WHOLE} x"))
                .unwrap_err()
                .contains("trailing")
        );
        assert!(parse("{}").unwrap_err().contains("missing field `models`"));
    }

    #[test]
    fn relative_paths_start_at_the_file() {
        let at = |path: &str| resolve(Path::new("etc/server.json"), Path::new(path));
        assert_eq!(at("m/a"), Path::new("etc/m/a"));
        assert_eq!(at("/m/a"), Path::new("/m/a"));
    }
}
