//! Shapes: the reader's order outside, ggml's reversed order inside.

use std::fmt;

/// Up to four extents in the reader's order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    extents: [usize; 4],
    rank: usize,
}

impl Shape {
    /// `None` for more than four axes, an extent of zero, or more elements than ggml can count.
    pub(crate) fn new(extents: &[usize]) -> Option<Shape> {
        if extents.len() > 4 || extents.contains(&0) {
            return None;
        }
        let count = extents.iter().try_fold(1usize, |n, &e| n.checked_mul(e))?;
        // Leaves room for the largest element (8 bytes) in ggml's signed sizes.
        if count > (i64::MAX / 16) as usize {
            return None;
        }
        let mut all = [1; 4];
        all[..extents.len()].copy_from_slice(extents);
        Some(Shape {
            extents: all,
            rank: extents.len(),
        })
    }

    /// Whether ggml can count the elements of these extents (none of them zero).
    pub(crate) fn countable(extents: &[i64]) -> bool {
        let all: Option<Vec<usize>> = extents.iter().map(|&e| e.try_into().ok()).collect();
        all.is_some_and(|all| Shape::new(&all).is_some())
    }

    /// From ggml's reversed extents.
    pub(crate) fn from_ggml(ne: &[i64; 4], rank: usize) -> Shape {
        let mut extents = [1; 4];
        for (axis, extent) in extents.iter_mut().take(rank).enumerate() {
            *extent = ne[rank - 1 - axis] as usize;
        }
        Shape { extents, rank }
    }

    /// ggml's reversed extents, ones behind.
    pub(crate) fn ggml(&self) -> [i64; 4] {
        let mut ne = [1; 4];
        for axis in 0..self.rank {
            ne[self.rank - 1 - axis] = self.extents[axis] as i64;
        }
        ne
    }

    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    pub(crate) fn as_slice(&self) -> &[usize] {
        &self.extents[..self.rank]
    }

    pub(crate) fn count(&self) -> usize {
        self.as_slice().iter().product()
    }

    /// Whether `small` can be broadcast to `self` as numpy does: aligned at the last axis,
    /// each extent equal or one.
    pub(crate) fn takes(&self, small: &Shape) -> bool {
        let (a, b) = (self.ggml(), small.ggml());
        small.rank <= self.rank && (0..4).all(|i| b[i] == a[i] || b[i] == 1)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_slice())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reverses_and_keeps_rank() {
        let shape = Shape::new(&[2, 3, 5]).unwrap();
        assert_eq!(shape.ggml(), [5, 3, 2, 1]);
        assert_eq!(Shape::from_ggml(&[5, 3, 2, 1], 3), shape);
        assert_eq!(Shape::from_ggml(&[5, 1, 1, 1], 2).as_slice(), [1, 5]);
    }

    #[test]
    fn refuses_what_ggml_cannot_hold() {
        assert!(Shape::new(&[1, 1, 1, 1, 1]).is_none());
        assert!(Shape::new(&[3, 0]).is_none());
        assert!(Shape::new(&[usize::MAX, 2]).is_none());
        assert!(Shape::countable(&[1 << 20, 1 << 20, 1 << 10]));
        assert!(!Shape::countable(&[1 << 31, 1 << 31]));
        assert!(!Shape::countable(&[3, -1]));
    }

    #[test]
    fn broadcasts_like_numpy() {
        let big = Shape::new(&[2, 3, 4]).unwrap();
        for small in [&[4][..], &[1], &[3, 1], &[2, 1, 4], &[]] {
            assert!(big.takes(&Shape::new(small).unwrap()), "{small:?}");
        }
        for small in [&[2][..], &[2, 3], &[3, 3, 4], &[1, 2, 3, 4]] {
            assert!(!big.takes(&Shape::new(small).unwrap()), "{small:?}");
        }
    }
}
