//! What a language brings to normalisation: words and habits, no code of its own beyond grammar.

use super::numbers::{Cardinals, Gender};

/// The words and habits of one language.
#[derive(Debug)]
pub struct Language {
    /// ISO 639-1.
    pub code: &'static str,
    /// How it counts.
    pub cardinals: Cardinals,
    /// The words for a place in a row (`third`), if it has them for this number.
    pub ordinal: fn(u64, Gender) -> Option<String>,
    /// What makes a number an ordinal when it is written behind the digits, with its gender.
    pub ordinal_marks: &'static [(&'static str, Gender)],
    /// A point behind a number makes it an ordinal (`3. Oktober`).
    pub ordinal_point: bool,
    /// Decimal separator: `.` or `,`; the other one, blanks and `'` group thousands.
    pub decimal: char,
    /// The spoken decimal separator.
    pub point: &'static str,
    /// Digits behind the separator are read as a number when they are few (`virgule cinquante`).
    pub whole_fraction: bool,
    /// The minus sign.
    pub minus: &'static str,
    /// Between the ends of a range.
    pub to: &'static str,
    /// Between numerator and denominator of an unusual fraction.
    pub over: &'static str,
    /// Between the numbers of a ratio or score (`3:2`).
    pub ratio: &'static str,
    /// A power of ten behind a number, with `{}` for the power.
    pub ten_to: &'static str,
    /// How a year of our calendar is read.
    pub year: fn(&Language, u64) -> String,
    /// How a decade is read (`1990s`, `80s`), if it is written with digits.
    pub decade: Option<fn(&Language, u64) -> String>,
    /// How dates are read and written.
    pub dates: Dates,
    /// How times of day are read.
    pub time: fn(&Language, Clock) -> String,
    /// A word behind a time that is not read again (`Uhr`).
    pub clock_word: &'static str,
    /// An `h` behind a number makes it a time (`14h30`).
    pub hour_letter: bool,
    /// Currencies.
    pub money: &'static [Money],
    /// Between whole and parts of a currency.
    pub money_join: &'static str,
    /// Between a round number of millions and the currency (`de` euros).
    pub money_of: &'static str,
    /// Words after an amount that multiply it.
    pub magnitudes: &'static [(&'static str, &'static str)],
    /// Units of measurement.
    pub units: &'static [Unit],
    /// Between two units of a ratio (`per`).
    pub per: &'static str,
    /// Words before which a measure is an adjective, in the singular (`a 5 km run`).
    pub articles: &'static [&'static str],
    /// Half, quarter, ... by denominator: one, many.
    pub fractions: &'static [(u64, &'static str, &'static str)],
    /// What an abbreviation stands for.
    pub abbreviations: &'static [Abbreviation],
    /// Words with a capital that often begin sentences and seldom names.
    pub starters: &'static [&'static str],
    /// Names of those who are numbered, as in `Henry VIII`.
    pub rulers: &'static [&'static str],
    /// How such a number is read.
    pub ruler: fn(&Language, u64) -> String,
    /// Words before Roman numerals that count (`Chapter IV`), in small letters.
    pub numbered: &'static [&'static str],
    /// Whether a word, in small letters, is one of the language; unknown capitals are spelled.
    pub is_word: fn(&str) -> bool,
    /// Abbreviations in capitals that are read as words.
    pub read_as_words: &'static [&'static str],
    /// Symbols.
    pub symbols: &'static [(char, &'static str)],
    /// Between words: `and` for `&`.
    pub and: &'static str,
    /// Before a number that follows `#`.
    pub number_sign: &'static str,
    /// Before a word that follows `#`.
    pub hash: &'static str,
    /// Before a number that follows `~`.
    pub about: &'static str,
    /// The words of an address in the web: dot, slash, hyphen, underscore, at, colon.
    pub web: [&'static str; 6],
}

/// How dates are read and written.
#[derive(Debug)]
pub struct Dates {
    /// Full names, January first.
    pub months: [&'static str; 12],
    /// Short names, January first, in lower case without the point; empty where there is none.
    pub short: [&'static str; 12],
    /// The month comes first in numbers (`12/24/2024`).
    pub month_first: bool,
    /// Words that may stand between day, month and year.
    pub fillers: &'static [&'static str],
    /// Reads a date.
    pub say: fn(&Language, &Date) -> String,
}

/// A date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Date {
    /// 1 to 31.
    pub day: u64,
    /// Last day of a range.
    pub last_day: Option<u64>,
    /// 1 to 12.
    pub month: usize,
    /// Year, if given.
    pub year: Option<u64>,
    /// The word before the date, in small letters.
    pub after: String,
}

/// A time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// 0 to 24.
    pub hour: u64,
    /// 0 to 59.
    pub minute: u64,
    /// 0 to 59, if given.
    pub second: Option<u64>,
    /// Written with `am` (false) or `pm` (true).
    pub afternoon: Option<bool>,
}

/// A currency.
#[derive(Debug)]
pub struct Money {
    /// Signs and codes before or after the amount.
    pub signs: &'static [&'static str],
    /// One and more of it.
    pub names: [&'static str; 2],
    /// Its gender.
    pub gender: Gender,
    /// One and more of its hundredths; empty where it has none.
    pub parts: [&'static str; 2],
}

/// A unit of measurement.
#[derive(Debug)]
pub struct Unit {
    /// As it is written, capitals included.
    pub sign: &'static str,
    /// One and more of it.
    pub names: [&'static str; 2],
    /// Its gender.
    pub gender: Gender,
}

/// A shortened word with its point, if it has one.
#[derive(Debug)]
pub struct Abbreviation {
    /// As it is written; small letters also match a capital at the front.
    pub short: &'static str,
    /// What it stands for.
    pub long: &'static str,
    /// Where it may stand.
    pub place: Place,
}

/// Where an abbreviation may stand to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Before a name: a sentence never ends behind it.
    Title,
    /// Before a number only.
    Number,
    /// Behind a name.
    AfterName,
    /// Anywhere; a sentence does not end behind it.
    Inside,
    /// Anywhere; a sentence may end behind it.
    Anywhere,
}

impl Language {
    /// The language with an ISO 639 code, tag or English name, if it is known here.
    pub fn find(language: &str) -> Option<&'static Language> {
        let code = crate::text::languages::code(language)?;
        super::languages::ALL
            .into_iter()
            .find(|known| known.code == code)
    }

    /// The number `n` as counted.
    pub fn count(&self, n: u64) -> String {
        self.cardinals.words(n)
    }

    /// A day of the month: counted, but for the first, which is called `first`.
    pub fn day(&self, n: u64, first: &str) -> String {
        match n {
            1 => first.to_owned(),
            n => self.count(n),
        }
    }

    /// A date that begins with its day: the day, behind `to` the last day of a range, behind `of`
    /// the month, and what `year` makes of a year.
    pub fn day_first(
        &self,
        date: &Date,
        day: impl Fn(u64) -> String,
        [to, of]: [&str; 2],
        year: impl Fn(u64) -> String,
    ) -> String {
        let last = date.last_day.map(|last| format!("{to}{}", day(last)));
        format!(
            "{}{}{of}{}{}",
            day(date.day),
            last.unwrap_or_default(),
            self.dates.months[date.month - 1],
            date.year.map(year).unwrap_or_default()
        )
    }

    /// `n` of a thing that has two forms and a gender.
    pub fn count_of(&self, n: u64, names: [&str; 2], gender: Gender) -> String {
        let name = names[usize::from(n != 1)];
        format!("{} {name}", self.cardinals.agreeing(n, gender))
    }
}
