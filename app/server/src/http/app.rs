//! What every route shares: the models, the settings, the measurements.

use std::{sync::Arc, time::SystemTime};

use audiocpp::engine::{Task, hint};
use axum::{
    http::{HeaderName, HeaderValue},
    response::Response,
};

use super::{
    error::{ApiError, Result},
    meter::Meter,
    settings::Settings,
};
use crate::job::{ModelStatus, SharedRunner};

/// Carries one thing that was ignored, replaced or repaired; may be there several times.
pub const WARNING: HeaderName = HeaderName::from_static("x-audiocpp-warning");

/// OpenAI's models, which clients ask for by default, and what they do.
const OPENAI_MODELS: [(&str, Task); 8] = [
    ("whisper-1", Task::Asr),
    ("gpt-4o-transcribe", Task::Asr),
    ("gpt-4o-mini-transcribe", Task::Asr),
    ("gpt-realtime-whisper", Task::Asr),
    ("tts-1", Task::Tts),
    ("tts-1-hd", Task::Tts),
    ("gpt-4o-mini-tts", Task::Tts),
    ("gpt-4o-mini-tts-2025-12-15", Task::Tts),
];

/// State of the HTTP side.
pub struct App {
    /// Runs jobs.
    pub runner: SharedRunner,
    /// What the configuration decides.
    pub settings: Settings,
    /// Measurements.
    pub meter: Meter,
    /// Start of the server in seconds since 1970.
    pub started: u64,
}

/// The state as routes hold it.
pub type Shared = Arc<App>;

/// A model that was found for a request.
pub struct Chosen {
    /// The model.
    pub model: ModelStatus,
    /// What the caller should know about the choice.
    pub warnings: Vec<String>,
}

impl App {
    /// The state for `runner` under `settings`.
    ///
    /// # Errors
    /// Measurements that cannot be set up.
    pub fn new(runner: SharedRunner, settings: Settings) -> std::io::Result<Shared> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Ok(Arc::new(App {
            runner,
            settings,
            meter: Meter::new().map_err(std::io::Error::other)?,
            started: since.map_or(0, |time| time.as_secs()),
        }))
    }

    /// The configured model that `name` means, whatever it does.
    pub fn model(&self, name: &str) -> Result<ModelStatus> {
        let models = self.runner.models();
        let meant = self.settings.aliases.get(name).map_or(name, String::as_str);
        if let Some(model) = models.iter().find(|model| model.id == meant) {
            return Ok(model.clone());
        }
        let near = hint(&shown(name), models.iter().map(|model| model.id.as_str()));
        let message = format!("there is no model `{}`{near}", shown(name));
        Err(ApiError::not_found("model_not_found", message).param("model"))
    }

    /// The model of a request for `task`; OpenAI's own names reach the first that does it.
    pub fn choose(&self, name: Option<&str>, task: Task) -> Result<Chosen> {
        let models = self.runner.models();
        let able: Vec<&ModelStatus> = models.iter().filter(|m| does(m.task, task)).collect();
        let ids = || {
            able.iter()
                .map(|model| model.id.as_str())
                .collect::<Vec<_>>()
        };
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            let known = match able.is_empty() {
                true => format!("no model for {} is configured", task.phrase()),
                false => format!("one of {}", ids().join(", ")),
            };
            return Err(ApiError::missing("model", &known));
        };
        match self.model(name) {
            Ok(model) if does(model.task, task) => Ok(Chosen {
                model,
                warnings: Vec::new(),
            }),
            Ok(model) => Err(ApiError::unsupported(
                "model",
                format!(
                    "`{}` does {}, not {}; models that do: {}",
                    model.id,
                    model.task.phrase(),
                    task.phrase(),
                    if able.is_empty() {
                        "none".to_owned()
                    } else {
                        ids().join(", ")
                    },
                ),
            )),
            Err(unknown) => {
                let stands_in = OPENAI_MODELS.contains(&(name, task));
                let first = able.first().filter(|_| stands_in).ok_or(unknown)?;
                Ok(Chosen {
                    model: (*first).clone(),
                    warnings: vec![format!("`{}` stands in for the model `{name}`", first.id)],
                })
            }
        }
    }

    /// As [`App::choose`]; a request without a name gets the first model that does `task`.
    pub fn choose_or_first(&self, name: Option<&str>, task: Task) -> Result<Chosen> {
        if name.is_some_and(|name| !name.is_empty()) {
            return self.choose(name, task);
        }
        let first = self
            .runner
            .models()
            .into_iter()
            .find(|m| does(m.task, task));
        let model = first.ok_or_else(|| {
            ApiError::unsupported(
                "model",
                format!("no model for {} is configured", task.phrase()),
            )
        })?;
        Ok(Chosen {
            model,
            warnings: Vec::new(),
        })
    }
}

/// Whether a model configured for `own` can be asked for `task`: voices that are cloned or designed
/// speak too.
fn does(own: Task, task: Task) -> bool {
    own == task || task == Task::Tts && matches!(own, Task::Clon | Task::Vdes)
}

/// A name from outside, fit for a message.
pub fn shown(name: &str) -> String {
    let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut text: String = name.chars().take(80).map(clean).collect();
    if name.chars().nth(80).is_some() {
        text.push('…');
    }
    text
}

/// Adds one header for each warning.
pub fn with_warnings(mut response: Response, warnings: &[String]) -> Response {
    // More would only fill the head of the answer, which clients limit.
    for warning in warnings.iter().take(8) {
        let plain = |c: char| {
            if c.is_ascii() && !c.is_ascii_control() {
                c
            } else {
                '?'
            }
        };
        let text: String = warning.chars().take(300).map(plain).collect();
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().append(WARNING, value);
        }
    }
    response
}
