//! Fetching one file over HTTP: resumed after an interruption, verified before it gets its name.

use std::{
    fs::{self, OpenOptions},
    io::Read,
    path::{Path, PathBuf},
    time::Duration,
};

use ureq::{Agent, Body, http::Response};

use super::digest::{CopyError, copy, sha256_of_file};
use crate::engine::{Error, ErrorClass, Result, RunContext};

/// Tries for one file before giving up; each goes on where the last one stopped.
const TRIES: u32 = 4;
/// How long a host may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(3);
/// How long a host may stay silent.
const SILENCE: Duration = Duration::from_secs(30);

/// The HTTP client of all downloads.
pub fn agent() -> Agent {
    Agent::config_builder()
        .timeout_resolve(Some(CONNECT))
        .timeout_connect(Some(CONNECT))
        .timeout_recv_response(Some(SILENCE))
        .timeout_per_read(Some(SILENCE))
        .http_status_as_error(false)
        // A compressed body would make byte ranges meaningless.
        .accept_encoding("identity")
        .user_agent(concat!("audiocpp/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent()
}

/// A file to fetch, and what it must turn out to be.
#[derive(Clone, Debug)]
pub struct Remote<'a> {
    /// Where it is.
    pub url: String,
    /// Bytes.
    pub size: u64,
    /// SHA-256 in lower-case hexadecimal.
    pub sha256: &'a str,
}

/// How one try ended without the file.
enum Trouble {
    /// Trying again cannot help.
    Final(Error),
    /// The connection broke; what arrived is kept.
    Broken(String),
    /// What is on disk is of no use; it was removed.
    Restart(String),
}

/// Fetches `remote` to `target`. Bytes arrive in `target.part`, which a later call goes on with;
/// only verified bytes are renamed to `target`. `have` hears how many bytes are there.
pub fn fetch(
    agent: &Agent,
    remote: &Remote,
    target: &Path,
    context: &RunContext,
    have: &mut dyn FnMut(u64),
) -> Result<()> {
    let part = Part::beside(target);
    let mut connected = false;
    let mut last = String::new();
    for attempt in 0..TRIES {
        context.check()?;
        if attempt > 0 {
            std::thread::sleep(Duration::from_millis(100 << attempt));
        }
        let trouble = match attempt_once(agent, remote, &part, &mut connected, context, have) {
            Ok(()) => return part.finish(target),
            Err(trouble) => trouble,
        };
        match trouble {
            Trouble::Final(error) => return Err(error),
            Trouble::Broken(why) => last = why,
            Trouble::Restart(why) => {
                part.remove();
                last = why;
            }
        }
        tracing::debug!("{}: {last}; try {} of {TRIES}", remote.url, attempt + 1);
    }
    Err(Error::new(
        ErrorClass::NotFound,
        format!("{}: {last}", remote.url),
    ))
}

/// One request, and the check of what is there afterwards.
fn attempt_once(
    agent: &Agent,
    remote: &Remote,
    part: &Part,
    connected: &mut bool,
    context: &RunContext,
    have: &mut dyn FnMut(u64),
) -> Result<(), Trouble> {
    let start = part.len();
    if start > remote.size {
        return Err(Trouble::Restart(format!(
            "{start} bytes on disk, wanted {}",
            remote.size
        )));
    }
    if start < remote.size || remote.size == 0 {
        receive(agent, remote, part, start, connected, context, have)?;
    }
    let len = part.len();
    if len < remote.size {
        return Err(Trouble::Broken(format!(
            "ended after {len} of {} bytes",
            remote.size
        )));
    }
    let found = sha256_of_file(&part.path, context).map_err(Trouble::Final)?;
    if found == remote.sha256 {
        return Ok(());
    }
    let why = format!("wrong contents: sha256 {found}, wanted {}", remote.sha256);
    if start > 0 {
        // The first half may be at fault: fetch the whole once more.
        return Err(Trouble::Restart(why));
    }
    part.remove();
    Err(Trouble::Final(Error::new(
        ErrorClass::Model,
        format!("{}: {why}", remote.url),
    )))
}

/// Asks for the bytes from `start` on and appends them.
fn receive(
    agent: &Agent,
    remote: &Remote,
    part: &Part,
    start: u64,
    connected: &mut bool,
    context: &RunContext,
    have: &mut dyn FnMut(u64),
) -> Result<(), Trouble> {
    let mut request = agent.get(&remote.url);
    if start > 0 {
        request = request.header("Range", format!("bytes={start}-"));
        if let Some(tag) = part.tag() {
            request = request.header("If-Range", tag);
        }
    }
    let response = request.call().map_err(|error| {
        let why = error.to_string();
        // A host that never answered is not in reach; one that did may answer again.
        if *connected {
            Trouble::Broken(why)
        } else {
            Trouble::Final(Error::not_found(format!("{}: {why}", remote.url)))
        }
    })?;
    *connected = true;
    let append = match response.status().as_u16() {
        200 => false,
        206 => {
            check_range(&response, start, remote.size)?;
            true
        }
        416 => {
            return Err(Trouble::Restart(
                "the server has fewer bytes than the disk".into(),
            ));
        }
        code @ (408 | 429 | 500..=599) => return Err(Trouble::Broken(format!("HTTP {code}"))),
        code => {
            let message = format!("{}: HTTP {code}", remote.url);
            return Err(Trouble::Final(Error::not_found(message)));
        }
    };
    let tag = header(&response, "etag").map(str::to_owned);
    append_body(
        response,
        remote,
        part,
        if append { start } else { 0 },
        tag,
        context,
        have,
    )
}

/// Writes the body behind the first `start` bytes of the part.
fn append_body(
    response: Response<Body>,
    remote: &Remote,
    part: &Part,
    start: u64,
    tag: Option<String>,
    context: &RunContext,
    have: &mut dyn FnMut(u64),
) -> Result<(), Trouble> {
    let refuse = |error: &std::io::Error| Trouble::Final(Error::file(&part.path, error));
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&part.path)
        .map_err(|error| refuse(&error))?;
    file.set_len(start).map_err(|error| refuse(&error))?;
    part.keep_tag(tag.as_deref());
    have(start);
    let mut at = start;
    let mut body = response.into_body().into_reader();
    let body: &mut dyn Read = &mut body;
    let copied = copy(body, &mut file, remote.size - start, context, &mut |n| {
        at += n;
        have(at);
    });
    match copied {
        Ok(_) => Ok(()),
        Err(CopyError::Cancelled(error)) => Err(Trouble::Final(error)),
        Err(CopyError::Read(error)) => Err(Trouble::Broken(error.to_string())),
        Err(CopyError::Write(error)) => Err(refuse(&error)),
        Err(CopyError::TooLong) => {
            part.remove();
            let size = remote.size;
            let message = format!("{}: more than the {size} bytes it should have", remote.url);
            Err(Trouble::Final(Error::new(ErrorClass::Model, message)))
        }
    }
}

/// A 206 must begin where the part ends, and be of a file of the wanted size.
fn check_range(response: &Response<Body>, start: u64, size: u64) -> Result<(), Trouble> {
    let Some(range) = header(response, "content-range") else {
        return Err(Trouble::Restart("HTTP 206 without Content-Range".into()));
    };
    let parsed = range.strip_prefix("bytes ").and_then(|rest| {
        let (span, total) = rest.split_once('/')?;
        let (first, _) = span.split_once('-')?;
        Some((
            first.trim().parse::<u64>().ok()?,
            total.trim().parse::<u64>().ok(),
        ))
    });
    match parsed {
        Some((first, total)) if first == start && total.is_none_or(|total| total == size) => Ok(()),
        _ => Err(Trouble::Restart(format!(
            "asked for bytes {start}-, got `{range}`"
        ))),
    }
}

fn header<'a>(response: &'a Response<Body>, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

/// The unfinished file, and the server's tag for the version that it is part of.
struct Part {
    path: PathBuf,
    tag_path: PathBuf,
}

impl Part {
    fn beside(target: &Path) -> Part {
        let with = |suffix: &str| {
            let mut name = target.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        Part {
            path: with(".part"),
            tag_path: with(".part.etag"),
        }
    }

    fn len(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |meta| meta.len())
    }

    /// The tag to send with a range; a weak one says nothing about bytes.
    fn tag(&self) -> Option<String> {
        fs::read_to_string(&self.tag_path)
            .ok()
            .filter(|tag| tag.starts_with('"'))
    }

    /// Without the tag a resumed download is still verified, so failing to keep it is harmless.
    fn keep_tag(&self, tag: Option<&str>) {
        let kept = match tag {
            Some(tag) => fs::write(&self.tag_path, tag),
            None => fs::remove_file(&self.tag_path),
        };
        if let Err(error) = kept
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::debug!("{}: {error}", self.tag_path.display());
        }
    }

    fn remove(&self) {
        for path in [&self.path, &self.tag_path] {
            if let Err(error) = fs::remove_file(path)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                tracing::warn!("{}: {error}", path.display());
            }
        }
    }

    fn finish(&self, target: &Path) -> Result<()> {
        fs::rename(&self.path, target).map_err(|error| Error::file(target, &error))?;
        self.keep_tag(None);
        Ok(())
    }
}
