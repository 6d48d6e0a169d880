//! One model that is served: who waits, who runs, and the processes that hold it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use audiocpp::engine::{ModelInfo, VoiceInfo};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    House, cancelled,
    metrics::Meter,
    seat::{Seat, Seats},
    trouble::Trouble,
    voices::Made,
};
use crate::{
    config::plan::ModelPlan,
    job::{ModelState, ModelStatus, Refusal},
    worker::handle::Worker,
};

/// The shortest and longest time after which trying again is proposed.
const RETRY_S: (f64, f64) = (1.0, 60.0);

/// A model.
pub struct Served {
    /// What is configured.
    pub plan: ModelPlan,
    /// One permit for each process that may run.
    pub slots: Arc<Semaphore>,
    /// The memory of its processes.
    pub seats: Arc<Seats>,
    /// Its metrics.
    pub meter: Meter,
    state: Mutex<State>,
}

/// What changes about a model.
#[derive(Default)]
pub struct State {
    /// Jobs that were accepted and have not ended.
    accepted: usize,
    running: usize,
    /// Processes that are being started.
    pub loading: usize,
    idle: Vec<Idle>,
    /// What the package says, once it was loaded.
    pub info: Option<ModelInfo>,
    /// Its own voices, once known.
    pub own_voices: Vec<VoiceInfo>,
    /// Voices made from uploads.
    pub made: Made,
    /// Why it runs on the CPU although its device is `auto`.
    pub on_cpu: Option<String>,
    /// Failures in a row.
    pub trouble: Trouble,
    /// Processes that were lost and not yet replaced.
    pub lost: u64,
    /// Processes that were replaced.
    pub restarts: u64,
    /// Bytes that a process held after loading.
    pub measured: Option<u64>,
    /// Seconds that a job usually takes.
    usual: f64,
}

struct Idle {
    held: Held,
    since: Instant,
}

/// A loaded process and its place in the sum of memory.
pub struct Held {
    /// The process.
    pub worker: Box<Worker>,
    /// Its place.
    pub seat: Seat,
}

impl Held {
    /// Ends the process, and gives its place up after that.
    pub async fn end(self) {
        self.worker.end().await;
        drop(self.seat);
    }
}

/// How long a job waits, and for what it gives up.
#[derive(Clone)]
pub struct Patience {
    /// When the wait is too long; none is never.
    pub until: Option<Instant>,
    /// The same as a length.
    pub wait: Option<Duration>,
    /// Nobody listens any more.
    pub cancel: CancellationToken,
    /// The server goes down.
    pub drain: CancellationToken,
}

impl Patience {
    /// Of work that the server does for itself.
    pub fn of_server(house: &House) -> Patience {
        Patience {
            until: None,
            wait: None,
            cancel: CancellationToken::new(),
            drain: house.drain.clone(),
        }
    }

    /// What `future` gives, or why the wait is over. `served` is what is waited for.
    pub async fn wait_for<T>(
        &self,
        served: &Served,
        future: impl Future<Output = T>,
    ) -> Result<T, Refusal> {
        let late = async {
            match self.until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(cancelled()),
            () = self.drain.cancelled() => Err(Refusal::ShuttingDown),
            made = future => Ok(made),
            () = late => {
                let wait = self.wait.unwrap_or_default().as_secs_f64();
                Err(served.busy(format!("no worker was free within {wait} s")))
            }
        }
    }
}

/// A job that has a place in the queue; it is given up on drop.
pub struct Accepted {
    /// The model.
    pub served: Arc<Served>,
    running: bool,
}

impl Accepted {
    /// A place in the queue of `served`.
    ///
    /// # Errors
    /// [`Refusal::Busy`] if the queue is full.
    pub fn new(served: &Arc<Served>) -> Result<Accepted, Refusal> {
        let mut state = served.lock();
        let places = served.plan.workers + served.plan.queue_length;
        if state.accepted >= places {
            let waiting = state.accepted - state.running;
            drop(state);
            served.meter.ended("refused");
            let limit = served.plan.queue_length;
            return Err(served.busy(format!(
                "{waiting} requests wait already; the limit is {limit}"
            )));
        }
        state.accepted += 1;
        served.tell(&state);
        drop(state);
        Ok(Accepted {
            served: served.clone(),
            running: false,
        })
    }

    /// The job begins to run.
    pub fn begin(&mut self) {
        self.running = true;
        let mut state = self.served.lock();
        state.running += 1;
        self.served.tell(&state);
    }
}

impl Drop for Accepted {
    fn drop(&mut self) {
        let mut state = self.served.lock();
        state.accepted -= 1;
        state.running -= usize::from(self.running);
        self.served.tell(&state);
    }
}

impl Served {
    /// A model of which nothing is loaded.
    pub fn new(plan: ModelPlan) -> Served {
        Served {
            slots: Arc::new(Semaphore::new(plan.workers)),
            seats: Arc::default(),
            meter: Meter::new(&plan.spec.id),
            state: Mutex::default(),
            plan,
        }
    }

    /// Its name in requests.
    pub fn id(&self) -> &str {
        &self.plan.spec.id
    }

    /// What changes. Drop no process while this is held.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, state: &State) {
        self.meter
            .jobs(state.accepted - state.running, state.running);
    }

    /// Tells the metrics how much memory its processes hold.
    pub fn tell_memory(&self) {
        self.meter.memory(self.seats.bytes());
    }

    /// That it is busy, with a proposal when to come back.
    pub fn busy(&self, detail: String) -> Refusal {
        let state = self.lock();
        let turns = state.accepted as f64 / self.plan.workers as f64;
        let seconds = (state.usual * turns).clamp(RETRY_S.0, RETRY_S.1);
        Refusal::Busy {
            model: self.id().to_owned(),
            detail,
            retry_after: Duration::from_secs_f64(seconds.ceil()),
        }
    }

    /// A job took so long.
    pub fn took(&self, time: Duration) {
        let (mut state, seconds) = (self.lock(), time.as_secs_f64());
        state.usual = match state.usual {
            0.0 => seconds,
            usual => 0.7 * usual + 0.3 * seconds,
        };
    }

    /// The process that was used last, if one is idle.
    pub fn pop_idle(&self) -> Option<Held> {
        self.lock().idle.pop().map(|idle| idle.held)
    }

    /// Puts a process back.
    pub fn push_idle(&self, held: Held) {
        let idle = Idle {
            held,
            since: Instant::now(),
        };
        self.lock().idle.push(idle);
    }

    /// When the process became idle that is so for longest.
    pub fn idle_since(&self) -> Option<Instant> {
        self.lock().idle.first().map(|idle| idle.since)
    }

    /// Takes the process that is idle for longest.
    pub fn pop_oldest(&self) -> Option<Held> {
        let mut state = self.lock();
        (!state.idle.is_empty()).then(|| state.idle.remove(0).held)
    }

    /// Takes all processes that are idle, or those that are for longer than `limit`.
    pub fn take_idle(&self, limit: Option<Duration>) -> Vec<Held> {
        let mut state = self.lock();
        let old = |idle: &Idle| limit.is_none_or(|limit| idle.since.elapsed() >= limit);
        // They became idle in this order.
        let count = state.idle.iter().take_while(|idle| old(idle)).count();
        state.idle.drain(..count).map(|idle| idle.held).collect()
    }

    /// Takes the processes that ended while they were idle.
    pub fn take_dead(&self) -> Vec<Held> {
        let (mut alive, mut dead) = (Vec::new(), Vec::new());
        let mut state = self.lock();
        for mut idle in std::mem::take(&mut state.idle) {
            match idle.held.worker.is_alive() {
                true => alive.push(idle),
                false => dead.push(idle.held),
            }
        }
        state.idle = alive;
        dead
    }

    /// The model as the outside sees it.
    pub fn status(&self) -> ModelStatus {
        let memory_bytes = self.seats.bytes();
        let state = self.lock();
        let model = if state.running > 0 && state.idle.is_empty() {
            ModelState::Busy
        } else if !state.idle.is_empty() {
            ModelState::Ready
        } else if state.loading > 0 {
            ModelState::Loading
        } else if state.trouble.is_on() {
            ModelState::Failed
        } else {
            ModelState::Unloaded
        };
        let voices = self.voices(&state);
        let first = state.own_voices.first().map(|voice| voice.id.clone());
        ModelStatus {
            id: self.id().to_owned(),
            family: self.plan.spec.family.clone(),
            task: self.plan.spec.task,
            state: model,
            info: state.info.clone(),
            default_voice: self.plan.default_voice.clone().or(first),
            voices,
            queued: state.accepted - state.running,
            running: state.running,
            memory_bytes,
            restarts: state.restarts,
            note: state.note(),
        }
    }
}

impl State {
    /// Why it runs elsewhere than it was configured to, or why it could not be loaded.
    pub fn note(&self) -> Option<String> {
        if let Some(error) = self.trouble.error() {
            return Some(error.message.clone());
        }
        self.fallback()
    }

    /// Why it runs elsewhere than it was configured to.
    pub fn fallback(&self) -> Option<String> {
        if let Some(reason) = &self.on_cpu {
            return Some(format!("{reason}; it runs on the CPU instead"));
        }
        let device = &self.info.as_ref()?.device;
        let reasons = device.fallbacks.join("; ");
        (!reasons.is_empty()).then(|| format!("{reasons}; it runs on {} instead", device.device))
    }
}
