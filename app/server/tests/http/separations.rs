//! `POST /v1/audio/separations` and `/v1/audio/vad`.

use std::io::{Cursor, Read};

use reqwest::multipart::Form;
use serde_json::json;
use zip::ZipArchive;

use crate::server::{Server, body, decoded, error, silence, tone, upload, warnings, wav};

const URL: &str = "/v1/audio/separations";

fn mix() -> audiocpp::audio::Audio {
    tone(1.5, 44_100, 2)
}

fn check(name: &str, bytes: &[u8]) {
    let (stem, mix) = (decoded(bytes), mix());
    assert_eq!(
        (stem.rate, stem.channels, stem.frames()),
        (44_100, 2, mix.frames()),
        "{name}"
    );
    let expected = |s: f32| {
        if name == "high" {
            s.max(0.0) * 2.0
        } else {
            s.min(0.0)
        }
    };
    let worst = stem
        .samples
        .iter()
        .zip(&mix.samples)
        .map(|(a, b)| (a - expected(*b)).abs());
    let worst = worst.fold(0.0, f32::max);
    assert!(worst < 2e-4, "{name}: {worst}");
}

#[tokio::test]
async fn the_default_is_a_zip_of_every_stem() {
    let server = Server::start().await;
    let answer = server.form(URL, Form::new().part("file", wav(mix()))).await;
    assert_eq!(answer.headers()["content-type"], "application/zip");
    let length: usize = answer.headers()["content-length"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    let bytes = answer.bytes().await.unwrap();
    assert_eq!(bytes.len(), length);
    let mut archive = ZipArchive::new(Cursor::new(bytes)).unwrap();
    assert_eq!(
        archive.file_names().collect::<Vec<_>>(),
        ["high.wav", "low.wav"]
    );
    for name in ["high", "low"] {
        let mut stem = Vec::new();
        archive
            .by_name(&format!("{name}.wav"))
            .unwrap()
            .read_to_end(&mut stem)
            .unwrap();
        check(name, &stem);
    }
    server.quiet().await;
}

#[tokio::test]
async fn parts_carry_their_names_and_lengths() {
    let server = Server::start().await;
    let answers = [
        (
            "multipart/mixed; boundary=",
            "attachment",
            server
                .post(URL)
                .header("accept", "multipart/mixed")
                .multipart(Form::new().part("file", wav(mix()))),
        ),
        (
            "multipart/form-data; boundary=",
            "form-data",
            server
                .post(URL)
                .multipart(Form::new().part("file", wav(mix())).text("package", "form")),
        ),
    ];
    for (kind, disposition, request) in answers {
        let answer = request.send().await.unwrap();
        let found = answer.headers()["content-type"]
            .to_str()
            .unwrap()
            .to_owned();
        let boundary = found
            .strip_prefix(kind)
            .unwrap_or_else(|| panic!("{found}"))
            .to_owned();
        let bytes = answer.bytes().await.unwrap();
        let mut at = 0;
        for name in ["high", "low"] {
            let rest = &bytes[at..];
            let end = rest
                .windows(4)
                .position(|window| window == b"\r\n\r\n")
                .unwrap();
            let head = std::str::from_utf8(&rest[..end]).unwrap();
            assert!(head.starts_with(&format!("--{boundary}\r\n")), "{head}");
            let expected = format!(
                "Content-Disposition: {disposition}; name=\"{name}\"; filename=\"{name}.wav\""
            );
            assert!(head.contains(&expected), "{head}");
            let length: usize = head
                .rsplit("Content-Length: ")
                .next()
                .unwrap()
                .parse()
                .unwrap();
            let from = at + end + 4;
            check(name, &bytes[from..from + length]);
            at = from + length + 2;
        }
        assert_eq!(&bytes[at..], format!("--{boundary}--\r\n").as_bytes());
    }
    server.quiet().await;
}

fn form(pairs: &[(&'static str, &'static str)]) -> Form {
    let form = Form::new().part("file", wav(mix()));
    let add = |form: Form, (name, value): &(&'static str, &'static str)| form.text(*name, *value);
    pairs.iter().fold(form, add)
}

#[tokio::test]
async fn stems_formats_and_samples_are_chosen() {
    let server = Server::start().await;
    let fields = [("stems", "low"), ("response_format", "flac")];
    let one = server.form(URL, form(&fields)).await;
    let archive = ZipArchive::new(Cursor::new(one.bytes().await.unwrap())).unwrap();
    assert_eq!(archive.file_names().collect::<Vec<_>>(), ["low.flac"]);
    // 0.5 doubled is full scale; louder is cut, and said.
    let loud = audiocpp::audio::Audio {
        samples: mix().samples.iter().map(|s| s * 1.9).collect(),
        ..mix()
    };
    let loud = || Form::new().part("file", wav(loud.clone()));
    let cut = warnings(&server.form(URL, loud()).await);
    assert!(cut[0].contains("`high` reaches 1.9"), "{cut:?}");
    let kept = server.form(URL, loud().text("samples", "f32")).await;
    assert_eq!(warnings(&kept).len(), 0);
    server.quiet().await;
}

#[tokio::test]
async fn wrong_separations_are_named_with_their_field() {
    let server = Server::start().await;
    for (field, value) in [
        ("package", "tar"),
        ("samples", "s8"),
        ("response_format", "pcm"),
        ("rest", "x"),
        ("model", "ears"),
        ("seed", "x"),
    ] {
        let found = error(server.form(URL, form(&[(field, value)])).await).await;
        let expected = (400, Some(field));
        assert_eq!((found.0, found.2.as_deref()), expected, "{}", found.3);
    }
    let both = form(&[("stems", "low"), ("two_stems", "low")]);
    let both = error(server.form(URL, both).await).await;
    assert_eq!(both.2.as_deref(), Some("two_stems"));
    let odd = error(server.form(URL, form(&[("stems", "vocals")])).await).await;
    assert_eq!(odd.0, 400);
    assert!(odd.3.contains("it has high, low"), "{}", odd.3);
    server.quiet().await;
}

#[tokio::test]
async fn speech_is_found_where_it_is() {
    let server = Server::start().await;
    let mut samples = silence(1.0).samples;
    samples.extend(tone(1.0, 16_000, 1).samples);
    samples.extend(silence(1.0).samples);
    let clip = audiocpp::audio::Audio {
        samples,
        rate: 16_000,
        channels: 1,
    };
    let form = || Form::new().part("file", wav(clip.clone()));
    let found = body(
        server
            .form("/v1/audio/vad", form().text("probabilities", "true"))
            .await,
    )
    .await;
    assert_eq!(found["segments"], json!([{"start": 1.0, "end": 2.0}]));
    assert_eq!(
        (&found["duration"], &found["speech"], &found["frame"]),
        (&json!(3.0), &json!(1.0), &json!(0.01))
    );
    assert_eq!(found["probabilities"].as_array().unwrap().len(), 300);
    let text = server
        .form("/v1/audio/vad", form().text("response_format", "text"))
        .await;
    assert_eq!(text.headers()["content-type"], "text/plain; charset=utf-8");
    assert_eq!(text.text().await.unwrap(), "1.000\t2.000\tspeech\n");
    for (field, value) in [
        ("threshold", "2"),
        ("threshold", "x"),
        ("max_speech", "0"),
        ("response_format", "vtt"),
        ("model", "ears"),
    ] {
        let found = error(
            server
                .form("/v1/audio/vad", form().text(field, value))
                .await,
        )
        .await;
        assert_eq!(
            (found.0, found.2.as_deref()),
            (400, Some(field)),
            "{}",
            found.3
        );
    }
    let odd = Form::new().part("file", upload(b"<html>".to_vec(), "a.wav"));
    assert_eq!(error(server.form("/v1/audio/vad", odd).await).await.0, 400);
}
