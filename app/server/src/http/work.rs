//! One running job: its events, its end, what is measured of it.

use std::time::{Duration, Instant};

use audiocpp::engine::{Event, Segment, SpeechPart, Stem, Task};

use super::{
    app::Shared,
    error::{ApiError, Result},
    meter::JobEnd,
};
use crate::job::{Job, ModelStatus, Outcome, Reply, Run};

/// What a route hears of its job.
#[derive(Debug)]
pub enum Step {
    /// A segment of the transcript is final.
    Segment(Segment),
    /// Sound is ready.
    Speech(SpeechPart),
    /// The next stretch of every stem is ready.
    Stems(Vec<Stem>),
    /// It is finished.
    Done(Outcome),
}

/// A running job; dropping it cancels the job.
pub struct Work {
    app: Shared,
    run: Run,
    model: String,
    task: Task,
    started: Instant,
    first_output: bool,
    ended: bool,
    /// What was said beside the result so far.
    pub warnings: Vec<String>,
}

impl Work {
    /// Hands `job` to `model`.
    pub async fn start(
        app: &Shared,
        model: &ModelStatus,
        job: Job,
        request_id: &str,
        wait: Option<Duration>,
    ) -> Result<Work> {
        let started = Instant::now();
        let run = app.runner.run(&model.id, job, request_id, wait).await?;
        Ok(Work {
            app: app.clone(),
            run,
            model: model.id.clone(),
            task: model.task,
            started,
            first_output: false,
            ended: false,
            warnings: Vec::new(),
        })
    }

    /// Seconds since the job was handed over.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Waits for what comes next; the job's failure is the error.
    pub async fn next(&mut self) -> Result<Step> {
        loop {
            let step = match self.run.replies.recv().await {
                Some(Reply::Event(Event::Segment(segment))) => Step::Segment(segment),
                Some(Reply::Event(Event::Speech(part))) => Step::Speech(part),
                Some(Reply::Event(Event::Stems { stems })) => Step::Stems(stems),
                Some(Reply::Event(Event::Warning { message })) => {
                    self.warnings.push(message);
                    continue;
                }
                Some(Reply::Event(Event::Progress { .. } | Event::Stage { .. })) => continue,
                Some(Reply::Done(outcome)) => {
                    self.end("ok", sound(&outcome));
                    self.warnings.extend(warnings(&outcome).iter().cloned());
                    self.warnings.dedup();
                    return Ok(Step::Done(*outcome));
                }
                Some(Reply::Failed(refusal)) => {
                    self.end("failed", 0.0);
                    return Err(refusal.into());
                }
                None => {
                    self.end("failed", 0.0);
                    return Err(ApiError::internal(format!(
                        "the job of `{}` ended without a result",
                        self.model
                    )));
                }
            };
            if !self.first_output {
                self.first_output = true;
                self.app
                    .meter
                    .first_output(&self.model, self.task, self.elapsed());
            }
            return Ok(step);
        }
    }

    /// Waits for the result; what comes before it is dropped.
    pub async fn outcome(&mut self) -> Result<Outcome> {
        loop {
            if let Step::Done(outcome) = self.next().await? {
                return Ok(outcome);
            }
        }
    }

    fn end(&mut self, result: &'static str, sound: f64) {
        self.ended = true;
        self.app.meter.job(&JobEnd {
            model: &self.model,
            task: self.task,
            result,
            took: self.started.elapsed(),
            sound,
        });
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if !self.ended {
            self.end("cancelled", 0.0);
        }
    }
}

fn sound(outcome: &Outcome) -> f64 {
    match outcome {
        Outcome::Transcript(it) => it.duration,
        Outcome::Speech(it) => it.duration,
        Outcome::Activity(it) => it.duration,
        Outcome::Separation(it) => it.duration,
    }
}

fn warnings(outcome: &Outcome) -> &[String] {
    match outcome {
        Outcome::Transcript(it) => &it.warnings,
        Outcome::Speech(it) => &it.warnings,
        Outcome::Activity(it) => &it.warnings,
        Outcome::Separation(it) => &it.warnings,
    }
}

/// The answer to a model that gave back the result of another task.
pub fn other_outcome(outcome: &Outcome) -> ApiError {
    let kind = match outcome {
        Outcome::Transcript(_) => "a transcript",
        Outcome::Speech(_) => "speech",
        Outcome::Activity(_) => "voice activity",
        Outcome::Separation(_) => "stems",
    };
    ApiError::internal(format!(
        "the model gave back {kind}, which was not asked for"
    ))
}
