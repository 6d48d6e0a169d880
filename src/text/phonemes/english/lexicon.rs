//! The pronouncing dictionary, unpacked on first use.

use std::{collections::HashMap, io::Read, sync::LazyLock};

use flate2::read::ZlibDecoder;

/// Made by `scripts/english/lexicon.py`, which describes it.
static PACKED: &[u8] = include_bytes!("lexicon.bin");

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::unpack(PACKED).unwrap_or_default());

/// Words and their sounds.
#[derive(Default)]
pub struct Lexicon {
    /// All words in byte order, one behind the other.
    words: String,
    /// Where each word starts, and the end.
    starts: Vec<u32>,
    /// Sounds by the place of their word: one byte a symbol.
    sounds: Vec<u8>,
    /// Where the sounds of each word start, and the end.
    sound_starts: Vec<u32>,
    /// The symbols of bytes above 127.
    symbols: Vec<char>,
}

/// The dictionary.
pub fn lexicon() -> &'static Lexicon {
    &LEXICON
}

impl Lexicon {
    fn unpack(packed: &[u8]) -> Option<Lexicon> {
        let (words, rest) = stream(packed)?;
        let (sounds, _) = stream(rest)?;
        let mut lexicon = Lexicon::default();
        let mut word: Vec<u8> = Vec::new();
        for line in words.split(|byte| *byte == b'\n') {
            let (first, tail) = line.split_first()?;
            word.truncate(usize::from(first.checked_sub(33)?));
            word.extend(tail);
            lexicon
                .starts
                .push(u32::try_from(lexicon.words.len()).ok()?);
            lexicon.words.push_str(std::str::from_utf8(&word).ok()?);
        }
        lexicon
            .starts
            .push(u32::try_from(lexicon.words.len()).ok()?);
        let head = sounds.iter().position(|byte| *byte == b'\n')?;
        lexicon.symbols = std::str::from_utf8(&sounds[..head]).ok()?.chars().collect();
        lexicon.sounds = sounds[head + 1..].to_vec();
        lexicon.sound_starts.push(0);
        for (at, byte) in lexicon.sounds.iter().enumerate() {
            if *byte == b'\n' {
                lexicon.sound_starts.push(u32::try_from(at + 1).ok()?);
            }
        }
        lexicon
            .sound_starts
            .push(u32::try_from(lexicon.sounds.len() + 1).ok()?);
        (lexicon.starts.len() == lexicon.sound_starts.len()).then_some(lexicon)
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    fn word(&self, index: usize) -> &str {
        &self.words[self.starts[index] as usize..self.starts[index + 1] as usize]
    }

    /// The place of a word that is written exactly like this.
    fn find(&self, word: &str) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = (low + high) / 2;
            match self.word(middle).as_bytes().cmp(word.as_bytes()) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(middle),
            }
        }
        None
    }

    /// Whether there is a word that is written exactly like this.
    pub fn has(&self, word: &str) -> bool {
        self.find(word).is_some()
    }

    /// The sounds of a word that is written exactly like this: of the first of `parts` (of speech)
    /// that has sounds of its own, else the usual ones.
    pub fn sounds(&self, word: &str, parts: &str) -> Option<String> {
        let index = self.find(word)?;
        let line = &self.sounds
            [self.sound_starts[index] as usize..self.sound_starts[index + 1] as usize - 1];
        let mut variants = line.split(|byte| *byte == b'|');
        let usual = variants.next()?;
        let special: HashMap<char, &[u8]> = variants
            .filter_map(|variant| variant.split_first())
            .map(|(tag, sounds)| (char::from(*tag), sounds))
            .collect();
        let best = parts
            .chars()
            .find_map(|part| special.get(&part).copied())
            .unwrap_or(usual);
        let symbol = |byte: &u8| match byte.checked_sub(0x80) {
            Some(index) => self.symbols.get(usize::from(index)).copied().unwrap_or('ə'),
            None => char::from(*byte),
        };
        Some(best.iter().map(symbol).collect())
    }
}

/// The first stream of `packed`, and what is behind it.
fn stream(packed: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (head, rest) = packed.split_first_chunk::<4>()?;
    let (body, rest) = rest.split_at_checked(u32::from_le_bytes(*head) as usize)?;
    let mut bytes = Vec::new();
    ZlibDecoder::new(body).read_to_end(&mut bytes).ok()?;
    Some((bytes, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_with_their_parts_of_speech() {
        let lexicon = lexicon();
        assert!(lexicon.len() > 150_000, "{}", lexicon.len());
        assert_eq!(lexicon.sounds("hello", "").as_deref(), Some("həlˈO"));
        assert_eq!(lexicon.sounds("record", "V").as_deref(), Some("ɹəkˈɔɹd"));
        assert_eq!(lexicon.sounds("record", "NA").as_deref(), Some("ɹˈɛkəɹd"));
        assert_eq!(lexicon.sounds("zzyzx", ""), None);
        assert!(lexicon.has("Aachen") && !lexicon.has("aachen"));
    }

    #[test]
    fn a_damaged_file_is_no_lexicon() {
        assert!(Lexicon::unpack(&PACKED[..PACKED.len() / 3]).is_none());
        assert!(Lexicon::unpack(&[1, 0, 0, 0]).is_none());
    }
}
