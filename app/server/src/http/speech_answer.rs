//! Speech as it goes out: whole, as a stream of one file, or as events.

use audiocpp::{audio::Audio, engine::Speech};
use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response, sse::Event},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use serde_json::json;

use super::{
    app::with_warnings,
    encode::{self, StreamEncoder},
    error::Result,
    speech::{Delivery, Plan},
    sse,
    work::{Step, Work, other_outcome},
};
use crate::job::Outcome;

/// Frames a second of the sound in the answer.
const SAMPLE_RATE: HeaderName = HeaderName::from_static("x-sample-rate");

/// Seconds of sound in a whole answer.
const DURATION: HeaderName = HeaderName::from_static("x-audio-duration");

/// Waits for what can be waited for without holding sound back, and makes the answer.
pub async fn answer(mut work: Work, plan: &Plan) -> Result<Response> {
    let mut warnings = plan.warnings.clone();
    if plan.delivery == Delivery::Whole {
        let speech = spoken(work.outcome().await?)?;
        warnings.append(&mut work.warnings);
        return whole(speech, plan, &warnings).await;
    }
    let flow = Flow::begin(work, plan).await?;
    warnings.extend(flow.work.warnings.iter().cloned());
    let rate = flow.rate;
    let mut response = match plan.delivery {
        Delivery::Events => sse::answer(events(flow, plan.request.text.chars().count())),
        _ => {
            let mut response = Body::from_stream(bytes(flow)).into_response();
            let mime = HeaderValue::from_static(plan.format.codec.mime());
            response.headers_mut().insert(header::CONTENT_TYPE, mime);
            response
        }
    };
    let rate = encode::written_rate(plan.format, rate);
    response.headers_mut().insert(SAMPLE_RATE, rate.into());
    Ok(with_warnings(response, &warnings))
}

fn spoken(outcome: Outcome) -> Result<Speech> {
    match outcome {
        Outcome::Speech(speech) => Ok(speech),
        other => Err(other_outcome(&other)),
    }
}

async fn whole(speech: Speech, plan: &Plan, warnings: &[String]) -> Result<Response> {
    let rate = encode::written_rate(plan.format, speech.audio.rate);
    let seconds = format!("{:.3}", speech.duration);
    let bytes = encode::whole(speech.audio, plan.format).await?;
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    let mime = HeaderValue::from_static(plan.format.codec.mime());
    headers.insert(header::CONTENT_TYPE, mime);
    headers.insert(SAMPLE_RATE, rate.into());
    if let Ok(seconds) = HeaderValue::from_str(&seconds) {
        headers.insert(DURATION, seconds);
    }
    Ok(with_warnings(response, warnings))
}

/// Sound on its way from a job to a body; dropping it cancels the job.
struct Flow {
    work: Work,
    encoder: Option<StreamEncoder>,
    /// Sound that is there already.
    next: Option<Audio>,
    rate: u32,
    /// The job is done; the encoder holds the rest.
    done: bool,
}

impl Flow {
    /// Waits for the first sound, so that a job that fails before it has a status of its own.
    async fn begin(mut work: Work, plan: &Plan) -> Result<Flow> {
        let (audio, done) = loop {
            match work.next().await? {
                Step::Speech(part) => break (part.audio, false),
                Step::Done(outcome) => break (spoken(outcome)?.audio, true),
                Step::Segment(_) | Step::Stems(_) => {}
            }
        };
        Ok(Flow {
            encoder: Some(StreamEncoder::new(plan.format, &audio)?),
            rate: audio.rate,
            next: Some(audio),
            work,
            done,
        })
    }

    /// The next bytes of the file; `None` is its end.
    async fn bytes(&mut self) -> Result<Option<Bytes>> {
        loop {
            let Some(encoder) = self.encoder.take() else {
                return Ok(None);
            };
            if let Some(audio) = self.next.take() {
                let (encoder, bytes) = encoder.push(audio).await?;
                self.encoder = Some(encoder);
                if !bytes.is_empty() {
                    return Ok(Some(bytes));
                }
                continue;
            }
            if self.done {
                let last = encoder.finish().await?;
                return Ok((!last.is_empty()).then_some(last));
            }
            self.encoder = Some(encoder);
            match self.work.next().await? {
                Step::Speech(part) => self.next = Some(part.audio),
                Step::Done(outcome) => {
                    let rest = spoken(outcome)?.audio;
                    self.next = (!rest.samples.is_empty()).then_some(rest);
                    self.done = true;
                }
                Step::Segment(_) | Step::Stems(_) => {}
            }
        }
    }
}

/// The chunks of a body; an error ends the connection, which tells the client that it is not whole.
fn bytes(flow: Flow) -> impl Stream<Item = Result<Bytes>> + Send {
    stream::unfold(Some(flow), |flow| async move {
        let mut flow = flow?;
        match flow.bytes().await {
            Ok(Some(bytes)) => Some((Ok(bytes), Some(flow))),
            Ok(None) => None,
            Err(error) => {
                tracing::warn!(code = error.code, error = %error.message, "a stream broke off");
                Some((Err(error), None))
            }
        }
    })
}

fn events(flow: Flow, characters: usize) -> impl Stream<Item = Event> + Send {
    let events = stream::unfold(Some(flow), move |state| async move {
        let mut flow = state?;
        Some(match flow.bytes().await {
            Ok(Some(bytes)) => {
                let audio = BASE64_STANDARD.encode(&bytes);
                let delta = json!({"type": "speech.audio.delta", "audio": audio});
                (sse::event(&delta), Some(flow))
            }
            Ok(None) => (sse::event(&done(&flow, characters)), None),
            Err(error) => (sse::failure(&error), None),
        })
    });
    events.boxed()
}

/// The last event. Tokens are an idea of hosted models: characters stand for those of the text, and
/// sound has none.
fn done(flow: &Flow, characters: usize) -> serde_json::Value {
    let mut done = json!({
        "type": "speech.audio.done",
        "usage": {
            "input_tokens": characters,
            "output_tokens": 0,
            "total_tokens": characters,
        },
    });
    if !flow.work.warnings.is_empty() {
        done["warnings"] = json!(flow.work.warnings);
    }
    done
}
