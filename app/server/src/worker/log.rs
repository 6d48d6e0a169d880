//! What workers print, in the server's log.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::io::{AsyncRead, AsyncReadExt};

/// Longer lines are cut.
const MAX_LINE: usize = 8192;
/// Lines that are kept to explain the end of a worker.
const KEPT: usize = 8;

/// The last lines that a worker printed.
#[derive(Clone, Debug, Default)]
pub struct LastWords(Arc<Mutex<VecDeque<String>>>);

impl LastWords {
    fn push(&self, line: &str) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT {
            lines.pop_front();
        }
        lines.push_back(line.to_owned());
    }

    /// The lines, joined.
    pub fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        lines.join(" | ")
    }
}

/// Copies the lines of a worker's output to the log until it ends.
pub async fn copy(mut output: impl AsyncRead + Unpin, model: String, words: LastWords) {
    let (mut block, mut line) = ([0; 4096], Vec::new());
    // The pipe is read to its end whatever is in it: a worker must never wait to print.
    while let Ok(count @ 1..) = output.read(&mut block).await {
        for part in block[..count].split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_LINE.saturating_sub(line.len());
            line.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                tell(&model, &line, &words);
                line.clear();
            }
        }
    }
    tell(&model, &line, &words);
}

fn tell(model: &str, line: &[u8], words: &LastWords) {
    let line = String::from_utf8_lossy(line);
    if !line.trim().is_empty() {
        words.push(line.trim());
        relay(model, &line);
    }
}

/// One line at the level that the worker gave it; what libraries print has none.
fn relay(model: &str, line: &str) {
    let line = line.trim();
    let (level, text) = line.split_once(' ').unwrap_or(("", line));
    match level {
        "ERROR" => tracing::error!(model, "{}", text.trim()),
        "WARN" => tracing::warn!(model, "{}", text.trim()),
        "INFO" => tracing::info!(model, "{}", text.trim()),
        "DEBUG" | "TRACE" => tracing::debug!(model, "{}", text.trim()),
        _ => tracing::info!(model, "{line}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_lines_are_kept_whatever_is_printed() {
        let words = LastWords::default();
        let mut output: Vec<u8> = (0..20)
            .flat_map(|i| format!("line {i}\n").into_bytes())
            .collect();
        output.extend(vec![b'x'; 3 * MAX_LINE]);
        output.extend(b"\n\n\xff\nGGML_ASSERT failed");
        copy(output.as_slice(), "m".into(), words.clone()).await;
        let text = words.text();
        let long = "x".repeat(MAX_LINE);
        let end = format!("line 19 | {long} | \u{fffd} | GGML_ASSERT failed");
        assert!(text.ends_with(&end), "{text}");
        assert_eq!(text.split(" | ").count(), KEPT);
    }
}
