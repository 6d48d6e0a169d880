//! Names and codes of languages.

/// Codes of spoken languages with their English names: ISO 639-1 where it has one, and `jw` for
/// Javanese, as speech models write it.
const NAMES: [(&str, &str); 100] = [
    ("af", "afrikaans"),
    ("am", "amharic"),
    ("ar", "arabic"),
    ("as", "assamese"),
    ("az", "azerbaijani"),
    ("ba", "bashkir"),
    ("be", "belarusian"),
    ("bg", "bulgarian"),
    ("bn", "bengali"),
    ("bo", "tibetan"),
    ("br", "breton"),
    ("bs", "bosnian"),
    ("ca", "catalan"),
    ("cs", "czech"),
    ("cy", "welsh"),
    ("da", "danish"),
    ("de", "german"),
    ("el", "greek"),
    ("en", "english"),
    ("es", "spanish"),
    ("et", "estonian"),
    ("eu", "basque"),
    ("fa", "persian"),
    ("fi", "finnish"),
    ("fo", "faroese"),
    ("fr", "french"),
    ("gl", "galician"),
    ("gu", "gujarati"),
    ("ha", "hausa"),
    ("haw", "hawaiian"),
    ("he", "hebrew"),
    ("hi", "hindi"),
    ("hr", "croatian"),
    ("ht", "haitian creole"),
    ("hu", "hungarian"),
    ("hy", "armenian"),
    ("id", "indonesian"),
    ("is", "icelandic"),
    ("it", "italian"),
    ("ja", "japanese"),
    ("jw", "javanese"),
    ("ka", "georgian"),
    ("kk", "kazakh"),
    ("km", "khmer"),
    ("kn", "kannada"),
    ("ko", "korean"),
    ("la", "latin"),
    ("lb", "luxembourgish"),
    ("ln", "lingala"),
    ("lo", "lao"),
    ("lt", "lithuanian"),
    ("lv", "latvian"),
    ("mg", "malagasy"),
    ("mi", "maori"),
    ("mk", "macedonian"),
    ("ml", "malayalam"),
    ("mn", "mongolian"),
    ("mr", "marathi"),
    ("ms", "malay"),
    ("mt", "maltese"),
    ("my", "myanmar"),
    ("ne", "nepali"),
    ("nl", "dutch"),
    ("nn", "nynorsk"),
    ("no", "norwegian"),
    ("oc", "occitan"),
    ("pa", "punjabi"),
    ("pl", "polish"),
    ("ps", "pashto"),
    ("pt", "portuguese"),
    ("ro", "romanian"),
    ("ru", "russian"),
    ("sa", "sanskrit"),
    ("sd", "sindhi"),
    ("si", "sinhala"),
    ("sk", "slovak"),
    ("sl", "slovenian"),
    ("sn", "shona"),
    ("so", "somali"),
    ("sq", "albanian"),
    ("sr", "serbian"),
    ("su", "sundanese"),
    ("sv", "swedish"),
    ("sw", "swahili"),
    ("ta", "tamil"),
    ("te", "telugu"),
    ("tg", "tajik"),
    ("th", "thai"),
    ("tk", "turkmen"),
    ("tl", "tagalog"),
    ("tr", "turkish"),
    ("tt", "tatar"),
    ("uk", "ukrainian"),
    ("ur", "urdu"),
    ("uz", "uzbek"),
    ("vi", "vietnamese"),
    ("yi", "yiddish"),
    ("yo", "yoruba"),
    ("yue", "cantonese"),
    ("zh", "chinese"),
];

/// Other English names and other codes of the same languages.
const ALIASES: [(&str, &str); 18] = [
    ("burmese", "my"),
    ("castilian", "es"),
    ("fil", "tl"),
    ("filipino", "tl"),
    ("flemish", "nl"),
    ("haitian", "ht"),
    ("in", "id"),
    ("iw", "he"),
    ("jv", "jw"),
    ("letzeburgesch", "lb"),
    ("mandarin", "zh"),
    ("moldavian", "ro"),
    ("moldovan", "ro"),
    ("nb", "no"),
    ("panjabi", "pa"),
    ("pushto", "ps"),
    ("sinhalese", "si"),
    ("valencian", "ca"),
];

/// The code of a language given as a code (`de`), a tag with a region (`pt-BR`, `zh_Hans`) or an
/// English name (`German`); capitals do not matter.
pub fn code(language: &str) -> Option<&'static str> {
    let wanted = language.trim().to_lowercase();
    let tag = wanted.split(['-', '_']).next().unwrap_or_default();
    let find = |wanted: &str| {
        let known = NAMES
            .iter()
            .find(|(code, name)| *code == wanted || *name == wanted);
        let alias = || ALIASES.iter().find(|(alias, _)| *alias == wanted);
        known
            .map(|(code, _)| *code)
            .or_else(|| alias().map(|(_, code)| *code))
    };
    find(&wanted).or_else(|| find(tag))
}

/// The English name of a language code, in lower case (`de` gives `german`).
pub fn name(code: &str) -> Option<&'static str> {
    let known = NAMES.iter().find(|(known, _)| *known == code);
    known.map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_names_tags_and_aliases() {
        for (given, wanted) in [
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
            assert_eq!(code(given), Some(wanted), "{given}");
        }
        assert_eq!(code("klingon"), None);
        assert_eq!(code(""), None);
        assert_eq!(name("lv"), Some("latvian"));
        assert_eq!(name("xx"), None);
    }

    #[test]
    fn the_table_is_sorted_and_aliases_lead_into_it() {
        assert!(NAMES.is_sorted());
        for (alias, target) in ALIASES {
            assert!(name(target).is_some() && name(alias).is_none(), "{alias}");
        }
    }
}
