//! The languages of Whisper.

use super::tokenizer::TokenizerError;

/// Language codes with their English names, in the order of the language tokens. The last one
/// is known to the large-v3 models only.
pub const LANGUAGES: [(&str, &str); 100] = [
    ("en", "english"),
    ("zh", "chinese"),
    ("de", "german"),
    ("es", "spanish"),
    ("ru", "russian"),
    ("ko", "korean"),
    ("fr", "french"),
    ("ja", "japanese"),
    ("pt", "portuguese"),
    ("tr", "turkish"),
    ("pl", "polish"),
    ("ca", "catalan"),
    ("nl", "dutch"),
    ("ar", "arabic"),
    ("sv", "swedish"),
    ("it", "italian"),
    ("id", "indonesian"),
    ("hi", "hindi"),
    ("fi", "finnish"),
    ("vi", "vietnamese"),
    ("he", "hebrew"),
    ("uk", "ukrainian"),
    ("el", "greek"),
    ("ms", "malay"),
    ("cs", "czech"),
    ("ro", "romanian"),
    ("da", "danish"),
    ("hu", "hungarian"),
    ("ta", "tamil"),
    ("no", "norwegian"),
    ("th", "thai"),
    ("ur", "urdu"),
    ("hr", "croatian"),
    ("bg", "bulgarian"),
    ("lt", "lithuanian"),
    ("la", "latin"),
    ("mi", "maori"),
    ("ml", "malayalam"),
    ("cy", "welsh"),
    ("sk", "slovak"),
    ("te", "telugu"),
    ("fa", "persian"),
    ("lv", "latvian"),
    ("bn", "bengali"),
    ("sr", "serbian"),
    ("az", "azerbaijani"),
    ("sl", "slovenian"),
    ("kn", "kannada"),
    ("et", "estonian"),
    ("mk", "macedonian"),
    ("br", "breton"),
    ("eu", "basque"),
    ("is", "icelandic"),
    ("hy", "armenian"),
    ("ne", "nepali"),
    ("mn", "mongolian"),
    ("bs", "bosnian"),
    ("kk", "kazakh"),
    ("sq", "albanian"),
    ("sw", "swahili"),
    ("gl", "galician"),
    ("mr", "marathi"),
    ("pa", "punjabi"),
    ("si", "sinhala"),
    ("km", "khmer"),
    ("sn", "shona"),
    ("yo", "yoruba"),
    ("so", "somali"),
    ("af", "afrikaans"),
    ("oc", "occitan"),
    ("ka", "georgian"),
    ("be", "belarusian"),
    ("tg", "tajik"),
    ("sd", "sindhi"),
    ("gu", "gujarati"),
    ("am", "amharic"),
    ("yi", "yiddish"),
    ("lo", "lao"),
    ("uz", "uzbek"),
    ("fo", "faroese"),
    ("ht", "haitian creole"),
    ("ps", "pashto"),
    ("tk", "turkmen"),
    ("nn", "nynorsk"),
    ("mt", "maltese"),
    ("sa", "sanskrit"),
    ("lb", "luxembourgish"),
    ("my", "myanmar"),
    ("bo", "tibetan"),
    ("tl", "tagalog"),
    ("mg", "malagasy"),
    ("as", "assamese"),
    ("tt", "tatar"),
    ("haw", "hawaiian"),
    ("ln", "lingala"),
    ("ha", "hausa"),
    ("ba", "bashkir"),
    ("jw", "javanese"),
    ("su", "sundanese"),
    ("yue", "cantonese"),
];

/// Other English names and older codes of the same languages.
const ALIASES: [(&str, &str); 18] = [
    ("burmese", "my"),
    ("castilian", "es"),
    ("fil", "tl"),
    ("filipino", "tl"),
    ("flemish", "nl"),
    ("haitian", "ht"),
    ("in", "id"),
    ("iw", "he"),
    ("javanese", "jw"),
    ("jv", "jw"),
    ("letzeburgesch", "lb"),
    ("mandarin", "zh"),
    ("moldavian", "ro"),
    ("moldovan", "ro"),
    ("nb", "no"),
    ("panjabi", "pa"),
    ("pushto", "ps"),
    ("sinhalese", "si"),
];

/// The Whisper code of a language given as a code (`de`), a tag with a region (`pt-BR`,
/// `zh_Hans`) or an English name (`German`); capitals do not matter.
pub fn language_code(language: &str) -> Result<&'static str, TokenizerError> {
    let wanted = language.trim().to_lowercase();
    let tag = wanted.split(['-', '_']).next().unwrap_or_default();
    let all = || LANGUAGES.iter().map(|(code, name)| (*name, *code));
    all()
        .chain(ALIASES)
        .find(|(name, code)| *name == wanted || *code == wanted)
        .or_else(|| all().find(|(_, code)| *code == tag))
        .or_else(|| ALIASES.into_iter().find(|(name, _)| *name == tag))
        .map(|(_, code)| code)
        .ok_or_else(|| TokenizerError::UnknownLanguage {
            language: language.to_owned(),
            known: LANGUAGES.map(|(code, _)| code).join(" "),
        })
}

/// The English name of a language code, in lower case (`de` gives `german`).
pub fn language_name(code: &str) -> Option<&'static str> {
    LANGUAGES
        .iter()
        .find(|(known, _)| *known == code)
        .map(|(_, name)| *name)
}

/// Whether the language is written without blanks between words.
pub fn is_unspaced(code: &str) -> bool {
    matches!(code, "zh" | "ja" | "th" | "lo" | "my" | "yue")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_names_tags_and_aliases() {
        for (given, code) in [
            ("de", "de"),
            ("German", "de"),
            ("pt-BR", "pt"),
            ("zh_Hans", "zh"),
            ("Mandarin", "zh"),
            ("haitian creole", "ht"),
            (" EN ", "en"),
            ("yue", "yue"),
            ("jv", "jw"),
            ("iw-IL", "he"),
        ] {
            assert_eq!(language_code(given).unwrap(), code, "{given}");
        }
        assert_eq!(language_name("lv"), Some("latvian"));
        assert_eq!(language_name("xx"), None);
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
