//! Conversations over loopback, with a runner whose models are made up.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};

use super::{
    Settings,
    frame::{self, Event},
    serve,
    test_runner::{TestRunner, recogniser, speaker},
};

struct House {
    address: std::net::SocketAddr,
    runner: Arc<TestRunner>,
    spool: tempfile::TempDir,
    stop: Option<oneshot::Sender<()>>,
    server: JoinHandle<std::io::Result<()>>,
}

impl House {
    async fn new(change: impl FnOnce(&mut Settings)) -> House {
        let runner = Arc::new(TestRunner {
            models: vec![
                recogniser("tiny.en", &["en"]),
                recogniser("base", &["de", "en"]),
                speaker("joe", &[("joe", "en-us")]),
            ],
            ..TestRunner::default()
        });
        let spool = tempfile::tempdir().unwrap();
        let mut settings = Settings {
            spool_dir: spool.path().to_owned(),
            ..Settings::default()
        };
        change(&mut settings);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let ended = async {
            let _ = stopped.await;
        };
        let server = tokio::spawn(serve(listener, runner.clone(), settings, ended));
        House {
            address,
            runner,
            spool,
            stop: Some(stop),
            server,
        }
    }

    async fn client(&self) -> Client {
        Client(BufReader::new(
            TcpStream::connect(self.address).await.unwrap(),
        ))
    }
}

struct Client(BufReader<TcpStream>);

impl Client {
    async fn send(&mut self, kind: &str, data: Value) {
        self.send_sound(kind, data, Vec::new()).await;
    }

    async fn send_sound(&mut self, kind: &str, data: Value, sound: Vec<u8>) {
        let event = Event::new(kind, data).with_payload(sound);
        self.0.write_all(&event.to_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Option<Event> {
        let read = tokio::time::timeout(Duration::from_secs(10), frame::read(&mut self.0));
        read.await.expect("an answer in time").unwrap()
    }

    async fn until(&mut self, last: &str) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            let over = event.kind == last;
            events.push(event);
            if over {
                return events;
            }
        }
        panic!("closed before {last}: {events:?}");
    }
}

fn kinds(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

fn frames(events: &[Event]) -> usize {
    events.iter().map(|event| event.payload.len() / 2).sum()
}

fn layout() -> Value {
    json!({"rate": 16_000, "width": 2, "channels": 1})
}

#[tokio::test]
async fn a_recording_becomes_a_transcript_in_parts_and_whole() {
    let house = House::new(|_| {}).await;
    let mut client = house.client().await;
    client
        .send(
            "transcribe",
            json!({"language": "de-DE", "transcript_names": ["Küche"]}),
        )
        .await;
    client.send("audio-start", layout()).await;
    for _ in 0..10 {
        client
            .send_sound("audio-chunk", layout(), vec![1; 640])
            .await;
    }
    client.send("audio-stop", json!({})).await;
    let events = client.until("transcript-stop").await;
    let chunk = "transcript-chunk";
    assert_eq!(
        kinds(&events),
        [
            "transcript-start",
            chunk,
            chunk,
            "transcript",
            "transcript-stop"
        ]
    );
    assert_eq!(events[3].text("text"), Some("3200 frames at 16000 Hz."));
    assert_eq!(events[3].text("language"), Some("en"));
    let parts: String = events[1..3].iter().filter_map(|e| e.text("text")).collect();
    assert_eq!(parts, "3200 frames at 16000 Hz.");
    let asked = house.runner.asked.lock().unwrap().clone();
    assert_eq!(asked, ["base Some(\"de\") Some(\"Küche\")"]);
    assert_eq!(std::fs::read_dir(house.spool.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_stop_without_sound_is_an_empty_text_and_the_connection_goes_on() {
    let house = House::new(|_| {}).await;
    let mut client = house.client().await;
    client.send("audio-stop", json!({})).await;
    let events = client.until("transcript-stop").await;
    assert_eq!(events[1].text("text"), Some(""));
    client.send("audio-start", layout()).await;
    client.send("audio-stop", json!({})).await;
    assert_eq!(client.until("transcript").await.len(), 2);
    client.until("transcript-stop").await;
    client.send("never-heard-of", json!({})).await;
    client.send("ping", json!({"text": "a"})).await;
    assert_eq!(
        client.next().await,
        Some(Event::new("pong", json!({"text": "a"})))
    );
}

#[tokio::test]
async fn a_text_is_spoken_whole_or_sentence_by_sentence() {
    let house = House::new(|_| {}).await;
    let mut client = house.client().await;
    client
        .send(
            "synthesize",
            json!({"text": "four", "voice": {"name": "joe"}}),
        )
        .await;
    let events = client.until("audio-stop").await;
    assert_eq!(events[0].data["rate"], 22_050);
    assert_eq!(frames(&events), 4 * 2205);

    client.send("synthesize-start", json!({})).await;
    for piece in ["One. ", "Two! Th", "ree"] {
        client
            .send("synthesize-chunk", json!({"text": piece}))
            .await;
    }
    client
        .send("synthesize", json!({"text": "One. Two! Three"}))
        .await;
    client.send("synthesize-stop", json!({})).await;
    let events = client.until("synthesize-stopped").await;
    let starts = kinds(&events)
        .iter()
        .filter(|k| **k == "audio-start")
        .count();
    assert_eq!(starts, 1);
    let spoken = house.runner.spoken.lock().unwrap().clone();
    assert_eq!(spoken, ["four", "One. Two! ", "Three"]);
    assert_eq!(frames(&events), (10 + 5) * 2205);
    client.send("synthesize", json!({"text": "..."})).await;
    assert_eq!(client.until("audio-stop").await.len(), 2);
}

#[tokio::test]
async fn faults_are_told_and_end_their_own_connection_alone() {
    let house = House::new(|settings| {
        settings.max_text_chars = 20;
        settings.max_audio_seconds = 0.01;
    })
    .await;
    let mut other = house.client().await;
    let faults: [(&str, Value, &str, &str); 8] = [
        ("synthesize", json!({}), "bad-input", "no `text`"),
        (
            "synthesize",
            json!({"text": "a", "voice": {"name": "jo"}}),
            "not-found",
            "did you mean `joe`",
        ),
        (
            "synthesize",
            json!({"text": "a", "text_format": "ssml"}),
            "unsupported",
            "plain text",
        ),
        (
            "synthesize",
            json!({"text": "panic"}),
            "internal",
            "without a result",
        ),
        (
            "synthesize",
            json!({"text": "a".repeat(21)}),
            "too-large",
            "21 characters, the limit is 20",
        ),
        (
            "synthesize-chunk",
            json!({"text": "a"}),
            "bad-input",
            "before",
        ),
        ("audio-start", json!({"rate": 1}), "bad-input", "`width`"),
        ("audio-chunk", layout(), "too-large", "the limit"),
    ];
    for (kind, data, code, words) in faults {
        let mut client = house.client().await;
        let sound = match kind {
            "audio-chunk" => vec![0; 4000],
            _ => Vec::new(),
        };
        client.send_sound(kind, data, sound).await;
        let error = client.next().await.unwrap();
        let text = error.text("text").unwrap_or_default();
        assert_eq!(
            (error.kind.as_str(), error.text("code")),
            ("error", Some(code))
        );
        assert!(
            text.contains(words) && text.contains("request wyoming-"),
            "{text}"
        );
        assert_eq!(client.next().await, None, "closed after {words}");
    }
    let mut garbled = house.client().await;
    garbled
        .0
        .write_all(b"GET / HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(
        garbled.next().await.unwrap().text("code"),
        Some("bad-event")
    );
    let mut flood = house.client().await;
    flood.0.write_all(&vec![b' '; 300_000]).await.unwrap();
    let said = flood.next().await.unwrap();
    let text = said.text("text").unwrap_or_default();
    assert!(text.contains("has 65537 bytes"), "{text}");
    other.send("ping", json!({})).await;
    assert_eq!(other.next().await.unwrap().kind, "pong");
}

#[tokio::test]
async fn a_client_that_leaves_cancels_its_run() {
    let house = House::new(|_| {}).await;
    let mut client = house.client().await;
    client.send("synthesize", json!({"text": "hang"})).await;
    let running = &house.runner.running;
    while running.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    drop(client);
    let freed = async {
        while running.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), freed)
        .await
        .expect("the run ends");
    assert_eq!(house.runner.cancelled.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn silent_and_surplus_clients_do_not_keep_others_out() {
    let house = House::new(|settings| {
        settings.max_connections = 1;
        settings.idle = Duration::from_millis(100);
    })
    .await;
    let mut silent = house.client().await;
    let mut second = house.client().await;
    second.send("ping", json!({})).await;
    let error = silent.next().await.unwrap();
    assert_eq!(error.text("code"), Some("idle"));
    drop(silent);
    assert_eq!(second.next().await.unwrap().kind, "pong");
}

#[tokio::test]
async fn a_server_that_goes_down_ends_its_connections() {
    let mut house = House::new(|_| {}).await;
    let mut client = house.client().await;
    client.send("describe", json!({})).await;
    let info = client.next().await.unwrap();
    assert_eq!(info.data["tts"][0]["voices"][0]["name"], "joe");
    house.stop.take().unwrap().send(()).unwrap();
    assert_eq!(
        client.next().await.unwrap().text("code"),
        Some("shutting-down")
    );
    drop(client);
    let ended = tokio::time::timeout(Duration::from_secs(10), house.server).await;
    assert!(ended.unwrap().unwrap().is_ok());
}
