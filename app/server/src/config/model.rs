//! One model of the configuration.

use std::{borrow::Cow, collections::BTreeMap, path::PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::Value;

use super::{Device, defaults};

/// One model.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// Name in requests.
    pub id: String,
    /// Catalogue id, or a file or folder; relative paths start at the configuration file.
    pub path: PathBuf,
    /// Family that runs it.
    pub family: String,
    /// What it is used for.
    #[serde(default = "defaults::task")]
    pub task: String,
    /// `offline` or `streaming`.
    #[serde(default)]
    pub mode: Mode,
    /// Load it when it is first asked for; absent is the server's `lazy_load`.
    pub lazy: Option<bool>,
    /// Fetch it if it is a model of the catalogue and not installed; absent is the server's.
    pub pull: Option<bool>,
    /// As the server's.
    pub backend: Option<String>,
    /// As the server's.
    pub device: Option<Device>,
    /// As the server's.
    #[schemars(range(min = 1))]
    pub threads: Option<u16>,
    /// Worker processes, each with its own copy of the model: so many requests run at a time.
    #[serde(default = "defaults::workers")]
    #[schemars(range(min = 1))]
    pub workers: usize,
    /// As the server's.
    pub queue_length: Option<usize>,
    /// As the server's; also the most that a request may ask for.
    pub busy_timeout_ms: Option<u64>,
    /// As the server's.
    pub idle_unload_seconds: Option<u64>,
    /// As the server's.
    pub watchdog_seconds: Option<u64>,
    /// Of a recogniser: the model that finds speech, as a catalogue id, a file or a folder.
    pub vad: Option<PathBuf>,
    /// Not used: packages are recognised by their content.
    pub config: Option<String>,
    /// Type to keep weights in.
    #[serde(alias = "weight_type")]
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

/// How requests to a model run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The whole input is there before work begins.
    #[default]
    Offline,
    /// Input and results flow.
    Streaming,
}

/// A voice made from a model's own voice or from a recording.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
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
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
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

impl UniqueMap<Scalar> {
    /// The pairs as `key=value`.
    pub fn pairs(&self) -> Vec<String> {
        let pairs = self.0.iter();
        pairs.map(|(key, value)| format!("{key}={value}")).collect()
    }
}

impl<V: JsonSchema> JsonSchema for UniqueMap<V> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        BTreeMap::<String, V>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, V>::json_schema(generator)
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
