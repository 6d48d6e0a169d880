//! The way of one job: through the queue, to a process, and back.

use std::sync::Arc;

use audiocpp::engine::{Error, ErrorClass, Event};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{
    House, cancelled,
    served::{Accepted, Held, Patience, Served},
};
use crate::{
    job::{Job, Outcome, Refusal, Reply},
    worker::{
        handle::{JobEnd, Limits, LoadEnd, Worker},
        spec::Spec,
    },
};

/// Waits for a process of the model, runs the job there, and replies.
pub async fn serve(
    house: Arc<House>,
    mut accepted: Accepted,
    job: Job,
    patience: Patience,
    replies: mpsc::Sender<Reply>,
) {
    let served = accepted.served.clone();
    let began = Instant::now();
    let outcome = run(&house, &mut accepted, job, &patience, &replies, began).await;
    let time = began.elapsed();
    // What the metrics and the queue say is true before the reply is heard.
    drop(accepted);
    let (end, reply) = match outcome {
        Ok(outcome) => ("done", Reply::Done(outcome)),
        Err(refusal) => (end_of(&refusal), Reply::Failed(refusal)),
    };
    served.meter.ended(end);
    tracing::info!(end, seconds = time.as_secs_f64(), "job");
    // Nobody may be listening any more.
    let _ = replies.send(reply).await;
}

fn end_of(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Job(error) if error.class == ErrorClass::Cancelled => "cancelled",
        Refusal::WorkerLost { .. } => "lost",
        Refusal::Busy { .. } | Refusal::ShuttingDown => "refused",
        _ => "failed",
    }
}

async fn run(
    house: &Arc<House>,
    accepted: &mut Accepted,
    job: Job,
    patience: &Patience,
    replies: &mpsc::Sender<Reply>,
    began: Instant,
) -> Result<Box<Outcome>, Refusal> {
    let served = accepted.served.clone();
    let slot = patience.wait_for(&served, served.slots.acquire()).await?;
    // The semaphore is never closed.
    let _slot = slot.map_err(|_| Refusal::ShuttingDown)?;
    let heard = |event| {
        // Progress of loading is no loss where nobody reads.
        let _ = replies.try_send(Reply::Event(event));
    };
    let mut held = served.hold(house, patience, &house.stop, heard).await?;
    if patience.cancel.is_cancelled() {
        served.put_back(house, held).await;
        return Err(cancelled());
    }
    accepted.begin();
    served.meter.waited(began.elapsed());
    let voice = match &job {
        Job::Synthesize { request } => served.voice_of(request),
        _ => None,
    };
    let limits = Limits {
        watchdog: served.plan.watchdog,
        cancel: patience.cancel.clone(),
        stop: house.stop.clone(),
    };
    let started = Instant::now();
    let end = held.worker.run(job, voice, &limits, replies).await;
    served.took(started.elapsed());
    match end {
        JobEnd::Done(mut outcome) => {
            let fallback = served.lock().fallback();
            outcome.warnings().extend(fallback);
            served.put_back(house, held).await;
            Ok(outcome)
        }
        JobEnd::Failed(error) => {
            served.put_back(house, held).await;
            Err(Refusal::Job(error))
        }
        JobEnd::Cancelled => {
            served.put_back(house, held).await;
            Err(cancelled())
        }
        JobEnd::Stopped => Err(Refusal::ShuttingDown),
        JobEnd::Lost(how) => {
            drop(held);
            Err(served.lost(house, how))
        }
    }
}

impl Served {
    /// A process for a job: one that is idle, or a new one.
    ///
    /// # Errors
    /// [`Refusal`]: it cannot be loaded, or the wait is over.
    pub async fn hold(
        self: &Arc<Self>,
        house: &Arc<House>,
        patience: &Patience,
        stop: &CancellationToken,
        mut heard: impl FnMut(Event),
    ) -> Result<Held, Refusal> {
        while let Some(mut held) = self.pop_idle() {
            if held.worker.is_alive() {
                return Ok(held);
            }
            self.died_idle(house);
        }
        self.wait_out_trouble(patience).await?;
        loop {
            match self.start(house, patience, stop, &mut heard).await {
                Ok(held) => return Ok(held),
                Err(Some(refusal)) => return Err(refusal),
                // Once more, on the CPU.
                Err(None) => {}
            }
        }
    }

    /// After failures: not at once again. Why a model cannot be loaded is not asked again before
    /// its time.
    async fn wait_out_trouble(&self, patience: &Patience) -> Result<(), Refusal> {
        let (wait, error) = {
            let state = self.lock();
            (state.trouble.wait(), state.trouble.error().cloned())
        };
        match (wait, error) {
            (None, _) => Ok(()),
            (Some(_), Some(error)) => Err(self.load_refusal(error)),
            (Some(wait), None) => patience.wait_for(self, sleep(wait)).await,
        }
    }

    /// Starts and loads one process. The error is none if the next attempt is on the CPU.
    async fn start(
        self: &Arc<Self>,
        house: &Arc<House>,
        patience: &Patience,
        stop: &CancellationToken,
        heard: &mut impl FnMut(Event),
    ) -> Result<Held, Option<Refusal>> {
        let seat = house.make_room(self, patience).await?;
        let spec = self.spec_now();
        let _loading = Loading::new(self);
        let mut worker = Worker::spawn(&house.launch, self.id()).map_err(|error| {
            let error = Error::internal(format!("its worker cannot be started: {error}"));
            self.lock().trouble.add(Some(error.clone()));
            self.load_refusal(error)
        })?;
        seat.start(worker.pid());
        let again = {
            let mut state = self.lock();
            let again = state.lost > 0;
            state.lost -= u64::from(again);
            state.restarts += u64::from(again);
            again
        };
        self.meter.started(again);
        let auto = spec.load.device == "auto";
        match worker.load(spec, house.load_limit, stop, heard).await {
            Ok(()) => {
                seat.settle(worker.memory());
                self.loaded(&worker);
                let worker = Box::new(worker);
                Ok(Held { worker, seat })
            }
            Err(LoadEnd::Stopped) => Err(Some(Refusal::ShuttingDown)),
            Err(end) if auto && is_of_device(&end) => {
                self.fall_back(&end);
                Err(None)
            }
            Err(LoadEnd::Failed(error)) => {
                self.lock().trouble.add(Some(error.clone()));
                Err(Some(self.load_refusal(error)))
            }
            Err(LoadEnd::Lost(how)) => {
                drop(worker);
                drop(seat);
                Err(Some(self.lost(house, format!("{how} while it loaded"))))
            }
        }
    }

    fn spec_now(&self) -> Spec {
        let mut spec = self.plan.spec.clone();
        if self.lock().on_cpu.is_some() {
            spec.load.device = "cpu".into();
        }
        spec
    }

    fn loaded(&self, worker: &Worker) {
        self.meter.loaded(worker.load_seconds());
        let mut state = self.lock();
        state.info = Some(worker.info().clone());
        state.own_voices = worker.voices().to_vec();
        state.measured = Some(worker.memory()).filter(|bytes| *bytes > 0);
        let device = &worker.info().device.device;
        tracing::info!(
            model = self.id(),
            device,
            seconds = worker.load_seconds(),
            "loaded"
        );
    }

    /// The device that `auto` chose has failed: from now on it is the CPU.
    fn fall_back(&self, end: &LoadEnd) {
        let reason = match end {
            LoadEnd::Failed(error) => error.message.clone(),
            LoadEnd::Lost(how) => format!("a worker on device auto {how} while it loaded"),
            LoadEnd::Stopped => return,
        };
        tracing::warn!(model = self.id(), "{reason}; trying the CPU");
        self.meter.fell_back();
        self.lock().on_cpu = Some(reason);
    }

    fn load_refusal(&self, error: Error) -> Refusal {
        Refusal::Load {
            model: self.id().to_owned(),
            error,
        }
    }

    /// Notes that a process was lost.
    fn lost(self: &Arc<Self>, house: &Arc<House>, how: String) -> Refusal {
        tracing::error!(model = self.id(), "its worker {how}");
        self.meter.lost();
        {
            let mut state = self.lock();
            state.trouble.add(None);
            state.lost += 1;
        }
        self.bring_back(house);
        Refusal::WorkerLost {
            model: self.id().to_owned(),
            how,
        }
    }

    /// Notes that a process ended that had no job.
    pub fn died_idle(self: &Arc<Self>, house: &Arc<House>) {
        tracing::warn!(model = self.id(), "its worker ended while it was idle");
        self.meter.lost();
        self.lock().lost += 1;
        self.bring_back(house);
    }

    /// Loads a model again that is to be loaded all the time.
    fn bring_back(self: &Arc<Self>, house: &Arc<House>) {
        if !self.plan.lazy && !house.drain.is_cancelled() {
            house.load_later(self);
        }
    }

    /// Puts a process back that has answered.
    async fn put_back(&self, house: &House, held: Held) {
        held.seat.settle(held.worker.memory());
        self.lock().trouble.end();
        self.push_idle(held);
        house.freed.notify_waiters();
        house.keep_budget().await;
    }

    /// Makes sure that one process has the model loaded.
    ///
    /// # Errors
    /// [`Refusal`]: it cannot be loaded, or the server goes down.
    pub async fn load(
        self: &Arc<Self>,
        house: &Arc<House>,
        patience: &Patience,
    ) -> Result<(), Refusal> {
        let slot = patience.wait_for(self, self.slots.acquire()).await?;
        let _slot = slot.map_err(|_| Refusal::ShuttingDown)?;
        let held = self.hold(house, patience, &house.drain, |_| {}).await?;
        self.push_idle(held);
        house.freed.notify_waiters();
        house.keep_budget().await;
        Ok(())
    }

    /// Ends every process once its job is done, and forgets failures and fallbacks.
    ///
    /// # Errors
    /// [`Refusal::ShuttingDown`].
    pub async fn unload(self: &Arc<Self>, house: &House) -> Result<(), Refusal> {
        let patience = Patience::of_server(house);
        let all = u32::try_from(self.plan.workers).unwrap_or(u32::MAX);
        let slots = patience
            .wait_for(self, self.slots.acquire_many(all))
            .await?;
        let _slots = slots.map_err(|_| Refusal::ShuttingDown)?;
        for held in self.take_idle(None) {
            self.meter.unloaded("asked");
            held.end().await;
        }
        let mut state = self.lock();
        state.on_cpu = None;
        state.trouble.end();
        Ok(())
    }
}

/// Whether another device could do better.
fn is_of_device(end: &LoadEnd) -> bool {
    match end {
        LoadEnd::Lost(_) => true,
        LoadEnd::Failed(error) => matches!(
            error.class,
            ErrorClass::OutOfMemory | ErrorClass::Unsupported | ErrorClass::Internal
        ),
        LoadEnd::Stopped => false,
    }
}

/// Counts a process that is being started.
struct Loading<'a>(&'a Served);

impl<'a> Loading<'a> {
    fn new(served: &'a Served) -> Self {
        served.lock().loading += 1;
        Loading(served)
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        self.0.lock().loading -= 1;
    }
}
