//! The events of a session, in both directions.

use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::error::ApiError;

/// What a client says.
#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub enum ClientEvent {
    /// Change the settings.
    #[serde(rename = "session.update")]
    Update {
        /// The settings to change.
        session: Value,
    },
    /// More sound.
    #[serde(rename = "input_audio_buffer.append")]
    Append {
        /// Samples in base64.
        audio: String,
    },
    /// The sound so far is a turn.
    #[serde(rename = "input_audio_buffer.commit")]
    Commit,
    /// Forget the sound so far.
    #[serde(rename = "input_audio_buffer.clear")]
    Clear,
}

impl ClientEvent {
    /// Reads an event; the error names what is wrong with it.
    pub fn read(text: &str) -> Result<ClientEvent, ApiError> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| ApiError::bad("invalid_json", format!("not JSON: {error}")))?;
        let kind = value["type"].as_str().unwrap_or_default().to_owned();
        serde_json::from_value(value).map_err(|error| match kind.is_empty() {
            true => ApiError::missing("type", "the kind of the event"),
            false => ApiError::bad(
                "invalid_event",
                format!("`{}`: {error}", crate::http::app::shown(&kind)),
            )
            .param("type"),
        })
    }
}

/// The id that a client gave its event.
pub fn event_id(text: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    Some(value["event_id"].as_str()?.to_owned())
}

/// An id with a prefix.
pub fn id(prefix: &str) -> String {
    format!("{prefix}_{}", Uuid::new_v4().simple())
}

/// An event of the server: `fields` with its kind and id.
pub fn server(kind: &str, fields: Value) -> Value {
    let mut event = json!({"type": kind, "event_id": id("event")});
    for (key, value) in fields.as_object().into_iter().flatten() {
        event[key] = value.clone();
    }
    event
}

/// The event that tells of an error, caused by the client's event with this id.
pub fn error(error: &ApiError, caused_by: Option<String>) -> Value {
    let mut detail = error.body()["error"].take();
    detail["event_id"] = json!(caused_by);
    server("error", json!({"error": detail}))
}
