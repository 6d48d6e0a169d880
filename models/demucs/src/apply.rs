//! A whole track through a network that sees segments of it: segments overlap and are faded into
//! each other, random shifts are averaged, networks of a bag are weighted, as published.

use std::collections::VecDeque;

/// How a track is cut.
#[derive(Debug, Clone, PartialEq)]
pub struct Cut {
    /// Frames of a segment.
    pub segment: usize,
    /// Frames from segment to segment.
    pub stride: usize,
    /// Weight of each frame of a segment.
    weights: Vec<f32>,
}

impl Cut {
    /// Segments of `segment` frames that overlap by the part `overlap`, with a triangle raised to
    /// `power` as their weight.
    pub fn new(segment: usize, overlap: f64, power: f32) -> Cut {
        let segment = segment.max(1);
        let half = segment / 2;
        let rising = (1..=half).map(|i| i as f32);
        let falling = (1..=segment - half).rev().map(|i| i as f32);
        let most = (segment - half) as f32;
        Cut {
            segment,
            stride: (((1.0 - overlap) * segment as f64) as usize).max(1),
            weights: rising
                .chain(falling)
                .map(|w| (w / most).powf(power))
                .collect(),
        }
    }
}

/// What a network is to see for one segment.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// Interleaved frames.
    pub frames: Vec<f32>,
    /// Frames of the result to be skipped, and to be kept after that.
    pub skip: usize,
    /// See `skip`.
    pub keep: usize,
}

/// The sound of a track that some segment still has to see.
#[derive(Debug, Clone)]
pub struct Heard {
    channels: usize,
    samples: Vec<f32>,
    /// Frame that `samples` begin with, and the frame after the last.
    start: usize,
    end: usize,
}

impl Heard {
    /// Nothing yet.
    pub fn new(channels: usize) -> Heard {
        Heard {
            channels,
            samples: Vec::new(),
            start: 0,
            end: 0,
        }
    }

    /// Frames so far.
    pub fn len(&self) -> usize {
        self.end
    }

    /// Whether there is no frame so far.
    pub fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// Appends interleaved frames, changed by `change`.
    pub fn push(&mut self, frames: &[f32], change: impl Fn(f32) -> f32) {
        self.samples.extend(frames.iter().map(|&x| change(x)));
        self.end += frames.len() / self.channels;
    }

    /// Forgets the frames before `frame`.
    pub fn forget(&mut self, frame: usize) {
        let count = frame.saturating_sub(self.start).min(self.end - self.start);
        self.samples.drain(..count * self.channels);
        self.start += count;
    }

    /// `count` frames from `first` on; zeros beyond the ends.
    fn frames(&self, first: i64, count: usize) -> Vec<f32> {
        let mut out = vec![0.0; count * self.channels];
        let (start, end) = (self.start as i64, self.end as i64);
        let from = first.clamp(start, end);
        let to = (first + count as i64).clamp(from, end);
        if to > from {
            let at = (from - first) as usize * self.channels;
            let own =
                (from - start) as usize * self.channels..(to - start) as usize * self.channels;
            out[at..at + own.len()].copy_from_slice(&self.samples[own]);
        }
        out
    }
}

/// One pass over a track: its segments, and what is ready of the result.
#[derive(Debug, Clone)]
pub struct Pass {
    cut: Cut,
    channels: usize,
    /// Start of the next segment; the first lies before the track if it is shifted.
    next: i64,
    /// For each stem, weighted frames from `from` on, interleaved; and the sums of their weights.
    sums: Vec<VecDeque<f32>>,
    weights: VecDeque<f32>,
    /// For each stem, finished frames of the track that wait.
    pub ready: Vec<Vec<f32>>,
}

impl Pass {
    /// A pass whose first segment starts `before` frames before the track.
    pub fn new(cut: Cut, channels: usize, stems: usize, before: usize) -> Pass {
        Pass {
            cut,
            channels,
            next: -(before as i64),
            sums: vec![VecDeque::new(); stems],
            weights: VecDeque::new(),
            ready: vec![Vec::new(); stems],
        }
    }

    /// The next segment that can be seen: once `heard` holds all of it, or, after the end, as long
    /// as one starts within the track. The network sees `valid(keep)` frames for it.
    pub fn window(
        &self,
        heard: &Heard,
        ended: bool,
        valid: impl Fn(usize) -> usize,
    ) -> Option<Window> {
        let left = heard.len() as i64 - self.next;
        let whole = self.cut.segment as i64;
        if left < whole && !(ended && left > 0) {
            return None;
        }
        let keep = left.min(whole) as usize;
        let seen = valid(keep).max(keep);
        let skip = (seen - keep) / 2;
        Some(Window {
            frames: heard.frames(self.next - skip as i64, seen),
            skip,
            keep,
        })
    }

    /// Earliest frame that a later segment may see.
    pub fn needs_from(&self) -> usize {
        (self.next - self.cut.segment as i64).max(0) as usize
    }

    /// Adds what the network made of `window`, for each stem.
    pub fn add(&mut self, window: &Window, stems: &[Vec<f32>]) {
        let n = self.channels;
        for _ in self.weights.len()..window.keep {
            self.weights.push_back(0.0);
        }
        let weights = &self.cut.weights[..window.keep];
        let sums = self.weights.iter_mut().zip(weights);
        sums.for_each(|(sum, weight)| *sum += weight);
        for (sums, stem) in self.sums.iter_mut().zip(stems) {
            sums.resize((window.keep * n).max(sums.len()), 0.0);
            let kept = &stem[window.skip * n..(window.skip + window.keep) * n];
            let frames = kept.chunks_exact(n).zip(weights);
            let values = frames.flat_map(|(frame, weight)| frame.iter().map(move |x| x * weight));
            sums.iter_mut().zip(values).for_each(|(sum, x)| *sum += x);
        }
        self.next += self.cut.stride as i64;
        self.release(self.cut.stride);
    }

    /// The next `frames` frames are finished.
    fn release(&mut self, frames: usize) {
        let n = self.channels;
        let frames = frames.min(self.weights.len());
        // Frames before the track are nobody's.
        let start = self.next - self.cut.stride as i64;
        let before = ((-start).max(0) as usize).min(frames);
        let weights: Vec<f32> = self.weights.drain(..frames).collect();
        for (sums, ready) in self.sums.iter_mut().zip(&mut self.ready) {
            let values: Vec<f32> = sums.drain(..frames * n).collect();
            let kept = values.chunks_exact(n).zip(&weights).skip(before);
            ready.extend(kept.flat_map(|(frame, weight)| frame.iter().map(move |x| x / weight)));
        }
    }

    /// Finishes what is left after the last segment.
    pub fn finish(&mut self) {
        let left = self.weights.len();
        // As if a segment had begun where the last one's stride ended.
        self.next += self.cut.stride as i64;
        self.release(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of a track through a network that gives back what it sees, and its negative.
    fn through(track: &[f32], cut: &Cut, before: usize, part: usize, fixed: bool) -> Pass {
        let mut heard = Heard::new(2);
        let mut pass = Pass::new(cut.clone(), 2, 2, before);
        let valid = |keep| if fixed { cut.segment } else { keep };
        let mut seen = |heard: &Heard, ended: bool| {
            while let Some(window) = pass.window(heard, ended, valid) {
                let negative = window.frames.iter().map(|x| -x).collect();
                pass.add(&window, &[window.frames.clone(), negative]);
            }
            pass.needs_from()
        };
        for frames in track.chunks(2 * part) {
            heard.push(frames, |x| x);
            let from = seen(&heard, false);
            heard.forget(from);
        }
        seen(&heard, true);
        pass.finish();
        pass
    }

    #[test]
    fn an_echo_comes_back_as_it_was() {
        let cut = Cut::new(100, 0.25, 1.0);
        assert_eq!(
            (cut.stride, cut.weights[0], cut.weights[49]),
            (75, 0.02, 1.0)
        );
        for length in [1, 60, 100, 101, 175, 1000] {
            let track: Vec<f32> = (0..2 * length).map(|i| (i as f32 * 0.7).sin()).collect();
            for (before, part, fixed) in [
                (0, 1000, true),
                (0, 7, false),
                (30, 33, true),
                (99, 5, false),
            ] {
                let pass = through(&track, &cut, before, part, fixed);
                assert_eq!(pass.ready[0].len(), track.len(), "{length} {before}");
                for (found, wanted) in pass.ready[0].iter().zip(&track) {
                    assert!((found - wanted).abs() < 1e-5);
                }
                assert_eq!(pass.ready[1][0], -pass.ready[0][0]);
            }
        }
    }

    #[test]
    fn the_last_segment_sees_what_came_before_it() {
        let mut heard = Heard::new(1);
        let samples: Vec<f32> = (0..150).map(|i| i as f32).collect();
        heard.push(&samples, |x| x);
        let mut pass = Pass::new(Cut::new(100, 0.25, 1.0), 1, 1, 0);
        let first = pass.window(&heard, false, |_| 100).unwrap();
        assert_eq!((first.skip, first.keep), (0, 100));
        pass.add(&first, std::slice::from_ref(&first.frames));
        assert_eq!(pass.window(&heard, false, |_| 100), None);
        let second = pass.window(&heard, true, |_| 100).unwrap();
        // 75 frames are left from 75 on; 12 before them and 13 zeros make a segment.
        assert_eq!((second.skip, second.keep, second.frames[0]), (12, 75, 63.0));
        assert_eq!(second.frames[86..90], [149.0, 0.0, 0.0, 0.0]);
    }
}
