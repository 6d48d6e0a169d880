//! Odd bodies of every kind: whatever comes, the answer is one of ours and the server goes on.

use std::sync::LazyLock;

use futures_util::{SinkExt, StreamExt};
use proptest::prelude::*;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio_tungstenite::{connect_async, tungstenite::Message};

use crate::server::Server;

/// One server for all cases.
static SERVER: LazyLock<(Runtime, Server)> = LazyLock::new(|| {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(Server::start());
    (runtime, server)
});

/// Sends a body, and checks that the answer is a success or an error in OpenAI's shape that is the
/// client's fault.
fn send(path: &str, kind: &str, body: Vec<u8>) {
    let (runtime, server) = &*SERVER;
    runtime.block_on(async {
        let request = server.post(path).header("content-type", kind).body(body);
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        if status != 200 {
            assert!((400..500).contains(&status), "{status}");
            let value: Value = answer.json().await.unwrap();
            assert!(value["error"]["message"].is_string(), "{value}");
        }
    });
}

/// Pieces that forms are made of, in any order and number.
fn form() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"--b\r\n".to_vec()),
        Just(b"\r\n--b\r\n".to_vec()),
        Just(b"\r\n--b--\r\n".to_vec()),
        Just(b"\r\n\r\n".to_vec()),
        Just(b"Content-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n".to_vec()),
        Just(b"Content-Disposition: form-data; name=\"model\"\r\n\r\nears".to_vec()),
        Just(b"Content-Disposition: form-data; name=\"stream\"\r\n\r\ntrue".to_vec()),
        Just(b"Content-Type: audio/wav\r\n".to_vec()),
        Just(b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0data".to_vec()),
        prop::collection::vec(any::<u8>(), 0..64),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// JSON with keys that mean something and values that may not.
fn json() -> impl Strategy<Value = Vec<u8>> {
    let key = prop::sample::select(vec![
        "model",
        "input",
        "voice",
        "speed",
        "stream",
        "stream_format",
        "response_format",
        "options",
        "pronunciations",
        "seed",
        "voice_ref",
        "audio",
        "task",
        "text",
        "id",
        "x",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![
            "mouth",
            "ears",
            "pcm",
            "sse",
            "ada",
            "",
            "data:;base64,",
            "\u{0}"
        ])
        .prop_map(Value::from),
        "\\PC{0,24}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 24, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(key.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    prop_oneof![
        4 => value.prop_map(|value| value.to_string().into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..256),
    ]
}

proptest! {

    #[test]
    fn odd_forms_are_answered(body in form()) {
        for path in ["/v1/audio/transcriptions", "/v1/audio/voices", "/v1/audio/separations"] {
            send(path, "multipart/form-data; boundary=b", body.clone());
        }
    }

    #[test]
    fn odd_json_is_answered(body in json()) {
        for path in ["/v1/audio/speech", "/v1/tasks/run", "/v1/audio/transcriptions", "/v1/models/load"] {
            send(path, "application/json", body.clone());
        }
    }

    #[test]
    fn odd_events_are_answered(kind in prop::sample::select(vec![
        "session.update", "input_audio_buffer.append", "input_audio_buffer.commit", "input_audio_buffer.clear", "x",
    ]), body in json()) {
        let (runtime, server) = &*SERVER;
        runtime.block_on(async {
            let url = format!("ws://{}/v1/realtime?model=ears", server.address);
            let (mut socket, _) = connect_async(url).await.unwrap();
            let body = String::from_utf8_lossy(&body).into_owned();
            let event = match serde_json::from_str::<Value>(&body) {
                Ok(value) => serde_json::json!({"type": kind, "session": value, "audio": value}).to_string(),
                Err(_) => body,
            };
            socket.send(Message::text(event)).await.unwrap();
            // What was asked last is answered, so that the session is alive.
            socket.send(Message::text(r#"{"type":"input_audio_buffer.clear","event_id":"last"}"#)).await.unwrap();
            loop {
                let message = socket.next().await.unwrap().unwrap();
                let event: Value = serde_json::from_str(message.to_text().unwrap()).unwrap();
                if event["type"] == "input_audio_buffer.cleared" {
                    break;
                }
            }
        });
    }
}
