//! `POST /v1/models/load` and `/v1/models/unload`.

use axum::{
    Json,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use super::{
    app::{App, Shared, with_warnings},
    body,
    error::{ApiError, Result},
};
use crate::job::ModelStatus;

/// Names a model.
#[derive(Deserialize, ToSchema)]
pub struct ModelName {
    /// The id of the model.
    model: Option<String>,
}

async fn named(app: &App, request: Request) -> Result<(ModelStatus, Vec<String>)> {
    let read = body::json::<ModelName>(request, app.settings.max_json_bytes).await?;
    let name = read.value.model;
    let name = name.ok_or_else(|| ApiError::missing("model", "the id of a configured model"))?;
    Ok((app.model(&name)?, read.warnings))
}

fn answer(app: &App, id: &str, warnings: &[String]) -> Result<Response> {
    let model = app.model(id)?;
    let body = json!({
        "id": model.id,
        "state": model.state,
        "memory_bytes": model.memory_bytes,
        "note": model.note,
    });
    Ok(with_warnings(Json(body).into_response(), warnings))
}

/// Loads a model and waits for it.
#[utoipa::path(post, path = "/v1/models/load", tag = "Operation", request_body = ModelName,
    responses((status = 200, description = "Its state"),
        (status = "4XX", description = "There is no such model", body = super::describe::ErrorBody)))]
pub async fn load(State(app): State<Shared>, request: Request) -> Result<Response> {
    let (model, warnings) = named(&app, request).await?;
    app.runner.load(&model.id).await?;
    answer(&app, &model.id, &warnings)
}

/// Takes a model out of memory once its jobs are done.
#[utoipa::path(post, path = "/v1/models/unload", tag = "Operation", request_body = ModelName,
    responses((status = 200, description = "Its state"),
        (status = "4XX", description = "There is no such model", body = super::describe::ErrorBody)))]
pub async fn unload(State(app): State<Shared>, request: Request) -> Result<Response> {
    let (model, warnings) = named(&app, request).await?;
    app.runner.unload(&model.id).await?;
    answer(&app, &model.id, &warnings)
}
