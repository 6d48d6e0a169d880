use super::*;
use crate::alignment::Attention;
use crate::tokenizer::tests::english;
use proptest::prelude::*;

/// Times words whose tokens are spelled in `texts`, one segment each; `times` and
/// `probabilities` are per word and spread over its tokens.
fn timed(
    texts: &[&str],
    spans: &[(f64, f64)],
    word_times: &[f64],
    last_speech: f64,
) -> Vec<TimedSegment> {
    let tokenizer = english();
    let tokens: Vec<Vec<u32>> = texts
        .iter()
        .map(|text| tokenizer.encode(text).unwrap())
        .collect();
    let mut times = Vec::new();
    for (word, start) in tokens
        .iter()
        .flat_map(|tokens| split_words(&tokenizer, tokens, "en"))
        .zip(word_times)
    {
        times.extend(std::iter::repeat_n(*start, word.tokens.len()));
    }
    times.push(*word_times.last().unwrap());
    let probabilities: Vec<f32> = (0..times.len() - 1)
        .map(|i| 0.5 + 0.01 * i as f32)
        .collect();
    let segments: Vec<Segment> = tokens
        .iter()
        .zip(spans)
        .map(|(tokens, (start, end))| Segment {
            start: *start,
            end: *end,
            tokens,
        })
        .collect();
    time_words(
        &tokenizer,
        "en",
        &segments,
        &Alignment {
            times: &times,
            probabilities: &probabilities,
            offset: 10.0,
            duration: 40.0,
            last_speech,
        },
    )
}

fn texts(segment: &TimedSegment) -> Vec<&str> {
    segment
        .words
        .iter()
        .map(|word| word.text.as_str())
        .collect()
}

fn spans(segment: &TimedSegment) -> Vec<(f64, f64)> {
    segment
        .words
        .iter()
        .map(|word| (word.start, word.end))
        .collect()
}

#[test]
fn words_take_their_punctuation_and_probability() {
    let segments = timed(
        &[" He said - (yes)."],
        &[(10.0, 12.0)],
        // He | said | - | (yes | ) | . | end
        &[0.2, 0.5, 0.9, 1.0, 1.4, 1.5, 1.6],
        10.0,
    );
    assert_eq!(texts(&segments[0]), [" He", " said", " - (yes)."]);
    assert_eq!(
        spans(&segments[0]),
        [(10.2, 10.5), (10.5, 10.9), (11.0, 11.4)]
    );
    // " He" is " H" + "e": tokens 0 and 1.
    assert!((segments[0].words[0].probability - 0.505).abs() < 1e-6);
    assert_eq!((segments[0].start, segments[0].end), (10.2, 11.4));
    let n_tokens: usize = segments[0].words.iter().map(|word| word.n_tokens).sum();
    assert_eq!(
        n_tokens,
        english().encode(" He said - (yes).").unwrap().len()
    );
}

#[test]
fn words_stay_in_their_segments() {
    let segments = timed(
        &[" one two", " three"],
        &[(10.0, 10.8), (10.8, 11.5)],
        &[0.0, 0.4, 0.8, 1.2],
        10.0,
    );
    assert_eq!(texts(&segments[0]), [" one", " two"]);
    assert_eq!(texts(&segments[1]), [" three"]);
    assert_eq!(spans(&segments[1]), [(10.8, 11.2)]);
}

#[test]
fn a_word_does_not_swallow_the_pause_between_sentences() {
    // "b" takes 6 s of silence after the full stop; the median is 0.4 s.
    let segments = timed(
        &[" a a a. b c"],
        &[(10.0, 19.0)],
        &[0.0, 0.4, 0.8, 1.2, 1.3, 7.3, 7.7],
        10.0,
    );
    assert_eq!(texts(&segments[0]), [" a", " a", " a.", " b", " c"]);
    assert_eq!(spans(&segments[0])[3], (16.5, 17.3));
}

#[test]
fn leading_silence_is_not_the_first_word() {
    let segments = timed(&[" a b c"], &[(15.0, 16.4)], &[0.0, 5.4, 5.8, 6.2], 2.0);
    let spans = spans(&segments[0]);
    assert_eq!(spans[0], (14.6, 15.4));
    assert_eq!((segments[0].start, spans[2].1), (14.6, 16.2));
    // Without words the timestamps stay.
    let empty = timed(&["", " a"], &[(10.0, 11.0), (11.0, 12.0)], &[1.0, 1.5], 0.0);
    assert_eq!(
        (empty[0].start, empty[0].end, empty[0].words.len()),
        (10.0, 11.0, 0)
    );
}

#[test]
fn missing_times_and_wild_ones_are_brought_into_order() {
    let tokenizer = english();
    let tokens = tokenizer.encode(" a b c").unwrap();
    let segment = Segment {
        start: 50.0,
        end: f64::NAN,
        tokens: &tokens,
    };
    let segments = time_words(
        &tokenizer,
        "en",
        &[segment],
        &Alignment {
            times: &[900.0, -5.0],
            probabilities: &[],
            offset: 3.0,
            duration: 4.0,
            last_speech: 0.0,
        },
    );
    in_order(&segments, 4.0).unwrap();
    assert_eq!(segments[0].words.len(), 3);
    assert_eq!(segments[0].words[0].probability, 0.0);
}

/// 0 <= start <= end <= duration; starts never decrease; words lie in their segment.
fn in_order(segments: &[TimedSegment], duration: f64) -> Result<(), TestCaseError> {
    let mut floor = 0.0;
    for segment in segments {
        prop_assert!(floor <= segment.start && segment.start <= segment.end);
        prop_assert!(segment.end <= duration);
        floor = segment.start;
        for word in &segment.words {
            prop_assert!(
                floor <= word.start && word.start <= word.end,
                "{:?}",
                segments
            );
            prop_assert!(word.end <= segment.end);
            prop_assert!((0.0..=1.0).contains(&word.probability));
            floor = word.start;
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn times_are_in_order_for_any_attention_and_tokens(
        parts in prop::collection::vec(prop::collection::vec(0u32..290, 0..12), 0..4),
        spans in prop::collection::vec((0.0f64..40.0, -1.0f64..12.0), 4),
        seed in prop::collection::vec(0.0f32..1.0, 97),
        frames in 0usize..160,
        (offset, duration, last_speech) in (0.0f64..30.0, 0.0f64..40.0, 0.0f64..30.0),
        language in prop_oneof![Just("en"), Just("ja")],
    ) {
        let n_text: usize = parts.iter().map(Vec::len).sum();
        let tokens = n_text + 4;
        let weights: Vec<f32> = (0..2 * tokens * frames)
            .map(|i| (seed[i % 97] + seed[i * 31 % 97]) / 2.0)
            .collect();
        let attention = Attention::new(&weights, 2, tokens, frames).unwrap();
        let times = attention.token_times(2, frames);
        prop_assert_eq!(times.len(), n_text + 1);
        let segments: Vec<Segment> = parts
            .iter()
            .zip(&spans)
            .map(|(tokens, (start, length))| Segment { start: *start, end: start + length, tokens })
            .collect();
        let probabilities = &vec![0.5; n_text];
        let timed = time_words(&english(), language, &segments, &Alignment {
            times: &times, probabilities, offset, duration, last_speech,
        });
        in_order(&timed, duration)?;
        for (segment, tokens) in timed.iter().zip(&parts) {
            let n_tokens: usize = segment.words.iter().map(|word| word.n_tokens).sum();
            prop_assert_eq!(n_tokens, tokens.len());
            let text: String = segment.words.iter().map(|word| word.text.as_str()).collect();
            prop_assert_eq!(text, english().decode(tokens));
        }
    }
}
