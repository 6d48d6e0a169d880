//! The HTTP side: OpenAI's audio API over a [`Runner`](crate::job::Runner), and what operators need.
//!
//! A request becomes a [`Job`](crate::job::Job); what is heard of the job becomes the answer. The
//! answer owns the run, so that a client that leaves cancels its job.

mod app;
mod body;
mod data_url;
mod describe;
mod encode;
mod error;
mod form;
mod layers;
mod lifecycle;
mod local;
mod meter;
mod models;
mod operations;
mod realtime;
mod routes;
mod separations;
mod settings;
mod speech;
mod speech_answer;
mod spool;
mod sse;
mod stems;
mod tasks;
mod transcript_answer;
mod transcriptions;
mod voice_activity;
mod voices;
mod work;

use std::{future::Future, io, time::Duration};

use axum::{Router, http::HeaderValue};
use axum_server::{Handle, tls_rustls::RustlsConfig};
use tower_http::cors::{AllowHeaders, AllowOrigin, Any, CorsLayer};

pub use settings::{Settings, Tls};

use crate::job::SharedRunner;

/// How long a client may take to send the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(30);

/// How often measurements are folded together.
const FOLD_TIME: Duration = Duration::from_secs(5);

/// The routes over `runner`, for a server of the caller's own.
///
/// # Errors
/// Measurements that cannot be set up.
pub fn router(runner: SharedRunner, settings: Settings) -> io::Result<Router> {
    Ok(routes::router(app::App::new(runner, settings)?))
}

/// Serves until `shutdown` comes, then lets running requests end; the caller bounds that wait.
///
/// # Errors
/// A listener that cannot be used, or a certificate or key that cannot be read.
pub async fn serve(
    listener: tokio::net::TcpListener,
    runner: SharedRunner,
    settings: Settings,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let app = app::App::new(runner, settings)?;
    app.meter.take_all();
    crate::pool::metrics::describe();
    let handle = Handle::new();
    let stopping = handle.clone();
    let measured = app.clone();
    let background = tokio::spawn(async move {
        let mut shutdown = std::pin::pin!(shutdown);
        let mut tick = tokio::time::interval(FOLD_TIME);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                _ = tick.tick() => measured.meter.fold(),
            }
        }
        stopping.graceful_shutdown(None);
    });
    let listener = listener.into_std()?;
    let tls = app.settings.tls.clone();
    let service = routes::router(app).into_make_service();
    let served = match tls {
        None => {
            let mut server = axum_server::from_tcp(listener)?.handle(handle);
            patient(server.http_builder());
            server.serve(service).await
        }
        Some(tls) => {
            let config = RustlsConfig::from_pem_file(&tls.certificate, &tls.key).await?;
            let mut server = axum_server::from_tcp_rustls(listener, config)?.handle(handle);
            patient(server.http_builder());
            server.serve(service).await
        }
    };
    background.abort();
    served
}

/// Who sends the head of a request too slowly is let go.
fn patient<E>(builder: &mut hyper_util::server::conn::auto::Builder<E>) {
    builder
        .http1()
        .timer(hyper_util::rt::TokioTimer::new())
        .header_read_timeout(HEAD_TIME);
}

/// Answers to browsers of other origins, if any may call.
fn cors(origins: &[String]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let allowed = match origins.iter().any(|origin| origin == "*") {
        true => AllowOrigin::any(),
        false => {
            let known = origins
                .iter()
                .filter_map(|origin| HeaderValue::from_str(origin).ok());
            AllowOrigin::list(known)
        }
    };
    // `*` would not cover `Authorization`.
    let headers = AllowHeaders::mirror_request();
    let layer = CorsLayer::new().allow_origin(allowed);
    Some(
        layer
            .allow_methods(Any)
            .allow_headers(headers)
            .expose_headers(Any),
    )
}
