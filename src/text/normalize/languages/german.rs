//! German.

use super::{looks_like_a_word, money, short, unit, unit_f};
use crate::text::normalize::{
    language::{Clock, Date, Dates, Language, Place},
    numbers::{Cardinals, Gender, Scale},
};

const ONES: [&str; 20] = [
    "null",
    "eins",
    "zwei",
    "drei",
    "vier",
    "fünf",
    "sechs",
    "sieben",
    "acht",
    "neun",
    "zehn",
    "elf",
    "zwölf",
    "dreizehn",
    "vierzehn",
    "fünfzehn",
    "sechzehn",
    "siebzehn",
    "achtzehn",
    "neunzehn",
];
const TENS: [&str; 10] = [
    "", "", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig",
];

fn below_hundred(n: u64) -> String {
    let ten = TENS[(n / 10 % 10) as usize];
    match (n, n % 10) {
        (0..20, _) => ONES[n as usize].to_owned(),
        (_, 0) => ten.to_owned(),
        (_, 1) => format!("einund{ten}"),
        (_, one) => format!("{}und{ten}", ONES[one as usize]),
    }
}

fn agree(words: &str, gender: Gender) -> String {
    match (words, gender) {
        ("eins", Gender::Feminine) => "eine".into(),
        ("eins", _) => "ein".into(),
        _ => words.to_owned(),
    }
}

/// With the ending `-e`; others are added to it.
fn ordinal(n: u64, _: Gender) -> Option<String> {
    Some(match n {
        1 => "erste".into(),
        3 => "dritte".into(),
        7 => "siebte".into(),
        8 => "achte".into(),
        _ => {
            let words = GERMAN.count(n);
            let stem = match words.strip_suffix("eins") {
                Some(stem) => format!("{stem}erst"),
                None if (1..20).contains(&(n % 100)) => format!("{words}t"),
                None => format!("{words}st"),
            };
            format!("{stem}e")
        }
    })
}

fn year(language: &Language, year: u64) -> String {
    let (century, rest) = (year / 100, year % 100);
    if !(11..20).contains(&century) {
        return language.count(year);
    }
    let rest = if rest == 0 {
        String::new()
    } else {
        language.count(rest)
    };
    format!("{}hundert{rest}", language.count(century))
}

fn date(language: &Language, date: &Date) -> String {
    let declined = matches!(
        date.after.as_str(),
        "am" | "vom" | "zum" | "bis" | "dem" | "den" | "ab" | "seit" | "beim" | "im" | "des"
    );
    let ending = if declined {
        "n"
    } else if date.after == "der" {
        ""
    } else {
        "r"
    };
    let day = |n| {
        format!(
            "{}{ending}",
            ordinal(n, Gender::Counted).unwrap_or_default()
        )
    };
    let year = |n| format!(" {}", year(language, n));
    language.day_first(date, day, [" bis ", " "], year)
}

fn time(language: &Language, clock: Clock) -> String {
    let hour = language.cardinals.agreeing(clock.hour, Gender::Masculine);
    let minute = if clock.minute > 0 {
        format!(" {}", language.count(clock.minute))
    } else {
        String::new()
    };
    let second = clock.second.map_or(String::new(), |second| {
        format!(
            " und {}",
            language.count_of(second, ["Sekunde", "Sekunden"], Gender::Feminine)
        )
    });
    format!("{hour} Uhr{minute}{second}")
}

fn ruler(_: &Language, n: u64) -> String {
    format!("der {}", ordinal(n, Gender::Counted).unwrap_or_default())
}

use Place::{Anywhere, Inside, Number, Title};

/// The language.
pub static GERMAN: Language = Language {
    code: "de",
    cardinals: Cardinals {
        below_hundred,
        hundreds: [
            "",
            "einhundert",
            "zweihundert",
            "dreihundert",
            "vierhundert",
            "fünfhundert",
            "sechshundert",
            "siebenhundert",
            "achthundert",
            "neunhundert",
        ],
        hundreds_end: "",
        hundred_alone: "einhundert",
        hundred_join: "",
        scales: &[
            Scale {
                one: "eintausend",
                many: "tausend",
                glued: true,
            },
            Scale {
                one: "eine Million",
                many: "Millionen",
                glued: false,
            },
            Scale {
                one: "eine Milliarde",
                many: "Milliarden",
                glued: false,
            },
            Scale {
                one: "eine Billion",
                many: "Billionen",
                glued: false,
            },
        ],
        last_join: "",
        agree,
    },
    ordinal,
    ordinal_marks: &[],
    ordinal_point: true,
    decimal: ',',
    point: "Komma",
    whole_fraction: false,
    minus: "minus",
    to: "bis",
    over: "durch",
    ratio: "zu",
    ten_to: "mal zehn hoch {}",
    year,
    decade: None,
    dates: Dates {
        months: [
            "Januar",
            "Februar",
            "März",
            "April",
            "Mai",
            "Juni",
            "Juli",
            "August",
            "September",
            "Oktober",
            "November",
            "Dezember",
        ],
        short: [
            "jan", "feb", "mär", "apr", "", "jun", "jul", "aug", "sept", "okt", "nov", "dez",
        ],
        month_first: false,
        fillers: &[],
        say: date,
    },
    time,
    clock_word: "Uhr",
    hour_letter: false,
    money: &[
        money(&["€", "EUR", "Euro"], ["Euro", "Euro"], ["Cent", "Cent"]),
        money(&["$", "US$", "USD"], ["Dollar", "Dollar"], ["Cent", "Cent"]),
        money(&["£", "GBP"], ["Pfund", "Pfund"], ["Penny", "Pence"]),
        money(
            &["CHF", "Fr."],
            ["Franken", "Franken"],
            ["Rappen", "Rappen"],
        ),
        money(&["¥", "JPY"], ["Yen", "Yen"], ["", ""]),
    ],
    money_join: " ",
    money_of: " ",
    magnitudes: &[
        ("Million", "Million"),
        ("Millionen", "Millionen"),
        ("Milliarde", "Milliarde"),
        ("Milliarden", "Milliarden"),
        ("Mio", "Millionen"),
        ("Mrd", "Milliarden"),
        ("Tsd", "Tausend"),
        ("tausend", "tausend"),
    ],
    units: &[
        unit("%", "Prozent", "Prozent"),
        unit("‰", "Promille", "Promille"),
        unit("°", "Grad", "Grad"),
        unit("°C", "Grad Celsius", "Grad Celsius"),
        unit("° C", "Grad Celsius", "Grad Celsius"),
        unit("°F", "Grad Fahrenheit", "Grad Fahrenheit"),
        unit("km", "Kilometer", "Kilometer"),
        unit("m", "Meter", "Meter"),
        unit("cm", "Zentimeter", "Zentimeter"),
        unit("mm", "Millimeter", "Millimeter"),
        unit("km²", "Quadratkilometer", "Quadratkilometer"),
        unit("m²", "Quadratmeter", "Quadratmeter"),
        unit("m2", "Quadratmeter", "Quadratmeter"),
        unit("m³", "Kubikmeter", "Kubikmeter"),
        unit("ha", "Hektar", "Hektar"),
        unit("kg", "Kilogramm", "Kilogramm"),
        unit("g", "Gramm", "Gramm"),
        unit("mg", "Milligramm", "Milligramm"),
        unit_f("t", "Tonne", "Tonnen"),
        unit("l", "Liter", "Liter"),
        unit("ml", "Milliliter", "Milliliter"),
        unit_f("h", "Stunde", "Stunden"),
        unit_f("Std.", "Stunde", "Stunden"),
        unit_f("min", "Minute", "Minuten"),
        unit_f("Min.", "Minute", "Minuten"),
        unit_f("s", "Sekunde", "Sekunden"),
        unit_f("Sek.", "Sekunde", "Sekunden"),
        unit("km/h", "Kilometer pro Stunde", "Kilometer pro Stunde"),
        unit("m/s", "Meter pro Sekunde", "Meter pro Sekunde"),
        unit("Hz", "Hertz", "Hertz"),
        unit("kHz", "Kilohertz", "Kilohertz"),
        unit("MHz", "Megahertz", "Megahertz"),
        unit("GHz", "Gigahertz", "Gigahertz"),
        unit("W", "Watt", "Watt"),
        unit("kW", "Kilowatt", "Kilowatt"),
        unit_f("kWh", "Kilowattstunde", "Kilowattstunden"),
        unit("V", "Volt", "Volt"),
        unit("MB", "Megabyte", "Megabyte"),
        unit("GB", "Gigabyte", "Gigabyte"),
        unit("TB", "Terabyte", "Terabyte"),
        unit("dB", "Dezibel", "Dezibel"),
        unit("PS", "P S", "P S"),
    ],
    per: "pro",
    articles: &[],
    fractions: &[
        (2, "halb", "halbe"),
        (3, "Drittel", "Drittel"),
        (4, "Viertel", "Viertel"),
        (5, "Fünftel", "Fünftel"),
        (8, "Achtel", "Achtel"),
        (10, "Zehntel", "Zehntel"),
    ],
    abbreviations: &[
        short("Dr.", "Doktor", Inside),
        short("Prof.", "Professor", Inside),
        short("Hr.", "Herr", Inside),
        short("Fr.", "Frau", Title),
        short("St.", "Sankt", Title),
        short("Str.", "Straße", Anywhere),
        short("str.", "straße", Anywhere),
        short("z. B.", "zum Beispiel", Inside),
        short("d. h.", "das heißt", Inside),
        short("u. a.", "unter anderem", Inside),
        short("z. T.", "zum Teil", Inside),
        short("i. d. R.", "in der Regel", Inside),
        short("usw.", "und so weiter", Anywhere),
        short("etc.", "et cetera", Anywhere),
        short("bzw.", "beziehungsweise", Inside),
        short("ca.", "circa", Inside),
        short("evtl.", "eventuell", Inside),
        short("ggf.", "gegebenenfalls", Inside),
        short("inkl.", "inklusive", Inside),
        short("vgl.", "vergleiche", Inside),
        short("bspw.", "beispielsweise", Inside),
        short("sog.", "sogenannt", Inside),
        short("Nr.", "Nummer", Inside),
        short("S.", "Seite", Number),
        short("Abb.", "Abbildung", Inside),
        short("Kap.", "Kapitel", Number),
        short("Tel.", "Telefon", Inside),
        short("Mio.", "Millionen", Inside),
        short("Mrd.", "Milliarden", Inside),
        short("Std.", "Stunden", Inside),
        short("Min.", "Minuten", Inside),
        short("n. Chr.", "nach Christus", Anywhere),
        short("v. Chr.", "vor Christus", Anywhere),
        short("geb.", "geboren", Inside),
        short("gest.", "gestorben", Inside),
        short("max.", "maximal", Inside),
        short("min.", "minimal", Inside),
        short("Jh.", "Jahrhundert", Anywhere),
        short("Mo.", "Montag", Inside),
        short("Di.", "Dienstag", Inside),
        short("Mi.", "Mittwoch", Inside),
        short("Do.", "Donnerstag", Inside),
        short("Sa.", "Samstag", Title),
        short("Jan.", "Januar", Inside),
        short("Feb.", "Februar", Inside),
        short("Okt.", "Oktober", Inside),
        short("Nov.", "November", Inside),
        short("Dez.", "Dezember", Inside),
    ],
    starters: &[
        "Der", "Die", "Das", "Ein", "Eine", "Er", "Sie", "Es", "Wir", "Ich", "Du", "Ihr", "Und",
        "Aber", "Dann", "Danach", "Doch", "Wenn", "Als", "Im", "In", "Am", "An", "Auf", "Mit",
        "Nach", "Dies", "Diese", "Dieser", "Dort", "Da", "Hier",
    ],
    rulers: &[
        "Ludwig",
        "Wilhelm",
        "Friedrich",
        "Karl",
        "Heinrich",
        "Otto",
        "Johannes",
        "Papst",
        "Benedikt",
        "Pius",
    ],
    ruler,
    numbered: &[
        "kapitel",
        "teil",
        "band",
        "weltkrieg",
        "akt",
        "klasse",
        "stufe",
        "artikel",
    ],
    is_word: looks_like_a_word,
    read_as_words: &[
        "NATO", "NASA", "UNO", "BAföG", "TÜV", "AOK", "DAX", "ARD", "COVID", "PIN", "SIM", "OK",
        "UND", "DER", "DIE", "DAS",
    ],
    symbols: &[
        ('+', "plus"),
        ('=', "gleich"),
        ('<', "kleiner als"),
        ('>', "größer als"),
        ('@', "at"),
        ('*', "mal"),
        ('×', "mal"),
        ('÷', "geteilt durch"),
        ('±', "plus minus"),
        ('≤', "kleiner gleich"),
        ('≥', "größer gleich"),
        ('→', "nach"),
        ('§', "Paragraf"),
        ('√', "Wurzel aus"),
        ('²', "Quadrat"),
        ('³', "hoch drei"),
        ('π', "Pi"),
        ('∞', "unendlich"),
    ],
    and: "und",
    number_sign: "Nummer",
    hash: "Hashtag",
    about: "etwa",
    web: [
        "Punkt",
        "Schrägstrich",
        "Bindestrich",
        "Unterstrich",
        "at",
        "Doppelpunkt",
    ],
};
