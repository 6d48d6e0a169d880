//! What every request goes through: its id, the log, the measurements, keys and origins.

use std::{any::Any, time::Instant};

use audiocpp::engine::nearest;
use axum::{
    body::Body,
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tracing::Instrument;
use uuid::Uuid;

use super::{
    app::Shared,
    error::{ApiError, Result},
    routes,
};

/// Names the request in logs and answers.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// How OpenAI's browser clients carry a key into a web socket.
const KEY_PROTOCOL: &str = "openai-insecure-api-key.";

/// The name of one request.
#[derive(Clone, Debug)]
pub struct RequestId(pub String);

/// The caller's own id if it is a plain word, else a new one.
fn request_id(headers: &HeaderMap) -> String {
    let plain = |text: &&str| {
        let fits = |c: u8| c.is_ascii_alphanumeric() || b"-_.:".contains(&c);
        (1..=128).contains(&text.len()) && text.bytes().all(fits)
    };
    let sent = headers
        .get(REQUEST_ID)
        .and_then(|value| value.to_str().ok());
    sent.filter(plain)
        .map_or_else(|| format!("req_{}", Uuid::new_v4().simple()), str::to_owned)
}

/// Gives the request its id, and logs and measures the answer. Neither text nor keys nor the query
/// are logged.
pub async fn frame(State(app): State<Shared>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = request_id(request.headers());
    let method = method_name(request.method());
    let matched = request.extensions().get::<MatchedPath>();
    let route = routes::label(matched.map_or("", MatchedPath::as_str));
    request.extensions_mut().insert(RequestId(id.clone()));
    let span = tracing::info_span!("request", id = %id);
    let flight = InFlight::new(&app);
    let mut response = next.run(request).instrument(span.clone()).await;
    drop(flight);
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    let (status, took) = (response.status().as_u16(), started.elapsed());
    app.meter.answered(route, method, status, took);
    let ms = took.as_millis() as u64;
    span.in_scope(|| tracing::info!(method, route, status, ms, "answered"));
    response
}

/// Counts a request as long as it is being answered, also if the client leaves.
struct InFlight<'a>(&'a Shared);

impl<'a> InFlight<'a> {
    fn new(app: &'a Shared) -> Self {
        app.meter.in_flight(1.0);
        InFlight(app)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.meter.in_flight(-1.0);
    }
}

fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        _ => "other",
    }
}

/// Lets a request through if it carries a key, where keys are asked for, and comes from a page that
/// may call.
pub async fn guard(State(app): State<Shared>, request: Request, next: Next) -> Response {
    if !routes::is_open(request.uri().path())
        && let Err(error) = check_key(&app, request.headers())
    {
        return error.into_response();
    }
    if let Err(error) = check_origin(&app, &request) {
        return error.into_response();
    }
    next.run(request).await
}

fn check_key(app: &Shared, headers: &HeaderMap) -> Result<()> {
    let keys = &app.settings.api_keys;
    if keys.is_empty() {
        return Ok(());
    }
    let error = |message: &str| {
        let status = axum::http::StatusCode::UNAUTHORIZED;
        Err(ApiError::new(status, "invalid_api_key", message))
    };
    let Some(sent) = sent_key(headers) else {
        return error("this server wants a key: `Authorization: Bearer KEY`");
    };
    // Digests are equally long, so that the time tells nothing about the keys either; all of them
    // are compared.
    let digest = Sha256::digest(sent.as_bytes());
    let known = keys.iter().fold(subtle::Choice::from(0), |known, key| {
        known | Sha256::digest(key.as_bytes()).ct_eq(&digest)
    });
    if bool::from(known) {
        Ok(())
    } else {
        error("the key is not one of this server's")
    }
}

fn sent_key(headers: &HeaderMap) -> Option<&str> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text(header::AUTHORIZATION).and_then(|value| {
        let (scheme, key) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
    });
    bearer
        .or_else(|| text(HeaderName::from_static("x-api-key")))
        .or_else(|| {
            let protocols = text(header::SEC_WEBSOCKET_PROTOCOL)?.split(',');
            protocols
                .map(str::trim)
                .find_map(|protocol| protocol.strip_prefix(KEY_PROTOCOL))
        })
}

/// Pages of other sites must not use a private server behind its owner's back: browsers send forms
/// and open web sockets to any address.
fn check_origin(app: &Shared, request: &Request) -> Result<()> {
    let headers = request.headers();
    let changes = !matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    );
    let upgrades = headers.contains_key(header::UPGRADE);
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(origin) = text("origin").filter(|_| changes || upgrades) else {
        return Ok(());
    };
    let allowed = &app.settings.cors_origins;
    if allowed.iter().any(|known| known == "*" || known == origin) {
        return Ok(());
    }
    let place = origin.split_once("://").map_or(origin, |(_, place)| place);
    let own = [
        text("host"),
        text("x-forwarded-host"),
        request.uri().authority().map(|a| a.as_str()),
    ];
    if own
        .into_iter()
        .flatten()
        .any(|host| host.eq_ignore_ascii_case(place))
    {
        return Ok(());
    }
    Err(ApiError::new(
        axum::http::StatusCode::FORBIDDEN,
        "origin_not_allowed",
        "pages of this origin may not call the server; add it to `cors_origins`",
    ))
}

/// 404 in JSON, with the path that was probably meant.
pub async fn unknown_route(uri: Uri) -> ApiError {
    let path = uri.path().trim_end_matches('/');
    let near = nearest(path, routes::paths()).or_else(|| {
        // A missing or wrong prefix is further away than a slip.
        let tail = path.rsplit("/v1").next().unwrap_or(path);
        nearest(
            tail,
            routes::paths().map(|known| known.trim_start_matches("/v1")),
        )
    });
    let near = near.map_or(String::new(), |near| {
        let prefix = if routes::paths().any(|known| known == near) {
            ""
        } else {
            "/v1"
        };
        format!(", did you mean `{prefix}{near}`?")
    });
    let shown = super::app::shown(uri.path());
    ApiError::not_found(
        "unknown_url",
        format!("there is nothing at `{shown}`{near}"),
    )
}

/// 405 in JSON.
pub async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    let shown = super::app::shown(uri.path());
    ApiError::new(
        axum::http::StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        format!("`{shown}` does not take {method}; the header `allow` says what it takes"),
    )
}

/// 500 in JSON for a route that panicked; the connection and the server go on.
pub fn panicked(panic: Box<dyn Any + Send>) -> Response<Body> {
    let what = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("unknown");
    tracing::error!(what, "a route panicked");
    ApiError::internal("a bug in the server stopped this request; its log has the details")
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), value.parse().unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn a_sane_id_is_kept_and_others_are_replaced() {
        assert_eq!(request_id(&headers(&[("x-request-id", "a-1")])), "a-1");
        for odd in ["", "two words", "<script>", &"x".repeat(129)] {
            let id = request_id(&headers(&[("x-request-id", odd)]));
            assert!(id.starts_with("req_") && id.len() == 36, "{odd}: {id}");
        }
    }

    #[test]
    fn keys_are_found_in_every_place_that_clients_use() {
        let find = |name, value| sent_key(&headers(&[(name, value)])).map(str::to_owned);
        assert_eq!(find("authorization", "bearer k1"), Some("k1".into()));
        assert_eq!(find("x-api-key", "k2"), Some("k2".into()));
        let protocols = "realtime, openai-insecure-api-key.k3";
        assert_eq!(find("sec-websocket-protocol", protocols), Some("k3".into()));
        assert_eq!(find("authorization", "Basic k4"), None);
    }
}
