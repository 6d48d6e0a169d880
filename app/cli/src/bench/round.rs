//! One round: a process of its own that loads the model, warms up and takes the times.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Instant,
};

use audiocpp::engine::{CancelToken, Event, Registry, Result, RunContext};
use serde::{Deserialize, Serialize};

use super::work;
use crate::{
    args::Bench,
    failure::{Failure, Outcome},
    model::Choice,
    progress::Progress,
};

/// What a round measured; crosses to the process that asked for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// The process that measured.
    pub process: u32,
    /// The device that was opened.
    pub device: String,
    /// The vendor's name of it.
    pub device_name: String,
    /// Why preferred devices were not used.
    pub fallbacks: Vec<String>,
    /// Opening the device and loading the model, in seconds.
    pub load_seconds: f64,
    /// Seconds of sound in each run.
    pub audio_seconds: f64,
    /// Bytes of weights on the device.
    pub weight_bytes: u64,
    /// Most memory that the process held, in bytes; absent where the system does not say.
    pub peak_memory: Option<u64>,
    /// The result of the last run.
    pub result: String,
    /// Whether all runs gave the same result.
    pub results_agree: bool,
    /// The timed runs, in order.
    pub runs: Vec<Run>,
}

/// One timed run; all times in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// From the request to the whole result.
    pub seconds: f64,
    /// From the request to the first part of the result.
    pub first_seconds: f64,
    /// Time in each stage that the model tells.
    pub stages: BTreeMap<String, f64>,
}

/// Measures in this process.
pub fn measure(args: &Bench, registry: &Registry, cancel: &CancelToken) -> Outcome<Round> {
    let task = work::task(args)?;
    let choice = Choice::new(&args.model, task, registry)?;
    let progress = Progress::new();
    let context = progress.context(cancel);
    let path = choice.fetch(&progress, &context)?;
    let started = Instant::now();
    let model = choice.load(&path, &context)?;
    let load_seconds = started.elapsed().as_secs_f64();
    let info = model.info();
    let mut work = work::prepare(args, task, &choice, &*model).map_err(Failure::run)?;
    let mut round = Round {
        process: std::process::id(),
        device: info.device.device,
        device_name: info.device.name,
        fallbacks: info.device.fallbacks,
        load_seconds,
        weight_bytes: info.weight_bytes,
        results_agree: true,
        ..Round::default()
    };
    for number in 0..args.warmup + args.reps {
        let (run, made) = timed(&mut work, cancel).map_err(Failure::run)?;
        round.results_agree &= number == 0 || made.result == round.result;
        (round.audio_seconds, round.result) = (made.audio_seconds, made.result);
        if number >= args.warmup {
            round.runs.push(run);
        }
    }
    round.peak_memory = peak_memory();
    Ok(round)
}

/// One run under the clock.
fn timed(work: &mut work::Work, cancel: &CancelToken) -> Result<(Run, work::Made)> {
    /// Seconds to the first result, and in each stage.
    type Seen = (Option<f64>, BTreeMap<String, f64>);
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let (copy, started) = (seen.clone(), Instant::now());
    let sink = move |event: Event| {
        let Ok(mut seen) = copy.lock() else { return };
        match event {
            Event::Stage { stage, seconds } => *seen.1.entry(stage).or_default() += seconds,
            Event::Segment(_) => {
                seen.0
                    .get_or_insert_with(|| started.elapsed().as_secs_f64());
            }
            _ => (),
        }
    };
    let context = RunContext::with_sink(cancel.clone(), Arc::new(sink));
    let made = work(&context)?;
    let seconds = started.elapsed().as_secs_f64();
    let (first, stages) = seen
        .lock()
        .map(|mut s| std::mem::take(&mut *s))
        .unwrap_or_default();
    let run = Run {
        seconds,
        // A task without parts has its first with its last.
        first_seconds: first.unwrap_or(seconds),
        stages,
    };
    Ok((run, made))
}

/// The high-water mark of this process's resident memory.
fn peak_memory() -> Option<u64> {
    high_water(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn high_water(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_high_water_mark_is_read() {
        assert_eq!(
            high_water("VmRSS:\t 1 kB\nVmHWM:\t  1234 kB\n"),
            Some(1_263_616)
        );
        assert_eq!(high_water("VmRSS:\t 1 kB\n"), None);
    }

    #[test]
    fn a_run_keeps_its_first_part_and_the_sum_of_each_stage() {
        let pause = || std::thread::sleep(std::time::Duration::from_millis(20));
        let mut work: work::Work = Box::new(move |context| {
            for _ in 0..3 {
                context.timed("encode", pause);
                context.send(Event::Segment(audiocpp::engine::Segment::default()));
            }
            Ok(work::Made {
                audio_seconds: 2.0,
                result: "x".into(),
            })
        });
        let (run, made) = timed(&mut work, &CancelToken::default()).unwrap();
        assert_eq!(made.audio_seconds, 2.0);
        assert_eq!(run.stages.keys().collect::<Vec<_>>(), ["encode"]);
        assert!(run.stages["encode"] >= 0.06 && run.seconds >= run.stages["encode"]);
        assert!(run.first_seconds >= 0.02 && run.first_seconds < run.seconds);
    }
}
