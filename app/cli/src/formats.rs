//! The lists that `--words-out` and `--segments-out` write.

use audiocpp::engine::Transcript;
use serde_json::json;

/// Every word with its times, as a JSON list.
pub fn words_json(transcript: &Transcript) -> String {
    let words: Vec<_> = transcript.words().collect();
    format!("{:#}\n", json!(words))
}

/// Every segment with its times, as a JSON list.
pub fn segments_json(transcript: &Transcript) -> String {
    format!("{:#}\n", json!(transcript.segments))
}
