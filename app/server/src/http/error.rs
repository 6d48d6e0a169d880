//! Errors in OpenAI's shape: `{"error": {"message", "type", "param", "code"}}`.

use std::time::Duration;

use audiocpp::engine::{Error, ErrorClass};
use axum::{
    Json,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use crate::job::Refusal;

/// Tells OpenAI's clients whether to send the request again.
pub const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// The result of a route.
pub type Result<T, E = ApiError> = std::result::Result<T, E>;

/// Why a request was not answered as it was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError {
    /// Status of the answer.
    pub status: StatusCode,
    /// One word for programs (`model_not_found`).
    pub code: &'static str,
    /// The field that is to be changed.
    pub param: Option<String>,
    /// One line for people: what was found, what was wanted, the fix.
    pub message: String,
    /// Whether the same request can succeed later, and when.
    pub retry: Option<Duration>,
}

impl ApiError {
    /// An error that sending the request again does not help.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        ApiError {
            status,
            code,
            param: None,
            message: message.into(),
            retry: None,
        }
    }

    /// 400: the request is wrong.
    pub fn bad(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// 400: the value of `param` is wrong.
    pub fn value(param: &str, message: impl Into<String>) -> Self {
        Self::bad("invalid_value", message).param(param)
    }

    /// 400: `param` has to be there.
    pub fn missing(param: &str, wanted: &str) -> Self {
        Self::bad(
            "missing_required_parameter",
            format!("`{param}` is missing: {wanted}"),
        )
        .param(param)
    }

    /// 400: what `param` asks for cannot be done here.
    pub fn unsupported(param: &str, message: impl Into<String>) -> Self {
        Self::bad("unsupported_value", message).param(param)
    }

    /// 404: there is no such thing.
    pub fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message)
    }

    /// 413: send less.
    pub fn too_large(param: &str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message).param(param)
    }

    /// 500: something is wrong here.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", message)
    }

    /// Names the field.
    pub fn param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// The same request can succeed after `wait`.
    pub fn retry(mut self, wait: Duration) -> Self {
        self.retry = Some(wait);
        self
    }

    /// OpenAI's word for the kind of error.
    fn kind(&self) -> &'static str {
        match self.status.as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        }
    }

    /// The body, also sent within streams.
    pub fn body(&self) -> Value {
        json!({"error": {
            "message": self.message,
            "type": self.kind(),
            "param": self.param,
            "code": self.code,
        }})
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        let headers = response.headers_mut();
        let retry = if self.retry.is_some() {
            "true"
        } else {
            "false"
        };
        headers.insert(SHOULD_RETRY, HeaderValue::from_static(retry));
        if let Some(wait) = self.retry {
            let seconds = wait.as_secs_f64().ceil().max(1.0) as u64;
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}

/// When a lost worker or freed memory is worth another try.
const SOON: Duration = Duration::from_secs(2);

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let status = StatusCode::from_u16(error.class.http_status())
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let code = match error.class {
            ErrorClass::BadInput => "invalid_input",
            ErrorClass::NotFound => "not_found",
            ErrorClass::TooLarge => "too_large",
            ErrorClass::Busy => "busy",
            ErrorClass::Unsupported => "unsupported_value",
            ErrorClass::Model => "model_error",
            ErrorClass::OutOfMemory => "insufficient_memory",
            ErrorClass::Cancelled => "cancelled",
            ErrorClass::Internal => "internal_error",
        };
        let retryable = error.class.is_retryable();
        ApiError {
            retry: retryable.then_some(SOON),
            ..ApiError::new(status, code, error.message)
        }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let message = refusal.to_string();
        match refusal {
            Refusal::UnknownModel { .. } => {
                ApiError::not_found("model_not_found", message).param("model")
            }
            Refusal::Busy { retry_after, .. } => {
                ApiError::new(StatusCode::TOO_MANY_REQUESTS, "busy", message).retry(retry_after)
            }
            Refusal::Load { error, .. } if error.class.is_retryable() => ApiError {
                message,
                ..ApiError::from(error)
            },
            Refusal::Load { .. } => ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "model_load_failed",
                message,
            ),
            Refusal::WorkerLost { .. } => {
                ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "worker_lost", message).retry(SOON)
            }
            Refusal::Job(error) => error.into(),
            Refusal::ShuttingDown => {
                ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", message).retry(SOON)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_succeed_later_asks_to_be_sent_again() {
        let lost = ApiError::from(Refusal::WorkerLost {
            model: "a".into(),
            how: "was killed by signal 9".into(),
        });
        let response = lost.into_response();
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()["x-should-retry"], "true");
        assert_eq!(response.headers()["retry-after"], "2");

        let broken = ApiError::from(Error::model("weights are cut short")).into_response();
        assert_eq!(broken.status(), 500);
        assert_eq!(broken.headers()["x-should-retry"], "false");
        assert!(!broken.headers().contains_key("retry-after"));
    }

    #[test]
    fn a_load_keeps_the_class_of_its_error() {
        let load = |error| {
            ApiError::from(Refusal::Load {
                model: "a".into(),
                error,
            })
        };
        let memory = load(Error::new(ErrorClass::OutOfMemory, "wanted 9 GiB"));
        assert_eq!(
            (memory.status.as_u16(), memory.code),
            (503, "insufficient_memory")
        );
        assert!(memory.message.contains("wanted 9 GiB") && memory.retry.is_some());
        let missing = load(Error::not_found("no such package"));
        assert_eq!(
            (missing.status.as_u16(), missing.code),
            (500, "model_load_failed")
        );
        assert_eq!(missing.body()["error"]["type"], "server_error");
    }
}
