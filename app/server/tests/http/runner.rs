//! Models for tests. `ears` writes down how long a recording is, `mouth` speaks tones as long as
//! its text, `gate` finds where samples are not silent, `prism` splits a mix by sign.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use audiocpp::{
    audio::{Audio, AudioSource, Reader, mono_at},
    engine::{
        Error, Event, ModelInfo, Segment, Separation, Span, Speech, SpeechPart, SpeechSegment,
        Stem, Task, Transcript, VoiceActivity, VoiceInfo, Word,
    },
};
use audiocpp_server::job::{Job, ModelState, ModelStatus, Outcome, Refusal, Reply, Run, Runner};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Frames a second of what `mouth` speaks.
pub const MOUTH_RATE: u32 = 22_050;

/// Frames of tone for each character.
pub const FRAMES_PER_CHARACTER: usize = 2205;

/// What `ears` adds to every segment: characters of one to four bytes.
pub const TONGUES: &str = "žluť 日本語 🎵";

/// Jobs that are remembered.
const KEPT: usize = 64;

/// Runs jobs at once, in tasks of their own.
#[derive(Default)]
pub struct TestRunner {
    /// The last jobs that were accepted, with their models and request ids.
    pub jobs: Mutex<Vec<(String, Job, String)>>,
    /// Jobs that run now.
    pub running: Arc<AtomicUsize>,
    /// Jobs that were cancelled before their end.
    pub cancelled: Arc<AtomicUsize>,
    voices: Mutex<BTreeMap<String, PathBuf>>,
    unloaded: Mutex<Vec<String>>,
}

/// The models: name, task, and what it is there for.
const MODELS: [(&str, Task); 12] = [
    ("ears", Task::Asr),
    ("mouth", Task::Tts),
    ("gate", Task::Vad),
    ("prism", Task::Sep),
    // An id with slashes.
    ("some/nested/ears", Task::Asr),
    // Never finishes by itself after its first output.
    ("endless-mouth", Task::Tts),
    ("endless-ears", Task::Asr),
    // Fails after its first output.
    ("broken-mouth", Task::Tts),
    ("broken-ears", Task::Asr),
    ("lost-ears", Task::Asr),
    ("busy-ears", Task::Asr),
    ("panicking-ears", Task::Asr),
];

impl TestRunner {
    /// The last job that was accepted.
    pub fn last(&self) -> (String, Job, String) {
        self.jobs.lock().unwrap().last().expect("a job").clone()
    }

    fn status(&self, id: &str, task: Task) -> ModelStatus {
        let unloaded = self
            .unloaded
            .lock()
            .unwrap()
            .iter()
            .any(|known| known == id);
        let speaks = task == Task::Tts;
        let voice = |id: &str, name: &str| VoiceInfo {
            id: id.into(),
            name: name.into(),
            language: "en-us".into(),
            gender: Some("female".into()),
        };
        let mut voices = match speaks && !unloaded {
            true => vec![voice("ada", "Ada"), voice("bob", "Bob")],
            false => Vec::new(),
        };
        if id == "mouth" {
            voices.extend(
                self.voices
                    .lock()
                    .unwrap()
                    .keys()
                    .map(|name| voice(name, name)),
            );
        }
        ModelStatus {
            id: id.into(),
            family: "test".into(),
            task,
            state: if unloaded {
                ModelState::Unloaded
            } else {
                ModelState::Ready
            },
            info: (!unloaded).then(|| ModelInfo {
                family: "test".into(),
                variant: "small".into(),
                languages: vec!["en".into()],
                sample_rate: MOUTH_RATE,
                ..ModelInfo::default()
            }),
            voices,
            default_voice: speaks.then(|| "ada".into()),
            queued: 0,
            running: self.running.load(Ordering::SeqCst),
            memory_bytes: 1000,
            restarts: 3,
            note: (id == "gate").then(|| "runs on the CPU".into()),
        }
    }
}

#[async_trait]
impl Runner for TestRunner {
    async fn run(
        &self,
        model: &str,
        job: Job,
        request_id: &str,
        _: Option<Duration>,
    ) -> Result<Run, Refusal> {
        assert_ne!(model, "panicking-ears", "a bug");
        if model == "busy-ears" {
            return Err(Refusal::Busy {
                model: model.into(),
                detail: "8 of 8 places in the queue are taken".into(),
                retry_after: Duration::from_millis(2500),
            });
        }
        let entry = (model.to_owned(), job.clone(), request_id.to_owned());
        let mut jobs = self.jobs.lock().unwrap();
        jobs.push(entry);
        // A load test must not be a test of this list.
        let old = jobs.len().saturating_sub(KEPT);
        jobs.drain(..old);
        drop(jobs);
        let (told, replies) = mpsc::channel(4);
        let token = CancellationToken::new();
        let guard = token.clone().drop_guard();
        let (running, cancelled) = (self.running.clone(), self.cancelled.clone());
        let model = model.to_owned();
        running.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(async move {
            tokio::select! {
                () = token.cancelled() => { cancelled.fetch_add(1, Ordering::SeqCst); }
                () = perform(&model, job, told) => {}
            }
            running.fetch_sub(1, Ordering::SeqCst);
        });
        Ok(Run { replies, guard })
    }

    fn models(&self) -> Vec<ModelStatus> {
        MODELS
            .iter()
            .map(|(id, task)| self.status(id, *task))
            .collect()
    }

    async fn load(&self, model: &str) -> Result<(), Refusal> {
        self.unloaded.lock().unwrap().retain(|known| known != model);
        Ok(())
    }

    async fn unload(&self, model: &str) -> Result<(), Refusal> {
        self.unloaded.lock().unwrap().push(model.into());
        Ok(())
    }

    async fn add_voice(
        &self,
        model: &str,
        name: &str,
        recording: PathBuf,
        _: Option<String>,
    ) -> Result<(), Refusal> {
        if model != "mouth" {
            let error = Error::unsupported(format!("`{model}` cannot copy voices"));
            return Err(Refusal::Job(error));
        }
        assert!(
            recording.exists(),
            "the recording is there while a voice is made"
        );
        self.voices.lock().unwrap().insert(name.into(), recording);
        Ok(())
    }

    async fn remove_voice(&self, _: &str, name: &str) -> Result<(), Refusal> {
        let removed = self.voices.lock().unwrap().remove(name);
        let missing = || Refusal::Job(Error::not_found(format!("`{name}` is the model's own")));
        removed.map(drop).ok_or_else(missing)
    }
}

/// Does the job; whoever does not listen any more is of no interest.
async fn perform(model: &str, job: Job, told: mpsc::Sender<Reply>) {
    let streams = matches!(&job, Job::Synthesize { request } if request.stream);
    let outcome = match job {
        Job::Transcribe { request, audio, .. } => {
            let language = request.language.unwrap_or_else(|| "en".into());
            heard(&audio, request.words, language).map(Outcome::Transcript)
        }
        Job::Synthesize { request } => speak(&request.text, request.speed).map(Outcome::Speech),
        Job::DetectSpeech { audio, request } => {
            find(&audio, request.probabilities).map(Outcome::Activity)
        }
        Job::Separate { audio, request } => split(&audio, &request.stems).map(Outcome::Separation),
    };
    let mut outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            let _ = told.send(Reply::Failed(Refusal::Job(error))).await;
            return;
        }
    };
    for (at, event) in events(&mut outcome).into_iter().enumerate() {
        if at == 1 && model.starts_with("endless") {
            std::future::pending::<()>().await;
        }
        let _ = told.send(Reply::Event(event)).await;
        if model.starts_with("broken") {
            let error = Error::internal("the weights fell out");
            let _ = told.send(Reply::Failed(Refusal::Job(error))).await;
            return;
        }
        if model.starts_with("lost") {
            let how = "was killed by signal 9".into();
            let lost = Refusal::WorkerLost {
                model: model.into(),
                how,
            };
            let _ = told.send(Reply::Failed(lost)).await;
            return;
        }
    }
    if let (true, Outcome::Speech(speech)) = (streams, &mut outcome) {
        speech.audio.samples.clear();
    }
    let _ = told.send(Reply::Done(Box::new(outcome))).await;
}

/// Events of an outcome as if it had been streamed; sound leaves the outcome with them.
fn events(outcome: &mut Outcome) -> Vec<Event> {
    match outcome {
        Outcome::Transcript(it) => it.segments.iter().cloned().map(Event::Segment).collect(),
        Outcome::Speech(it) => {
            let step =
                it.segments.first().map_or(0, |first| first.text.len()) * FRAMES_PER_CHARACTER;
            let whole = it.audio.samples.clone();
            let parts = whole.chunks(step.max(1));
            let parts = parts.map(|samples| {
                let audio = Audio {
                    samples: samples.to_vec(),
                    ..it.audio.clone()
                };
                Event::Speech(SpeechPart {
                    audio,
                    segment: SpeechSegment::default(),
                })
            });
            parts.collect()
        }
        Outcome::Separation(it) => {
            let halves = |half: usize| {
                let stems = it.stems.iter().map(|stem| {
                    let samples = &stem.audio.samples;
                    let middle = samples.len() / 4 * 2;
                    let part = if half == 0 {
                        &samples[..middle]
                    } else {
                        &samples[middle..]
                    };
                    let audio = Audio {
                        samples: part.to_vec(),
                        ..stem.audio.clone()
                    };
                    Stem {
                        name: stem.name.clone(),
                        audio,
                    }
                });
                Event::Stems {
                    stems: stems.collect(),
                }
            };
            let events = vec![halves(0), halves(1)];
            for stem in &mut it.stems {
                stem.audio.samples.clear();
            }
            events
        }
        Outcome::Activity(_) => Vec::new(),
    }
}

fn mono(path: &Path) -> Result<(Vec<f32>, Vec<String>), Error> {
    let mut source = mono_at(Reader::open(path)?, 16_000)?;
    let mut samples = Vec::new();
    while source.read(&mut samples, 1 << 16)? > 0 {}
    Ok((samples, source.warnings()))
}

/// One segment for each begun second that is not silent.
fn heard(path: &Path, words: bool, language: String) -> Result<Transcript, Error> {
    let (samples, warnings) = mono(path)?;
    let duration = samples.len() as f64 / 16_000.0;
    let seconds = samples.chunks(16_000).enumerate();
    let loud = seconds.filter(|(_, second)| second.iter().any(|s| s.abs() > 0.001));
    let mut segments = Vec::new();
    for (at, second) in loud {
        let (start, end) = (at as f64, at as f64 + second.len() as f64 / 16_000.0);
        let word = |word: &str, from: f64, to: f64| Word {
            word: format!(" {word}"),
            start: start + from * (end - start),
            end: start + to * (end - start),
            probability: 0.9,
        };
        segments.push(Segment {
            id: segments.len() as u32,
            seek: at as u64 * 100,
            start,
            end,
            text: format!(" second {at} {TONGUES}"),
            tokens: vec![7, 8, 9],
            avg_logprob: -0.25,
            compression_ratio: 1.5,
            words: match words {
                true => vec![word("second", 0.0, 0.5), word(TONGUES, 0.5, 1.0)],
                false => Vec::new(),
            },
            ..Segment::default()
        });
    }
    let text: String = segments
        .iter()
        .map(|segment| segment.text.as_str())
        .collect();
    Ok(Transcript {
        text: text.trim().to_owned(),
        language: Some(language),
        duration,
        segments,
        warnings,
    })
}

/// A tone for each sentence; one without letters cannot be spoken.
fn speak(text: &str, speed: Option<f32>) -> Result<Speech, Error> {
    if !text.chars().any(char::is_alphanumeric) {
        return Err(Error::bad_input(format!(
            "there is nothing to speak in {text:?}"
        )));
    }
    let frames = text.chars().count() * FRAMES_PER_CHARACTER;
    let frames = (frames as f32 / speed.unwrap_or(1.0)) as usize;
    let wave = |at: usize| (at as f32 * 440.0 * std::f32::consts::TAU / MOUTH_RATE as f32).sin();
    let samples = (0..frames).map(|at| 0.5 * wave(at)).collect();
    let first = text.split_inclusive(". ").next().unwrap_or(text);
    Ok(Speech {
        audio: Audio {
            samples,
            rate: MOUTH_RATE,
            channels: 1,
        },
        duration: frames as f64 / f64::from(MOUTH_RATE),
        segments: vec![SpeechSegment {
            text: first.to_owned(),
            ..SpeechSegment::default()
        }],
        warnings: Vec::new(),
    })
}

/// Stretches of samples that are not silent, in blocks of 10 ms.
fn find(path: &Path, probabilities: bool) -> Result<VoiceActivity, Error> {
    let (samples, warnings) = mono(path)?;
    let blocks: Vec<bool> = samples
        .chunks(160)
        .map(|block| block.iter().any(|s| s.abs() > 0.01))
        .collect();
    let mut segments: Vec<Span> = Vec::new();
    for (at, _) in blocks.iter().enumerate().filter(|(_, loud)| **loud) {
        let (start, end) = (at as f64 / 100.0, (at + 1) as f64 / 100.0);
        match segments.last_mut() {
            Some(last) if start - last.end < 0.1 => last.end = end,
            _ => segments.push(Span { start, end }),
        }
    }
    let loud = |loud: &bool| if *loud { 1.0 } else { 0.0 };
    Ok(VoiceActivity {
        duration: samples.len() as f64 / 16_000.0,
        segments,
        frame: 0.01,
        probabilities: match probabilities {
            true => blocks.iter().map(loud).collect(),
            false => Vec::new(),
        },
        warnings,
    })
}

/// What is above zero, doubled, and what is below.
fn split(path: &Path, wanted: &[String]) -> Result<Separation, Error> {
    let mix = Audio::open(path)?;
    let stem = |name: &str, keep: fn(f32) -> f32| Stem {
        name: name.into(),
        audio: Audio {
            samples: mix.samples.iter().map(|s| keep(*s)).collect(),
            ..mix.clone()
        },
    };
    let mut stems = vec![
        stem("high", |s| s.max(0.0) * 2.0),
        stem("low", |s| s.min(0.0)),
    ];
    if let Some(odd) = wanted
        .iter()
        .find(|name| stems.iter().all(|stem| stem.name != **name))
    {
        return Err(Error::bad_input(format!(
            "this model has no stem `{odd}`; it has high, low"
        )));
    }
    stems.retain(|stem| wanted.is_empty() || wanted.contains(&stem.name));
    Ok(Separation {
        stems,
        duration: mix.duration(),
        remainder_db: None,
        warnings: Vec::new(),
    })
}
