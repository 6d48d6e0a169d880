//! Finds a decoder that repeats itself.
//!
//! The rule is structural, without a list of phrases: the same run of text tokens back to back,
//! often enough that nobody says it. "Very, very, very" and a chorus line sung three times pass.

use std::ops::Range;

/// A run of tokens repeated back to back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The second and all later copies, as a range of the tokens that were given: what to cut.
    pub repeats: Range<usize>,
    /// Text tokens in one copy.
    pub period: usize,
    /// Complete copies, the first one included.
    pub copies: usize,
}

/// Copies of a short run that a speaker may still produce, and of a long one.
const MIN_COPIES: usize = 4;
const MIN_COPIES_LONG: usize = 3;
/// Text tokens from which a run is long: two short sentences.
const LONG_PERIOD: usize = 12;
/// Repeated tokens that a loop must have: a single word may be said a dozen times.
const MIN_REPEATED: usize = 12;

/// Looks for the first loop in decoded `tokens`. Control tokens and timestamps (ids from `eot`
/// on) are passed over, so that a sentence repeated segment by segment is found too.
pub fn find_loop(tokens: &[u32], eot: u32) -> Option<Loop> {
    let text: Vec<usize> = (0..tokens.len()).filter(|i| tokens[*i] < eot).collect();
    let same = |i: usize, j: usize| tokens[text[i]] == tokens[text[j]];
    let mut found: Option<(usize, usize, usize)> = None;
    for period in 1..=text.len() / MIN_COPIES_LONG {
        let mut matched = 0;
        for i in period..=text.len() {
            if i < text.len() && same(i, i - period) {
                matched += 1;
                continue;
            }
            let start = i - matched - period;
            if is_loop(period, matched) && found.is_none_or(|(first, ..)| start < first) {
                found = Some((start, period, matched));
            }
            matched = 0;
        }
    }
    let (start, period, matched) = found?;
    let first_repeat = start + period;
    // Timestamps before the second copy stay with the first, those after the last copy go.
    let end = text
        .get(first_repeat + matched)
        .map_or(tokens.len(), |next| {
            text[first_repeat + matched - 1].max(next - 1) + 1
        });
    Some(Loop {
        repeats: text[first_repeat]..end,
        period,
        copies: matched / period + 1,
    })
}

/// Whether a run of `period` tokens followed by `matched` repeated ones is a loop.
fn is_loop(period: usize, matched: usize) -> bool {
    let copies = matched / period + 1;
    let enough = match period >= LONG_PERIOD {
        true => MIN_COPIES_LONG,
        false => MIN_COPIES,
    };
    copies >= enough && matched >= MIN_REPEATED
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EOT: u32 = 50257;

    fn repeat(run: &[u32], copies: usize) -> Vec<u32> {
        run.repeat(copies)
    }

    #[test]
    fn speech_is_left_alone() {
        // very very very; no, no, no, no; ha x 10; a chorus line of 9 tokens sung three times.
        let chorus: Vec<u32> = (100..109).collect();
        for tokens in [
            [&[7, 8][..], &repeat(&[588], 3), &[9]].concat(),
            repeat(&[572, 11], 4),
            repeat(&[324], 10),
            [&[1, 2, 3][..], &repeat(&chorus, 3), &[4]].concat(),
            (0..200).collect(),
            Vec::new(),
            vec![5],
        ] {
            assert_eq!(find_loop(&tokens, EOT), None, "{tokens:?}");
        }
    }

    #[test]
    fn loops_are_cut_after_their_first_copy() {
        let phrase = [1044, 345, 13];
        let tokens = [&[10, 11][..], &repeat(&phrase, 20), &phrase[..2]].concat();
        assert_eq!(
            find_loop(&tokens, EOT),
            Some(Loop {
                repeats: 5..64,
                period: 3,
                copies: 20
            })
        );
        let tokens = [&repeat(&[314], 40)[..], &[13, 50]].concat();
        let found = find_loop(&tokens, EOT).unwrap();
        assert_eq!((found.repeats, found.period), (1..40, 1));
        let sentence: Vec<u32> = (200..214).collect();
        assert_eq!(
            find_loop(&repeat(&sentence, 3), EOT).unwrap().repeats,
            14..42
        );
    }

    #[test]
    fn a_sentence_repeated_with_moving_timestamps_is_a_loop() {
        let sentence = [400, 401, 402, 403, 404];
        let mut tokens = vec![50364];
        for i in 0..6 {
            tokens.extend(sentence);
            tokens.extend([50400 + 2 * i, 50400 + 2 * i]);
        }
        tokens.extend([7, 8, 9]);
        let found = find_loop(&tokens, EOT).unwrap();
        assert_eq!((found.period, found.copies), (5, 6));
        // The first copy with its end and the next start stay.
        assert_eq!(found.repeats, 8..43);
        tokens.drain(found.repeats);
        assert_eq!(
            tokens,
            [50364, 400, 401, 402, 403, 404, 50400, 50400, 7, 8, 9]
        );
    }

    proptest! {
        #[test]
        fn cutting_leaves_no_loop_of_that_kind(
            head in prop::collection::vec(0u32..50, 0..30),
            run in prop::collection::vec(50u32..99, 1..20),
            copies in 13usize..20,
        ) {
            let mut tokens = [head.clone(), run.repeat(copies)].concat();
            let found = find_loop(&tokens, EOT).expect("a loop");
            prop_assert!(found.repeats.end <= tokens.len());
            prop_assert!(found.repeats.start > 0);
            while let Some(found) = find_loop(&tokens, EOT) {
                let before = tokens.len();
                tokens.drain(found.repeats);
                prop_assert!(tokens.len() < before);
            }
            prop_assert!(tokens.len() >= head.len().min(1));
            prop_assert!(tokens.len() <= 3 * (head.len() + run.len()) + 12);
        }
    }
}
