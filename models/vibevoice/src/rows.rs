//! Rows of the pool of keys and values, and who has which.

use audiocpp::graph::GraphError;

/// Rows in the order in which they are used or given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    rows: Vec<usize>,
    /// One more than the largest that was ever in here.
    end: usize,
}

impl Rows {
    /// All rows below `end` but the first, which padding is written to; the smallest is taken first.
    pub fn up_to(end: usize) -> Rows {
        Rows {
            rows: (1..end).rev().collect(),
            end,
        }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// In the order in which they were taken.
    pub fn as_slice(&self) -> &[usize] {
        &self.rows
    }

    /// One more than the largest row that was ever taken.
    pub fn end(&self) -> usize {
        self.end
    }

    /// Takes a row of `free`.
    ///
    /// # Errors
    /// [`GraphError::Tensor`] if there is none.
    pub fn take_from(&mut self, free: &mut Rows) -> Result<(), GraphError> {
        let row = free.rows.pop().ok_or_else(|| GraphError::Tensor {
            name: "keys".into(),
            problem: "the pool of keys and values is full".into(),
        })?;
        self.rows.push(row);
        self.end = self.end.max(row + 1);
        Ok(())
    }

    /// Takes back all rows of `from`.
    pub fn give(&mut self, from: &mut Rows) {
        self.rows.extend(from.rows.drain(..).rev());
    }

    /// Takes back the last row of `from`.
    pub fn give_last(&mut self, from: &mut Rows) {
        self.rows.extend(from.rows.pop());
    }
}

/// The size of a pool that holds `rows` rows: of few sizes, so that few graphs are made, each a
/// multiple of what fused attention wants.
pub fn pool(rows: usize) -> usize {
    let step = match rows {
        0..=2048 => 256,
        2049..=8192 => 1024,
        _ => 4096,
    };
    rows.max(1).next_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_round() {
        let mut free = Rows::up_to(5);
        let (mut a, mut b) = (Rows::default(), Rows::default());
        for _ in 0..2 {
            a.take_from(&mut free).unwrap();
            b.take_from(&mut free).unwrap();
        }
        assert_eq!((a.as_slice(), b.as_slice()), (&[1, 3][..], &[2, 4][..]));
        assert!(a.take_from(&mut free).is_err());
        free.give_last(&mut b);
        a.take_from(&mut free).unwrap();
        assert_eq!(a.as_slice(), [1, 3, 4]);
        free.give(&mut b);
        assert!(b.is_empty());
        b.take_from(&mut free).unwrap();
        assert_eq!((b.as_slice(), b.end(), b.len()), (&[2][..], 5, 1));
        assert_eq!([1, 257, 2049, 9000].map(pool), [256, 512, 3072, 12288]);
    }
}
