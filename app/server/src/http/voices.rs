//! `/v1/audio/voices`: lists them, makes new ones from recordings, removes those.

use audiocpp::engine::{Task, VoiceInfo};
use axum::{
    Extension, Json,
    extract::{Path, Query, Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::{
    app::{App, Chosen, Shared, shown, with_warnings},
    error::{ApiError, Result},
    form::Form,
    layers::RequestId,
    speech,
    spool::check_sound,
};
use crate::job::ModelStatus;

/// Longest recording that a voice is made from, in seconds.
const LONGEST_S: f64 = 120.0;

/// Which model's voices are meant.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Of {
    /// The id of a model; absent is every model that speaks.
    model: Option<String>,
}

/// A voice.
#[derive(Serialize, ToSchema)]
pub struct VoiceObject {
    /// What requests call it.
    id: String,
    /// Always `audio.voice`.
    object: &'static str,
    /// What people call it.
    name: String,
    /// Start of the server, in seconds since 1970.
    created_at: u64,
    /// `audio_sample` of a voice that was made from a recording just now, else `preset`.
    r#type: &'static str,
    /// The model that has it.
    model: String,
    /// Its language.
    language: String,
    /// `female`, `male`, ..., where the model tells.
    gender: Option<String>,
    /// Whether requests that name no voice get it.
    default: bool,
}

fn object(app: &App, model: &ModelStatus, voice: &VoiceInfo) -> VoiceObject {
    VoiceObject {
        id: voice.id.clone(),
        object: "audio.voice",
        name: voice.name.clone(),
        created_at: app.started,
        r#type: "preset",
        model: model.id.clone(),
        language: voice.language.clone(),
        gender: voice.gender.clone(),
        default: model.default_voice.as_ref() == Some(&voice.id),
    }
}

/// The models that `of` means; naming one loads it, since its voices are not known before.
async fn meant(app: &Shared, of: &Of) -> Result<Vec<ModelStatus>> {
    if let Some(name) = of.model.as_deref() {
        let Chosen { model, .. } = app.choose(Some(name), Task::Tts)?;
        return Ok(vec![speech::known(app, model).await?]);
    }
    Ok(app.runner.models())
}

/// Voices of one model or of all that were loaded.
#[utoipa::path(get, path = "/v1/audio/voices", tag = "OpenAI", params(Of),
    responses((status = 200, description = "`{\"object\": \"list\", \"data\": [...]}`; `voices` has \
        the same list", body = Vec<VoiceObject>)))]
pub async fn list(State(app): State<Shared>, Query(of): Query<Of>) -> Result<Json<Value>> {
    let models = meant(&app, &of).await?;
    let voices: Vec<VoiceObject> = models
        .iter()
        .flat_map(|model| model.voices.iter().map(|voice| object(&app, model, voice)))
        .collect();
    let list = json!({"object": "list", "data": voices, "voices": voices, "has_more": false});
    Ok(Json(list))
}

/// One voice.
#[utoipa::path(get, path = "/v1/audio/voices/{id}", tag = "OpenAI", params(Of,
    ("id" = String, Path, description = "The id, as in the list")),
    responses((status = 200, description = "The voice", body = VoiceObject),
        (status = 404, description = "There is none", body = super::describe::ErrorBody)))]
pub async fn one(
    State(app): State<Shared>,
    Path(id): Path<String>,
    Query(of): Query<Of>,
) -> Result<Json<VoiceObject>> {
    let models = meant(&app, &of).await?;
    let (model, voice) = find(&models, &id)?;
    Ok(Json(object(&app, model, voice)))
}

fn find<'a>(models: &'a [ModelStatus], id: &str) -> Result<(&'a ModelStatus, &'a VoiceInfo)> {
    let all = models
        .iter()
        .flat_map(|model| model.voices.iter().map(move |voice| (model, voice)));
    let found = all.into_iter().find(|(_, voice)| voice.id == id);
    found.ok_or_else(|| {
        let message = format!(
            "there is no voice `{}`; /v1/audio/voices lists all",
            shown(id)
        );
        ApiError::not_found("voice_not_found", message).param("voice")
    })
}

/// The form of a new voice, as it is described to clients.
#[derive(ToSchema)]
#[allow(
    dead_code,
    reason = "read field by field, in any order; this is its description"
)]
pub struct VoiceForm {
    /// What requests will call it: letters, digits, blanks, `-`, `_` and `.`.
    name: String,
    /// Up to two minutes of one person speaking.
    #[schema(value_type = String, format = Binary)]
    audio_sample: Vec<u8>,
    /// The model; absent is the first that speaks.
    model: Option<String>,
    /// The words of the recording, for models that want them.
    reference_text: Option<String>,
}

/// Makes a voice from a recording, for models that copy voices.
#[utoipa::path(post, path = "/v1/audio/voices", tag = "OpenAI",
    request_body(content = VoiceForm, content_type = "multipart/form-data"),
    responses((status = 200, description = "The voice", body = VoiceObject),
        (status = "4XX", description = "The model cannot copy voices, or the form is wrong",
            body = super::describe::ErrorBody)))]
pub async fn create(
    State(app): State<Shared>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Response> {
    const FILES: [&str; 3] = ["audio_sample", "file", "audio"];
    let mut form = Form::read(&app, request, &FILES).await?;
    let name = form.take("name");
    let name =
        name.ok_or_else(|| ApiError::missing("name", "what requests will call the voice"))?;
    check_name(&name)?;
    let words = form.take("reference_text").or_else(|| form.take("text"));
    let field = FILES.into_iter().find(|field| form.has_file(field));
    let recording = form.take_file(field.unwrap_or(FILES[0]))?;
    let Chosen {
        model,
        mut warnings,
    } = app.choose_or_first(form.take("model").as_deref(), Task::Tts)?;
    // OpenAI's consent and type have no meaning on one's own machine.
    let _ = (form.take("consent"), form.take("type"));
    warnings.extend(form.leftovers(&["name", "audio_sample", "model", "reference_text"]));
    check_sound(recording.path(), "audio_sample", LONGEST_S).await?;
    let model = speech::known(&app, model).await?;
    if model.voices.iter().any(|voice| voice.id == name) {
        let message = format!("`{}` has a voice `{name}` already", model.id);
        return Err(ApiError::new(StatusCode::CONFLICT, "voice_exists", message).param("name"));
    }
    app.runner
        .add_voice(&model.id, &name, recording.path(), words)
        .await?;
    tracing::info!(model = model.id, request = id.0, "a voice was made");
    let model = app.model(&model.id)?;
    let (model, voice) = find(std::slice::from_ref(&model), &name)?;
    let mut made = object(&app, model, voice);
    made.r#type = "audio_sample";
    let answer = Json(made).into_response();
    Ok(with_warnings(answer, &warnings))
}

fn check_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_alphanumeric() || " -_.".contains(c);
    let fits = name.chars().count() <= 64
        && name.chars().all(plain)
        && name.trim() == name
        && name.starts_with(char::is_alphanumeric);
    if fits {
        return Ok(());
    }
    Err(ApiError::value(
        "name",
        format!(
            "`name` is `{}`, wanted up to 64 letters, digits, blanks, `-`, `_` and `.`",
            shown(name)
        ),
    ))
}

/// Removes a voice that was made from a recording.
#[utoipa::path(delete, path = "/v1/audio/voices/{id}", tag = "OpenAI", params(Of,
    ("id" = String, Path, description = "The id, as in the list")),
    responses((status = 200, description = "It is gone"),
        (status = 404, description = "There is none", body = super::describe::ErrorBody)))]
pub async fn remove(
    State(app): State<Shared>,
    Path(id): Path<String>,
    Query(of): Query<Of>,
) -> Result<Json<Value>> {
    let models = meant(&app, &of).await?;
    let (model, voice) = find(&models, &id)?;
    app.runner.remove_voice(&model.id, &voice.id).await?;
    Ok(Json(
        json!({"id": id, "object": "audio.voice.deleted", "deleted": true}),
    ))
}
