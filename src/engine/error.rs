//! One error type for every task, classified by what the caller can do about it.

use std::{fmt, io::ErrorKind};

use serde::{Deserialize, Serialize};

use super::Task;
use crate::{audio, text};

/// The engine's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What the caller can do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// Change the request or the input.
    BadInput,
    /// Name something that exists, or install it.
    NotFound,
    /// Send less.
    TooLarge,
    /// Try again later.
    Busy,
    /// Use another model, option or format.
    Unsupported,
    /// Replace the model file.
    Model,
    /// Free memory or use a smaller model.
    OutOfMemory,
    /// Nothing: the caller asked for it.
    Cancelled,
    /// Report a bug.
    Internal,
}

/// How one class is told to the outside: `(class, process exit code, HTTP status)`.
///
/// Exit codes: 1 an input failed, 2 the command itself was wrong, 130 interrupted.
const OUTSIDE: [(ErrorClass, u8, u16); 9] = [
    (ErrorClass::BadInput, 1, 400),
    (ErrorClass::NotFound, 1, 404),
    (ErrorClass::TooLarge, 1, 413),
    (ErrorClass::Busy, 1, 503),
    (ErrorClass::Unsupported, 2, 400),
    (ErrorClass::Model, 1, 500),
    (ErrorClass::OutOfMemory, 1, 503),
    (ErrorClass::Cancelled, 130, 499),
    (ErrorClass::Internal, 1, 500),
];

impl ErrorClass {
    fn row(self) -> (ErrorClass, u8, u16) {
        OUTSIDE
            .into_iter()
            .find(|row| row.0 == self)
            .unwrap_or((self, 1, 500))
    }

    /// The process exit code of a program that ends with this error.
    pub fn exit_code(self) -> u8 {
        self.row().1
    }

    /// The HTTP status of a response that reports this error.
    pub fn http_status(self) -> u16 {
        self.row().2
    }

    /// Whether the same request can succeed later without being changed.
    pub fn is_retryable(self) -> bool {
        matches!(self, ErrorClass::Busy | ErrorClass::OutOfMemory)
    }
}

/// An error as one line for people and a class for programs; crosses process borders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    /// What the caller can do.
    pub class: ErrorClass,
    /// One line: the thing, what was found, what was wanted, the fix.
    pub message: String,
}

impl Error {
    /// An error of `class` with `message`.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Error {
            class,
            message: message.into(),
        }
    }

    /// An error of `class` whose message is `error` followed by its causes, on one line.
    pub fn from_error(class: ErrorClass, error: &(dyn std::error::Error + 'static)) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            let text = inner.to_string();
            if !message.contains(&text) {
                message.push_str(": ");
                message.push_str(&text);
            }
            cause = inner.source();
        }
        Error::new(class, message.replace('\n', " "))
    }

    /// The same error with `prefix: ` before its message.
    pub fn context(mut self, prefix: impl fmt::Display) -> Self {
        self.message = format!("{prefix}: {}", self.message);
        self
    }

    /// The request or the input is wrong.
    pub fn bad_input(message: impl Into<String>) -> Self {
        Error::new(ErrorClass::BadInput, message)
    }

    /// A named thing does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Error::new(ErrorClass::NotFound, message)
    }

    /// The model, build or format cannot do this.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Error::new(ErrorClass::Unsupported, message)
    }

    /// A family that does `own` alone was asked for another task.
    pub fn other_task(family: &str, own: Task, asked: Task) -> Self {
        Error::unsupported(format!(
            "{family} does {} (task `{own}`), not {} (task `{asked}`)",
            own.phrase(),
            asked.phrase()
        ))
    }

    /// A model file is damaged or not what its family expects.
    pub fn model(message: impl Into<String>) -> Self {
        Error::new(ErrorClass::Model, message)
    }

    /// A bug, or a broken machine.
    pub fn internal(message: impl Into<String>) -> Self {
        Error::new(ErrorClass::Internal, message)
    }

    /// The caller cancelled the work.
    pub fn cancelled() -> Self {
        Error::new(ErrorClass::Cancelled, "cancelled")
    }

    /// A file operation on `path` failed: not found, or internal.
    pub fn file(path: &std::path::Path, error: &std::io::Error) -> Self {
        let class = match error.kind() {
            ErrorKind::NotFound => ErrorClass::NotFound,
            ErrorKind::PermissionDenied | ErrorKind::IsADirectory => ErrorClass::BadInput,
            _ => ErrorClass::Internal,
        };
        Error::new(class, format!("{}: {error}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<audio::Error> for Error {
    fn from(error: audio::Error) -> Self {
        let class = match &error {
            audio::Error::Open { source, .. } if source.kind() == ErrorKind::NotFound => {
                ErrorClass::NotFound
            }
            audio::Error::TooLong { .. } => ErrorClass::TooLarge,
            audio::Error::Read { .. } | audio::Error::Write { .. } => ErrorClass::Internal,
            // What a file is cannot be helped by other options, so an unknown codec is bad input.
            _ => ErrorClass::BadInput,
        };
        Error::from_error(class, &error)
    }
}

impl From<text::Error> for Error {
    fn from(error: text::Error) -> Self {
        let class = match &error {
            text::Error::Empty
            | text::Error::NothingToSpeak { .. }
            | text::Error::Dictionary { .. } => ErrorClass::BadInput,
            text::Error::UnknownPhonemizer { .. } | text::Error::Language { .. } => {
                ErrorClass::Unsupported
            }
            text::Error::NoEspeak { .. } => ErrorClass::NotFound,
            text::Error::Phonemizer { .. } => ErrorClass::Internal,
        };
        Error::from_error(class, &error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_a_row_and_a_client_error_is_a_4xx() {
        let classes = [
            ErrorClass::BadInput,
            ErrorClass::NotFound,
            ErrorClass::TooLarge,
            ErrorClass::Busy,
            ErrorClass::Unsupported,
            ErrorClass::Model,
            ErrorClass::OutOfMemory,
            ErrorClass::Cancelled,
            ErrorClass::Internal,
        ];
        for class in classes {
            assert_eq!(
                OUTSIDE.iter().filter(|row| row.0 == class).count(),
                1,
                "{class:?}"
            );
            assert_ne!(class.exit_code(), 0, "{class:?}");
        }
        assert_eq!(ErrorClass::BadInput.http_status(), 400);
        assert_eq!(ErrorClass::Unsupported.exit_code(), 2);
        assert!(ErrorClass::Busy.is_retryable() && !ErrorClass::Model.is_retryable());
    }

    #[test]
    fn causes_are_joined_on_one_line() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot read a.wav")]
        struct Outer(#[source] std::io::Error);
        let error = Outer(std::io::Error::other("disk\ngone"));
        let flat = Error::from_error(ErrorClass::Internal, &error);
        assert_eq!(flat.message, "cannot read a.wav: disk gone");
    }

    #[test]
    fn errors_cross_processes_as_json() {
        let error = Error::not_found("model `x` is not installed");
        let json = serde_json::to_string(&error).unwrap();
        assert_eq!(
            json,
            r#"{"class":"not_found","message":"model `x` is not installed"}"#
        );
        assert_eq!(serde_json::from_str::<Error>(&json).unwrap(), error);
    }
}
