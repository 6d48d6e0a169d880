//! Whole jobs with a family that hums.

use std::fs;

use audiocpp::{
    engine::{
        ChunkSound, ChunkVoice, Family, FamilyInfo, LoadOptions, ModelInfo, Result as EngineResult,
        Session, Speaker, Stage, VoiceInfo, VoiceInput, VoicePlan,
    },
    text::chunks::{Chunk, ChunkLimits},
};
use serde_json::Value;

use super::*;
use crate::args::ModelArgs;

/// A family whose models hum each symbol for 50 ms, at a level that the voice gives.
struct Hum;

const RATE: u32 = 16_000;

impl Family for Hum {
    fn info(&self) -> FamilyInfo {
        FamilyInfo {
            name: "hum",
            title: "Hums",
            tasks: &[Task::Tts],
            formats: "a folder with hum.bin",
            options: &[],
        }
    }
    fn can_load(&self, path: &Path) -> bool {
        path.join("hum.bin").is_file()
    }
    fn load(&self, _: &Path, _: &LoadOptions, _: &RunContext) -> EngineResult<Box<dyn Model>> {
        Ok(Box::new(Hum))
    }
}

impl Model for Hum {
    fn info(&self) -> ModelInfo {
        ModelInfo::default()
    }
    fn session(&self, _: Task, _: &Options) -> EngineResult<Session> {
        Ok(Session::Synthesize(Box::new(Speaker::new(Humming(0.5)))))
    }
    fn stages(&self) -> EngineResult<Vec<Stage>> {
        Ok(Vec::new())
    }
    fn voices(&self) -> Vec<VoiceInfo> {
        let voice = |id: &str| VoiceInfo {
            id: id.into(),
            name: id.to_uppercase(),
            language: "en-us".into(),
            gender: None,
        };
        vec![voice("soft"), voice("loud")]
    }
}

struct Humming(f32);

impl ChunkVoice for Humming {
    fn begin(&mut self, request: &SynthesizeRequest) -> EngineResult<VoicePlan> {
        self.0 = match request.voice.as_deref() {
            None | Some("soft") => 0.2,
            Some("loud") => 2.0,
            Some(other) => return Err(Error::bad_input(format!("there is no voice `{other}`"))),
        };
        Ok(VoicePlan {
            language: "en-us".into(),
            input: VoiceInput::Phonemes,
            limits: ChunkLimits {
                join: 0,
                first: 0,
                max: 200,
            },
            rate: RATE,
            channels: 1,
        })
    }
    fn speak(&mut self, chunk: &Chunk, context: &RunContext) -> EngineResult<ChunkSound> {
        context.check()?;
        let symbols = chunk.phonemes.symbols().len();
        let samples = (0..symbols * 800)
            .map(|i| self.0 * (i as f32 * 0.3).sin())
            .collect();
        Ok(ChunkSound {
            audio: Audio::new(samples, RATE, 1)?,
            symbol_ends: Some((1..=symbols).map(|n| n as f64 * 0.05).collect()),
            warnings: Vec::new(),
        })
    }
}

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("model")).unwrap();
        fs::write(folder.path().join("model/hum.bin"), "x").unwrap();
        Bench { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn model(&self) -> ModelArgs {
        ModelArgs {
            model: Some(self.path("model").to_str().unwrap().into()),
            ..ModelArgs::default()
        }
    }

    fn say(&self, text: &str, out: &str) -> Say {
        Say {
            text: Some(text.into()),
            model: self.model(),
            request: SayArgs {
                out: Some(self.path(out)),
                ..SayArgs::default()
            },
        }
    }
}

fn run_say(say: &Say) -> Outcome {
    run(
        say,
        &Registry::new(vec![Box::new(Hum)]),
        &CancelToken::default(),
    )
}

fn heard(path: &Path) -> Audio {
    Audio::open(path).unwrap()
}

#[test]
fn the_name_decides_the_format_and_every_one_has_the_same_sound() {
    let bench = Bench::new();
    let mut lengths = Vec::new();
    for (name, magic) in [
        ("a.wav", "RIFF"),
        ("a.flac", "fLaC"),
        ("a.ogg", "OggS"),
        ("a.mp3", ""),
    ] {
        run_say(&bench.say("Hello there.", name)).unwrap();
        let bytes = fs::read(bench.path(name)).unwrap();
        assert!(bytes.starts_with(magic.as_bytes()), "{name}");
        lengths.push(heard(&bench.path(name)).duration());
    }
    assert!(
        lengths
            .iter()
            .all(|length| (length - lengths[0]).abs() < 0.002),
        "{lengths:?}"
    );
    let mut say = bench.say("Hello there.", "a.bin");
    say.request.format = Some("wav".into());
    say.request.samples = Some("s24".into());
    say.request.rate = Some(8000);
    run_say(&say).unwrap();
    assert_eq!(heard(&bench.path("a.bin")).rate, 8000);
    assert_eq!(
        fs::read_dir(bench.folder.path()).unwrap().count(),
        6,
        "no temporary files are left"
    );
}

#[test]
fn levels_are_kept_below_full_scale_or_set() {
    let bench = Bench::new();
    let mut say = bench.say("Hello there, everyone.", "loud.wav");
    say.request.voice = Some("loud".into());
    run_say(&say).unwrap();
    let peak = heard(&bench.path("loud.wav")).peak();
    assert!((0.9..0.97).contains(&peak), "{peak}");
    say.request.peak = Some(-6.0);
    run_say(&say).unwrap();
    let peak = heard(&bench.path("loud.wav")).peak();
    assert!((peak - 0.501).abs() < 0.002, "{peak}");
    (say.request.peak, say.request.loudness) = (None, Some(-23.0));
    run_say(&say).unwrap();
    let loudness = audiocpp::audio::level::loudness(&heard(&bench.path("loud.wav")))
        .unwrap()
        .unwrap();
    assert!((loudness + 23.0).abs() < 0.5, "{loudness}");
}

#[test]
fn times_are_written_as_json_and_subtitles_of_the_given_text() {
    let bench = Bench::new();
    let mut say = bench.say("Dr. Smith paid $42. Really!", "a.wav");
    for name in ["t.json", "t.srt", "t.vtt"] {
        say.request.timings = Some(bench.path(name));
        run_say(&say).unwrap();
    }
    let json: Value = serde_json::from_slice(&fs::read(bench.path("t.json")).unwrap()).unwrap();
    assert_eq!(json["segments"][0]["words"][3]["word"], "$42");
    assert_eq!(
        json["segments"][0]["words"][0]["phonemes"][0]["phoneme"],
        "d"
    );
    let srt = fs::read_to_string(bench.path("t.srt")).unwrap();
    assert!(
        srt.contains("Dr. Smith paid $42.\n") && srt.contains("Really!\n"),
        "{srt}"
    );
    let vtt = fs::read_to_string(bench.path("t.vtt")).unwrap();
    assert!(vtt.starts_with("WEBVTT"));
    let end = json["duration"].as_f64().unwrap();
    assert!((end - heard(&bench.path("a.wav")).duration()).abs() < 1e-3);
}

#[test]
fn a_batch_goes_on_after_a_failure_and_tells_in_a_manifest() {
    let bench = Bench::new();
    let lines = r#"{"text": "One.", "id": "first"}

{"text": "...", "id": "silent"}
{"text": "Three.", "voice": "loud"}
"#;
    let mut say = bench.say("", "out/");
    say.text = None;
    say.request.batch = Some(bench.put("b.jsonl", lines));
    assert_eq!(run_say(&say).unwrap_err(), Failure::reported());
    let manifest = fs::read_to_string(bench.path("out/manifest.jsonl")).unwrap();
    let rows: Vec<Value> = manifest
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(rows[0]["file"], "first.wav");
    assert_eq!(rows[1]["error"]["class"], "bad_input");
    assert_eq!(rows[2]["id"], "0004");
    assert!(heard(&bench.path("out/0004.wav")).peak() > 0.9);
    assert!(!bench.path("out/silent.wav").exists());

    fs::create_dir(bench.path("texts")).unwrap();
    bench.put("texts/b.txt", "\u{feff}Two words.");
    bench.put("texts/a.txt", "One.");
    bench.put("texts/notes.md", "No.");
    say.request.batch = None;
    say.request.text_file = vec![bench.path("texts").to_str().unwrap().into()];
    say.request.out = Some(bench.path("spoken"));
    run_say(&say).unwrap();
    let mut names: Vec<_> = fs::read_dir(bench.path("spoken"))
        .unwrap()
        .flatten()
        .map(|e| e.file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["a.wav", "b.wav", "manifest.jsonl"]);
}

#[test]
fn the_command_is_checked_before_anything_runs() {
    let bench = Bench::new();
    let usage = |change: &dyn Fn(&mut Say)| {
        let mut say = bench.say("Hello.", "x.wav");
        change(&mut say);
        let failure = run_say(&say).unwrap_err();
        assert_eq!(failure.code, 2, "{failure}");
        assert!(!bench.path("x.wav").exists(), "{failure}");
        failure.message
    };
    assert!(usage(&|say| say.text = None).contains("nothing to say"));
    assert!(
        usage(&|say| say.request.out = Some(bench.path("x.aac")))
            .contains("wav, flac, mp3, opus, pcm")
    );
    assert!(
        usage(&|say| say.request.out = Some(bench.path("no/x.wav"))).contains("there is no folder")
    );
    assert!(usage(&|say| say.request.speed = Some(9.0)).contains("0.25 to 4"));
    assert!(usage(&|say| say.request.peak = Some(3.0)).contains("-60 to 0"));
    assert!(
        usage(&|say| say.request.text_file = vec!["y".into()]).contains("more than one source")
    );
    assert!(
        usage(&|say| say.request.dictionary = Some(bench.put("d.txt", "word\n")))
            .contains("line 1")
    );
    let missing = usage(&|say| {
        bench.put("talk.txt", "x");
        say.text = None;
        say.request.text_file = vec![bench.path("talk.tx").to_str().unwrap().into()];
    });
    assert!(
        missing.contains("did you mean") && missing.contains("talk.txt"),
        "{missing}"
    );
    for line in [r#"{"txt": "a"}"#, r#"{"text": "a", "id": "../b"}"#] {
        let message = usage(&|say| {
            say.text = None;
            say.request.batch = Some(bench.put("bad.jsonl", line));
            say.request.out = Some(bench.path("y/"));
        });
        assert!(message.contains("line 1"), "{message}");
    }
    let flac = usage(&|say| {
        say.request.out = Some(bench.path("x.flac"));
        say.request.samples = Some("f32".into());
    });
    assert!(flac.contains("s16 or s24"), "{flac}");
}

#[test]
fn unspeakable_texts_and_unknown_voices_fail_and_write_nothing() {
    let bench = Bench::new();
    for text in ["", "…", "🎉"] {
        assert_eq!(
            run_say(&bench.say(text, "x.wav")).unwrap_err(),
            Failure::reported()
        );
    }
    let mut say = bench.say("Hello.", "x.wav");
    say.request.voice = Some("sotf".into());
    assert_eq!(run_say(&say).unwrap_err().code, 1);
    let cancel = CancelToken::default();
    cancel.cancel();
    let registry = Registry::new(vec![Box::new(Hum)]);
    assert_eq!(
        run(&bench.say("Hello.", "x.wav"), &registry, &cancel)
            .unwrap_err()
            .code,
        130
    );
    assert!(!bench.path("x.wav").exists());
}

#[test]
fn samples_of_every_voice_are_spoken() {
    let bench = Bench::new();
    let args = args::Voices {
        model: bench.model(),
        samples: Some(bench.path("samples")),
        json: true,
    };
    voices::run(
        &args,
        &Registry::new(vec![Box::new(Hum)]),
        &CancelToken::default(),
    )
    .unwrap();
    assert!(
        heard(&bench.path("samples/loud.wav")).peak()
            > heard(&bench.path("samples/soft.wav")).peak()
    );
}

#[test]
fn the_flags_of_audio_cpp_ask_for_the_same() {
    use clap::Parser;
    let words = "audiocpp_cli --task tts --family hum --model m --text Hello --voice-id loud --speaking-rate 1.5 \
                 --mode streaming --out x.wav --seed 3";
    let flags = args::SpeechFlags::try_parse_from(words.split_whitespace())
        .unwrap()
        .into_say();
    assert_eq!(flags.text.as_deref(), Some("Hello"));
    assert_eq!(flags.request.voice.as_deref(), Some("loud"));
    assert_eq!(
        (
            flags.request.speed,
            flags.request.seed,
            flags.request.stream
        ),
        (Some(1.5), Some(3), true)
    );
}
