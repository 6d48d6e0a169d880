//! What one timed run does, by task.

use audiocpp::{
    audio::{Audio, Reader},
    engine::{
        ActivityFormat, DetectSpeechRequest, Error, Model, Options, Result, RunContext, Scope,
        SeparateRequest, Session, Task, TranscribeRequest, detect_speech, transcribe,
    },
};

use crate::{args::Bench, failure::Outcome, inputs::Place, model::Choice};

/// What a run made.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// Seconds of sound that were read, or made.
    pub audio_seconds: f64,
    /// The result as text: equal results are equal texts.
    pub result: String,
}

/// A run that can be repeated.
pub type Work = Box<dyn FnMut(&RunContext) -> Result<Made>>;

/// Tasks that can be timed.
const TASKS: &[Task] = &[Task::Asr, Task::Vad, Task::Sep];

/// The task that the command names.
pub fn task(args: &Bench) -> Outcome<Task> {
    let task: Task = args.task.parse().map_err(crate::failure::Failure::setup)?;
    if TASKS.contains(&task) {
        return Ok(task);
    }
    let names: Vec<&str> = TASKS.iter().map(|task| task.name()).collect();
    Err(crate::failure::Failure::usage(format!(
        "{} cannot be timed yet: wanted --task {}",
        task.phrase(),
        names.join(" or ")
    )))
}

/// Everything before the first timed run: recordings decoded, a session opened.
pub fn prepare(args: &Bench, task: Task, choice: &Choice, model: &dyn Model) -> Result<Work> {
    let session = model.session(task, &choice.session)?;
    match session {
        Session::Transcribe(mut session) => {
            let request = transcribe_request(args, choice)?;
            of_each(args, move |clip, context| {
                let seconds = clip.duration();
                let mut source = clip.into_source();
                let transcript = transcribe(&mut *session, &request, &mut source, context)?;
                Ok((seconds, transcript.text + "\n"))
            })
        }
        Session::DetectSpeech(mut session) => {
            let request = DetectSpeechRequest {
                options: request_options(args, choice)?,
                ..DetectSpeechRequest::default()
            };
            of_each(args, move |clip, context| {
                let mut source = clip.into_source();
                let activity = detect_speech(&mut *session, &request, &mut source, context)?;
                let text = ActivityFormat::Text.render(&activity, None);
                Ok((activity.duration, text))
            })
        }
        Session::Separate(mut session) => {
            let request = SeparateRequest {
                seed: Some(0),
                stream: true,
                options: request_options(args, choice)?,
                ..SeparateRequest::default()
            };
            of_each(args, move |clip, context| {
                let found = session.separate(&request, &mut clip.into_source(), context)?;
                Ok((found.duration, format!("{:.1?}\n", found.remainder_db)))
            })
        }
        other => Err(Error::unsupported(format!("{other:?} cannot be timed"))),
    }
}

/// A run of `one` over every recording: its seconds, and what shall be the same each time.
fn of_each(
    args: &Bench,
    mut one: impl FnMut(Audio, &RunContext) -> Result<(f64, String)> + 'static,
) -> Result<Work> {
    let clips = recordings(&args.inputs)?;
    Ok(Box::new(move |context| {
        let mut made = Made {
            audio_seconds: 0.0,
            result: String::new(),
        };
        for clip in &clips {
            let (seconds, result) = one(clip.clone(), context)?;
            made.audio_seconds += seconds;
            made.result += &result;
        }
        Ok(made)
    }))
}

fn transcribe_request(args: &Bench, choice: &Choice) -> Result<TranscribeRequest> {
    Ok(TranscribeRequest {
        language: args.language.clone().filter(|l| l != "auto"),
        words: args.words,
        beam_size: args.beam_size.map(usize::from),
        options: request_options(args, choice)?,
        ..TranscribeRequest::default()
    })
}

fn request_options(args: &Bench, choice: &Choice) -> Result<Options> {
    let info = choice.family.info();
    let options = &args.request_option;
    Options::parse(options, info.name, info.options, Scope::Request)
}

/// The recordings, decoded: reading files is no part of the measurement.
fn recordings(named: &[String]) -> Result<Vec<Audio>> {
    let inputs = crate::inputs::expand(named);
    inputs
        .iter()
        .map(|input| match &input.place {
            Place::Path(path) => {
                let mut reader = Reader::open(path)?;
                Ok(Audio::from_source(&mut reader, None)?)
            }
            Place::Stdin => Err(Error::bad_input(
                "standard input cannot be read again for every run: name a file",
            )),
            Place::Missing(why) => Err(Error::not_found(format!("{}: {why}", input.name))),
        })
        .collect()
}
