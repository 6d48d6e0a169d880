//! The worker process itself.

use std::{
    io::Write,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use audiocpp::engine::{CancelToken, Error, ErrorClass, Event, RunContext};
use tracing_subscriber::EnvFilter;

use super::{
    frame::{self, FrameError, Incoming},
    message::{Answer, Message, Order},
    perform::{Station, memory},
    pipe,
};

/// Between two looks at whether the work gets on.
const BEAT: Duration = Duration::from_millis(500);

/// Exit code of a worker that could not speak to its server.
const BROKEN: u8 = 97;

/// Runs the worker until its server closes the connection; returns the exit code. Threads may still
/// compute: end the process with [`exit`](audiocpp::backend::launch::exit).
pub fn run() -> u8 {
    log_to_stderr();
    let (input, output) = match pipe::of_worker() {
        Ok(ends) => ends,
        Err(error) => {
            tracing::error!("no connection to a server: {error}");
            return BROKEN;
        }
    };
    let desk = Arc::new(Desk {
        out: Mutex::new(Box::new(output)),
        current: Mutex::default(),
        events: AtomicU64::new(0),
    });
    let (orders, work) = mpsc::channel();
    let worker = desk.clone();
    thread::spawn(move || worker.work(&work));
    let beating = desk.clone();
    thread::spawn(move || beating.beat());
    match desk.listen(&mut Incoming::new(input), &orders) {
        Ok(()) => 0,
        Err(error) => {
            tracing::error!("no connection to a server: {error}");
            BROKEN
        }
    }
}

/// Lines without time and colour; the server's log has its own.
fn log_to_stderr() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .init();
}

/// What the threads of a worker share.
struct Desk {
    out: Mutex<Box<dyn Write + Send>>,
    /// The job that runs, or loading under no number.
    current: Mutex<Option<(Option<u64>, CancelToken)>>,
    events: AtomicU64,
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    /// Takes orders until the server is gone.
    fn listen(
        &self,
        incoming: &mut Incoming<impl std::io::Read>,
        orders: &mpsc::Sender<(Order, CancelToken)>,
    ) -> Result<(), FrameError> {
        while let Some(order) = incoming.receive::<Order>()? {
            let id = match &order {
                Order::Cancel { id } => {
                    if let Some((Some(running), token)) = &*lock(&self.current)
                        && running == id
                    {
                        token.cancel();
                    }
                    continue;
                }
                Order::Run { id, .. } => Some(*id),
                Order::Load(_) => None,
            };
            // Here and not where it runs: a cancel that comes at once must find it.
            let token = CancelToken::default();
            *lock(&self.current) = Some((id, token.clone()));
            if orders.send((order, token)).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Does what was ordered, one after the other.
    fn work(self: &Arc<Self>, orders: &mpsc::Receiver<(Order, CancelToken)>) {
        let mut station = None;
        for (order, token) in orders {
            let desk = self.clone();
            let sink = move |event: Event| desk.report(event);
            let context = RunContext::with_sink(token, Arc::new(sink));
            let answer = match order {
                Order::Load(spec) => match Station::load(spec, &context) {
                    Ok((loaded, about)) => {
                        station = Some(loaded);
                        Answer::Loaded(Box::new(about))
                    }
                    Err(error) => Answer::Failed { id: None, error },
                },
                Order::Run { id, job, voice } => {
                    let outcome = match &mut station {
                        Some(station) => station.run(*job, voice, &context),
                        None => Err(Error::internal("no model is loaded")),
                    };
                    match outcome {
                        Ok(outcome) => Answer::Done {
                            id,
                            outcome: Box::new(outcome),
                            memory: memory(),
                        },
                        Err(error) => Answer::Failed {
                            id: Some(id),
                            error,
                        },
                    }
                }
                Order::Cancel { .. } => continue,
            };
            let id = lock(&self.current).take().and_then(|(id, _)| id);
            self.answer(id, answer);
        }
    }

    /// Sends the end of a job; one that is too large for a frame is an error instead.
    fn answer(&self, id: Option<u64>, answer: Answer) {
        match self.send(answer) {
            Err(FrameError::TooLong { found, limit, .. }) => {
                let message = format!(
                    "the result has {found} bytes and the limit is {limit}: ask for it as a stream"
                );
                let error = Error::new(ErrorClass::TooLarge, message);
                self.send_or_end(Answer::Failed { id, error });
            }
            Err(error) => end(&error),
            Ok(()) => {}
        }
    }

    /// Sends an event. Waits while the server does not read: what makes sound faster than it is
    /// listened to must not pile it up.
    fn report(&self, event: Event) {
        self.events.fetch_add(1, Ordering::Relaxed);
        self.send_or_end(Answer::Event(event));
    }

    fn send(&self, message: impl Message) -> Result<(), FrameError> {
        frame::write(&mut *lock(&self.out), message)
    }

    fn send_or_end(&self, answer: Answer) {
        if let Err(error) = self.send(answer) {
            end(&error);
        }
    }

    /// Tells the server that the work gets on, as long as it does.
    fn beat(&self) {
        let mut before = (0, 0);
        loop {
            thread::sleep(BEAT);
            let looks = lock(&self.current).as_ref().map(|(_, token)| token.looks());
            let Some(looks) = looks else { continue };
            let now = (looks, self.events.load(Ordering::Relaxed));
            if now == before {
                continue;
            }
            before = now;
            // Somebody who is writing shows life as well.
            let sent = match self.out.try_lock() {
                Ok(mut out) => frame::write(&mut *out, Answer::Beat),
                Err(TryLockError::Poisoned(out)) => {
                    frame::write(&mut *out.into_inner(), Answer::Beat)
                }
                Err(TryLockError::WouldBlock) => Ok(()),
            };
            if let Err(error) = sent {
                end(&error);
            }
        }
    }
}

/// Nobody is left to work for.
fn end(error: &FrameError) -> ! {
    tracing::error!("the server cannot be told: {error}");
    audiocpp::backend::launch::exit(BROKEN)
}
