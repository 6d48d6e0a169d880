//! `/v1/audio/voices`.

use reqwest::multipart::Form;
use serde_json::json;

use crate::server::{Server, body, error, tone, upload, wav};

/// Open WebUI reads `voice["id"]` of each entry.
#[tokio::test]
async fn the_list_has_objects() {
    let server = Server::start().await;
    let list = body(server.get("/v1/audio/voices?model=mouth").await).await;
    assert_eq!(list["object"], "list");
    assert_eq!(list["voices"], list["data"]);
    let ada = &list["data"][0];
    assert_eq!(
        (&ada["id"], &ada["name"], &ada["object"]),
        (&json!("ada"), &json!("Ada"), &json!("audio.voice"))
    );
    assert_eq!(
        (&ada["default"], &ada["model"], &ada["language"]),
        (&json!(true), &json!("mouth"), &json!("en-us"))
    );
    assert!(ada["created_at"].is_u64());
    let all = body(server.get("/audio/voices").await).await;
    assert_eq!(
        all["data"].as_array().unwrap().len(),
        6,
        "two of each of three models"
    );
    assert_eq!(
        error(server.get("/v1/audio/voices?model=x").await).await.1,
        "model_not_found"
    );
}

#[tokio::test]
async fn a_voice_is_made_used_and_removed() {
    let server = Server::start().await;
    let form = || {
        Form::new()
            .text("name", "My voice")
            .text("consent", "c")
            .text("model", "mouth")
    };
    let made = server
        .form(
            "/v1/audio/voices",
            form().part("audio_sample", wav(tone(3.0, 44_100, 2))),
        )
        .await;
    assert_eq!(made.status(), 200);
    let made = body(made).await;
    assert_eq!(
        (&made["id"], &made["type"]),
        (&json!("My voice"), &json!("audio_sample"))
    );
    let spoken = server.speak(json!({"voice": {"id": "My voice"}})).await;
    assert_eq!(spoken.status(), 200);
    let again = server
        .form(
            "/v1/audio/voices",
            form().part("file", wav(tone(3.0, 44_100, 2))),
        )
        .await;
    assert_eq!(error(again).await.0, 409);
    let one = body(server.get("/v1/audio/voices/My%20voice").await).await;
    assert_eq!(one["model"], "mouth");
    let url = format!("{}/v1/audio/voices/My%20voice", server.base);
    let gone = body(server.client.delete(&url).send().await.unwrap()).await;
    assert_eq!(
        gone,
        json!({"id": "My voice", "object": "audio.voice.deleted", "deleted": true})
    );
    assert_eq!(
        error(server.client.delete(&url).send().await.unwrap())
            .await
            .1,
        "voice_not_found"
    );
    let own = format!("{}/v1/audio/voices/ada", server.base);
    assert_eq!(
        error(server.client.delete(&own).send().await.unwrap())
            .await
            .0,
        404
    );
    server.quiet().await;
}

#[tokio::test]
async fn what_cannot_become_a_voice_is_refused() {
    let server = Server::start().await;
    let sample = || wav(tone(3.0, 16_000, 1));
    let send = |form: Form| server.form("/v1/audio/voices", form);
    let cannot = send(
        Form::new()
            .text("name", "v")
            .text("model", "endless-mouth")
            .part("audio_sample", sample()),
    );
    let found = error(cannot.await).await;
    assert_eq!((found.0, found.1.as_str()), (400, "unsupported_value"));
    assert!(found.3.contains("cannot copy voices"));
    for name in ["../x", ".hidden", "a/b", "", " x", &"n".repeat(65), "a\nb"] {
        let found = error(
            send(
                Form::new()
                    .text("name", name.to_owned())
                    .part("file", sample()),
            )
            .await,
        )
        .await;
        assert_eq!(
            (found.0, found.2.as_deref()),
            (400, Some("name")),
            "{name:?}"
        );
    }
    let none = error(send(Form::new().text("name", "v")).await).await;
    assert_eq!(none.2.as_deref(), Some("audio_sample"));
    let odd = send(
        Form::new()
            .text("name", "v")
            .part("file", upload(b"<html>".to_vec(), "a.wav")),
    );
    assert_eq!(error(odd.await).await.2.as_deref(), Some("audio_sample"));
    let long = send(
        Form::new()
            .text("name", "v")
            .part("file", wav(tone(130.0, 1000, 1))),
    );
    assert_eq!(error(long.await).await.0, 413);
    server.quiet().await;
}
