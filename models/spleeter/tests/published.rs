//! Published weights beside a numpy run of them (`tests/reference/spleeter_reference.py`), on a mix
//! of speech and music, through the session.

use std::{f64::consts::PI, path::PathBuf};

use audiocpp::{
    audio::{Audio, AudioSource, Reader},
    engine::{
        Family, LoadOptions, Model, Options, RunContext, SeparateRequest, Separation, Session, Task,
    },
};
use audiocpp_spleeter::Spleeter;
use audiocpp_testing::{
    expected::{Expected, relative_error},
    formula, models, speech,
};

const RATE: f64 = 44_100.0;
const SECONDS: f64 = 12.5;
/// Frames in a stored part.
const PART: usize = 1024;

fn expected() -> Expected {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/spleeter");
    Expected::read(data.join("mix.safetensors"))
}

/// The recording at 44.1 kHz, neighbours joined by straight lines, from 0.5 s on.
fn voice(count: usize) -> Vec<f32> {
    let clip = Audio::open(speech::folder().join("jfk.flac")).unwrap();
    let step = f64::from(clip.rate) / RATE;
    let value = |i: usize| {
        let at = (i as f64 - (RATE / 2.0).floor()) * step;
        if at < 0.0 || at >= (clip.samples.len() - 1) as f64 {
            return 0.0;
        }
        let (low, part) = (at as usize, at.fract());
        let (a, b) = (clip.samples[low], clip.samples[low + 1]);
        (f64::from(a) * (1.0 - part) + f64::from(b) * part) as f32
    };
    (0..count).map(value).collect()
}

/// Chords of decaying tones and a beat of noise, interleaved.
fn music(count: usize) -> Vec<f32> {
    const CHORDS: [[f64; 4]; 3] = [
        [110.0, 164.8, 220.0, 277.2],
        [98.0, 146.8, 196.0, 246.9],
        [87.3, 130.8, 174.6, 220.0],
    ];
    let noise = formula::unit("noise", count);
    let frame = |i: usize| {
        let t = i as f64 / RATE;
        let beat = 0.05 * f64::from(noise[i]) * (-40.0 * (t % 0.5)).exp();
        let mut out = [beat, beat];
        let bar = t.floor();
        for (i, frequency) in CHORDS[bar as usize % 3].into_iter().enumerate() {
            for harmonic in [1.0, 2.0, 3.0] {
                let wave = (2.0 * PI * frequency * harmonic * t).sin();
                let tone = wave * (-2.0 * (t - bar)).exp() / harmonic;
                out[i % 2] += 0.06 * tone;
                out[1 - i % 2] += 0.03 * tone;
            }
        }
        out.map(|x| x as f32)
    };
    (0..count).flat_map(frame).collect()
}

fn model() -> Option<Box<dyn Model>> {
    let folder = models::folder("spleeter-2stems")?;
    let options = LoadOptions {
        device: "cpu".into(),
        threads: Some(2),
        ..LoadOptions::default()
    };
    assert!(Spleeter.can_load(&folder));
    Some(
        Spleeter
            .load(&folder, &options, &RunContext::new())
            .unwrap(),
    )
}

fn separate(model: &dyn Model, source: &mut dyn AudioSource) -> Separation {
    let session = model.session(Task::Sep, &Options::default()).unwrap();
    let Session::Separate(mut session) = session else {
        panic!("a separator");
    };
    session
        .separate(&SeparateRequest::default(), source, &RunContext::new())
        .unwrap()
}

fn si_sdr(found: &[f32], wanted: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        let pairs = a.iter().zip(b);
        pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let scale = dot(found, wanted) / dot(wanted, wanted);
    let (mut target, mut rest) = (0.0, 0.0);
    for (f, w) in found.iter().zip(wanted) {
        let t = scale * f64::from(*w);
        target += t * t;
        rest += (f64::from(*f) - t).powi(2);
    }
    10.0 * (target / rest).log10()
}

#[test]
fn stems_are_those_of_numpy_and_as_good() {
    let Some(model) = model() else { return };
    let expected = expected();
    let count = (RATE * SECONDS) as usize;
    let voice: Vec<f32> = voice(count).into_iter().flat_map(|x| [x, x]).collect();
    let music = music(count);
    let mix: Vec<f32> = voice.iter().zip(&music).map(|(a, b)| a + b).collect();
    let starts: Vec<usize> = expected.i32("parts").iter().map(|&p| p as usize).collect();
    let parts = |samples: &[f32]| -> Vec<f32> {
        let part = |&start: &usize| samples[2 * start..2 * (start + PART)].iter().copied();
        starts.iter().flat_map(part).collect()
    };
    let same = relative_error(&parts(&mix), &expected.f32("mix"));
    assert!(same < 1e-6, "the mix is another: {same:.1e}");
    let clip = Audio::new(mix, 44_100, 2).unwrap();
    let found = separate(&*model, &mut clip.into_source());
    for (stem, source) in found.stems.iter().zip([&voice, &music]) {
        assert_eq!(stem.audio.frames(), count);
        let error = relative_error(&parts(&stem.audio.samples), &expected.f32(&stem.name));
        let level = expected.f32(&format!("{}_level", stem.name));
        let ratio = si_sdr(&stem.audio.samples, source);
        println!(
            "{}: relative error {error:.1e}, SI-SDR {ratio:.3} dB",
            stem.name
        );
        assert!(error < 1e-4, "{}: {error:.1e}", stem.name);
        assert!(
            (ratio - f64::from(level[1])).abs() < 0.05,
            "{ratio} {level:?}"
        );
        assert!(ratio > f64::from(level[2]) + 6.0, "no better than the mix");
    }
    assert!(
        found.remainder_db.unwrap() < -30.0,
        "{:?}",
        found.remainder_db
    );
}

#[test]
fn stems_of_compressed_recordings_are_in_time_with_them() {
    let Some(model) = model() else { return };
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/audio");
    for name in ["moov_first.m4a", "opus.webm", "cbr.mp3"] {
        let path = data.join(name);
        let mix = Audio::open(&path).unwrap();
        let found = separate(&*model, &mut Reader::open(&path).unwrap());
        let mut sum = vec![0.0; mix.samples.len()];
        for stem in &found.stems {
            assert_eq!(
                (stem.audio.rate, stem.audio.channels),
                (mix.rate, mix.channels)
            );
            assert_eq!(stem.audio.frames(), mix.frames(), "{name}");
            sum.iter_mut()
                .zip(&stem.audio.samples)
                .for_each(|(s, x)| *s += x);
        }
        // The sum of the stems fits the mix best where it lies, not a frame earlier or later.
        let step = usize::from(mix.channels);
        let fit = |shift: usize| -> [f64; 2] {
            let dot = |a: &[f32], b: &[f32]| -> f64 {
                let pairs = a.iter().zip(b);
                pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
            };
            let late = dot(&mix.samples, &sum[shift * step..]);
            [late, dot(&mix.samples[shift * step..], &sum)]
        };
        let [own, _] = fit(0);
        for shift in 1..=64 {
            assert!(
                fit(shift).iter().all(|&other| other < own),
                "{name}: {shift} frames off"
            );
        }
    }
}

#[test]
fn clicks_through_codecs_with_delays_stay_in_place() {
    let Some(model) = model() else { return };
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/spleeter");
    for name in ["clicks.m4a", "clicks.webm"] {
        let found = separate(&*model, &mut Reader::open(data.join(name)).unwrap());
        let frames = found.stems[0].audio.frames();
        assert_eq!(frames, 144_000, "{name}");
        let mut sum = vec![0.0; frames];
        for stem in &found.stems {
            let step = usize::from(stem.audio.channels);
            let left = stem.audio.samples.iter().step_by(step);
            sum.iter_mut().zip(left).for_each(|(sum, x)| *sum += x);
        }
        // Where `tests/reference/click_tracks.py` put them.
        for click in (5000..frames - 1000).step_by(12_345) {
            let near = click - 2500..click + 2500;
            let loudest = near.max_by(|&a, &b| sum[a].abs().total_cmp(&sum[b].abs()));
            let off = loudest.unwrap().abs_diff(click);
            assert!(off <= 1, "{name}: the click at {click} is {off} frames off");
            assert!(sum[click].abs() > 0.3, "{name}: {}", sum[click]);
        }
    }
}
