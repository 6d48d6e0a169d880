//! From durations of symbols to frames.

/// For each frame the number of the symbol that it belongs to, where symbol i lasts
/// `durations[i]` frames.
pub fn spread(durations: &[u32]) -> Vec<i32> {
    let symbol = |(i, &n): (usize, &u32)| std::iter::repeat_n(i as i32, n as usize);
    durations.iter().enumerate().flat_map(symbol).collect()
}

/// Whole frames for each logarithm of a duration: `ceil(exp(log) * scale)`, at most `most`; not a
/// number counts as none.
pub fn whole_frames(logs: &[f32], scale: f32, most: u32) -> Vec<u32> {
    // The conversion makes zero of what is no number, and the most of what is too much.
    let frames = |log: &f32| ((log.exp() * scale).ceil() as u32).min(most);
    logs.iter().map(frames).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_last_as_long_as_they_are_said_to() {
        assert_eq!(spread(&[2, 0, 3, 1]), [0, 0, 2, 2, 2, 3]);
        assert!(spread(&[]).is_empty());
    }

    #[test]
    fn frames_are_rounded_up_and_bounded() {
        let logs = [0.0, 1.0, -3.0, f32::NEG_INFINITY, 80.0, f32::NAN];
        assert_eq!(whole_frames(&logs, 1.0, 500), [1, 3, 1, 0, 500, 0]);
        assert_eq!(whole_frames(&logs[..2], 1.5, 500), [2, 5]);
    }
}
