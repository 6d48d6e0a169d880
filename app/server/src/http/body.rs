//! Bodies: bounded by their header and by count, with a pause limit, and strict about what is in
//! them.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{
    body::{Body, BodyDataStream},
    extract::Request,
    http::{HeaderMap, StatusCode, header},
};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use serde::de::DeserializeOwned;

use super::error::{ApiError, Result};

/// The longest pause of a client that is sending.
const PAUSE: Duration = Duration::from_secs(60);

/// What is read and thrown away of a body that is too long, so that the client gets to see the
/// answer instead of a broken connection.
const DISCARD: u64 = 64 << 20;

/// How long that may take.
const DISCARD_TIME: Duration = Duration::from_secs(5);

/// Bytes that a parser may hold back: the heads of parts, not their content.
const HELD_BACK: u64 = 4 << 20;

/// How far a body has come, and whether it went too far.
#[derive(Clone, Default)]
pub struct Progress {
    arrived: Arc<AtomicU64>,
    used: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
}

impl Progress {
    /// `bytes` more have been dealt with.
    pub fn used(&self, bytes: usize) {
        self.used.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Whether the body was longer than allowed.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// The error of a body over `limit` bytes.
pub fn too_long(limit: u64) -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "too_large",
        format!("the request is longer than the allowed {limit} bytes"),
    )
}

/// Refuses a body whose header says that it is over `limit`.
pub async fn check_length(request: Request, limit: u64) -> Result<Request> {
    let declared = request.headers().get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if declared.is_none_or(|length| length <= limit) {
        return Ok(request);
    }
    discard(&mut request.into_body().into_data_stream()).await;
    Err(too_long(limit))
}

async fn discard(body: &mut BodyDataStream) {
    let all = async {
        let mut seen = 0;
        while let Some(Ok(bytes)) = body.next().await {
            seen += bytes.len() as u64;
            if seen > DISCARD {
                break;
            }
        }
    };
    // Whether it came to an end does not matter: the answer follows either way.
    let _ = tokio::time::timeout(DISCARD_TIME, all).await;
}

/// The chunks of a body up to `limit` bytes; one at a time, so that a parser that reads as much as
/// there is does not fill the memory.
pub fn bounded(
    body: Body,
    limit: u64,
    progress: Progress,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let state = (body.into_data_stream(), progress);
    stream::unfold(state, move |(mut body, progress)| async move {
        tokio::task::yield_now().await;
        let item = match tokio::time::timeout(PAUSE, body.next()).await {
            Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut)),
            Ok(None) => return None,
            Ok(Some(Err(error))) => Err(io::Error::other(error)),
            Ok(Some(Ok(bytes))) => {
                let more = bytes.len() as u64;
                let arrived = progress.arrived.fetch_add(more, Ordering::Relaxed) + more;
                let used = progress.used.load(Ordering::Relaxed);
                if arrived > limit {
                    progress.over.store(true, Ordering::Relaxed);
                    discard(&mut body).await;
                    Err(io::Error::from(io::ErrorKind::FileTooLarge))
                } else if arrived.saturating_sub(used) > HELD_BACK {
                    Err(io::Error::other("the head of a part has no end"))
                } else {
                    Ok(bytes)
                }
            }
        };
        Some((item, (body, progress)))
    })
}

/// A JSON body, and the keys of it that nobody knows.
pub struct Read<T> {
    /// The value.
    pub value: T,
    /// A warning for each unknown key.
    pub warnings: Vec<String>,
}

/// Reads a JSON body of up to `limit` bytes.
pub async fn json<T: DeserializeOwned>(request: Request, limit: usize) -> Result<Read<T>> {
    check_json_type(request.headers())?;
    let request = check_length(request, limit as u64).await?;
    let progress = Progress::default();
    let chunks = bounded(request.into_body(), limit as u64, progress.clone());
    let mut chunks = std::pin::pin!(chunks);
    let mut bytes = BytesMut::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| broken(&error, &progress, limit as u64))?;
        progress.used(chunk.len());
        bytes.extend_from_slice(&chunk);
    }
    parse(&bytes)
}

/// What became of a body that did not come to its end.
pub fn broken(error: &io::Error, progress: &Progress, limit: u64) -> ApiError {
    if progress.is_over() {
        too_long(limit)
    } else if error.kind() == io::ErrorKind::TimedOut {
        ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            "timeout",
            format!("no more of the request came for {} s", PAUSE.as_secs()),
        )
    } else {
        ApiError::bad(
            "incomplete_request",
            format!("the request was cut short: {error}"),
        )
    }
}

/// The media type of a request, without its parameters, in lower case.
pub fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE);
    let text = value.and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = text.split(';').next().unwrap_or("");
    essence.trim().to_ascii_lowercase()
}

fn check_json_type(headers: &HeaderMap) -> Result<()> {
    let found = media_type(headers);
    if found == "application/json" || found.ends_with("+json") {
        return Ok(());
    }
    let found = if found.is_empty() { "nothing" } else { &found };
    Err(ApiError::bad(
        "invalid_content_type",
        format!("content-type is {found}, wanted application/json"),
    ))
}

/// Reads JSON text strictly; the error names the field.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<Read<T>> {
    let mut ignored = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let mut note = |path: serde_ignored::Path<'_>| ignored.push(path.to_string());
    let tracked = serde_ignored::Deserializer::new(&mut reader, &mut note);
    let value = serde_path_to_error::deserialize(tracked).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        if inner.is_data() && path != "." {
            ApiError::bad("invalid_value", format!("`{path}`: {inner}")).param(path)
        } else if inner.is_data() {
            ApiError::bad("invalid_value", inner.to_string())
        } else {
            ApiError::bad("invalid_json", format!("the body is not JSON: {inner}"))
        }
    })?;
    reader
        .end()
        .map_err(|error| ApiError::bad("invalid_json", format!("after the body: {error}")))?;
    let warnings = ignored.iter().map(|key| unknown_key(key)).collect();
    Ok(Read { value, warnings })
}

/// The warning about a key or field that means nothing here.
pub fn unknown_key(key: &str) -> String {
    format!("`{}` is not known and was ignored", super::app::shown(key))
}
