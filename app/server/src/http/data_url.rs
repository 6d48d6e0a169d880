//! Sound inside JSON: a data URL with any media type and parameters, or plain base64.

use audiocpp::audio::{Audio, Reader};
use base64::{Engine, prelude::BASE64_STANDARD};

use super::error::{ApiError, Result};

/// Longest recording whose voice is copied.
const LONGEST_S: f64 = 120.0;

/// The bytes of `text` in `field`.
pub fn decode(field: &str, text: &str) -> Result<Vec<u8>> {
    let payload = match text.strip_prefix("data:") {
        None => text,
        Some(rest) => {
            let (kind, payload) = rest.split_once(',').ok_or_else(|| {
                ApiError::value(field, format!("`{field}` is a data URL without a comma"))
            })?;
            let is_base64 = kind
                .split(';')
                .any(|part| part.trim().eq_ignore_ascii_case("base64"));
            if !is_base64 {
                let message = format!("`{field}` is a data URL that is not base64");
                return Err(ApiError::value(field, message));
            }
            payload
        }
    };
    BASE64_STANDARD
        .decode(payload.trim())
        .map_err(|error| ApiError::value(field, format!("`{field}` is not base64: {error}")))
}

/// The recording in `field`.
pub async fn recording(field: &'static str, text: String) -> Result<Audio> {
    let bytes = decode(field, &text)?;
    read(field, move || Reader::from_bytes(bytes, field)).await
}

/// The whole recording that `open` opens for `field`, if it is of a length whose voice can be
/// copied.
pub async fn read(
    field: &'static str,
    open: impl FnOnce() -> audiocpp::audio::Result<Reader> + Send + 'static,
) -> Result<Audio> {
    let read =
        tokio::task::spawn_blocking(move || Audio::from_source(&mut open()?, Some(LONGEST_S)));
    let read = read
        .await
        .map_err(|_| ApiError::value(field, "the recording broke its decoder"))?;
    let audio =
        read.map_err(|error| ApiError::from(audiocpp::engine::Error::from(error)).param(field))?;
    if audio.samples.is_empty() {
        return Err(ApiError::value(field, format!("`{field}` holds no sound")));
    }
    Ok(audio)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_the_media_type_do_not_matter() {
        for url in [
            "data:audio/webm;codecs=opus;base64,aGk=",
            "data:audio/wav;base64,aGk=",
            "data:;BASE64,aGk=",
            "aGk=",
        ] {
            assert_eq!(decode("voice_ref", url).unwrap(), b"hi", "{url}");
        }
        for url in ["data:audio/wav,hi", "data:audio/wav;base64", "%%%"] {
            let error = decode("voice_ref", url).unwrap_err();
            assert_eq!(error.param.as_deref(), Some("voice_ref"), "{url}");
        }
    }
}
