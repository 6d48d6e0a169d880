//! Turns one after the other into text, beside the sound that goes on coming.

use audiocpp::engine::TranscribeRequest;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{config::Config, events, turns::spooled};
use crate::{
    http::{
        app::Shared,
        error::{ApiError, Result},
        work::{Step, Work, other_outcome},
    },
    job::{Job, Outcome},
};

/// A turn that was committed.
pub struct Turn {
    /// The item that its text belongs to.
    pub item: String,
    /// Its sound.
    pub samples: Vec<i16>,
    /// The settings when it was committed.
    pub config: Config,
}

/// Transcribes `turns` until there are no more, or nobody listens.
pub async fn run(
    app: Shared,
    mut turns: mpsc::Receiver<Turn>,
    told: mpsc::Sender<Value>,
    request_id: String,
) {
    const KIND: &str = "conversation.item.input_audio_transcription";
    while let Some(turn) = turns.recv().await {
        let item = turn.item.clone();
        let delta = |text: &str| {
            let fields = json!({"item_id": item, "content_index": 0, "delta": text});
            events::server(&format!("{KIND}.delta"), fields)
        };
        let last = match transcribe(&app, turn, &request_id, &told, delta).await {
            Ok((text, seconds)) => events::server(
                &format!("{KIND}.completed"),
                json!({
                    "item_id": item,
                    "content_index": 0,
                    "transcript": text,
                    "usage": {"type": "duration", "seconds": seconds},
                }),
            ),
            Err(error) => {
                let detail = error.body()["error"].take();
                let fields = json!({"item_id": item, "content_index": 0, "error": detail});
                events::server(&format!("{KIND}.failed"), fields)
            }
        };
        if told.send(last).await.is_err() {
            return;
        }
    }
}

async fn transcribe(
    app: &Shared,
    turn: Turn,
    request_id: &str,
    told: &mpsc::Sender<Value>,
    delta: impl Fn(&str) -> Value,
) -> Result<(String, f64)> {
    let config = turn.config;
    let model = config.model.ok_or_else(|| {
        ApiError::missing(
            "session.audio.input.transcription.model",
            "a model for speech recognition",
        )
    })?;
    let file = spooled(app, &turn.samples, config.format.rate()).await?;
    let job = Job::Transcribe {
        request: TranscribeRequest {
            language: config.language,
            prompt: config.prompt,
            ..TranscribeRequest::default()
        },
        audio: file.path(),
        speech_only: None,
    };
    let mut work = Work::start(app, &model, job, request_id, None).await?;
    let mut any = false;
    loop {
        match work.next().await? {
            Step::Segment(segment) => {
                let text = if any {
                    segment.text.as_str()
                } else {
                    segment.text.trim_start()
                };
                any |= !text.is_empty();
                // A client that has left is found out by whoever reads its messages.
                let _ = told.send(delta(text)).await;
            }
            Step::Done(Outcome::Transcript(transcript)) => {
                let text = transcript.text.trim().to_owned();
                if !any && !text.is_empty() {
                    let _ = told.send(delta(&text)).await;
                }
                return Ok((text, transcript.duration));
            }
            Step::Done(other) => return Err(other_outcome(&other)),
            Step::Speech(_) | Step::Stems(_) => {}
        }
    }
}
