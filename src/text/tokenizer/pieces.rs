//! The bytes of every token, end to end in one allocation.

use std::collections::BTreeMap;

/// Ids and the bytes they stand for. Ids may have gaps of any size.
pub(super) struct Pieces {
    bytes: Vec<u8>,
    /// Ids in order, each with the place where its bytes end.
    ends: Vec<(u32, usize)>,
}

impl Pieces {
    /// Of several entries for an id, the last counts.
    pub fn new(entries: impl Iterator<Item = (u32, Vec<u8>)>) -> Pieces {
        let sorted: BTreeMap<u32, Vec<u8>> = entries.collect();
        let mut bytes = Vec::with_capacity(sorted.values().map(Vec::len).sum());
        let mut ends = Vec::with_capacity(sorted.len());
        for (id, piece) in sorted {
            bytes.extend(piece);
            ends.push((id, bytes.len()));
        }
        Pieces { bytes, ends }
    }

    /// The bytes that `id` stands for.
    pub fn get(&self, id: u32) -> Option<&[u8]> {
        let at = self.ends.binary_search_by_key(&id, |entry| entry.0).ok()?;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before].1);
        Some(&self.bytes[start..self.ends[at].1])
    }

    /// The highest id.
    pub fn last(&self) -> Option<u32> {
        self.ends.last().map(|entry| entry.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_with_gaps() {
        let entries = [
            (7, "seven"),
            (0, "zero"),
            (u32::MAX, ""),
            (7, "seven again"),
        ];
        let pieces = Pieces::new(entries.map(|(id, text)| (id, text.into())).into_iter());
        assert_eq!(pieces.get(0), Some(&b"zero"[..]));
        assert_eq!(pieces.get(7), Some(&b"seven again"[..]));
        assert_eq!(pieces.get(u32::MAX), Some(&b""[..]));
        assert_eq!(pieces.get(6), None);
        assert_eq!(pieces.last(), Some(u32::MAX));
    }
}
