//! `GET /v1/models` and `/v1/models/{id}`.

use axum::{
    Json,
    extract::{Path, State},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    app::{App, Shared},
    error::Result,
};
use crate::job::{ModelState, ModelStatus};

/// A model as OpenAI's clients know it, and what else there is to know.
#[derive(Serialize, ToSchema)]
pub struct ModelObject {
    id: String,
    /// Always `model`.
    object: &'static str,
    /// Start of the server, in seconds since 1970.
    created: u64,
    owned_by: &'static str,
    /// The family that runs it.
    family: String,
    /// `asr`, `tts`, `vad`, `sep`, ...
    task: &'static str,
    /// `unloaded`, `loading`, `ready`, `busy` or `failed`.
    #[schema(value_type = String)]
    state: ModelState,
    /// Which of the family, once it was loaded.
    variant: Option<String>,
    /// ISO 639 codes, once it was loaded.
    languages: Vec<String>,
    /// Frames a second that it takes or gives, once it was loaded.
    sample_rate: Option<u32>,
    /// What it runs on, once it was loaded.
    device: Option<String>,
    /// The voice of requests that name none.
    default_voice: Option<String>,
    /// Why it runs elsewhere than it was configured to, or why it could not be loaded.
    note: Option<String>,
}

/// A list of models.
#[derive(Serialize, ToSchema)]
pub struct ModelList {
    /// Always `list`.
    object: &'static str,
    data: Vec<ModelObject>,
}

fn object(app: &App, model: ModelStatus) -> ModelObject {
    let info = model.info;
    ModelObject {
        id: model.id,
        object: "model",
        created: app.started,
        owned_by: "audiocpp",
        family: model.family,
        task: model.task.name(),
        state: model.state,
        variant: info.as_ref().map(|info| info.variant.clone()),
        languages: info
            .as_ref()
            .map_or_else(Vec::new, |info| info.languages.clone()),
        sample_rate: info
            .as_ref()
            .map(|info| info.sample_rate)
            .filter(|rate| *rate > 0),
        device: info.map(|info| info.device.device),
        default_voice: model.default_voice,
        note: model.note,
    }
}

/// All configured models.
#[utoipa::path(get, path = "/v1/models", tag = "OpenAI",
    responses((status = 200, description = "The models", body = ModelList)))]
pub async fn list(State(app): State<Shared>) -> Json<ModelList> {
    let models = app.runner.models();
    let data = models
        .into_iter()
        .map(|model| object(&app, model))
        .collect();
    Json(ModelList {
        object: "list",
        data,
    })
}

/// One model; its id may contain slashes.
#[utoipa::path(get, path = "/v1/models/{id}", tag = "OpenAI",
    params(("id" = String, Path, description = "The id, as in the list")),
    responses((status = 200, description = "The model", body = ModelObject),
        (status = 404, description = "There is no such model", body = super::describe::ErrorBody)))]
pub async fn one(State(app): State<Shared>, Path(id): Path<String>) -> Result<Json<ModelObject>> {
    let model = app.model(&id)?;
    Ok(Json(object(&app, model)))
}
