//! The edges of spoken stretches: silence around them, and fades against clicks.

use std::ops::Range;

use super::Audio;

/// Length of the windows that loudness is measured in.
const WINDOW_S: f64 = 0.005;

/// Windows this far below the loudest are silence.
const SILENCE: f32 = 0.003;

/// The frames from the first to the last that is not silent, with at most `lead_s` and `tail_s`
/// seconds of silence around them; empty for a silent clip.
pub fn heard(audio: &Audio, lead_s: f64, tail_s: f64) -> Range<usize> {
    let channels = usize::from(audio.channels.max(1));
    let window = ((WINDOW_S * f64::from(audio.rate)) as usize).max(1);
    let loudness: Vec<f32> = audio
        .samples
        .chunks(window * channels)
        .map(|part| (part.iter().map(|s| s * s).sum::<f32>() / part.len() as f32).sqrt())
        .collect();
    let loudest = loudness.iter().copied().fold(0.0, f32::max);
    let loud = |level: &f32| *level > loudest * SILENCE && *level > 1e-5;
    let (Some(first), Some(last)) = (
        loudness.iter().position(loud),
        loudness.iter().rposition(loud),
    ) else {
        return 0..0;
    };
    let frames = |seconds: f64| (seconds * f64::from(audio.rate)) as usize;
    let start = (first * window).saturating_sub(frames(lead_s));
    let end = ((last + 1) * window + frames(tail_s)).min(audio.frames());
    start..end
}

/// Fades the first and last `seconds` of a clip in and out along a raised cosine.
pub fn fade(audio: &mut Audio, seconds: f64) {
    let channels = usize::from(audio.channels.max(1));
    let frames = audio.frames();
    let length = ((seconds * f64::from(audio.rate)) as usize).min(frames / 2);
    for i in 0..length {
        let gain = 0.5 - 0.5 * (std::f32::consts::PI * (i as f32 + 0.5) / length as f32).cos();
        for at in [i, frames - 1 - i] {
            for sample in &mut audio.samples[at * channels..][..channels] {
                *sample *= gain;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clip(parts: &[(usize, f32)]) -> Audio {
        let tone = |n: usize, level: f32| (0..n).map(move |i| level * (i as f32 * 0.3).sin());
        let samples = parts
            .iter()
            .flat_map(|(n, level)| tone(*n, *level))
            .collect();
        Audio::new(samples, 8000, 1).unwrap()
    }

    #[test]
    fn silence_is_cut_to_its_bound() {
        let audio = clip(&[(4000, 0.0), (8000, 0.5), (4000, 0.0)]);
        let heard = heard(&audio, 0.03, 0.06);
        assert!(heard.start.abs_diff(4000 - 240) <= 40, "{heard:?}");
        assert!(heard.end.abs_diff(12_000 + 480) <= 40, "{heard:?}");
        assert_eq!(super::heard(&clip(&[(900, 0.0)]), 0.1, 0.1), 0..0);
        // Nothing is added where there is no silence.
        assert_eq!(super::heard(&clip(&[(800, 0.5)]), 0.1, 0.1), 0..800);
    }

    #[test]
    fn a_fade_begins_and_ends_at_zero() {
        let mut audio = Audio::new(vec![1.0; 1600], 8000, 2).unwrap();
        fade(&mut audio, 0.01);
        assert!(audio.samples[0] < 1e-3 && audio.samples[1599] < 1e-3);
        assert_eq!(audio.samples[800], 1.0);
        let steps = audio.samples.chunks(2).collect::<Vec<_>>();
        let largest = steps
            .windows(2)
            .map(|w| (w[1][0] - w[0][0]).abs())
            .fold(0.0, f32::max);
        assert!(largest < 0.025, "{largest}");
    }
}
