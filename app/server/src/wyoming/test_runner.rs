//! A runner whose models are made up, and that counts what is cancelled.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use audiocpp::{
    audio::Audio,
    engine::{
        Error, Event, ModelInfo, Segment, Speech, SpeechPart, SpeechSegment, Task, Transcript,
        VoiceInfo,
    },
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::job::{Job, ModelState, ModelStatus, Outcome, Refusal, Reply, Run, Runner};

fn status(id: &str, task: Task, languages: &[&str]) -> ModelStatus {
    let languages = languages.iter().map(|&l| l.to_owned()).collect();
    ModelStatus {
        id: id.to_owned(),
        family: "test".to_owned(),
        task,
        state: ModelState::Ready,
        info: Some(ModelInfo {
            languages,
            ..ModelInfo::default()
        }),
        voices: Vec::new(),
        default_voice: None,
        queued: 0,
        running: 0,
        memory_bytes: 0,
        restarts: 0,
        note: None,
    }
}

/// A model that recognises speech.
pub fn recogniser(id: &str, languages: &[&str]) -> ModelStatus {
    status(id, Task::Asr, languages)
}

/// A model that speaks with voices of a name and a language.
pub fn speaker(id: &str, voices: &[(&str, &str)]) -> ModelStatus {
    let voice = |&(id, language): &(&str, &str)| VoiceInfo {
        id: id.to_owned(),
        name: id.to_owned(),
        language: language.to_owned(),
        gender: None,
    };
    ModelStatus {
        voices: voices.iter().map(voice).collect(),
        ..status(id, Task::Tts, &[])
    }
}

/// Recognises every recording as its frames and rate, and speaks a tenth of a second for each
/// character. A text with `hang` never ends, one with `panic` ends without a result.
#[derive(Default)]
pub struct TestRunner {
    /// What it offers.
    pub models: Vec<ModelStatus>,
    /// Texts that were spoken, in order.
    pub spoken: Arc<Mutex<Vec<String>>>,
    /// Prompts and languages of recognition.
    pub asked: Mutex<Vec<String>>,
    /// Jobs that go on.
    pub running: Arc<AtomicUsize>,
    /// Jobs that were cancelled.
    pub cancelled: Arc<AtomicUsize>,
}

#[async_trait]
impl Runner for TestRunner {
    async fn run(
        &self,
        model: &str,
        job: Job,
        _request_id: &str,
        _wait: Option<Duration>,
    ) -> Result<Run, Refusal> {
        let (sender, replies) = mpsc::channel(2);
        let cancel = CancellationToken::new();
        let guard = cancel.clone().drop_guard();
        match job {
            Job::Transcribe { request, audio, .. } => {
                let line = format!("{model} {:?} {:?}", request.language, request.prompt);
                self.asked.lock().unwrap().push(line);
                tokio::spawn(recognise(audio, sender));
            }
            Job::Synthesize { request } => {
                self.spoken.lock().unwrap().push(request.text.clone());
                let cancelled = self.cancelled.clone();
                let running = self.running.clone();
                running.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    tokio::select! {
                        () = speak(request.text, sender) => {}
                        () = cancel.cancelled() => { cancelled.fetch_add(1, Ordering::SeqCst); }
                    }
                    running.fetch_sub(1, Ordering::SeqCst);
                });
            }
            _ => return Err(Refusal::Job(Error::unsupported("not here"))),
        }
        Ok(Run { replies, guard })
    }

    fn models(&self) -> Vec<ModelStatus> {
        self.models.clone()
    }

    async fn load(&self, _model: &str) -> Result<(), Refusal> {
        Ok(())
    }

    async fn unload(&self, _model: &str) -> Result<(), Refusal> {
        Ok(())
    }

    async fn add_voice(
        &self,
        _model: &str,
        _name: &str,
        _recording: PathBuf,
        _words: Option<String>,
    ) -> Result<(), Refusal> {
        Err(Refusal::Job(Error::unsupported("not here")))
    }

    async fn remove_voice(&self, _model: &str, _name: &str) -> Result<(), Refusal> {
        Err(Refusal::Job(Error::unsupported("not here")))
    }
}

async fn recognise(audio: PathBuf, to: mpsc::Sender<Reply>) {
    let sound = match Audio::open(&audio) {
        Ok(sound) => sound,
        Err(error) => {
            let error = Error::bad_input(error.to_string());
            let _ = to.send(Reply::Failed(Refusal::Job(error))).await;
            return;
        }
    };
    let texts = [
        format!(" {} frames", sound.frames()),
        format!(" at {} Hz.", sound.rate),
    ];
    for text in &texts {
        let segment = Segment {
            text: text.clone(),
            ..Segment::default()
        };
        let _ = to.send(Reply::Event(Event::Segment(segment))).await;
    }
    let transcript = Transcript {
        text: texts.concat().trim().to_owned(),
        language: Some("en".to_owned()),
        ..Transcript::default()
    };
    let done = Outcome::Transcript(transcript);
    let _ = to.send(Reply::Done(Box::new(done))).await;
}

async fn speak(text: String, to: mpsc::Sender<Reply>) {
    if text.contains("hang") {
        std::future::pending::<()>().await;
    }
    if text.contains("panic") {
        return;
    }
    let tone = vec![0.25; 2205];
    let mut count = 0;
    for _ in text.chars() {
        count += 1;
        let part = SpeechPart {
            audio: Audio::new(tone.clone(), 22_050, 1).unwrap(),
            segment: SpeechSegment::default(),
        };
        if to.send(Reply::Event(Event::Speech(part))).await.is_err() {
            return;
        }
    }
    let speech = Speech {
        audio: Audio::new(Vec::new(), 22_050, 1).unwrap(),
        duration: f64::from(count) * 0.1,
        segments: Vec::new(),
        warnings: Vec::new(),
    };
    let done = Outcome::Speech(speech);
    let _ = to.send(Reply::Done(Box::new(done))).await;
}
