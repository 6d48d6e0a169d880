//! Whole jobs with a family that counts what it hears.

use std::{fs, path::Path};

use audiocpp::{
    audio::AudioSource,
    engine::{
        Family, FamilyInfo, LoadOptions, ModelInfo, OptionKind, OptionSpec, Result as EngineResult,
        Segment, Session, Word,
    },
};

use super::*;

/// A family whose models write how many frames they read.
struct Counter;

impl Family for Counter {
    fn info(&self) -> FamilyInfo {
        FamilyInfo {
            name: "counter",
            title: "Counts frames",
            tasks: &[Task::Asr],
            formats: "a folder with counter.bin",
            options: &[OptionSpec {
                name: "deaf",
                scope: Scope::Request,
                kind: OptionKind::Bool,
                default: Some("false"),
                doc: "Hear nothing.",
            }],
        }
    }
    fn can_load(&self, path: &Path) -> bool {
        path.join("counter.bin").is_file()
    }
    fn load(&self, _: &Path, _: &LoadOptions, _: &RunContext) -> EngineResult<Box<dyn Model>> {
        Ok(Box::new(Counter))
    }
}

impl Model for Counter {
    fn stages(&self) -> audiocpp::engine::Result<Vec<audiocpp::engine::Stage>> {
        Ok(Vec::new())
    }

    fn info(&self) -> ModelInfo {
        ModelInfo::default()
    }
    fn session(&self, _: Task, _: &Options) -> EngineResult<Session> {
        Ok(Session::Transcribe(Box::new(Counter)))
    }
}

impl Transcribe for Counter {
    fn transcribe(
        &mut self,
        request: &TranscribeRequest,
        audio: &mut dyn AudioSource,
        context: &RunContext,
    ) -> EngineResult<Transcript> {
        let (mut samples, mut frames) = (Vec::new(), 0);
        loop {
            context.check()?;
            let n = audio.read(&mut samples, 4096)?;
            if n == 0 {
                break;
            }
            frames += n;
            assert!(samples.iter().all(|sample| sample.is_finite()));
            samples.clear();
        }
        let duration = frames as f64 / f64::from(audio.rate());
        let text = format!("{frames} frames");
        let word = Word {
            word: text.clone(),
            start: 0.0,
            end: duration,
            probability: 1.0,
        };
        let words = if request.words {
            vec![word]
        } else {
            Vec::new()
        };
        let segment = Segment {
            text: text.clone(),
            end: duration,
            words,
            ..Segment::default()
        };
        Ok(Transcript {
            text,
            language: Some("en".into()),
            duration,
            segments: vec![segment],
            warnings: Vec::new(),
        })
    }
}

/// A RIFF file with these fields and bytes, whatever they mean.
fn wav(format: u16, channels: u16, rate: u32, bits: u16, data: &[u8], declared: u32) -> Vec<u8> {
    let block = channels * bits / 8;
    let mut bytes = b"RIFF".to_vec();
    bytes.extend(declared.saturating_add(36).to_le_bytes());
    bytes.extend(b"WAVEfmt \x10\0\0\0");
    bytes.extend(format.to_le_bytes());
    bytes.extend(channels.to_le_bytes());
    bytes.extend(rate.to_le_bytes());
    bytes.extend((rate.wrapping_mul(u32::from(block))).to_le_bytes());
    bytes.extend(block.to_le_bytes());
    bytes.extend(bits.to_le_bytes());
    bytes.extend(b"data");
    bytes.extend(declared.to_le_bytes());
    bytes.extend(data);
    bytes
}

fn tone(frames: usize) -> Vec<u8> {
    (0..frames)
        .flat_map(|i| ((i % 50) as i16 * 300).to_le_bytes())
        .collect()
}

/// A folder with a model; inputs and results are put in it.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("model")).unwrap();
        fs::write(folder.path().join("model/counter.bin"), "x").unwrap();
        Bench { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn put(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn job(&self, inputs: &[String], out: &str) -> Job {
        Job {
            inputs: inputs.to_vec(),
            model: ModelArgs {
                model: Some(self.path("model")),
                ..ModelArgs::default()
            },
            request: TranscribeArgs {
                out: Some(self.path(out).into()),
                ..TranscribeArgs::default()
            },
            folder: None,
        }
    }
}

fn run_job(job: &Job) -> Outcome {
    run(
        job,
        &Registry::new(vec![Box::new(Counter)]),
        &CancelToken::default(),
    )
}

#[test]
fn one_input_gives_every_file_that_was_asked_for() {
    let bench = Bench::new();
    let input = bench.put("a.wav", &wav(1, 1, 8000, 16, &tone(4000), 8000));
    let mut job = bench.job(&[input], "a.srt");
    job.request.words_out = Some(bench.path("w.json").into());
    job.request.segments_out = Some(bench.path("s.json").into());
    job.request.text_out = Some(bench.path("t.txt").into());
    run_job(&job).unwrap();
    let read = |name: &str| fs::read_to_string(bench.path(name)).unwrap();
    assert_eq!(
        read("a.srt").trim(),
        "1\n00:00:00,000 --> 00:00:00,500\n4000 frames"
    );
    assert_eq!(read("t.txt").trim(), "4000 frames");
    let words: Vec<Word> = serde_json::from_str(&read("w.json")).unwrap();
    assert_eq!(words[0].end, 0.5);
    let segments: Vec<Segment> = serde_json::from_str(&read("s.json")).unwrap();
    assert_eq!(segments[0].text, "4000 frames");
}

#[test]
fn bad_inputs_fail_with_code_1_and_write_nothing() {
    let bench = Bench::new();
    let pcm = tone(100);
    let html = b"<!DOCTYPE html><html><body>Not found</body></html>".to_vec();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("empty.wav", Vec::new()),
        ("page.mp3", html),
        ("rate0.wav", wav(1, 1, 0, 16, &pcm, 200)),
        ("channels0.wav", wav(1, 0, 8000, 16, &pcm, 200)),
        (
            "noise.flac",
            (0..3000u32)
                .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
                .collect(),
        ),
    ];
    for (name, bytes) in cases {
        let input = bench.put(name, &bytes);
        let error = open(&expand(std::slice::from_ref(&input))[0])
            .err()
            .unwrap();
        assert!(
            !error.message.contains('\n') && error.message.len() < 300,
            "{error}"
        );
        let failure = run_job(&bench.job(&[input], "out.txt")).unwrap_err();
        assert_eq!(failure, Failure::reported(), "{name}");
        assert!(!Path::new(&bench.path("out.txt")).exists(), "{name}");
    }
    let failure = run_job(&bench.job(&[bench.path("none.wav")], "results/")).unwrap_err();
    assert_eq!(failure.code, 1);
    assert!(!Path::new(&bench.path("results")).exists());
}

#[test]
fn odd_inputs_that_can_be_heard_are_heard() {
    let bench = Bench::new();
    let nan: Vec<u8> = [0.5f32, f32::NAN, 0.25, f32::INFINITY]
        .iter()
        .cycle()
        .take(800)
        .flat_map(|sample| sample.to_le_bytes())
        .collect();
    for (name, bytes, frames) in [
        (
            "huge.wav",
            wav(1, 1, 8000, 16, &tone(1000), u32::MAX - 50),
            1000,
        ),
        ("cut.wav", wav(1, 1, 8000, 16, &tone(1000), 9000), 1000),
        ("nan.wav", wav(3, 1, 8000, 32, &nan, 3200), 800),
    ] {
        let input = bench.put(name, &bytes);
        run_job(&bench.job(&[input], "out.txt")).unwrap();
        let text = fs::read_to_string(bench.path("out.txt")).unwrap();
        assert_eq!(text.trim(), format!("{frames} frames"), "{name}");
    }
}

#[test]
fn a_batch_goes_on_after_a_failure() {
    let bench = Bench::new();
    let good = |frames: usize| wav(1, 1, 8000, 16, &tone(frames), 2 * frames as u32);
    let inputs = [
        bench.put("a.wav", &good(100)),
        bench.put("b.mp3", b"<html>"),
        bench.put("c.wav", &good(300)),
    ];
    let mut job = bench.job(&inputs, "results/");
    job.request.format = Some(TranscriptFormat::Json);
    assert_eq!(run_job(&job).unwrap_err(), Failure::reported());
    let json = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&fs::read(bench.path(name)).unwrap()).unwrap()
    };
    assert_eq!(json("results/a.json")["text"], "100 frames");
    assert_eq!(json("results/c.json")["text"], "300 frames");
    assert_eq!(fs::read_dir(bench.path("results")).unwrap().count(), 2);
}

#[test]
fn the_command_is_checked_before_anything_runs() {
    let bench = Bench::new();
    let input = bench.put("a.wav", &wav(1, 1, 8000, 16, &tone(100), 200));
    let usage = |change: &dyn Fn(&mut Job)| {
        let mut job = bench.job(std::slice::from_ref(&input), "out.txt");
        change(&mut job);
        let failure = run_job(&job).unwrap_err();
        assert_eq!(failure.code, 2, "{failure}");
        assert!(!Path::new(&bench.path("out.txt")).exists());
        failure.message
    };
    let line = usage(&|job| job.model.family = Some("countre".into()));
    assert!(line.contains("did you mean `counter`"), "{line}");
    let line = usage(&|job| job.request.request_option = vec!["daef=true".into()]);
    assert!(line.contains("did you mean `deaf`"), "{line}");
    let line = usage(&|job| job.model.model = Some(bench.path("nothing")));
    assert!(line.contains("no model file or folder at"), "{line}");
    let line = usage(&|job| job.model.model = Some(bench.path("")));
    assert!(
        line.contains("no family reads") && line.contains("counter.bin"),
        "{line}"
    );
    let line = usage(&|job| job.model.model = Some("whisper-bass".into()));
    assert!(line.contains("did you mean `whisper-base`"), "{line}");
    let line = usage(&|job| job.request.out = Some(input.clone().into()));
    assert!(line.contains("would be overwritten"), "{line}");
    let line = usage(&|job| job.request.temperature = Some(f32::NAN));
    assert!(line.contains("--temperature"), "{line}");
    let line = usage(&|job| job.inputs = vec!["-".into(), "-".into()]);
    assert!(line.contains("only once"), "{line}");
    let line = usage(&|job| job.request.out = Some(bench.path("no/out.txt").into()));
    assert!(line.contains("there is no folder"), "{line}");
}

#[test]
fn a_cancelled_job_ends_with_130_and_writes_nothing() {
    let bench = Bench::new();
    let input = bench.put("a.wav", &wav(1, 1, 8000, 16, &tone(100), 200));
    let cancel = CancelToken::default();
    cancel.cancel();
    let registry = Registry::new(vec![Box::new(Counter)]);
    let failure = run(&bench.job(&[input], "out.txt"), &registry, &cancel).unwrap_err();
    assert_eq!(failure.code, 130);
    assert!(!Path::new(&bench.path("out.txt")).exists());
}
