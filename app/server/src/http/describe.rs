//! The description of the API for programs and people.

use axum::{
    Json,
    http::{HeaderName, HeaderValue, header},
    response::{Html, IntoResponse, Response},
};
use serde::Serialize;
use utoipa::{OpenApi, ToSchema, openapi};

/// The answer to a request that failed.
#[derive(Serialize, ToSchema)]
pub struct ErrorBody {
    error: ErrorDetail,
}

/// Why a request failed.
#[derive(Serialize, ToSchema)]
struct ErrorDetail {
    /// One line for people.
    message: String,
    /// OpenAI's kind of error.
    r#type: String,
    /// The field that is to be changed.
    param: Option<String>,
    /// One word for programs.
    code: Option<String>,
}

/// A transcript; `verbose_json` has all fields, `json` has `text` and `usage`.
#[derive(Serialize, ToSchema)]
pub struct Transcription {
    text: String,
    /// `transcribe` or `translate`.
    task: Option<String>,
    /// English name of the language.
    language: Option<String>,
    /// Seconds of sound.
    duration: Option<f64>,
    #[schema(value_type = Option<Vec<Object>>)]
    segments: Option<Vec<serde_json::Value>>,
    #[schema(value_type = Option<Vec<Object>>)]
    words: Option<Vec<serde_json::Value>>,
    /// `{"type": "duration", "seconds": ...}`
    #[schema(value_type = Object)]
    usage: serde_json::Value,
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "audiocpp_server",
        description = "Open speech and audio models behind OpenAI's audio API"
    ),
    paths(
        super::speech::speak,
        super::transcriptions::transcribe,
        super::transcriptions::translate,
        super::voices::list,
        super::voices::one,
        super::voices::create,
        super::voices::remove,
        super::models::list,
        super::models::one,
        super::separations::separate,
        super::voice_activity::detect,
        super::realtime::open,
        super::tasks::run,
        super::lifecycle::load,
        super::lifecycle::unload,
        super::operations::status,
        super::operations::health,
        super::operations::ready,
        super::operations::metrics,
    ),
    components(schemas(ErrorBody, Transcription))
)]
struct Api;

/// The description that `/openapi.json` gives.
pub fn description() -> openapi::OpenApi {
    Api::openapi()
}

/// The API for programs.
pub async fn openapi() -> Json<openapi::OpenApi> {
    Json(description())
}

/// Pages load nothing from elsewhere, and are not shown inside of others.
const POLICY: &str = "default-src 'self'; script-src 'self' 'unsafe-inline'; \
    style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; media-src 'self' data: blob:; \
    connect-src 'self' ws: wss: data: blob:; worker-src 'self' blob:; frame-ancestors 'none'";

fn embedded(text: &'static str) -> Response {
    let mut response = Html(text).into_response();
    let headers = response.headers_mut();
    let pairs = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("x-frame-options"), "DENY"),
    ];
    for (name, value) in pairs {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The API for people.
pub async fn docs() -> Response {
    embedded(include_str!("docs.html"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::http::routes;

    #[test]
    fn every_route_is_described_and_nothing_else() {
        let description = description();
        let described: BTreeSet<String> = description.paths.paths.keys().cloned().collect();
        let pages = ["/", "/docs", "/openapi.json"];
        let routed: BTreeSet<String> = routes::paths()
            .filter(|path| !pages.contains(path))
            .map(|path| path.replace("{*id}", "{id}"))
            .collect();
        assert_eq!(described, routed);
    }
}
