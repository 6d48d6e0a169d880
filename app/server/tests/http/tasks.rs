//! `POST /v1/tasks/run`.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::{
    runner::TONGUES,
    server::{Server, body, decoded, error, tone},
};

const URL: &str = "/v1/tasks/run";

fn data_url() -> String {
    let bytes = audiocpp::audio::wav_bytes(&tone(1.0, 16_000, 1), Default::default()).unwrap();
    format!("data:audio/wav;base64,{}", BASE64_STANDARD.encode(bytes))
}

fn sound(value: &Value) -> audiocpp::audio::Audio {
    decoded(&BASE64_STANDARD.decode(value.as_str().unwrap()).unwrap())
}

#[tokio::test]
async fn every_task_runs_by_json() {
    let server = Server::start().await;
    let run = |body: Value| server.json(URL, body);
    let heard = body(
        run(json!({"model": "ears", "task": "asr", "audio": data_url(), "words": true})).await,
    )
    .await;
    assert_eq!(heard["text"], format!("second 0 {TONGUES}"));
    assert_eq!(heard["words"].as_array().unwrap().len(), 2);
    assert_eq!(heard["timing"]["audio_duration_ms"], 1000.0);
    assert!(heard["timing"]["rtf"].as_f64().unwrap() > 0.0);
    let spoken =
        body(run(json!({"model": "mouth", "text": "Ten chars.", "voice_id": "bob"})).await).await;
    assert_eq!(
        sound(&spoken["audio"]).frames(),
        10 * crate::runner::FRAMES_PER_CHARACTER
    );
    assert_eq!(
        (&spoken["sample_rate"], &spoken["channels"]),
        (&json!(22_050), &json!(1))
    );
    let found = body(run(json!({"model": "gate", "audio": data_url()})).await).await;
    assert_eq!(found["segments"], json!([{"start": 0.0, "end": 1.0}]));
    server.quiet().await;
}

#[tokio::test]
async fn wrong_tasks_are_named_with_their_field() {
    let server = Server::start().await;
    let wrong = [
        (json!({}), "model"),
        (json!({"model": "ears"}), "audio"),
        (
            json!({"model": "ears", "task": "tts", "audio": data_url()}),
            "task",
        ),
        (
            json!({"model": "ears", "task": "asrr", "audio": data_url()}),
            "task",
        ),
        (json!({"model": "ears", "audio": "/etc/passwd"}), "audio"),
        (
            json!({"model": "ears", "audio": "data:audio/wav;base64,PGh0bWw+"}),
            "audio",
        ),
        (json!({"model": "mouth"}), "input"),
    ];
    for (body, param) in wrong {
        let found = error(server.json(URL, body.clone()).await).await;
        assert_eq!(
            (found.0, found.2.as_deref()),
            (400, Some(param)),
            "{body}: {}",
            found.3
        );
    }
    server.quiet().await;
}
