//! espeak-ng, run as a program where it is installed. It is not linked, so its licence (GPL) does
//! not reach this library.

use std::{
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
    sync::OnceLock,
};

use super::{
    PhonemeWord, Phonemes, Phonemizer,
    align::align,
    tokens::{Token, tokens},
};
use crate::text::error::{Error, Result};

const NAME: &str = "espeak-ng";

/// Names the program, where it is not found by its own name.
const VARIABLE: &str = "AUDIOCPP_ESPEAK";

/// Pronounces any language of espeak-ng.
#[derive(Clone, Debug)]
pub struct Espeak {
    program: PathBuf,
    voice: String,
}

impl Espeak {
    /// The phonemizer for a voice of espeak-ng (`de`, `en-us`, `pt-br`). An error if the program is
    /// not there or has no such voice.
    pub fn new(voice: &str) -> Result<Espeak> {
        let missing = || Error::NoEspeak {
            language: voice.to_owned(),
        };
        let program = program().ok_or_else(missing)?;
        let espeak = Espeak {
            program,
            voice: voice.to_lowercase().replace('_', "-"),
        };
        espeak.run("a").map_err(|error| match error {
            Error::Phonemizer { .. } => Error::Language {
                phonemizer: NAME,
                language: voice.to_owned(),
            },
            other => other,
        })?;
        Ok(espeak)
    }

    /// Whether the program is installed.
    pub fn is_installed() -> bool {
        program().is_some()
    }

    /// The sounds of each line of `text`; lines stay lines.
    fn run(&self, text: &str) -> Result<String> {
        let failed = |found: String| Error::Phonemizer {
            phonemizer: NAME,
            found,
        };
        let mut child = Command::new(&self.program)
            .args(["-q", "--ipa", "-b", "1", "-v", &self.voice, "--stdin"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(format!("cannot run {}: {error}", self.program.display())))?;
        // Written beside the reading, so that neither side waits for the other.
        let mut input = child.stdin.take();
        let bytes = text.as_bytes().to_vec();
        let writer =
            std::thread::spawn(move || input.as_mut().map(|input| input.write_all(&bytes)));
        let output = child
            .wait_with_output()
            .map_err(|error| failed(error.to_string()))?;
        // A program that ends early has said why.
        let _ = writer.join();
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(failed(
                said.lines().next().unwrap_or("no message").to_owned(),
            ));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The sounds of one clause, as words of sounds; marks of other languages (`(en)`) go.
    fn groups(said: &str) -> Vec<String> {
        let mut plain = String::new();
        let mut inside = false;
        for c in said.chars() {
            match c {
                '(' => inside = true,
                ')' => inside = false,
                '\u{200d}' | '_' | '-' => {}
                _ if !inside => plain.push(c),
                _ => {}
            }
        }
        plain.split_whitespace().map(str::to_owned).collect()
    }
}

impl Phonemizer for Espeak {
    fn name(&self) -> &'static str {
        NAME
    }

    fn phonemize(&self, text: &str) -> Result<Phonemes> {
        let tokens = tokens(text);
        let clauses = clauses(text, &tokens);
        if clauses.is_empty() {
            return Ok(Phonemes::default());
        }
        // Every clause as a paragraph of its own, then every word by itself: the second tells
        // which sounds of the first belong to which word.
        let mut input = String::new();
        for clause in &clauses {
            input.push_str(clause.line.trim());
            input.push_str("\n\n");
        }
        let connected = self.lines(&input, clauses.len())?;
        let mut alone = String::new();
        for token in &tokens {
            alone.push_str(&text[token.text.clone()]);
            alone.push_str("\n\n");
        }
        let alone = self.lines(&alone, tokens.len()).ok();
        let mut words = Vec::new();
        let mut next = 0;
        for (clause, said) in clauses.iter().zip(&connected) {
            let own = &tokens[next..next + clause.words];
            let by_itself = alone
                .as_ref()
                .map(|alone| &alone[next..next + clause.words]);
            next += clause.words;
            words.extend(assign(own, &Self::groups(said), by_itself));
        }
        Ok(Phonemes { words })
    }
}

impl Espeak {
    /// The lines that `count` paragraphs give. An error if the program made more or fewer of them.
    fn lines(&self, input: &str, count: usize) -> Result<Vec<String>> {
        let said = self.run(input)?;
        let lines: Vec<String> = said
            .lines()
            .map(|line| line.trim().to_owned())
            .filter(|line| !line.is_empty())
            .collect();
        if lines.len() == count {
            return Ok(lines);
        }
        // Something was silent or fell apart: one at a time.
        let parts = input
            .split("\n\n")
            .filter(|part| !part.is_empty())
            .take(count);
        parts
            .map(|part| {
                Ok(self
                    .run(part)?
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" "))
            })
            .collect()
    }
}

/// The text of a clause, and how many words are in it.
struct Clause {
    line: String,
    words: usize,
}

/// Clauses as espeak-ng takes them; their marks stay, since they decide the melody, and the rest
/// of the layout goes.
fn clauses(text: &str, tokens: &[Token]) -> Vec<Clause> {
    let mut clauses: Vec<Clause> = Vec::new();
    let mut open = false;
    for token in tokens {
        let word = &text[token.text.clone()];
        if !open {
            clauses.push(Clause {
                line: String::new(),
                words: 0,
            });
        }
        if let Some(clause) = clauses.last_mut() {
            if clause.words > 0 {
                clause.line.push(if token.hyphenated { '-' } else { ' ' });
            }
            clause.line.push_str(word);
            clause.words += 1;
        }
        open = !token.after.contains(|c: char| ".,;:!?…—".contains(c));
    }
    clauses
}

/// The groups of sounds of a clause to its words.
fn assign(tokens: &[Token], groups: &[String], alone: Option<&[String]>) -> Vec<PhonemeWord> {
    let alone: Vec<String> = match alone {
        Some(alone) => alone
            .iter()
            .map(|said| Espeak::groups(said).concat())
            .collect(),
        None => tokens.iter().map(|_| String::new()).collect(),
    };
    let parts = align(groups, &alone);
    let mut words: Vec<PhonemeWord> = Vec::new();
    for (token, part) in tokens.iter().zip(parts) {
        if part.ipa.is_empty() {
            // Silent here: its marks go to the word before.
            if let Some(last) = words.last_mut() {
                last.after.push_str(&token.after);
            }
            continue;
        }
        words.push(PhonemeWord {
            ipa: part.ipa,
            text: token.text.clone(),
            joined: part.joined,
            before: token.before.clone(),
            after: token.after.clone(),
        });
    }
    words
}

/// The program: named by the environment, or found in the folders of programs.
fn program() -> Option<PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOUND
        .get_or_init(|| {
            if let Some(named) = std::env::var_os(VARIABLE).filter(|named| !named.is_empty()) {
                return Some(PathBuf::from(named)).filter(|path| path.is_file());
            }
            let names: &[&str] = if cfg!(windows) {
                &["espeak-ng.exe"]
            } else {
                &["espeak-ng"]
            };
            let folders = std::env::var_os("PATH")?;
            let places = std::env::split_paths(&folders);
            places
                .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
                .find(|path| path.is_file())
        })
        .clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed() -> bool {
        let there = Espeak::is_installed();
        if !there {
            eprintln!("skipped: espeak-ng is not installed");
        }
        there
    }

    #[test]
    fn words_keep_their_sounds_and_marks() {
        if !installed() {
            return;
        }
        let espeak = Espeak::new("en-us").unwrap();
        let text = "Hello, world! The cat sat in the house.";
        let phonemes = espeak.phonemize(text).unwrap();
        assert_eq!(phonemes.ipa(), "həlˈoʊ, wˈɜːld! ðə kˈæt sˈæt ɪnðə hˈaʊs.");
        let the: Vec<_> = phonemes
            .words
            .iter()
            .filter(|word| &text[word.text.clone()] == "the")
            .collect();
        assert_eq!((the[0].ipa.as_str(), the[0].joined), ("ðə", true));
        assert!(espeak.phonemize(" … ").unwrap().words.is_empty());
        let german = Espeak::new("de").unwrap().phonemize("Guten Tag").unwrap();
        assert_eq!(german.words.len(), 2);
    }

    #[test]
    fn unknown_voices_are_refused_by_name() {
        if !installed() {
            return;
        }
        let error = Espeak::new("xx-klingon").unwrap_err();
        assert!(error.to_string().contains("xx-klingon"), "{error}");
    }
}
