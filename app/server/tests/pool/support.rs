//! Tiny models of formula weights, and pools of real worker processes that serve them.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use audiocpp::{
    audio::{Audio, WavFormat, wav_bytes},
    backend::Search,
    engine::{Event, SeparateRequest, SynthesizeRequest},
};
use audiocpp_server::{
    config::{self, Plan},
    job::{Job, ModelStatus, Outcome, Refusal, Reply, Run, Runner},
    pool::Pool,
    worker::handle::Launch,
};
use audiocpp_testing::formula;
use safetensors::{Dtype, serialize_to_file, tensor::TensorView};
use serde_json::{Value, json};
use tempfile::TempDir;

/// No wait of these tests is longer; a slow machine is not a failure, a hang is.
pub const LONG: Duration = Duration::from_secs(120);

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data")
        .join(name)
}

/// A voice that speaks the letters a to t, as Hugging Face would publish it.
pub fn write_voice(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let from = data("piper/single");
    fs::copy(from.join("config.json"), folder.join("config.json")).unwrap();
    let letters: BTreeMap<String, usize> = ('a'..='t').map(|c| c.to_string()).zip(0..).collect();
    fs::write(
        folder.join("vocab.json"),
        serde_json::to_vec(&letters).unwrap(),
    )
    .unwrap();
    let tokenizer = r#"{"add_blank": true, "normalize": true, "phonemize": false}"#;
    fs::write(folder.join("tokenizer_config.json"), tokenizer).unwrap();
    let weights = folder.join("model.safetensors");
    formula::write_checkpoint(&from.join("layout.json"), &weights).unwrap();
}

/// A separator of four stems.
pub fn write_separator(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let from = data("demucs/plain");
    let read = |file: &str| fs::read(from.join(file)).unwrap();
    let layout: BTreeMap<String, Vec<usize>> =
        serde_json::from_slice(&read("layout.json")).unwrap();
    let about: Value = serde_json::from_slice(&read("config.json")).unwrap();
    let metadata = HashMap::from([
        (
            "klass".to_owned(),
            about["klass"].as_str().unwrap().to_owned(),
        ),
        ("args".to_owned(), "[]".to_owned()),
        ("kwargs".to_owned(), about["kwargs"].to_string()),
    ]);
    let bytes: Vec<(String, Vec<usize>, Vec<u8>)> = layout
        .into_iter()
        .map(|(name, shape)| {
            let values = formula::tensor(&name, &shape);
            let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            (name, shape, bytes)
        })
        .collect();
    let views = bytes.iter().map(|(name, shape, bytes)| {
        (
            name,
            TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap(),
        )
    });
    serialize_to_file(views, Some(metadata), &folder.join("model.safetensors")).unwrap();
}

/// A folder with tiny models, recordings and plugins, and a configuration in the making.
pub struct Bench {
    pub folder: TempDir,
    pub server: Value,
    variables: Vec<(String, String)>,
}

impl Bench {
    pub fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        write_voice(&folder.path().join("voice"));
        write_separator(&folder.path().join("separator"));
        let server = json!({"lazy_load": true, "threads": 1, "device": "cpu", "models": []});
        Bench {
            folder,
            server,
            variables: Vec::new(),
        }
    }

    /// Lets workers find a stand-in for a GPU called `hip`, with faults.
    pub fn gpu(mut self, variables: &[(&str, &str)]) -> Bench {
        let build = Search::standard().places.pop().unwrap();
        let plugins = self.folder.path().join("plugins");
        fs::create_dir(&plugins).unwrap();
        let plugin = build.join("stand_in/libggml-hip.so");
        fs::copy(plugin, plugins.join("libggml-hip.so")).unwrap();
        let path = |path: PathBuf| path.to_str().unwrap().to_owned();
        self.set("AUDIOCPP_SYSFS_ROOT", &path(plugins.join("root")));
        self.set("AUDIOCPP_BACKEND_PATH", &path(plugins));
        // More would spin while they wait for each other.
        self.set("STAND_IN_THREADS", "1");
        for (name, value) in variables {
            self.set(name, value);
        }
        self
    }

    fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// Sets a key of the server.
    pub fn key(mut self, key: &str, value: impl Into<Value>) -> Bench {
        self.server[key] = value.into();
        self
    }

    /// Adds a model of the tiny voice.
    pub fn voice(self, id: &str, keys: Value) -> Bench {
        self.model(
            id,
            json!({"path": "voice", "family": "piper", "task": "tts"}),
            keys,
        )
    }

    /// Adds a model of the tiny separator.
    pub fn separator(self, id: &str, keys: Value) -> Bench {
        self.model(
            id,
            json!({"path": "separator", "family": "demucs", "task": "sep"}),
            keys,
        )
    }

    fn model(mut self, id: &str, mut model: Value, keys: Value) -> Bench {
        model["id"] = id.into();
        for (key, value) in keys.as_object().unwrap() {
            model[key] = value.clone();
        }
        self.server["models"].as_array_mut().unwrap().push(model);
        self
    }

    /// Writes the configuration.
    pub fn config(&self) -> PathBuf {
        let file = self.folder.path().join("server.json");
        fs::write(&file, self.server.to_string()).unwrap();
        file
    }

    /// The server's program with this configuration.
    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_audiocpp_server"));
        // Free a moment ago; the server takes no port 0.
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr());
        let port = port.unwrap().port().to_string();
        command
            .arg("--config")
            .arg(self.config())
            .args(["--port", &port]);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// A pool of real processes.
    pub fn pool(&self) -> Arc<Pool> {
        let config = config::parse(&self.server.to_string()).unwrap();
        let registry = audiocpp_models::registry();
        let plan = Plan::new(&config, &self.config(), &registry).unwrap();
        let variables = self.variables.iter();
        let launch = Launch {
            program: env!("CARGO_BIN_EXE_audiocpp_server").into(),
            variables: variables
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        };
        Pool::start_with(plan, launch)
    }

    /// A recording of `seconds` of stereo noise that depends on `name`.
    pub fn recording(&self, name: &str, seconds: f64) -> PathBuf {
        let count = (seconds * 44_100.0) as usize * 2;
        let audio = Audio::new(formula::unit(name, count), 44_100, 2).unwrap();
        let path = self.folder.path().join(format!("{name}.wav"));
        fs::write(&path, wav_bytes(&audio, WavFormat::F32).unwrap()).unwrap();
        path
    }
}

/// A text of `sentences` sentences; `seed` makes it another one.
pub fn text(sentences: usize, seed: usize) -> String {
    let letter = |i: usize| char::from(b'a' + (i % 20) as u8);
    let word =
        |i: usize| -> String { (0..4).map(|k| letter(i * (k + 3) + seed * 7 + k)).collect() };
    // Only a capital begins a sentence.
    (0..sentences)
        .map(|i| format!("{}{} {}. ", 'A', word(i), word(i + 5)))
        .collect()
}

/// A job that speaks `text` and streams it.
pub fn speak(text: &str) -> Job {
    Job::Synthesize {
        request: SynthesizeRequest {
            text: text.into(),
            seed: Some(3),
            stream: true,
            normalize: false,
            ..SynthesizeRequest::default()
        },
    }
}

/// The same with the sound in the result.
pub fn speak_whole(text: &str) -> Job {
    let Job::Synthesize { mut request } = speak(text) else {
        unreachable!("it is made above");
    };
    request.stream = false;
    Job::Synthesize { request }
}

/// A job that separates a recording.
pub fn separate(audio: PathBuf) -> Job {
    Job::Separate {
        request: SeparateRequest::default(),
        audio,
    }
}

/// Runs a job, waiting as long as the configuration allows.
pub async fn start(pool: &Pool, model: &str, job: Job) -> Run {
    pool.run(model, job, "request", None).await.unwrap()
}

/// What a run comes to, and the events before it.
pub async fn finish(run: &mut Run) -> (Vec<Event>, Result<Outcome, Refusal>) {
    let mut events = Vec::new();
    loop {
        let reply = tokio::time::timeout(LONG, run.replies.recv()).await;
        match reply.expect("an answer in time").expect("an answer") {
            Reply::Event(event) => events.push(event),
            Reply::Done(outcome) => return (events, Ok(*outcome)),
            Reply::Failed(refusal) => return (events, Err(refusal)),
        }
    }
}

/// The result of one job.
pub async fn result(pool: &Pool, model: &str, job: Job) -> Result<Outcome, Refusal> {
    finish(&mut start(pool, model, job).await).await.1
}

/// The samples of a spoken text.
pub async fn samples(pool: &Pool, model: &str, text: &str) -> Vec<f32> {
    match result(pool, model, speak_whole(text)).await {
        Ok(Outcome::Speech(speech)) => speech.audio.samples,
        other => panic!("{other:?} is no speech"),
    }
}

/// Waits for the first sound of a streamed text.
pub async fn first_sound(run: &mut Run) {
    loop {
        let reply = tokio::time::timeout(LONG, run.replies.recv()).await;
        match reply.expect("a sound in time") {
            Some(Reply::Event(Event::Speech(_))) => return,
            Some(Reply::Event(_)) => {}
            other => panic!("{other:?} before any sound"),
        }
    }
}

pub fn status(pool: &Pool, model: &str) -> ModelStatus {
    let all = pool.models();
    all.into_iter().find(|status| status.id == model).unwrap()
}

/// Waits until something is so.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "{what} did not come about");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Sends a signal, such as `-KILL`, to a process of these tests.
pub fn signal(signal: &str, pid: u32) {
    let sent = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(sent.unwrap().success(), "kill {signal} {pid}");
}

/// Whether a process is there and no zombie.
pub fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .starts_with(" Z")
    })
}
