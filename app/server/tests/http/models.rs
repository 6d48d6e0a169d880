//! `/v1/models`.

use serde_json::json;

use crate::server::{Server, body, error};

#[tokio::test]
async fn the_list_is_openais_and_more() {
    let server = Server::start().await;
    for path in ["/v1/models", "/models"] {
        let list = body(server.get(path).await).await;
        assert_eq!(list["object"], "list");
        let first = &list["data"][0];
        assert_eq!(first["id"], "ears");
        assert_eq!(first["object"], "model");
        assert_eq!(first["owned_by"], "audiocpp");
        assert!(first["created"].as_u64().unwrap() > 1_700_000_000);
        assert_eq!(
            (&first["family"], &first["task"], &first["state"]),
            (&json!("test"), &json!("asr"), &json!("ready"))
        );
    }
}

#[tokio::test]
async fn one_model_may_have_slashes_in_its_id() {
    let server = Server::start().await;
    for path in [
        "/v1/models/some/nested/ears",
        "/v1/models/some%2Fnested%2Fears",
        "/models/some/nested/ears",
    ] {
        let model = body(server.get(path).await).await;
        assert_eq!(model["id"], "some/nested/ears", "{path}");
    }
}

/// Chatterbox-TTS-Server#136, xtts-api-server#61, F5-TTS#1293, GPT-SoVITS#2819: names are looked up
/// and never joined to a path, so that every odd one is the same.
#[tokio::test]
async fn paths_as_names_are_all_the_same_404() {
    let server = Server::start().await;
    let long = "a".repeat(4096);
    let names = [
        "../../etc/passwd",
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e/%2e%2e/etc/passwd",
        "/etc/passwd",
        "%00",
        "a%00b",
        "CON",
        "C:%5CWindows",
        "....//....//etc",
        "%252e%252e%252f",
        &long,
        "~root",
    ];
    for name in names {
        // A client would tidy `..` up, so the request is written by hand.
        for route in ["/v1/models/", "/v1/audio/voices/"] {
            let (status, code) = raw(&server, &format!("{route}{name}")).await;
            assert_eq!(status, 404, "{route}{name}");
            assert!(
                ["model_not_found", "voice_not_found", "unknown_url"].contains(&code.as_str()),
                "{code}"
            );
        }
        let speech = server.speak(json!({"voice": name})).await;
        assert_eq!(error(speech).await.1, "voice_not_found", "{name}");
        let speech = server.speak(json!({"model": name})).await;
        assert_eq!(error(speech).await.1, "model_not_found", "{name}");
    }
    let nul = error(server.speak(json!({"voice": "a\u{0}b"})).await).await;
    assert_eq!((nul.0, nul.1.as_str()), (404, "voice_not_found"));
}

async fn raw(server: &Server, path: &str) -> (u16, String) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut socket = tokio::net::TcpStream::connect(&server.address)
        .await
        .unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).await.unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    let json = text.split("\r\n\r\n").nth(1).unwrap();
    let value: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    (
        status,
        value["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    )
}

#[tokio::test]
async fn models_are_loaded_and_unloaded() {
    let server = Server::start().await;
    let state = |model: serde_json::Value| model["state"].as_str().unwrap().to_owned();
    let off = body(
        server
            .json("/v1/models/unload", json!({"model": "mouth"}))
            .await,
    )
    .await;
    assert_eq!(
        (off["id"].as_str(), state(off.clone())),
        (Some("mouth"), "unloaded".into())
    );
    assert_eq!(
        state(body(server.get("/v1/models/mouth").await).await),
        "unloaded"
    );
    let on = body(
        server
            .json("/v1/models/load", json!({"model": "mouth"}))
            .await,
    )
    .await;
    assert_eq!(state(on), "ready");
    assert_eq!(
        error(server.json("/v1/models/load", json!({})).await)
            .await
            .1,
        "missing_required_parameter"
    );
    assert_eq!(
        error(server.json("/v1/models/load", json!({"model": "x"})).await)
            .await
            .1,
        "model_not_found"
    );
}
