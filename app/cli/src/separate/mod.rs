//! Splitting mixes into stems: the one code path of both forms of the command.

pub mod args;
mod names;
mod writers;

use std::{
    fs::File,
    io::{BufWriter, IsTerminal, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use audiocpp::{
    audio::AudioFormat,
    engine::{
        CancelToken, Error, Model, OptionSpec, Options, Registry, Rest, RunContext, Scope,
        Separate, SeparateRequest, Separation, Task,
    },
};
use serde_json::json;

use self::{
    args::SeparateArgs,
    names::{Names, whole_names},
    writers::{Manner, Separating},
};
use crate::{
    codec::codec,
    failure::{Failure, Outcome},
    inputs::{Input, expand},
    model::Choice,
    progress::Progress,
    transcribe::{at_most_one_stdin, ends_the_job, error_line, open},
};

/// Runs the job; every mix is tried, whatever happens to the others.
pub fn run(args: &args::Separate, registry: &Registry, cancel: &CancelToken) -> Outcome {
    let choice = Choice::new(&args.model, Task::Sep, registry)?;
    let request = request(&args.request, &choice)?;
    let inputs = expand(&args.inputs);
    at_most_one_stdin(&inputs)?;
    let manner = manner(&args.request, &choice, &inputs)?;
    let tracks = manner.names.tracks(&inputs)?;
    let progress = Progress::new();
    let mut runner = Runner {
        progress: progress.clone(),
        cancel,
        choice: &choice,
        request,
        manner: Arc::new(manner),
        loaded: None,
    };
    let mut manifest = Manifest::new(args.request.manifest.as_deref())?;
    let (started, mut failed) = (Instant::now(), 0);
    for (input, track) in inputs.iter().zip(&tracks) {
        let result = runner.one(input, track)?;
        progress.clear();
        manifest.add(input, &result)?;
        match result {
            Ok(done) => done.tell(&progress, input),
            Err(error) => {
                failed += 1;
                progress.line(&error_line(&input.name, &error));
            }
        }
    }
    if inputs.len() > 1 {
        progress.line(&manifest.summary(failed, started.elapsed()));
    }
    match failed {
        0 => Ok(()),
        _ => Err(Failure::reported()),
    }
}

/// How the stems are written.
fn manner(args: &SeparateArgs, choice: &Choice, inputs: &[Input]) -> Outcome<Manner> {
    let codec = codec(&args.format, args.samples.as_deref())?;
    if args.out.is_file() {
        return Err(Failure::usage(format!(
            "{} is a file, wanted a folder for the stems",
            args.out.display()
        )));
    }
    Ok(Manner {
        names: Names::new(&args.out, &args.filename, &choice.name, codec.name())?,
        format: AudioFormat { codec, rate: None },
        clip: args.clip_mode,
        read: whole_names(inputs),
    })
}

/// The request that the flags make.
fn request(args: &SeparateArgs, choice: &Choice) -> Outcome<SeparateRequest> {
    let info = choice.family.info();
    let mut pairs = args.request_option.clone();
    let flags = [
        ("shifts", args.shifts.map(|n| n.to_string())),
        ("overlap", args.overlap.map(|part| part.to_string())),
        ("segment", args.segment.map(|seconds| seconds.to_string())),
    ];
    for (name, value) in flags {
        let Some(value) = value else { continue };
        let takes = |option: &OptionSpec| option.name == name && option.scope == Scope::Request;
        if !info.options.iter().any(takes) {
            return Err(Failure::usage(format!(
                "--{name}: {} does not take it",
                info.name
            )));
        }
        pairs.push(format!("{name}={value}"));
    }
    let options = Options::parse(&pairs, info.name, info.options, Scope::Request);
    Ok(SeparateRequest {
        stems: args.stems.clone(),
        two_stems: args.two_stems.clone(),
        rest: match args.rest.as_str() {
            "difference" => Rest::Difference,
            _ => Rest::Sum,
        },
        seed: args.seed,
        stream: true,
        options: options.map_err(Failure::setup)?,
    })
}

/// A model with its open session; the session goes first when both are dropped.
struct Loaded {
    session: Box<dyn Separate>,
    _model: Box<dyn Model>,
}

/// What all mixes of one job share.
struct Runner<'a> {
    progress: Arc<Progress>,
    cancel: &'a CancelToken,
    choice: &'a Choice<'a>,
    request: SeparateRequest,
    manner: Arc<Manner>,
    loaded: Option<Loaded>,
}

/// A mix that was separated.
struct Done {
    separation: Separation,
    files: Vec<PathBuf>,
    seconds: f64,
}

impl Runner<'_> {
    /// One mix. The inner error is about this mix alone; the outer one ends the job.
    fn one(&mut self, input: &Input, track: &str) -> Outcome<Result<Done, Error>> {
        self.progress.about(&input.name);
        let context = self.progress.context(self.cancel);
        context.check().map_err(Failure::run)?;
        let mut reader = match open(input) {
            Ok(reader) => reader,
            Err(error) => return Ok(Err(error)),
        };
        let session = match &mut self.loaded {
            Some(loaded) => &mut loaded.session,
            none => {
                &mut none
                    .insert(load(self.choice, &self.progress, &context)?)
                    .session
            }
        };
        let separating = Separating::new(
            self.progress.clone(),
            self.cancel.clone(),
            self.manner.clone(),
            track,
        );
        let context = RunContext::with_sink(self.cancel.clone(), separating.clone());
        let started = Instant::now();
        let result = session.separate(&self.request, &mut reader, &context);
        self.progress.clear();
        let separation = match (separating.failure(), result) {
            // What went wrong with a file stopped the run, which then calls itself cancelled.
            (Some(error), _) => return Err(Failure::run(error)),
            (None, Ok(separation)) => separation,
            // These would meet every other mix in the same way.
            (None, Err(error)) if ends_the_job(error.class) => return Err(Failure::run(error)),
            (None, Err(error)) => return Ok(Err(error)),
        };
        // A mix without a frame sent no stretch.
        separating.take(&separation.stems);
        let closed = separating.end().and_then(|writers| writers.close());
        let (files, notes) = match closed {
            Ok(closed) => closed,
            Err(error) => return Ok(Err(error)),
        };
        for message in separation.warnings.iter().chain(&notes) {
            self.progress.warn(message);
        }
        Ok(Ok(Done {
            separation,
            files,
            seconds: started.elapsed().as_secs_f64(),
        }))
    }
}

fn load(choice: &Choice, progress: &Progress, context: &RunContext) -> Outcome<Loaded> {
    let path = choice.fetch(progress, context)?;
    let model = choice.load(&path, context)?;
    let session = model.session(Task::Sep, &choice.session);
    let session = session.and_then(|session| session.into_separate());
    progress.clear();
    Ok(Loaded {
        session: session.map_err(Failure::run)?,
        _model: model,
    })
}

impl Done {
    /// Says what was written and how fast it was: to people at a terminal, and to logs.
    fn tell(&self, progress: &Progress, input: &Input) {
        let length = self.separation.duration;
        let folder = self.files.first().and_then(|file| file.parent());
        let left = self.separation.remainder_db;
        let left = left.map_or(String::new(), |left| {
            format!("; {left:.1} dB of the mix are in no stem")
        });
        let line = format!(
            "{}: {} stems in {}, {length:.2} s of sound in {:.2} s ({:.1} times real time){left}",
            input.name,
            self.files.len(),
            folder.unwrap_or(Path::new("")).display(),
            self.seconds,
            length / self.seconds.max(1e-9),
        );
        match std::io::stderr().is_terminal() {
            true => progress.line(&line),
            false => tracing::info!("{line}"),
        }
    }
}

/// A list of what became of each mix, written as it grows.
struct Manifest {
    out: Option<(PathBuf, BufWriter<File>)>,
    done: usize,
    seconds: f64,
}

impl Manifest {
    fn new(path: Option<&Path>) -> Outcome<Manifest> {
        let open = |path: &Path| {
            let file = File::create(path).map_err(|e| Failure::run(Error::file(path, &e)))?;
            Ok((path.to_owned(), BufWriter::new(file)))
        };
        Ok(Manifest {
            out: path.map(open).transpose()?,
            done: 0,
            seconds: 0.0,
        })
    }

    fn add(&mut self, input: &Input, result: &Result<Done, Error>) -> Outcome {
        if let Ok(done) = result {
            self.done += 1;
            self.seconds += done.separation.duration;
        }
        let Some((path, out)) = &mut self.out else {
            return Ok(());
        };
        let line = match result {
            Ok(done) => {
                let names = done.separation.stems.iter().map(|stem| &stem.name);
                let stems: Vec<_> = names
                    .zip(&done.files)
                    .map(|(name, file)| json!({ "name": name, "file": file }))
                    .collect();
                json!({
                    "input": input.name, "stems": stems, "duration": done.separation.duration,
                    "seconds": done.seconds, "remainder_db": done.separation.remainder_db,
                    "warnings": done.separation.warnings,
                })
            }
            Err(error) => json!({ "input": input.name, "error": error }),
        };
        let written = writeln!(out, "{line}").and_then(|()| out.flush());
        written.map_err(|error| Failure::run(Error::file(path, &error)))
    }

    /// One line about all of them.
    fn summary(&self, failed: usize, took: Duration) -> String {
        format!(
            "{} done, {failed} failed: {:.1} s of sound in {:.1} s",
            self.done,
            self.seconds,
            took.as_secs_f64()
        )
    }
}

#[cfg(test)]
mod tests;
