//! Italian.

use super::{looks_like_a_word, money, money_f, short, unit, unit_f};
use crate::text::normalize::{
    language::{Clock, Date, Dates, Language, Place},
    numbers::{Cardinals, Gender, Scale},
};

const ONES: [&str; 20] = [
    "zero",
    "uno",
    "due",
    "tre",
    "quattro",
    "cinque",
    "sei",
    "sette",
    "otto",
    "nove",
    "dieci",
    "undici",
    "dodici",
    "tredici",
    "quattordici",
    "quindici",
    "sedici",
    "diciassette",
    "diciotto",
    "diciannove",
];
const TENS: [&str; 10] = [
    "",
    "",
    "venti",
    "trenta",
    "quaranta",
    "cinquanta",
    "sessanta",
    "settanta",
    "ottanta",
    "novanta",
];
const FIRST: [&str; 11] = [
    "", "primo", "secondo", "terzo", "quarto", "quinto", "sesto", "settimo", "ottavo", "nono",
    "decimo",
];

fn below_hundred(n: u64) -> String {
    let ten = TENS[(n / 10 % 10) as usize];
    match (n, n % 10) {
        (0..20, _) => ONES[n as usize].to_owned(),
        (_, 0) => ten.to_owned(),
        (_, 3) => format!("{ten}tré"),
        // A ten loses its vowel before another.
        (_, one @ (1 | 8)) => format!("{}{}", &ten[..ten.len() - 1], ONES[one as usize]),
        (_, one) => format!("{ten}{}", ONES[one as usize]),
    }
}

fn agree(words: &str, gender: Gender) -> String {
    match (words, gender) {
        ("uno", Gender::Feminine) => "una".into(),
        ("uno", _) => "un".into(),
        _ => words.to_owned(),
    }
}

fn ordinal(n: u64, gender: Gender) -> Option<String> {
    let words = match n {
        0 => return None,
        1..=10 => FIRST[n as usize].to_owned(),
        _ => {
            let words = ITALIAN.count(n);
            let plain = words.replace('é', "e");
            match n % 10 {
                3 if n % 100 != 13 => format!("{plain}esimo"),
                6 if n % 100 != 16 => format!("{plain}esimo"),
                _ => format!("{}esimo", &plain[..plain.len() - 1]),
            }
        }
    };
    Some(if gender == Gender::Feminine {
        format!("{}a", &words[..words.len() - 1])
    } else {
        words
    })
}

fn date(language: &Language, date: &Date) -> String {
    let day = |n| language.day(n, "primo");
    let year = |n| format!(" {}", language.count(n));
    language.day_first(date, day, [" al ", " "], year)
}

fn time(language: &Language, clock: Clock) -> String {
    let hour = language.cardinals.agreeing(clock.hour, Gender::Feminine);
    let minute = if clock.minute > 0 {
        format!(" e {}", language.count(clock.minute))
    } else {
        String::new()
    };
    let second = clock.second.map_or(String::new(), |second| {
        format!(
            " e {}",
            language.count_of(second, ["secondo", "secondi"], Gender::Masculine)
        )
    });
    format!("{hour}{minute}{second}")
}

fn ruler(_: &Language, n: u64) -> String {
    ordinal(n, Gender::Masculine).unwrap_or_default()
}

use Place::{Anywhere, Inside, Number, Title};

/// The language.
pub static ITALIAN: Language = Language {
    code: "it",
    cardinals: Cardinals {
        below_hundred,
        hundreds: [
            "",
            "cento",
            "duecento",
            "trecento",
            "quattrocento",
            "cinquecento",
            "seicento",
            "settecento",
            "ottocento",
            "novecento",
        ],
        hundreds_end: "",
        hundred_alone: "cento",
        hundred_join: "",
        scales: &[
            Scale {
                one: "mille",
                many: "mila",
                glued: true,
            },
            Scale {
                one: "un milione",
                many: "milioni",
                glued: false,
            },
            Scale {
                one: "un miliardo",
                many: "miliardi",
                glued: false,
            },
            Scale {
                one: "mille miliardi",
                many: "mila miliardi",
                glued: false,
            },
        ],
        last_join: "",
        agree,
    },
    ordinal,
    ordinal_marks: &[
        ("º", Gender::Masculine),
        ("°", Gender::Masculine),
        ("ª", Gender::Feminine),
    ],
    ordinal_point: false,
    decimal: ',',
    point: "virgola",
    whole_fraction: true,
    minus: "meno",
    to: "a",
    over: "su",
    ratio: "a",
    ten_to: "per dieci alla {}",
    year: |language, year| language.count(year),
    decade: None,
    dates: Dates {
        months: [
            "gennaio",
            "febbraio",
            "marzo",
            "aprile",
            "maggio",
            "giugno",
            "luglio",
            "agosto",
            "settembre",
            "ottobre",
            "novembre",
            "dicembre",
        ],
        short: [
            "gen", "feb", "mar", "apr", "mag", "giu", "lug", "ago", "set", "ott", "nov", "dic",
        ],
        month_first: false,
        fillers: &[],
        say: date,
    },
    time,
    clock_word: "",
    hour_letter: false,
    money: &[
        money(&["€", "EUR"], ["euro", "euro"], ["centesimo", "centesimi"]),
        money(
            &["$", "US$", "USD"],
            ["dollaro", "dollari"],
            ["centesimo", "centesimi"],
        ),
        money_f(&["£", "GBP"], ["sterlina", "sterline"], ["penny", "pence"]),
        money(
            &["CHF"],
            ["franco svizzero", "franchi svizzeri"],
            ["centesimo", "centesimi"],
        ),
        money(&["¥", "JPY"], ["yen", "yen"], ["", ""]),
    ],
    money_join: " e ",
    money_of: " di ",
    magnitudes: &[
        ("milione", "milione"),
        ("milioni", "milioni"),
        ("miliardo", "miliardo"),
        ("miliardi", "miliardi"),
        ("mila", "mila"),
        ("mln", "milioni"),
        ("mld", "miliardi"),
    ],
    units: &[
        unit("%", "per cento", "per cento"),
        unit("‰", "per mille", "per mille"),
        unit("°", "grado", "gradi"),
        unit("°C", "grado Celsius", "gradi Celsius"),
        unit("°F", "grado Fahrenheit", "gradi Fahrenheit"),
        unit("km", "chilometro", "chilometri"),
        unit("m", "metro", "metri"),
        unit("cm", "centimetro", "centimetri"),
        unit("mm", "millimetro", "millimetri"),
        unit("m²", "metro quadrato", "metri quadrati"),
        unit("mq", "metro quadrato", "metri quadrati"),
        unit("km²", "chilometro quadrato", "chilometri quadrati"),
        unit("m³", "metro cubo", "metri cubi"),
        unit("kg", "chilogrammo", "chilogrammi"),
        unit("g", "grammo", "grammi"),
        unit("mg", "milligrammo", "milligrammi"),
        unit("l", "litro", "litri"),
        unit("ml", "millilitro", "millilitri"),
        unit_f("h", "ora", "ore"),
        unit("min", "minuto", "minuti"),
        unit("s", "secondo", "secondi"),
        unit("km/h", "chilometro orario", "chilometri orari"),
        unit("Hz", "hertz", "hertz"),
        unit("MHz", "megahertz", "megahertz"),
        unit("GHz", "gigahertz", "gigahertz"),
        unit("W", "watt", "watt"),
        unit("kW", "chilowatt", "chilowatt"),
        unit("kWh", "chilowattora", "chilowattora"),
        unit("V", "volt", "volt"),
        unit("MB", "megabyte", "megabyte"),
        unit("GB", "gigabyte", "gigabyte"),
        unit("TB", "terabyte", "terabyte"),
    ],
    per: "per",
    articles: &[],
    fractions: &[
        (2, "mezzo", "mezzi"),
        (3, "terzo", "terzi"),
        (4, "quarto", "quarti"),
        (5, "quinto", "quinti"),
        (8, "ottavo", "ottavi"),
        (10, "decimo", "decimi"),
    ],
    abbreviations: &[
        short("Sig.", "Signor", Inside),
        short("Sig.ra", "Signora", Inside),
        short("Sig.na", "Signorina", Inside),
        short("Dott.", "Dottor", Inside),
        short("Dott.ssa", "Dottoressa", Inside),
        short("Dr.", "Dottor", Title),
        short("Prof.", "Professor", Inside),
        short("Prof.ssa", "Professoressa", Inside),
        short("Ing.", "Ingegner", Inside),
        short("Avv.", "Avvocato", Inside),
        short("S.", "San", Title),
        short("ecc.", "eccetera", Anywhere),
        short("ad es.", "ad esempio", Inside),
        short("es.", "esempio", Inside),
        short("v.le", "viale", Inside),
        short("p.za", "piazza", Inside),
        short("ca.", "circa", Inside),
        short("n.", "numero", Number),
        short("nr.", "numero", Inside),
        short("pag.", "pagina", Inside),
        short("p.", "pagina", Number),
        short("cap.", "capitolo", Number),
        short("vol.", "volume", Number),
        short("tel.", "telefono", Inside),
        short("a.C.", "avanti Cristo", Anywhere),
        short("d.C.", "dopo Cristo", Anywhere),
        short("max.", "massimo", Inside),
        short("min.", "minimo", Inside),
    ],
    starters: &[
        "Il", "Lo", "La", "I", "Gli", "Le", "Un", "Una", "Lui", "Lei", "Noi", "Voi", "Loro", "Io",
        "E", "Ma", "Poi", "In", "Con", "Questo", "Questa", "Quando", "Se", "Qui", "Non",
    ],
    rulers: &[
        "Vittorio",
        "Umberto",
        "Carlo",
        "Luigi",
        "Enrico",
        "Papa",
        "Paolo",
        "Pio",
        "Benedetto",
        "Giovanni",
        "Elisabetta",
    ],
    ruler,
    numbered: &[
        "capitolo", "tomo", "guerra", "atto", "scena", "parte", "articolo", "secolo", "volume",
    ],
    is_word: looks_like_a_word,
    read_as_words: &[
        "NASA", "NATO", "ONU", "AIDS", "COVID", "UNESCO", "FIAT", "RAI", "OK", "IL", "LA", "DI",
        "NON",
    ],
    symbols: &[
        ('+', "più"),
        ('=', "uguale a"),
        ('<', "minore di"),
        ('>', "maggiore di"),
        ('@', "chiocciola"),
        ('*', "per"),
        ('×', "per"),
        ('÷', "diviso"),
        ('±', "più o meno"),
        ('→', "a"),
        ('§', "paragrafo"),
        ('²', "al quadrato"),
        ('³', "al cubo"),
        ('π', "pi"),
    ],
    and: "e",
    number_sign: "numero",
    hash: "hashtag",
    about: "circa",
    web: [
        "punto",
        "barra",
        "trattino",
        "trattino basso",
        "chiocciola",
        "due punti",
    ],
};
