//! The language model's answer, and what it says.

use serde_json::Value;

/// One stretch of speech.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Seconds.
    pub start: f64,
    /// Seconds, at least `start`.
    pub end: f64,
    /// Of what the model calls a speaker; none for noise and music.
    pub speaker: Option<String>,
    /// The words.
    pub text: String,
}

/// What an answer says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// In the order of the answer.
    pub turns: Vec<Turn>,
    /// Whether all of it was understood.
    pub whole: bool,
}

/// Reads an answer: a JSON list of objects after a word or two of its own. Of a list that breaks off,
/// the objects before that.
pub fn read(answer: &str) -> Answer {
    let Some((_, list)) = answer.split_once('[') else {
        return Answer::default();
    };
    let (mut turns, mut rest) = (Vec::new(), list);
    loop {
        rest = rest.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
        if !rest.starts_with('{') {
            break;
        }
        let mut objects = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let Some(Ok(object)) = objects.next() else {
            break;
        };
        rest = &rest[objects.byte_offset()..];
        turns.extend(turn(&object));
    }
    let whole = rest.starts_with(']');
    Answer { turns, whole }
}

/// One object, whose keys are those of the request or their short forms.
fn turn(object: &Value) -> Option<Turn> {
    let any = |names: [&str; 2]| names.into_iter().find_map(|name| object.get(name));
    let text = object.get("Content")?.as_str()?.trim().to_owned();
    let start = any(["Start", "Start time"])
        .and_then(seconds)
        .unwrap_or(0.0);
    let end = any(["End", "End time"]).and_then(seconds).unwrap_or(start);
    let speaker = any(["Speaker", "Speaker ID"]).and_then(|value| match value {
        Value::Number(number) => Some(number.to_string()),
        Value::String(name) if !name.is_empty() => Some(name.clone()),
        _ => None,
    });
    Some(Turn {
        start,
        end: end.max(start),
        speaker,
        text,
    })
}

/// `3.5`, `"3.5"` or `"1:03.5"`.
fn seconds(value: &Value) -> Option<f64> {
    let found = match value {
        Value::String(text) => {
            let mut parts = text.trim().split(':').map(|part| part.parse::<f64>().ok());
            parts.try_fold(0.0, |sum, part| Some(sum * 60.0 + part?))
        }
        other => other.as_f64(),
    };
    found.filter(|seconds| seconds.is_finite() && *seconds >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_far_as_they_go() {
        let answer = "assistant\n[{\"Start\":0,\"End\":2.5,\"Speaker\":0,\"Content\":\"Hi [there].\"},\n\
                      {\"Start time\":\"1:02.5\",\"End time\":61,\"Speaker ID\":\"B\",\"Content\":\"Yes.\"},\
                      {\"Start\":70,\"End\":71,\"Content\":\"[Music]\"}]\n";
        let all = read(answer);
        assert!(all.whole);
        assert_eq!(all.turns.len(), 3);
        assert_eq!(all.turns[0].text, "Hi [there].");
        assert_eq!(all.turns[0].speaker.as_deref(), Some("0"));
        let second = &all.turns[1];
        assert_eq!((second.start, second.end), (62.5, 62.5));
        assert_eq!(second.speaker.as_deref(), Some("B"));
        assert_eq!(all.turns[2].speaker, None);

        let cut = read(&answer[..answer.find("Yes").unwrap()]);
        assert_eq!((cut.turns.len(), cut.whole), (1, false));
        assert_eq!(read("no list"), Answer::default());
        assert_eq!(
            read("[] "),
            Answer {
                turns: vec![],
                whole: true
            }
        );
        assert_eq!(read("[3, 4]"), Answer::default());
    }
}
