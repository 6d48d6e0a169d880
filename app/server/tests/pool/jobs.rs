//! Jobs on real worker processes: everybody gets their own data, queues are bounded, and who
//! leaves frees the worker.

use std::time::Duration;

use crate::support::*;
use audiocpp::engine::{ErrorClass, Event, TranscribeRequest};
use audiocpp_server::job::{Job, ModelState, Outcome, Refusal, Runner};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_jobs_at_once_each_get_their_own_data() {
    let bench = Bench::new()
        .key("queue_length", 60)
        .voice("one", json!({}))
        .voice("two", json!({"workers": 2}))
        .separator("stems", json!({}));
    let pool = bench.pool();
    let texts: Vec<String> = (0..10).map(|i| text(2 + i % 3, i)).collect();
    let mut spoken = Vec::new();
    for text in &texts {
        spoken.push(samples(&pool, "one", text).await);
    }
    assert!(
        spoken
            .iter()
            .enumerate()
            .all(|(i, s)| !s.is_empty() && !spoken[..i].contains(s))
    );
    let recordings: Vec<_> = (0..2)
        .map(|i| bench.recording(&format!("mix{i}"), 0.2))
        .collect();
    let stems = |outcome| match outcome {
        Ok(Outcome::Separation(separation)) => separation.stems,
        other => panic!("{other:?} is no separation"),
    };
    let mut split = Vec::new();
    for recording in &recordings {
        split.push(stems(
            result(&pool, "stems", separate(recording.clone())).await,
        ));
    }
    assert_ne!(split[0], split[1]);

    let mut jobs = Vec::new();
    for i in 0..50 {
        let model = ["one", "two", "two", "stems", "one"][i % 5];
        let job = match model {
            "stems" => separate(recordings[i / 5 % 2].clone()),
            _ => speak_whole(&texts[i / 5]),
        };
        jobs.push((i, start(&pool, model, job).await));
    }
    let waits = jobs
        .into_iter()
        .map(|(i, mut run)| tokio::spawn(async move { (i, finish(&mut run).await.1) }));
    for wait in waits.collect::<Vec<_>>() {
        let (i, outcome) = wait.await.unwrap();
        match outcome.unwrap() {
            Outcome::Speech(speech) => assert_eq!(speech.audio.samples, spoken[i / 5], "job {i}"),
            Outcome::Separation(found) => assert_eq!(found.stems, split[i / 5 % 2], "job {i}"),
            other => panic!("job {i}: {other:?}"),
        }
    }
    for model in ["one", "two", "stems"] {
        let status = status(&pool, model);
        assert_eq!((status.queued, status.running, status.restarts), (0, 0, 0));
        assert_eq!(status.state, ModelState::Ready);
        assert!(status.memory_bytes > 1 << 20 && status.info.is_some());
    }
    assert_eq!(pool.processes("two").len(), 2);
    pool.shutdown(LONG).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_leaves_frees_the_worker_within_a_step() {
    let bench = Bench::new()
        .gpu(&[("STAND_IN_FAULT", "sleep:20")])
        .voice("slow", json!({"device": "hip"}));
    let pool = bench.pool();
    let mut run = start(&pool, "slow", speak(&text(2000, 1))).await;
    first_sound(&mut run).await;
    assert_eq!(status(&pool, "slow").state, ModelState::Busy);
    let process = pool.processes("slow");
    drop(run);
    until("a free worker", || status(&pool, "slow").running == 0).await;
    // It answers the next one, from the same process.
    assert!(!samples(&pool, "slow", "abc").await.is_empty());
    assert_eq!(pool.processes("slow"), process);
    // One that left while it waited never runs.
    let mut first = start(&pool, "slow", speak(&text(2000, 1))).await;
    first_sound(&mut first).await;
    let waiting = start(&pool, "slow", speak("abc")).await;
    assert_eq!(status(&pool, "slow").queued, 1);
    drop(waiting);
    until("an empty queue", || status(&pool, "slow").queued == 0).await;
    drop(first);
    pool.shutdown(LONG).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queues_are_bounded_in_length_and_time() {
    let bench = Bench::new().gpu(&[("STAND_IN_FAULT", "sleep:20")]).voice(
        "slow",
        json!({"device": "hip", "queue_length": 1, "busy_timeout_ms": 60_000}),
    );
    let pool = bench.pool();
    let mut first = start(&pool, "slow", speak(&text(2000, 1))).await;
    first_sound(&mut first).await;
    // The request's own limit is shorter than the model's.
    let limit = Some(Duration::from_millis(100));
    let mut second = pool.run("slow", speak("abc"), "r", limit).await.unwrap();
    let third = pool.run("slow", speak("abc"), "r", None).await.unwrap_err();
    let Refusal::Busy {
        detail,
        retry_after,
        ..
    } = &third
    else {
        panic!("{third}");
    };
    assert!(
        detail.contains("1 requests wait already; the limit is 1"),
        "{detail}"
    );
    assert!((1..=60).contains(&retry_after.as_secs()));
    let late = finish(&mut second).await.1.unwrap_err();
    assert!(late.to_string().contains("within 0.1 s"), "{late}");
    drop(first);
    until("a free worker", || status(&pool, "slow").running == 0).await;
    assert!(result(&pool, "slow", speak("abc")).await.is_ok());
    pool.shutdown(LONG).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_requests_are_errors_and_the_worker_stays() {
    let bench = Bench::new()
        .key("limits", json!({"audio_seconds": 0.1}))
        .voice(
            "voice",
            json!({"voice_presets": {"mine": {"voice_id": "none such"}}}),
        )
        .separator("stems", json!({}));
    let pool = bench.pool();
    let refused = pool
        .run("voise", speak("abc"), "r", None)
        .await
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "there is no model `voise`, did you mean `voice`?"
    );
    let class = |refusal: &Refusal| match refusal {
        Refusal::Job(error) => Some(error.class),
        _ => None,
    };
    let long = bench.recording("long", 0.3);
    let not_audio = bench.folder.path().join("page.html");
    std::fs::write(&not_audio, "<html>").unwrap();
    let transcribe = Job::Transcribe {
        request: TranscribeRequest::default(),
        audio: long.clone(),
        speech_only: None,
    };
    for (model, job, wanted) in [
        ("stems", separate(long), ErrorClass::TooLarge),
        ("stems", separate(not_audio.clone()), ErrorClass::BadInput),
        (
            "stems",
            separate("/no/such/file.wav".into()),
            ErrorClass::NotFound,
        ),
        ("voice", speak(""), ErrorClass::BadInput),
        ("voice", transcribe, ErrorClass::Unsupported),
    ] {
        let refusal = result(&pool, model, job).await.unwrap_err();
        assert_eq!(class(&refusal), Some(wanted), "{refusal}");
        assert!(
            !refusal.to_string().contains(not_audio.to_str().unwrap()),
            "{refusal}"
        );
    }
    let Job::Synthesize { mut request } = speak("abc") else {
        unreachable!();
    };
    request.voice = Some("mine".into());
    let refusal = result(&pool, "voice", Job::Synthesize { request })
        .await
        .unwrap_err();
    assert!(
        refusal.to_string().contains("none such"),
        "the preset's voice: {refusal}"
    );
    let voices = status(&pool, "voice").voices;
    assert!(voices.iter().any(|voice| voice.id == "mine"), "{voices:?}");
    let cannot = pool
        .add_voice("voice", "new", "/no/such.wav".into(), None)
        .await;
    assert!(
        cannot
            .unwrap_err()
            .to_string()
            .contains("does not copy voices")
    );
    assert!(pool.remove_voice("voice", "mine").await.is_err());
    assert_eq!(
        (pool.processes("voice").len(), pool.processes("stems").len()),
        (1, 1)
    );
    pool.shutdown(LONG).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stems_that_stream_are_those_of_the_whole() {
    let bench = Bench::new().separator("stems", json!({}));
    let pool = bench.pool();
    let job = separate(bench.recording("mix", 0.5));
    let Job::Separate { mut request, audio } = job.clone() else {
        unreachable!();
    };
    request.stream = true;
    let streaming = Job::Separate { request, audio };
    let (events, _) = finish(&mut start(&pool, "stems", streaming).await).await;
    let mut streamed = std::collections::BTreeMap::<String, Vec<f32>>::new();
    for event in events {
        let Event::Stems { stems } = event else {
            continue;
        };
        for stem in stems {
            streamed
                .entry(stem.name)
                .or_default()
                .extend(stem.audio.samples);
        }
    }
    let Ok(Outcome::Separation(whole)) = result(&pool, "stems", job).await else {
        panic!("a separation was asked for");
    };
    assert!(streamed.len() > 1);
    for stem in whole.stems {
        assert_eq!(streamed[&stem.name], stem.audio.samples, "{}", stem.name);
    }
    pool.shutdown(LONG).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_come_in_order_and_loading_shows_in_the_state() {
    let bench = Bench::new().voice("voice", json!({"lazy": false}));
    let pool = bench.pool();
    until("a loaded model", || {
        status(&pool, "voice").state == ModelState::Ready
    })
    .await;
    let mut run = start(&pool, "voice", speak(&text(5, 1))).await;
    let (events, outcome) = finish(&mut run).await;
    let Outcome::Speech(whole) = outcome.unwrap() else {
        panic!("speech was asked for");
    };
    assert!(whole.audio.samples.is_empty());
    let parts: Vec<_> = events
        .into_iter()
        .filter_map(|event| match event {
            Event::Speech(part) => Some(part),
            _ => None,
        })
        .collect();
    assert_eq!(parts.len(), 5);
    assert!(
        parts
            .iter()
            .enumerate()
            .all(|(i, part)| part.segment.id as usize == i)
    );
    let streamed: Vec<f32> = parts
        .into_iter()
        .flat_map(|part| part.audio.samples)
        .collect();
    assert_eq!(streamed, samples(&pool, "voice", &text(5, 1)).await);
    pool.unload("voice").await.unwrap();
    let status = status(&pool, "voice");
    assert_eq!(
        (status.state, status.memory_bytes),
        (ModelState::Unloaded, 0)
    );
    pool.load("voice").await.unwrap();
    assert_eq!(pool.processes("voice").len(), 1);
    pool.shutdown(LONG).await;
}
