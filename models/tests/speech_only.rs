//! Recognition of recordings with long silences, music and noise between the sentences: every
//! sentence is there, nothing else is, and times are those of the recording.
//!
//! Skipped, with a line that says so, where the models are not downloaded.

use std::f32::consts::TAU;

use audiocpp::{
    audio::Audio,
    engine::{
        DetectSpeech, LoadOptions, Options, RunContext, SpeechOnly, Task, Transcribe,
        TranscribeRequest, Transcript, Word, transcribe, transcribe_speech,
    },
};
use audiocpp_testing::{models, speech, wer::word_errors};

const RATE: usize = 16_000;

/// Where speech begins in each clip, in seconds, by its level.
const ONSETS: [f64; 6] = [0.34, 0.24, 0.25, 0.28, 0.34, 0.28];

fn noise(count: usize, amplitude: f32) -> Vec<f32> {
    let mut state = 7u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 8) as f32 / (1 << 23) as f32 - 1.0) * amplitude
    };
    (0..count).map(|_| next()).collect()
}

/// Four chords over and over, plucked twice a second, with a drum of noise.
fn music(count: usize) -> Vec<f32> {
    let chords = [
        [220.0f32, 261.6, 329.6],
        [174.6, 220.0, 261.6],
        [261.6, 329.6, 392.0],
        [196.0, 246.9, 293.7],
    ];
    let drum = noise(count, 0.25);
    let sample = |i: usize| {
        let t = i as f32 / RATE as f32;
        let beat = (t * 2.0).fract() / 2.0;
        let note = |f: &f32| {
            let part = |n: u8| {
                let n = f32::from(n);
                (TAU * n * f * t).sin() / (n * n) * (-beat * 3.0 * n).exp()
            };
            (1..6).map(part).sum::<f32>()
        };
        let chord: f32 = chords[(t / 2.0) as usize % 4].iter().map(note).sum();
        0.12 * chord + drum[i] * (-beat * 40.0).exp()
    };
    (0..count).map(sample).collect()
}

/// A recording, and where its clips begin and end in seconds.
struct Joined {
    samples: Vec<f32>,
    places: Vec<(f64, f64)>,
}

/// All clips, with what makes recognisers invent words between them.
fn joined() -> Joined {
    let seconds = |s: usize| s * RATE;
    let gaps = [
        vec![0.0; seconds(25)],
        music(seconds(20)),
        noise(seconds(15), 0.02),
        noise(seconds(40), 0.0005),
        music(seconds(9)),
        noise(seconds(5), 0.2),
    ];
    let (mut samples, mut places) = (Vec::new(), Vec::new());
    for (clip, gap) in speech::clips().iter().zip(&gaps) {
        samples.extend(gap);
        let start = samples.len();
        samples.extend(Audio::open(clip.path()).unwrap().samples);
        places.push((start, samples.len()));
    }
    samples.extend(music(seconds(35)));
    let time = |at: usize| at as f64 / RATE as f64;
    Joined {
        samples,
        places: places
            .into_iter()
            .map(|(a, b)| (time(a), time(b)))
            .collect(),
    }
}

fn load(id: &str, task: Task) -> Option<audiocpp::engine::Session> {
    let folder = models::folder(id)?;
    let registry = audiocpp_models::registry();
    let family = registry.detect(&folder, None).unwrap();
    let options = LoadOptions {
        device: "cpu".into(),
        threads: Some(1),
        ..LoadOptions::default()
    };
    let model = family.load(&folder, &options, &RunContext::new()).unwrap();
    Some(model.session(task, &Options::default()).unwrap())
}

fn sessions(id: &str) -> Option<(Box<dyn Transcribe>, Box<dyn DetectSpeech>)> {
    let recogniser = load(id, Task::Asr)?.into_transcribe().unwrap();
    let detector = load("silero-vad", Task::Vad)?.into_detect_speech().unwrap();
    Some((recogniser, detector))
}

fn request() -> TranscribeRequest {
    TranscribeRequest {
        words: true,
        ..TranscribeRequest::default()
    }
}

fn alone(session: &mut dyn Transcribe, audio: Audio) -> Transcript {
    let mut source = audio.into_source();
    transcribe(session, &request(), &mut source, &RunContext::new()).unwrap()
}

#[test]
fn every_sentence_in_its_place_and_nothing_else() {
    for (id, allowed) in [("whisper-tiny.en", 5), ("whisper-base", 2)] {
        let Some((mut recogniser, mut detector)) = sessions(id) else {
            return;
        };
        let joined = joined();
        let audio = Audio::new(joined.samples.clone(), RATE as u32, 1).unwrap();
        let duration = audio.duration();
        let found = transcribe_speech(
            &mut *recogniser,
            &mut *detector,
            &request(),
            &SpeechOnly::default(),
            &mut audio.into_source(),
            &RunContext::new(),
        )
        .unwrap();
        assert!((found.duration - duration).abs() < 1e-6);

        let (mut errors, mut words, mut heard, mut off) = (0, 0, 0, Vec::new());
        let clips = speech::clips();
        for ((clip, (start, end)), onset) in clips.iter().zip(&joined.places).zip(ONSETS) {
            let inside = |s: &&audiocpp::engine::Segment| s.start < *end && s.end > *start;
            let segments: Vec<_> = found.segments.iter().filter(inside).collect();
            heard += segments.len();
            let text: String = segments.iter().map(|s| s.text.as_str()).collect();
            let e = word_errors(&clip.text, &text);
            errors += e.errors;
            words += e.words;
            for segment in &segments {
                assert!(
                    segment.start > start - 0.2 && segment.end < end + 0.2,
                    "{id}: {:.2}..{:.2} of {start:.2}..{end:.2}",
                    segment.start,
                    segment.end
                );
            }
            let first = segments.first().map_or(f64::INFINITY, |s| s.start - start);
            assert!(
                (first - onset).abs() < 0.2,
                "{id}: {} begins at {first:.2}, wanted {onset}",
                clip.file
            );
            // The words of the clip by itself, where the recogniser heard the same. What follows a
            // pause is left out: it is there that one of the two may begin too early.
            let single = alone(&mut *recogniser, Audio::open(clip.path()).unwrap());
            let (single, found): (Vec<_>, Vec<_>) = (
                single.words().collect(),
                segments.iter().flat_map(|s| &s.words).collect(),
            );
            for (a, b) in single.windows(2).zip(found.windows(2)) {
                if a[0].word != b[0].word || a[1].word != b[1].word {
                    break;
                }
                let joined = |pair: &[&Word]| pair[1].start - pair[0].end < 0.1;
                if joined(a) && joined(b) {
                    off.push((b[1].start - start - a[1].start).abs());
                }
            }
        }
        off.sort_by(f64::total_cmp);
        assert!(off.len() > 40, "{id}: {} words compared", off.len());
        let most = off[off.len() * 95 / 100];
        println!("{id}: {errors} of {words} words wrong, 95 % of times off by {most:.3} s at most");
        assert!(most < 0.2, "{id}: {most}");
        assert_eq!(heard, found.segments.len(), "{id}: {}", found.text);
        assert!(
            errors <= allowed,
            "{id}: {errors} of {words}: {}",
            found.text
        );
    }
}
