//! One session: reads events, finds turns, tells what happens.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinHandle};

use super::{
    audio::Buffer,
    config::Config,
    events::{self, ClientEvent},
    transcriber::{self, Turn},
    turns::{Change, Turns},
};
use crate::http::{
    app::Shared,
    error::{ApiError, Result},
};

/// A client that says nothing for so long is let go.
const IDLE: Duration = Duration::from_secs(600);

/// Turns that may wait to be transcribed.
const WAITING: usize = 16;

/// Most seconds of sound that a client may send without committing it.
const LONGEST_S: usize = 600;

/// Serves one client until it leaves; what it still waits for is cancelled then.
pub async fn run(socket: WebSocket, app: Shared, config: Config, request_id: String) {
    let (turns_in, turns_out) = mpsc::channel(WAITING);
    let (told_in, told_out) = mpsc::channel(64);
    let transcriber = transcriber::run(app.clone(), turns_out, told_in, request_id.clone());
    let transcriber = Cancelled(tokio::spawn(transcriber));
    let mut session = Session {
        socket,
        app,
        config,
        request_id,
        id: events::id("sess"),
        buffer: Buffer::default(),
        turns: Turns::default(),
        item: None,
        previous: None,
        committed: turns_in,
    };
    if let Err(gone) = session.serve(told_out).await {
        tracing::debug!(?gone, "a live session ended");
    }
    drop(transcriber);
}

/// A task that ends with its owner.
struct Cancelled(JoinHandle<()>);

impl Drop for Cancelled {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why a session ends.
#[derive(Debug)]
enum Gone {
    /// The client closed it, or its connection broke.
    Closed,
    /// It said nothing for too long.
    Idle,
}

struct Session {
    socket: WebSocket,
    app: Shared,
    config: Config,
    request_id: String,
    id: String,
    buffer: Buffer,
    turns: Turns,
    /// The item of the turn that is going on.
    item: Option<String>,
    /// The item of the last turn.
    previous: Option<String>,
    committed: mpsc::Sender<Turn>,
}

impl Session {
    async fn serve(&mut self, mut told: mpsc::Receiver<Value>) -> Result<(), Gone> {
        self.tell_session("session.created", &[]).await?;
        loop {
            tokio::select! {
                message = tokio::time::timeout(IDLE, self.socket.recv()) => match message {
                    Err(_) => return self.close().await,
                    Ok(None | Some(Err(_)) | Some(Ok(Message::Close(_)))) => return Err(Gone::Closed),
                    Ok(Some(Ok(Message::Text(text)))) => self.hear(text.as_str()).await?,
                    Ok(Some(Ok(Message::Binary(_)))) => {
                        let error = ApiError::bad("invalid_event", "wanted events as text");
                        self.tell(events::error(&error, None)).await?;
                    }
                    Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => {}
                },
                Some(event) = told.recv() => self.tell(event).await?,
            }
        }
    }

    async fn close(&mut self) -> Result<(), Gone> {
        let frame = CloseFrame {
            code: close_code::AWAY,
            reason: "the session was idle".into(),
        };
        // It is over whether the client hears of it or not.
        let _ = self.socket.send(Message::Close(Some(frame))).await;
        Err(Gone::Idle)
    }

    async fn tell(&mut self, event: Value) -> Result<(), Gone> {
        let text = Message::Text(event.to_string().into());
        self.socket.send(text).await.map_err(|_| Gone::Closed)
    }

    async fn tell_session(&mut self, kind: &str, warnings: &[String]) -> Result<(), Gone> {
        let mut fields = json!({"session": self.config.session(&self.id)});
        if !warnings.is_empty() {
            fields["warnings"] = json!(warnings);
        }
        self.tell(events::server(kind, fields)).await
    }

    async fn hear(&mut self, text: &str) -> Result<(), Gone> {
        let told = match ClientEvent::read(text) {
            Ok(event) => self.obey(event).await,
            Err(error) => Err(Trouble::Client(error)),
        };
        match told {
            Ok(()) => Ok(()),
            Err(Trouble::Gone(gone)) => Err(gone),
            Err(Trouble::Client(error)) => {
                self.tell(events::error(&error, events::event_id(text)))
                    .await
            }
        }
    }

    async fn obey(&mut self, event: ClientEvent) -> Result<(), Trouble> {
        match event {
            ClientEvent::Update { session } => {
                let before = self.config.format;
                let warnings = self.config.update(&self.app, session)?;
                if self.config.format != before {
                    self.buffer = Buffer::default();
                    self.forget();
                }
                self.tell_session("session.updated", &warnings).await?;
            }
            ClientEvent::Append { audio } => self.append(&audio).await?,
            ClientEvent::Commit => {
                if self.buffer.len() == 0 {
                    let message = "there is no sound to commit";
                    let code = "input_audio_buffer_commit_empty";
                    return Err(Trouble::Client(ApiError::bad(code, message)));
                }
                self.commit(self.buffer.len()).await?;
                self.turns.reset();
            }
            ClientEvent::Clear => {
                self.buffer.clear();
                self.forget();
                self.tell(events::server("input_audio_buffer.cleared", json!({})))
                    .await?;
            }
        }
        Ok(())
    }

    fn forget(&mut self) {
        self.turns.reset();
        self.item = None;
    }

    async fn append(&mut self, audio: &str) -> Result<(), Trouble> {
        let bytes = BASE64_STANDARD.decode(audio.trim());
        let bytes = bytes
            .map_err(|error| ApiError::value("audio", format!("`audio` is not base64: {error}")))?;
        let rate = self.config.format.rate();
        if self.buffer.len() + bytes.len() > LONGEST_S * rate as usize * 2 {
            let message = format!("more than {LONGEST_S} s of sound wait to be committed");
            return Err(Trouble::Client(ApiError::too_large("audio", message)));
        }
        self.buffer.push(self.config.format, &bytes);
        let Some(rules) = self.config.turns else {
            return Ok(());
        };
        while self.turns.due(&self.buffer, rate) {
            let (app, config) = (&self.app, &self.config);
            let look = self
                .turns
                .look(app, config, rules, &self.buffer, &self.request_id);
            match look.await? {
                Change::None => {}
                Change::Started(at) => self.started(at).await?,
                Change::Stopped(at) => self.stopped(at).await?,
            }
            let stale = self.turns.stale(&self.buffer, rules, rate);
            self.buffer.take(stale);
            self.turns.taken(stale);
        }
        Ok(())
    }

    async fn started(&mut self, at: usize) -> Result<(), Gone> {
        let item = events::id("item");
        self.item = Some(item.clone());
        let start = self.buffer.milliseconds(at, self.config.format.rate());
        let fields = json!({"audio_start_ms": start, "item_id": item});
        self.tell(events::server("input_audio_buffer.speech_started", fields))
            .await?;
        // Nothing before the turn is needed any more.
        self.buffer.take(at);
        self.turns.taken(at);
        Ok(())
    }

    async fn stopped(&mut self, at: usize) -> Result<(), Trouble> {
        let end = self.buffer.milliseconds(at, self.config.format.rate());
        let fields = json!({"audio_end_ms": end, "item_id": self.item});
        self.tell(events::server("input_audio_buffer.speech_stopped", fields))
            .await?;
        self.commit(at).await
    }

    /// Makes a turn of the first `count` samples.
    async fn commit(&mut self, count: usize) -> Result<(), Trouble> {
        let item = self.item.take().unwrap_or_else(|| events::id("item"));
        let turn = Turn {
            item: item.clone(),
            samples: self.buffer.take(count),
            config: self.config.clone(),
        };
        self.turns.taken(count);
        let fields = json!({"item_id": item, "previous_item_id": self.previous});
        self.tell(events::server("input_audio_buffer.committed", fields))
            .await?;
        self.previous = Some(item);
        self.committed.try_send(turn).map_err(|_| {
            let message = format!("{WAITING} turns wait already; this one was dropped");
            Trouble::Client(ApiError::bad("too_many_turns", message))
        })
    }
}

/// What ends an event's work early.
enum Trouble {
    Client(ApiError),
    Gone(Gone),
}

impl From<ApiError> for Trouble {
    fn from(error: ApiError) -> Self {
        Trouble::Client(error)
    }
}

impl From<Gone> for Trouble {
    fn from(gone: Gone) -> Self {
        Trouble::Gone(gone)
    }
}
