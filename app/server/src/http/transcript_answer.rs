//! Transcripts as they go out: whole in a form, or as events.

use audiocpp::engine::{FormatOptions, Segment, Transcript, TranscriptFormat};
use axum::{
    http::{HeaderValue, header},
    response::{IntoResponse, Response, sse::Event},
};
use futures_util::{Stream, StreamExt, stream};
use serde_json::{Value, json};

use super::{
    app::with_warnings,
    error::Result,
    spool::Spooled,
    sse,
    transcriptions::Plan,
    work::{Step, Work, other_outcome},
};
use crate::job::Outcome;

/// Answers with the transcript of `work`. `upload` is kept until the job is over.
pub async fn answer(mut work: Work, upload: Option<Spooled>, plan: Plan) -> Result<Response> {
    if plan.stream {
        return events_answer(work, upload, plan).await;
    }
    let transcript = written(work.outcome().await?)?;
    drop(upload);
    let text = plan.format.render(&transcript, &plan.options);
    let mut response = text.into_response();
    let mime = HeaderValue::from_static(plan.format.content_type());
    response.headers_mut().insert(header::CONTENT_TYPE, mime);
    let mut warnings = plan.warnings;
    warnings.append(&mut work.warnings);
    Ok(with_warnings(response, &warnings))
}

fn written(outcome: Outcome) -> Result<Transcript> {
    match outcome {
        Outcome::Transcript(transcript) => Ok(transcript),
        other => Err(other_outcome(&other)),
    }
}

async fn events_answer(mut work: Work, upload: Option<Spooled>, plan: Plan) -> Result<Response> {
    // What fails before the first text has a status of its own.
    let first = work.next().await?;
    let mut warnings = plan.warnings.clone();
    warnings.extend(work.warnings.iter().cloned());
    let telling = Telling {
        work,
        _upload: upload,
        plan,
        told: 0,
        text: String::new(),
    };
    let events = telling.events(first);
    Ok(with_warnings(sse::answer(events), &warnings))
}

/// A transcript that is being told; dropping it cancels the job.
struct Telling {
    work: Work,
    _upload: Option<Spooled>,
    plan: Plan,
    /// Segments that were sent.
    told: usize,
    /// The text that was sent.
    text: String,
}

impl Telling {
    fn events(self, first: Step) -> impl Stream<Item = Event> + Send {
        let batches = stream::unfold(Some((self, Some(first))), |state| async move {
            let (mut telling, step) = state?;
            let step = match step {
                Some(step) => Ok(step),
                None => telling.work.next().await,
            };
            let told = step.and_then(|step| telling.tell(step));
            Some(match told {
                Ok((values, true)) => (values, None),
                Ok((values, false)) => (values, Some((telling, None))),
                Err(error) => (vec![error.body()], None),
            })
        });
        let events =
            batches.flat_map(|values| stream::iter(values).map(|value| sse::event(&value)));
        events.boxed()
    }

    /// What a step has to say, and whether it is the last.
    fn tell(&mut self, step: Step) -> Result<(Vec<Value>, bool)> {
        match step {
            Step::Segment(segment) => {
                self.told += 1;
                Ok((self.delta(&segment).into_iter().collect(), false))
            }
            Step::Speech(_) | Step::Stems(_) => Ok((Vec::new(), false)),
            Step::Done(outcome) => {
                let transcript = written(outcome)?;
                // Models that do not send segments while they run have them all at the end.
                let late = transcript.segments.iter().skip(self.told);
                let late: Vec<Segment> = late.cloned().collect();
                let mut values: Vec<Value> = late
                    .iter()
                    .filter_map(|segment| self.delta(segment))
                    .collect();
                if self.text.is_empty() && !transcript.text.trim().is_empty() {
                    let text = transcript.text.trim();
                    values.push(json!({"type": "transcript.text.delta", "delta": text}));
                }
                values.push(self.done(&transcript));
                Ok((values, true))
            }
        }
    }

    /// The text of a segment; all deltas together are the whole text.
    fn delta(&mut self, segment: &Segment) -> Option<Value> {
        let delta = match self.text.is_empty() {
            true => segment.text.trim_start(),
            false => segment.text.as_str(),
        };
        if delta.is_empty() {
            return None;
        }
        self.text.push_str(delta);
        Some(json!({
            "type": "transcript.text.delta",
            "delta": delta,
            "segment_id": segment.id.to_string(),
            "start": segment.start,
            "end": segment.end,
        }))
    }

    /// The last event. It has the language and the duration too; with `verbose_json` it has everything that the whole answer has.
    fn done(&self, transcript: &Transcript) -> Value {
        let tokens: usize = transcript.segments.iter().map(|it| it.tokens.len()).sum();
        let seconds = transcript.duration.max(0.0).ceil() as u64;
        let mut done = json!({
            "type": "transcript.text.done",
            "text": transcript.text.trim(),
            "usage": {
                "type": "tokens",
                "input_tokens": seconds,
                "output_tokens": tokens,
                "total_tokens": seconds + tokens as u64,
            },
        });
        let whole = verbose(transcript, &self.plan.options);
        let all = self.plan.format == TranscriptFormat::VerboseJson;
        for (key, value) in whole.as_object().into_iter().flatten() {
            let told = matches!(key.as_str(), "text" | "usage");
            let always = matches!(key.as_str(), "language" | "duration");
            if always || all && !told {
                done[key] = value.clone();
            }
        }
        if !self.work.warnings.is_empty() {
            done["warnings"] = json!(self.work.warnings);
        }
        done
    }
}

/// `verbose_json` as a value.
pub fn verbose(transcript: &Transcript, options: &FormatOptions) -> Value {
    let text = TranscriptFormat::VerboseJson.render(transcript, options);
    serde_json::from_str(&text).unwrap_or(Value::Null)
}
