//! What operators want to know about the workers, as metrics of the `metrics` facade.

use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

const QUEUED: &str = "audiocpp_queued_jobs";
const RUNNING: &str = "audiocpp_running_jobs";
const WAITED: &str = "audiocpp_queue_seconds";
const JOBS: &str = "audiocpp_jobs_total";
const LOADED: &str = "audiocpp_load_seconds";
const STARTS: &str = "audiocpp_worker_starts_total";
const RESTARTS: &str = "audiocpp_worker_restarts_total";
const LOST: &str = "audiocpp_workers_lost_total";
const UNLOADS: &str = "audiocpp_unloads_total";
const FALLBACKS: &str = "audiocpp_device_fallbacks_total";
const MEMORY: &str = "audiocpp_worker_memory_bytes";

/// Describes every metric to the installed recorder.
pub fn describe() {
    describe_gauge!(QUEUED, "Jobs that wait for a model");
    describe_gauge!(RUNNING, "Jobs that a model is working on");
    describe_histogram!(
        WAITED,
        "Seconds from accepting a job to its start, loading included"
    );
    describe_counter!(
        JOBS,
        "Jobs by how they ended: done, failed, cancelled, lost, refused"
    );
    describe_histogram!(LOADED, "Seconds that loading a model took");
    describe_counter!(STARTS, "Worker processes that were started");
    describe_counter!(
        RESTARTS,
        "Worker processes that took the place of a lost one"
    );
    describe_counter!(LOST, "Worker processes that crashed or hung");
    describe_counter!(
        UNLOADS,
        "Models that were unloaded, by reason: idle, memory, asked"
    );
    describe_counter!(
        FALLBACKS,
        "Models that were moved to the CPU because their device failed"
    );
    describe_gauge!(MEMORY, "Bytes of memory that the workers of a model hold");
}

/// The metrics of one model.
#[derive(Clone, Debug)]
pub struct Meter(String);

impl Meter {
    /// Of the model called `model`.
    pub fn new(model: &str) -> Meter {
        Meter(model.to_owned())
    }

    /// How many jobs wait and run now.
    pub fn jobs(&self, queued: usize, running: usize) {
        gauge!(QUEUED, "model" => self.0.clone()).set(queued as f64);
        gauge!(RUNNING, "model" => self.0.clone()).set(running as f64);
    }

    /// A job began after so long.
    pub fn waited(&self, time: Duration) {
        histogram!(WAITED, "model" => self.0.clone()).record(time);
    }

    /// A job ended.
    pub fn ended(&self, how: &'static str) {
        counter!(JOBS, "model" => self.0.clone(), "end" => how).increment(1);
    }

    /// A model was loaded in so many seconds.
    pub fn loaded(&self, seconds: f64) {
        histogram!(LOADED, "model" => self.0.clone()).record(seconds);
    }

    /// A process was started, in the place of a lost one or not.
    pub fn started(&self, again: bool) {
        counter!(STARTS, "model" => self.0.clone()).increment(1);
        if again {
            counter!(RESTARTS, "model" => self.0.clone()).increment(1);
        }
    }

    /// A process was lost.
    pub fn lost(&self) {
        counter!(LOST, "model" => self.0.clone()).increment(1);
    }

    /// A process was ended because of `reason`.
    pub fn unloaded(&self, reason: &'static str) {
        counter!(UNLOADS, "model" => self.0.clone(), "reason" => reason).increment(1);
    }

    /// The model was moved to the CPU.
    pub fn fell_back(&self) {
        counter!(FALLBACKS, "model" => self.0.clone()).increment(1);
    }

    /// Bytes that the workers hold.
    pub fn memory(&self, bytes: u64) {
        gauge!(MEMORY, "model" => self.0.clone()).set(bytes as f64);
    }
}
