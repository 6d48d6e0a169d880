//! What the HTTP side asks of the process side, and what it hears back.
//!
//! `http/`, `wyoming/` and tests see models only through [`Runner`]; `pool/` implements it with one
//! worker process for each loaded model.

use std::{path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use audiocpp::engine::{
    DetectSpeechRequest, Event, ModelInfo, SeparateRequest, Separation, Speech, SpeechOnly,
    SynthesizeRequest, Task, TranscribeRequest, Transcript, VoiceActivity, VoiceInfo,
};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

/// Work for one model. Sound comes as a file on this machine's disk: an upload in the spool.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "snake_case")]
pub enum Job {
    /// Speech to text.
    Transcribe {
        /// What is asked.
        request: TranscribeRequest,
        /// The recording, in any format that the engine reads.
        audio: PathBuf,
        /// Leave out what the model's configured detector does not take for speech.
        speech_only: Option<SpeechOnly>,
    },
    /// Text to speech.
    Synthesize {
        /// What is asked.
        request: SynthesizeRequest,
    },
    /// Where there is speech.
    DetectSpeech {
        /// What is asked.
        request: DetectSpeechRequest,
        /// The recording.
        audio: PathBuf,
    },
    /// A mix to stems.
    Separate {
        /// What is asked.
        request: SeparateRequest,
        /// The recording.
        audio: PathBuf,
    },
}

/// What a job came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// Of [`Job::Transcribe`].
    Transcript(Transcript),
    /// Of [`Job::Synthesize`]; its audio is empty if the request streamed.
    Speech(Speech),
    /// Of [`Job::DetectSpeech`].
    Activity(VoiceActivity),
    /// Of [`Job::Separate`]; its stems are empty if the request streamed.
    Separation(Separation),
}

impl Outcome {
    /// What was ignored, repaired or left out.
    pub fn warnings(&mut self) -> &mut Vec<String> {
        match self {
            Outcome::Transcript(transcript) => &mut transcript.warnings,
            Outcome::Speech(speech) => &mut speech.warnings,
            Outcome::Activity(activity) => &mut activity.warnings,
            Outcome::Separation(separation) => &mut separation.warnings,
        }
    }
}

/// What is heard of a running job, in order; `Done` or `Failed` is the last.
#[derive(Debug)]
pub enum Reply {
    /// Something happened.
    Event(Event),
    /// It is finished.
    Done(Box<Outcome>),
    /// It ended without a result.
    Failed(Refusal),
}

/// A job that was accepted; dropping it cancels the job.
#[derive(Debug)]
pub struct Run {
    /// What is heard of it.
    pub replies: mpsc::Receiver<Reply>,
    /// Cancels when the run is dropped.
    pub guard: tokio_util::sync::DropGuard,
}

/// Why a job was not done.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// No model of this name is configured; `near` is one that looks like it.
    #[error("there is no model `{model}`{}", near.as_ref().map_or(String::new(), |near| format!(", did you mean `{near}`?")))]
    UnknownModel {
        /// The name that was asked for.
        model: String,
        /// The nearest configured name.
        near: Option<String>,
    },
    /// The queue of the model is full, or the wait was too long; come back after `retry_after`.
    #[error("`{model}` is busy: {detail}")]
    Busy {
        /// The model.
        model: String,
        /// The queue's length and limit, or the wait and its limit.
        detail: String,
        /// When it is worth trying again.
        retry_after: Duration,
    },
    /// The model could not be loaded: package, device or memory.
    #[error("`{model}` could not be loaded: {error}")]
    Load {
        /// The model.
        model: String,
        /// Why.
        error: audiocpp::engine::Error,
    },
    /// The worker process ended, hung or could not be started while the job was its own.
    #[error("the worker of `{model}` {how}; the request was lost and can be sent again")]
    WorkerLost {
        /// The model.
        model: String,
        /// `was killed by signal 9`, `ended with status 134`, `did not answer for 60 s`.
        how: String,
    },
    /// The job itself failed.
    #[error("{0}")]
    Job(audiocpp::engine::Error),
    /// The server is going down.
    #[error("the server is shutting down")]
    ShuttingDown,
}

/// Whether a model can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelState {
    /// Not in memory; the next request loads it.
    Unloaded,
    /// Being loaded.
    Loading,
    /// Loaded and free.
    Ready,
    /// Running a job.
    Busy,
    /// The last attempt to load failed; the next request tries again once the back-off is over.
    Failed,
}

/// One configured model as the outside sees it.
#[derive(Clone, Debug, Serialize)]
pub struct ModelStatus {
    /// Its name in requests.
    pub id: String,
    /// The family that runs it.
    pub family: String,
    /// What it does.
    pub task: Task,
    /// Whether it can answer.
    pub state: ModelState,
    /// What the package says, once it was loaded.
    pub info: Option<ModelInfo>,
    /// Its own voices and the configured presets, once known; empty if it does not speak.
    pub voices: Vec<VoiceInfo>,
    /// The voice of requests that name none.
    pub default_voice: Option<String>,
    /// Jobs that wait.
    pub queued: usize,
    /// Jobs that run.
    pub running: usize,
    /// Resident memory of its worker in bytes; 0 if there is none.
    pub memory_bytes: u64,
    /// How often its worker was started again after it was lost.
    pub restarts: u64,
    /// Why it runs elsewhere than it was configured to, or why it could not be loaded.
    pub note: Option<String>,
}

/// Runs jobs on models.
#[async_trait]
pub trait Runner: Send + Sync {
    /// Queues `job` for `model`, loading the model if need be. Returns once the job is accepted;
    /// loading, waiting and running are heard of through the run. `wait` is the longest time in the
    /// queue that the request allows, never more than the configuration's.
    ///
    /// # Errors
    /// What can be told at once: an unknown model, a full queue, a server that shuts down.
    async fn run(
        &self,
        model: &str,
        job: Job,
        request_id: &str,
        wait: Option<Duration>,
    ) -> Result<Run, Refusal>;

    /// All configured models, in the order of the configuration.
    fn models(&self) -> Vec<ModelStatus>;

    /// Loads `model` now, and waits for it.
    async fn load(&self, model: &str) -> Result<(), Refusal>;

    /// Ends the worker of `model` once its jobs are done: its memory is back.
    async fn unload(&self, model: &str) -> Result<(), Refusal>;

    /// Voices made from an upload: adds a preset `name` to `model` whose voice is that of
    /// `recording`, a file that is gone once this returns; `words` is what is said in it.
    async fn add_voice(
        &self,
        model: &str,
        name: &str,
        recording: PathBuf,
        words: Option<String>,
    ) -> Result<(), Refusal>;

    /// Removes a preset that [`Runner::add_voice`] made; configured voices stay.
    async fn remove_voice(&self, model: &str, name: &str) -> Result<(), Refusal>;
}

/// A runner that can be shared.
pub type SharedRunner = Arc<dyn Runner>;
