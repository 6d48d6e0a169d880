//! When to try again after a worker was lost or a model could not be loaded.

use std::time::Duration;

use audiocpp::engine::Error;
use tokio::time::Instant;

/// Wait after the first failure; it doubles with each further one.
const FIRST: Duration = Duration::from_millis(500);
/// The longest wait.
const MOST: Duration = Duration::from_secs(60);

/// Failures in a row.
#[derive(Debug, Default)]
pub struct Trouble {
    failures: u32,
    until: Option<Instant>,
    error: Option<Error>,
}

impl Trouble {
    /// One more failure; `error` if loading said why, none if the process was lost.
    pub fn add(&mut self, error: Option<Error>) {
        let wait = FIRST.saturating_mul(1 << self.failures.min(16)).min(MOST);
        self.failures = self.failures.saturating_add(1);
        self.until = Some(Instant::now() + wait);
        self.error = error;
    }

    /// It works again.
    pub fn end(&mut self) {
        *self = Trouble::default();
    }

    /// How long not to try; none if now is a good time.
    pub fn wait(&self) -> Option<Duration> {
        self.wait_from(Instant::now())
    }

    fn wait_from(&self, now: Instant) -> Option<Duration> {
        let left = self.until?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    /// Why the last attempt to load failed.
    pub fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// Whether the last attempt failed.
    pub fn is_on(&self) -> bool {
        self.failures > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute_and_end_with_success() {
        let mut trouble = Trouble::default();
        for wanted in [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0] {
            trouble.add(None);
            let wait = trouble.wait().unwrap().as_secs_f64();
            assert!(wait <= wanted && wait > wanted - 0.4, "{wait} {wanted}");
        }
        let later = Instant::now() + Duration::from_secs(61);
        assert_eq!(trouble.wait_from(later), None);
        assert!(trouble.is_on());
        trouble.end();
        trouble.add(Some(Error::model("bad")));
        assert!(trouble.wait().unwrap() <= FIRST);
        assert_eq!(trouble.error(), Some(&Error::model("bad")));
    }
}
