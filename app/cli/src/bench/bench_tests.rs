use clap::Parser;

use super::{round::Run, *};
use crate::args::{Cli, Command as Word};

fn parse(words: &[&str]) -> Bench {
    let all = ["audiocpp_cli", "bench"].iter().chain(words);
    match Cli::parse_from(all).command {
        Some(Word::Bench(args)) => *args,
        _ => panic!("a bench was asked for"),
    }
}

fn names(settings: &[Setting]) -> Vec<String> {
    settings.iter().map(ToString::to_string).collect()
}

#[test]
fn the_defaults_are_three_processes_three_warm_ups_and_twenty_runs() {
    let args = parse(&["a.wav"]);
    assert_eq!((args.rounds, args.warmup, args.reps), (3, 3, 20));
    assert_eq!(names(&settings(&args).unwrap()), ["as given"]);
    assert_eq!(work::task(&args).unwrap(), audiocpp::engine::Task::Asr);
    let spoken = parse(&["--task", "tts", "a.wav"]);
    assert!(work::task(&spoken).unwrap_err().message.contains("asr"));
}

#[test]
fn a_matrix_is_every_device_with_every_type() {
    let lists = ["--devices", "cpu,hip:0", "--weight-types", "f16,q8_0", "a"];
    let all = ["cpu f16", "cpu q8_0", "hip:0 f16", "hip:0 q8_0"];
    assert_eq!(names(&settings(&parse(&lists)).unwrap()), all);
    let found = names(&settings(&parse(&["--matrix", "a"])).unwrap());
    assert!(found.starts_with(&["cpu native".to_owned(), "cpu f32".to_owned()]));
    assert!(found.len().is_multiple_of(4));
}

#[test]
fn a_round_gets_the_whole_command_line() {
    let args = parse(&[
        "-m",
        "m",
        "--family=whisper",
        "--device=vulkan",
        "--backend=cuda",
        "--threads=2",
        "--weight-type=f32",
        "--fast-path=flash-attention=off",
        "--fast-path=f16-weights=on",
        "--no-gpu-graphs",
        "--strict-device",
        "--fallback=cpu",
        "--offline",
        "--load-option=a=1",
        "--session-option=b=2",
        "--request-option=c=3",
        "--language=en",
        "--words",
        "--beam-size=5",
        "--rounds=2",
        "--warmup=1",
        "--reps=4",
        "--",
        "-strange.wav",
        "b.wav",
    ]);
    let again = |setting: &Setting| {
        let words = round_words(&args, setting);
        let words: Vec<&str> = words.iter().skip(1).map(|w| w.to_str().unwrap()).collect();
        parse(&words)
    };
    let same = again(&Setting::default());
    assert!(same.measure);
    assert_eq!(format!("{:?}", same.model), format!("{:?}", args.model));
    assert_eq!((&same.inputs, same.warmup, same.reps), (&args.inputs, 1, 4));
    assert_eq!(same.request_option, args.request_option);
    assert_eq!(
        (same.language, same.words, same.beam_size),
        (args.language.clone(), true, Some(5))
    );
    let other = again(&Setting {
        device: Some("hip:1".into()),
        weight_type: Some("q8_0".into()),
    });
    assert_eq!(other.model.device.device.as_deref(), Some("hip:1"));
    assert_eq!(other.model.device.backend, None);
    assert_eq!(other.model.weight_type.as_deref(), Some("q8_0"));
}

#[test]
fn settings_take_turns_and_failures_are_kept_with_their_reason() {
    let settings: Vec<Setting> = ["a", "b", "c"]
        .map(|device| Setting {
            device: Some(device.into()),
            weight_type: None,
        })
        .into();
    let mut order = String::new();
    let (measured, not_run) = alternate(&settings, 3, |setting| {
        let device = setting.device.clone().unwrap();
        order += &device;
        match device.as_str() {
            "b" => Err(Failure::failed("no such device")),
            _ => Ok(Round {
                process: order.len() as u32,
                audio_seconds: 2.0,
                result: device,
                results_agree: true,
                runs: vec![Run {
                    seconds: 1.0,
                    ..Run::default()
                }],
                ..Round::default()
            }),
        }
    });
    assert_eq!(order, "abcacac");
    let rounds: Vec<usize> = measured.iter().map(|(_, rounds)| rounds.len()).collect();
    assert_eq!(rounds, [3, 3]);
    let report = report(&parse(&["x"]), "asr", measured, not_run);
    assert_eq!(report.not_run[0].why, "no such device");
    assert_eq!(report.figures.len(), 2);
    assert_eq!(report.figures[0].real_time_factor, 0.5);
    assert!(report.figures[0].same_as_first && !report.figures[1].same_as_first);
}
