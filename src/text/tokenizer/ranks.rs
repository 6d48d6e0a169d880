//! Merge rules out of a vocabulary whose ids are merge ranks.

use std::collections::HashMap;

/// Recovers the BPE merges of a rank-ordered vocabulary: token `id` was made by joining two
/// older tokens, so splitting its bytes with the ranks below `id` leaves exactly those two.
///
/// Single bytes and the tokens that older ones cannot make in one step (added strings, an empty
/// filler) have no merge.
pub(super) fn merges(pieces: &[Vec<u8>]) -> Vec<(usize, usize)> {
    let mut ranks: HashMap<&[u8], usize> = HashMap::with_capacity(pieces.len());
    for (id, piece) in pieces.iter().enumerate() {
        ranks.entry(piece).or_insert(id);
    }
    let pair_of = |(id, piece): (usize, &Vec<u8>)| {
        if piece.len() < 2 {
            return None;
        }
        match split(piece, id, &ranks)[..] {
            [left, right] => Some((*ranks.get(left)?, *ranks.get(right)?)),
            _ => None,
        }
    };
    pieces.iter().enumerate().filter_map(pair_of).collect()
}

/// Splits `piece` by joining, again and again, the neighbours whose join has the lowest rank
/// below `limit`.
fn split<'a>(piece: &'a [u8], limit: usize, ranks: &HashMap<&[u8], usize>) -> Vec<&'a [u8]> {
    // Offsets where parts begin, and the end.
    let mut bounds: Vec<usize> = (0..=piece.len()).collect();
    loop {
        let best = (0..bounds.len().saturating_sub(2))
            .filter_map(|i| {
                let rank = *ranks.get(&piece[bounds[i]..bounds[i + 2]])?;
                (rank < limit).then_some((rank, i))
            })
            .min();
        match best {
            Some((_, i)) => bounds.remove(i + 1),
            None => break,
        };
    }
    bounds
        .windows(2)
        .map(|bound| &piece[bound[0]..bound[1]])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_pair_behind_each_token() {
        let pieces: Vec<Vec<u8>> = ["a", "b", "c", "ab", "abc", "cab", "abcab", ""]
            .iter()
            .map(|piece| piece.as_bytes().to_vec())
            .collect();
        // abcab: ab c ab -> abc ab (rank 4 before rank 5).
        assert_eq!(merges(&pieces), [(0, 1), (3, 2), (2, 3), (4, 3)]);
    }

    #[test]
    fn a_token_that_older_ones_cannot_make_has_no_merge() {
        let pieces: Vec<Vec<u8>> = ["a", "b", "aba"]
            .iter()
            .map(|piece| piece.as_bytes().to_vec())
            .collect();
        assert_eq!(merges(&pieces), []);
    }
}
