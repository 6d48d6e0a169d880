//! Why a conversation ends before the client wants it to.

use audiocpp::engine::{Error, ErrorClass};
use serde_json::json;

use super::frame::{Event, FrameError};
use crate::job::Refusal;

/// Why a conversation ends.
#[derive(Debug)]
pub enum Fault {
    /// The client left, or takes no answers: there is nobody to tell.
    Gone,
    /// The request cannot be done.
    Refused(Refusal),
    /// What the client sends is not the protocol.
    Frame(FrameError),
    /// Nothing was said for too long.
    Idle(std::time::Duration),
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Fault::Refused(refusal)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::Refused(Refusal::Job(error))
    }
}

impl Fault {
    /// The event that tells the client; nothing if there is no client.
    pub fn event(&self, request: &str) -> Option<Event> {
        let (text, code) = match self {
            Fault::Gone => return None,
            Fault::Refused(refusal) => (refusal.to_string(), code(refusal)),
            Fault::Frame(error) => (error.to_string(), "bad-event"),
            Fault::Idle(limit) => (
                format!("nothing was sent for {} s", limit.as_secs()),
                "idle",
            ),
        };
        let text = format!("{text} (request {request})");
        Some(Event::new("error", json!({"text": text, "code": code})))
    }
}

fn code(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::UnknownModel { .. } => "not-found",
        Refusal::Busy { .. } => "busy",
        Refusal::Load { error, .. } | Refusal::Job(error) => class_code(error.class),
        Refusal::WorkerLost { .. } => "worker-lost",
        Refusal::ShuttingDown => "shutting-down",
    }
}

fn class_code(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::BadInput => "bad-input",
        ErrorClass::NotFound => "not-found",
        ErrorClass::TooLarge => "too-large",
        ErrorClass::Busy => "busy",
        ErrorClass::Unsupported => "unsupported",
        ErrorClass::Model => "model",
        ErrorClass::OutOfMemory => "out-of-memory",
        ErrorClass::Cancelled => "cancelled",
        ErrorClass::Internal => "internal",
    }
}
