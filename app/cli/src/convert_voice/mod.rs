//! Voice conversion: the one code path of both forms of the command; and what it shares with
//! coding.

pub mod args;

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use audiocpp::{
    audio::{Audio, AudioFormat, Reader},
    engine::{
        CancelToken, ConvertRequest, Error, Model, Options, Registry, RunContext, Scope, Session,
        Sound, Task,
    },
};

use self::args::{ConvertVoice, SoundArgs};
use crate::{
    codec::codec_for,
    failure::{Failure, Outcome},
    inputs::{Input, Place, expand},
    model::Choice,
    progress::Progress,
    say::sound::{Finish, Outlet, Place as SoundPlace},
    transcribe::{error_line, open},
};

/// More of a reference than any model takes, in seconds.
const REFERENCE_S: f64 = 1200.0;

/// Runs the conversion.
pub fn run(args: &ConvertVoice, registry: &Registry, cancel: &CancelToken) -> Outcome {
    let choice = Choice::new(&args.model, Task::Vc, registry)?;
    let request = ConvertRequest {
        seed: args.request.seed,
        options: request_options(&args.request.request_option, &choice)?,
    };
    let finish = finish(&args.request.out)?;
    let input = one_input(&args.input)?;
    let reference = reference(&args.request.reference)?;
    let job = Job::begin(&choice, Task::Vc, cancel)?;
    job.progress.about(&input.name);
    let mut session = job.session(Session::into_convert)?;
    let started = Instant::now();
    let context = job.context();
    let mut source = open(&input).map_err(|error| job.failed(&input, &error))?;
    let sound = session
        .convert(&request, &mut source, &reference, &context)
        .map_err(|error| job.failed(&input, &error))?;
    job.write(sound, &args.request.out.out, finish, started)
}

/// The options of a request.
pub fn request_options(pairs: &[String], choice: &Choice) -> Outcome<Options> {
    let info = choice.family.info();
    Options::parse(pairs, info.name, info.options, Scope::Request).map_err(Failure::setup)
}

/// The one recording that a name stands for.
pub fn one_input(name: &str) -> Outcome<Input> {
    let mut found = expand(&[name.to_owned()]);
    match (found.pop(), found.is_empty()) {
        (
            Some(Input {
                name,
                place: Place::Missing(why),
            }),
            true,
        ) => Err(Failure::usage(format!("{name}: {why}"))),
        (Some(input), true) => Ok(input),
        (_, _) => Err(Failure::usage(format!(
            "{name} stands for several recordings, wanted one"
        ))),
    }
}

/// The recording of a voice.
pub fn reference(path: &Path) -> Outcome<Audio> {
    let read = || Audio::from_source(&mut Reader::open(path)?, Some(REFERENCE_S));
    read().map_err(|error| {
        let error = Error::from(error);
        let name = path.display().to_string();
        Failure::setup(match error.message.contains(&name) {
            true => error,
            false => error.context(name),
        })
    })
}

/// How the sound is made ready, from the flags and the name of the result.
pub fn finish(args: &SoundArgs) -> Outcome<Finish> {
    let named = Some(args.out.as_path()).filter(|out| *out != Path::new("-"));
    let codec = codec_for(named, args.format.as_deref(), args.samples.as_deref())?;
    check_folder(&args.out)?;
    Ok(Finish {
        format: AudioFormat { codec, rate: None },
        peak: None,
        loudness: None,
        play: false,
    })
}

/// A usage error unless a file can be made there.
pub fn check_folder(out: &Path) -> Outcome {
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        let folder = folder.display();
        return Err(Failure::usage(format!("there is no folder {folder}")));
    }
    match out.is_dir() {
        true => Err(Failure::usage(format!(
            "{} is a folder, wanted a file for the result",
            out.display()
        ))),
        false => Ok(()),
    }
}

/// A loaded model at work on one recording.
pub struct Job<'a> {
    /// What is shown of it.
    pub progress: Arc<Progress>,
    cancel: &'a CancelToken,
    choice: &'a Choice<'a>,
    task: Task,
    model: Box<dyn Model>,
}

impl<'a> Job<'a> {
    /// Fetches and loads the model.
    pub fn begin(choice: &'a Choice<'a>, task: Task, cancel: &'a CancelToken) -> Outcome<Job<'a>> {
        let progress = Progress::new();
        let context = progress.context(cancel);
        context.check().map_err(Failure::run)?;
        let path: PathBuf = choice.fetch(&progress, &context)?;
        let model = choice.load(&path, &context)?;
        progress.clear();
        Ok(Job {
            progress,
            cancel,
            choice,
            task,
            model,
        })
    }

    /// A session of the job's task.
    pub fn session<T>(&self, kind: impl FnOnce(Session) -> Result<T, Error>) -> Outcome<T> {
        let session = self.model.session(self.task, &self.choice.session);
        session.and_then(kind).map_err(Failure::run)
    }

    /// A context that shows its events.
    pub fn context(&self) -> RunContext {
        self.progress.context(self.cancel)
    }

    /// The end of a job whose input could not be worked on.
    pub fn failed(&self, input: &Input, error: &Error) -> Failure {
        self.progress.clear();
        let line = error_line(&input.name, error);
        Failure {
            code: error.class.exit_code(),
            message: line.trim_start_matches("error: ").to_owned(),
        }
    }

    /// Writes the sound that was made since `started`.
    pub fn write(&self, sound: Sound, out: &Path, finish: Finish, started: Instant) -> Outcome {
        self.progress.clear();
        let took = started.elapsed().as_secs_f64();
        for warning in &sound.warnings {
            self.progress.warn(warning);
        }
        let place = match out == Path::new("-") {
            true => SoundPlace::Stdout,
            false => SoundPlace::File(out.to_owned()),
        };
        let length = sound.audio.duration();
        let mut outlet = Outlet::new(place, finish);
        let written = outlet
            .write_whole(sound.audio)
            .and_then(|()| outlet.close());
        written.map_err(Failure::run)?;
        self.tell(&format!(
            "{length:.2} s of sound in {took:.2} s ({:.1} times real time)",
            length / took.max(1e-9)
        ));
        Ok(())
    }

    /// Says what was done: to people at a terminal, and to logs.
    pub fn tell(&self, line: &str) {
        match std::io::stderr().is_terminal() {
            true => self.progress.line(line),
            false => tracing::info!("{line}"),
        }
    }
}
