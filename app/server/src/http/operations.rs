//! What operators and their tools ask: `/health`, `/ready`, `/metrics`, `/v1/status`.

use std::time::SystemTime;

use axum::{
    Json,
    extract::State,
    http::{HeaderName, StatusCode, header},
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{app::Shared, meter};
use crate::job::{ModelState, ModelStatus};

/// Whether the server is alive.
#[utoipa::path(get, path = "/health", tag = "Operation",
    responses((status = 200, description = "It is")))]
pub async fn health(State(app): State<Shared>) -> Json<Value> {
    Json(json!({
        "status": "ok",
        "version": env!("CARGO_PKG_VERSION"),
        "device": app.settings.device,
        "models": app.runner.models().len(),
    }))
}

/// Whether requests are served now: no model is on its way into memory, and not all have failed.
#[utoipa::path(get, path = "/ready", tag = "Operation",
    responses((status = 200, description = "They are"), (status = 503, description = "Not yet")))]
pub async fn ready(State(app): State<Shared>) -> (StatusCode, Json<Value>) {
    let models = app.runner.models();
    let is = |state: ModelState| move |model: &ModelStatus| model.state == state;
    let loading = models.iter().any(is(ModelState::Loading));
    let hopeless = !models.is_empty() && models.iter().all(is(ModelState::Failed));
    let (status, word) = match loading || hopeless {
        true => (StatusCode::SERVICE_UNAVAILABLE, "not ready"),
        false => (StatusCode::OK, "ready"),
    };
    let states: serde_json::Map<String, Value> = models
        .iter()
        .map(|model| (model.id.clone(), json!(model.state)))
        .collect();
    (status, Json(json!({"status": word, "models": states})))
}

/// Measurements for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "Operation",
    responses((status = 200, description = "Text exposition format", body = String,
        content_type = "text/plain")))]
pub async fn metrics(State(app): State<Shared>) -> ([(HeaderName, &'static str); 1], String) {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let text = app.meter.render(&app.runner.models());
    ([(header::CONTENT_TYPE, kind)], text)
}

/// The state of the server.
#[derive(Serialize, ToSchema)]
pub struct Status {
    version: &'static str,
    /// The configured device.
    device: String,
    uptime_seconds: u64,
    /// Resident memory of the server itself.
    server_memory_bytes: u64,
    /// Resident memory of all workers.
    model_memory_bytes: u64,
    /// Jobs that wait.
    queued: usize,
    /// Jobs that run.
    running: usize,
    limits: Limits,
    #[schema(value_type = Vec<Object>)]
    models: Vec<ModelStatus>,
}

/// What a request may bring.
#[derive(Serialize, ToSchema)]
struct Limits {
    upload_bytes: u64,
    audio_seconds: f64,
    text_characters: usize,
}

/// Models, device, memory, queue and version.
#[utoipa::path(get, path = "/v1/status", tag = "Operation",
    responses((status = 200, description = "The state", body = Status)))]
pub async fn status(State(app): State<Shared>) -> Json<Status> {
    let models = app.runner.models();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(app.started, |time| time.as_secs());
    Json(Status {
        version: env!("CARGO_PKG_VERSION"),
        device: app.settings.device.clone(),
        uptime_seconds: now.saturating_sub(app.started),
        server_memory_bytes: meter::resident_bytes().unwrap_or(0),
        model_memory_bytes: models.iter().map(|model| model.memory_bytes).sum(),
        queued: models.iter().map(|model| model.queued).sum(),
        running: models.iter().map(|model| model.running).sum(),
        limits: Limits {
            upload_bytes: app.settings.max_upload_bytes,
            audio_seconds: app.settings.max_audio_seconds,
            text_characters: app.settings.max_text_chars,
        },
        models,
    })
}
