//! Texts and how they are spoken, from the tables in `tests/data/text`.

use std::collections::BTreeMap;

use audiocpp::text::{normalize::Normalizer, sentences::sentences};
use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

const NORMALIZE: &str = include_str!("data/text/normalize.tsv");
const SENTENCES: &str = include_str!("data/text/sentences.tsv");

fn cases(table: &str) -> impl Iterator<Item = Vec<&str>> {
    let lines = table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "));
    lines.map(|line| line.split('\t').collect())
}

#[test]
fn texts_are_written_out_as_they_are_spoken() {
    let mut wrong = String::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for case in cases(NORMALIZE) {
        let [language, text, wanted] = case[..] else {
            panic!("{case:?} has not three columns");
        };
        *counts.entry(language).or_default() += 1;
        let spoken = Normalizer::new(language).normalize(text, 0);
        if spoken.text() != wanted {
            wrong.push_str(&format!(
                "{language} {text}\n   is {}\n  not {wanted}\n",
                spoken.text()
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(counts.values().sum::<usize>() >= 150, "{counts:?}");
}

#[test]
fn every_spoken_word_leads_back_to_its_place() {
    for case in cases(NORMALIZE) {
        let (language, text) = (case[0], case[1]);
        let shift = 7;
        let spoken = Normalizer::new(language).normalize(text, shift);
        let mut last = shift;
        for (at, word) in spoken.text().split_word_bound_indices() {
            let from = spoken.original(at..at + word.len());
            let inside =
                from.start >= shift && from.end <= shift + text.len() && from.start <= from.end;
            assert!(inside, "{text}: {word} leads to {from:?}");
            assert!(
                text.get(from.start - shift..from.end - shift).is_some(),
                "{text}: {from:?}"
            );
            assert!(from.end >= last, "{text}: {word} leads back to {from:?}");
            last = from.end;
        }
    }
}

#[test]
fn sentences_end_where_they_should() {
    let mut wrong = String::new();
    for case in cases(SENTENCES) {
        let [language, marked] = case[..] else {
            panic!("{case:?} has not two columns");
        };
        let unspaced = matches!(language, "ja" | "zh");
        let text = marked.replace('|', if unspaced { "" } else { " " });
        let found = sentences(&text, language);
        let shown: Vec<&str> = found
            .iter()
            .map(|sentence| &text[sentence.text.clone()])
            .collect();
        if shown.join("|") != marked {
            wrong.push_str(&format!("{language} {}\n", shown.join("|")));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn paragraphs_lists_and_headings_part_sentences() {
    let text = "# A heading\nOne line\ngoes on. Two.\n\nNext paragraph\n- item one\n- item two\n1. first\n";
    let shown: Vec<(&str, bool)> = sentences(text, "en")
        .into_iter()
        .map(|sentence| (&text[sentence.text], sentence.ends_paragraph))
        .collect();
    let wanted = [
        ("# A heading", true),
        ("One line\ngoes on.", false),
        ("Two.", true),
        ("Next paragraph", true),
        ("- item one", true),
        ("- item two", true),
        ("1. first", true),
    ];
    assert_eq!(shown, wanted);
}

/// Every byte range that a spoken text can be asked for leads to a range of the original.
fn check_map(language: &str, text: &str) -> Result<(), TestCaseError> {
    let spoken = Normalizer::new(language).normalize(text, 0);
    let mut last = 0;
    for (at, c) in spoken.text().char_indices() {
        let from = spoken.original(at..at + c.len_utf8());
        prop_assert!(
            text.get(from.clone()).is_some(),
            "{language} {text:?}: {at} leads to {from:?}"
        );
        prop_assert!(
            from.start >= last || from.end >= last,
            "{language} {text:?}: {from:?} behind {last}"
        );
        last = from.start;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    #[test]
    fn any_text_is_written_out_and_leads_back(
        language in prop::sample::select(vec!["en", "de", "fr", "es", "it", "pt", "nl", "xx"]),
        text in "\\PC{0,60}|[0-9a-zA-Z.,:;/$€%&@#+'\"() \n–-]{0,80}",
    ) {
        check_map(language, &text)?;
        let mut end = 0;
        for sentence in sentences(&text, language) {
            prop_assert!(sentence.text.start >= end && sentence.text.start < sentence.text.end);
            prop_assert!(text.get(sentence.text.clone()).is_some());
            end = sentence.text.end;
        }
    }
}
