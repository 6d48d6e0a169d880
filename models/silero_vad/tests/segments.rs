//! The engine's segmenter beside silero-vad's own function, on the same probabilities
//! (`tests/reference/silero_reference.py`).

use std::{collections::BTreeMap, path::Path};

use audiocpp::engine::{Segmenter, SpeechRules};
use audiocpp_testing::expected::Expected;
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    signal: String,
    rate: u32,
    samples: u64,
    rules: BTreeMap<String, f64>,
    spans: Vec<[u64; 2]>,
}

/// The package's settings under our names.
fn rules(given: &BTreeMap<String, f64>) -> SpeechRules {
    let mut rules = SpeechRules::default();
    for (name, value) in given {
        match name.as_str() {
            "threshold" => rules.threshold = *value,
            "neg_threshold" => rules.neg_threshold = Some(*value),
            "min_speech_duration_ms" => rules.min_speech = value / 1000.0,
            "min_silence_duration_ms" => rules.min_silence = value / 1000.0,
            "speech_pad_ms" => rules.padding = value / 1000.0,
            "max_speech_duration_s" => rules.max_speech = Some(*value),
            "min_silence_at_max_speech" => rules.min_silence_at_cut = value / 1000.0,
            other => panic!("no setting {other}"),
        }
    }
    rules
}

#[test]
fn the_same_probabilities_give_the_same_segments() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/silero_vad");
    let json = std::fs::read(data.join("segments.json")).unwrap();
    let cases: Vec<Case> = serde_json::from_slice(&json).unwrap();
    let spoken = Expected::read(data.join("probabilities.safetensors"));
    let walk = Expected::read(data.join("walk.safetensors"));
    assert_eq!(cases.len(), 36);
    for case in cases {
        let from = if case.signal == "walk" {
            &walk
        } else {
            &spoken
        };
        let rules = rules(&case.rules);
        rules.check().unwrap();
        let frame = if case.rate == 16_000 { 512 } else { 256 };
        let mut segmenter = Segmenter::new(&rules, case.rate, frame);
        let mut found = Vec::new();
        let probabilities = from.f32(&case.signal);
        for (i, probability) in probabilities.iter().enumerate() {
            segmenter.push(*probability);
            // What is final is taken as it comes; but the last frame reaches beyond the end.
            if i + 1 < probabilities.len() {
                found.extend(std::iter::from_fn(|| segmenter.next_span()));
            }
        }
        segmenter.finish(case.samples);
        found.extend(std::iter::from_fn(|| segmenter.next_span()));
        let found: Vec<[u64; 2]> = found.iter().map(|span| [span.start, span.end]).collect();
        assert_eq!(found, case.spans, "{} {:?}", case.signal, case.rules);
    }
}
