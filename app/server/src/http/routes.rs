//! The routes: one table that the router, the hints, the labels of measurements and the
//! description of the API agree on.

use axum::{
    Router,
    extract::DefaultBodyLimit,
    middleware,
    routing::{get, post},
};
use tower_http::catch_panic::CatchPanicLayer;

use super::{
    app::Shared, cors, describe, layers, lifecycle, models, operations, realtime, separations,
    speech, tasks, transcriptions, voice_activity, voices,
};

/// Routes of OpenAI's kind; all are there without `/v1` too.
pub const API: [&str; 14] = [
    "/audio/speech",
    "/audio/transcriptions",
    "/audio/translations",
    "/audio/voices",
    "/audio/voices/{*id}",
    "/audio/separations",
    "/audio/vad",
    "/models",
    "/models/load",
    "/models/unload",
    "/models/{*id}",
    "/realtime",
    "/status",
    "/tasks/run",
];

/// Routes for people and their tools.
pub const OWN: [&str; 6] = [
    "/",
    "/docs",
    "/health",
    "/metrics",
    "/openapi.json",
    "/ready",
];

/// Everything, as clients should write it.
pub fn paths() -> impl Iterator<Item = &'static str> + Clone {
    PREFIXED.into_iter().chain(OWN)
}

const PREFIXED: [&str; 14] = [
    "/v1/audio/speech",
    "/v1/audio/transcriptions",
    "/v1/audio/translations",
    "/v1/audio/voices",
    "/v1/audio/voices/{*id}",
    "/v1/audio/separations",
    "/v1/audio/vad",
    "/v1/models",
    "/v1/models/load",
    "/v1/models/unload",
    "/v1/models/{*id}",
    "/v1/realtime",
    "/v1/status",
    "/v1/tasks/run",
];

/// The label of measurements for a matched route.
pub fn label(matched: &str) -> &'static str {
    let bare = matched.strip_prefix("/v1").unwrap_or(matched);
    let at = API.iter().position(|path| *path == bare);
    at.map(|at| PREFIXED[at])
        .or_else(|| OWN.into_iter().find(|path| *path == matched))
        .or_else(|| matched.starts_with("/web/").then_some("/"))
        .unwrap_or("none")
}

/// Whether a path is answered without a key: it says nothing about anybody.
pub fn is_open(path: &str) -> bool {
    path.starts_with("/web/")
        || matches!(path, "/" | "/docs" | "/openapi.json" | "/health" | "/ready")
}

fn api() -> Router<Shared> {
    Router::new()
        .route("/audio/speech", post(speech::speak))
        .route("/audio/transcriptions", post(transcriptions::transcribe))
        .route("/audio/translations", post(transcriptions::translate))
        .route("/audio/voices", get(voices::list).post(voices::create))
        .route(
            "/audio/voices/{*id}",
            get(voices::one).delete(voices::remove),
        )
        .route("/audio/separations", post(separations::separate))
        .route("/audio/vad", post(voice_activity::detect))
        .route("/models", get(models::list))
        .route("/models/load", post(lifecycle::load))
        .route("/models/unload", post(lifecycle::unload))
        .route("/models/{*id}", get(models::one))
        .route("/realtime", get(realtime::open))
        .route("/status", get(operations::status))
        .route("/tasks/run", post(tasks::run))
}

/// Every route with everything that a request goes through.
pub fn router(app: Shared) -> Router {
    let own = Router::new()
        .merge(crate::web::router())
        .route("/docs", get(describe::docs))
        .route("/health", get(operations::health))
        .route("/metrics", get(operations::metrics))
        .route("/openapi.json", get(describe::openapi))
        .route("/ready", get(operations::ready));
    let mut router = own
        .merge(api())
        .nest("/v1", api())
        .fallback(layers::unknown_route)
        .method_not_allowed_fallback(layers::wrong_method)
        // Bodies have their own limits, which say so in JSON.
        .layer(DefaultBodyLimit::disable())
        .layer(CatchPanicLayer::custom(layers::panicked))
        .layer(middleware::from_fn_with_state(app.clone(), layers::guard));
    if let Some(cors) = cors(&app.settings.cors_origins) {
        router = router.layer(cors);
    }
    router
        .layer(middleware::from_fn_with_state(app.clone(), layers::frame))
        .with_state(app)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_tables_and_the_labels_agree() {
        for (bare, prefixed) in API.into_iter().zip(PREFIXED) {
            assert_eq!(format!("/v1{bare}"), prefixed);
            assert_eq!(label(bare), prefixed);
            assert_eq!(label(prefixed), prefixed);
        }
        assert_eq!(label("/health"), "/health");
        assert_eq!(label("/anything"), "none");
    }
}
