//! Memory and the end: models that go when they are idle or when others need room, and servers
//! that end with their workers.

use std::{
    fs,
    process::Stdio,
    time::{Duration, Instant},
};

use crate::support::*;
use audiocpp::engine::ErrorClass;
use audiocpp_server::job::{ModelState, Refusal, Runner};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_model_gives_its_memory_back() {
    let bench = Bench::new()
        .voice("short", json!({"idle_unload_seconds": 1}))
        .voice("kept", json!({"idle_unload_seconds": 0}));
    let pool = bench.pool();
    for model in ["short", "kept"] {
        assert!(result(&pool, model, speak("abc")).await.is_ok());
        assert!(status(&pool, model).memory_bytes > 1 << 20);
    }
    let process = pool.processes("short")[0];
    until("an unloaded model", || {
        status(&pool, "short").state == ModelState::Unloaded
    })
    .await;
    until("memory given back", || {
        status(&pool, "short").memory_bytes == 0
    })
    .await;
    assert!(!is_alive(process));
    assert_eq!(status(&pool, "kept").state, ModelState::Ready);
    assert!(result(&pool, "short", speak("abc")).await.is_ok());
    assert_ne!(pool.processes("short"), [process]);
    pool.shutdown(LONG).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_that_was_not_used_for_longest_goes_first() {
    let bench = Bench::new().voice("a", json!({}));
    let pool = bench.pool();
    assert!(result(&pool, "a", speak("abc")).await.is_ok());
    let one = status(&pool, "a").memory_bytes;
    pool.shutdown(LONG).await;

    // Room for two and a half.
    let bench = Bench::new()
        .key("memory_budget_mb", one * 5 / 2 / 1_000_000)
        .voice("a", json!({}))
        .voice("b", json!({}))
        .voice("c", json!({}));
    let pool = bench.pool();
    for model in ["a", "b", "a"] {
        assert!(result(&pool, model, speak("abc")).await.is_ok());
    }
    let loaded = |model| status(&pool, model).state == ModelState::Ready;
    assert!(loaded("a") && loaded("b"));
    assert!(result(&pool, "c", speak("abc")).await.is_ok());
    until("b unloaded", || !loaded("b")).await;
    assert!(loaded("a") && loaded("c"));
    let held: u64 = pool.models().iter().map(|status| status.memory_bytes).sum();
    assert!(held <= one * 5 / 2, "{held} of {one}");
    pool.shutdown(LONG).await;

    let bench = Bench::new()
        .key("memory_budget_mb", 1)
        .voice("giant", json!({}));
    fs::write(
        bench.folder.path().join("voice/more.bin"),
        vec![0; 2_000_000],
    )
    .unwrap();
    let pool = bench.pool();
    let refusal = result(&pool, "giant", speak("abc")).await.unwrap_err();
    let Refusal::Load { error, .. } = &refusal else {
        panic!("{refusal}");
    };
    assert_eq!(error.class, ErrorClass::OutOfMemory);
    assert!(
        error.message.contains("memory_budget_mb allows 1.0 MB"),
        "{error}"
    );
    pool.shutdown(LONG).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn draining_finishes_what_runs_and_refuses_the_rest() {
    let bench = Bench::new()
        .gpu(&[("STAND_IN_FAULT", "sleep:20")])
        .voice("slow", json!({"device": "hip"}));
    let pool = bench.pool();
    let mut short = start(&pool, "slow", speak(&text(12, 1))).await;
    first_sound(&mut short).await;
    let mut waiting = start(&pool, "slow", speak("abc")).await;
    let process = pool.processes("slow")[0];
    let draining = tokio::spawn({
        let pool = pool.clone();
        async move { pool.shutdown(LONG).await }
    });
    let refusal = finish(&mut waiting).await.1.unwrap_err();
    assert_eq!(refusal, Refusal::ShuttingDown);
    let refusal = pool.run("slow", speak("abc"), "r", None).await.unwrap_err();
    assert_eq!(refusal, Refusal::ShuttingDown);
    assert!(finish(&mut short).await.1.is_ok());
    draining.await.unwrap();
    assert!(!is_alive(process));

    let pool = bench.pool();
    let mut endless = start(&pool, "slow", speak(&text(2000, 1))).await;
    first_sound(&mut endless).await;
    let process = pool.processes("slow")[0];
    let begun = Instant::now();
    let listens = tokio::spawn(async move { finish(&mut endless).await.1 });
    pool.shutdown(Duration::from_millis(300)).await;
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(listens.await.unwrap().unwrap_err(), Refusal::ShuttingDown);
    assert!(!is_alive(process));
}

/// Processes that `parent` started.
fn children(parent: u32) -> Vec<u32> {
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let pids = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default();
        fields.split_whitespace().nth(1) == Some(&parent.to_string())
    })
    .collect()
}

#[tokio::test]
async fn no_worker_outlives_its_server() {
    let bench = Bench::new()
        .voice("a", json!({"lazy": false}))
        .voice("b", json!({"lazy": false}));
    for (how, code) in [("-KILL", None), ("-TERM", Some(0)), ("-INT", Some(0))] {
        let mut server = bench
            .command()
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut workers = Vec::new();
        until("two workers", || {
            workers = children(server.id());
            workers.len() == 2
        })
        .await;
        signal(how, server.id());
        assert_eq!(server.wait().unwrap().code(), code, "{how}");
        until("the end of the workers", || {
            workers.iter().all(|pid| !is_alive(*pid))
        })
        .await;
    }
}
