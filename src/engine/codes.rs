//! Sound as the tokens of a codec, and the files that they are kept in.
//!
//! A token file is little-endian and has no gaps:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `ACTOKENS` |
//! | 4 | version, 1 |
//! | 4, then as many | length of the family's name (at most 64), the name in UTF-8 |
//! | 4 | samples per second of the sound |
//! | 8 | samples of the sound |
//! | 4, then 4 each | codebooks (1 to 64), the size of each (2 to 2^31 - 1) |
//! | 8 | steps |
//! | 4 each | tokens: of each step one for each codebook |
//! | 4, then 4 each | length of the global vector (at most 65536), its values as floats |
//!
//! The same in JSON: an object with `format` (`audiocpp-tokens`), `version` and the fields of
//! [`Codes`].

use serde::{Deserialize, Serialize};

use super::{Error, Result};

const MAGIC: &[u8; 8] = b"ACTOKENS";
const VERSION: u32 = 1;
const FORMAT: &str = "audiocpp-tokens";
const LONGEST_NAME: usize = 64;
const MOST_CODEBOOKS: usize = 64;
const MOST_GLOBAL: usize = 1 << 16;

/// What a codec makes of a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Codes {
    /// Family of the codec; others cannot read its tokens.
    pub family: String,
    /// Samples per second of the sound.
    pub sample_rate: u32,
    /// Samples of the sound, of one channel.
    pub samples: u64,
    /// Number of different tokens of each codebook.
    pub codebooks: Vec<u32>,
    /// `[step, codebook]`, each below its codebook's size.
    pub tokens: Vec<u32>,
    /// What holds for the whole recording, such as the voice; empty for codecs without it.
    #[serde(default)]
    pub global: Vec<f32>,
}

/// JSON's frame around [`Codes`].
#[derive(Serialize, Deserialize)]
struct Document {
    format: String,
    version: u32,
    #[serde(flatten)]
    codes: serde_json::Map<String, serde_json::Value>,
}

impl Codes {
    /// Number of steps.
    pub fn steps(&self) -> usize {
        self.tokens.len() / self.codebooks.len().max(1)
    }

    /// An error of class `BadInput` unless everything is within its bounds.
    pub fn check(&self) -> Result<()> {
        let books = self.codebooks.len();
        let problem = if self.family.is_empty() || self.family.len() > LONGEST_NAME {
            format!(
                "the family's name has {} bytes, wanted 1 to {LONGEST_NAME}",
                self.family.len()
            )
        } else if !(1..=MOST_CODEBOOKS).contains(&books) {
            format!("{books} codebooks, wanted 1 to {MOST_CODEBOOKS}")
        } else if let Some(size) = self
            .codebooks
            .iter()
            .find(|&&n| n < 2 || n > i32::MAX as u32)
        {
            format!("a codebook of {size} tokens, wanted 2 to {}", i32::MAX)
        } else if self.sample_rate == 0 {
            "0 samples per second".to_owned()
        } else if self.global.len() > MOST_GLOBAL {
            format!(
                "a global vector of {} values, wanted at most {MOST_GLOBAL}",
                self.global.len()
            )
        } else if !self.tokens.len().is_multiple_of(books) {
            format!(
                "{} tokens make no whole steps of {books} codebooks",
                self.tokens.len()
            )
        } else if let Some(at) = self.global.iter().position(|x| !x.is_finite()) {
            format!("value {at} of the global vector is {}", self.global[at])
        } else {
            let sizes = self.codebooks.iter().cycle();
            let mut pairs = self.tokens.iter().zip(sizes);
            let Some(at) = pairs.position(|(token, size)| token >= size) else {
                return Ok(());
            };
            let size = self.codebooks[at % books];
            format!("token {at} is {}, its codebook has {size}", self.tokens[at])
        };
        Err(Error::bad_input(format!("bad tokens: {problem}")))
    }

    /// The bytes of a token file.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.check()?;
        let mut out = MAGIC.to_vec();
        let word = |out: &mut Vec<u8>, n: usize| out.extend((n as u32).to_le_bytes());
        out.extend(VERSION.to_le_bytes());
        word(&mut out, self.family.len());
        out.extend(self.family.as_bytes());
        out.extend(self.sample_rate.to_le_bytes());
        out.extend(self.samples.to_le_bytes());
        word(&mut out, self.codebooks.len());
        out.extend(self.codebooks.iter().flat_map(|n| n.to_le_bytes()));
        out.extend((self.steps() as u64).to_le_bytes());
        out.extend(self.tokens.iter().flat_map(|n| n.to_le_bytes()));
        word(&mut out, self.global.len());
        out.extend(self.global.iter().flat_map(|x| x.to_le_bytes()));
        Ok(out)
    }

    /// The text of a token file in JSON.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn to_json(&self) -> Result<String> {
        self.check()?;
        let failed = |error: serde_json::Error| Error::internal(format!("tokens as JSON: {error}"));
        let document = Document {
            format: FORMAT.into(),
            version: VERSION,
            codes: match serde_json::to_value(self).map_err(failed)? {
                serde_json::Value::Object(fields) => fields,
                _ => serde_json::Map::new(),
            },
        };
        serde_json::to_string(&document).map_err(failed)
    }

    /// Reads a token file, in either form.
    ///
    /// # Errors
    /// `BadInput`: neither form, another version, a file that is cut or goes on, values out of
    /// bounds.
    pub fn parse(bytes: &[u8]) -> Result<Codes> {
        let codes = match bytes.strip_prefix(MAGIC) {
            Some(rest) => binary(rest)?,
            None if bytes.trim_ascii_start().starts_with(b"{") => json(bytes)?,
            None => {
                return Err(Error::bad_input(
                    "no token file: wanted one that begins with `ACTOKENS`, or a JSON object",
                ));
            }
        };
        codes.check()?;
        Ok(codes)
    }
}

fn json(bytes: &[u8]) -> Result<Codes> {
    let bad = |error: serde_json::Error| Error::bad_input(format!("tokens as JSON: {error}"));
    let document: Document = serde_json::from_slice(bytes).map_err(bad)?;
    if document.format != FORMAT {
        let found = document.format;
        return Err(Error::bad_input(format!(
            "tokens as JSON: `format` is `{found}`, wanted `{FORMAT}`"
        )));
    }
    supported(document.version)?;
    serde_json::from_value(serde_json::Value::Object(document.codes)).map_err(bad)
}

fn supported(version: u32) -> Result<()> {
    match version {
        VERSION => Ok(()),
        other => Err(Error::bad_input(format!(
            "a token file of version {other}: this program reads version {VERSION}"
        ))),
    }
}

fn binary(bytes: &[u8]) -> Result<Codes> {
    let mut rest = Rest(bytes);
    supported(rest.word("version")?)?;
    let name = rest.count("the family's name", LONGEST_NAME)?;
    let name = rest.take(name, "the family's name")?;
    let family = std::str::from_utf8(name)
        .map_err(|_| Error::bad_input("a token file whose family is no UTF-8"))?
        .to_owned();
    let sample_rate = rest.word("sample rate")?;
    let samples = rest.long("samples")?;
    let books = rest.count("codebooks", MOST_CODEBOOKS)?;
    let codebooks = rest.words(books, "sizes of codebooks")?;
    let steps = usize::try_from(rest.long("steps")?).unwrap_or(usize::MAX);
    let tokens = rest.words(steps.saturating_mul(books), "tokens")?;
    let length = rest.count("the global vector", MOST_GLOBAL)?;
    let global = rest.words(length, "the global vector")?;
    match rest.0.len() {
        0 => Ok(Codes {
            family,
            sample_rate,
            samples,
            codebooks,
            tokens,
            global: global.into_iter().map(f32::from_bits).collect(),
        }),
        more => Err(Error::bad_input(format!(
            "a token file with {more} bytes behind its end"
        ))),
    }
}

/// What is left to read.
struct Rest<'b>(&'b [u8]);

impl<'b> Rest<'b> {
    fn take(&mut self, n: usize, what: &str) -> Result<&'b [u8]> {
        let Some((taken, rest)) = self.0.split_at_checked(n) else {
            return Err(Error::bad_input(format!(
                "a token file that ends within {what}: {} of {n} bytes are there",
                self.0.len()
            )));
        };
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let taken = self.take(N, what)?;
        Ok(std::array::from_fn(|i| taken[i]))
    }

    fn word(&mut self, what: &str) -> Result<u32> {
        self.array(what).map(u32::from_le_bytes)
    }

    fn long(&mut self, what: &str) -> Result<u64> {
        self.array(what).map(u64::from_le_bytes)
    }

    fn count(&mut self, what: &str, most: usize) -> Result<usize> {
        let n = self.word(what)? as usize;
        match n <= most {
            true => Ok(n),
            false => Err(Error::bad_input(format!(
                "a token file in which the length of {what} is {n}, at most {most} can be"
            ))),
        }
    }

    fn words(&mut self, n: usize, what: &str) -> Result<Vec<u32>> {
        let bytes = self.take(n.saturating_mul(4), what)?;
        let (words, _) = bytes.as_chunks::<4>();
        Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes() -> Codes {
        Codes {
            family: "some_codec".into(),
            sample_rate: 24_000,
            samples: 1_900,
            codebooks: vec![12_800, 4],
            tokens: vec![12_799, 0, 5, 3],
            global: vec![0.25, -1e-20, 3.5],
        }
    }

    #[test]
    fn both_forms_give_the_same_back() {
        let codes = codes();
        assert_eq!(codes.steps(), 2);
        let bytes = codes.to_bytes().unwrap();
        assert_eq!(
            bytes.len(),
            8 + 4 + 4 + 10 + 4 + 8 + 4 + 8 + 8 + 16 + 4 + 12
        );
        assert_eq!(Codes::parse(&bytes).unwrap(), codes);
        let json = codes.to_json().unwrap();
        assert!(
            json.starts_with(r#"{"format":"audiocpp-tokens","version":1,"family""#),
            "{json}"
        );
        assert_eq!(Codes::parse(json.as_bytes()).unwrap(), codes);
    }

    #[test]
    fn every_cut_and_every_flipped_byte_is_an_error_or_other_codes() {
        let bytes = codes().to_bytes().unwrap();
        for n in 0..bytes.len() {
            assert!(Codes::parse(&bytes[..n]).is_err(), "{n} bytes");
        }
        for at in 0..bytes.len() {
            for flip in [1u8, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                if let Ok(found) = Codes::parse(&damaged) {
                    assert_ne!(found, codes(), "byte {at}");
                    assert!(found.check().is_ok());
                }
            }
        }
        let longer = [&bytes[..], b"x"].concat();
        let error = Codes::parse(&longer).unwrap_err();
        assert!(error.message.contains("1 bytes behind"), "{error}");
    }

    #[test]
    fn declared_lengths_allocate_nothing() {
        let mut bytes = codes().to_bytes().unwrap();
        let at = bytes.len() - 12 - 4 - 16 - 8;
        bytes[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
        let error = Codes::parse(&bytes).unwrap_err();
        assert!(error.message.contains("ends within tokens"), "{error}");
    }

    #[test]
    fn what_is_out_of_bounds_is_named() {
        let refused = |change: fn(&mut Codes), says: &str| {
            let mut codes = codes();
            change(&mut codes);
            let error = codes.to_bytes().unwrap_err();
            assert!(error.message.contains(says), "{error}");
            assert_eq!(codes.to_json().unwrap_err(), error);
        };
        refused(|c| c.tokens[3] = 4, "token 3 is 4");
        refused(|c| c.tokens.truncate(3), "no whole steps");
        refused(|c| c.global[1] = f32::NAN, "value 1");
        refused(|c| c.codebooks[0] = 1, "codebook of 1");
        refused(|c| c.family.clear(), "family");
        let parse = |text: &str| Codes::parse(text.as_bytes()).unwrap_err().message;
        assert!(parse("RIFF").contains("ACTOKENS"));
        assert!(parse("{}").contains("format"));
        let json = codes().to_json().unwrap();
        assert!(parse(&json.replace("\"version\":1", "\"version\":2")).contains("version 2"));
        assert!(parse(&json.replace("audiocpp-tokens", "x")).contains("`x`"));
        assert!(parse(&json.replace("\"tokens\"", "\"token\"")).contains("token"));
        let extra = json.replacen('{', "{\"more\":1,", 1);
        assert!(parse(&extra).contains("more"));
    }
}
