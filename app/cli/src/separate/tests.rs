//! Whole jobs with a family that splits by channel.

use std::fs;

use audiocpp::{
    audio::{Audio, WavFormat, write_wav},
    engine::{
        Family, FamilyInfo, LoadOptions, ModelInfo, Result as EngineResult, Separator, Session,
        Stage, StemNetwork, StemPlan, TrackLevel,
    },
};
use serde_json::Value;

use super::*;
use crate::args::ModelArgs;

/// A family whose models give three quarters of the mix as `loud` and the rest as `quiet`.
struct Split;

impl Family for Split {
    fn info(&self) -> FamilyInfo {
        FamilyInfo {
            name: "split",
            title: "Splits",
            tasks: &[Task::Sep],
            formats: "a folder with split.bin",
            options: &[],
        }
    }
    fn can_load(&self, path: &Path) -> bool {
        path.join("split.bin").is_file()
    }
    fn load(&self, _: &Path, _: &LoadOptions, _: &RunContext) -> EngineResult<Box<dyn Model>> {
        Ok(Box::new(Split))
    }
}

impl Model for Split {
    fn info(&self) -> ModelInfo {
        ModelInfo::default()
    }
    fn session(&self, _: Task, _: &Options) -> EngineResult<Session> {
        let stems = ["loud", "quiet"].map(str::to_owned);
        Ok(Session::Separate(Box::new(Separator::new(Splitting(
            stems,
        )))))
    }
    fn stages(&self) -> EngineResult<Vec<Stage>> {
        Ok(Vec::new())
    }
}

struct Splitting([String; 2]);

impl StemNetwork for Splitting {
    type Track = ();
    fn stems(&self) -> &[String] {
        &self.0
    }
    fn begin(&mut self, _: &SeparateRequest, _: &[bool]) -> EngineResult<StemPlan> {
        Ok(StemPlan {
            rate: 44_100,
            channels: 2,
            measures: false,
        })
    }
    fn track(&mut self, _: Option<TrackLevel>) -> EngineResult<()> {
        Ok(())
    }
    fn push(
        &mut self,
        _: &mut (),
        frames: &[f32],
        stems: &mut [Vec<f32>],
        _: &RunContext,
    ) -> EngineResult<()> {
        for (stem, part) in stems.iter_mut().zip([0.75, 0.25]) {
            stem.extend(frames.iter().map(|x| part * x));
        }
        Ok(())
    }
    fn finish(&mut self, _: (), _: &mut [Vec<f32>], _: &RunContext) -> EngineResult<()> {
        Ok(())
    }
}

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("model")).unwrap();
        fs::write(folder.path().join("model/split.bin"), "x").unwrap();
        Bench { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn mix(&self, name: &str, rate: u32, channels: u16, frames: usize) -> Audio {
        let count = frames * usize::from(channels);
        let samples = (0..count).map(|i| 1.2 * (i as f32 * 0.01).sin()).collect();
        let audio = Audio::new(samples, rate, channels).unwrap();
        write_wav(self.path(name), &audio, WavFormat::F32).unwrap();
        audio
    }

    fn args(&self, inputs: &[&str]) -> args::Separate {
        args::Separate {
            inputs: inputs.iter().map(|name| self.text(name)).collect(),
            model: ModelArgs {
                model: Some(self.text("model")),
                ..ModelArgs::default()
            },
            request: SeparateArgs {
                out: self.path("out"),
                filename: "{track}/{stem}.{ext}".into(),
                format: "wav".into(),
                samples: Some("f32".into()),
                ..SeparateArgs::default()
            },
        }
    }
}

fn separate(args: &args::Separate) -> Outcome {
    run(
        args,
        &Registry::new(vec![Box::new(Split)]),
        &CancelToken::default(),
    )
}

#[test]
fn stems_are_files_of_the_mix_s_length_rate_and_channels() {
    let bench = Bench::new();
    let mix = bench.mix("song.wav", 48_000, 1, 30_001);
    separate(&bench.args(&["song.wav"])).unwrap();
    for stem in ["loud", "quiet"] {
        let found = Audio::open(bench.path(&format!("out/song/{stem}.wav"))).unwrap();
        assert_eq!((found.rate, found.channels), (48_000, 1));
        assert_eq!(found.frames(), mix.frames());
        assert!(found.peak() < 1.0);
    }
}

#[test]
fn a_batch_goes_on_after_a_failure_and_says_so() {
    let bench = Bench::new();
    bench.mix("a.wav", 44_100, 2, 5000);
    fs::write(bench.path("b.wav"), "no sound").unwrap();
    bench.mix("c.wav", 44_100, 2, 700);
    let mut args = bench.args(&["a.wav", "b.wav", "c.wav"]);
    args.request.manifest = Some(bench.path("list.jsonl"));
    args.request.two_stems = Some("quiet".into());
    args.request.rest = "difference".into();
    args.request.filename = "{model}_{track}_{stem}.{ext}".into();
    let failure = separate(&args).unwrap_err();
    assert_eq!((failure.code, failure.message.as_str()), (1, ""));
    let lines = fs::read_to_string(bench.path("list.jsonl")).unwrap();
    let lines: Vec<Value> = lines
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["stems"][1]["name"], "no_quiet");
    assert_eq!(lines[1]["error"]["class"], "bad_input");
    let rest = Audio::open(bench.path("out/model_c_no_quiet.wav")).unwrap();
    assert_eq!(rest.frames(), 700);
    assert!(!bench.path("out/model_b_quiet.wav").exists());
}

#[test]
fn slips_are_usage_errors_before_anything_runs() {
    let bench = Bench::new();
    bench.mix("a.wav", 44_100, 2, 500);
    let refused = |change: &dyn Fn(&mut args::Separate)| {
        let mut args = bench.args(&["a.wav"]);
        change(&mut args);
        let failure = separate(&args).unwrap_err();
        assert!(!bench.path("out").exists(), "{failure}");
        (failure.code, failure.message)
    };
    let (code, message) = refused(&|args| args.request.shifts = Some(2));
    assert!(
        code == 2 && message.contains("--shifts: split does not take it"),
        "{message}"
    );
    let (code, message) = refused(&|args| args.request.format = "mp3".into());
    assert!(code == 2 && message.contains("mp3"), "{message}");
    let (code, _) = refused(&|args| args.request.filename = "{track}".into());
    assert_eq!(code, 2);
    let (code, _) = refused(&|args| args.request.out = bench.path("a.wav"));
    assert_eq!(code, 2);
    let mut wrong = bench.args(&["a.wav"]);
    wrong.request.stems = vec!["lowd".into()];
    assert_eq!(separate(&wrong).unwrap_err().code, 1);
    assert!(!bench.path("out").exists());
}

#[test]
fn an_input_is_not_overwritten_by_its_own_stem() {
    let bench = Bench::new();
    bench.mix("loud.wav", 44_100, 2, 500);
    let before = fs::read(bench.path("loud.wav")).unwrap();
    let mut args = bench.args(&["loud.wav"]);
    args.request.out = bench.path("");
    args.request.filename = "{stem}.{ext}".into();
    let failure = separate(&args).unwrap_err();
    assert!(
        failure.message.contains("would be overwritten"),
        "{failure}"
    );
    assert_eq!(fs::read(bench.path("loud.wav")).unwrap(), before);
    assert!(!bench.path("quiet.wav").exists());
}
