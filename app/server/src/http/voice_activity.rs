//! `POST /v1/audio/vad`: where there is speech.

use audiocpp::engine::{ActivityFormat, DetectSpeechRequest, SpeechRules, Task, VoiceActivity};
use axum::{
    Extension,
    extract::{Request, State},
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use utoipa::ToSchema;

use super::{
    app::{Shared, shown, with_warnings},
    error::{ApiError, Result},
    form::{self, Form},
    layers::RequestId,
    spool::check_sound,
    work::{Work, other_outcome},
};
use crate::job::{Job, Outcome};

const FIELDS: [&str; 11] = [
    "file",
    "model",
    "response_format",
    "threshold",
    "neg_threshold",
    "min_speech",
    "min_silence",
    "padding",
    "max_speech",
    "probabilities",
    "busy_timeout_ms",
];

/// The form of a detection, as it is described to clients. Times are in seconds.
#[derive(ToSchema)]
#[allow(
    dead_code,
    reason = "read field by field, in any order; this is its description"
)]
pub struct VadForm {
    /// The recording.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
    /// Model; absent is the first that detects speech.
    model: Option<String>,
    /// `json` (default), `text` (labels as Audacity reads them) or `srt`.
    response_format: Option<String>,
    /// Speech begins at this probability; 0.5.
    threshold: Option<f64>,
    /// Speech ends below this; 0.15 below `threshold`.
    neg_threshold: Option<f64>,
    /// Shorter speech is dropped; 0.25.
    min_speech: Option<f64>,
    /// Shorter silence does not end speech; 0.1.
    min_silence: Option<f64>,
    /// Added at both ends of speech; 0.03.
    padding: Option<f64>,
    /// Longer speech is cut.
    max_speech: Option<f64>,
    /// Give back the probability of every frame.
    probabilities: Option<bool>,
    /// The longest wait for a busy model.
    busy_timeout_ms: Option<u64>,
}

/// Finds where there is speech.
#[utoipa::path(post, path = "/v1/audio/vad", tag = "Extension",
    request_body(content = VadForm, content_type = "multipart/form-data"),
    responses((status = 200, description = "`{duration, speech, segments: [{start, end}], frame, \
        probabilities?}`", content_type = "application/json"),
        (status = "4XX", description = "The request is wrong", body = super::describe::ErrorBody)))]
pub async fn detect(
    State(app): State<Shared>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Response> {
    let mut form = Form::read(&app, request, &["file"]).await?;
    let file = form.take_file("file")?;
    let chosen = app.choose_or_first(form.take("model").as_deref(), Task::Vad)?;
    let format = format(form.take("response_format").as_deref())?;
    let request = DetectSpeechRequest {
        rules: rules(&mut form)?,
        probabilities: form
            .take_json("probabilities", "true or false")?
            .unwrap_or(false),
        ..DetectSpeechRequest::default()
    };
    let wait = form::wait(form.take_json("busy_timeout_ms", "milliseconds")?);
    let mut warnings = chosen.warnings;
    warnings.extend(form.leftovers(&FIELDS));
    check_sound(file.path(), "file", app.settings.max_audio_seconds).await?;
    let job = Job::DetectSpeech {
        request,
        audio: file.path(),
    };
    let mut work = Work::start(&app, &chosen.model, job, &id.0, wait).await?;
    let activity = found(work.outcome().await?)?;
    warnings.append(&mut work.warnings);
    let mut response = format.render(&activity, None).into_response();
    let mime = match format {
        ActivityFormat::Json => "application/json",
        ActivityFormat::Text | ActivityFormat::Srt => "text/plain; charset=utf-8",
    };
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(mime));
    Ok(with_warnings(response, &warnings))
}

/// The speech that an outcome tells of.
pub fn found(outcome: Outcome) -> Result<VoiceActivity> {
    match outcome {
        Outcome::Activity(activity) => Ok(activity),
        other => Err(other_outcome(&other)),
    }
}

fn format(name: Option<&str>) -> Result<ActivityFormat> {
    let name = name.unwrap_or("json");
    name.parse().map_err(|_| {
        let ours = ActivityFormat::ALL.map(ActivityFormat::name).join(", ");
        let message = format!(
            "`response_format` is `{}`, wanted one of {ours}",
            shown(name)
        );
        ApiError::unsupported("response_format", message)
    })
}

fn rules(form: &mut Form) -> Result<SpeechRules> {
    let mut number = |name: &str| form.take_json::<f64>(name, "a number");
    let usual = SpeechRules::default();
    let rules = SpeechRules {
        threshold: number("threshold")?.unwrap_or(usual.threshold),
        neg_threshold: number("neg_threshold")?,
        min_speech: number("min_speech")?.unwrap_or(usual.min_speech),
        min_silence: number("min_silence")?.unwrap_or(usual.min_silence),
        padding: number("padding")?.unwrap_or(usual.padding),
        max_speech: number("max_speech")?,
        min_silence_at_cut: usual.min_silence_at_cut,
    };
    rules.check().map_err(|error| {
        let field = FIELDS
            .into_iter()
            .find(|name| error.message.starts_with(name));
        ApiError::value(field.unwrap_or("threshold"), error.message)
    })?;
    Ok(rules)
}
