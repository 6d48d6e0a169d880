//! What a session was told: model, language, format, turns.

use audiocpp::{audio::RATES, engine::Task, text::languages};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::audio::Format;
use crate::{
    http::{
        app::{App, shown},
        error::{ApiError, Result},
    },
    job::ModelStatus,
};

/// How turns are found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnRules {
    /// Probability at which speech begins.
    pub threshold: f64,
    /// Sound before speech that belongs to the turn.
    pub prefix_padding_ms: u64,
    /// Silence that ends a turn.
    pub silence_duration_ms: u64,
}

impl Default for TurnRules {
    fn default() -> Self {
        TurnRules {
            threshold: 0.5,
            prefix_padding_ms: 300,
            silence_duration_ms: 500,
        }
    }
}

/// The state of a session's settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// The model that transcribes; a session may begin without one.
    pub model: Option<ModelStatus>,
    /// Code of the language.
    pub language: Option<String>,
    /// Text that comes before the speech.
    pub prompt: Option<String>,
    /// How samples come.
    pub format: Format,
    /// How turns are found; `None` leaves them to the client.
    pub turns: Option<TurnRules>,
    /// The model that finds them.
    pub detector: Option<ModelStatus>,
}

/// The parts of `session.update` that mean something here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Update {
    r#type: Option<String>,
    audio: Audio,
    include: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Audio {
    input: Input,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Input {
    format: Option<Format>,
    transcription: Option<Transcription>,
    #[serde(deserialize_with = "present")]
    turn_detection: Option<Option<Turns>>,
    noise_reduction: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Transcription {
    model: Option<String>,
    language: Option<String>,
    prompt: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Turns {
    r#type: String,
    #[serde(flatten)]
    rules: TurnRules,
}

/// Tells `null` from a key that is not there.
fn present<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

impl Config {
    /// The settings of a session that was asked for `model`.
    pub fn new(app: &App, model: Option<&str>) -> Result<Config> {
        let model = match model.filter(|name| !name.is_empty()) {
            Some(name) => Some(app.choose(Some(name), Task::Asr)?.model),
            None => None,
        };
        let detector = app.choose_or_first(app.settings.vad_model.as_deref(), Task::Vad);
        let detector = detector.ok().map(|chosen| chosen.model);
        Ok(Config {
            model,
            language: None,
            prompt: None,
            format: Format::usual(),
            turns: detector.as_ref().map(|_| TurnRules::default()),
            detector,
        })
    }

    /// Takes over a `session.update`. Nothing changes if any of it is wrong; what has no effect
    /// here is told in the warnings.
    pub fn update(&mut self, app: &App, session: Value) -> Result<Vec<String>> {
        let update: Update = serde_path_to_error::deserialize(session).map_err(|error| {
            let path = format!("session.{}", error.path());
            ApiError::value(&path, format!("`{path}`: {}", error.inner()))
        })?;
        if let Some(kind) = update
            .r#type
            .as_deref()
            .filter(|kind| *kind != "transcription")
        {
            let message = format!("`session.type` is `{}`, wanted transcription", shown(kind));
            return Err(ApiError::unsupported("session.type", message));
        }
        let mut next = self.clone();
        let mut warnings = Vec::new();
        let input = update.audio.input;
        if let Some(format) = input.format {
            next.format = checked(format)?;
        }
        if let Some(wanted) = input.transcription {
            next.transcription(app, wanted)?;
        }
        if let Some(turns) = input.turn_detection {
            next.turns = turns.map(|turns| next.turns(turns)).transpose()?;
        }
        if input.noise_reduction.is_some_and(|value| !value.is_null()) {
            warnings.push("`noise_reduction` has no effect".to_owned());
        }
        if update.include.is_some_and(|list| !list.is_empty()) {
            warnings.push("`include` has no effect: no model here gives logprobs".to_owned());
        }
        *self = next;
        Ok(warnings)
    }

    fn transcription(&mut self, app: &App, wanted: Transcription) -> Result<()> {
        if let Some(name) = wanted.model {
            self.model = Some(app.choose(Some(&name), Task::Asr)?.model);
        }
        if let Some(name) = wanted.language.filter(|name| !name.is_empty()) {
            let code = languages::code(&name).ok_or_else(|| {
                let param = "session.audio.input.transcription.language";
                ApiError::value(param, format!("`{}` is no ISO 639 code", shown(&name)))
            })?;
            self.language = Some(code.to_owned());
        }
        self.prompt = wanted
            .prompt
            .filter(|text| !text.is_empty())
            .or(self.prompt.take());
        Ok(())
    }

    fn turns(&self, turns: Turns) -> Result<TurnRules> {
        let param = "session.audio.input.turn_detection";
        if turns.r#type != "server_vad" {
            let message = format!(
                "turns can be found by server_vad, not `{}`",
                shown(&turns.r#type)
            );
            return Err(ApiError::unsupported(param, message));
        }
        if self.detector.is_none() {
            let message = "server_vad needs a model for voice activity detection, and none is \
                           configured; send null and commit by yourself";
            return Err(ApiError::unsupported(param, message));
        }
        let rules = turns.rules;
        let fits = (0.0..=1.0).contains(&rules.threshold)
            && rules.prefix_padding_ms <= 5000
            && (50..=10_000).contains(&rules.silence_duration_ms);
        if fits {
            return Ok(rules);
        }
        Err(ApiError::value(
            param,
            "wanted threshold 0 to 1, prefix_padding_ms to 5000, silence_duration_ms 50 to 10000",
        ))
    }

    /// The settings as they are told to the client.
    pub fn session(&self, id: &str) -> Value {
        let turns = self.turns.map(|rules| {
            let mut turns = json!(rules);
            turns["type"] = json!("server_vad");
            turns
        });
        json!({
            "id": id,
            "object": "realtime.session",
            "type": "transcription",
            "audio": {"input": {
                "format": self.format,
                "transcription": {
                    "model": self.model.as_ref().map(|model| &model.id),
                    "language": self.language,
                    "prompt": self.prompt,
                },
                "turn_detection": turns,
                "noise_reduction": null,
            }},
            "include": null,
        })
    }
}

fn checked(format: Format) -> Result<Format> {
    let rate = format.rate();
    if RATES.contains(&rate) && rate <= 192_000 {
        return Ok(format);
    }
    let param = "session.audio.input.format.rate";
    Err(ApiError::value(
        param,
        format!("the rate is {rate}, wanted 1000 to 192000"),
    ))
}
