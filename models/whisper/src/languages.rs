//! The languages of Whisper.

use audiocpp::text::languages;

use super::tokenizer::TokenizerError;

/// Language codes in the order of the language tokens. The last one is known to the large-v3
/// models only.
#[rustfmt::skip]
pub const LANGUAGES: [&str; 100] = [
    "en", "zh", "de", "es", "ru", "ko", "fr", "ja", "pt", "tr", "pl", "ca", "nl", "ar", "sv",
    "it", "id", "hi", "fi", "vi", "he", "uk", "el", "ms", "cs", "ro", "da", "hu", "ta", "no",
    "th", "ur", "hr", "bg", "lt", "la", "mi", "ml", "cy", "sk", "te", "fa", "lv", "bn", "sr",
    "az", "sl", "kn", "et", "mk", "br", "eu", "is", "hy", "ne", "mn", "bs", "kk", "sq", "sw",
    "gl", "mr", "pa", "si", "km", "sn", "yo", "so", "af", "oc", "ka", "be", "tg", "sd", "gu",
    "am", "yi", "lo", "uz", "fo", "ht", "ps", "tk", "nn", "mt", "sa", "lb", "my", "bo", "tl",
    "mg", "as", "tt", "haw", "ln", "ha", "ba", "jw", "su", "yue",
];

/// The Whisper code of a language given as a code (`de`), a tag with a region (`pt-BR`,
/// `zh_Hans`) or an English name (`German`); capitals do not matter.
pub fn language_code(language: &str) -> Result<&'static str, TokenizerError> {
    languages::code(language)
        .filter(|code| LANGUAGES.contains(code))
        .ok_or_else(|| TokenizerError::UnknownLanguage {
            language: language.to_owned(),
            known: LANGUAGES.join(" "),
        })
}

/// Whether the language is written without blanks between words.
pub fn is_unspaced(code: &str) -> bool {
    matches!(code, "zh" | "ja" | "th" | "lo" | "my" | "yue")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_a_name() {
        for code in LANGUAGES {
            assert!(languages::name(code).is_some(), "{code}");
            assert_eq!(language_code(code).unwrap(), code);
        }
    }

    #[test]
    fn an_unknown_language_is_answered_with_the_list() {
        let error = language_code("klingon").unwrap_err().to_string();
        assert!(
            error.contains("`klingon`") && error.contains(" haw ln "),
            "{error}"
        );
    }
}
