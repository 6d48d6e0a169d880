//! From the time of a recording whose silence was cut out to the time of the whole one.

use crate::engine::Span;

/// A part that was kept.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    /// Where it starts in the cut recording.
    cut: f64,
    /// Where it lies in the whole one.
    kept: Span,
}

impl Piece {
    fn end(&self) -> f64 {
        self.cut + (self.kept.end - self.kept.start)
    }

    fn at(&self, cut: f64) -> f64 {
        (self.kept.start + (cut - self.cut)).clamp(self.kept.start, self.kept.end)
    }
}

/// The parts of a recording that were kept, in order, one behind the other in the cut one. All
/// times in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimeMap {
    pieces: Vec<Piece>,
}

impl TimeMap {
    /// Adds the next part that is kept. What begins before the part before it ended is cut short.
    pub fn keep(&mut self, part: Span) {
        let floor = self.pieces.last().map_or(0.0, |last| last.kept.end);
        let start = part.start.max(floor);
        let kept = Span {
            start,
            end: part.end.max(start),
        };
        let cut = self.length();
        self.pieces.push(Piece { cut, kept });
    }

    /// Length of the cut recording.
    pub fn length(&self) -> f64 {
        self.pieces.last().map_or(0.0, Piece::end)
    }

    /// The time at which something starts that starts at `cut`: on a seam, where the next part
    /// starts.
    pub fn start(&self, cut: f64) -> f64 {
        let next = self.pieces.partition_point(|piece| piece.cut <= cut);
        let piece = self.pieces.get(next.saturating_sub(1));
        piece.map_or(cut, |piece| piece.at(cut))
    }

    /// The time at which something ends that ends at `cut`: on a seam, where the part before ends.
    pub fn end(&self, cut: f64) -> f64 {
        let next = self.pieces.partition_point(|piece| piece.end() < cut);
        let piece = self.pieces.get(next).or(self.pieces.last());
        piece.map_or(cut, |piece| piece.at(cut))
    }

    /// Both ends of what lies from `start` to `end`.
    pub fn span(&self, start: f64, end: f64) -> Span {
        let first = self.start(start);
        Span {
            start: first,
            end: self.end(end).max(first),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(parts: &[(f64, f64)]) -> TimeMap {
        let mut map = TimeMap::default();
        for &(start, end) in parts {
            map.keep(Span { start, end });
        }
        map
    }

    #[test]
    fn times_inside_and_on_seams() {
        let map = map(&[(10.0, 12.0), (20.0, 21.0), (100.0, 105.0)]);
        assert_eq!(map.length(), 8.0);
        assert_eq!((map.start(0.5), map.end(0.5)), (10.5, 10.5));
        assert_eq!((map.start(2.0), map.end(2.0)), (20.0, 12.0));
        assert_eq!((map.start(3.0), map.end(3.0)), (100.0, 21.0));
        assert_eq!((map.start(0.0), map.end(8.0)), (10.0, 105.0));
        assert_eq!((map.start(9.0), map.end(-1.0)), (105.0, 10.0));
        let span = map.span(1.0, 3.0);
        assert_eq!((span.start, span.end), (11.0, 21.0));
        assert_eq!(map.span(2.0, 2.0).end, 20.0, "never before its start");
    }

    #[test]
    fn order_is_kept() {
        let map = map(&[(1.0, 2.0), (1.5, 3.0), (4.0, 4.0), (4.0, 6.0)]);
        let mut last = 0.0;
        for i in 0..=50 {
            let (start, end) = (map.start(f64::from(i) / 10.0), map.end(f64::from(i) / 10.0));
            assert!(
                end <= start && start >= last,
                "{i}: {end} {start} after {last}"
            );
            last = start;
        }
        assert_eq!(
            TimeMap::default().span(1.0, 2.0).end,
            2.0,
            "nothing was cut"
        );
    }
}
