//! Where the sound goes: a file, standard output, a player.

use std::{
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use audiocpp::{
    audio::{Audio, AudioFormat, AudioWriter, level},
    engine::{CancelToken, Error, Event, EventSink, SpeechPart},
};
use tempfile::NamedTempFile;

use super::player::Player;
use crate::{output, progress::Progress};

/// The place of the sound of one text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file, under its name only when it is whole.
    File(PathBuf),
    /// Standard output, with true sizes once everything is there.
    Stdout,
    /// Standard output, as the sound comes.
    Stream,
    /// Nowhere: it is only played.
    None,
}

/// How the sound is made ready.
#[derive(Clone, Copy, Debug)]
pub struct Finish {
    /// Form of the result.
    pub format: AudioFormat,
    /// Level of the largest sample in decibels.
    pub peak: Option<f64>,
    /// Loudness in LUFS.
    pub loudness: Option<f64>,
    /// Play it, too.
    pub play: bool,
}

impl Finish {
    /// Whether the whole sound has to be known first.
    pub fn needs_whole(&self) -> bool {
        self.peak.is_some() || self.loudness.is_some()
    }
}

/// Sound on its way out. It is opened with the first samples, which tell the rate.
pub struct Outlet {
    place: Place,
    finish: Finish,
    open: Option<Open>,
}

struct Open {
    writer: Option<AudioWriter>,
    staged: Option<Staged>,
    player: Option<Player>,
    limiter: Option<level::Limiter>,
    limited: Vec<f32>,
}

impl Outlet {
    /// An outlet that is not open yet.
    pub fn new(place: Place, finish: Finish) -> Self {
        Outlet {
            place,
            finish,
            open: None,
        }
    }

    /// Takes samples in the order of time.
    pub fn write(&mut self, audio: &Audio) -> Result<(), Error> {
        let open = match &mut self.open {
            Some(open) => open,
            none => none.insert(Open::new(&self.place, &self.finish, audio)?),
        };
        let mut ready = std::mem::take(&mut open.limited);
        ready.clear();
        match &mut open.limiter {
            Some(limiter) => limiter.push(&audio.samples, &mut ready),
            None => ready.extend_from_slice(&audio.samples),
        }
        let written = open.pass_on(&ready);
        open.limited = ready;
        written
    }

    /// Takes a whole sound: sets its level first.
    pub fn write_whole(&mut self, mut audio: Audio) -> Result<(), Error> {
        if let Some(decibels) = self.finish.peak {
            level::set_peak(&mut audio, level::from_decibels(decibels));
        }
        if let Some(lufs) = self.finish.loudness {
            level::set_loudness(&mut audio, lufs)?;
        }
        self.write(&audio)
    }

    /// Writes what is left, and gives the file its name.
    pub fn close(mut self) -> Result<(), Error> {
        let Some(mut open) = self.open.take() else {
            return Ok(());
        };
        if let Some(limiter) = open.limiter.take() {
            let mut rest = Vec::new();
            limiter.finish(&mut rest);
            open.pass_on(&rest)?;
        }
        if let Some(writer) = open.writer.take() {
            writer.finish().map_err(quiet)?;
        }
        match open.staged.take() {
            Some(Staged::ToKeep(file, target)) => output::keep(file, &target)?,
            Some(Staged::ToPrint(file)) => print_file(&file)?,
            None => {}
        }
        match open.player.take() {
            Some(player) => player.close(),
            None => Ok(()),
        }
    }
}

/// A file that is written beside its place first.
enum Staged {
    ToKeep(NamedTempFile, PathBuf),
    ToPrint(NamedTempFile),
}

fn print_file(file: &NamedTempFile) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    let copied = file
        .reopen()
        .and_then(|mut file| std::io::copy(&mut file, &mut out))
        .and_then(|_| out.flush());
    copied.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Error::cancelled(),
        _ => Error::file(Path::new("standard output"), &error),
    })
}

impl Open {
    fn new(place: &Place, finish: &Finish, audio: &Audio) -> Result<Open, Error> {
        let (rate, channels, format) = (audio.rate, audio.channels, finish.format);
        let mut staged = None;
        let writer = match place {
            Place::None => None,
            Place::Stdout => {
                let failed =
                    |error: std::io::Error| Error::file(Path::new("standard output"), &error);
                let file = NamedTempFile::new().map_err(failed)?;
                let handle = file.reopen().map_err(failed)?;
                staged = Some(Staged::ToPrint(file));
                Some(AudioWriter::file(
                    handle,
                    "standard output",
                    format,
                    rate,
                    channels,
                )?)
            }
            Place::Stream => {
                let out = Box::new(std::io::stdout());
                Some(AudioWriter::stream(
                    out,
                    "standard output",
                    format,
                    rate,
                    channels,
                )?)
            }
            Place::File(path) => {
                let (file, target) = output::temporary(path)?;
                let handle = file.reopen().map_err(|error| Error::file(path, &error))?;
                staged = Some(Staged::ToKeep(file, target));
                Some(AudioWriter::file(
                    handle,
                    &path.display().to_string(),
                    format,
                    rate,
                    channels,
                )?)
            }
        };
        let player = if finish.play {
            Some(Player::start(rate, channels)?)
        } else {
            None
        };
        // A wanted peak is below full scale already.
        let limiter = finish
            .peak
            .is_none()
            .then(|| level::Limiter::new(level::CEILING, rate, channels));
        Ok(Open {
            writer,
            staged,
            player,
            limiter,
            limited: Vec::new(),
        })
    }

    fn pass_on(&mut self, samples: &[f32]) -> Result<(), Error> {
        if let Some(writer) = &mut self.writer {
            writer.write(samples).map_err(quiet)?;
        }
        match &mut self.player {
            Some(player) => player.write(samples),
            None => Ok(()),
        }
    }
}

/// A reader of standard output that went away is no failure to talk about.
fn quiet(error: audiocpp::audio::Error) -> Error {
    match &error {
        audiocpp::audio::Error::Write { source, .. } if source.kind() == ErrorKind::BrokenPipe => {
            Error::cancelled()
        }
        _ => error.into(),
    }
}

/// Passes events to the display, and sound to its outlet; a failure there stops the run.
pub struct Speaking {
    progress: Arc<Progress>,
    cancel: CancelToken,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    outlet: Option<Outlet>,
    failed: Option<Error>,
    /// When the first sound was there.
    first: Option<std::time::Instant>,
}

impl Speaking {
    /// `cancel` is that of the run alone.
    pub fn new(progress: Arc<Progress>, cancel: CancelToken, outlet: Outlet) -> Arc<Self> {
        Arc::new(Speaking {
            progress,
            cancel,
            state: Mutex::new(State {
                outlet: Some(outlet),
                ..State::default()
            }),
        })
    }

    /// Ends it: the outlet, or what went wrong with it, and when the first sound was there.
    pub fn end(&self) -> (Result<Outlet, Error>, Option<std::time::Instant>) {
        let lost = || Error::internal("the sound's outlet is gone");
        let Ok(mut state) = self.state.lock() else {
            return (Err(lost()), None);
        };
        let first = state.first;
        match state.failed.take() {
            Some(error) => (Err(error), first),
            None => (state.outlet.take().ok_or_else(lost), first),
        }
    }

    fn take(&self, part: &SpeechPart) {
        let Ok(mut state) = self.state.lock() else {
            return;
        };
        let State {
            outlet,
            failed,
            first,
        } = &mut *state;
        first.get_or_insert_with(std::time::Instant::now);
        if let Some(outlet) = outlet
            && failed.is_none()
            && let Err(error) = outlet.write(&part.audio)
        {
            *failed = Some(error);
            self.cancel.cancel();
        }
    }
}

impl EventSink for Speaking {
    fn event(&self, event: Event) {
        match event {
            Event::Speech(part) => self.take(&part),
            other => self.progress.event(other),
        }
    }
}
