//! Forms with files: fields in any order, files to disk, and nothing is done before the end.

use std::time::Duration;

use audiocpp::engine::hint;
use axum::{
    body::Body,
    extract::{FromRequest, Multipart, Request, multipart::Field},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    app::{App, shown},
    body::{self, Progress},
    error::{ApiError, Result},
    spool::{Spool, Spooled},
};

/// Text fields of one form, at most.
const MOST_FIELDS: usize = 256;

/// A form that was read to its end.
#[derive(Debug, Default)]
pub struct Form {
    texts: Vec<(String, String)>,
    files: Vec<(String, Spooled)>,
}

impl Form {
    /// Reads a `multipart/form-data` body; `files` are the fields that may carry a file.
    pub async fn read(app: &App, request: Request, files: &[&str]) -> Result<Form> {
        let limit = app.settings.max_upload_bytes;
        let found = body::media_type(request.headers());
        if found != "multipart/form-data" {
            let found = if found.is_empty() { "nothing" } else { &found };
            return Err(ApiError::bad(
                "invalid_content_type",
                format!("content-type is {found}, wanted multipart/form-data with a file"),
            ));
        }
        let request = body::check_length(request, limit).await?;
        let progress = Progress::default();
        let counted = progress.clone();
        let request = request.map(|b| Body::from_stream(body::bounded(b, limit, counted)));
        let parts = Multipart::from_request(request, &()).await;
        let mut parts =
            parts.map_err(|error| ApiError::bad("invalid_multipart", error.body_text()))?;
        let mut form = Form::default();
        let refuse = |error| broken(&error, &progress, limit);
        while let Some(field) = parts.next_field().await.map_err(refuse)? {
            form.part(app, field, files, &progress).await?;
        }
        Ok(form)
    }

    async fn part(
        &mut self,
        app: &App,
        mut field: Field<'_>,
        files: &[&str],
        progress: &Progress,
    ) -> Result<()> {
        let Some(name) = field.name().map(plain_name) else {
            return Err(ApiError::bad(
                "invalid_multipart",
                "a part of the form has no name",
            ));
        };
        let limit = app.settings.max_upload_bytes;
        let refuse = |error| broken(&error, progress, limit);
        let is_file = field.file_name().is_some() || sounds(field.content_type());
        if is_file && !files.contains(&name.as_str()) {
            return Err(ApiError::bad(
                "unexpected_file",
                format!(
                    "`{}` carries a file; files go into `{}`",
                    shown(&name),
                    files.join("`, `")
                ),
            )
            .param(shown(&name)));
        }
        if is_file {
            if self.files.iter().any(|(known, _)| *known == name) {
                let message = format!("`{name}` is there twice; one file can be sent at a time");
                return Err(ApiError::bad("invalid_value", message).param(name));
            }
            let mut spool = Spool::create(&app.settings.spool_dir)?;
            while let Some(chunk) = field.chunk().await.map_err(refuse)? {
                progress.used(chunk.len());
                spool.write(&chunk).await?;
            }
            self.files.push((name, spool.finish().await?));
            return Ok(());
        }
        let text = text(app, &name, field, progress).await?;
        if self.texts.len() == MOST_FIELDS {
            let message = format!("more than {MOST_FIELDS} fields");
            return Err(ApiError::bad("invalid_multipart", message));
        }
        self.texts.push((name, text));
        Ok(())
    }

    /// The fields of a JSON object, as a form would have them.
    pub fn of_json(object: serde_json::Map<String, Value>) -> Form {
        let mut form = Form::default();
        for (name, value) in object {
            match value {
                Value::Null => {}
                Value::String(text) => form.texts.push((name, text)),
                Value::Array(items) => {
                    for item in items {
                        let text = item
                            .as_str()
                            .map_or_else(|| item.to_string(), str::to_owned);
                        form.texts.push((name.clone(), text));
                    }
                }
                other => form.texts.push((name, other.to_string())),
            }
        }
        form
    }

    /// Takes the last value of a field; an empty value is none.
    pub fn take(&mut self, name: &str) -> Option<String> {
        self.take_all(name).pop().filter(|text| !text.is_empty())
    }

    /// Takes every value of a field, which may be written `name` or `name[]`.
    pub fn take_all(&mut self, name: &str) -> Vec<String> {
        let (found, rest) = std::mem::take(&mut self.texts)
            .into_iter()
            .partition(|(known, _)| known.strip_suffix("[]").unwrap_or(known) == name);
        self.texts = rest;
        found.into_iter().map(|(_, text)| text).collect()
    }

    /// Takes a field that is a number, a truth value or another JSON value.
    pub fn take_json<T: DeserializeOwned>(
        &mut self,
        name: &str,
        wanted: &str,
    ) -> Result<Option<T>> {
        let Some(text) = self.take(name) else {
            return Ok(None);
        };
        let read = serde_json::from_str(text.trim());
        read.map(Some).map_err(|_| {
            ApiError::value(
                name,
                format!("`{name}` is `{}`, wanted {wanted}", shown(&text)),
            )
        })
    }

    /// Takes the entries `name[key]`.
    pub fn take_object(&mut self, name: &str) -> Vec<(String, String)> {
        let inner = |known: &str| {
            let key = known
                .strip_prefix(name)?
                .strip_prefix('[')?
                .strip_suffix(']')?;
            (!key.is_empty()).then(|| key.to_owned())
        };
        let (found, rest): (Vec<_>, _) = std::mem::take(&mut self.texts)
            .into_iter()
            .partition(|(known, _)| inner(known).is_some());
        self.texts = rest;
        let keyed = |(known, text): (String, String)| Some((inner(&known)?, text));
        found.into_iter().filter_map(keyed).collect()
    }

    /// Whether a field carries a file.
    pub fn has_file(&self, name: &str) -> bool {
        self.files.iter().any(|(known, _)| known == name)
    }

    /// Takes the file of a field.
    pub fn take_file(&mut self, name: &str) -> Result<Spooled> {
        if let Some(at) = self.files.iter().position(|(known, _)| known == name) {
            return Ok(self.files.swap_remove(at).1);
        }
        match self.take(name) {
            Some(text) => Err(ApiError::value(
                name,
                format!(
                    "`{name}` is a text field of {} bytes, wanted a file; did you mean {name}=@{}?",
                    text.len(),
                    shown(text.trim_start_matches('@'))
                ),
            )),
            None => Err(ApiError::missing(name, "a sound file")),
        }
    }

    /// Warnings about the fields that nobody took; `known` are the names that would have meant
    /// something.
    pub fn leftovers(&self, known: &[&str]) -> Vec<String> {
        let warn = |name: &str| {
            let near = hint(name, known.iter().copied());
            let near = if near.contains("did you mean") {
                near
            } else {
                String::new()
            };
            format!("{}{near}", body::unknown_key(name))
        };
        let texts = self.texts.iter().map(|(name, _)| warn(name));
        texts
            .chain(self.files.iter().map(|(name, _)| warn(name)))
            .collect()
    }
}

/// The text of a field.
async fn text(app: &App, name: &str, mut field: Field<'_>, progress: &Progress) -> Result<String> {
    let (name, most) = (shown(name), app.settings.max_json_bytes);
    let mut text = Vec::new();
    loop {
        let chunk = field.chunk().await;
        let chunk =
            chunk.map_err(|error| broken(&error, progress, app.settings.max_upload_bytes))?;
        let Some(chunk) = chunk else { break };
        progress.used(chunk.len());
        text.extend_from_slice(&chunk);
        if text.len() > most {
            let message = format!("`{name}` is longer than {most} bytes");
            return Err(ApiError::too_large(&name, message));
        }
    }
    String::from_utf8(text).map_err(|_| ApiError::value(&name, format!("`{name}` is not UTF-8")))
}

/// A name as it is compared: `include[]` stays, blanks around it do not.
fn plain_name(name: &str) -> String {
    name.trim().to_owned()
}

/// Whether a part without a file name says that it is a file all the same.
fn sounds(content_type: Option<&str>) -> bool {
    content_type.is_some_and(|kind| {
        let kind = kind.trim().to_ascii_lowercase();
        kind.starts_with("audio/")
            || kind.starts_with("video/")
            || kind.starts_with("application/octet-stream")
    })
}

fn broken(
    error: &axum::extract::multipart::MultipartError,
    progress: &Progress,
    limit: u64,
) -> ApiError {
    if progress.is_over() {
        return body::too_long(limit);
    }
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = cause {
        if let Some(io) = inner.downcast_ref::<std::io::Error>()
            && io.kind() == std::io::ErrorKind::TimedOut
        {
            return body::broken(io, progress, limit);
        }
        cause = inner.source();
    }
    ApiError::bad(
        "invalid_multipart",
        format!("the form cannot be read: {}", error.body_text()),
    )
}

/// A wait that a form or a body allows, in milliseconds; 0 is any length.
pub fn wait(milliseconds: Option<u64>) -> Option<Duration> {
    milliseconds.filter(|ms| *ms > 0).map(Duration::from_millis)
}
