//! The surroundings of one run: cancelling it, and hearing from it.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

use serde::{Deserialize, Serialize};

use super::{
    error::{Error, Result},
    separation::Stem,
    speech::SpeechPart,
    transcript::Segment,
};

/// A flag that asks a run to stop; clones share it.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<Flag>);

#[derive(Debug, Default)]
struct Flag {
    stop: AtomicBool,
    looks: AtomicU64,
}

impl CancelToken {
    /// Asks every run that holds a clone to stop.
    pub fn cancel(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }

    /// Whether a stop was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.0.looks.fetch_add(1, Ordering::Relaxed);
        self.0.stop.load(Ordering::Relaxed)
    }

    /// How often the flag was looked at. A run looks in every loop, so the number grows while it
    /// gets on, and stands still while it hangs.
    pub fn looks(&self) -> u64 {
        self.0.looks.load(Ordering::Relaxed)
    }
}

/// The unit that progress is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Seconds of sound.
    Seconds,
    /// Bytes of a file or a transfer.
    Bytes,
    /// Steps, tokens or other countable things.
    Items,
}

/// Something that happened during a run; crosses process borders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// `done` of `total` units of `stage`; `total` is absent while it is not known.
    Progress {
        /// What is being done, as a short lower-case phrase.
        stage: String,
        /// Units that are finished.
        done: f64,
        /// Units in all.
        total: Option<f64>,
        /// What is counted.
        unit: Unit,
    },
    /// A segment of the transcript that will not change any more.
    Segment(Segment),
    /// A stage of the work took this long; stages may come several times in a run.
    Stage {
        /// Its name, such as `encode`.
        stage: String,
        /// Wall time.
        seconds: f64,
    },
    /// Sound that is ready, of a request that streams.
    Speech(SpeechPart),
    /// The next stretch of every stem, of a request that streams; all are equally long.
    Stems {
        /// The stems.
        stems: Vec<Stem>,
    },
    /// Something the user should know that does not stop the run.
    Warning {
        /// One line.
        message: String,
    },
}

/// Takes events as they happen; called from the thread that runs the task.
pub trait EventSink: Send + Sync {
    /// Takes one event; must not block for long.
    fn event(&self, event: Event);
}

impl<F: Fn(Event) + Send + Sync> EventSink for F {
    fn event(&self, event: Event) {
        self(event);
    }
}

/// What a task is given beside its request: a cancel token and a place for events.
#[derive(Clone, Default)]
pub struct RunContext {
    /// Stops the run when it is set.
    pub cancel: CancelToken,
    sink: Option<Arc<dyn EventSink>>,
}

impl RunContext {
    /// A context that nobody listens to.
    pub fn new() -> Self {
        Self::default()
    }

    /// A context that sends its events to `sink`.
    pub fn with_sink(cancel: CancelToken, sink: Arc<dyn EventSink>) -> Self {
        RunContext {
            cancel,
            sink: Some(sink),
        }
    }

    /// A context that stops with this one, and whose events come here as `change` makes them; those
    /// that it drops do not come.
    pub fn mapped(&self, change: impl Fn(Event) -> Option<Event> + Send + Sync + 'static) -> Self {
        let through = |outer: &Arc<dyn EventSink>| -> Arc<dyn EventSink> {
            let outer = outer.clone();
            Arc::new(move |event: Event| {
                if let Some(event) = change(event) {
                    outer.event(event);
                }
            })
        };
        RunContext {
            cancel: self.cancel.clone(),
            sink: self.sink.as_ref().map(through),
        }
    }

    /// An error of class `Cancelled` once the run was asked to stop; call it in every loop.
    pub fn check(&self) -> Result<()> {
        if self.cancel.is_cancelled() {
            Err(Error::cancelled())
        } else {
            Ok(())
        }
    }

    /// Sends one event.
    pub fn send(&self, event: Event) {
        if let Some(sink) = &self.sink {
            sink.event(event);
        }
    }

    /// Reports `done` of `total` units of `stage`.
    pub fn progress(&self, stage: &str, done: f64, total: Option<f64>, unit: Unit) {
        if self.sink.is_some() {
            self.send(Event::Progress {
                stage: stage.to_owned(),
                done,
                total,
                unit,
            });
        }
    }

    /// Does `work` and reports how long it took, as a stage; stages must not lie inside each other.
    pub fn timed<T>(&self, stage: &str, work: impl FnOnce() -> T) -> T {
        if self.sink.is_none() {
            return work();
        }
        let started = Instant::now();
        let made = work();
        self.send(Event::Stage {
            stage: stage.to_owned(),
            seconds: started.elapsed().as_secs_f64(),
        });
        made
    }

    /// Reports something that does not stop the run.
    pub fn warn(&self, message: impl Into<String>) {
        self.send(Event::Warning {
            message: message.into(),
        });
    }
}

impl fmt::Debug for RunContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunContext")
            .field("cancel", &self.cancel)
            .field("listens", &self.sink.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::engine::error::ErrorClass;

    #[test]
    fn a_clone_of_the_token_cancels_the_run() {
        let context = RunContext::new();
        let token = context.cancel.clone();
        assert!(context.check().is_ok());
        assert_eq!(token.looks(), 1);
        token.cancel();
        assert_eq!(context.check().unwrap_err().class, ErrorClass::Cancelled);
        assert_eq!(token.looks(), 2);
    }

    #[test]
    fn events_arrive_in_order_and_survive_json() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let copy = seen.clone();
        let sink = move |event: Event| copy.lock().unwrap().push(event);
        let context = RunContext::with_sink(CancelToken::default(), Arc::new(sink));
        context.progress("transcribe", 1.5, Some(3.0), Unit::Seconds);
        context.warn("clipped");
        let seen = seen.lock().unwrap();
        assert_eq!(
            serde_json::to_string(&*seen).unwrap(),
            concat!(
                r#"[{"type":"progress","stage":"transcribe","done":1.5,"total":3.0,"unit":"seconds"},"#,
                r#"{"type":"warning","message":"clipped"}]"#
            )
        );
    }
}
