//! What Prometheus is told of requests; what runs the jobs has measurements of its own. Labels are routes, configured models and status codes alone, so that no
//! caller can make new series.

use std::{sync::Arc, time::Duration};

use audiocpp::engine::Task;
use metrics::{counter, gauge, histogram, with_local_recorder};
use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};

use crate::job::{ModelState, ModelStatus};

const SECONDS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
];
const FACTORS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0,
];

/// Collects measurements; each server has its own.
pub struct Meter {
    recorder: Arc<PrometheusRecorder>,
    handle: PrometheusHandle,
}

/// How a job ended, and how long it took.
pub struct JobEnd<'a> {
    /// The model that ran it.
    pub model: &'a str,
    /// What it did.
    pub task: Task,
    /// `ok`, `failed` or `cancelled`.
    pub result: &'static str,
    /// From acceptance to the end.
    pub took: Duration,
    /// Seconds of sound that were read or made.
    pub sound: f64,
}

impl Meter {
    /// A meter without measurements.
    ///
    /// # Errors
    /// Buckets that the exporter refuses.
    pub fn new() -> Result<Self, BuildError> {
        let full = |name: &str| Matcher::Full(name.to_owned());
        let recorder = PrometheusBuilder::new()
            .set_buckets(SECONDS)?
            .set_buckets_for_metric(full("audiocpp_real_time_factor"), FACTORS)?
            .build_recorder();
        let handle = recorder.handle();
        let recorder = Arc::new(recorder);
        let meter = Meter { recorder, handle };
        meter.describe();
        Ok(meter)
    }

    fn describe(&self) {
        use metrics::{describe_counter as count, describe_gauge as now, describe_histogram as of};
        with_local_recorder(&self.recorder, || {
            count!(
                "audiocpp_http_requests_total",
                "Answers by route and status"
            );
            of!(
                "audiocpp_http_request_seconds",
                "Time to the head of an answer"
            );
            now!(
                "audiocpp_http_requests_in_flight",
                "Requests that are being answered"
            );
            count!(
                "audiocpp_http_jobs_total",
                "Jobs of HTTP requests by model, task and result"
            );
            of!(
                "audiocpp_http_job_seconds",
                "Time from acceptance to the end of a job"
            );
            of!(
                "audiocpp_first_output_seconds",
                "Time to the first sound or text of a job"
            );
            of!(
                "audiocpp_real_time_factor",
                "Seconds of work for a second of sound"
            );
            count!(
                "audiocpp_sound_seconds_total",
                "Seconds of sound read or made"
            );
            now!("audiocpp_model_loaded", "1 while a model is in memory");
            now!(
                "audiocpp_model_fallback",
                "1 while a model runs elsewhere than configured"
            );
            now!(
                "process_resident_memory_bytes",
                "Resident memory of the server itself"
            );
        });
    }

    /// An answer to `route` has its head.
    pub fn answered(&self, route: &'static str, method: &'static str, status: u16, took: Duration) {
        with_local_recorder(&self.recorder, || {
            counter!("audiocpp_http_requests_total", "route" => route, "method" => method,
                "status" => status.to_string())
            .increment(1);
            histogram!("audiocpp_http_request_seconds", "route" => route).record(took);
        });
    }

    /// `change` more requests are being answered.
    pub fn in_flight(&self, change: f64) {
        with_local_recorder(&self.recorder, || {
            gauge!("audiocpp_http_requests_in_flight").increment(change);
        });
    }

    /// The first sound or text of a job is there.
    pub fn first_output(&self, model: &str, task: Task, took: Duration) {
        with_local_recorder(&self.recorder, || {
            let model = model.to_owned();
            histogram!("audiocpp_first_output_seconds", "model" => model, "task" => task.name())
                .record(took);
        });
    }

    /// A job ended.
    pub fn job(&self, end: &JobEnd<'_>) {
        let labels = [
            ("model", end.model.to_owned()),
            ("task", end.task.name().to_owned()),
        ];
        with_local_recorder(&self.recorder, || {
            let mut counted = labels.to_vec();
            counted.push(("result", end.result.to_owned()));
            counter!("audiocpp_http_jobs_total", &counted).increment(1);
            if end.result != "ok" {
                return;
            }
            histogram!("audiocpp_http_job_seconds", &labels).record(end.took);
            if end.sound > 0.0 {
                let factor = end.took.as_secs_f64() / end.sound;
                histogram!("audiocpp_real_time_factor", &labels).record(factor);
                counter!("audiocpp_sound_seconds_total", &labels).increment(end.sound as u64);
            }
        });
    }

    /// Also takes what the rest of the process measures, unless another meter does already.
    pub fn take_all(&self) {
        let _ = metrics::set_global_recorder(self.recorder.clone());
    }

    /// Everything as Prometheus reads it, with `models` as they are now.
    pub fn render(&self, models: &[ModelStatus]) -> String {
        with_local_recorder(&self.recorder, || {
            for model in models {
                let set = |name: &'static str, value: f64| {
                    gauge!(name, "model" => model.id.clone()).set(value);
                };
                let loaded = matches!(model.state, ModelState::Ready | ModelState::Busy);
                set("audiocpp_model_loaded", f64::from(u8::from(loaded)));
                let elsewhere = loaded && model.note.is_some();
                set("audiocpp_model_fallback", f64::from(u8::from(elsewhere)));
            }
            if let Some(bytes) = resident_bytes() {
                gauge!("process_resident_memory_bytes").set(bytes as f64);
            }
        });
        self.handle.render()
    }

    /// Folds measurements together, so that those nobody fetches take no memory.
    pub fn fold(&self) {
        self.handle.run_upkeep();
    }
}

/// Resident memory of this process, where the system tells.
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib << 10)
}
