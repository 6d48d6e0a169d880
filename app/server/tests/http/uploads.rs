//! What users upload: every container, mislabelled, damaged, silent, short, empty.

use reqwest::multipart::Form;
use serde_json::{Value, json};

use crate::server::{Server, body, error, silence, sound, tone, upload, warnings, wav};

async fn send(server: &Server, bytes: Vec<u8>, name: &str, kind: &str) -> reqwest::Response {
    let part = upload(bytes, name).mime_str(kind).unwrap();
    let form = Form::new().part("file", part).text("model", "ears");
    server.form("/v1/audio/transcriptions", form).await
}

async fn seconds(response: reqwest::Response) -> f64 {
    assert_eq!(response.status(), 200);
    body(response).await["usage"]["seconds"].as_f64().unwrap()
}

/// whisper.cpp#2599, llamafile#556 and #728, whisper-asr-webservice#375, renfield#535, MinusPod#556,
/// speakr#340's well-formed kin: what browsers and telephones record is read.
#[tokio::test]
async fn every_container_is_told_by_its_content() {
    let server = Server::start().await;
    let files = [
        "cbr.mp3",
        "vbr.mp3",
        "cover.mp3",
        "clip.flac",
        "opus.ogg",
        "vorbis.ogg",
        "opus.webm",
        "opus_live.webm",
        "film.webm",
        "moov_first.m4a",
        "moov_last.m4a",
        "fragmented.m4a",
        "alac.m4a",
        "film.mp4",
        "mulaw.wav",
        "alaw.wav",
    ];
    for file in files {
        let own = seconds(send(&server, sound(file), file, "audio/webm;codecs=opus").await).await;
        assert!(own > 0.25, "{file}: {own} s");
        // openwhispr#2028: neither name nor type are trusted.
        let lied = send(&server, sound(file), "talk.wav", "image/png").await;
        assert_eq!(seconds(lied).await, own, "{file} called talk.wav");
    }
    server.quiet().await;
}

#[tokio::test]
async fn what_is_no_sound_is_an_error_of_the_file() {
    let server = Server::start().await;
    let webm = sound("opus_live.webm");
    let headless = webm[webm.len() / 3..].to_vec();
    let cases = [
        (Vec::new(), "empty_file", "empty"),
        (
            b"<!doctype html><html><body>not found</body></html>".to_vec(),
            "invalid_input",
            "not audio",
        ),
        (sound("silent.mp4"), "invalid_input", "no audio track"),
        // speakr#340: the chunks of a recorder without the first.
        (headless, "invalid_input", ""),
        (vec![0x5a; 5000], "invalid_input", ""),
        (b"RIFF\x24\0\0\0WAVEfmt ".to_vec(), "invalid_input", ""),
    ];
    for (bytes, code, words) in cases {
        let found = error(send(&server, bytes, "a.mp3", "audio/mpeg").await).await;
        assert_eq!(
            (found.0, found.1.as_str(), found.2.as_deref()),
            (400, code, Some("file")),
            "{}",
            found.3
        );
        assert!(found.3.contains(words), "{}", found.3);
        assert!(
            !found.3.contains("audiocpp-"),
            "no path of the server: {}",
            found.3
        );
    }
    server.quiet().await;
}

/// faster-whisper#1060, whisper.cpp#1603, diart#118, subgen#21: silence and snippets are no errors.
#[tokio::test]
async fn silence_and_snippets_are_empty_text() {
    let server = Server::start().await;
    for audio in [silence(30.0), silence(0.3), silence(0.001)] {
        for format in ["json", "verbose_json", "srt", "text"] {
            let form = Form::new()
                .part("file", wav(audio.clone()))
                .text("model", "ears")
                .text("response_format", format);
            let answer = server.form("/v1/audio/transcriptions", form).await;
            assert_eq!(answer.status(), 200);
            let text = answer.text().await.unwrap();
            if format == "verbose_json" {
                let value: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(
                    (&value["text"], &value["segments"]),
                    (&json!(""), &json!([]))
                );
            } else if format != "json" {
                assert_eq!(text.trim(), "");
            }
        }
    }
}

#[tokio::test]
async fn damage_is_repaired_and_told() {
    let server = Server::start().await;
    let mut bytes = audiocpp::audio::wav_bytes(&tone(2.0, 16_000, 1), Default::default()).unwrap();
    bytes.truncate(bytes.len() / 2);
    let answer = send(&server, bytes, "cut.wav", "audio/wav").await;
    assert!(!warnings(&answer).is_empty(), "a cut file is told");
    let found = seconds(answer).await;
    assert!((found - 1.0).abs() < 0.01, "{found}");
}

/// SadTalker#1043, nodejs-whisper#259: names of files are never used.
#[tokio::test]
async fn names_of_files_do_nothing() {
    let server = Server::start().await;
    let bytes = || audiocpp::audio::wav_bytes(&tone(0.5, 16_000, 1), Default::default()).unwrap();
    for name in [
        "../../etc/passwd",
        "$(touch x).wav",
        "a;rm -rf .wav",
        "CON",
        "🙂.wav",
        &"n".repeat(4096),
    ] {
        let answer = send(&server, bytes(), name, "audio/wav").await;
        assert_eq!(seconds(answer).await, 0.5, "{name}");
    }
    server.quiet().await;
}
