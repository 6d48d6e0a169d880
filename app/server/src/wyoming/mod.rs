//! The Wyoming protocol of Home Assistant and its friends: recognition and synthesis over a plain
//! TCP connection, by the same models that HTTP requests reach.
//!
//! ```text
//! describe                                        → info
//! transcribe, audio-start, audio-chunk…, audio-stop → transcript-start, -chunk…, transcript, transcript-stop
//! synthesize                                      → audio-start, audio-chunk…, audio-stop
//! synthesize-start, -chunk…, -stop                → the same, then synthesize-stopped
//! ping                                            → pong
//! ```
//!
//! A request that fails is answered with `error`, and its connection is closed: clients that wait
//! for a transcript alone would wait for ever.

mod connection;
mod fault;
mod frame;
mod info;
mod recording;
mod requests;
mod speaking;
#[cfg(test)]
mod test_runner;
#[cfg(test)]
mod tests;

use std::{io, path::PathBuf, pin::pin, sync::Arc, time::Duration};

use tokio::{net::TcpListener, sync::Semaphore, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::job::SharedRunner;

/// Limits and places of the Wyoming side.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Most connections at a time; more wait.
    pub max_connections: usize,
    /// Most seconds of sound in a request.
    pub max_audio_seconds: f64,
    /// Most characters of a text to speak.
    pub max_text_chars: usize,
    /// Folder of recordings that are being worked on.
    pub spool_dir: PathBuf,
    /// A connection that says nothing for this long, and waits for nothing, is closed.
    pub idle: Duration,
    /// A client that takes no answer for this long is given up.
    pub write_limit: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            max_connections: 64,
            max_audio_seconds: 3600.0,
            max_text_chars: 100_000,
            spool_dir: std::env::temp_dir(),
            idle: Duration::from_secs(300),
            write_limit: Duration::from_secs(30),
        }
    }
}

/// What all connections share.
struct Shared {
    runner: SharedRunner,
    settings: Settings,
    /// Set once every model has said what it knows, or cannot.
    learned: CancellationToken,
    /// Set when the server goes down.
    closing: CancellationToken,
}

/// Answers connections of `listener` until `shutdown` is ready, then lets what runs come to its end.
///
/// # Errors
/// The listener fails for good.
pub async fn serve(
    listener: TcpListener,
    runner: SharedRunner,
    settings: Settings,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(settings.max_connections.max(1)));
    let shared = Arc::new(Shared {
        runner,
        settings,
        learned: CancellationToken::new(),
        closing: CancellationToken::new(),
    });
    let mut tasks = JoinSet::new();
    tasks.spawn(learn(shared.clone()));
    let mut shutdown = pin!(shutdown);
    let mut number = 0_u64;
    loop {
        let accepted = async {
            let place = places.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        tokio::select! {
            () = &mut shutdown => break,
            Some(ended) = tasks.join_next() => report(ended),
            (place, accepted) = accepted => match accepted {
                Ok((stream, _)) => {
                    number += 1;
                    let talk = connection::talk(stream, number, shared.clone());
                    tasks.spawn(async move {
                        talk.await;
                        drop(place);
                    });
                }
                Err(error) if is_of_one_connection(&error) => {
                    tracing::warn!(%error, "wyoming: a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                Err(error) => return Err(error),
            },
        }
    }
    drop(listener);
    shared.closing.cancel();
    while let Some(ended) = tasks.join_next().await {
        report(ended);
    }
    Ok(())
}

/// Whether others can still be accepted: a peer that left, or too many open files for now.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    // EMFILE and ENFILE of Unix, WSAEMFILE of Windows.
    let files = matches!(error.raw_os_error(), Some(23 | 24 | 10024));
    files
        || matches!(
            error.kind(),
            ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
        )
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "wyoming: a connection ended in a fault of the server");
    }
}

/// Loads models that were never loaded, one after the other: what languages and voices they have
/// is in their packages, and clients ask once when they are set up.
async fn learn(shared: Arc<Shared>) {
    let _learned = shared.learned.clone().drop_guard();
    for model in shared.runner.models() {
        if !info::wants_loading(&model) {
            continue;
        }
        tokio::select! {
            () = shared.closing.cancelled() => return,
            loaded = shared.runner.load(&model.id) => if let Err(error) = loaded {
                tracing::warn!(model = model.id, %error, "wyoming: a model is offered without its voices and languages");
            },
        }
    }
}
