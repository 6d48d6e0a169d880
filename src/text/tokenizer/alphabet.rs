//! How vocabularies spell bytes.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The spelling of bytes in a vocabulary's strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alphabet {
    /// GPT-2: each byte is one printable character (a blank is `Ġ`).
    ByteLevel,
    /// SentencePiece: `▁` for a blank, `<0x0A>` for a byte outside the vocabulary.
    Metaspace,
    /// The string itself.
    Plain,
}

impl Alphabet {
    /// The bytes that a vocabulary string stands for; None when it is not in the alphabet.
    pub(super) fn bytes(self, token: &str) -> Option<Vec<u8>> {
        match self {
            Alphabet::ByteLevel => token.chars().map(char_byte).collect(),
            Alphabet::Metaspace => Some(match hex_byte(token) {
                Some(byte) => vec![byte],
                None => token.replace('\u{2581}', " ").into_bytes(),
            }),
            Alphabet::Plain => Some(token.as_bytes().to_vec()),
        }
    }
}

/// The GPT-2 character of each byte: printable Latin-1 stands for itself, the other 68 bytes
/// take the code points from U+0100 on.
static BYTE_CHARS: LazyLock<[char; 256]> = LazyLock::new(|| {
    let mut shifted = (0x100u32..).filter_map(char::from_u32);
    std::array::from_fn(|byte| match byte as u8 {
        byte @ (b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff) => char::from(byte),
        _ => shifted.next().unwrap_or(char::REPLACEMENT_CHARACTER),
    })
});

static CHAR_BYTES: LazyLock<HashMap<char, u8>> =
    LazyLock::new(|| BYTE_CHARS.iter().copied().zip(0..=255).collect());

/// Spells bytes in the GPT-2 alphabet.
pub(super) fn byte_level(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|byte| BYTE_CHARS[usize::from(*byte)])
        .collect()
}

fn char_byte(character: char) -> Option<u8> {
    CHAR_BYTES.get(&character).copied()
}

fn hex_byte(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2)
        .then(|| u8::from_str_radix(digits, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_level_is_a_bijection_with_the_known_characters() {
        let all: Vec<u8> = (0..=255).collect();
        let spelled = byte_level(&all);
        assert_eq!(Alphabet::ByteLevel.bytes(&spelled), Some(all));
        assert_eq!(byte_level(b" the\n"), "ĠtheĊ");
        assert_eq!(byte_level("é".as_bytes()), "Ã©");
        assert_eq!(byte_level(&[0, 0x7f, 0xad]), "Āġ\u{143}");
        assert_eq!(Alphabet::ByteLevel.bytes("語"), None);
    }

    #[test]
    fn metaspace_spells_blanks_and_single_bytes() {
        assert_eq!(Alphabet::Metaspace.bytes("▁the"), Some(b" the".to_vec()));
        assert_eq!(Alphabet::Metaspace.bytes("<0x0A>"), Some(vec![10]));
        assert_eq!(
            Alphabet::Metaspace.bytes("<0xZZ>"),
            Some(b"<0xZZ>".to_vec())
        );
    }
}
