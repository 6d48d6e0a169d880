//! One loaded model and the jobs that are done with it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    time::Instant,
};

use audiocpp::{
    audio::{Audio, Reader},
    engine::{
        DetectSpeech, Error, FamilyInfo, LoadOptions, Model, Options, Registry, Result, RunContext,
        Scope, Session, SpeechOnly, SynthesizeRequest, Task, Transcribe, TranscribeRequest,
        Transcript, detect_speech, transcribe, transcribe_speech,
    },
};

use super::{limit::Limited, message::Loaded, spec::Spec};
use crate::{
    config::plan::Voice,
    job::{Job, Outcome},
};

/// Seconds of a recording whose voice is copied; more does not help.
const REFERENCE_S: f64 = 120.0;

/// A model in memory.
pub struct Station {
    spec: Spec,
    family: FamilyInfo,
    model: Box<dyn Model>,
    /// Closed after a job that failed, so that none meets what another left behind.
    session: Option<Session>,
    /// Opened when it is first needed.
    detector: Option<(Box<dyn DetectSpeech>, Box<dyn Model>)>,
}

impl Station {
    /// Fetches and loads the model.
    pub fn load(spec: Spec, context: &RunContext) -> Result<(Station, Loaded)> {
        let started = Instant::now();
        let registry = audiocpp_models::registry();
        let path = spec.package.fetch(spec.pull, context)?;
        let family = registry.detect(&path, Some(&spec.family))?;
        let model = guarded(|| family.load(&path, &spec.load, context))?;
        let session = guarded(|| model.session(spec.task, &spec.session))?;
        let loaded = Loaded {
            info: model.info(),
            voices: model.voices(),
            seconds: started.elapsed().as_secs_f64(),
            memory: memory(),
        };
        let station = Station {
            family: family.info(),
            spec,
            model,
            session: Some(session),
            detector: None,
        };
        Ok((station, loaded))
    }

    /// Does one job.
    pub fn run(&mut self, job: Job, voice: Option<Voice>, context: &RunContext) -> Result<Outcome> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => guarded(|| self.model.session(self.spec.task, &self.spec.session))?,
        };
        let outcome = guarded(|| self.dispatch(&mut session, job, voice, context))?;
        self.session = Some(session);
        Ok(outcome)
    }

    fn dispatch(
        &mut self,
        session: &mut Session,
        job: Job,
        voice: Option<Voice>,
        context: &RunContext,
    ) -> Result<Outcome> {
        match (session, job) {
            (
                Session::Transcribe(session),
                Job::Transcribe {
                    request,
                    audio,
                    speech_only,
                },
            ) => {
                self.check(&request.options)?;
                let source = self.open(&audio);
                let transcript = source.and_then(|s| {
                    self.transcribe(&mut **session, &request, speech_only, s, context)
                });
                nameless(transcript, &audio).map(Outcome::Transcript)
            }
            (Session::Synthesize(session), Job::Synthesize { mut request }) => {
                self.check(&request.options)?;
                if let Some(voice) = voice {
                    speak_as(voice, &mut request)?;
                }
                session.synthesize(&request, context).map(Outcome::Speech)
            }
            (Session::DetectSpeech(session), Job::DetectSpeech { request, audio }) => {
                self.check(&request.options)?;
                let detect = |mut source: Limited<Reader>| {
                    detect_speech(&mut **session, &request, &mut source, context)
                };
                let activity = self.open(&audio).and_then(detect);
                nameless(activity, &audio).map(Outcome::Activity)
            }
            (Session::Separate(session), Job::Separate { request, audio }) => {
                self.check(&request.options)?;
                let separate =
                    |mut source: Limited<Reader>| session.separate(&request, &mut source, context);
                let separation = self.open(&audio).and_then(separate);
                nameless(separation, &audio).map(Outcome::Separation)
            }
            (_, job) => Err(Error::other_task(
                &format!("model `{}`", self.spec.id),
                self.spec.task,
                task_of(&job),
            )),
        }
    }

    fn check(&self, options: &Options) -> Result<()> {
        options.check(self.family.name, self.family.options, Scope::Request)
    }

    fn open(&self, path: &Path) -> Result<Limited<Reader>> {
        Ok(Limited::new(Reader::open(path)?, self.spec.max_seconds))
    }

    fn transcribe(
        &mut self,
        session: &mut dyn Transcribe,
        request: &TranscribeRequest,
        speech_only: Option<SpeechOnly>,
        mut source: Limited<Reader>,
        context: &RunContext,
    ) -> Result<Transcript> {
        let Some(only) = speech_only else {
            return transcribe(session, request, &mut source, context);
        };
        let detector = match &mut self.detector {
            Some(open) => open,
            none => none.insert(open_detector(&self.spec, context)?),
        };
        transcribe_speech(
            session,
            &mut *detector.0,
            request,
            &only,
            &mut source,
            context,
        )
    }
}

/// The detector of a recogniser. It is too small to gain by a GPU.
fn open_detector(
    spec: &Spec,
    context: &RunContext,
) -> Result<(Box<dyn DetectSpeech>, Box<dyn Model>)> {
    let package = spec.detector.as_ref().ok_or_else(|| {
        Error::unsupported(format!(
            "model `{}` has no detector of speech: set its key `vad`, or install silero-vad",
            spec.id
        ))
    })?;
    let path = package.fetch(spec.pull, context)?;
    let registry: Registry = audiocpp_models::registry();
    let options = LoadOptions {
        device: "cpu".into(),
        threads: spec.load.threads,
        ..LoadOptions::default()
    };
    let model = registry
        .detect(&path, None)?
        .load(&path, &options, context)?;
    let session = model.session(Task::Vad, &Options::default())?;
    Ok((session.into_detect_speech()?, model))
}

/// Puts a configured voice into a request.
fn speak_as(voice: Voice, request: &mut SynthesizeRequest) -> Result<()> {
    request.voice = voice.voice;
    if let Some(recording) = voice.recording {
        let mut source = Reader::open(&recording)?;
        request.references = vec![Audio::from_source(&mut source, Some(REFERENCE_S))?];
        request.reference_text = voice.words;
    }
    Ok(())
}

fn task_of(job: &Job) -> Task {
    match job {
        Job::Transcribe { .. } => Task::Asr,
        Job::Synthesize { .. } => Task::Tts,
        Job::DetectSpeech { .. } => Task::Vad,
        Job::Separate { .. } => Task::Sep,
    }
}

/// Where an upload lies on this machine is nobody's business.
fn nameless<T>(result: Result<T>, path: &Path) -> Result<T> {
    let shown = path.display().to_string();
    result.map_err(|error| Error {
        message: error.message.replace(&shown, "the recording"),
        ..error
    })
}

/// Makes a panic an error: one strange recording must not cost others their worker.
fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let text = text.unwrap_or("no message");
        Err(Error::internal(format!("the model panicked: {text}")))
    })
}

/// Bytes of memory that this process holds; 0 if the system does not tell.
pub fn memory() -> u64 {
    memory_stats::memory_stats().map_or(0, |stats| stats.physical_mem as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use audiocpp::engine::ErrorClass;

    #[test]
    fn a_panic_is_an_error_and_an_upload_has_no_path() {
        let error = guarded::<()>(|| panic!("index {} of 3", 7)).unwrap_err();
        assert_eq!(error.class, ErrorClass::Internal);
        assert!(error.message.ends_with("index 7 of 3"), "{error}");
        let path = Path::new("/spool/x7");
        let error = nameless::<()>(Err(Error::bad_input("/spool/x7: not audio")), path);
        assert_eq!(error.unwrap_err().message, "the recording: not audio");
        assert!(memory() > 1 << 20);
    }
}
