//! Clients that leave: their job is cancelled, their file is gone, and the server goes on
//! (Kokoro-FastAPI#25, #337, #384, speaches#129, mlx-openai-server#269).

use std::{sync::atomic::Ordering, time::Duration};

use futures_util::StreamExt;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::server::Server;

async fn running(server: &Server) {
    for _ in 0..500 {
        if server.runner.running.load(Ordering::SeqCst) > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no job began");
}

#[tokio::test]
async fn leaving_in_the_middle_of_sound_cancels() {
    let server = Server::start().await;
    for extra in [
        json!({"response_format": "pcm"}),
        json!({"stream_format": "sse"}),
    ] {
        let mut extra = extra;
        extra["model"] = json!("endless-mouth");
        extra["input"] = json!("A first sentence that is long enough. A second");
        let before = server.runner.cancelled.load(Ordering::SeqCst);
        let answer = server.speak(extra).await;
        let mut chunks = answer.bytes_stream();
        assert!(chunks.next().await.unwrap().is_ok());
        drop(chunks);
        server.quiet().await;
        assert_eq!(server.runner.cancelled.load(Ordering::SeqCst), before + 1);
    }
    assert_eq!(server.speak(json!({})).await.status(), 200);
}

#[tokio::test]
async fn leaving_before_the_answer_cancels() {
    let server = Server::start().await;
    let body = r#"{"model":"endless-mouth","input":"One. Two","response_format":"wav"}"#;
    let mut socket = TcpStream::connect(&server.address).await.unwrap();
    let head = format!(
        "POST /v1/audio/speech HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    running(&server).await;
    drop(socket);
    server.quiet().await;
    assert_eq!(server.runner.cancelled.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn leaving_in_the_middle_of_text_cancels_and_removes_the_file() {
    let server = Server::start().await;
    let answer = server
        .transcribe(&[("stream", "true"), ("model", "endless-ears")])
        .await;
    let mut chunks = answer.bytes_stream();
    assert!(chunks.next().await.unwrap().is_ok());
    assert_eq!(
        server.spooled(),
        1,
        "the file is there while the job reads it"
    );
    drop(chunks);
    server.quiet().await;
    assert_eq!(server.runner.cancelled.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn leaving_in_the_middle_of_an_upload_removes_the_file() {
    let server = Server::start().await;
    let mut socket = TcpStream::connect(&server.address).await.unwrap();
    let head = "POST /v1/audio/transcriptions HTTP/1.1\r\nhost: x\r\n\
        content-type: multipart/form-data; boundary=b\r\ncontent-length: 9000000\r\n\r\n\
        --b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n";
    socket.write_all(head.as_bytes()).await.unwrap();
    socket.write_all(&[7; 100_000]).await.unwrap();
    for _ in 0..500 {
        if server.spooled() == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(server.spooled(), 1);
    drop(socket);
    server.quiet().await;
    assert!(server.runner.jobs.lock().unwrap().is_empty());
}

/// A request that is done leaves its connection usable, and the measurements tell of cancelled jobs.
#[tokio::test]
async fn cancelled_jobs_are_counted() {
    let server = Server::start().await;
    let answer = server
        .speak(json!({"model": "endless-mouth", "response_format": "pcm"}))
        .await;
    drop(answer);
    server.quiet().await;
    let mut text = String::new();
    for _ in 0..100 {
        text = server.get("/metrics").await.text().await.unwrap();
        let line =
            r#"audiocpp_http_jobs_total{model="endless-mouth",task="tts",result="cancelled"} 1"#;
        if text.contains(line) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{text}");
}

#[tokio::test]
async fn a_slow_reader_holds_the_job_back_instead_of_filling_the_memory() {
    let server = Server::start().await;
    let body = json!({"model": "mouth", "input": "x".repeat(3000), "response_format": "wav", "stream": true}).to_string();
    let mut socket = TcpStream::connect(&server.address).await.unwrap();
    let head = format!(
        "POST /v1/audio/speech HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut all = Vec::new();
    socket.read_to_end(&mut all).await.unwrap();
    assert!(all.len() > 3000 * 2205 * 2, "{} bytes", all.len());
    server.quiet().await;
}
