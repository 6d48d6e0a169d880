//! `POST /v1/audio/transcriptions` and `/translations`: fields, forms of the answer, errors.

use audiocpp_server::job::Job;
use reqwest::multipart::{Form, Part};
use serde_json::json;

use crate::{
    runner::TONGUES,
    server::{Server, body, error, tone, warnings, wav},
};

fn asked(server: &Server) -> Job {
    server.runner.last().1
}

#[tokio::test]
async fn json_has_the_text_and_its_usage() {
    let server = Server::start().await;
    let answer = server.transcribe(&[]).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "application/json");
    let expected = format!("second 0 {TONGUES} second 1 {TONGUES} second 2 {TONGUES}");
    let found = body(answer).await;
    assert_eq!(
        found,
        json!({"text": expected, "usage": {"type": "duration", "seconds": 2.5}})
    );
}

/// speaches#58, #29 and LocalAI#9306: verbose_json works without granularities, and has words when
/// they are asked for.
#[tokio::test]
async fn verbose_json_has_every_field() {
    let server = Server::start().await;
    let answer = body(
        server
            .transcribe(&[("response_format", "verbose_json")])
            .await,
    )
    .await;
    assert_eq!(answer["task"], "transcribe");
    assert_eq!(answer["language"], "english");
    assert_eq!(answer["duration"], 2.5);
    assert!(answer.get("words").is_none());
    let segments = answer["segments"].as_array().unwrap();
    assert_eq!(segments.len(), 3);
    let keys: Vec<&String> = segments[0].as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "id",
            "seek",
            "start",
            "end",
            "text",
            "tokens",
            "temperature",
            "avg_logprob",
            "compression_ratio",
            "no_speech_prob"
        ]
    );
    assert_eq!(segments[2]["end"], 2.5);
    for field in ["timestamp_granularities[]", "timestamp_granularities"] {
        let fields = [("response_format", "verbose_json"), (field, "word")];
        let words = body(server.transcribe(&fields).await).await;
        assert_eq!(words["words"].as_array().unwrap().len(), 6);
        assert_eq!(
            words["words"][1],
            json!({"word": TONGUES, "start": 0.5, "end": 1.0})
        );
        assert!(words.get("segments").is_none(), "only words were asked for");
    }
    let both = [
        ("response_format", "verbose_json"),
        ("timestamp_granularities[]", "word"),
        ("timestamp_granularities[]", "segment"),
    ];
    let both = body(server.transcribe(&both).await).await;
    assert!(both["words"].is_array() && both["segments"].is_array());
}

#[tokio::test]
async fn texts_and_subtitles_are_text() {
    let server = Server::start().await;
    let cases = [
        (
            "text",
            "text/plain; charset=utf-8",
            format!("second 0 {TONGUES} second 1"),
        ),
        (
            "srt",
            "text/plain; charset=utf-8",
            format!("1\n00:00:00,000 --> 00:00:01,000\nsecond 0 {TONGUES}"),
        ),
        (
            "vtt",
            "text/vtt; charset=utf-8",
            format!("WEBVTT\n\n00:00:00.000 --> 00:00:01.000\nsecond 0 {TONGUES}"),
        ),
    ];
    for (format, kind, beginning) in cases {
        let answer = server.transcribe(&[("response_format", format)]).await;
        assert_eq!(answer.headers()["content-type"], kind);
        let text = answer.text().await.unwrap();
        assert!(text.starts_with(&beginning), "{format}: {text}");
    }
}

#[tokio::test]
async fn every_field_reaches_the_model() {
    let server = Server::start().await;
    let answer = server
        .transcribe(&[
            ("language", "German"),
            ("prompt", "Dr. Smith"),
            ("keywords[]", "ggml"),
            ("keywords[]", "Opus"),
            ("temperature", "0.5"),
            ("beam_size", "5"),
            ("seed", "9"),
            ("timestamp_granularities[]", "word"),
            ("response_format", "verbose_json"),
            ("options", "{\"patience\": 2.0}"),
        ])
        .await;
    assert_eq!(
        (answer.status().as_u16(), warnings(&answer).len()),
        (200, 0)
    );
    assert_eq!(body(answer).await["language"], "german");
    let Job::Transcribe {
        request,
        speech_only,
        ..
    } = asked(&server)
    else {
        panic!()
    };
    assert_eq!(request.language.as_deref(), Some("de"));
    assert_eq!(request.prompt.as_deref(), Some("ggml, Opus. Dr. Smith"));
    assert_eq!(
        (request.temperature, request.beam_size, request.seed),
        (Some(0.5), Some(5), Some(9))
    );
    assert!(request.words && !request.translate && speech_only.is_none());
    assert_eq!(request.options.float("patience"), Some(2.0));
}

#[tokio::test]
async fn chunking_means_voice_activity() {
    let server = Server::start().await;
    let cases: [&[(&str, &str)]; 4] = [
        &[("chunking_strategy", "auto")],
        &[("chunking_strategy", "server_vad")],
        &[
            ("chunking_strategy[type]", "server_vad"),
            ("chunking_strategy[threshold]", "0.7"),
            ("chunking_strategy[prefix_padding_ms]", "300"),
        ],
        &[(
            "chunking_strategy",
            "{\"type\": \"server_vad\", \"threshold\": 0.7, \"prefix_padding_ms\": 300}",
        )],
    ];
    for (at, fields) in cases.into_iter().enumerate() {
        let answer = server.transcribe(fields).await;
        assert_eq!(answer.status(), 200, "{fields:?}");
        let Job::Transcribe {
            speech_only: Some(speech),
            ..
        } = asked(&server)
        else {
            panic!()
        };
        let expected = if at < 2 { (0.5, 0.2) } else { (0.7, 0.3) };
        assert_eq!(
            (speech.detect.rules.threshold, speech.chunks.padding),
            expected
        );
    }
    for wrong in [
        "fixed",
        "{\"type\": \"server_vad\", \"treshold\": 1}",
        "{\"type\": 3}",
    ] {
        let found = error(server.transcribe(&[("chunking_strategy", wrong)]).await).await;
        assert_eq!(
            (found.0, found.2.as_deref()),
            (400, Some("chunking_strategy")),
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn translations_are_english() {
    let server = Server::start().await;
    let form = Form::new()
        .part("file", wav(tone(1.0, 16_000, 1)))
        .text("model", "whisper-1")
        .text("response_format", "verbose_json")
        .text("language", "fr");
    let answer = server.form("/v1/audio/translations", form).await;
    assert!(warnings(&answer)[0].contains("stands in"));
    let answer = body(answer).await;
    assert_eq!(
        (answer["task"].as_str(), answer["language"].as_str()),
        (Some("translate"), Some("english"))
    );
    let Job::Transcribe { request, .. } = asked(&server) else {
        panic!()
    };
    assert!(request.translate);
}

#[tokio::test]
async fn wrong_values_are_named_with_their_field() {
    let server = Server::start().await;
    let wrong = [
        ("response_format", "xml", "unsupported_value"),
        ("response_format", "diarized_json", "unsupported_value"),
        ("temperature", "2", "invalid_value"),
        ("temperature", "hot", "invalid_value"),
        ("language", "klingonese", "invalid_value"),
        ("timestamp_granularities", "letter", "invalid_value"),
        ("stream", "perhaps", "invalid_value"),
        ("include", "logprobs", "unsupported_value"),
        ("known_speaker_names", "agent", "unsupported_value"),
        ("beam_size", "-1", "invalid_value"),
        ("model", "mouth", "unsupported_value"),
        ("model", "eras", "model_not_found"),
    ];
    for (field, value, code) in wrong {
        let found = error(server.transcribe(&[(field, value)]).await).await;
        assert_eq!(
            (found.1.as_str(), found.2.as_deref()),
            (code, Some(field)),
            "{}",
            found.3
        );
    }
    let diarized = error(
        server
            .transcribe(&[("response_format", "diarized_json")])
            .await,
    )
    .await
    .3;
    assert!(diarized.contains("diarization model"), "{diarized}");
    assert!(server.runner.jobs.lock().unwrap().is_empty());
    server.quiet().await;
}

#[tokio::test]
async fn unknown_fields_are_ignored_and_named() {
    let server = Server::start().await;
    let answer = server.transcribe(&[("langage", "de"), ("zzz", "1")]).await;
    let said = warnings(&answer).join("\n");
    assert!(
        said.contains("`langage` is not known and was ignored; did you mean `language`?"),
        "{said}"
    );
    assert!(said.contains("`zzz` is not known"), "{said}");
}

/// gpustack#4196 and the JavaScript client: the file may come before everything else.
#[tokio::test]
async fn fields_come_in_any_order() {
    let server = Server::start().await;
    let file = || wav(tone(1.0, 16_000, 1));
    let orders = [
        Form::new()
            .part("file", file())
            .text("model", "ears")
            .text("response_format", "text"),
        Form::new()
            .text("response_format", "text")
            .part("file", file())
            .text("model", "ears"),
        Form::new()
            .text("model", "ears")
            .text("response_format", "text")
            .part("file", file()),
    ];
    for form in orders {
        let answer = server.form("/audio/transcriptions", form).await;
        assert_eq!(
            answer.text().await.unwrap(),
            format!("second 0 {TONGUES}\n")
        );
    }
}

/// whisper.cpp#1614: curl without `@`.
#[tokio::test]
async fn a_file_that_is_text_is_explained() {
    let server = Server::start().await;
    let form = Form::new().text("file", "talk.wav").text("model", "ears");
    let found = error(server.form("/v1/audio/transcriptions", form).await).await;
    assert_eq!((found.0, found.2.as_deref()), (400, Some("file")));
    assert!(
        found.3.contains("text field of 8 bytes") && found.3.contains("file=@talk.wav"),
        "{}",
        found.3
    );
    let none = error(
        server
            .form(
                "/v1/audio/transcriptions",
                Form::new().text("model", "ears"),
            )
            .await,
    )
    .await;
    assert_eq!(
        (none.0, none.1.as_str()),
        (400, "missing_required_parameter")
    );
}

#[tokio::test]
async fn forms_that_are_broken_are_answered() {
    let server = Server::start().await;
    let url = "/v1/audio/transcriptions";
    let twice = Form::new()
        .part("file", wav(tone(0.1, 16_000, 1)))
        .part("file", wav(tone(0.1, 16_000, 1)));
    assert_eq!(
        error(server.form(url, twice).await).await.2.as_deref(),
        Some("file")
    );
    let other = Form::new().part("sound", wav(tone(0.1, 16_000, 1)));
    let found = error(server.form(url, other).await).await;
    assert_eq!(
        (found.1.as_str(), found.2.as_deref()),
        ("unexpected_file", Some("sound"))
    );
    let bytes = Form::new().part("model", Part::bytes(vec![0xff, 0xfe]));
    assert_eq!(
        error(server.form(url, bytes).await).await.2.as_deref(),
        Some("model")
    );
    let raw = |kind: &'static str, text: &'static str| {
        server
            .post(url)
            .header("content-type", kind)
            .body(text)
            .send()
    };
    let cut = raw(
        "multipart/form-data; boundary=b",
        "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nea",
    );
    assert_eq!(error(cut.await.unwrap()).await.1, "invalid_multipart");
    let nameless = raw(
        "multipart/form-data; boundary=b",
        "--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--\r\n",
    );
    assert_eq!(error(nameless.await.unwrap()).await.1, "invalid_multipart");
    let unbound = raw("multipart/form-data", "x").await.unwrap();
    assert_eq!(error(unbound).await.1, "invalid_multipart");
    let plain = raw("text/plain", "x").await.unwrap();
    assert_eq!(error(plain).await.1, "invalid_content_type");
    server.quiet().await;
}

#[tokio::test]
async fn paths_of_the_server_are_taken_below_the_roots_alone() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    let sound = audiocpp::audio::wav_bytes(&tone(1.0, 16_000, 1), Default::default()).unwrap();
    std::fs::write(inside.join("a.wav"), &sound).unwrap();
    std::fs::write(folder.path().join("b.wav"), &sound).unwrap();
    let off = Server::start().await;
    let url = "/v1/audio/transcriptions";
    let found = error(
        off.json(url, json!({"model": "ears", "audio": "a.wav"}))
            .await,
    )
    .await;
    assert_eq!((found.0, found.2.as_deref()), (400, Some("audio")));
    let server = Server::with(|settings| settings.allowed_audio_roots = vec![inside.clone()]).await;
    let ask = |path: String| {
        server.json(
            url,
            json!({"model": "ears", "audio_path": path, "response_format": "text"}),
        )
    };
    for path in [
        "a.wav".to_owned(),
        inside.join("a.wav").display().to_string(),
    ] {
        assert_eq!(
            ask(path).await.text().await.unwrap(),
            format!("second 0 {TONGUES}\n")
        );
    }
    let outside = folder.path().join("b.wav").display().to_string();
    let mut answers = Vec::new();
    for path in [
        "../b.wav",
        "/etc/passwd",
        "missing.wav",
        &outside,
        "..%2fb.wav",
        "a.wav\0",
        "CON",
    ] {
        answers.push(error(ask(path.to_owned()).await).await);
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "all the same: {answers:?}");
    assert_eq!(
        (answers[0].0, answers[0].1.as_str()),
        (404, "file_not_found")
    );
}
