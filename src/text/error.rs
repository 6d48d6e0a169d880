//! What can go wrong between a text and its sounds.

/// Shorthand for results of the speech front end.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a text cannot be spoken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is empty or blank.
    #[error("the text is empty: there is nothing to speak")]
    Empty,
    /// The text has neither letters nor digits in it.
    #[error("nothing to speak in `{text}`: wanted letters or digits")]
    NothingToSpeak {
        /// The text, shortened.
        text: String,
    },
    /// Pronunciations of this language need a program that is not there.
    #[error(
        "pronouncing `{language}` needs espeak-ng, which was not found: install it \
         (apt install espeak-ng), or name its program in AUDIOCPP_ESPEAK"
    )]
    NoEspeak {
        /// Code of the language.
        language: String,
    },
    /// There is no such phonemizer.
    #[error("there is no phonemizer `{name}`; wanted english or espeak")]
    UnknownPhonemizer {
        /// The name as given.
        name: String,
    },
    /// The phonemizer does not know the language.
    #[error("{phonemizer} does not pronounce `{language}`")]
    Language {
        /// Name of the phonemizer.
        phonemizer: &'static str,
        /// Code of the language.
        language: String,
    },
    /// The phonemizer could not do its work.
    #[error("{phonemizer} failed: {found}")]
    Phonemizer {
        /// Name of the phonemizer.
        phonemizer: &'static str,
        /// What happened.
        found: String,
    },
    /// A line of a pronunciation dictionary is not as it should be.
    #[error(
        "line {line} of the pronunciation dictionary is `{found}`; wanted a word, a tab or blank, and its IPA"
    )]
    Dictionary {
        /// Counts from 1.
        line: usize,
        /// The line.
        found: String,
    },
}
