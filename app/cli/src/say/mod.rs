//! Turning text into speech: the one code path of both forms of the command.

pub mod args;
mod player;
mod report;
pub mod sound;
mod texts;
pub mod voices;

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use audiocpp::{
    audio::{Audio, AudioFormat, Reader},
    engine::{
        CancelToken, Error, ErrorClass, Model, Options, Registry, RunContext, Scope, Speech,
        Synthesize, SynthesizeRequest, Task, TranscriptFormat,
    },
    text::phonemes::Pronunciations,
};

use self::{
    args::{Say, SayArgs},
    report::{Done, Manifest},
    sound::{Finish, Outlet, Place, Speaking},
    texts::{Item, Texts},
};
use crate::{
    codec::codec_for,
    failure::{Failure, Outcome},
    model::Choice,
    output,
    progress::Progress,
};

/// Longest recording of a voice to copy, in seconds.
const REFERENCE_S: f64 = 120.0;

/// Runs the job; every text is tried, whatever happens to the others.
pub fn run(say: &Say, registry: &Registry, cancel: &CancelToken) -> Outcome {
    let task = match say.request.reference.is_empty() {
        true => Task::Tts,
        false => Task::Clon,
    };
    let choice = Choice::new(&say.model, task, registry)?;
    let texts = texts::read(say)?;
    let finish = finish(&say.request)?;
    let places = places(&say.request, &texts, &finish)?;
    let request = request(&say.request, &choice, &finish)?;
    let progress = Progress::new();
    let mut runner = Runner {
        progress: progress.clone(),
        cancel,
        choice: &choice,
        task,
        request,
        args: &say.request,
        finish,
        loaded: None,
    };
    let mut manifest = Manifest::new(&say.request, texts.batch, &places)?;
    let started = Instant::now();
    let mut failed = 0;
    for (item, place) in texts.items.iter().zip(&places) {
        let result = runner.one(item, place)?;
        progress.clear();
        manifest.add(item, place, &result)?;
        match result {
            Ok(done) => done.tell(&progress, &item.id, place),
            Err(error) => {
                failed += 1;
                let name = if texts.batch {
                    format!("{}: ", item.id)
                } else {
                    String::new()
                };
                progress.line(&format!("error: {name}{error}"));
            }
        }
    }
    if texts.batch {
        progress.line(&manifest.summary(failed, started.elapsed()));
    }
    if failed > 0 {
        Err(Failure::reported())
    } else {
        Ok(())
    }
}

/// How the sound is made ready, from the flags and the name of the result.
fn finish(args: &SayArgs) -> Outcome<Finish> {
    let named = args.out.as_deref().filter(|out| !is_folder(out));
    let codec = codec_for(named, args.format.as_deref(), args.samples.as_deref())?;
    let in_range = |value: Option<f64>, least: f64, name: &str| match value {
        Some(value) if !(least..=0.0).contains(&value) => Err(Failure::usage(format!(
            "{name} is {value}, wanted {least} to 0"
        ))),
        _ => Ok(()),
    };
    in_range(args.peak, -60.0, "--peak")?;
    in_range(args.loudness, -60.0, "--loudness")?;
    if let Some(rate) = args.rate
        && codec.rate(rate) != rate
    {
        return Err(Failure::usage(format!(
            "{codec} has no rate of {rate} Hz; the nearest is {}",
            codec.rate(rate)
        )));
    }
    Ok(Finish {
        format: AudioFormat {
            codec,
            rate: args.rate,
        },
        peak: args.peak,
        loudness: args.loudness,
        play: args.play,
    })
}

fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().to_string_lossy().ends_with(['/', '\\'])
}

/// Where every result goes; refused before anything is spoken.
fn places(args: &SayArgs, texts: &Texts, finish: &Finish) -> Outcome<Vec<Place>> {
    let extension = finish.format.codec.name();
    let stdout = if args.stream {
        Place::Stream
    } else {
        Place::Stdout
    };
    let out = match args.out.as_deref() {
        Some(out) if out == Path::new("-") => None,
        None if args.play && !args.stream => return Ok(vec![Place::None; texts.items.len()]),
        None if args.play && std::io::stdout().is_terminal() => {
            return Ok(vec![Place::None; texts.items.len()]);
        }
        None if std::io::stdout().is_terminal() && !texts.batch => {
            return Err(Failure::usage(
                "name a file with --out, or hear it with --play",
            ));
        }
        out => out,
    };
    let Some(out) = out else {
        return if texts.batch {
            Err(Failure::usage(
                "many results do not fit on standard output: name a folder with --out",
            ))
        } else {
            Ok(vec![stdout])
        };
    };
    if !texts.batch && !is_folder(out) {
        let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            return Err(Failure::usage(format!(
                "there is no folder {}",
                folder.display()
            )));
        }
        return Ok(vec![Place::File(out.to_owned())]);
    }
    if out.is_file() {
        return Err(Failure::usage(format!(
            "{} is a file, wanted a folder for the results",
            out.display()
        )));
    }
    if texts.batch && args.timings.is_some() {
        return Err(Failure::usage(
            "--timings takes one text; a batch has its times in the manifest",
        ));
    }
    std::fs::create_dir_all(out)
        .map_err(|error| Failure::usage(format!("cannot make {}: {error}", out.display())))?;
    let path = |item: &Item| Place::File(out.join(format!("{}.{extension}", item.id)));
    Ok(texts.items.iter().map(path).collect())
}

/// The request that the flags make, without its text.
fn request(args: &SayArgs, choice: &Choice, finish: &Finish) -> Outcome<SynthesizeRequest> {
    let info = choice.family.info();
    let options = Options::parse(
        &args.request_option,
        info.name,
        info.options,
        Scope::Request,
    );
    let dictionary = args.dictionary.as_deref().map(dictionary).transpose()?;
    let recording = |path: &PathBuf| {
        let mut reader = Reader::open(path)?;
        Audio::from_source(&mut reader, Some(REFERENCE_S))
    };
    let references = args.reference.iter().map(recording);
    let references: Result<Vec<Audio>, audiocpp::audio::Error> = references.collect();
    let references = references.map_err(|error| Failure::setup(error.into()))?;
    if let Some(speed) = args.speed
        && !(0.25..=4.0).contains(&speed)
    {
        return Err(Failure::usage(format!(
            "--speed is {speed}, wanted 0.25 to 4"
        )));
    }
    Ok(SynthesizeRequest {
        language: args.language.clone(),
        voice: args.voice.clone(),
        references,
        reference_text: args.reference_text.clone(),
        instructions: args.instructions.clone(),
        speed: args.speed,
        seed: args.seed,
        normalize: !args.no_normalize,
        phonemizer: args.phonemizer.clone(),
        pronunciations: dictionary
            .map(|known| known.pairs().clone())
            .unwrap_or_default(),
        words: args.timings.is_some() || args.manifest.is_some() || args.batch.is_some(),
        stream: !finish.needs_whole(),
        options: options.map_err(Failure::setup)?,
        ..SynthesizeRequest::default()
    })
}

fn dictionary(path: &Path) -> Outcome<Pronunciations> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
    Pronunciations::parse(&text).map_err(|error| Failure::usage(format!("{shown}: {error}")))
}

/// A model with its open session; the session goes first when both are dropped.
struct Loaded {
    session: Box<dyn Synthesize>,
    model: Box<dyn Model>,
}

/// What all texts of one job share.
struct Runner<'a> {
    progress: Arc<Progress>,
    cancel: &'a CancelToken,
    choice: &'a Choice<'a>,
    task: Task,
    request: SynthesizeRequest,
    args: &'a SayArgs,
    finish: Finish,
    loaded: Option<Loaded>,
}

impl Runner<'_> {
    /// One text. The inner error is about this text alone; the outer one ends the job.
    fn one(&mut self, item: &Item, place: &Place) -> Outcome<Result<Done, Error>> {
        self.progress.about(&item.id);
        let context = self.progress.context(self.cancel);
        context.check().map_err(Failure::run)?;
        if self.loaded.is_none() {
            self.loaded = Some(load(self.choice, self.task, &self.progress, &context)?);
        }
        let request = self.of(item);
        let outlet = Outlet::new(place.clone(), self.finish);
        let speaking = Speaking::new(self.progress.clone(), self.cancel.clone(), outlet);
        let context = RunContext::with_sink(self.cancel.clone(), speaking.clone());
        let Some(loaded) = &mut self.loaded else {
            return Err(Failure::failed("the model is gone"));
        };
        let started = Instant::now();
        let result = loaded.session.synthesize(&request, &context);
        let (outlet, first) = speaking.end();
        self.progress.clear();
        let mut outlet = match outlet {
            Ok(outlet) => outlet,
            Err(error) if error.class == ErrorClass::Cancelled => return Err(Failure::reported()),
            Err(error) => return Err(Failure::run(error)),
        };
        let mut speech = match result {
            Ok(speech) => speech,
            // These would meet every other text in the same way.
            Err(error) if ends_the_job(error.class) => return Err(Failure::run(error)),
            Err(error) => return Ok(Err(error)),
        };
        if !request.stream {
            let samples = std::mem::take(&mut speech.audio.samples);
            let audio = Audio {
                samples,
                ..speech.audio.clone()
            };
            if let Err(error) = outlet.write_whole(audio) {
                return Ok(Err(error));
            }
        }
        let written = outlet
            .close()
            .and_then(|()| self.timings(&request, &speech));
        match written {
            Err(error) if error.class == ErrorClass::Cancelled => return Err(Failure::reported()),
            Err(error) => return Ok(Err(error)),
            Ok(()) => {}
        }
        for message in &speech.warnings {
            self.progress.warn(message);
        }
        Ok(Ok(Done {
            seconds: started.elapsed().as_secs_f64(),
            first: first.map(|first| first.duration_since(started).as_secs_f64()),
            speech,
        }))
    }

    /// The request for one text.
    fn of(&self, item: &Item) -> SynthesizeRequest {
        let mut request = self.request.clone();
        request.text = item.text.clone();
        request.voice = item.voice.clone().or(request.voice);
        request.language = item.language.clone().or(request.language);
        request.speed = item.speed.or(request.speed);
        request.seed = item.seed.or(request.seed);
        request.instructions = item.instructions.clone().or(request.instructions);
        request
    }

    /// Writes the times of the words, if they were asked for.
    fn timings(&self, request: &SynthesizeRequest, speech: &Speech) -> Result<(), Error> {
        let Some(path) = &self.args.timings else {
            return Ok(());
        };
        let text = match path.extension().and_then(|extension| extension.to_str()) {
            Some("srt") => report::captions(request, speech, TranscriptFormat::Srt),
            Some("vtt") => report::captions(request, speech, TranscriptFormat::Vtt),
            _ => report::timings_json(speech),
        };
        output::write_all(&[(path, text)])
    }
}

/// Errors that are about the model, the request or the machine, not about one text.
fn ends_the_job(class: ErrorClass) -> bool {
    matches!(
        class,
        ErrorClass::Cancelled | ErrorClass::Unsupported | ErrorClass::Model
    )
}

fn load(choice: &Choice, task: Task, progress: &Progress, context: &RunContext) -> Outcome<Loaded> {
    let path: PathBuf = choice.fetch(progress, context)?;
    let model = choice.load(&path, context)?;
    let session = model.session(task, &choice.session).map_err(Failure::run)?;
    let session = session.into_synthesize().map_err(Failure::run)?;
    progress.clear();
    Ok(Loaded { session, model })
}

#[cfg(test)]
mod tests;
