//! Why the program ends early, and with which exit code.

use std::fmt;

use audiocpp::engine::{Error, ErrorClass};

/// One line for stderr and an exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Exit code.
    pub code: u8,
    /// One line; empty when everything was said already.
    pub message: String,
}

/// Exit code of a command that cannot work as it is written.
const USAGE: u8 = 2;

impl Failure {
    /// The command cannot work as it is written.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure {
            code: USAGE,
            message: message.into(),
        }
    }

    /// Work that was done came out wrong.
    pub fn failed(message: impl Into<String>) -> Failure {
        Failure {
            code: 1,
            message: message.into(),
        }
    }

    /// Some inputs failed, and were reported one by one.
    pub fn reported() -> Failure {
        Failure {
            code: 1,
            message: String::new(),
        }
    }

    /// An error found before anything was run: what the user named is not there or does not fit.
    pub fn setup(error: Error) -> Failure {
        match error.class {
            ErrorClass::NotFound
            | ErrorClass::BadInput
            | ErrorClass::Unsupported
            | ErrorClass::Model => Failure::usage(error.message),
            _ => Failure::run(error),
        }
    }

    /// An error of work that was begun.
    pub fn run(error: Error) -> Failure {
        Failure {
            code: error.class.exit_code(),
            message: error.message,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The result of a command.
pub type Outcome<T = ()> = Result<T, Failure>;
