//! Text from a stream of bytes, never cut inside a character.

/// Collects the bytes of decoded tokens and gives back only whole characters.
///
/// Byte-level tokens may end in the middle of a character (CJK, emoji, accented letters); the
/// open bytes wait here for the next token. Bytes that can never become UTF-8 turn into U+FFFD,
/// one for each maximal invalid sequence, as `String::from_utf8_lossy` does.
#[derive(Clone, Debug, Default)]
pub struct Utf8Stream {
    pending: Vec<u8>,
}

impl Utf8Stream {
    /// An empty stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the bytes of one more token; returns the text that is now complete.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let mut text = String::new();
        loop {
            match std::str::from_utf8(&self.pending) {
                Ok(valid) => {
                    text.push_str(valid);
                    self.pending.clear();
                    return text;
                }
                Err(error) => {
                    let valid = error.valid_up_to();
                    text.push_str(&String::from_utf8_lossy(&self.pending[..valid]));
                    let Some(invalid) = error.error_len() else {
                        self.pending.drain(..valid);
                        return text;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    self.pending.drain(..valid + invalid);
                }
            }
        }
    }

    /// Ends the stream: an open character can no longer be completed and becomes U+FFFD.
    pub fn finish(&mut self) -> String {
        let text = String::from_utf8_lossy(&self.pending).into_owned();
        self.pending.clear();
        text
    }

    /// Whether no character is open.
    pub fn is_complete(&self) -> bool {
        self.pending.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn waits_for_the_rest_of_a_character() {
        let mut stream = Utf8Stream::new();
        let bytes = "a€🎵".as_bytes();
        assert_eq!(stream.push(&bytes[..2]), "a");
        assert!(!stream.is_complete());
        assert_eq!(stream.push(&bytes[2..3]), "");
        assert_eq!(stream.push(&bytes[3..6]), "€");
        assert_eq!(stream.push(&bytes[6..]), "🎵");
        assert!(stream.is_complete());
        assert_eq!(stream.finish(), "");
    }

    #[test]
    fn invalid_bytes_are_replaced_at_once_open_ones_at_the_end() {
        let mut stream = Utf8Stream::new();
        assert_eq!(stream.push(b"x\xffy\xe2\x82"), "x\u{fffd}y");
        assert_eq!(stream.finish(), "\u{fffd}");
        assert_eq!(stream.push(b"ok"), "ok");
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_lossy_text(bytes: Vec<u8>, cuts: Vec<u8>) {
            let mut stream = Utf8Stream::new();
            let (mut text, mut rest) = (String::new(), &bytes[..]);
            for cut in cuts {
                let (head, tail) = rest.split_at(usize::from(cut % 5).min(rest.len()));
                text += &stream.push(head);
                rest = tail;
            }
            text += &stream.push(rest);
            text += &stream.finish();
            prop_assert_eq!(text, String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}
