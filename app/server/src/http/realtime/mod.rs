//! `GET /v1/realtime`: live transcription over a web socket, the subset of OpenAI's protocol that
//! transcription needs.

mod audio;
mod config;
mod events;
mod session;
mod transcriber;
mod turns;

use axum::{
    Extension,
    extract::{Query, State, WebSocketUpgrade},
    response::Response,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    app::Shared,
    error::{ApiError, Result},
    layers::RequestId,
};

/// Most bytes of a message: 15 MiB of sound in base64, and its surroundings.
const MOST_BYTES: usize = 21 << 20;

/// What the address says about the session.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Wanted {
    /// The model; a `session.update` may name one as well.
    model: Option<String>,
    /// `transcription`, which is all there is.
    intent: Option<String>,
}

/// Opens a session of live transcription.
#[utoipa::path(get, path = "/v1/realtime", tag = "OpenAI", params(Wanted),
    responses((status = 101, description = "The session is open"),
        (status = "4XX", description = "The request is wrong", body = super::describe::ErrorBody)))]
pub async fn open(
    State(app): State<Shared>,
    Extension(id): Extension<RequestId>,
    Query(wanted): Query<Wanted>,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response> {
    if wanted
        .intent
        .as_deref()
        .is_some_and(|intent| intent != "transcription")
    {
        let message = "`intent` can only be transcription here";
        return Err(ApiError::unsupported("intent", message));
    }
    let config = config::Config::new(&app, wanted.model.as_deref())?;
    let upgrade = upgrade.map_err(|error| {
        ApiError::bad(
            "not_a_websocket",
            format!("/v1/realtime is a web socket: {error}"),
        )
    })?;
    let upgrade = upgrade
        .protocols(["realtime"])
        .max_message_size(MOST_BYTES)
        .max_frame_size(MOST_BYTES);
    Ok(upgrade.on_upgrade(move |socket| session::run(socket, app, config, id.0)))
}
