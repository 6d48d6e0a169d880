//! The web page: a few files in the program, served as they are.

use axum::{
    Router,
    extract::Path,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};

/// What the page may do: run its own files, talk to its own server, play what it made itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; media-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

/// A file of the page.
struct Asset {
    name: &'static str,
    mime: &'static str,
    text: &'static str,
}

/// The entries of [`ASSETS`] from names and types.
macro_rules! assets {
    ($($name:literal: $mime:ident),* $(,)?) => {
        [$(Asset {
            name: $name,
            mime: $mime,
            text: include_str!(concat!("assets/", $name)),
        }),*]
    };
}

static ASSETS: [Asset; 22] = assets![
    "index.html": HTML,
    "style.css": STYLE,
    "icon.svg": IMAGE,
    "theme.js": SCRIPT,
    "app.js": SCRIPT,
    "api.js": SCRIPT,
    "dom.js": SCRIPT,
    "feedback.js": SCRIPT,
    "wave.js": SCRIPT,
    "player.js": SCRIPT,
    "pcm.js": SCRIPT,
    "recorder.js": SCRIPT,
    "tap.js": SCRIPT,
    "source.js": SCRIPT,
    "subtitles.js": SCRIPT,
    "transcribe.js": SCRIPT,
    "speak.js": SCRIPT,
    "zip.js": SCRIPT,
    "mixer.js": SCRIPT,
    "separate.js": SCRIPT,
    "activity.js": SCRIPT,
    "status.js": SCRIPT,
];

/// The page at `/` and its files below `/web/`. They hold no secrets and need no key: the page
/// sends the user's key with the requests that it makes.
pub fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let page = |headers: HeaderMap| async move { answer("index.html", &headers) };
    let file =
        |Path(name): Path<String>, headers: HeaderMap| async move { answer(&name, &headers) };
    Router::new()
        .route("/", get(page))
        .route("/web/{*file}", get(file))
}

fn answer(name: &str, headers: &HeaderMap) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let tag = tag(asset.text);
    let known = headers.get(header::IF_NONE_MATCH);
    let known = known.and_then(|value| value.to_str().ok());
    let fixed = [
        (header::CONTENT_TYPE, asset.mime),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        // Kept, but asked about each time, so that a new server never meets an old script.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    let mut response = match known.is_some_and(|known| known.contains(&tag)) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => asset.text.into_response(),
    };
    let head = response.headers_mut();
    for (name, value) in fixed {
        head.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        head.insert(header::ETAG, tag);
    }
    response
}

/// A name for exactly this text (FNV-1a, 64 bits).
fn tag(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("\"{hash:016x}\"")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn get(name: &str, known: Option<&str>) -> Response {
        let mut headers = HeaderMap::new();
        if let Some(known) = known {
            headers.insert(header::IF_NONE_MATCH, known.parse().unwrap());
        }
        answer(name, &headers)
    }

    #[test]
    fn every_file_that_a_file_names_is_there_and_every_file_is_named() {
        let mut named = BTreeSet::from(["index.html"]);
        for asset in &ASSETS {
            let quoted = asset.text.split('"').skip(1).step_by(2);
            let files = quoted.filter_map(|text| {
                let inside = text
                    .strip_prefix("./")
                    .or_else(|| text.strip_prefix("web/"));
                inside.filter(|name| name.contains('.'))
            });
            for name in files {
                assert!(
                    ASSETS.iter().any(|other| other.name == name),
                    "{} names {name}",
                    asset.name
                );
                named.insert(name);
            }
        }
        assert_eq!(named.len(), ASSETS.len(), "{named:?}");
    }

    #[test]
    fn nothing_is_fetched_from_elsewhere_and_nothing_runs_inline() {
        for asset in &ASSETS {
            let text = asset.text.replace("http://www.w3.org/2000/svg", "");
            assert!(
                !text.contains("http:") && !text.contains("https:"),
                "{}",
                asset.name
            );
            assert!(!text.contains("innerHTML"), "{}", asset.name);
        }
        let page = ASSETS[0].text;
        assert_eq!(
            page.matches("<script").count(),
            page.matches("<script src=").count()
                + page.matches("<script type=\"module\" src=").count()
        );
        assert!(!page.contains(" style=") && !page.contains(" onclick="));
    }

    #[test]
    fn files_carry_their_policy_and_are_sent_once() {
        let first = get("app.js", None);
        assert_eq!(first.status(), StatusCode::OK);
        let policy = first.headers()[header::CONTENT_SECURITY_POLICY]
            .to_str()
            .unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"));
        let tag = first.headers()[header::ETAG].to_str().unwrap();
        assert_eq!(get("app.js", Some(tag)).status(), StatusCode::NOT_MODIFIED);
        assert_eq!(get("style.css", Some(tag)).status(), StatusCode::OK);
        for name in ["", "../mod.rs", "app.js/", "none.js"] {
            assert_eq!(get(name, None).status(), StatusCode::NOT_FOUND, "{name}");
        }
    }
}
