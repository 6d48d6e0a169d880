//! What the server and a worker say to each other.

use audiocpp::{
    audio::Audio,
    engine::{Error, Event, ModelInfo, VoiceInfo},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::spec::Spec;
use crate::{
    config::plan::Voice,
    job::{Job, Outcome},
};

/// A message whose sound travels outside of its JSON.
pub trait Message: Serialize + DeserializeOwned {
    /// Every sound in it, in an order that does not depend on the samples.
    fn sounds(&mut self) -> Vec<&mut Audio>;
}

/// From the server.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Load the model; the first order.
    Load(Spec),
    /// Run a job; the one before has ended.
    Run {
        /// Counts up.
        id: u64,
        /// The work.
        job: Box<Job>,
        /// The configured voice to speak with.
        voice: Option<Voice>,
    },
    /// Stop the job.
    Cancel {
        /// Which.
        id: u64,
    },
}

/// From a worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It lives, and its work gets on.
    Beat,
    /// Something happened while it loaded or ran.
    Event(Event),
    /// The model is loaded.
    Loaded(Box<Loaded>),
    /// The job is done.
    Done {
        /// The job.
        id: u64,
        /// What it came to.
        outcome: Box<Outcome>,
        /// Bytes of memory that the worker holds.
        memory: u64,
    },
    /// The job, or loading, failed.
    Failed {
        /// The job; none while loading.
        id: Option<u64>,
        /// Why.
        error: Error,
    },
}

/// A loaded model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Loaded {
    /// What the model says about itself.
    pub info: ModelInfo,
    /// Its own voices.
    pub voices: Vec<VoiceInfo>,
    /// Seconds that loading took.
    pub seconds: f64,
    /// Bytes of memory that the worker holds.
    pub memory: u64,
}

impl Message for Order {
    fn sounds(&mut self) -> Vec<&mut Audio> {
        match self {
            Order::Run { job, .. } => match &mut **job {
                Job::Synthesize { request } => request.references.iter_mut().collect(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }
}

impl Message for Answer {
    fn sounds(&mut self) -> Vec<&mut Audio> {
        match self {
            Answer::Event(Event::Speech(part)) => vec![&mut part.audio],
            Answer::Event(Event::Stems { stems }) => {
                stems.iter_mut().map(|stem| &mut stem.audio).collect()
            }
            Answer::Done { outcome, .. } => match &mut **outcome {
                Outcome::Speech(speech) => vec![&mut speech.audio],
                Outcome::Separation(separation) => {
                    let stems = separation.stems.iter_mut();
                    stems.map(|stem| &mut stem.audio).collect()
                }
                Outcome::Transcript(_) | Outcome::Activity(_) => Vec::new(),
            },
            _ => Vec::new(),
        }
    }
}
