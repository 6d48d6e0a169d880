//! One conversation with a client.

use std::{sync::Arc, time::Duration};

use audiocpp::engine::{Error, TranscribeRequest};
use serde_json::json;
use tokio::{
    io::{AsyncWriteExt, BufReader},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    Shared,
    fault::Fault,
    frame::{self, Event, FrameError},
    info,
    recording::Recording,
    speaking::{SoundStream, TextStream},
};
use crate::job::{Job, Refusal, Reply, Run};

/// Events that are read ahead of the one that is worked on.
const AHEAD: usize = 4;
/// How long `describe` waits for models that load for the first time.
const DESCRIBE_WAIT: Duration = Duration::from_secs(30);
/// How long a connection that is closed after a fault is still read from, so that the client gets
/// to see the fault: unread input would make its system throw the answer away.
const LINGER: Duration = Duration::from_secs(2);

type Incoming = mpsc::Receiver<Result<Event, FrameError>>;

/// Talks with the client of `stream` until it leaves, a request fails, or the server goes down.
pub(super) async fn talk(stream: TcpStream, number: u64, shared: Arc<Shared>) {
    // Small events should leave at once; it does no harm where that is not possible.
    let _ = stream.set_nodelay(true);
    let (reader, out) = stream.into_split();
    let gone = CancellationToken::new();
    let (sender, mut incoming) = mpsc::channel(AHEAD);
    let listening = tokio::spawn(listen(reader, sender, gone.clone()));
    let mut talk = Talk {
        shared,
        out,
        gone,
        number,
        runs: 0,
        ask: TranscribeRequest::default(),
        model: None,
        recording: None,
        reading: None,
    };
    if let Err(fault) = talk.serve(&mut incoming).await
        && let Some(event) = fault.event(&talk.request_id())
    {
        tracing::debug!(connection = number, ?fault, "wyoming: closed");
        let told = talk.send(&event).await.is_ok() && talk.out.shutdown().await.is_ok();
        if told {
            let rest = async { while incoming.recv().await.is_some() {} };
            let _ = timeout(LINGER, rest).await;
        }
    }
    listening.abort();
}

/// Reads events ahead of their turn, so that a client's leaving is seen while its job runs.
async fn listen(
    reader: OwnedReadHalf,
    to: mpsc::Sender<Result<Event, FrameError>>,
    gone: CancellationToken,
) {
    let mut reader = BufReader::new(reader);
    let _gone = gone.drop_guard();
    loop {
        let read = frame::read(&mut reader).await.transpose();
        let Some(event) = read else { return };
        let over = event.is_err();
        if to.send(event).await.is_err() {
            return;
        }
        if over {
            // The rest is of no use, but has to be read for the answer to arrive: see `LINGER`.
            let _ = tokio::io::copy(&mut reader, &mut tokio::io::sink()).await;
            return;
        }
    }
}

/// The server's side of a conversation.
pub(super) struct Talk {
    pub(super) shared: Arc<Shared>,
    out: OwnedWriteHalf,
    gone: CancellationToken,
    number: u64,
    runs: u64,
    /// What the next recording is asked for with.
    pub(super) ask: TranscribeRequest,
    /// The recogniser that was asked for.
    pub(super) model: Option<String>,
    /// Sound that arrives.
    pub(super) recording: Option<Recording>,
    /// Text that arrives, and what was spoken of it.
    pub(super) reading: Option<(TextStream, SoundStream)>,
}

impl Talk {
    async fn serve(&mut self, incoming: &mut Incoming) -> Result<(), Fault> {
        let idle = self.shared.settings.idle;
        let closing = self.shared.closing.clone();
        loop {
            let next = tokio::select! {
                next = timeout(idle, incoming.recv()) => next,
                () = closing.cancelled() => return Err(Refusal::ShuttingDown.into()),
            };
            match next {
                Ok(Some(Ok(event))) => self.answer(event).await?,
                Ok(Some(Err(FrameError::Io(_))) | None) => return Err(Fault::Gone),
                Ok(Some(Err(error))) => return Err(Fault::Frame(error)),
                Err(_) => return Err(Fault::Idle(idle)),
            }
        }
    }

    async fn answer(&mut self, event: Event) -> Result<(), Fault> {
        match event.kind.as_str() {
            "describe" => self.describe().await,
            "ping" => {
                let text = event.data.get("text").cloned().unwrap_or_default();
                self.send(&Event::new("pong", json!({"text": text}))).await
            }
            "transcribe" => {
                self.expect_recording(&event);
                Ok(())
            }
            "audio-start" => self.begin_recording(&event).await,
            "audio-chunk" => self.record(&event).await,
            "audio-stop" => self.transcribe().await,
            // A client that streams its text sends all of it once more, for servers that cannot.
            "synthesize" if self.reading.is_some() => Ok(()),
            "synthesize" => self.synthesize(&event).await,
            "synthesize-start" => self.begin_reading(&event),
            "synthesize-chunk" => self.read_on(&event).await,
            "synthesize-stop" => self.end_reading().await,
            kind => {
                tracing::debug!(connection = self.number, kind, "wyoming: event not known");
                Ok(())
            }
        }
    }

    async fn describe(&mut self) -> Result<(), Fault> {
        let learned = self.shared.learned.clone();
        tokio::select! {
            _ = timeout(DESCRIBE_WAIT, learned.cancelled()) => {}
            () = self.gone.cancelled() => {}
        }
        let info = info::info(&self.shared.runner.models());
        self.send(&info).await
    }

    /// Sends one event; a client that does not take it in time is gone.
    pub(super) async fn send(&mut self, event: &Event) -> Result<(), Fault> {
        let bytes = event.to_bytes();
        let limit = self.shared.settings.write_limit;
        match timeout(limit, self.out.write_all(&bytes)).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(Fault::Gone),
        }
    }

    fn request_id(&self) -> String {
        format!("wyoming-{}-{}", self.number, self.runs)
    }

    /// Starts `job` on `model`; dropping the run cancels it.
    pub(super) async fn start(&mut self, model: &str, job: Job) -> Result<Run, Fault> {
        self.runs += 1;
        let id = self.request_id();
        tokio::select! {
            run = self.shared.runner.run(model, job, &id, None) => Ok(run?),
            () = self.gone.cancelled() => Err(Fault::Gone),
        }
    }

    /// What is heard next of `run`; the client's leaving ends it.
    pub(super) async fn next(&mut self, run: &mut Run) -> Result<Reply, Fault> {
        let reply = tokio::select! {
            biased;
            () = self.gone.cancelled() => return Err(Fault::Gone),
            reply = run.replies.recv() => reply,
        };
        match reply {
            Some(Reply::Failed(refusal)) => Err(refusal.into()),
            Some(reply) => Ok(reply),
            None => Err(Error::internal("the job ended without a result").into()),
        }
    }
}
