//! The one way from sound to stretches of speech, whatever the network.

use super::{Heard, SampleSpan, Segmenter};
use crate::{
    audio::Resampler,
    engine::{
        DetectSpeech, DetectSpeechRequest, Span,
        error::{Error, Result},
    },
};

/// A network that gives each frame of samples a probability of speech.
pub trait FrameDetector: Send {
    /// Begins a new stream of a recording at `rate`; returns the rate that the samples must have
    /// and how many of them are a frame. The request's options are the family's.
    fn begin(&mut self, request: &DetectSpeechRequest, rate: u32) -> Result<(u32, usize)>;

    /// Appends the probability of each of the frames in `samples`, which are whole.
    fn probabilities(&mut self, samples: &[f32], out: &mut Vec<f32>) -> Result<()>;
}

/// A detector that listens to streams at any rate: it is given what comes, and makes frames,
/// probabilities and stretches of speech of it.
pub struct SpeechDetector<F> {
    frames: F,
    stream: Option<Stream>,
}

/// A stream that is being listened to.
struct Stream {
    resampler: Resampler,
    rate: u32,
    frame: usize,
    /// Samples that do not fill a frame yet.
    waiting: Vec<f32>,
    /// Samples that came, at `rate`.
    samples: u64,
    segmenter: Segmenter,
}

impl<F: FrameDetector> SpeechDetector<F> {
    /// A detector with this network.
    pub fn new(frames: F) -> Self {
        SpeechDetector {
            frames,
            stream: None,
        }
    }
}

impl Stream {
    fn seconds(&self, samples: u64) -> f64 {
        samples as f64 / f64::from(self.rate)
    }

    fn heard(&mut self, probabilities: Vec<f32>) -> Heard {
        for probability in &probabilities {
            self.segmenter.push(*probability);
        }
        Heard {
            probabilities,
            segments: Vec::new(),
            speaking_since: self.segmenter.speaking_since().map(|at| self.seconds(at)),
            settled: self.seconds(self.segmenter.settled()),
        }
    }

    fn take_segments(&mut self, heard: &mut Heard) {
        while let Some(SampleSpan { start, end }) = self.segmenter.next_span() {
            heard.segments.push(Span {
                start: self.seconds(start),
                end: self.seconds(end),
            });
        }
    }
}

fn no_stream() -> Error {
    Error::internal("nothing is being listened to: begin comes first")
}

impl<F: FrameDetector> DetectSpeech for SpeechDetector<F> {
    fn begin(&mut self, request: &DetectSpeechRequest, rate: u32) -> Result<f64> {
        self.stream = None;
        request.rules.check()?;
        let (to, frame) = self.frames.begin(request, rate)?;
        self.stream = Some(Stream {
            resampler: Resampler::new(rate, to, 1)?,
            rate: to,
            frame,
            waiting: Vec::new(),
            samples: 0,
            segmenter: Segmenter::new(&request.rules, to, frame),
        });
        Ok(frame as f64 / f64::from(to))
    }

    fn push(&mut self, samples: &[f32]) -> Result<Heard> {
        let stream = self.stream.as_mut().ok_or_else(no_stream)?;
        let before = stream.waiting.len();
        stream.resampler.push(samples, &mut stream.waiting)?;
        stream.samples += (stream.waiting.len() - before) as u64;
        let whole = stream.waiting.len() / stream.frame * stream.frame;
        let mut probabilities = Vec::with_capacity(whole / stream.frame);
        let frames = &stream.waiting[..whole];
        self.frames.probabilities(frames, &mut probabilities)?;
        stream.waiting.drain(..whole);
        let mut heard = stream.heard(probabilities);
        stream.take_segments(&mut heard);
        Ok(heard)
    }

    fn finish(&mut self) -> Result<Heard> {
        let mut stream = self.stream.take().ok_or_else(no_stream)?;
        let before = stream.waiting.len();
        stream.resampler.finish(&mut stream.waiting)?;
        stream.samples += (stream.waiting.len() - before) as u64;
        let frames = stream.waiting.len().div_ceil(stream.frame);
        stream.waiting.resize(frames * stream.frame, 0.0);
        let mut probabilities = Vec::with_capacity(frames);
        self.frames
            .probabilities(&stream.waiting, &mut probabilities)?;
        let mut heard = stream.heard(probabilities);
        stream.segmenter.finish(stream.samples);
        stream.take_segments(&mut heard);
        heard.speaking_since = None;
        heard.settled = stream.seconds(stream.samples);
        Ok(heard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        audio::Audio,
        engine::{ErrorClass, RunContext, detect_speech},
    };

    /// Takes loud frames for speech.
    struct Loud;

    impl FrameDetector for Loud {
        fn begin(&mut self, _: &DetectSpeechRequest, _: u32) -> Result<(u32, usize)> {
            Ok((1000, 32))
        }

        fn probabilities(&mut self, samples: &[f32], out: &mut Vec<f32>) -> Result<()> {
            assert!(samples.len().is_multiple_of(32));
            let peak = |frame: &[f32]| frame.iter().fold(0.0f32, |peak, x| peak.max(x.abs()));
            out.extend(samples.chunks(32).map(peak));
            Ok(())
        }
    }

    /// Two seconds of sound after a second of nothing, and again, and a little of nothing.
    fn recording(rate: u32) -> Audio {
        let second = rate as usize;
        let tone = |i: usize| (i as f32 / rate as f32 * 100.0 * std::f32::consts::TAU).sin();
        let samples = (0..6 * second + second / 4).map(|i| match i / second % 3 {
            0 => 0.0,
            _ => tone(i),
        });
        Audio::new(samples.collect(), rate, 1).unwrap()
    }

    fn request() -> DetectSpeechRequest {
        DetectSpeechRequest {
            probabilities: true,
            ..DetectSpeechRequest::default()
        }
    }

    #[test]
    fn recordings_at_any_rate_give_the_same_places() {
        for rate in [1000, 4000, 11_025] {
            let mut detector = SpeechDetector::new(Loud);
            let mut source = recording(rate).into_source();
            let context = RunContext::new();
            let found = detect_speech(&mut detector, &request(), &mut source, &context).unwrap();
            assert!((found.duration - 6.25).abs() < 0.002, "{}", found.duration);
            assert_eq!(found.probabilities.len(), 196);
            assert_eq!((found.frame, found.segments.len()), (0.032, 2));
            for (span, (start, end)) in found.segments.iter().zip([(1.0, 3.0), (4.0, 6.0)]) {
                assert!((span.start - start).abs() < 0.08, "{span:?}");
                assert!((span.end - end).abs() < 0.08, "{span:?}");
            }
            assert!((found.speech() - 4.0).abs() < 0.16);
        }
    }

    #[test]
    fn a_stream_in_any_pieces_is_the_whole() {
        let samples = recording(1000).samples;
        let listen = |sizes: &[usize]| {
            let mut detector = SpeechDetector::new(Loud);
            detector.begin(&request(), 1000).unwrap();
            let (mut all, mut at) = (Heard::default(), 0);
            let mut settled = 0.0;
            for size in sizes.iter().cycle() {
                let end = (at + size).min(samples.len());
                let heard = match at == end {
                    true => detector.finish().unwrap(),
                    false => detector.push(&samples[at..end]).unwrap(),
                };
                assert!(heard.segments.iter().all(|s| s.start >= settled));
                settled = heard.settled;
                all.probabilities.extend(heard.probabilities);
                all.segments.extend(heard.segments);
                if at == end {
                    break;
                }
                at = end;
            }
            all
        };
        let whole = listen(&[10_000]);
        assert_eq!(whole.segments.len(), 2);
        assert_eq!(listen(&[1]), whole);
        assert_eq!(listen(&[100, 7, 333]), whole);
    }

    #[test]
    fn wrong_use_is_an_error() {
        let mut detector = SpeechDetector::new(Loud);
        assert!(detector.push(&[0.0]).is_err());
        assert!(detector.finish().is_err());
        let mut request = request();
        request.rules.threshold = 7.0;
        let error = detector.begin(&request, 1000).unwrap_err();
        assert_eq!(error.class, ErrorClass::BadInput);
        assert!(detector.push(&[0.0]).is_err());
    }
}
