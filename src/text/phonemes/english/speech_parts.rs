//! Which part of speech a word is where that changes its sound (`to record`, `a record`).

const BEFORE_VERBS: &str = "to will would can could should may might must shall do does did don't doesn't didn't won't \
    can't couldn't wouldn't shouldn't cannot let let's i you we they who please not never always often usually \
    gonna wanna i'll you'll we'll they'll he'll she'll it'll i'd you'd we'd they'd and/or";
const BEFORE_NOUNS: &str = "a an the this that these those my your his her its our their some any no each every \
    another one two three four five six seven eight nine ten first second third last next new old good bad big \
    small great own such whose many few several both all world personal public whole of in on for with from by at \
    into under over about";
const BEFORE_ADJECTIVES: &str = "is are was were be been being am very so too more most quite really it's that's \
    he's she's they're we're you're i'm isn't aren't wasn't weren't how";
const PERFECT: &str =
    "have has had was were been is are be i've you've we've they've haven't hasn't hadn't being";
const DETERMINERS: &str =
    "a an the this that these those my your his her its our their me him us them it you";
const PAST: &str = "yesterday ago last earlier once then before already when";

fn is_in(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}

/// Letters of the lexicon for the parts of speech that the word at `index` may be, likeliest
/// first; `words` are those of its clause in small letters.
pub fn parts_of_speech(words: &[&str], index: usize) -> &'static str {
    let before = index.checked_sub(1).map(|i| words[i]).unwrap_or("");
    let after = words.get(index + 1).copied().unwrap_or("");
    let word = words[index];
    if word == "read" {
        return read(words, before);
    }
    // An adverb between does not change what is before.
    let before = if before.ends_with("ly") && index > 1 {
        words[index - 2]
    } else {
        before
    };
    if is_in(PERFECT, before) && !is_in(BEFORE_ADJECTIVES, before) {
        return "PDV";
    }
    if is_in(BEFORE_VERBS, before) {
        return "V";
    }
    if is_in(BEFORE_ADJECTIVES, before) {
        return "AP";
    }
    if is_in(BEFORE_NOUNS, before) {
        let last = after.is_empty()
            || is_in(DETERMINERS, after)
            || is_in(BEFORE_ADJECTIVES, after)
            || is_in(BEFORE_NOUNS, after)
            || is_in(BEFORE_VERBS, after);
        return if last { "N" } else { "AN" };
    }
    if is_in(DETERMINERS, after) {
        return "VB";
    }
    if after.is_empty() { "NX" } else { "" }
}

/// `read` looks the same in the present and the past.
fn read(words: &[&str], before: &str) -> &'static str {
    let past = words.iter().any(|word| is_in(PAST, word));
    if is_in(PERFECT, before) || matches!(before, "he" | "she" | "it") {
        "PD"
    } else if past
        && !is_in(
            "to will would can could should may might must don't didn't did do",
            before,
        )
    {
        "D"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_around_decide() {
        let part = |text: &str, word: &str| {
            let words: Vec<&str> = text.split(' ').collect();
            let index = words.iter().position(|found| *found == word).unwrap();
            parts_of_speech(&words, index).chars().next()
        };
        assert_eq!(part("i want to record a song", "record"), Some('V'));
        assert_eq!(part("he broke the record", "record"), Some('N'));
        assert_eq!(part("close the door", "close"), Some('V'));
        assert_eq!(part("they are very close", "close"), Some('A'));
        assert_eq!(part("she has read it", "read"), Some('P'));
        assert_eq!(part("i read it yesterday", "read"), Some('D'));
        assert_eq!(part("i read every day", "read"), None);
    }
}
