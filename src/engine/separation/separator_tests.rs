use std::sync::{Arc, Mutex};

use super::*;
use crate::engine::{CancelToken, ErrorClass, Rest};

/// Gives the mix as `half` and `rest` (a quarter each time), 1000 frames late.
struct Delayed {
    stems: Vec<String>,
    measures: bool,
    levels: Vec<TrackLevel>,
}

impl Delayed {
    fn new(measures: bool) -> Self {
        Delayed {
            stems: vec!["half".into(), "rest".into()],
            measures,
            levels: Vec::new(),
        }
    }
}

const LATE: usize = 2000;

impl StemNetwork for Delayed {
    type Track = Vec<f32>;

    fn stems(&self) -> &[String] {
        &self.stems
    }

    fn begin(&mut self, _: &SeparateRequest, _: &[bool]) -> Result<StemPlan> {
        Ok(StemPlan {
            rate: 44_100,
            channels: 2,
            measures: self.measures,
        })
    }

    fn track(&mut self, level: Option<TrackLevel>) -> Result<Vec<f32>> {
        self.levels.extend(level);
        Ok(Vec::new())
    }

    fn push(
        &mut self,
        track: &mut Vec<f32>,
        frames: &[f32],
        stems: &mut [Vec<f32>],
        context: &RunContext,
    ) -> Result<()> {
        context.check()?;
        track.extend_from_slice(frames);
        let ready = track.len().saturating_sub(LATE) / 2 * 2;
        stems[0].extend(track[..ready].iter().map(|x| 0.5 * x));
        stems[1].extend(track.drain(..ready).map(|x| 0.25 * x));
        Ok(())
    }

    fn finish(&mut self, track: Vec<f32>, stems: &mut [Vec<f32>], _: &RunContext) -> Result<()> {
        stems[0].extend(track.iter().map(|x| 0.5 * x));
        stems[1].extend(track.iter().map(|x| 0.25 * x));
        Ok(())
    }
}

fn tone(frames: usize, rate: u32, channels: u16) -> Audio {
    let value = |i: usize| {
        let (frame, channel) = (i / usize::from(channels), i % usize::from(channels));
        (0.3 * (frame as f64 / f64::from(rate) * 2000.0 * (1.0 + channel as f64)).sin()) as f32
    };
    let samples = (0..frames * usize::from(channels)).map(value).collect();
    Audio::new(samples, rate, channels).unwrap()
}

fn separate(clip: &Audio, request: &SeparateRequest) -> Separation {
    let mut separator = Separator::new(Delayed::new(false));
    let mut source = clip.clone().into_source();
    separator
        .separate(request, &mut source, &RunContext::new())
        .unwrap()
}

#[test]
fn stems_have_the_length_rate_and_channels_of_the_mix() {
    for (rate, tolerance) in [
        (44_100, 1e-6),
        (48_000, 2e-3),
        (22_050, 2e-3),
        (96_000, 2e-3),
    ] {
        for channels in [1, 2, 3, 6] {
            for frames in [1, 999, 50_001] {
                let clip = tone(frames, rate, channels);
                let found = separate(&clip, &SeparateRequest::default());
                assert_eq!(found.stems.len(), 2);
                for (stem, factor) in found.stems.iter().zip([0.5, 0.25]) {
                    assert_eq!((stem.audio.rate, stem.audio.channels), (rate, channels));
                    assert_eq!(stem.audio.frames(), frames, "{rate} {channels}");
                    // The ends ring where the rate was changed.
                    let edge = if rate == 44_100 { 0 } else { 2000 } * usize::from(channels);
                    let pairs = stem.audio.samples.iter().zip(&clip.samples);
                    let inner = pairs
                        .skip(edge)
                        .take(clip.samples.len().saturating_sub(2 * edge));
                    let worst = inner
                        .map(|(a, b)| (a - factor * b).abs())
                        .fold(0.0, f32::max);
                    assert!(worst < tolerance, "{rate} Hz, {channels} channels: {worst}");
                }
            }
        }
    }
}

#[test]
fn what_is_left_of_the_mix_is_measured_and_the_difference_adds_up() {
    let clip = tone(30_000, 44_100, 2);
    let found = separate(&clip, &SeparateRequest::default());
    // A quarter of the mix is in no stem.
    assert!((found.remainder_db.unwrap() + 12.04).abs() < 0.01);
    let request = SeparateRequest {
        two_stems: Some("half".into()),
        rest: Rest::Difference,
        ..Default::default()
    };
    let found = separate(&clip, &request);
    assert_eq!(found.remainder_db, None);
    let names: Vec<&str> = found.stems.iter().map(|stem| stem.name.as_str()).collect();
    assert_eq!(names, ["half", "no_half"]);
    let [a, b] = [0, 1].map(|i| &found.stems[i].audio.samples);
    for ((a, b), mix) in a.iter().zip(b).zip(&clip.samples) {
        assert!((a + b - mix).abs() < 1e-6);
    }
}

#[test]
fn a_stream_gives_the_same_sound_in_parts() {
    let clip = tone(70_000, 44_100, 2);
    let whole = separate(&clip, &SeparateRequest::default());
    let parts = Arc::new(Mutex::new(vec![Vec::new(); 2]));
    let seen = parts.clone();
    let sink = move |event: Event| {
        if let Event::Stems { stems } = event {
            let mut seen = seen.lock().unwrap();
            for (all, stem) in seen.iter_mut().zip(stems) {
                all.extend(stem.audio.samples);
            }
        }
    };
    let context = RunContext::with_sink(CancelToken::default(), Arc::new(sink));
    let request = SeparateRequest {
        stream: true,
        ..Default::default()
    };
    let mut separator = Separator::new(Delayed::new(true));
    let mut source = clip.clone().into_source();
    let found = separator.separate(&request, &mut source, &context).unwrap();
    assert!(found.stems.iter().all(|stem| stem.audio.samples.is_empty()));
    let parts = parts.lock().unwrap();
    for (part, stem) in parts.iter().zip(&whole.stems) {
        assert_eq!(*part, stem.audio.samples);
    }
    assert_eq!(separator.network.levels.len(), 1);
    context.cancel.cancel();
    let mut source = clip.into_source();
    let error = separator.separate(&request, &mut source, &context);
    assert_eq!(error.unwrap_err().class, ErrorClass::Cancelled);
}
