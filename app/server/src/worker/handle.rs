//! The server's side of one worker process.

use std::{ffi::OsString, io, path::PathBuf, process::ExitStatus, time::Duration};

use audiocpp::{
    backend::{Host, launch},
    engine::{Error, Event, ModelInfo, VoiceInfo},
};
use futures_util::{SinkExt, StreamExt};
use tokio::{
    process::{Child, Command},
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::{codec::Framed, sync::CancellationToken};

use super::{
    WORD,
    frame::{FrameError, Frames},
    log::{self, LastWords},
    message::{Answer, Loaded, Order},
    pipe::{self, Stream},
    spec::Spec,
};
use crate::{
    config::plan::Voice,
    job::{Job, Outcome, Reply},
};

/// How long a process may take to end by itself once its connection is closed.
const GRACE: Duration = Duration::from_secs(2);
/// Limit of a wait that has none.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// How worker processes are started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program; it is this one, except in tests.
    pub program: PathBuf,
    /// Variables that are added to the environment of this process.
    pub variables: Vec<(OsString, OsString)>,
}

impl Launch {
    /// This program, with the variables that its libraries want.
    ///
    /// # Errors
    /// The system does not tell where this program is.
    pub fn here() -> io::Result<Launch> {
        let variables = launch::variables(false, &Host::here());
        let owned = |(name, value): (&str, &str)| (name.into(), value.into());
        Ok(Launch {
            program: std::env::current_exe()?,
            variables: variables.into_iter().map(owned).collect(),
        })
    }
}

/// A worker process.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    stream: Framed<Stream, Frames>,
    words: LastWords,
    jobs: u64,
    loaded: Loaded,
}

/// Why a model is not loaded.
#[derive(Debug)]
pub enum LoadEnd {
    /// The engine said why.
    Failed(Error),
    /// The process ended or hung; how it did.
    Lost(String),
    /// The server is going down.
    Stopped,
}

/// How a job ended.
#[derive(Debug)]
pub enum JobEnd {
    /// With a result.
    Done(Box<Outcome>),
    /// The engine said why.
    Failed(Error),
    /// Nobody waits for it any more; the worker is free.
    Cancelled,
    /// The process ended or hung; how it did.
    Lost(String),
    /// The server is going down.
    Stopped,
}

/// What ends a job from outside.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The longest silence of the worker, and of who listens; none is for ever.
    pub watchdog: Option<Duration>,
    /// Cancels the job.
    pub cancel: CancellationToken,
    /// Ends the process.
    pub stop: CancellationToken,
}

impl Worker {
    /// Starts a process for the model called `id`.
    ///
    /// # Errors
    /// The system's.
    pub fn spawn(launch: &Launch, id: &str) -> io::Result<Worker> {
        let mut command = Command::new(&launch.program);
        command
            .arg(WORD)
            .envs(launch.variables.iter().map(|(name, value)| (name, value)))
            .kill_on_drop(true);
        let (mut child, stream) = pipe::spawn(&mut command)?;
        let words = LastWords::default();
        if let Some(output) = child.stdout.take() {
            tokio::spawn(log::copy(output, id.to_owned(), words.clone()));
        }
        if let Some(output) = child.stderr.take() {
            tokio::spawn(log::copy(output, id.to_owned(), words.clone()));
        }
        Ok(Worker {
            child,
            stream: Framed::new(stream, Frames::default()),
            words,
            jobs: 0,
            loaded: Loaded::default(),
        })
    }

    /// Its process id; none once it has ended.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// What the model says about itself.
    pub fn info(&self) -> &ModelInfo {
        &self.loaded.info
    }

    /// The model's own voices.
    pub fn voices(&self) -> &[VoiceInfo] {
        &self.loaded.voices
    }

    /// Seconds that loading took.
    pub fn load_seconds(&self) -> f64 {
        self.loaded.seconds
    }

    /// Bytes of memory, as the worker said after its last job.
    pub fn memory(&self) -> u64 {
        self.loaded.memory
    }

    /// Whether the process is still there.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Loads the model. `limit` is the longest time without progress; events go to `heard`.
    ///
    /// # Errors
    /// [`LoadEnd`]; the process is of no more use.
    pub async fn load(
        &mut self,
        spec: Spec,
        limit: Duration,
        stop: &CancellationToken,
        mut heard: impl FnMut(Event),
    ) -> Result<(), LoadEnd> {
        self.say(Order::Load(spec), limit)
            .await
            .map_err(LoadEnd::Lost)?;
        loop {
            let answer = tokio::select! {
                answer = self.hear(limit) => answer.map_err(LoadEnd::Lost)?,
                () = stop.cancelled() => {
                    self.kill().await;
                    return Err(LoadEnd::Stopped);
                }
            };
            match answer {
                Answer::Loaded(loaded) => {
                    self.loaded = *loaded;
                    return Ok(());
                }
                Answer::Failed { error, .. } => {
                    self.kill().await;
                    return Err(LoadEnd::Failed(error));
                }
                Answer::Event(event) => heard(event),
                Answer::Beat | Answer::Done { .. } => {}
            }
        }
    }

    /// Runs one job and passes on what is heard of it.
    pub async fn run(
        &mut self,
        job: Job,
        voice: Option<Voice>,
        limits: &Limits,
        replies: &mpsc::Sender<Reply>,
    ) -> JobEnd {
        self.jobs += 1;
        let id = self.jobs;
        let order = Order::Run {
            id,
            job: Box::new(job),
            voice,
        };
        let mut listens = true;
        // Once it is asked to stop it has so long, whether it shows life or not.
        let mut until = None;
        let watchdog = limits.watchdog.unwrap_or(FOR_EVER);
        if let Err(how) = self.say(order, watchdog).await {
            return JobEnd::Lost(how);
        }
        loop {
            let limit = until.map_or(watchdog, |until: Instant| {
                until.saturating_duration_since(Instant::now())
            });
            let answer = tokio::select! {
                biased;
                () = limits.stop.cancelled() => {
                    self.kill().await;
                    return JobEnd::Stopped;
                }
                () = limits.cancel.cancelled(), if listens => {
                    listens = false;
                    until = Some(Instant::now() + watchdog);
                    match self.say(Order::Cancel { id }, watchdog).await {
                        Ok(()) => continue,
                        Err(how) => return JobEnd::Lost(how),
                    }
                }
                answer = self.hear(limit) => answer,
            };
            match answer {
                Err(how) => return JobEnd::Lost(how),
                Ok(Answer::Event(event)) if listens => {
                    if !pass_on(event, limits, replies).await {
                        limits.cancel.cancel();
                    }
                }
                Ok(Answer::Done {
                    id: of,
                    outcome,
                    memory,
                }) if of == id => {
                    self.loaded.memory = memory;
                    return if listens {
                        JobEnd::Done(outcome)
                    } else {
                        JobEnd::Cancelled
                    };
                }
                Ok(Answer::Failed { id: of, error }) if of == Some(id) => {
                    return if listens {
                        JobEnd::Failed(error)
                    } else {
                        JobEnd::Cancelled
                    };
                }
                Ok(_) => {}
            }
        }
    }

    /// Ends the process: by closing its connection, and by force if that is not enough.
    pub async fn end(self) {
        let Worker {
            mut child, stream, ..
        } = self;
        drop(stream);
        if timeout(GRACE, child.wait()).await.is_err() {
            // It is gone already, or the system cannot be helped.
            let _ = child.kill().await;
        }
    }

    async fn kill(&mut self) {
        // As in `end`.
        let _ = self.child.kill().await;
    }

    /// Sends an order; the error says how the worker was lost.
    async fn say(&mut self, order: Order, limit: Duration) -> Result<(), String> {
        let sent = timeout(limit, self.stream.send(order)).await;
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.post_mortem(Some(&error)).await),
            Err(_) => Err(self.hung(limit).await),
        }
    }

    /// The next answer within `limit`; the error says how the worker was lost.
    async fn hear(&mut self, limit: Duration) -> Result<Answer, String> {
        let Ok(frame) = timeout(limit, self.stream.next()).await else {
            return Err(self.hung(limit).await);
        };
        let answer = match frame {
            Some(frame) => frame.and_then(|frame| frame.open::<Answer>()),
            None => return Err(self.post_mortem(None).await),
        };
        match answer {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.post_mortem(Some(&error)).await),
        }
    }

    async fn hung(&mut self, limit: Duration) -> String {
        self.kill().await;
        format!("did not answer for {} s", limit.as_secs_f64())
    }

    /// How the process ended; it is ended if it still runs.
    async fn post_mortem(&mut self, error: Option<&FrameError>) -> String {
        let how = match timeout(GRACE, self.child.wait()).await {
            Ok(Ok(status)) => how_it_ended(status),
            Ok(Err(error)) => format!("cannot be asked how it ended ({error})"),
            Err(_) => {
                self.kill().await;
                error.map_or_else(
                    || "closed its connection".to_owned(),
                    |error| format!("sent something that was not understood ({error})"),
                )
            }
        };
        tracing::warn!("a worker {how}; it said: {}", self.words.text());
        how
    }
}

/// Gives an event to who listens; false once nobody does, or not for longer than the watchdog's
/// limit.
async fn pass_on(event: Event, limits: &Limits, replies: &mpsc::Sender<Reply>) -> bool {
    let until = Instant::now() + limits.watchdog.unwrap_or(FOR_EVER);
    tokio::select! {
        sent = replies.send(Reply::Event(event)) => sent.is_ok(),
        () = limits.cancel.cancelled() => false,
        () = limits.stop.cancelled() => true,
        () = sleep_until(until) => false,
    }
}

#[cfg(unix)]
fn how_it_ended(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status.signal() {
        Some(signal) => format!("was killed by signal {signal}"),
        None => format!("ended with status {}", status.code().unwrap_or(-1)),
    }
}

#[cfg(not(unix))]
fn how_it_ended(status: ExitStatus) -> String {
    format!("ended with status {}", status.code().unwrap_or(-1))
}
