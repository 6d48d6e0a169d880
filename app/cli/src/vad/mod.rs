//! Finding speech in recordings: the one code path of both forms of the command.

pub mod args;

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use audiocpp::engine::{
    ActivityFormat, CancelToken, ChunkRules, DetectSpeech, DetectSpeechRequest, Error, Model,
    Options, Registry, RunContext, Scope, SpeechRules, Task, VoiceActivity, chunks, detect_speech,
};
use serde_json::json;

use self::args::{Vad, VadArgs, VadFlags};
use crate::{
    args::ModelArgs,
    failure::{Failure, Outcome},
    inputs::{Input, expand},
    model::Choice,
    output,
    progress::Progress,
    targets::{Target, ends_open, in_files, make_folder, refuse_taken, require_folder},
    transcribe::{Done, Timing, at_most_one_stdin, ends_the_job, open},
};

/// What one command asks for.
pub struct Job {
    inputs: Vec<String>,
    model: ModelArgs,
    request: VadArgs,
    folder: Option<PathBuf>,
}

impl From<Vad> for Job {
    fn from(args: Vad) -> Job {
        Job {
            inputs: args.inputs,
            model: args.model,
            request: args.request,
            folder: None,
        }
    }
}

impl From<VadFlags> for Job {
    fn from(flags: VadFlags) -> Job {
        let mut inputs = flags.audio;
        inputs.extend(flags.batch_audio_dir);
        Job {
            inputs,
            model: flags.model,
            request: flags.request,
            folder: flags.out_dir,
        }
    }
}

/// Runs the job; every input is tried, whatever happens to the others.
pub fn run(job: &Job, registry: &Registry, cancel: &CancelToken) -> Outcome {
    if job.inputs.is_empty() {
        return Err(Failure::usage("name a recording with --audio FILE"));
    }
    let choice = Choice::new(&job.model, Task::Vad, registry)?;
    let args = &job.request;
    let request = request(args, &choice)?;
    let rules = args.chunks.over(ChunkRules::default());
    request.rules.check().map_err(Failure::setup)?;
    rules.check().map_err(Failure::setup)?;
    let inputs = expand(&job.inputs);
    at_most_one_stdin(&inputs)?;
    let (format, targets) = plan(&inputs, job)?;
    let progress = Progress::new();
    let mut runner = Runner {
        context: progress.context(cancel),
        progress: &progress,
        choice: &choice,
        request,
        chunks: rules,
        args,
        format,
        headings: inputs.len() > 1,
        loaded: None,
    };
    let started = Instant::now();
    let mut timing = Timing::of_each(&inputs, &progress, |input, at| {
        runner.one(input, &targets[at])
    })?;
    timing.load_seconds = runner.loaded.map_or(0.0, |loaded| loaded.seconds);
    timing.report(&inputs, args.timing_json.as_deref(), &progress, started)
}

/// The request that the flags make, checked against what the family declares.
fn request(args: &VadArgs, choice: &Choice) -> Outcome<DetectSpeechRequest> {
    let info = choice.family.info();
    let options = Options::parse(
        &args.request_option,
        info.name,
        info.options,
        Scope::Request,
    );
    Ok(DetectSpeechRequest {
        rules: args.rules.over(SpeechRules::default()),
        probabilities: args.probabilities,
        options: options.map_err(Failure::setup)?,
    })
}

/// Decides form and place of every result before anything is run.
fn plan(inputs: &[Input], job: &Job) -> Outcome<(ActivityFormat, Vec<Target>)> {
    let args = &job.request;
    let out = job.folder.as_deref().or(args.out.as_deref());
    let out = out.filter(|out| *out != Path::new("-"));
    let extra = [&args.segments_out, &args.vad_chunks_out];
    let extra: Vec<&Path> = extra.into_iter().flatten().map(PathBuf::as_path).collect();
    let count = inputs.len();
    if count > 1 && !extra.is_empty() {
        return Err(Failure::usage(format!(
            "--segments-out and --vad-chunks-out take one input, not {count}: use --format json \
             and a folder with --out"
        )));
    }
    let by_name = || {
        let extension = out.filter(|out| !out.is_dir())?.extension()?.to_str()?;
        let like = |format: &ActivityFormat| format.extension().eq_ignore_ascii_case(extension);
        ActivityFormat::ALL.into_iter().find(like)
    };
    let named = args.format.or_else(by_name);
    let format = named.unwrap_or_default();
    if args.probabilities && format != ActivityFormat::Json {
        return Err(Failure::usage("--probabilities are part of --format json"));
    }
    let batch = job.folder.is_some() || count > 1;
    let targets = match out {
        Some(out) => in_files(inputs, format.extension(), out, batch)?,
        None if count > 1 && format != ActivityFormat::Text => {
            return Err(Failure::usage(format!(
                "{count} results in this form do not fit on standard output: name a folder with --out"
            )));
        }
        None if !extra.is_empty() && args.out.is_none() && named.is_none() => {
            vec![Target::None; count]
        }
        None => vec![Target::Stdout; count],
    };
    let files = targets.iter().filter_map(Target::file);
    refuse_taken(inputs, files.chain(extra))?;
    if !batch && !ends_open(args.out.as_deref()) {
        targets.iter().try_for_each(require_folder)?;
    }
    Ok((format, targets))
}

/// A model with its open session; the session goes first when both are dropped.
struct Loaded {
    session: Box<dyn DetectSpeech>,
    _model: Box<dyn Model>,
    /// How long it took to load.
    seconds: f64,
}

/// What all inputs of one job share.
struct Runner<'a> {
    context: RunContext,
    progress: &'a Progress,
    choice: &'a Choice<'a>,
    request: DetectSpeechRequest,
    chunks: ChunkRules,
    args: &'a VadArgs,
    format: ActivityFormat,
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
        let session = match &mut self.loaded {
            Some(loaded) => &mut loaded.session,
            none => {
                let (session, model, seconds) = load(self.choice, self.progress, &self.context)?;
                let loaded = Loaded {
                    session,
                    _model: model,
                    seconds,
                };
                &mut none.insert(loaded).session
            }
        };
        let started = Instant::now();
        let result = detect_speech(&mut **session, &self.request, &mut reader, &self.context);
        let seconds = started.elapsed().as_secs_f64();
        self.progress.clear();
        let activity = match result {
            Ok(activity) => activity,
            // These would meet every other input in the same way.
            Err(error) if ends_the_job(error.class) => return Err(Failure::run(error)),
            Err(error) => return Ok(Err(error)),
        };
        for message in &activity.warnings {
            self.progress.warn(message);
        }
        Ok(self.deliver(input, &activity, target)?.map(|()| Done {
            input: input.name.clone(),
            audio_seconds: activity.duration,
            seconds,
        }))
    }

    /// Writes everything that was asked for about one input, or nothing.
    fn deliver(
        &self,
        input: &Input,
        activity: &VoiceActivity,
        target: &Target,
    ) -> Outcome<Result<(), Error>> {
        let windows = chunks(&activity.segments, &self.chunks, activity.duration);
        let shown = self.args.chunked.then_some(&windows[..]);
        let text = self.format.render(activity, shown);
        let mut files = Vec::new();
        if let Target::File(path) = target {
            files.push((path.as_path(), text.clone()));
        }
        if let Some(path) = &self.args.segments_out {
            files.push((path, format!("{:#}\n", json!(activity.segments))));
        }
        if let Some(path) = &self.args.vad_chunks_out {
            files.push((path, format!("{:#}\n", json!(windows))));
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

/// A detector, its model, and the seconds that loading it took.
type Detector = (Box<dyn DetectSpeech>, Box<dyn Model>, f64);

/// Fetches and loads a model, and opens a session on it.
pub fn load(choice: &Choice, progress: &Progress, context: &RunContext) -> Outcome<Detector> {
    let path = choice.fetch(progress, context)?;
    let started = Instant::now();
    let model = choice.load(&path, context)?;
    let session = model
        .session(Task::Vad, &choice.session)
        .and_then(|session| session.into_detect_speech())
        .map_err(Failure::run)?;
    progress.clear();
    Ok((session, model, started.elapsed().as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn flags(words: &[&str]) -> Job {
        let first = ["audiocpp_cli", "--task", "vad"];
        VadFlags::parse_from(first.iter().chain(words)).into()
    }

    fn friendly(words: &[&str]) -> Job {
        let first = ["audiocpp_cli", "vad"];
        match Cli::parse_from(first.iter().chain(words)).command {
            Some(Command::Vad(args)) => (*args).into(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_forms_fill_the_same_fields() {
        let shared = [
            "--vad-threshold",
            "0.6",
            "--vad-chunk-max-seconds",
            "20",
            "--vad-chunks-out",
            "c.json",
            "--threads",
            "2",
        ];
        let a = flags(&[&["--audio", "a.wav"], &shared[..]].concat());
        let b = friendly(&[&["a.wav"], &shared[..]].concat());
        assert_eq!(a.inputs, b.inputs);
        assert_eq!(format!("{:?}", a.model), format!("{:?}", b.model));
        assert_eq!(format!("{:?}", a.request), format!("{:?}", b.request));
        let rules = a.request.rules.over(SpeechRules::default());
        assert_eq!((rules.threshold, rules.min_speech), (0.6, 0.25));
        let windows = a.request.chunks.over(ChunkRules::default());
        assert_eq!((windows.max_length, windows.merge_gap), (20.0, 0.5));
    }

    #[test]
    fn form_and_place_are_decided_before_anything_runs() {
        let inputs = |names: &[&str]| -> Vec<Input> {
            let place = |name: &&str| Input {
                name: (*name).into(),
                place: crate::inputs::Place::Path((*name).into()),
            };
            names.iter().map(place).collect()
        };
        let one = inputs(&["a.wav"]);
        let (format, targets) = plan(&one, &friendly(&["a.wav", "-o", "x.srt"])).unwrap();
        assert_eq!(format, ActivityFormat::Srt);
        assert_eq!(targets, [Target::File("x.srt".into())]);
        let words = ["a.wav", "--vad-chunks-out", "c.json"];
        assert_eq!(plan(&one, &friendly(&words)).unwrap().1, [Target::None]);
        let two = inputs(&["a.wav", "b.wav"]);
        let refused =
            |inputs: &[Input], words: &[&str]| plan(inputs, &friendly(words)).unwrap_err().message;
        assert!(refused(&two, &["a.wav", "b.wav", "-f", "json"]).contains("folder"));
        assert!(refused(&two, &[&words[..], &["b.wav"]].concat()).contains("one input"));
        assert!(refused(&one, &["a.wav", "--probabilities"]).contains("json"));
        let (_, targets) = plan(&two, &flags(&["--audio", "a.wav", "--out-dir", "new"])).unwrap();
        assert_eq!(targets[1], Target::File("new/b.txt".into()));
    }
}
