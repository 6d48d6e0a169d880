//! Small words in running speech, where they are weak and lean on their neighbours.

/// Word, and how it sounds in a sentence.
const WEAK: [(&str, &str); 91] = [
    ("a", "ɐ"),
    ("about", "ɐbˌaʊt"),
    ("am", "æm"),
    ("an", "ɐn"),
    ("and", "ænd"),
    ("any", "ˌɛni"),
    ("are", "ɑːɹ"),
    ("as", "æz"),
    ("at", "æt"),
    ("be", "biː"),
    ("because", "bɪkˈʌz"),
    ("been", "bˌɪn"),
    ("being", "bˌiːɪŋ"),
    ("but", "bˌʌt"),
    ("by", "baɪ"),
    ("can", "kæn"),
    ("could", "kʊd"),
    ("did", "dˈɪd"),
    ("do", "dˈuː"),
    ("does", "dʌz"),
    ("for", "fɔːɹ"),
    ("from", "fɹʌm"),
    ("had", "hɐd"),
    ("has", "hɐz"),
    ("have", "hæv"),
    ("he", "hiː"),
    ("her", "hɜː"),
    ("here", "hˈɪɹ"),
    ("him", "hˌɪm"),
    ("his", "hɪz"),
    ("i", "aɪ"),
    ("i'm", "aɪm"),
    ("i've", "aɪv"),
    ("i'll", "aɪl"),
    ("i'd", "aɪd"),
    ("if", "ɪf"),
    ("in", "ɪn"),
    ("into", "ˌɪntʊ"),
    ("is", "ɪz"),
    ("it", "ɪt"),
    ("it's", "ɪts"),
    ("its", "ɪts"),
    ("may", "mˈeɪ"),
    ("me", "mˌiː"),
    ("must", "mˈʌst"),
    ("my", "maɪ"),
    ("not", "nˌɑːt"),
    ("of", "ʌv"),
    ("on", "ɔn"),
    ("or", "ɔːɹ"),
    ("our", "ˌaʊɚ"),
    ("shall", "ʃˌæl"),
    ("she", "ʃiː"),
    ("should", "ʃˌʊd"),
    ("so", "sˌoʊ"),
    ("some", "sˌʌm"),
    ("than", "ðɐn"),
    ("that", "ðæt"),
    ("the", "ðə"),
    ("their", "ðɛɹ"),
    ("them", "ðˌɛm"),
    ("then", "ðˈɛn"),
    ("there", "ðɛɹ"),
    ("these", "ðiːz"),
    ("they", "ðeɪ"),
    ("they're", "ðeɪɚ"),
    ("they've", "ðeɪv"),
    ("they'll", "ðeɪl"),
    ("this", "ðɪs"),
    ("those", "ðoʊz"),
    ("to", "tə"),
    ("us", "ˌʌs"),
    ("was", "wʌz"),
    ("we", "wiː"),
    ("we're", "wɪɹ"),
    ("we've", "wiːv"),
    ("we'll", "wiːl"),
    ("were", "wɜː"),
    ("what", "wˌʌt"),
    ("when", "wɛn"),
    ("where", "wˌɛɹ"),
    ("which", "wˌɪtʃ"),
    ("who", "hˌuː"),
    ("will", "wɪl"),
    ("with", "wɪð"),
    ("would", "wʊd"),
    ("you", "juː"),
    ("you're", "jʊɹ"),
    ("you've", "juːv"),
    ("you'll", "juːl"),
    ("your", "jʊɹ"),
];

/// How they sound at the end of a clause, where it differs.
const FINAL: [(&str, &str); 26] = [
    ("a", "ˈeɪ"),
    ("about", "ɐbˈaʊt"),
    ("am", "ˈæm"),
    ("are", "ˈɑːɹ"),
    ("can", "kˈæn"),
    ("for", "fˈɔːɹ"),
    ("from", "fɹˈʌm"),
    ("had", "hˈæd"),
    ("has", "hˈæz"),
    ("have", "hˈæv"),
    ("he", "hˈiː"),
    ("his", "hˈɪz"),
    ("i", "ˈaɪ"),
    ("in", "ˈɪn"),
    ("is", "ˈɪz"),
    ("on", "ˈɔn"),
    ("she", "ʃˈiː"),
    ("so", "sˈoʊ"),
    ("that", "ðˈæt"),
    ("there", "ðˈɛɹ"),
    ("this", "ðˈɪs"),
    ("to", "tuː"),
    ("was", "wˈʌz"),
    ("will", "wˈɪl"),
    ("with", "wˈɪð"),
    ("would", "wˈʊd"),
];

/// Pairs that are spoken as one: first, second, and how each sounds then. They part again before
/// a vowel.
const JOINED: [(&str, &str, &str, &str); 15] = [
    ("in", "the", "ɪn", "ðə"),
    ("of", "the", "ʌv", "ðə"),
    ("on", "the", "ɔn", "ðə"),
    ("for", "the", "fɚ", "ðə"),
    ("from", "the", "fɹʌm", "ðə"),
    ("that", "the", "ðæt", "ðə"),
    ("at", "the", "æt", "ðə"),
    ("with", "the", "wɪð", "ðə"),
    ("by", "the", "baɪ", "ðə"),
    ("had", "been", "hɐd", "bɪn"),
    ("has", "been", "hɐz", "bɪn"),
    ("have", "been", "hæv", "bɪn"),
    ("could", "have", "kˌʊd", "ɐv"),
    ("should", "have", "ʃˌʊd", "əv"),
    ("there", "are", "ðɛɹ", "ˌɑːɹ"),
];

/// The weak form of a word in small letters.
pub fn weak(word: &str, last: bool) -> Option<&'static str> {
    let find = |list: &'static [(&str, &str)]| list.iter().find(|(known, _)| *known == word);
    let ending = if last { find(&FINAL) } else { None };
    ending.or_else(|| find(&WEAK)).map(|(_, ipa)| *ipa)
}

/// How two words sound that are spoken as one.
pub fn joined(first: &str, second: &str) -> Option<(&'static str, &'static str)> {
    let found = JOINED
        .iter()
        .find(|(a, b, _, _)| *a == first && *b == second);
    found.map(|(_, _, a, b)| (*a, *b))
}

/// Whether sounds begin with a vowel.
pub fn begins_with_vowel(ipa: &str) -> bool {
    let first = ipa.chars().find(|c| !matches!(c, 'ˈ' | 'ˌ'));
    first.is_some_and(|c| "aeiouæɑɐɔəɚɛɜɪʊʌᵻ".contains(c))
}

/// `ipa` of `word` as it sounds before a word that begins with a vowel.
pub fn before_vowel(word: &str, ipa: &str) -> Option<String> {
    match word {
        "the" => Some("ðɪ".into()),
        "to" if ipa == "tə" => Some("tʊ".into()),
        _ if ipa.ends_with("ɜː") || ipa.ends_with('ɚ') => Some(format!("{ipa}ɹ")),
        _ => None,
    }
}
