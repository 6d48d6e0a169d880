//! From cross-attention to the time of each token.
//!
//! Robust dynamic time warping as in Whisper's own word timing: the attention of a few heads is
//! brought to a common scale, smoothed, averaged, and the cheapest monotone path through
//! `[tokens, frames]` says at which frame each token begins.

/// Frames of the encoder per second.
pub const FRAMES_PER_SECOND: f64 = 50.0;
/// Width of the median filter along the frames; odd.
const MEDIAN_WIDTH: usize = 7;

/// Attention weights of a decoded window whose sizes do not fit.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "attention of {heads} heads, {tokens} tokens and {frames} frames needs {wanted} weights, \
     found {found}"
)]
pub struct AttentionShape {
    heads: usize,
    tokens: usize,
    frames: usize,
    wanted: usize,
    found: usize,
}

/// Cross-attention weights of the alignment heads over one window, after the softmax over frames.
#[derive(Clone, Copy, Debug)]
pub struct Attention<'a> {
    weights: &'a [f32], // [heads, tokens, frames]
    heads: usize,
    tokens: usize,
    frames: usize,
}

impl<'a> Attention<'a> {
    /// `weights` is `[heads, tokens, frames]`, frames innermost; the tokens are all that the
    /// decoder was given: start sequence, `<|notimestamps|>`, text, end.
    pub fn new(
        weights: &'a [f32],
        heads: usize,
        tokens: usize,
        frames: usize,
    ) -> Result<Self, AttentionShape> {
        let wanted = heads.saturating_mul(tokens).saturating_mul(frames);
        if wanted != weights.len() {
            return Err(AttentionShape {
                heads,
                tokens,
                frames,
                wanted,
                found: weights.len(),
            });
        }
        Ok(Attention {
            weights,
            heads,
            tokens,
            frames,
        })
    }

    /// Seconds, within the window, at which each text token begins, and at last where the text
    /// ends: one value more than there are text tokens.
    ///
    /// `n_start` is the length of the start sequence without `<|notimestamps|>`; only the first
    /// `n_frames` frames hold sound. The row of a token says where the decoder looked when it
    /// wrote the next one.
    pub fn token_times(&self, n_start: usize, n_frames: usize) -> Vec<f64> {
        let frames = n_frames.min(self.frames);
        let rows = self.tokens.saturating_sub(n_start + 1);
        if frames == 0 || rows == 0 {
            return vec![0.0; rows];
        }
        let matrix = self.mean_over_heads(frames);
        let cost: Vec<f32> = matrix[n_start * frames..(n_start + rows) * frames]
            .iter()
            .map(|weight| -weight)
            .collect();
        row_starts(&cost, rows, frames)
            .into_iter()
            .map(|frame| frame as f64 / FRAMES_PER_SECOND)
            .collect()
    }

    /// Normalised, smoothed and averaged: `[tokens, frames]`.
    fn mean_over_heads(&self, frames: usize) -> Vec<f32> {
        let mut mean = vec![0.0; self.tokens * frames];
        let mut filtered = vec![0.0; frames];
        for head in self
            .weights
            .chunks_exact((self.tokens * self.frames).max(1))
        {
            let head = self.normalised(head, frames);
            for (row, sum) in head.chunks_exact(frames).zip(mean.chunks_exact_mut(frames)) {
                median_filter(row, &mut filtered);
                for (sum, value) in sum.iter_mut().zip(&filtered) {
                    *sum += value / self.heads as f32;
                }
            }
        }
        mean
    }

    /// One head, cut to the frames with sound (the softmax taken over those alone), each frame
    /// with mean 0 and deviation 1 over the tokens.
    fn normalised(&self, head: &[f32], frames: usize) -> Vec<f32> {
        let mut cut = Vec::with_capacity(self.tokens * frames);
        for row in head.chunks_exact(self.frames) {
            let finite = |weight: &f32| if weight.is_finite() { *weight } else { 0.0 };
            let sum: f32 = row[..frames].iter().map(finite).sum();
            let scale = if sum > 0.0 { sum.recip() } else { 1.0 };
            cut.extend(row[..frames].iter().map(|weight| finite(weight) * scale));
        }
        // Mean and deviation of each frame over the tokens, gathered row by row.
        let n = self.tokens as f32;
        let mut mean = vec![0.0; frames];
        for row in cut.chunks_exact(frames) {
            mean.iter_mut()
                .zip(row)
                .for_each(|(sum, value)| *sum += value / n);
        }
        let mut scale = vec![0.0; frames];
        for row in cut.chunks_exact(frames) {
            for ((sum, value), mean) in scale.iter_mut().zip(row).zip(&mean) {
                *sum += (value - mean) * (value - mean) / n;
            }
        }
        for scale in &mut scale {
            // A frame that no token tells apart from the others says nothing.
            *scale = if *scale > 0.0 {
                scale.sqrt().recip()
            } else {
                0.0
            };
        }
        for row in cut.chunks_exact_mut(frames) {
            for ((value, mean), scale) in row.iter_mut().zip(&mean).zip(&scale) {
                *value = (*value - mean) * scale;
            }
        }
        cut
    }
}

/// Running median, the edges mirrored; rows no longer than half the width stay as they are.
fn median_filter(row: &[f32], out: &mut [f32]) {
    const HALF: usize = MEDIAN_WIDTH / 2;
    let n = row.len();
    if n <= HALF {
        out.copy_from_slice(row);
        return;
    }
    let mirrored = |at: usize| {
        let at = at.abs_diff(HALF);
        row[if at < n { at } else { 2 * (n - 1) - at }]
    };
    for i in (0..HALF).chain(n - HALF..n) {
        out[i] = median_of_seven(std::array::from_fn(|k| mirrored(i + k)));
    }
    for (window, out) in row.windows(MEDIAN_WIDTH).zip(&mut out[HALF..]) {
        *out = median_of_seven(std::array::from_fn(|k| window[k]));
    }
}

/// The middle of seven values by a selection network: no branches, so that whole rows run in
/// vector registers.
fn median_of_seven(mut values: [f32; MEDIAN_WIDTH]) -> f32 {
    const EXCHANGES: [(usize, usize); 13] = [
        (0, 5),
        (0, 3),
        (1, 6),
        (2, 4),
        (0, 1),
        (3, 5),
        (2, 6),
        (2, 3),
        (3, 6),
        (4, 5),
        (1, 4),
        (1, 3),
        (3, 4),
    ];
    for (low, high) in EXCHANGES {
        let (a, b) = (values[low], values[high]);
        // Not f32::min: its care for NaN costs twice the time, and there are none here.
        values[low] = if a < b { a } else { b };
        values[high] = if a < b { b } else { a };
    }
    values[MEDIAN_WIDTH / 2]
}

/// The step by which a cell of the time-warping table was reached.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    Both,
    Row,
    Column,
}

/// Column at which each row of `cost` `[rows, columns]` begins on the cheapest path from the
/// first to the last cell, by steps of one row, one column or both.
fn row_starts(cost: &[f32], rows: usize, columns: usize) -> Vec<usize> {
    let mut steps = vec![Step::Column; rows * columns];
    // Costs of the column before and of this one, with a border row above.
    let mut before = vec![f32::INFINITY; rows + 1];
    let mut current = vec![f32::INFINITY; rows + 1];
    before[0] = 0.0;
    for column in 0..columns {
        current[0] = f32::INFINITY;
        for row in 0..rows {
            let (both, down, across) = (before[row], current[row], before[row + 1]);
            let (least, step) = if both < down && both < across {
                (both, Step::Both)
            } else if down < both && down < across {
                (down, Step::Row)
            } else {
                (across, Step::Column)
            };
            current[row + 1] = least + cost[row * columns + column];
            steps[row * columns + column] = step;
        }
        std::mem::swap(&mut before, &mut current);
    }
    let mut starts = vec![0; rows];
    let (mut row, mut column) = (rows - 1, columns - 1);
    loop {
        starts[row] = column;
        let step = match (row, column) {
            (0, 0) => return starts,
            (0, _) => Step::Column,
            (_, 0) => Step::Row,
            _ => steps[row * columns + column],
        };
        row -= usize::from(step != Step::Column);
        column -= usize::from(step != Step::Row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn path_follows_the_cheap_cells() {
        #[rustfmt::skip]
        let cost = [
            0.0, 0.0, 9.0, 9.0, 9.0,
            9.0, 9.0, 0.0, 9.0, 9.0,
            9.0, 9.0, 9.0, 0.0, 0.0,
        ];
        assert_eq!(row_starts(&cost, 3, 5), [0, 2, 3]);
        assert_eq!(row_starts(&[1.0; 4], 4, 1), [0, 0, 0, 0]);
        assert_eq!(row_starts(&[1.0; 4], 1, 4), [0]);
    }

    #[test]
    fn median_of_seven_with_mirrored_edges() {
        let row = [5.0, 1.0, 2.0, 3.0, 4.0, 9.0, 7.0, 0.0];
        let mut out = [0.0; 8];
        median_filter(&row, &mut out);
        // The first window is 3 2 1 5 1 2 3, the last 4 9 7 0 7 9 4.
        assert_eq!(out, [2.0, 2.0, 3.0, 4.0, 3.0, 4.0, 7.0, 7.0]);
        let short = [3.0, 1.0, 2.0];
        let mut out = [0.0; 3];
        median_filter(&short, &mut out);
        assert_eq!(out, short);
    }

    #[test]
    fn selection_network_finds_the_median_of_all_zero_one_inputs() {
        // By the zero-one principle these 128 inputs stand for all.
        for bits in 0u32..128 {
            let values = std::array::from_fn(|i| (bits >> i & 1) as f32);
            let wanted = f32::from(u8::from(bits.count_ones() >= 4));
            assert_eq!(median_of_seven(values), wanted, "{bits:07b}");
        }
    }

    /// Attention that looks at `looks[token]` with a bump of five frames.
    fn attention(looks: &[usize], frames: usize) -> Vec<f32> {
        let mut weights = vec![0.01; looks.len() * frames];
        for (row, look) in weights.chunks_exact_mut(frames).zip(looks) {
            for weight in &mut row[look.saturating_sub(8)..(look + 8).min(frames)] {
                *weight = 1.0;
            }
            let sum: f32 = row.iter().sum();
            row.iter_mut().for_each(|weight| *weight /= sum);
        }
        weights
    }

    #[test]
    fn tokens_begin_where_the_decoder_looks() {
        // Start token, no-timestamps, three text tokens, end.
        let looks = [0, 10, 40, 70, 90, 95];
        let one = attention(&looks, 120);
        let two = [&one[..], &one].concat();
        let attention = Attention::new(&two, 2, 6, 120).unwrap();
        let times = attention.token_times(1, 100);
        assert_eq!(times.len(), 4);
        assert_eq!(times[0], 0.0);
        for (time, wanted) in times[1..].iter().zip([0.5, 1.1, 1.6]) {
            assert!((time - wanted).abs() <= 0.2, "{times:?}");
        }
    }

    #[test]
    fn wrong_sizes_are_refused_and_empty_ones_answered() {
        let error = Attention::new(&[0.0; 5], 1, 2, 3).unwrap_err();
        assert!(error.to_string().ends_with("needs 6 weights, found 5"));
        let none = Attention::new(&[], 2, 4, 0).unwrap();
        assert_eq!(none.token_times(1, 100), [0.0, 0.0]);
        assert!(none.token_times(9, 100).is_empty());
        let flat = [0.1; 12];
        let flat = Attention::new(&flat, 1, 3, 4).unwrap();
        assert_eq!(flat.token_times(0, 4).len(), 2);
    }

    proptest! {
        #[test]
        fn times_never_go_back(
            weights in prop::collection::vec(
                prop_oneof![9 => 0.0f32..1.0, 1 => Just(f32::NAN)], 2 * 6 * 20),
            n_frames in 0usize..30,
        ) {
            let attention = Attention::new(&weights, 2, 6, 20).unwrap();
            let times = attention.token_times(2, n_frames);
            prop_assert_eq!(times.len(), 3);
            prop_assert!(times.is_sorted());
            prop_assert!(times[0] >= 0.0 && times[2] < n_frames.clamp(1, 20) as f64 / 50.0);
        }
    }
}
