//! Dutch.

use super::{looks_like_a_word, money, short, unit};
use crate::text::normalize::{
    language::{Clock, Date, Dates, Language, Place},
    numbers::{Cardinals, Gender, Scale},
};

const ONES: [&str; 20] = [
    "nul",
    "een",
    "twee",
    "drie",
    "vier",
    "vijf",
    "zes",
    "zeven",
    "acht",
    "negen",
    "tien",
    "elf",
    "twaalf",
    "dertien",
    "veertien",
    "vijftien",
    "zestien",
    "zeventien",
    "achttien",
    "negentien",
];
const TENS: [&str; 10] = [
    "", "", "twintig", "dertig", "veertig", "vijftig", "zestig", "zeventig", "tachtig", "negentig",
];

fn below_hundred(n: u64) -> String {
    let ten = TENS[(n / 10 % 10) as usize];
    match (n, n % 10) {
        (0..20, _) => ONES[n as usize].to_owned(),
        (_, 0) => ten.to_owned(),
        // A vowel before `en` needs a trema.
        (_, one @ (2 | 3)) => format!("{}ën{ten}", ONES[one as usize]),
        (_, one) => format!("{}en{ten}", ONES[one as usize]),
    }
}

fn ordinal(n: u64, _: Gender) -> Option<String> {
    let words = DUTCH.count(n);
    let last = n % 100;
    Some(match last {
        1 => format!("{}eerste", words.strip_suffix("een")?),
        3 => format!("{}derde", words.strip_suffix("drie")?),
        8 => format!("{words}ste"),
        0 => format!("{words}ste"),
        2..20 => format!("{words}de"),
        _ => format!("{words}ste"),
    })
}

fn year(language: &Language, year: u64) -> String {
    let (century, rest) = (year / 100, year % 100);
    match (century, rest) {
        (20, 0..10) | (10, _) => language.count(year),
        (_, 0) => format!("{}honderd", language.count(century)),
        (20, _) => format!("{} {}", language.count(century), language.count(rest)),
        _ => format!("{}honderd{}", language.count(century), language.count(rest)),
    }
}

fn date(language: &Language, date: &Date) -> String {
    let day = |n| language.count(n);
    let year = |n| format!(" {}", year(language, n));
    language.day_first(date, day, [" tot ", " "], year)
}

fn time(language: &Language, clock: Clock) -> String {
    let minute = if clock.minute > 0 {
        format!(" {}", language.count(clock.minute))
    } else {
        String::new()
    };
    let second = clock.second.map_or(String::new(), |second| {
        format!(
            " en {}",
            language.count_of(second, ["seconde", "seconden"], Gender::Masculine)
        )
    });
    format!("{} uur{minute}{second}", language.count(clock.hour))
}

fn ruler(_: &Language, n: u64) -> String {
    format!("de {}", ordinal(n, Gender::Counted).unwrap_or_default())
}

use Place::{Anywhere, Inside, Number, Title};

/// The language.
pub static DUTCH: Language = Language {
    code: "nl",
    cardinals: Cardinals {
        below_hundred,
        hundreds: [
            "",
            "honderd",
            "tweehonderd",
            "driehonderd",
            "vierhonderd",
            "vijfhonderd",
            "zeshonderd",
            "zevenhonderd",
            "achthonderd",
            "negenhonderd",
        ],
        hundreds_end: "",
        hundred_alone: "honderd",
        hundred_join: "",
        scales: &[
            Scale {
                one: "duizend",
                many: "duizend",
                glued: true,
            },
            Scale {
                one: "een miljoen",
                many: "miljoen",
                glued: false,
            },
            Scale {
                one: "een miljard",
                many: "miljard",
                glued: false,
            },
            Scale {
                one: "een biljoen",
                many: "biljoen",
                glued: false,
            },
        ],
        last_join: " ",
        agree: |words, _| words.to_owned(),
    },
    ordinal,
    ordinal_marks: &[
        ("e", Gender::Counted),
        ("ste", Gender::Counted),
        ("de", Gender::Counted),
    ],
    ordinal_point: false,
    decimal: ',',
    point: "komma",
    whole_fraction: false,
    minus: "min",
    to: "tot",
    over: "gedeeld door",
    ratio: "tegen",
    ten_to: "maal tien tot de macht {}",
    year,
    decade: None,
    dates: Dates {
        months: [
            "januari",
            "februari",
            "maart",
            "april",
            "mei",
            "juni",
            "juli",
            "augustus",
            "september",
            "oktober",
            "november",
            "december",
        ],
        short: [
            "jan", "feb", "mrt", "apr", "", "jun", "jul", "aug", "sept", "okt", "nov", "dec",
        ],
        month_first: false,
        fillers: &[],
        say: date,
    },
    time,
    clock_word: "uur",
    hour_letter: false,
    money: &[
        money(&["€", "EUR"], ["euro", "euro"], ["cent", "cent"]),
        money(&["$", "US$", "USD"], ["dollar", "dollar"], ["cent", "cent"]),
        money(&["£", "GBP"], ["pond", "pond"], ["penny", "pence"]),
        money(&["¥", "JPY"], ["yen", "yen"], ["", ""]),
    ],
    money_join: " en ",
    money_of: " ",
    magnitudes: &[
        ("miljoen", "miljoen"),
        ("miljard", "miljard"),
        ("duizend", "duizend"),
        ("mln", "miljoen"),
        ("mld", "miljard"),
    ],
    units: &[
        unit("%", "procent", "procent"),
        unit("‰", "promille", "promille"),
        unit("°", "graad", "graden"),
        unit("°C", "graad Celsius", "graden Celsius"),
        unit("°F", "graad Fahrenheit", "graden Fahrenheit"),
        unit("km", "kilometer", "kilometer"),
        unit("m", "meter", "meter"),
        unit("cm", "centimeter", "centimeter"),
        unit("mm", "millimeter", "millimeter"),
        unit("m²", "vierkante meter", "vierkante meter"),
        unit("km²", "vierkante kilometer", "vierkante kilometer"),
        unit("m³", "kubieke meter", "kubieke meter"),
        unit("kg", "kilogram", "kilogram"),
        unit("g", "gram", "gram"),
        unit("mg", "milligram", "milligram"),
        unit("l", "liter", "liter"),
        unit("ml", "milliliter", "milliliter"),
        unit("min", "minuut", "minuten"),
        unit("s", "seconde", "seconden"),
        unit("km/h", "kilometer per uur", "kilometer per uur"),
        unit("km/u", "kilometer per uur", "kilometer per uur"),
        unit("Hz", "hertz", "hertz"),
        unit("MHz", "megahertz", "megahertz"),
        unit("GHz", "gigahertz", "gigahertz"),
        unit("W", "watt", "watt"),
        unit("kW", "kilowatt", "kilowatt"),
        unit("kWh", "kilowattuur", "kilowattuur"),
        unit("V", "volt", "volt"),
        unit("MB", "megabyte", "megabyte"),
        unit("GB", "gigabyte", "gigabyte"),
        unit("TB", "terabyte", "terabyte"),
    ],
    per: "per",
    articles: &[],
    fractions: &[
        (2, "half", "halve"),
        (3, "derde", "derde"),
        (4, "kwart", "kwart"),
        (5, "vijfde", "vijfde"),
        (8, "achtste", "achtste"),
    ],
    abbreviations: &[
        short("dr.", "dokter", Inside),
        short("dhr.", "de heer", Inside),
        short("mevr.", "mevrouw", Inside),
        short("mw.", "mevrouw", Inside),
        short("prof.", "professor", Inside),
        short("ir.", "ingenieur", Inside),
        short("St.", "Sint", Title),
        short("enz.", "enzovoort", Anywhere),
        short("etc.", "et cetera", Anywhere),
        short("bijv.", "bijvoorbeeld", Inside),
        short("bv.", "bijvoorbeeld", Inside),
        short("d.w.z.", "dat wil zeggen", Inside),
        short("o.a.", "onder andere", Inside),
        short("m.a.w.", "met andere woorden", Inside),
        short("t/m", "tot en met", Inside),
        short("ca.", "circa", Inside),
        short("nr.", "nummer", Inside),
        short("blz.", "bladzijde", Inside),
        short("p.", "pagina", Number),
        short("tel.", "telefoon", Inside),
        short("a.u.b.", "alstublieft", Anywhere),
        short("n.Chr.", "na Christus", Anywhere),
        short("v.Chr.", "voor Christus", Anywhere),
        short("max.", "maximaal", Inside),
        short("min.", "minimaal", Inside),
        short("incl.", "inclusief", Inside),
        short("mln.", "miljoen", Inside),
        short("mld.", "miljard", Inside),
    ],
    starters: &[
        "De", "Het", "Een", "Hij", "Zij", "Ze", "Wij", "We", "Ik", "Jij", "Je", "En", "Maar",
        "Dan", "Toen", "Als", "In", "Op", "Met", "Dit", "Dat", "Deze", "Die", "Er", "Daar", "Hier",
    ],
    rulers: &["Willem", "Lodewijk", "Filips", "Karel", "Hendrik"],
    ruler,
    numbered: &[
        "hoofdstuk",
        "deel",
        "wereldoorlog",
        "akte",
        "klasse",
        "artikel",
    ],
    is_word: looks_like_a_word,
    read_as_words: &[
        "NAVO", "NASA", "OPEC", "COVID", "HAVO", "PIN", "OK", "EN", "DE", "HET",
    ],
    symbols: &[
        ('+', "plus"),
        ('=', "is"),
        ('<', "kleiner dan"),
        ('>', "groter dan"),
        ('@', "apenstaartje"),
        ('*', "keer"),
        ('×', "keer"),
        ('÷', "gedeeld door"),
        ('±', "plus of min"),
        ('→', "naar"),
        ('§', "paragraaf"),
        ('²', "kwadraat"),
        ('π', "pi"),
    ],
    and: "en",
    number_sign: "nummer",
    hash: "hashtag",
    about: "ongeveer",
    web: [
        "punt",
        "slash",
        "streepje",
        "laag streepje",
        "apenstaartje",
        "dubbele punt",
    ],
};
