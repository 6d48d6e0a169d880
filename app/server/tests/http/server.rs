//! A server on a loopback port, and the sounds that are sent to it.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use audiocpp::audio::{Audio, AudioFormat, Reader, WavFormat, encode::encoded, wav_bytes};
use audiocpp_server::http::{self, Settings};
use reqwest::{
    Client, RequestBuilder, Response,
    multipart::{Form, Part},
};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::runner::TestRunner;

/// A running server; it ends with this.
pub struct Server {
    /// `http://127.0.0.1:port`
    pub base: String,
    /// `127.0.0.1:port`
    pub address: String,
    /// What runs its jobs.
    pub runner: Arc<TestRunner>,
    /// Its client.
    pub client: Client,
    spool: tempfile::TempDir,
    _stop: oneshot::Sender<()>,
}

impl Server {
    /// A server with the default settings.
    pub async fn start() -> Server {
        Self::with(|_| {}).await
    }

    /// A server whose settings are changed.
    pub async fn with(change: impl FnOnce(&mut Settings)) -> Server {
        let spool = tempfile::tempdir().unwrap();
        let mut settings = Settings {
            spool_dir: spool.path().to_owned(),
            ..Settings::default()
        };
        change(&mut settings);
        let runner = Arc::new(TestRunner::default());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let serve = http::serve(listener, runner.clone(), settings, async move {
            let _ = stopped.await;
        });
        tokio::spawn(async move { serve.await.unwrap() });
        Server {
            base: format!("http://{address}"),
            address,
            runner,
            client: Client::new(),
            spool,
            _stop: stop,
        }
    }

    /// Gets a path.
    pub async fn get(&self, path: &str) -> Response {
        let url = format!("{}{path}", self.base);
        self.client.get(url).send().await.unwrap()
    }

    /// A request that posts to a path.
    pub fn post(&self, path: &str) -> RequestBuilder {
        self.client.post(format!("{}{path}", self.base))
    }

    /// Posts JSON.
    pub async fn json(&self, path: &str, body: Value) -> Response {
        self.post(path).json(&body).send().await.unwrap()
    }

    /// Posts a form.
    pub async fn form(&self, path: &str, form: Form) -> Response {
        self.post(path).multipart(form).send().await.unwrap()
    }

    /// Speaks with the usual model.
    pub async fn speak(&self, extra: Value) -> Response {
        let mut body = json!({"model": "mouth", "voice": "ada", "input": "Hello. World"});
        for (key, value) in extra.as_object().unwrap() {
            body[key] = value.clone();
        }
        self.json("/v1/audio/speech", body).await
    }

    /// Transcribes 2.5 s of sound with the usual model.
    pub async fn transcribe(&self, fields: &[(&str, &str)]) -> Response {
        let mut form = Form::new().part("file", wav(tone(2.5, 16_000, 1)));
        if fields.iter().all(|(name, _)| *name != "model") {
            form = form.text("model", "ears");
        }
        for (name, value) in fields {
            form = form.text((*name).to_owned(), (*value).to_owned());
        }
        self.form("/v1/audio/transcriptions", form).await
    }

    /// Files that wait in the spool.
    pub fn spooled(&self) -> usize {
        std::fs::read_dir(self.spool.path()).unwrap().count()
    }

    /// Waits until no job runs and no file is spooled; the test fails if that does not come.
    pub async fn quiet(&self) {
        for _ in 0..500 {
            if self.runner.running.load(Ordering::SeqCst) == 0 && self.spooled() == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!(
            "{} jobs run, {} files are spooled",
            self.runner.running.load(Ordering::SeqCst),
            self.spooled()
        );
    }
}

/// The body of an answer as JSON.
pub async fn body(response: Response) -> Value {
    let text = response.text().await.unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// An error as `(status, code, param, message)`; its shape and headers are checked.
pub async fn error(response: Response) -> (u16, String, Option<String>, String) {
    let status = response.status().as_u16();
    assert!(response.headers().contains_key("x-request-id"), "{status}");
    let retry = response.headers()["x-should-retry"]
        .to_str()
        .unwrap()
        .to_owned();
    let kind = response.headers()["content-type"]
        .to_str()
        .unwrap()
        .to_owned();
    assert_eq!(kind, "application/json");
    let body = body(response).await;
    let error = body["error"]
        .as_object()
        .unwrap_or_else(|| panic!("no error: {body}"));
    let keys: Vec<&str> = error.keys().map(String::as_str).collect();
    assert_eq!(keys, ["message", "type", "param", "code"]);
    assert!(
        status >= 429 || retry == "false",
        "{status} asks for another try"
    );
    let text = |key: &str| error[key].as_str().map(str::to_owned);
    (
        status,
        text("code").unwrap(),
        text("param"),
        text("message").unwrap(),
    )
}

/// Warnings in the head of an answer.
pub fn warnings(response: &Response) -> Vec<String> {
    let all = response.headers().get_all("x-audiocpp-warning").into_iter();
    all.map(|value| value.to_str().unwrap().to_owned())
        .collect()
}

/// A tone of `seconds`.
pub fn tone(seconds: f64, rate: u32, channels: u16) -> Audio {
    let frames = (seconds * f64::from(rate)) as usize;
    let wave = |at: usize| 0.5 * (at as f32 * 2765.0 / rate as f32).sin();
    let samples = (0..frames).flat_map(|at| std::iter::repeat_n(wave(at), usize::from(channels)));
    Audio {
        samples: samples.collect(),
        rate,
        channels,
    }
}

/// Silence of `seconds` at 16 kHz.
pub fn silence(seconds: f64) -> Audio {
    let frames = (seconds * 16_000.0) as usize;
    Audio {
        samples: vec![0.0; frames],
        rate: 16_000,
        channels: 1,
    }
}

/// Sound as an upload.
pub fn wav(audio: Audio) -> Part {
    upload(wav_bytes(&audio, WavFormat::Pcm16).unwrap(), "speech.wav")
}

/// Bytes as an upload.
pub fn upload(bytes: Vec<u8>, name: &str) -> Part {
    Part::bytes(bytes).file_name(name.to_owned())
}

/// A file of the repository's sounds.
pub fn sound(name: &str) -> Vec<u8> {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/audio")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Decodes an answer.
pub fn decoded(bytes: &[u8]) -> Audio {
    let mut reader = Reader::from_bytes(bytes, "answer").unwrap();
    Audio::from_source(&mut reader, None).unwrap()
}

/// Encodes sound.
pub fn in_format(audio: &Audio, format: AudioFormat) -> Vec<u8> {
    encoded(audio, format).unwrap()
}

/// The `data` of server-sent events.
pub fn events(text: &str) -> Vec<Value> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("data:"));
    lines
        .map(|line| serde_json::from_str(line.trim()).unwrap())
        .collect()
}
