//! Turning recordings into text: the one code path of both forms of the command.

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use audiocpp::{
    audio::Reader,
    engine::{
        CancelToken, DetectSpeech, Error, ErrorClass, FormatOptions, Model, Options, Registry,
        RunContext, Scope, SpeechOnly, Task, Transcribe, TranscribeRequest, Transcript,
        TranscriptFormat, transcribe, transcribe_speech,
    },
};

use serde::Serialize;

use crate::{
    args::{DeviceArgs, ModelArgs, TranscribeArgs},
    failure::{Failure, Outcome},
    formats,
    inputs::{Input, Place, expand},
    model::Choice,
    output,
    progress::Progress,
    targets::{Target, ends_open, make_folder, plan, require_folder},
    vad,
};

/// What one command asks for.
pub struct Job {
    /// Inputs as they were named.
    pub inputs: Vec<String>,
    /// The model.
    pub model: ModelArgs,
    /// The request and the places of the results.
    pub request: TranscribeArgs,
    /// Folder for the results.
    pub folder: Option<PathBuf>,
}

/// How long things took, for `--timing-json`.
#[derive(Debug, Default, Serialize)]
pub struct Timing {
    /// Loading the model, without fetching it.
    pub load_seconds: f64,
    /// The inputs that are done.
    pub inputs: Vec<Done>,
}

/// What a finished input was like.
#[derive(Debug, Serialize)]
pub struct Done {
    /// Its name.
    pub input: String,
    /// Length of the recording.
    pub audio_seconds: f64,
    /// Decoding and the task together.
    pub seconds: f64,
}

/// Runs the job; every input is tried, whatever happens to the others.
pub fn run(job: &Job, registry: &Registry, cancel: &CancelToken) -> Outcome {
    let choice = Choice::new(&job.model, Task::Asr, registry)?;
    let speech = job.request.speech.speech_only()?;
    let speech = speech
        .map(|only| Ok((only, detector(job, registry)?)))
        .transpose()?;
    let request = request(&job.request, &choice)?;
    let inputs = expand(&job.inputs);
    at_most_one_stdin(&inputs)?;
    let (format, targets) = plan(&inputs, &job.request, job.folder.as_deref())?;
    let batch = job.folder.is_some() || inputs.len() > 1;
    if !batch && !ends_open(job.request.out.as_deref()) {
        targets.iter().try_for_each(require_folder)?;
    }

    let progress = Progress::new();
    let mut runner = Runner {
        context: progress.context(cancel),
        progress: &progress,
        choice: &choice,
        speech: speech.as_ref(),
        request: &request,
        args: &job.request,
        format,
        headings: inputs.len() > 1,
        loaded: None,
    };
    let started = Instant::now();
    let mut timing = Timing::of_each(&inputs, &progress, |input, at| {
        runner.one(input, &targets[at])
    })?;
    timing.load_seconds = runner.loaded.map_or(0.0, |loaded| loaded.seconds);
    let file = job.request.timing_json.as_deref();
    timing.report(&inputs, file, &progress, started)
}

/// Standard input has one end.
pub fn at_most_one_stdin(inputs: &[Input]) -> Outcome {
    let stdin = inputs.iter().filter(|input| input.place == Place::Stdin);
    match stdin.count() {
        0 | 1 => Ok(()),
        _ => Err(Failure::usage("standard input (-) can be read only once")),
    }
}

impl Timing {
    /// Runs every input, by its place in the list, whatever happens to the others. The inner error of
    /// `one` is about its input alone; the outer one ends the job.
    pub fn of_each(
        inputs: &[Input],
        progress: &Progress,
        mut one: impl FnMut(&Input, usize) -> Outcome<Result<Done, Error>>,
    ) -> Outcome<Timing> {
        let mut timing = Timing::default();
        for (at, input) in inputs.iter().enumerate() {
            match one(input, at)? {
                Ok(done) => {
                    done.log();
                    timing.inputs.push(done);
                }
                Err(error) => {
                    progress.clear();
                    progress.line(&error_line(&input.name, &error));
                }
            }
        }
        progress.clear();
        Ok(timing)
    }

    /// Says how a job with many inputs went, writes `file`, and fails if an input failed.
    pub fn report(
        &self,
        inputs: &[Input],
        file: Option<&Path>,
        progress: &Progress,
        started: Instant,
    ) -> Outcome {
        let failed = inputs.len() - self.inputs.len();
        if inputs.len() > 1 {
            progress.line(&self.summary(failed, started.elapsed()));
        }
        if let Some(path) = file {
            let json = format!("{:#}\n", serde_json::json!(self));
            output::write_all(&[(path, json)]).map_err(Failure::run)?;
        }
        match failed {
            0 => Ok(()),
            _ => Err(Failure::reported()),
        }
    }

    fn summary(&self, failed: usize, took: Duration) -> String {
        let done = self.inputs.len();
        let audio: f64 = self.inputs.iter().map(|input| input.audio_seconds).sum();
        let took = took.as_secs_f64();
        format!("{done} done, {failed} failed: {audio:.1} s of sound in {took:.1} s")
    }
}

impl Done {
    /// Tells the speed to those who want to know.
    pub fn log(&self) {
        let Done {
            input,
            audio_seconds,
            seconds,
        } = self;
        let speed = audio_seconds / seconds.max(1e-9);
        tracing::info!(
            "{input}: {audio_seconds:.2} s of sound in {seconds:.2} s, {speed:.1} times real time"
        );
    }
}

/// The model that finds speech for `--vad`. It is too small to gain by a GPU.
fn detector<'r>(job: &Job, registry: &'r Registry) -> Outcome<Choice<'r>> {
    let args = ModelArgs {
        model: job.request.speech.vad_model.clone(),
        device: DeviceArgs {
            device: Some("cpu".into()),
            ..DeviceArgs::default()
        },
        threads: job.model.threads,
        offline: job.model.offline,
        ..ModelArgs::default()
    };
    Choice::new(&args, Task::Vad, registry)
}

/// The request that the flags make, checked against what the family declares.
fn request(args: &TranscribeArgs, choice: &Choice) -> Outcome<TranscribeRequest> {
    let info = choice.family.info();
    if let Some(t) = args.temperature
        && !(0.0..=1.0).contains(&t)
    {
        return Err(Failure::usage(format!(
            "--temperature is {t}, wanted 0 to 1"
        )));
    }
    let options = Options::parse(
        &args.request_option,
        info.name,
        info.options,
        Scope::Request,
    );
    Ok(TranscribeRequest {
        language: args.language.clone().filter(|language| language != "auto"),
        translate: args.translate,
        prompt: args.prompt.clone(),
        words: args.words || args.words_out.is_some(),
        temperature: args.temperature,
        beam_size: args.beam_size.map(usize::from),
        seed: args.seed,
        options: options.map_err(Failure::setup)?,
    })
}

/// A model with its open session; the session goes first when both are dropped.
struct Loaded {
    session: Box<dyn Transcribe>,
    detector: Option<Box<dyn DetectSpeech>>,
    _models: Vec<Box<dyn Model>>,
    /// How long it took to load.
    seconds: f64,
}

/// What all inputs of one job share.
struct Runner<'a> {
    context: RunContext,
    progress: &'a Progress,
    choice: &'a Choice<'a>,
    speech: Option<&'a (SpeechOnly, Choice<'a>)>,
    request: &'a TranscribeRequest,
    args: &'a TranscribeArgs,
    format: TranscriptFormat,
    headings: bool,
    loaded: Option<Loaded>,
}

impl Runner<'_> {
    /// One input. The inner error is about this input alone; the outer one ends the job.
    fn one(&mut self, input: &Input, target: &Target) -> Outcome<Result<Done, Error>> {
        self.context.check().map_err(Failure::run)?;
        self.progress.about(&input.name);
        let mut reader = match open(input) {
            Ok(reader) => reader,
            Err(error) => return Ok(Err(error)),
        };
        let loaded = match &mut self.loaded {
            Some(loaded) => loaded,
            none => {
                let detector = self.speech.map(|(_, choice)| choice);
                none.insert(load(self.choice, detector, self.progress, &self.context)?)
            }
        };
        let (session, context) = (&mut *loaded.session, &self.context);
        let started = Instant::now();
        let result = match (self.speech, &mut loaded.detector) {
            (Some((only, _)), Some(detector)) => transcribe_speech(
                session,
                &mut **detector,
                self.request,
                only,
                &mut reader,
                context,
            ),
            _ => transcribe(session, self.request, &mut reader, context),
        };
        let seconds = started.elapsed().as_secs_f64();
        self.progress.clear();
        let transcript = match result {
            Ok(transcript) => transcript,
            // These would meet every other input in the same way.
            Err(error) if ends_the_job(error.class) => return Err(Failure::run(error)),
            Err(error) => return Ok(Err(error)),
        };
        for message in &transcript.warnings {
            self.progress.warn(message);
        }
        match self.deliver(input, &transcript, target)? {
            Ok(()) => Ok(Ok(Done {
                input: input.name.clone(),
                audio_seconds: transcript.duration,
                seconds,
            })),
            Err(error) => Ok(Err(error)),
        }
    }

    fn render(&self, format: TranscriptFormat, transcript: &Transcript) -> String {
        let limit = |value: Option<u16>| value.map(usize::from);
        let options = FormatOptions {
            translated: self.request.translate,
            words: self.request.words,
            no_segments: false,
            max_line_width: limit(self.args.max_line_width),
            max_line_count: limit(self.args.max_line_count),
            max_words_per_line: limit(self.args.max_words_per_line),
        };
        format.render(transcript, &options)
    }

    /// Writes everything that was asked for about one transcript, or nothing.
    fn deliver(
        &self,
        input: &Input,
        transcript: &Transcript,
        target: &Target,
    ) -> Outcome<Result<(), Error>> {
        let text = self.render(self.format, transcript);
        let mut files = Vec::new();
        if let Target::File(path) = target {
            files.push((path.as_path(), text.clone()));
        }
        if let Some(path) = &self.args.text_out {
            files.push((path, self.render(TranscriptFormat::Text, transcript)));
        }
        if let Some(path) = &self.args.words_out {
            files.push((path, formats::words_json(transcript)));
        }
        if let Some(path) = &self.args.segments_out {
            files.push((path, formats::segments_json(transcript)));
        }
        let written = make_folder(target).and_then(|()| output::write_all(&files));
        if let Err(error) = written {
            return Ok(Err(error));
        }
        if *target == Target::Stdout {
            if self.headings {
                output::print(&format!("==> {} <==\n", input.name))?;
            }
            output::print(&text)?;
        }
        Ok(Ok(()))
    }
}

/// Errors that are about the model, the request or the machine, not about one input.
pub fn ends_the_job(class: ErrorClass) -> bool {
    matches!(
        class,
        ErrorClass::Cancelled | ErrorClass::Unsupported | ErrorClass::Model
    )
}

fn load(
    choice: &Choice,
    detector: Option<&Choice>,
    progress: &Progress,
    context: &RunContext,
) -> Outcome<Loaded> {
    let path = choice.fetch(progress, context)?;
    let detector = detector.map(|choice| vad::load(choice, progress, context));
    let (detector, mut models, detector_seconds) = match detector.transpose()? {
        Some((detector, model, seconds)) => (Some(detector), vec![model], seconds),
        None => (None, Vec::new(), 0.0),
    };
    let started = Instant::now();
    let model = choice.load(&path, context)?;
    let session = model
        .session(Task::Asr, &choice.session)
        .map_err(Failure::run)?;
    let session = session.into_transcribe().map_err(Failure::run)?;
    progress.clear();
    models.push(model);
    Ok(Loaded {
        session,
        detector,
        _models: models,
        seconds: detector_seconds + started.elapsed().as_secs_f64(),
    })
}

/// Opens one input for decoding.
pub fn open(input: &Input) -> Result<Reader, Error> {
    match &input.place {
        Place::Path(path) => Ok(Reader::open(path)?),
        Place::Stdin => {
            let stdin = std::io::stdin();
            if stdin.is_terminal() {
                return Err(Error::bad_input(
                    "it is a terminal: pipe a recording into it",
                ));
            }
            Ok(Reader::from_pipe(stdin.lock(), &input.name)?)
        }
        Place::Missing(why) => Err(Error::not_found(why.clone())),
    }
}

/// `error: INPUT: MESSAGE`, with the input only once.
pub fn error_line(name: &str, error: &Error) -> String {
    if error.message.contains(name) {
        format!("error: {error}")
    } else {
        format!("error: {name}: {error}")
    }
}

#[cfg(test)]
#[path = "transcribe_tests.rs"]
mod tests;
