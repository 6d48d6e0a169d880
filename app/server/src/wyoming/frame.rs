//! Events on the wire: a line of JSON, then as many bytes of data and payload as it says.

use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt};

/// Longest line of an event, with its newline.
pub const MAX_LINE: u64 = 64 << 10;
/// Most bytes of additional data: a long text, escaped.
pub const MAX_DATA: u64 = 1 << 20;
/// Most bytes of sound in one event: five seconds of stereo at 48 kHz.
pub const MAX_PAYLOAD: u64 = 1 << 20;

/// One event of either side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    /// What happens (`audio-chunk`).
    pub kind: String,
    /// What is said about it.
    pub data: Map<String, Value>,
    /// Sound, if it carries any.
    pub payload: Vec<u8>,
}

/// Why no event could be read; the stream is of no use afterwards.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Io(#[from] std::io::Error),
    /// It ended inside an event.
    #[error("the connection ended inside an event: its {part} was not complete")]
    Cut {
        /// `line`, `data` or `payload`.
        part: &'static str,
    },
    /// A part is longer than it may be.
    #[error("the {part} of an event has {found} bytes, the limit is {limit}")]
    TooLong {
        /// `line`, `data` or `payload`.
        part: &'static str,
        /// Bytes that it has, or that were read so far.
        found: u64,
        /// Bytes that it may have.
        limit: u64,
    },
    /// A part is not the JSON that is wanted.
    #[error("the {part} of an event is not {wanted}: {error}")]
    NotJson {
        /// `line` or `data`.
        part: &'static str,
        /// What is wanted.
        wanted: &'static str,
        /// What is wrong with it.
        error: serde_json::Error,
    },
}

#[derive(Deserialize)]
struct Header {
    #[serde(rename = "type")]
    kind: String,
    data: Option<Map<String, Value>>,
    data_length: Option<u64>,
    payload_length: Option<u64>,
}

impl Event {
    /// An event of `kind` with the fields of the object `data`; anything else carries no fields.
    pub fn new(kind: &str, data: Value) -> Event {
        let data = match data {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        Event {
            kind: kind.to_owned(),
            data,
            payload: Vec::new(),
        }
    }

    /// The same event with `payload`.
    pub fn with_payload(mut self, payload: Vec<u8>) -> Event {
        self.payload = payload;
        self
    }

    /// The text in field `name`, if it is one.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.data.get(name).and_then(Value::as_str)
    }

    /// The event as it goes over the wire.
    pub fn to_bytes(&self) -> Vec<u8> {
        let data = match self.data.is_empty() {
            true => String::new(),
            false => Value::Object(self.data.clone()).to_string(),
        };
        let mut header = Map::new();
        header.insert("type".into(), self.kind.as_str().into());
        header.insert("version".into(), env!("CARGO_PKG_VERSION").into());
        if !data.is_empty() {
            header.insert("data_length".into(), data.len().into());
        }
        if !self.payload.is_empty() {
            header.insert("payload_length".into(), self.payload.len().into());
        }
        let mut bytes = Value::Object(header).to_string().into_bytes();
        bytes.push(b'\n');
        bytes.extend_from_slice(data.as_bytes());
        bytes.extend_from_slice(&self.payload);
        bytes
    }
}

/// Reads the next event; `None` if the connection ends before one begins.
///
/// # Errors
/// [`FrameError`]: a part that is cut, too long or no JSON, or a connection that fails.
pub async fn read<R: AsyncBufRead + Unpin>(from: &mut R) -> Result<Option<Event>, FrameError> {
    let mut line = Vec::new();
    (&mut *from)
        .take(MAX_LINE)
        .read_until(b'\n', &mut line)
        .await?;
    if line.is_empty() {
        return Ok(None);
    }
    if !line.ends_with(b"\n") {
        return Err(match line.len() as u64 {
            MAX_LINE => too_long("line", MAX_LINE + 1, MAX_LINE),
            _ => FrameError::Cut { part: "line" },
        });
    }
    let header: Header = parse("line", "an object with a `type`", &line)?;
    let mut event = Event {
        kind: header.kind,
        data: header.data.unwrap_or_default(),
        payload: Vec::new(),
    };
    let data = take(from, "data", header.data_length, MAX_DATA).await?;
    if !data.is_empty() {
        let more: Map<String, Value> = parse("data", "an object", &data)?;
        event.data.extend(more);
    }
    event.payload = take(from, "payload", header.payload_length, MAX_PAYLOAD).await?;
    Ok(Some(event))
}

fn parse<'a, T: Deserialize<'a>>(
    part: &'static str,
    wanted: &'static str,
    bytes: &'a [u8],
) -> Result<T, FrameError> {
    serde_json::from_slice(bytes).map_err(|error| FrameError::NotJson {
        part,
        wanted,
        error,
    })
}

/// Reads `length` bytes; memory grows with what arrives, not with what was announced.
async fn take<R: AsyncRead + Unpin>(
    from: &mut R,
    part: &'static str,
    length: Option<u64>,
    limit: u64,
) -> Result<Vec<u8>, FrameError> {
    let length = length.unwrap_or(0);
    if length > limit {
        return Err(too_long(part, length, limit));
    }
    let mut bytes = Vec::new();
    from.take(length).read_to_end(&mut bytes).await?;
    match bytes.len() as u64 == length {
        true => Ok(bytes),
        false => Err(FrameError::Cut { part }),
    }
}

fn too_long(part: &'static str, found: u64, limit: u64) -> FrameError {
    FrameError::TooLong { part, found, limit }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read_all(mut bytes: &[u8]) -> (Vec<Event>, Option<FrameError>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let mut events = Vec::new();
        loop {
            match runtime.block_on(read(&mut bytes)) {
                Ok(Some(event)) => events.push(event),
                Ok(None) => return (events, None),
                Err(error) => return (events, Some(error)),
            }
        }
    }

    #[test]
    fn data_of_the_line_and_after_it_are_merged() {
        let bytes = b"{\"type\":\"x\",\"data\":{\"a\":1,\"b\":2},\"data_length\":7,\"payload_length\":3}\n{\"b\":3}abc{\"type\":\"ping\",\"data\":null,\"payload_length\":null}\n";
        let (events, error) = read_all(bytes);
        assert!(error.is_none(), "{error:?}");
        let first = Event::new("x", json!({"a": 1, "b": 3})).with_payload(b"abc".to_vec());
        assert_eq!(events, [first, Event::new("ping", json!({}))]);
    }

    #[test]
    fn what_is_wrong_with_an_event_is_said() {
        let wrong: [(&[u8], &str); 8] = [
            (b"{\"type\":\"x\"", "ended inside an event: its line"),
            (b"\n", "not an object with a `type`"),
            (b"{\"data\":{}}\n", "missing field `type`"),
            (b"{\"type\":\"x\",\"data_length\":-1}\n", "integer `-1`"),
            (b"{\"type\":\"x\",\"data_length\":2}\n[]", "not an object"),
            (
                b"{\"type\":\"x\",\"data_length\":9}\n{}",
                "its data was not",
            ),
            (
                b"{\"type\":\"x\",\"payload_length\":2}\na",
                "its payload was not",
            ),
            (
                b"{\"type\":\"x\",\"payload_length\":18446744073709551615}\n",
                "has 18446744073709551615 bytes, the limit is 1048576",
            ),
        ];
        for (bytes, wanted) in wrong {
            let said = read_all(bytes).1.map(|error| error.to_string());
            let said = said.unwrap_or_default();
            assert!(said.contains(wanted), "{wanted:?} in {said:?}");
        }
        let endless = vec![b' '; MAX_LINE as usize + 10];
        let said = read_all(&endless).1.unwrap().to_string();
        assert!(said.contains("the line of an event has 65537"), "{said}");
    }

    proptest! {
        #[test]
        fn any_event_reads_back(
            kind in "[a-z-]{0,20}",
            keys in proptest::collection::btree_map("\\PC{0,8}", "\\PC{0,40}", 0..5),
            payload in proptest::collection::vec(any::<u8>(), 0..300),
            count in 1usize..4,
        ) {
            let data = keys.into_iter().map(|(k, v)| (k, Value::from(v))).collect();
            let event = Event { kind, data, payload };
            let (events, error) = read_all(&event.to_bytes().repeat(count));
            prop_assert!(error.is_none());
            prop_assert_eq!(events, vec![event; count]);
        }

        #[test]
        fn any_bytes_end_in_events_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let (events, _) = read_all(&bytes);
            let held: usize = events.iter().map(|e| e.kind.len() + e.payload.len()).sum();
            prop_assert!(held <= bytes.len());
        }

        #[test]
        fn damaged_events_never_give_more_than_was_sent(
            at in 0usize..200, new in any::<u8>(), cut in 0usize..200,
        ) {
            let event = Event::new("audio-chunk", json!({"rate": 16000, "width": 2, "channels": 1}));
            let mut bytes = event.with_payload(vec![7; 64]).to_bytes().repeat(2);
            let (last, end) = (bytes.len() - 1, bytes.len() - cut.min(bytes.len()));
            bytes[at.min(last)] = new;
            let (events, _) = read_all(&bytes[..end]);
            prop_assert!(events.len() <= 2);
            prop_assert!(events.iter().map(|e| e.payload.len()).sum::<usize>() <= end);
        }
    }
}
