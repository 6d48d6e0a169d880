//! Cutting a decoded window at its timestamps.

use std::ops::Range;

use crate::tokenizer::TIMESTAMP_STEP;

/// A segment within a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// Its tokens, timestamps included.
    pub tokens: Range<usize>,
    /// Seconds from the start of the window.
    pub start: f64,
    /// Seconds from the start of the window.
    pub end: f64,
}

/// A window cut into segments.
#[derive(Debug, Clone, PartialEq)]
pub struct Cut {
    /// The segments in order.
    pub pieces: Vec<Piece>,
    /// Seconds of the window that they account for: where the next window starts.
    pub seconds: f64,
}

/// Cuts `tokens` of a window with `content` seconds of audio, where ids from `begin` on are
/// timestamps.
///
/// Two timestamps in a row end one segment and start the next. If the text breaks off after such
/// a pair, the rest of the window is heard again; a single timestamp at the end says that nothing
/// comes after it.
pub fn cut(tokens: &[u32], begin: u32, content: f64) -> Cut {
    let is_time = |i: usize| tokens[i] >= begin;
    let seconds = |i: usize| (f64::from(tokens[i] - begin) * TIMESTAMP_STEP).min(content);
    let n = tokens.len();
    let closed = n >= 2 && is_time(n - 1) && !is_time(n - 2);
    let mut ends: Vec<usize> = (1..n).filter(|&i| is_time(i) && is_time(i - 1)).collect();
    if ends.is_empty() {
        let last = (0..n).rfind(|&i| is_time(i) && tokens[i] != begin);
        let first = (n > 0 && is_time(0)).then(|| seconds(0));
        let piece = Piece {
            tokens: 0..n,
            start: first.unwrap_or(0.0),
            end: match last {
                Some(i) if i > 0 => seconds(i),
                _ => content,
            },
        };
        return Cut {
            pieces: vec![piece],
            seconds: content,
        };
    }
    if closed {
        ends.push(n);
    }
    let mut from = 0;
    let pieces = ends
        .iter()
        .map(|&end| {
            let piece = Piece {
                tokens: from..end,
                start: if is_time(from) { seconds(from) } else { 0.0 },
                end: if is_time(end - 1) {
                    seconds(end - 1)
                } else {
                    content
                },
            };
            from = end;
            piece
        })
        .collect();
    let last = ends.last().copied().unwrap_or(n);
    Cut {
        pieces,
        seconds: if closed || !is_time(last - 1) {
            content
        } else {
            seconds(last - 1)
        },
    }
}

/// Cuts a text that broke off in a loop: what comes before its last timestamp is kept, the audio
/// after that is heard again. Without such a timestamp nothing can be saved, and [`cut`] decides.
pub fn cut_broken(tokens: &[u32], begin: u32, content: f64) -> Cut {
    let last = (1..tokens.len()).rfind(|&i| tokens[i] > begin && tokens[i - 1] < begin);
    match last {
        Some(last) => Cut {
            seconds: (f64::from(tokens[last] - begin) * TIMESTAMP_STEP).min(content),
            ..cut(&tokens[..=last], begin, content)
        },
        None => cut(tokens, begin, content),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const B: u32 = 1000;

    fn times(cut: &Cut) -> Vec<(Range<usize>, f64, f64)> {
        cut.pieces
            .iter()
            .map(|p| (p.tokens.clone(), p.start, p.end))
            .collect()
    }

    #[test]
    fn pairs_cut_and_an_open_end_is_heard_again() {
        // <0.00> a <1.00><1.00> b <2.00><2.00> c
        let tokens = [B, 1, B + 50, B + 50, 2, B + 100, B + 100, 3];
        let cut = cut(&tokens, B, 30.0);
        assert_eq!(times(&cut), [(0..3, 0.0, 1.0), (3..6, 1.0, 2.0)]);
        assert_eq!(cut.seconds, 2.0);
    }

    #[test]
    fn a_single_last_timestamp_closes_the_window() {
        let tokens = [B, 1, B + 50, B + 50, 2, B + 100];
        let cut = cut(&tokens, B, 30.0);
        assert_eq!(times(&cut), [(0..3, 0.0, 1.0), (3..6, 1.0, 2.0)]);
        assert_eq!(cut.seconds, 30.0);
    }

    #[test]
    fn one_segment_and_no_timestamps() {
        let one = cut(&[B + 10, 1, 2, B + 60], B, 30.0);
        assert_eq!(times(&one), [(0..4, 0.2, 1.2)]);
        assert_eq!(one.seconds, 30.0);
        let none = cut(&[1, 2], B, 7.5);
        assert_eq!(times(&none), [(0..2, 0.0, 7.5)]);
    }

    #[test]
    fn a_loop_is_heard_again_from_the_last_timestamp() {
        let tokens = [B, 1, B + 50, B + 50, 2, 3, 2, 3];
        let broken = cut_broken(&tokens, B, 30.0);
        assert_eq!(times(&broken), [(0..3, 0.0, 1.0)]);
        assert_eq!(broken.seconds, 1.0);
        assert_eq!(cut_broken(&[B, 2, 3], B, 30.0), cut(&[B, 2, 3], B, 30.0));
    }

    #[test]
    fn times_never_pass_the_content() {
        let late = cut(&[B, 1, B + 1500], B, 2.5);
        assert_eq!(times(&late), [(0..3, 0.0, 2.5)]);
    }
}
