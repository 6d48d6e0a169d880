//! The data of the languages.

mod dutch;
mod english;
mod english_lists;
mod french;
mod german;
mod italian;
mod portuguese;
mod spanish;

use super::{
    language::{Abbreviation, Language, Money, Place, Unit},
    numbers::Gender,
};

/// All languages with data.
pub static ALL: [&Language; 7] = [
    &english::ENGLISH,
    &german::GERMAN,
    &french::FRENCH,
    &spanish::SPANISH,
    &italian::ITALIAN,
    &portuguese::PORTUGUESE,
    &dutch::DUTCH,
];

/// A currency without gender.
const fn money(
    signs: &'static [&'static str],
    names: [&'static str; 2],
    parts: [&'static str; 2],
) -> Money {
    Money {
        signs,
        names,
        gender: Gender::Masculine,
        parts,
    }
}

/// A currency that is feminine.
const fn money_f(
    signs: &'static [&'static str],
    names: [&'static str; 2],
    parts: [&'static str; 2],
) -> Money {
    Money {
        signs,
        names,
        gender: Gender::Feminine,
        parts,
    }
}

/// A unit that is masculine or neuter.
const fn unit(sign: &'static str, one: &'static str, many: &'static str) -> Unit {
    Unit {
        sign,
        names: [one, many],
        gender: Gender::Masculine,
    }
}

/// A unit that is feminine.
const fn unit_f(sign: &'static str, one: &'static str, many: &'static str) -> Unit {
    Unit {
        sign,
        names: [one, many],
        gender: Gender::Feminine,
    }
}

/// An abbreviation.
const fn short(short: &'static str, long: &'static str, place: Place) -> Abbreviation {
    Abbreviation { short, long, place }
}

/// Whether a word of capitals may be one of a language without a dictionary: long enough, and
/// with a vowel in about every third letter.
fn looks_like_a_word(word: &str) -> bool {
    let letters = word.chars().count();
    let vowels = word
        .chars()
        .filter(|c| "aeiouyäöüáéíóúàèêâôãõ".contains(*c))
        .count();
    letters > 4 && vowels * 3 >= letters
}
