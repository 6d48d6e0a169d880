//! English.

use super::{english_lists as lists, money};
use crate::text::normalize::{
    language::{Clock, Date, Dates, Language},
    numbers::{Cardinals, Gender, Scale},
};

const ONES: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] = [
    "", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
];
const ORDINALS: [(&str, &str); 7] = [
    ("one", "first"),
    ("two", "second"),
    ("three", "third"),
    ("five", "fifth"),
    ("eight", "eighth"),
    ("nine", "ninth"),
    ("twelve", "twelfth"),
];

fn below_hundred(n: u64) -> String {
    match n {
        0..20 => ONES[n as usize].to_owned(),
        _ if n.is_multiple_of(10) => TENS[(n / 10 % 10) as usize].to_owned(),
        _ => format!(
            "{}-{}",
            TENS[(n / 10 % 10) as usize],
            ONES[(n % 10) as usize]
        ),
    }
}

fn ordinal(n: u64, _: Gender) -> Option<String> {
    let words = ENGLISH.count(n);
    let cut = words.rfind([' ', '-']).map_or(0, |at| at + 1);
    let (stem, last) = words.split_at(cut);
    let last = match ORDINALS.iter().find(|(cardinal, _)| *cardinal == last) {
        Some((_, ordinal)) => (*ordinal).to_owned(),
        None => match last.strip_suffix('y') {
            Some(short) => format!("{short}ieth"),
            None => format!("{last}th"),
        },
    };
    Some(format!("{stem}{last}"))
}

fn year(language: &Language, year: u64) -> String {
    let (century, rest) = (year / 100, year % 100);
    match (century, rest) {
        (10 | 20, 0..10) => language.count(year),
        (_, 0) => format!("{} hundred", language.count(century)),
        (_, 1..10) => format!("{} oh {}", language.count(century), language.count(rest)),
        _ => format!("{} {}", language.count(century), language.count(rest)),
    }
}

fn decade(language: &Language, start: u64) -> String {
    let words = if start >= 1000 {
        year(language, start)
    } else {
        language.count(start)
    };
    match words.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{words}s"),
    }
}

fn date(language: &Language, date: &Date) -> String {
    let day = |n| ordinal(n, Gender::Counted).unwrap_or_default();
    let month = language.dates.months[date.month - 1];
    let range = date
        .last_day
        .map_or(String::new(), |last| format!(" to {}", day(last)));
    let year = date
        .year
        .map_or(String::new(), |n| format!(", {}", year(language, n)));
    if date.after == "the" {
        return format!("{}{range} of {month}{year}", day(date.day));
    }
    format!("{month} {}{range}{year}", day(date.day))
}

fn time(language: &Language, clock: Clock) -> String {
    let hour = language.count(clock.hour);
    let half = match clock.afternoon {
        Some(true) => " P M",
        Some(false) => " A M",
        None => "",
    };
    let minute = match clock.minute {
        0 if clock.second.is_some() || clock.hour > 12 || clock.hour == 0 => " hundred".to_owned(),
        0 if clock.afternoon.is_some() => String::new(),
        0 => " o'clock".to_owned(),
        minute @ 1..10 => format!(" oh {}", language.count(minute)),
        minute => format!(" {}", language.count(minute)),
    };
    let second = clock.second.map_or(String::new(), |second| {
        format!(
            " and {}",
            language.count_of(second, ["second", "seconds"], Gender::Counted)
        )
    });
    format!("{hour}{minute}{second}{half}")
}

fn ruler(_: &Language, n: u64) -> String {
    format!("the {}", ordinal(n, Gender::Counted).unwrap_or_default())
}

/// The language.
pub static ENGLISH: Language = Language {
    code: "en",
    cardinals: Cardinals {
        below_hundred,
        hundreds: [
            "",
            "one hundred",
            "two hundred",
            "three hundred",
            "four hundred",
            "five hundred",
            "six hundred",
            "seven hundred",
            "eight hundred",
            "nine hundred",
        ],
        hundreds_end: "",
        hundred_alone: "one hundred",
        hundred_join: " ",
        scales: &[
            Scale {
                one: "one thousand",
                many: "thousand",
                glued: false,
            },
            Scale {
                one: "one million",
                many: "million",
                glued: false,
            },
            Scale {
                one: "one billion",
                many: "billion",
                glued: false,
            },
            Scale {
                one: "one trillion",
                many: "trillion",
                glued: false,
            },
        ],
        last_join: " ",
        agree: |words, _| words.to_owned(),
    },
    ordinal,
    ordinal_marks: &[
        ("st", Gender::Counted),
        ("nd", Gender::Counted),
        ("rd", Gender::Counted),
        ("th", Gender::Counted),
    ],
    ordinal_point: false,
    decimal: '.',
    point: "point",
    whole_fraction: false,
    minus: "minus",
    to: "to",
    over: "over",
    ratio: "to",
    ten_to: "times ten to the {}",
    year,
    decade: Some(decade),
    dates: Dates {
        months: [
            "January",
            "February",
            "March",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "December",
        ],
        short: [
            "jan", "feb", "mar", "apr", "", "jun", "jul", "aug", "sept", "oct", "nov", "dec",
        ],
        month_first: true,
        fillers: &["of"],
        say: date,
    },
    time,
    clock_word: "o'clock",
    hour_letter: false,
    money: &[
        money(
            &["$", "US$", "USD"],
            ["dollar", "dollars"],
            ["cent", "cents"],
        ),
        money(&["€", "EUR"], ["euro", "euros"], ["cent", "cents"]),
        money(&["£", "GBP"], ["pound", "pounds"], ["penny", "pence"]),
        money(&["¥", "JPY"], ["yen", "yen"], ["", ""]),
        money(
            &["₹", "INR", "Rs."],
            ["rupee", "rupees"],
            ["paisa", "paise"],
        ),
        money(&["₩", "KRW"], ["won", "won"], ["", ""]),
        money(&["₽", "RUB"], ["ruble", "rubles"], ["kopek", "kopeks"]),
        money(&["₿", "BTC"], ["bitcoin", "bitcoins"], ["", ""]),
        money(
            &["A$", "AUD"],
            ["Australian dollar", "Australian dollars"],
            ["cent", "cents"],
        ),
        money(
            &["C$", "CAD"],
            ["Canadian dollar", "Canadian dollars"],
            ["cent", "cents"],
        ),
        money(
            &["CHF"],
            ["Swiss franc", "Swiss francs"],
            ["centime", "centimes"],
        ),
        money(&["CNY", "RMB"], ["yuan", "yuan"], ["", ""]),
        money(&["¢"], ["cent", "cents"], ["", ""]),
    ],
    money_join: " and ",
    money_of: " ",
    magnitudes: &[
        ("thousand", "thousand"),
        ("million", "million"),
        ("billion", "billion"),
        ("trillion", "trillion"),
        ("k", "thousand"),
        ("K", "thousand"),
        ("m", "million"),
        ("M", "million"),
        ("mn", "million"),
        ("b", "billion"),
        ("B", "billion"),
        ("bn", "billion"),
        ("T", "trillion"),
        ("tn", "trillion"),
        ("mil", "million"),
        ("mio", "million"),
    ],
    units: lists::UNITS,
    per: "per",
    articles: &["a", "an"],
    fractions: &[
        (2, "half", "halves"),
        (3, "third", "thirds"),
        (4, "quarter", "quarters"),
        (5, "fifth", "fifths"),
        (6, "sixth", "sixths"),
        (7, "seventh", "sevenths"),
        (8, "eighth", "eighths"),
        (9, "ninth", "ninths"),
        (10, "tenth", "tenths"),
        (12, "twelfth", "twelfths"),
        (16, "sixteenth", "sixteenths"),
        (32, "thirty-second", "thirty-seconds"),
        (100, "hundredth", "hundredths"),
    ],
    abbreviations: lists::ABBREVIATIONS,
    starters: &[
        "The", "A", "An", "He", "She", "It", "They", "We", "You", "I", "This", "That", "These",
        "Those", "There", "Here", "But", "And", "Or", "So", "Then", "If", "When", "While", "After",
        "Before", "His", "Her", "Its", "Their", "Our", "My", "Your", "What", "Who", "Why", "How",
        "Where", "In", "On", "At", "For", "From", "With", "As", "By", "No", "Not", "Yes",
        "However", "Now", "Let", "Some", "All", "Many", "Is", "Are", "Do", "Did",
    ],
    rulers: &[
        "Henry",
        "Louis",
        "Charles",
        "George",
        "Edward",
        "Elizabeth",
        "James",
        "William",
        "Richard",
        "John",
        "Mary",
        "Philip",
        "Francis",
        "Frederick",
        "Wilhelm",
        "Nicholas",
        "Peter",
        "Catherine",
        "Alexander",
        "Pope",
        "Paul",
        "Pius",
        "Benedict",
        "Gregory",
        "Leo",
        "Innocent",
        "Clement",
        "Napoleon",
        "Ramses",
        "Ramesses",
        "Ptolemy",
        "Cosimo",
        "Ferdinand",
        "Otto",
        "Joseph",
        "Margrethe",
        "Carl",
        "Gustav",
        "Ivan",
    ],
    ruler,
    numbered: &[
        "chapter", "part", "volume", "book", "act", "scene", "war", "phase", "type", "section",
        "title", "class", "level", "grade", "stage", "article", "appendix", "figure", "table",
        "super", "bowl",
    ],
    is_word: crate::text::phonemes::english::is_word,
    read_as_words: lists::READ_AS_WORDS,
    symbols: &[
        ('+', "plus"),
        ('=', "equals"),
        ('<', "less than"),
        ('>', "greater than"),
        ('@', "at"),
        ('*', "times"),
        ('×', "times"),
        ('÷', "divided by"),
        ('±', "plus or minus"),
        ('≠', "is not equal to"),
        ('≤', "less than or equal to"),
        ('≥', "greater than or equal to"),
        ('→', "to"),
        ('√', "square root of"),
        ('π', "pi"),
        ('§', "section"),
        ('∞', "infinity"),
        ('²', "squared"),
        ('³', "cubed"),
        ('?', "question mark"),
    ],
    and: "and",
    number_sign: "number",
    hash: "hashtag",
    about: "about",
    web: ["dot", "slash", "dash", "underscore", "at", "colon"],
};
