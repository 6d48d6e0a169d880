//! Formats of speech, whole and streamed: what the bytes are, how long they are, and when they
//! leave.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use futures_util::{StreamExt, future::join_all};
use serde_json::{Value, json};

use crate::server::{Server, decoded, events};

/// Formats with their media types and the bytes that they begin with.
const FORMATS: [(&str, &str, &[u8]); 5] = [
    ("mp3", "audio/mpeg", &[0xff]),
    ("opus", "audio/ogg", b"OggS"),
    ("flac", "audio/flac", b"fLaC"),
    ("wav", "audio/wav", b"RIFF"),
    ("pcm", "audio/pcm", b""),
];

/// What `mouth` says in 1.2 s.
const SECONDS: f64 = 1.2;

fn check(format: &str, magic: &[u8], bytes: &[u8]) {
    assert!(
        bytes.starts_with(magic),
        "{format} begins with {:?}",
        &bytes[..4]
    );
    let seconds = match format {
        "pcm" => bytes.len() as f64 / 2.0 / 24_000.0,
        _ => decoded(bytes).duration(),
    };
    let slack = if format == "mp3" { 0.1 } else { 0.001 };
    assert!((seconds - SECONDS).abs() < slack, "{format}: {seconds} s");
    // One file, not several one after the other (Kokoro-FastAPI#94, #57).
    let heads = bytes
        .windows(4)
        .filter(|window| *window == b"RIFF" || *window == b"fLaC");
    assert!(heads.count() <= 1, "{format}");
}

/// pocket-tts-openai_streaming_server#3: the bytes are what the head says, in every way of sending.
#[tokio::test]
async fn every_format_in_every_way_is_what_its_head_says() {
    let server = Server::start().await;
    for (format, mime, magic) in FORMATS {
        for way in [
            json!({}),
            json!({"stream": true}),
            json!({"stream": false}),
            json!({"stream_format": "audio"}),
        ] {
            let mut extra = way.clone();
            extra["response_format"] = json!(format);
            let answer = server.speak(extra).await;
            assert_eq!(answer.status(), 200);
            assert_eq!(answer.headers()["content-type"], mime, "{format} {way}");
            check(format, magic, &answer.bytes().await.unwrap());
        }
        let answer = server
            .speak(json!({"stream_format": "sse", "response_format": format}))
            .await;
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        check(
            format,
            magic,
            &joined(&events(&answer.text().await.unwrap())),
        );
    }
}

/// The sound of a stream of events, whose last one is checked.
fn joined(events: &[Value]) -> Vec<u8> {
    let (last, deltas) = events.split_last().unwrap();
    assert_eq!(last["type"], "speech.audio.done");
    let usage = json!({"input_tokens": 12, "output_tokens": 0, "total_tokens": 12});
    assert_eq!(last["usage"], usage);
    assert!(!deltas.is_empty());
    let mut bytes = Vec::new();
    for delta in deltas {
        assert_eq!(delta["type"], "speech.audio.delta");
        bytes.extend(
            BASE64_STANDARD
                .decode(delta["audio"].as_str().unwrap())
                .unwrap(),
        );
    }
    bytes
}

/// pocket-tts#229, speaches#493: placeholders in saved files break players, so that sizes are true
/// unless a stream was asked for.
#[tokio::test]
async fn sizes_are_true_unless_it_streams() {
    let server = Server::start().await;
    let size = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let whole = server.speak(json!({"response_format": "wav"})).await;
    let length: usize = whole.headers()["content-length"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    let bytes = whole.bytes().await.unwrap();
    assert_eq!(bytes.len(), length);
    assert_eq!(size(&bytes, 4) as usize, bytes.len() - 8);
    assert_eq!(size(&bytes, 40) as usize, bytes.len() - 44);
    // CrispASR#122: the rate is that of the model.
    assert_eq!(size(&bytes, 24), 22_050);
    let stream = server
        .speak(json!({"response_format": "wav", "stream_format": "audio"}))
        .await;
    assert!(!stream.headers().contains_key("content-length"));
    let bytes = stream.bytes().await.unwrap();
    assert_eq!((size(&bytes, 4), size(&bytes, 40)), (u32::MAX, u32::MAX));
}

/// Sound leaves with the first sentence: the model never gives a second one.
#[tokio::test]
async fn sound_leaves_with_the_first_sentence() {
    let server = Server::start().await;
    for format in ["mp3", "opus", "flac", "wav", "pcm"] {
        let extra = json!({"model": "endless-mouth", "response_format": format,
            "stream_format": "audio", "input": format!("{}. And more", "A long sentence ".repeat(5))});
        let answer = server.speak(extra).await;
        let mut chunks = answer.bytes_stream();
        let wait = Duration::from_secs(20);
        let first = tokio::time::timeout(wait, chunks.next())
            .await
            .expect("sound in time");
        assert!(!first.unwrap().unwrap().is_empty(), "{format}");
    }
    server.quiet().await;
}

/// A failure in the middle of a stream must not look like its end.
#[tokio::test]
async fn a_stream_that_fails_does_not_end_well() {
    let server = Server::start().await;
    let broken = |extra: Value| {
        let mut extra = extra;
        extra["model"] = json!("broken-mouth");
        server.speak(extra)
    };
    let stream = broken(json!({"response_format": "pcm"})).await;
    assert_eq!(stream.status(), 200);
    assert!(stream.bytes().await.is_err(), "the connection breaks");
    let sse = broken(json!({"stream_format": "sse", "response_format": "pcm"})).await;
    let events = events(&sse.text().await.unwrap());
    let last = events.last().unwrap();
    assert_eq!(last["error"]["code"], "internal_error");
    assert_eq!(last["error"]["message"], "the weights fell out");
    let whole = crate::server::error(broken(json!({"response_format": "wav"})).await).await;
    assert_eq!(whole.0, 500);
    server.quiet().await;
}

/// Kokoro-FastAPI#252, whisper.cpp#2521, buzz#236, sglang-omni#1470: many at once, each with its own
/// encoder and its own text.
#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_each_get_their_own() {
    let server = Server::start().await;
    let requests = (0..80).map(|at| {
        let (format, _, magic) = FORMATS[at % 5];
        let text = "x".repeat(5 + at / 5);
        let extra = json!({"response_format": format, "input": text, "stream": at % 2 == 0});
        let server = &server;
        async move {
            let answer = server.speak(extra).await;
            assert_eq!(answer.status(), 200);
            let bytes = answer.bytes().await.unwrap();
            assert!(bytes.starts_with(magic));
            let seconds = match format {
                "pcm" => bytes.len() as f64 / 48_000.0,
                _ => decoded(&bytes).duration(),
            };
            let expected = text.len() as f64 / 10.0;
            assert!(
                (seconds - expected).abs() < 0.1,
                "{format}: {seconds}, not {expected}"
            );
        }
    });
    join_all(requests).await;
    server.quiet().await;
}
