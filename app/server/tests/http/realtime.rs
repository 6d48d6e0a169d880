//! `/v1/realtime`.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{Message, client::IntoClientRequest},
};

use crate::{
    runner::TONGUES,
    server::{Server, error, silence, tone},
};

/// A client of the protocol.
struct Live(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Live {
    async fn open(server: &Server, query: &str) -> Live {
        let url = format!("ws://{}/v1/realtime{query}", server.address);
        Live(connect_async(url).await.unwrap().0)
    }

    async fn send(&mut self, event: Value) {
        self.0.send(Message::text(event.to_string())).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let wait = Duration::from_secs(20);
        let message = tokio::time::timeout(wait, self.0.next())
            .await
            .expect("an event in time");
        let event: Value =
            serde_json::from_str(message.unwrap().unwrap().to_text().unwrap()).unwrap();
        assert!(
            event["event_id"].as_str().unwrap().starts_with("event_"),
            "{event}"
        );
        event
    }

    async fn expect(&mut self, kind: &str) -> Value {
        let event = self.next().await;
        assert_eq!(event["type"], kind, "{event}");
        event
    }

    /// Sends sound at 24 kHz in parts of 100 ms.
    async fn sound(&mut self, audio: audiocpp::audio::Audio) {
        let samples = audio.resampled(24_000).unwrap().samples;
        let bytes: Vec<u8> = samples
            .iter()
            .flat_map(|s| ((s * 32_767.0) as i16).to_le_bytes())
            .collect();
        for part in bytes.chunks(4800) {
            let audio = BASE64_STANDARD.encode(part);
            self.send(json!({"type": "input_audio_buffer.append", "audio": audio}))
                .await;
        }
    }
}

const ITEM: &str = "conversation.item.input_audio_transcription";

#[tokio::test]
async fn a_turn_that_is_committed_by_hand_becomes_text() {
    let server = Server::start().await;
    let mut live = Live::open(&server, "?intent=transcription&model=ears").await;
    let created = live.expect("session.created").await;
    let input = &created["session"]["audio"]["input"];
    assert_eq!(created["session"]["type"], "transcription");
    assert_eq!(
        input["format"],
        json!({"type": "audio/pcm", "rate": 24_000})
    );
    assert_eq!(input["transcription"]["model"], "ears");
    assert_eq!(input["turn_detection"]["type"], "server_vad");
    live.send(
        json!({"type": "session.update", "session": {"type": "transcription", "audio": {"input": {
        "turn_detection": null, "transcription": {"language": "de", "prompt": "names"},
        "noise_reduction": {"type": "near_field"}}}}}),
    )
    .await;
    let updated = live.expect("session.updated").await;
    assert_eq!(
        updated["session"]["audio"]["input"]["turn_detection"],
        json!(null)
    );
    assert_eq!(
        updated["warnings"],
        json!(["`noise_reduction` has no effect"])
    );
    let mut previous = json!(null);
    for _ in 0..2 {
        live.sound(tone(1.5, 24_000, 1)).await;
        live.send(json!({"type": "input_audio_buffer.commit"}))
            .await;
        let committed = live.expect("input_audio_buffer.committed").await;
        assert_eq!(committed["previous_item_id"], previous);
        previous = committed["item_id"].clone();
        let mut text = String::new();
        for _ in 0..2 {
            let delta = live.expect(&format!("{ITEM}.delta")).await;
            assert_eq!(
                (&delta["item_id"], &delta["content_index"]),
                (&previous, &json!(0))
            );
            text.push_str(delta["delta"].as_str().unwrap());
        }
        let done = live.expect(&format!("{ITEM}.completed")).await;
        assert_eq!(done["transcript"], text);
        assert_eq!(text, format!("second 0 {TONGUES} second 1 {TONGUES}"));
        assert_eq!(done["usage"], json!({"type": "duration", "seconds": 1.5}));
    }
    let audiocpp_server::job::Job::Transcribe { request, .. } = server.runner.last().1 else {
        panic!()
    };
    assert_eq!(
        (request.language.as_deref(), request.prompt.as_deref()),
        (Some("de"), Some("names"))
    );
    server.quiet().await;
}

#[tokio::test]
async fn turns_are_found_between_silences() {
    let server = Server::start().await;
    let mut live = Live::open(&server, "?model=ears").await;
    live.expect("session.created").await;
    live.sound(silence(3.0)).await;
    for turn in 0..2 {
        live.sound(tone(1.0, 24_000, 1)).await;
        live.sound(silence(2.0)).await;
        let started = live.expect("input_audio_buffer.speech_started").await;
        let item = started["item_id"].clone();
        let start = started["audio_start_ms"].as_u64().unwrap();
        let expected = 3000 + turn * 3000 - 300;
        assert!(
            start.abs_diff(expected) <= 20,
            "turn {turn} starts at {start}"
        );
        let stopped = live.expect("input_audio_buffer.speech_stopped").await;
        assert_eq!(stopped["item_id"], item);
        let end = stopped["audio_end_ms"].as_u64().unwrap();
        assert!(
            end.abs_diff(expected + 300 + 1250) <= 20,
            "turn {turn} ends at {end}"
        );
        let committed = live.expect("input_audio_buffer.committed").await;
        assert_eq!(committed["item_id"], item);
        let mut last = live.next().await;
        while last["type"] == format!("{ITEM}.delta") {
            last = live.next().await;
        }
        assert_eq!(
            (&last["type"], &last["item_id"]),
            (&json!(format!("{ITEM}.completed")), &item)
        );
    }
    live.0.close(None).await.unwrap();
    server.quiet().await;
}

fn update(session: Value) -> Value {
    json!({"type": "session.update", "session": session, "event_id": "e7"})
}

#[tokio::test]
async fn errors_name_the_event_and_the_session_goes_on() {
    let server = Server::start().await;
    let mut live = Live::open(&server, "").await;
    live.expect("session.created").await;
    let wrong = [
        (
            json!({"type": "response.create", "event_id": "e1"}),
            "type",
            "e1",
        ),
        (json!({"event_id": "e2"}), "type", "e2"),
        (
            json!({"type": "input_audio_buffer.append", "audio": "%%", "event_id": "e3"}),
            "audio",
            "e3",
        ),
        (
            update(json!({"audio": {"input": {"format": {"type": "audio/mp3"}}}})),
            "session.audio.input.format.type",
            "e7",
        ),
        (
            update(json!({"audio": {"input": {"format": {"type": "audio/pcm", "rate": 0}}}})),
            "session.audio.input.format.rate",
            "e7",
        ),
        (
            update(json!({"audio": {"input": {"turn_detection": {"type": "semantic_vad"}}}})),
            "session.audio.input.turn_detection",
            "e7",
        ),
        (
            update(json!({"audio": {"input": {"transcription": {"model": "mouth"}}}})),
            "model",
            "e7",
        ),
        (update(json!({"type": "realtime"})), "session.type", "e7"),
    ];
    for (event, param, id) in wrong {
        live.send(event.clone()).await;
        let told = live.expect("error").await;
        assert_eq!(
            (&told["error"]["param"], &told["error"]["event_id"]),
            (&json!(param), &json!(id)),
            "{event}: {told}"
        );
    }
    server.quiet().await;
}

#[tokio::test]
async fn a_turn_that_cannot_be_transcribed_fails_alone() {
    let server = Server::start().await;
    let mut live = Live::open(&server, "").await;
    live.expect("session.created").await;
    live.0.send(Message::text("not json")).await.unwrap();
    assert_eq!(live.expect("error").await["error"]["code"], "invalid_json");
    live.send(json!({"type": "input_audio_buffer.commit"}))
        .await;
    assert_eq!(
        live.expect("error").await["error"]["code"],
        "input_audio_buffer_commit_empty"
    );
    // Without a model the turn fails, not the session.
    live.send(update(
        json!({"audio": {"input": {"turn_detection": null}}}),
    ))
    .await;
    live.expect("session.updated").await;
    live.sound(tone(0.2, 24_000, 1)).await;
    live.send(json!({"type": "input_audio_buffer.clear"})).await;
    live.expect("input_audio_buffer.cleared").await;
    live.sound(tone(0.2, 24_000, 1)).await;
    live.send(json!({"type": "input_audio_buffer.commit"}))
        .await;
    live.expect("input_audio_buffer.committed").await;
    let failed = live.expect(&format!("{ITEM}.failed")).await;
    assert_eq!(failed["error"]["code"], "missing_required_parameter");
    server.quiet().await;
}

#[tokio::test]
async fn leaving_cancels_what_is_being_transcribed() {
    let server = Server::start().await;
    let mut live = Live::open(&server, "?model=endless-ears").await;
    live.expect("session.created").await;
    live.send(json!({"type": "session.update", "session": {"audio": {"input": {"turn_detection": null}}}})).await;
    live.expect("session.updated").await;
    live.sound(tone(2.0, 24_000, 1)).await;
    live.send(json!({"type": "input_audio_buffer.commit"}))
        .await;
    live.expect("input_audio_buffer.committed").await;
    live.expect(&format!("{ITEM}.delta")).await;
    drop(live);
    server.quiet().await;
    assert_eq!(
        server
            .runner
            .cancelled
            .load(std::sync::atomic::Ordering::SeqCst),
        1
    );
}

#[tokio::test]
async fn companded_sound_is_taken() {
    let server = Server::start().await;
    let mut live = Live::open(&server, "?model=ears").await;
    live.expect("session.created").await;
    live.send(
        json!({"type": "session.update", "session": {"audio": {"input": {
        "turn_detection": null, "format": {"type": "audio/pcmu"}}}}}),
    )
    .await;
    live.expect("session.updated").await;
    let audio = BASE64_STANDARD.encode(vec![0x80; 8000]);
    live.send(json!({"type": "input_audio_buffer.append", "audio": audio}))
        .await;
    live.send(json!({"type": "input_audio_buffer.commit"}))
        .await;
    live.expect("input_audio_buffer.committed").await;
    live.expect(&format!("{ITEM}.delta")).await;
    let done = live.expect(&format!("{ITEM}.completed")).await;
    assert_eq!(done["usage"]["seconds"], 1.0);
}

#[tokio::test]
async fn the_door_has_the_same_locks() {
    let server = Server::with(|settings| settings.api_keys = vec!["secret".into()]).await;
    let url = format!("ws://{}/v1/realtime?model=ears", server.address);
    assert!(connect_async(&url).await.is_err());
    let mut request = url.into_client_request().unwrap();
    let protocols = "realtime, openai-insecure-api-key.secret".parse().unwrap();
    request
        .headers_mut()
        .insert("sec-websocket-protocol", protocols);
    let (_, answer) = connect_async(request.clone()).await.unwrap();
    assert_eq!(answer.headers()["sec-websocket-protocol"], "realtime");
    request
        .headers_mut()
        .insert("origin", "https://evil.example".parse().unwrap());
    assert!(
        connect_async(request).await.is_err(),
        "pages of others open no sockets"
    );
    let open = Server::start().await;
    let plain = error(open.get("/v1/realtime?model=ears").await).await;
    assert_eq!((plain.0, plain.1.as_str()), (400, "not_a_websocket"));
    let unknown = error(open.get("/v1/realtime?model=x").await).await;
    assert_eq!(unknown.1, "model_not_found");
    let intent = error(open.get("/v1/realtime?intent=conversation").await).await;
    assert_eq!(intent.2.as_deref(), Some("intent"));
}
