//! `POST /v1/audio/speech`: fields, voices, limits, errors.

use audiocpp_server::job::Job;
use serde_json::{Value, json};

use crate::{
    runner::{FRAMES_PER_CHARACTER, MOUTH_RATE},
    server::{Server, body, decoded, error, warnings},
};

/// Seconds that `mouth` speaks a text.
fn seconds(text: &str) -> f64 {
    (text.chars().count() * FRAMES_PER_CHARACTER) as f64 / f64::from(MOUTH_RATE)
}

fn asked(server: &Server) -> audiocpp::engine::SynthesizeRequest {
    match server.runner.last().1 {
        Job::Synthesize { request } => request,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_default_is_mp3_and_as_long_as_the_text() {
    let server = Server::start().await;
    let answer = server.speak(json!({})).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "audio/mpeg");
    let sound = decoded(&answer.bytes().await.unwrap());
    let expected = seconds("Hello. World");
    assert!(
        (sound.duration() - expected).abs() < 0.1,
        "{} {expected}",
        sound.duration()
    );
}

#[tokio::test]
async fn every_field_reaches_the_model() {
    let server = Server::start().await;
    let answer = server
        .speak(json!({
            "voice": {"id": "bob"}, "speed": 2.0, "seed": 7, "language": "de",
            "instructions": "whisper", "normalize": "false", "response_format": "wav",
            "pronunciations": {"tomato": "təˈmɑːtəʊ"}, "options": {"noise_scale": 0.5},
        }))
        .await;
    assert_eq!(warnings(&answer), [""; 0]);
    let sound = decoded(&answer.bytes().await.unwrap());
    assert!((sound.duration() - seconds("Hello. World") / 2.0).abs() < 0.01);
    let request = asked(&server);
    assert_eq!(request.voice.as_deref(), Some("bob"));
    assert_eq!((request.speed, request.seed), (Some(2.0), Some(7)));
    assert_eq!(request.language.as_deref(), Some("de"));
    assert_eq!(request.instructions.as_deref(), Some("whisper"));
    assert!(!request.normalize && !request.stream);
    assert_eq!(request.pronunciations["tomato"], "təˈmɑːtəʊ");
    assert_eq!(request.options.float("noise_scale"), Some(0.5));
}

#[tokio::test]
async fn openai_voices_and_models_reach_what_there_is_and_say_so() {
    let server = Server::start().await;
    let answer = server
        .speak(json!({"voice": "alloy", "model": "tts-1"}))
        .await;
    assert_eq!(answer.status(), 200);
    let said = warnings(&answer).join("\n");
    assert!(
        said.contains("`mouth` stands in for the model `tts-1`"),
        "{said}"
    );
    assert!(
        said.contains("no voice `alloy`") && said.contains("`ada` speaks"),
        "{said}"
    );
    assert_eq!(asked(&server).voice.as_deref(), Some("ada"));
    let default = server.speak(json!({"voice": "default"})).await;
    assert_eq!(warnings(&default), [""; 0]);
    assert_eq!(asked(&server).voice.as_deref(), Some("ada"));
    let none = server.speak(json!({"voice": null})).await;
    assert_eq!(none.status(), 200);
}

#[tokio::test]
async fn an_alias_is_a_model_name() {
    let server = Server::with(|settings| {
        settings.aliases.insert("voice".into(), "mouth".into());
    })
    .await;
    let answer = server.speak(json!({"model": "voice"})).await;
    assert_eq!(
        (answer.status().as_u16(), warnings(&answer).len()),
        (200, 0)
    );
}

#[tokio::test]
async fn unknown_keys_are_ignored_and_named() {
    let server = Server::start().await;
    let answer = server.speak(json!({"sample_rat": 8000})).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(
        warnings(&answer),
        ["`sample_rat` is not known and was ignored"]
    );
}

#[tokio::test]
async fn wrong_values_are_named_with_their_field() {
    let server = Server::start().await;
    let wrong = [
        (json!({"speed": 5.0}), 400, "invalid_value", "speed"),
        (json!({"speed": "fast"}), 400, "invalid_value", "speed"),
        (json!({"voice": 3}), 400, "invalid_value", "voice"),
        (json!({"voice": "eve"}), 404, "voice_not_found", "voice"),
        (json!({"model": "mout"}), 404, "model_not_found", "model"),
        (json!({"model": "ears"}), 400, "unsupported_value", "model"),
        (
            json!({"model": null}),
            400,
            "missing_required_parameter",
            "model",
        ),
        (
            json!({"input": null}),
            400,
            "missing_required_parameter",
            "input",
        ),
        (json!({"input": " \n"}), 400, "empty_input", "input"),
        (
            json!({"response_format": "aac"}),
            400,
            "unsupported_value",
            "response_format",
        ),
        (
            json!({"stream_format": "ws"}),
            400,
            "invalid_value",
            "stream_format",
        ),
        (json!({"stream": "maybe"}), 400, "invalid_value", "stream"),
        (
            json!({"voice_ref": "data:audio/wav;base64,%"}),
            400,
            "invalid_value",
            "voice_ref",
        ),
    ];
    for (extra, status, code, param) in wrong {
        let found = error(server.speak(extra.clone()).await).await;
        let expected = (status, code.to_owned(), Some(param.to_owned()));
        assert_eq!(
            (found.0, found.1, found.2),
            expected,
            "{extra}: {}",
            found.3
        );
    }
    assert!(
        server.runner.jobs.lock().unwrap().is_empty(),
        "no job of a wrong request runs"
    );
}

#[tokio::test]
async fn errors_say_what_would_be_right() {
    let server = Server::start().await;
    let near = error(server.speak(json!({"model": "mout"})).await).await.3;
    assert!(near.contains("did you mean `mouth`?"), "{near}");
    let formats = error(server.speak(json!({"response_format": "aac"})).await)
        .await
        .3;
    assert!(formats.contains("mp3, opus, flac, wav, pcm"), "{formats}");
}

/// Texts of moeru-ai/airi#454, CosyVoice#710, pipecat#45, cosyvoice.cpp#31.
#[tokio::test]
async fn what_cannot_be_spoken_is_an_error_of_its_own() {
    let server = Server::start().await;
    for text in ["...", "—", "🙂", "?!"] {
        for extra in [
            json!({}),
            json!({"stream_format": "sse"}),
            json!({"response_format": "wav"}),
        ] {
            let mut extra = extra;
            extra["input"] = json!(text);
            let found = error(server.speak(extra).await).await;
            assert_eq!(
                (found.0, found.1.as_str()),
                (400, "nothing_to_speak"),
                "{text}"
            );
            assert_eq!(found.2.as_deref(), Some("input"));
        }
    }
    let digits = server.speak(json!({"input": "42"})).await;
    assert_eq!(digits.status(), 200);
}

#[tokio::test]
async fn a_text_over_the_limit_is_refused() {
    let server = Server::with(|settings| settings.max_text_chars = 10).await;
    let (status, _, param, message) =
        error(server.speak(json!({"input": "ä".repeat(11)})).await).await;
    assert_eq!((status, param.as_deref()), (400, Some("input")));
    assert!(message.contains("11 characters, at most 10"), "{message}");
    let fits = server.speak(json!({"input": "ä".repeat(10)})).await;
    assert_eq!(fits.status(), 200);
}

#[tokio::test]
async fn bodies_that_are_not_json_are_told_where() {
    let server = Server::start().await;
    let post = || server.post("/v1/audio/speech");
    let json = |text: &'static str| post().header("content-type", "application/json").body(text);
    let broken = error(json("{\"model\": ").send().await.unwrap()).await;
    assert_eq!((broken.0, broken.1.as_str()), (400, "invalid_json"));
    assert!(broken.3.contains("line 1"), "{}", broken.3);
    let list = error(json("[1]").send().await.unwrap()).await;
    assert_eq!(list.0, 400);
    let twice = error(json("{} {}").send().await.unwrap()).await;
    assert_eq!(twice.1, "invalid_json");
    let form = error(post().body("model=mouth").send().await.unwrap()).await;
    assert_eq!(form.1, "invalid_content_type");
}

/// Voices made from recordings are copied out of data URLs with any parameters (clawcodex#815).
#[tokio::test]
async fn a_recording_in_a_data_url_is_the_reference() {
    use base64::{Engine, prelude::BASE64_STANDARD};
    let server = Server::start().await;
    let webm = BASE64_STANDARD.encode(crate::server::sound("opus.webm"));
    let url = format!("data:audio/webm;codecs=opus;base64,{webm}");
    let answer = server
        .speak(json!({"voice_ref": url, "reference_text": "hi"}))
        .await;
    assert_eq!(answer.status(), 200);
    let request = asked(&server);
    let [reference] = &request.references[..] else {
        panic!("a recording")
    };
    assert!(reference.duration() > 0.25 && reference.rate == 48_000);
    assert_eq!(
        (request.voice, request.reference_text.as_deref()),
        (None, Some("hi"))
    );
}

#[tokio::test]
async fn a_model_that_is_not_loaded_tells_its_voices_first() {
    let server = Server::start().await;
    server
        .json("/v1/models/unload", json!({"model": "mouth"}))
        .await;
    let answer = server.speak(json!({"voice": "bob"})).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(asked(&server).voice.as_deref(), Some("bob"));
}

#[tokio::test]
async fn the_head_tells_rate_and_length() {
    let server = Server::start().await;
    let wav = server.speak(json!({"response_format": "wav"})).await;
    assert_eq!(wav.headers()["x-sample-rate"], "22050");
    assert_eq!(wav.headers()["x-audio-duration"], "1.200");
    let pcm = server.speak(json!({"response_format": "pcm"})).await;
    assert_eq!(pcm.headers()["x-sample-rate"], "24000");
    let opus = server.speak(json!({"response_format": "opus"})).await;
    assert_eq!(opus.headers()["x-sample-rate"], "24000");
}

#[tokio::test]
async fn the_request_id_is_handed_on() {
    let server = Server::start().await;
    let request = server.post("/audio/speech").header("x-request-id", "abc-1");
    let speech = json!({"model": "mouth", "input": "x"});
    let answer = request.json::<Value>(&speech).send().await.unwrap();
    assert_eq!(answer.headers()["x-request-id"], "abc-1");
    assert_eq!(server.runner.last().2, "abc-1");
    let other = server.json("/v1/audio/speech", json!({})).await;
    assert!(
        other.headers()["x-request-id"]
            .to_str()
            .unwrap()
            .starts_with("req_")
    );
    assert!(body(other).await["error"]["message"].is_string());
}
