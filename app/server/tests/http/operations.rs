//! `/health`, `/ready`, `/metrics`, `/v1/status`, the description, keys, origins, unknown routes.

use serde_json::json;

use crate::server::{Server, body, error};

#[tokio::test]
async fn the_server_tells_how_it_is() {
    let server = Server::start().await;
    let health = body(server.get("/health").await).await;
    assert_eq!(
        (&health["status"], &health["models"]),
        (&json!("ok"), &json!(12))
    );
    let ready = server.get("/ready").await;
    assert_eq!(ready.status(), 200);
    assert_eq!(body(ready).await["models"]["ears"], "ready");
    let status = body(server.get("/v1/status").await).await;
    assert_eq!(status["models"][0]["id"], "ears");
    assert_eq!(status["models"][0]["memory_bytes"], 1000);
    assert_eq!(status["model_memory_bytes"], 12_000);
    assert!(status["server_memory_bytes"].as_u64().unwrap() > 1 << 20);
    assert_eq!(status["limits"]["text_characters"], 100_000);
}

#[tokio::test]
async fn measurements_have_known_labels_alone() {
    let server = Server::start().await;
    server
        .speak(json!({"response_format": "pcm"}))
        .await
        .bytes()
        .await
        .unwrap();
    server.get("/v1/models/what/ever").await;
    server.get("/nowhere/at/all").await;
    let answer = server.get("/metrics").await;
    assert!(
        answer.headers()["content-type"]
            .to_str()
            .unwrap()
            .starts_with("text/plain; version=0.0.4")
    );
    let text = answer.text().await.unwrap();
    for line in [
        r#"audiocpp_http_requests_total{route="/v1/audio/speech",method="POST",status="200"} 1"#,
        r#"audiocpp_http_requests_total{route="/v1/models/{*id}",method="GET",status="404"} 1"#,
        r#"audiocpp_http_requests_total{route="none",method="GET",status="404"} 1"#,
        r#"audiocpp_http_jobs_total{model="mouth",task="tts",result="ok"} 1"#,
        r#"audiocpp_http_job_seconds_count{model="mouth",task="tts"} 1"#,
        r#"audiocpp_real_time_factor_count{model="mouth",task="tts"} 1"#,
        r#"audiocpp_first_output_seconds_count{model="mouth",task="tts"} 1"#,
        r#"audiocpp_model_fallback{model="gate"} 1"#,
        r#"audiocpp_model_loaded{model="ears"} 1"#,
        "# TYPE audiocpp_real_time_factor histogram",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("nowhere") && !text.contains("what/ever"));
}

#[tokio::test]
async fn unknown_routes_and_methods_are_json() {
    let server = Server::start().await;
    let near = [
        ("/v1/audio/speach", "/v1/audio/speech"),
        ("/v1/audio/transcription", "/v1/audio/transcriptions"),
        ("/v1/v1/models", "/v1/models"),
        ("/api/v1/audio/speech", "/v1/audio/speech"),
        ("/helth", "/health"),
    ];
    for (path, meant) in near {
        let found = error(server.get(path).await).await;
        assert_eq!((found.0, found.1.as_str()), (404, "unknown_url"));
        assert!(
            found.3.contains(&format!("did you mean `{meant}`?")),
            "{path}: {}",
            found.3
        );
    }
    let far = error(server.get("/wp-login.php").await).await;
    assert!(!far.3.contains("did you mean"), "{}", far.3);
    let method = server.get("/v1/audio/speech").await;
    assert_eq!(method.headers()["allow"], "POST");
    assert_eq!(error(method).await.0, 405);
}

#[tokio::test]
async fn a_bug_in_a_route_is_a_500_and_not_the_end() {
    let server = Server::start().await;
    let found = error(server.transcribe(&[("model", "panicking-ears")]).await).await;
    assert_eq!((found.0, found.1.as_str()), (500, "internal_error"));
    assert_eq!(server.transcribe(&[]).await.status(), 200);
    server.quiet().await;
}

#[tokio::test]
async fn keys_open_everything_but_the_public_pages() {
    let server = Server::with(|settings| settings.api_keys = vec!["k1".into(), "k2".into()]).await;
    for path in [
        "/v1/models",
        "/metrics",
        "/v1/status",
        "/models",
        "/nowhere",
    ] {
        let answer = server.get(path).await;
        assert_eq!(answer.headers()["www-authenticate"], "Bearer");
        let found = error(answer).await;
        assert_eq!(
            (found.0, found.1.as_str()),
            (401, "invalid_api_key"),
            "{path}"
        );
        let get = || server.client.get(format!("{}{path}", server.base));
        let wrong = get().bearer_auth("k").send().await.unwrap();
        assert_eq!(wrong.status(), 401, "{path}");
        for key in ["k1", "k2"] {
            let right = get().bearer_auth(key).send().await.unwrap();
            assert_ne!(right.status(), 401, "{path}");
            let right = get().header("x-api-key", key).send().await.unwrap();
            assert_ne!(right.status(), 401, "{path}");
        }
    }
    for path in ["/health", "/ready", "/docs", "/openapi.json", "/"] {
        assert_eq!(server.get(path).await.status(), 200, "{path}");
    }
}

#[tokio::test]
async fn pages_of_other_origins_are_kept_out_unless_they_are_let_in() {
    let closed = Server::start().await;
    let from = |server: &Server, origin: &str| {
        let speech = json!({"model": "mouth", "input": "x"});
        server
            .post("/v1/audio/speech")
            .header("origin", origin)
            .json(&speech)
            .send()
    };
    let foreign = error(from(&closed, "https://evil.example").await.unwrap()).await;
    assert_eq!((foreign.0, foreign.1.as_str()), (403, "origin_not_allowed"));
    let own = from(&closed, &closed.base).await.unwrap();
    assert_eq!(own.status(), 200);
    assert!(
        !own.headers().contains_key("access-control-allow-origin"),
        "CORS is off"
    );
    let open =
        Server::with(|settings| settings.cors_origins = vec!["https://app.example".into()]).await;
    let allowed = from(&open, "https://app.example").await.unwrap();
    assert_eq!(
        allowed.headers()["access-control-allow-origin"],
        "https://app.example"
    );
    let url = format!("{}/v1/audio/speech", open.base);
    let preflight = open
        .client
        .request(reqwest::Method::OPTIONS, url)
        .header("origin", "https://app.example")
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "authorization,content-type",
        );
    let preflight = preflight.send().await.unwrap();
    assert_eq!(preflight.status(), 200);
    assert_eq!(
        preflight.headers()["access-control-allow-headers"],
        "authorization,content-type"
    );
    assert_eq!(
        from(&open, "https://evil.example").await.unwrap().status(),
        403
    );
}

#[tokio::test]
async fn the_description_and_the_pages_are_there() {
    let server = Server::start().await;
    let api = body(server.get("/openapi.json").await).await;
    assert!(api["openapi"].as_str().unwrap().starts_with("3."));
    let speech = &api["paths"]["/v1/audio/speech"]["post"]["requestBody"]["content"];
    assert_eq!(
        speech["application/json"]["schema"]["$ref"],
        "#/components/schemas/SpeechBody"
    );
    assert!(api["components"]["schemas"]["TranscriptionForm"]["properties"]["file"].is_object());
    for page in ["/", "/docs"] {
        let answer = server.get(page).await;
        assert!(
            answer.headers()["content-type"]
                .to_str()
                .unwrap()
                .starts_with("text/html")
        );
        assert!(answer.headers().contains_key("content-security-policy"));
        let text = answer.text().await.unwrap();
        assert!(
            !text.contains("https://") && !text.contains("http://"),
            "{page} loads nothing"
        );
    }
}
