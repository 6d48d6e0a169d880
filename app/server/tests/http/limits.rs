//! Limits: bytes by the header and by count, seconds, text, fields, and a spool that is not there.

use std::path::PathBuf;

use futures_util::stream;
use reqwest::{
    Body,
    multipart::{Form, Part},
};
use serde_json::json;

use crate::server::{Server, error, silence, tone, upload, wav};

const URL: &str = "/v1/audio/transcriptions";

async fn small() -> Server {
    Server::with(|settings| {
        settings.max_upload_bytes = 100_000;
        settings.max_json_bytes = 10_000;
        settings.max_audio_seconds = 2.0;
    })
    .await
}

/// Rapid-MLX#193, earheart#148.
#[tokio::test]
async fn a_body_over_the_limit_is_413_by_header_and_by_count() {
    let server = small().await;
    let declared = Form::new()
        .text("model", "ears")
        .part("file", upload(vec![0; 200_000], "a.wav"));
    let found = error(server.form(URL, declared).await).await;
    assert_eq!(
        (found.0, found.1.as_str()),
        (413, "too_large"),
        "{}",
        found.3
    );
    assert!(found.3.contains("100000 bytes"), "{}", found.3);
    // Without a length in the head.
    let chunks = (0..50).map(|_| Ok::<_, std::io::Error>(vec![0_u8; 4000]));
    let part = Part::stream(Body::wrap_stream(stream::iter(chunks))).file_name("a.wav");
    let counted = Form::new().text("model", "ears").part("file", part);
    let found = error(server.form(URL, counted).await).await;
    assert_eq!(
        (found.0, found.1.as_str()),
        (413, "too_large"),
        "{}",
        found.3
    );
    let json = server.json(
        "/v1/audio/speech",
        json!({"model": "mouth", "input": "x".repeat(20_000)}),
    );
    assert_eq!(error(json.await).await.0, 413);
    server.quiet().await;
}

#[tokio::test]
async fn text_fields_have_a_limit_of_their_own() {
    let server = small().await;
    let form = Form::new()
        .text("prompt", "x".repeat(20_000))
        .part("file", wav(tone(0.1, 8000, 1)));
    let found = error(server.form(URL, form).await).await;
    assert_eq!((found.0, found.2.as_deref()), (413, Some("prompt")));
    let mut many = Form::new();
    for at in 0..300 {
        many = many.text(format!("f{at}"), "x");
    }
    assert_eq!(
        error(server.form(URL, many).await).await.1,
        "invalid_multipart"
    );
}

#[tokio::test]
async fn sound_over_the_limit_is_413() {
    let server = small().await;
    // A flac of silence is far shorter than its sound (a bomb in the small).
    let flac = audiocpp::audio::AudioFormat {
        codec: audiocpp::audio::Codec::Flac { bits: 16 },
        rate: None,
    };
    for bytes in [
        crate::server::in_format(&silence(60.0), flac),
        audiocpp::audio::wav_bytes(&tone(3.0, 8000, 1), Default::default()).unwrap(),
    ] {
        assert!(bytes.len() < 100_000);
        let form = Form::new()
            .text("model", "ears")
            .part("file", upload(bytes, "a"));
        let found = error(server.form(URL, form).await).await;
        assert_eq!(
            (found.0, found.2.as_deref()),
            (413, Some("file")),
            "{}",
            found.3
        );
        assert!(found.3.contains("at most 2 s"), "{}", found.3);
    }
    let fits = Form::new()
        .text("model", "ears")
        .part("file", wav(tone(1.9, 8000, 1)));
    assert_eq!(server.form(URL, fits).await.status(), 200);
}

#[tokio::test]
async fn more_than_axums_own_limit_is_taken() {
    let server = Server::start().await;
    let form = Form::new()
        .text("model", "ears")
        .part("file", wav(silence(100.0)));
    assert_eq!(server.form(URL, form).await.status(), 200);
}

#[tokio::test]
async fn the_head_of_a_part_cannot_fill_the_memory() {
    let server = Server::start().await;
    let head = "--b\r\nContent-Disposition: form-data; name=\"x\"\r\nX-Long: ";
    let first = stream::iter([Ok::<_, std::io::Error>(head.as_bytes().to_vec())]);
    let rest = stream::iter((0..200).map(|_| Ok(vec![b'a'; 65_536])));
    let body = Body::wrap_stream(futures_util::StreamExt::chain(first, rest));
    let request = server
        .post(URL)
        .header("content-type", "multipart/form-data; boundary=b");
    // The server may close the connection while the client still sends.
    if let Ok(answer) = request.body(body).send().await {
        assert_eq!(answer.status(), 400);
    }
    server.quiet().await;
}

#[tokio::test]
async fn a_spool_that_is_not_there_is_the_servers_fault() {
    let server =
        Server::with(|settings| settings.spool_dir = PathBuf::from("/nonexistent/spool")).await;
    let form = Form::new()
        .text("model", "ears")
        .part("file", wav(tone(0.1, 8000, 1)));
    let found = error(server.form(URL, form).await).await;
    assert_eq!((found.0, found.1.as_str()), (500, "internal_error"));
    assert!(!found.3.contains("nonexistent"), "{}", found.3);
    assert_eq!(server.get("/health").await.status(), 200);
}
