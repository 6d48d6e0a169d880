//! The worker processes of all models: queues, loading and unloading, memory, restarts.
//!
//! ```text
//!  run() ── queue of the model ── slot ── process: idle | room made, started, loaded ── job
//!                                                    └── unloaded when idle, or to make room
//! ```

pub mod metrics;
mod room;
mod seat;
mod served;
mod serving;
mod trouble;
mod voices;

use std::{
    io,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use audiocpp::engine::{Error, nearest};
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument;

use crate::{
    config::Plan,
    job::{Job, ModelStatus, Refusal, Run, Runner},
    worker::handle::Launch,
};
use served::{Accepted, Patience, Served};

/// Replies that may wait for who listens.
const REPLIES: usize = 32;
/// Between two looks for models that are idle.
const REAP: Duration = Duration::from_millis(500);
/// How long the end of workers may take once they were told.
const LAST: Duration = Duration::from_secs(5);

/// The pool; implements [`Runner`].
pub struct Pool(Arc<House>);

/// What all models share.
struct House {
    models: Vec<Arc<Served>>,
    memory_budget: Option<u64>,
    load_limit: Duration,
    launch: Launch,
    /// Held while a process is given its place, so that two do not count on the same room.
    room: Mutex<()>,
    /// Told when a process becomes idle or ends.
    freed: Arc<Notify>,
    /// No new work.
    drain: CancellationToken,
    /// No work at all.
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Pool {
    /// Serves the models of `plan`; those that are not lazy are loaded at once, in the background.
    /// Call it inside a tokio runtime.
    ///
    /// # Errors
    /// The system does not tell where this program is.
    pub fn start(plan: Plan) -> io::Result<Arc<Pool>> {
        Ok(Pool::start_with(plan, Launch::here()?))
    }

    /// As [`Pool::start`], with workers that are started as `launch` says.
    pub fn start_with(plan: Plan, launch: Launch) -> Arc<Pool> {
        let house = Arc::new(House {
            models: plan
                .models
                .into_iter()
                .map(Served::new)
                .map(Arc::new)
                .collect(),
            memory_budget: plan.memory_budget,
            load_limit: plan.load_limit,
            launch,
            room: Mutex::default(),
            freed: Arc::default(),
            drain: CancellationToken::new(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        for model in house.models.iter().filter(|model| !model.plan.lazy) {
            house.load_later(model);
        }
        house.tasks.spawn(reap(house.clone()));
        Arc::new(Pool(house))
    }

    /// Refuses new jobs, lets those that run go on for at most `limit`, then ends every worker.
    pub async fn shutdown(&self, limit: Duration) {
        let house = &self.0;
        house.drain.cancel();
        house.tasks.close();
        if timeout(limit, house.tasks.wait()).await.is_err() {
            tracing::warn!(
                "requests still run after {} s; they are ended",
                limit.as_secs_f64()
            );
            house.stop.cancel();
            // A task that does not notice is left behind; its process ends with this one.
            let _ = timeout(LAST, house.tasks.wait()).await;
        }
        house.stop.cancel();
        let idle = house.models.iter().flat_map(|model| model.take_idle(None));
        let ends: Vec<_> = idle.map(|held| tokio::spawn(held.end())).collect();
        for end in ends {
            // As above.
            let _ = timeout(LAST, end).await;
        }
    }

    /// Ids of the processes that hold `model` now.
    pub fn processes(&self, model: &str) -> Vec<u32> {
        let served = self.0.models.iter().find(|served| served.id() == model);
        served.map_or_else(Vec::new, |served| served.seats.processes())
    }
}

impl House {
    fn find(&self, model: &str) -> Result<&Arc<Served>, Refusal> {
        let found = self.models.iter().find(|served| served.id() == model);
        found.ok_or_else(|| {
            let names = self.models.iter().map(|served| served.id());
            Refusal::UnknownModel {
                model: model.to_owned(),
                near: nearest(model, names).map(str::to_owned),
            }
        })
    }

    /// Loads a model in the background, once it may be tried again.
    fn load_later(self: &Arc<Self>, served: &Arc<Served>) {
        let (house, served) = (self.clone(), served.clone());
        self.tasks.spawn(async move {
            let patience = Patience::of_server(&house);
            if let Err(refusal) = served.load(&house, &patience).await
                && refusal != Refusal::ShuttingDown
            {
                tracing::error!(model = served.id(), "{refusal}");
            }
        });
    }
}

#[async_trait]
impl Runner for Pool {
    async fn run(
        &self,
        model: &str,
        job: Job,
        request_id: &str,
        wait: Option<Duration>,
    ) -> Result<Run, Refusal> {
        let house = &self.0;
        let served = house.find(model)?;
        if house.drain.is_cancelled() {
            return Err(Refusal::ShuttingDown);
        }
        let accepted = Accepted::new(served)?;
        let (sender, replies) = mpsc::channel(REPLIES);
        let cancel = CancellationToken::new();
        let wait = [wait, served.plan.wait].into_iter().flatten().min();
        let patience = Patience {
            until: wait.map(|wait| Instant::now() + wait),
            wait,
            cancel: cancel.clone(),
            drain: house.drain.clone(),
        };
        let span = tracing::info_span!("job", model, request_id);
        let task = serving::serve(house.clone(), accepted, job, patience, sender);
        house.tasks.spawn(task.instrument(span));
        Ok(Run {
            replies,
            guard: cancel.drop_guard(),
        })
    }

    fn models(&self) -> Vec<ModelStatus> {
        self.0.models.iter().map(|served| served.status()).collect()
    }

    async fn load(&self, model: &str) -> Result<(), Refusal> {
        let served = self.0.find(model)?;
        if self.0.drain.is_cancelled() {
            return Err(Refusal::ShuttingDown);
        }
        served.load(&self.0, &Patience::of_server(&self.0)).await
    }

    async fn unload(&self, model: &str) -> Result<(), Refusal> {
        let served = self.0.find(model)?;
        served.unload(&self.0).await
    }

    async fn add_voice(
        &self,
        model: &str,
        name: &str,
        recording: PathBuf,
        words: Option<String>,
    ) -> Result<(), Refusal> {
        let served = self.0.find(model)?;
        served
            .add_voice(name, &recording, words)
            .map_err(Refusal::Job)
    }

    async fn remove_voice(&self, model: &str, name: &str) -> Result<(), Refusal> {
        let served = self.0.find(model)?;
        served.remove_voice(name).map_err(Refusal::Job)
    }
}

/// Unloads models that are not used and notices workers that died, until the server goes down.
async fn reap(house: Arc<House>) {
    loop {
        tokio::select! {
            () = sleep(REAP) => {}
            () = house.drain.cancelled() => return,
        }
        for served in &house.models {
            served.tell_memory();
            for dead in served.take_dead() {
                served.died_idle(&house);
                drop(dead);
            }
            let Some(limit) = served.plan.idle_unload else {
                continue;
            };
            for held in served.take_idle(Some(limit)) {
                tracing::info!(
                    model = served.id(),
                    "unloaded: not used for {} s",
                    limit.as_secs()
                );
                served.meter.unloaded("idle");
                held.end().await;
            }
        }
    }
}

/// What a job that nobody waits for any more comes to.
fn cancelled() -> Refusal {
    Refusal::Job(Error::cancelled())
}
