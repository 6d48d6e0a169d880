//! Transcripts as events.

use serde_json::{Value, json};

use crate::{
    runner::TONGUES,
    server::{Server, error, events},
};

async fn told(server: &Server, fields: &[(&str, &str)]) -> Vec<Value> {
    let mut all = vec![("stream", "true")];
    all.extend_from_slice(fields);
    let answer = server.transcribe(&all).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    events(&answer.text().await.unwrap())
}

/// whisper.cpp#1798 and its kin: text is cut between characters, and all of it is JSON.
#[tokio::test]
async fn deltas_are_the_text() {
    let server = Server::start().await;
    let events = told(&server, &[]).await;
    let deltas: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "transcript.text.delta")
        .collect();
    assert_eq!(deltas.len(), 3);
    assert_eq!(deltas[1]["segment_id"], "1");
    let text: String = deltas
        .iter()
        .map(|delta| delta["delta"].as_str().unwrap())
        .collect();
    assert_eq!(
        text,
        format!("second 0 {TONGUES} second 1 {TONGUES} second 2 {TONGUES}")
    );
    let done = events.last().unwrap();
    assert_eq!(done["type"], "transcript.text.done");
    assert_eq!(done["text"], text);
    let usage =
        json!({"type": "tokens", "input_tokens": 3, "output_tokens": 9, "total_tokens": 12});
    assert_eq!(done["usage"], usage);
    assert_eq!(
        (done["language"].as_str(), done["duration"].as_f64()),
        (Some("english"), Some(2.5))
    );
    assert_eq!(events.len(), 4);
}

#[tokio::test]
async fn the_last_event_has_everything_when_that_is_asked_for() {
    let server = Server::start().await;
    let fields = [
        ("response_format", "verbose_json"),
        ("timestamp_granularities[]", "word"),
        ("timestamp_granularities[]", "segment"),
    ];
    let events = told(&server, &fields).await;
    let done = events.last().unwrap();
    assert_eq!(done["segments"].as_array().unwrap().len(), 3);
    assert_eq!(
        done["words"][0],
        json!({"word": "second", "start": 0.0, "end": 0.5})
    );
    assert_eq!(
        (&events[1]["start"], &events[1]["end"]),
        (&json!(1.0), &json!(2.0))
    );
}

#[tokio::test]
async fn a_failure_in_the_middle_is_an_event_and_at_the_start_a_status() {
    let server = Server::start().await;
    let broken = told(&server, &[("model", "broken-ears")]).await;
    assert_eq!(broken[0]["type"], "transcript.text.delta");
    assert_eq!(broken[1]["error"]["message"], "the weights fell out");
    assert_eq!(broken.len(), 2);
    let busy = server
        .transcribe(&[("stream", "true"), ("model", "busy-ears")])
        .await;
    assert_eq!(busy.headers()["retry-after"], "3");
    assert_eq!(busy.headers()["x-should-retry"], "true");
    let found = error(busy).await;
    assert_eq!((found.0, found.1.as_str()), (429, "busy"));
    let lost = error(server.transcribe(&[("model", "lost-ears")]).await).await;
    assert_eq!((lost.0, lost.1.as_str()), (503, "worker_lost"));
    server.quiet().await;
}

/// openai_tts#49: flags as text.
#[tokio::test]
async fn the_flag_may_be_written_in_any_way_that_clients_write_it() {
    let server = Server::start().await;
    let whole = server.transcribe(&[("stream", "false")]).await;
    assert_eq!(whole.headers()["content-type"], "application/json");
    let stream = server.transcribe(&[("stream", " true")]).await;
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
}
