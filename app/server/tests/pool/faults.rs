//! What breaks: workers that are killed, abort, hang, run out of memory or never load. The server
//! lives, each request gets an answer, and the next one works where that is possible.

use std::time::{Duration, Instant};

use crate::support::*;
use audiocpp::engine::ErrorClass;
use audiocpp_server::job::{ModelState, Outcome, Refusal, Runner};
use serde_json::json;

/// Graphs of the canary and the first job's first chunk are past at this one.
const MID_JOB: u32 = 40;

fn lost(refusal: &Refusal) -> &str {
    match refusal {
        Refusal::WorkerLost { how, .. } => how,
        other => panic!("{other} instead of a lost worker"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_killed_in_a_job_takes_that_job_alone() {
    let bench = Bench::new()
        .gpu(&[("STAND_IN_FAULT", "sleep:20")])
        .voice("slow", json!({"device": "hip"}))
        .voice("other", json!({}));
    let pool = bench.pool();
    let wanted = samples(&pool, "other", "abc def").await;
    let mut run = start(&pool, "slow", speak(&text(2000, 1))).await;
    let mut next = start(&pool, "slow", speak_whole("abc def")).await;
    first_sound(&mut run).await;
    let before = pool.processes("slow");
    signal("-KILL", before[0]);
    let refusal = finish(&mut run).await.1.unwrap_err();
    assert_eq!(lost(&refusal), "was killed by signal 9");
    // The one that waited is served by a new process.
    let Ok(Outcome::Speech(speech)) = finish(&mut next).await.1 else {
        panic!("the next job is done");
    };
    assert!(!speech.audio.samples.is_empty());
    assert_ne!(pool.processes("slow"), before);
    assert_eq!(status(&pool, "slow").restarts, 1);
    // Killed while idle: nobody notices.
    signal("-KILL", pool.processes("slow")[0]);
    until("a dead worker", || pool.processes("slow").is_empty()).await;
    assert!(result(&pool, "slow", speak("abc")).await.is_ok());
    assert_eq!(samples(&pool, "other", "abc def").await, wanted);
    assert_eq!(status(&pool, "other").restarts, 0);
    pool.shutdown(LONG).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_is_to_be_loaded_comes_back_by_itself() {
    let bench = Bench::new().voice("voice", json!({"lazy": false}));
    let pool = bench.pool();
    let ready = || status(&pool, "voice").state == ModelState::Ready;
    until("a loaded model", ready).await;
    let before = pool.processes("voice");
    signal("-KILL", before[0]);
    until("another process", || {
        ready() && pool.processes("voice") != before
    })
    .await;
    assert_eq!(status(&pool, "voice").restarts, 1);
    pool.shutdown(LONG).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_is_an_answer_and_waits_grow_between_restarts() {
    let fault = format!("abort-compute:{MID_JOB}");
    let bench = Bench::new()
        .gpu(&[("STAND_IN_FAULT", &fault)])
        .voice("voice", json!({"device": "hip"}));
    let pool = bench.pool();
    let mut took = Vec::new();
    for _ in 0..3 {
        let begun = Instant::now();
        let refusal = result(&pool, "voice", speak(&text(200, 1)))
            .await
            .unwrap_err();
        took.push(begun.elapsed());
        assert_eq!(lost(&refusal), "was killed by signal 6");
        assert_eq!(status(&pool, "voice").state, ModelState::Failed);
    }
    // Half a second before the second, a second before the third.
    assert!(took[1] >= Duration::from_millis(450), "{took:?}");
    assert!(took[2] >= Duration::from_millis(950), "{took:?}");
    assert_eq!(status(&pool, "voice").restarts, 2);
    // A request that cannot wait so long is told to come back.
    let limit = Some(Duration::from_millis(50));
    let mut run = pool.run("voice", speak("abc"), "r", limit).await.unwrap();
    let refusal = finish(&mut run).await.1.unwrap_err();
    assert!(matches!(refusal, Refusal::Busy { .. }), "{refusal}");
    pool.shutdown(LONG).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hang_is_ended_and_slow_work_is_not() {
    let hang = format!("hang-compute:{MID_JOB}");
    let bench = Bench::new()
        .gpu(&[("STAND_IN_FAULT", &hang)])
        .voice("voice", json!({"device": "hip", "watchdog_seconds": 5}));
    let pool = bench.pool();
    let refusal = result(&pool, "voice", speak(&text(200, 1)))
        .await
        .unwrap_err();
    assert_eq!(lost(&refusal), "did not answer for 5 s");
    until("an end", || pool.processes("voice").is_empty()).await;
    pool.shutdown(LONG).await;

    // Longer in all than the limit.
    let bench = Bench::new()
        .gpu(&[("STAND_IN_FAULT", "sleep:150")])
        .voice("voice", json!({"device": "hip", "watchdog_seconds": 15}));
    let pool = bench.pool();
    let begun = Instant::now();
    let outcome = result(&pool, "voice", speak_whole(&text(40, 1))).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    assert!(
        begun.elapsed() > Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
    pool.shutdown(LONG).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failing_graphs_and_full_memory_are_errors_of_the_job() {
    let compute = format!("compute:{MID_JOB}");
    let bench = Bench::new()
        .gpu(&[("STAND_IN_FAULT", &compute)])
        .voice("voice", json!({"device": "hip"}));
    let pool = bench.pool();
    let refusal = result(&pool, "voice", speak(&text(200, 1)))
        .await
        .unwrap_err();
    assert!(matches!(&refusal, Refusal::Job(_)), "{refusal}");
    assert_eq!(pool.processes("voice").len(), 1);
    pool.shutdown(LONG).await;

    // Room for the weights, not for the work.
    let bench = Bench::new()
        .gpu(&[("STAND_IN_LIMIT", "2000000")])
        .voice("voice", json!({"device": "hip"}));
    let pool = bench.pool();
    let long = "abc def ".repeat(60);
    let refusal = result(&pool, "voice", speak(&long)).await.unwrap_err();
    let error = match &refusal {
        Refusal::Job(error) | Refusal::Load { error, .. } => error,
        other => panic!("{other}"),
    };
    assert_eq!(error.class, ErrorClass::OutOfMemory, "{error}");
    pool.shutdown(LONG).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_named_device_never_becomes_another() {
    for (variable, value, wanted) in [
        ("STAND_IN_FAULT", "open", "did not start"),
        (
            "STAND_IN_FAULT",
            "abort-open",
            "was killed by signal 6 while it loaded",
        ),
        ("STAND_IN_LIMIT", "1000", "out of memory"),
    ] {
        let bench = Bench::new()
            .gpu(&[(variable, value)])
            .voice("voice", json!({"device": "hip"}));
        let pool = bench.pool();
        let refusal = result(&pool, "voice", speak("abc")).await.unwrap_err();
        assert!(refusal.to_string().contains(wanted), "{value}: {refusal}");
        let status = status(&pool, "voice");
        assert_eq!(status.state, ModelState::Failed);
        if let Refusal::Load { error, .. } = &refusal {
            assert_eq!(status.note.as_ref(), Some(&error.message));
            // What loading said is not asked again at once.
            let again = result(&pool, "voice", speak("abc")).await.unwrap_err();
            assert_eq!(again, refusal);
        }
        assert!(pool.processes("voice").is_empty());
        pool.shutdown(LONG).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auto_falls_back_to_the_cpu_once_and_says_so() {
    let plain = Bench::new().voice("voice", json!({}));
    let cpu = plain.pool();
    let wanted = samples(&cpu, "voice", "abc").await;
    cpu.shutdown(LONG).await;
    for (variable, value, reason) in [
        ("STAND_IN_FAULT", "open", "hip:0"),
        ("STAND_IN_LIMIT", "1000", "out of memory"),
        (
            "STAND_IN_FAULT",
            "abort-open",
            "was killed by signal 6 while it loaded",
        ),
        (
            "STAND_IN_FAULT",
            "hang-compute",
            "did not answer for 5 s while it loaded",
        ),
    ] {
        let bench = Bench::new()
            .gpu(&[(variable, value), ("STAND_IN_ARCH", "gfx1100")])
            .key("load_timeout_seconds", 5)
            .voice("voice", json!({"device": "auto"}));
        let pool = bench.pool();
        let outcome = result(&pool, "voice", speak_whole("abc")).await;
        let Ok(Outcome::Speech(speech)) = outcome else {
            panic!("{value}: {outcome:?}");
        };
        assert_eq!(speech.audio.samples, wanted, "{value}");
        let note = status(&pool, "voice").note.unwrap_or_default();
        assert!(
            note.contains(reason) && note.to_lowercase().contains("cpu"),
            "{value}: {note}"
        );
        assert!(
            speech.warnings.contains(&note),
            "{value}: {:?}",
            speech.warnings
        );
        assert_eq!(status(&pool, "voice").restarts, 0);
        pool.shutdown(LONG).await;
    }
}
