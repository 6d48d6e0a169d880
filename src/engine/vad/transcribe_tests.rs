use super::*;
use crate::engine::CancelToken;

const RATE: u32 = 1000;

/// Finds speech where samples are positive; a frame is 100 samples, 0.1 s.
struct Positive;

impl super::super::FrameDetector for Positive {
    fn begin(&mut self, _: &DetectSpeechRequest, rate: u32) -> Result<(u32, usize)> {
        Ok((rate, 100))
    }

    fn probabilities(&mut self, samples: &[f32], out: &mut Vec<f32>) -> Result<()> {
        out.extend(samples.chunks(100).map(|f| f32::from(u8::from(f[0] > 0.0))));
        Ok(())
    }
}

/// Hears one segment over all that it is given, which says how much that is, and two words.
#[derive(Default)]
struct Echo {
    languages: Vec<Option<String>>,
}

impl Transcribe for Echo {
    fn transcribe(
        &mut self,
        request: &TranscribeRequest,
        audio: &mut dyn AudioSource,
        context: &RunContext,
    ) -> Result<Transcript> {
        self.languages.push(request.language.clone());
        let audio = Audio::from_source(audio, None)?;
        let (duration, half) = (audio.duration(), audio.duration() / 2.0);
        let word = |start, end| Word {
            word: " x".into(),
            start,
            end,
            probability: 1.0,
        };
        let segment = Segment {
            end: duration,
            text: format!(" {duration:.1}"),
            words: vec![word(0.0, half), word(half, duration)],
            ..Segment::default()
        };
        context.progress("decode", duration, Some(duration), Unit::Seconds);
        context.send(Event::Segment(segment.clone()));
        Ok(Transcript {
            language: Some("nl".into()),
            duration,
            segments: vec![segment],
            ..Transcript::default()
        })
    }
}

/// Sound of `seconds`, with speech in `spans`.
fn recording(seconds: f64, spans: &[(f64, f64)]) -> Audio {
    let sample = |i: usize| {
        let t = i as f64 / f64::from(RATE);
        let speech = spans.iter().any(|(start, end)| (*start..*end).contains(&t));
        if speech { 0.5 } else { -0.5 }
    };
    let frames = (seconds * f64::from(RATE)) as usize;
    let samples = (0..2 * frames).map(|i| sample(i / 2)).collect();
    Audio::new(samples, RATE, 2).unwrap()
}

fn run(audio: Audio, speech: &SpeechOnly, context: &RunContext) -> Result<(Transcript, Echo)> {
    let mut echo = Echo::default();
    let mut detector = super::super::SpeechDetector::new(Positive);
    let transcript = transcribe_speech(
        &mut echo,
        &mut detector,
        &TranscribeRequest::default(),
        speech,
        &mut audio.into_source(),
        context,
    )?;
    Ok((transcript, echo))
}

#[test]
fn times_are_those_of_the_whole_recording() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let copy = events.clone();
    let sink = move |event: Event| copy.lock().unwrap().push(event);
    let context = RunContext::with_sink(CancelToken::default(), Arc::new(sink));
    let audio = recording(100.0, &[(20.0, 22.0), (23.0, 25.0), (70.0, 73.0)]);
    let (found, echo) = run(audio, &SpeechOnly::default(), &context).unwrap();

    assert_eq!(found.duration, 100.0);
    assert_eq!((found.segments.len(), found.segments[1].id), (2, 1));
    let [first, second] = [&found.segments[0], &found.segments[1]];
    let near = |a: f64, b: f64| assert!((a - b).abs() < 0.05, "{a}, wanted {b}");
    // 0.03 s of padding at the ends of speech; the windows have 0.2 s more.
    for (segment, start, end) in [(first, 20.0, 25.0), (second, 70.0, 73.0)] {
        near(segment.start, start);
        near(segment.end, end);
        near(segment.words[0].start, start);
        near(segment.words[0].end, 0.5 * (start + end));
        near(segment.words[1].end, end);
    }
    assert_eq!(found.text, "5.5 3.5");
    assert_eq!(found.language.as_deref(), Some("nl"));
    assert_eq!(echo.languages, [None, Some("nl".to_owned())]);

    let events = events.lock().unwrap();
    let told: Vec<&Segment> = events
        .iter()
        .filter_map(|event| match event {
            Event::Segment(segment) => Some(segment),
            _ => None,
        })
        .collect();
    assert_eq!(told, [first, second], "events carry the same times");
    let mut done = Vec::new();
    for event in events.iter() {
        if let Event::Progress {
            done: at, total, ..
        } = event
        {
            assert_eq!(*total, Some(100.0));
            done.push(*at);
        }
    }
    assert!(done.iter().any(|at| (*at - 25.2).abs() < 0.1), "{done:?}");
    assert_eq!(done.last(), Some(&100.0));
}

#[test]
fn nothing_but_silence_is_an_empty_transcript() {
    let context = RunContext::new();
    for seconds in [0.0, 0.05, 50.0] {
        let (found, echo) = run(recording(seconds, &[]), &SpeechOnly::default(), &context).unwrap();
        assert_eq!((found.text.as_str(), found.segments.len()), ("", 0));
        assert!((found.duration - seconds).abs() < 0.011);
        assert!(echo.languages.is_empty(), "the recogniser is not asked");
    }
}

#[test]
fn speech_without_a_pause_is_given_in_windows() {
    let (found, _) = run(
        recording(100.0, &[(5.0, 95.0)]),
        &SpeechOnly::default(),
        &RunContext::new(),
    )
    .unwrap();
    assert!(found.segments.len() >= 4);
    let mut end = 5.0;
    for segment in &found.segments {
        assert!(
            (segment.start - end).abs() < 0.2,
            "{} after {end}",
            segment.start
        );
        assert!(segment.end - segment.start <= 30.0);
        end = segment.end;
    }
    assert!((end - 95.0).abs() < 0.1);
}

#[test]
fn a_cancelled_run_stops() {
    let token = CancelToken::default();
    token.cancel();
    let context = RunContext::with_sink(token, Arc::new(|_: Event| ()));
    let audio = recording(10.0, &[(1.0, 5.0)]);
    assert!(run(audio, &SpeechOnly::default(), &context).is_err());
}
