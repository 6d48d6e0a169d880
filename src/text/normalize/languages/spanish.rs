//! Spanish.

use super::{looks_like_a_word, money, money_f, short, unit, unit_f};
use crate::text::normalize::{
    language::{Clock, Date, Dates, Language, Place},
    numbers::{Cardinals, Gender, Scale},
};

const ONES: [&str; 30] = [
    "cero",
    "uno",
    "dos",
    "tres",
    "cuatro",
    "cinco",
    "seis",
    "siete",
    "ocho",
    "nueve",
    "diez",
    "once",
    "doce",
    "trece",
    "catorce",
    "quince",
    "dieciséis",
    "diecisiete",
    "dieciocho",
    "diecinueve",
    "veinte",
    "veintiuno",
    "veintidós",
    "veintitrés",
    "veinticuatro",
    "veinticinco",
    "veintiséis",
    "veintisiete",
    "veintiocho",
    "veintinueve",
];
const TENS: [&str; 10] = [
    "",
    "",
    "",
    "treinta",
    "cuarenta",
    "cincuenta",
    "sesenta",
    "setenta",
    "ochenta",
    "noventa",
];
const FIRST: [&str; 11] = [
    "", "primero", "segundo", "tercero", "cuarto", "quinto", "sexto", "séptimo", "octavo",
    "noveno", "décimo",
];
const TENTHS: [&str; 10] = [
    "",
    "décimo",
    "vigésimo",
    "trigésimo",
    "cuadragésimo",
    "quincuagésimo",
    "sexagésimo",
    "septuagésimo",
    "octogésimo",
    "nonagésimo",
];

fn below_hundred(n: u64) -> String {
    match n {
        0..30 => ONES[n as usize].to_owned(),
        _ if n.is_multiple_of(10) => TENS[(n / 10 % 10) as usize].to_owned(),
        _ => format!(
            "{} y {}",
            TENS[(n / 10 % 10) as usize],
            ONES[(n % 10) as usize]
        ),
    }
}

fn agree(words: &str, gender: Gender) -> String {
    if gender == Gender::Feminine {
        let words = words
            .replace("cientos", "cientas")
            .replace("quinientos", "quinientas");
        return match words.strip_suffix("uno") {
            Some(stem) => format!("{stem}una"),
            None => words,
        };
    }
    match words.strip_suffix("uno") {
        Some(stem) if stem.ends_with("veinti") => format!("{stem}ún"),
        Some(stem) => format!("{stem}un"),
        None => words.to_owned(),
    }
}

fn ordinal(n: u64, gender: Gender) -> Option<String> {
    let words = match n {
        1..=10 => FIRST[n as usize].to_owned(),
        11..100 if n.is_multiple_of(10) => TENTHS[(n / 10) as usize].to_owned(),
        11..100 => format!("{} {}", TENTHS[(n / 10) as usize], FIRST[(n % 10) as usize]),
        _ => return Some(SPANISH.count(n)),
    };
    Some(if gender == Gender::Feminine {
        words
            .split(' ')
            .map(|word| format!("{}a", &word[..word.len() - 1]))
            .collect::<Vec<_>>()
            .join(" ")
    } else {
        words
    })
}

fn date(language: &Language, date: &Date) -> String {
    let day = |n| language.count(n);
    let year = |n| format!(" de {}", language.count(n));
    language.day_first(date, day, [" al ", " de "], year)
}

fn time(language: &Language, clock: Clock) -> String {
    let hour = language.cardinals.agreeing(clock.hour, Gender::Feminine);
    let minute = if clock.minute > 0 {
        format!(" y {}", language.count(clock.minute))
    } else {
        String::new()
    };
    let half = match clock.afternoon {
        Some(true) => " de la tarde",
        Some(false) => " de la mañana",
        None => "",
    };
    let second = clock.second.map_or(String::new(), |second| {
        format!(
            " con {}",
            language.count_of(second, ["segundo", "segundos"], Gender::Masculine)
        )
    });
    format!("{hour}{minute}{second}{half}")
}

fn ruler(language: &Language, n: u64) -> String {
    if n <= 10 {
        FIRST[n as usize].to_owned()
    } else {
        language.count(n)
    }
}

use Place::{Anywhere, Inside, Number, Title};

/// The language.
pub static SPANISH: Language = Language {
    code: "es",
    cardinals: Cardinals {
        below_hundred,
        hundreds: [
            "",
            "ciento",
            "doscientos",
            "trescientos",
            "cuatrocientos",
            "quinientos",
            "seiscientos",
            "setecientos",
            "ochocientos",
            "novecientos",
        ],
        hundreds_end: "",
        hundred_alone: "cien",
        hundred_join: " ",
        scales: &[
            Scale {
                one: "mil",
                many: "mil",
                glued: false,
            },
            Scale {
                one: "un millón",
                many: "millones",
                glued: false,
            },
            Scale {
                one: "mil millones",
                many: "mil millones",
                glued: false,
            },
            Scale {
                one: "un billón",
                many: "billones",
                glued: false,
            },
        ],
        last_join: " ",
        agree,
    },
    ordinal,
    ordinal_marks: &[
        ("º", Gender::Masculine),
        (".º", Gender::Masculine),
        ("ª", Gender::Feminine),
        (".ª", Gender::Feminine),
        ("er", Gender::Masculine),
        ("°", Gender::Masculine),
    ],
    ordinal_point: false,
    decimal: ',',
    point: "coma",
    whole_fraction: true,
    minus: "menos",
    to: "a",
    over: "entre",
    ratio: "a",
    ten_to: "por diez elevado a {}",
    year: |language, year| language.count(year),
    decade: None,
    dates: Dates {
        months: [
            "enero",
            "febrero",
            "marzo",
            "abril",
            "mayo",
            "junio",
            "julio",
            "agosto",
            "septiembre",
            "octubre",
            "noviembre",
            "diciembre",
        ],
        short: [
            "ene", "feb", "mar", "abr", "", "jun", "jul", "ago", "sept", "oct", "nov", "dic",
        ],
        month_first: false,
        fillers: &["de", "del"],
        say: date,
    },
    time,
    clock_word: "",
    hour_letter: false,
    money: &[
        money(&["€", "EUR"], ["euro", "euros"], ["céntimo", "céntimos"]),
        money(
            &["$", "US$", "USD"],
            ["dólar", "dólares"],
            ["centavo", "centavos"],
        ),
        money_f(&["£", "GBP"], ["libra", "libras"], ["penique", "peniques"]),
        money(&["MXN"], ["peso", "pesos"], ["centavo", "centavos"]),
        money(&["¥", "JPY"], ["yen", "yenes"], ["", ""]),
    ],
    money_join: " con ",
    money_of: " de ",
    magnitudes: &[
        ("millón", "millón"),
        ("millones", "millones"),
        ("mil", "mil"),
        ("billones", "billones"),
        ("mill", "millones"),
    ],
    units: &[
        unit("%", "por ciento", "por ciento"),
        unit("‰", "por mil", "por mil"),
        unit("°", "grado", "grados"),
        unit("°C", "grado Celsius", "grados Celsius"),
        unit("ºC", "grado Celsius", "grados Celsius"),
        unit("°F", "grado Fahrenheit", "grados Fahrenheit"),
        unit("km", "kilómetro", "kilómetros"),
        unit("m", "metro", "metros"),
        unit("cm", "centímetro", "centímetros"),
        unit("mm", "milímetro", "milímetros"),
        unit("m²", "metro cuadrado", "metros cuadrados"),
        unit("km²", "kilómetro cuadrado", "kilómetros cuadrados"),
        unit("m³", "metro cúbico", "metros cúbicos"),
        unit_f("ha", "hectárea", "hectáreas"),
        unit("kg", "kilogramo", "kilogramos"),
        unit("g", "gramo", "gramos"),
        unit("mg", "miligramo", "miligramos"),
        unit_f("t", "tonelada", "toneladas"),
        unit("l", "litro", "litros"),
        unit("L", "litro", "litros"),
        unit("ml", "mililitro", "mililitros"),
        unit_f("h", "hora", "horas"),
        unit("min", "minuto", "minutos"),
        unit("s", "segundo", "segundos"),
        unit("km/h", "kilómetro por hora", "kilómetros por hora"),
        unit("Hz", "hercio", "hercios"),
        unit("MHz", "megahercio", "megahercios"),
        unit("GHz", "gigahercio", "gigahercios"),
        unit("W", "vatio", "vatios"),
        unit("kW", "kilovatio", "kilovatios"),
        unit("kWh", "kilovatio hora", "kilovatios hora"),
        unit("V", "voltio", "voltios"),
        unit("MB", "megabyte", "megabytes"),
        unit("GB", "gigabyte", "gigabytes"),
        unit("TB", "terabyte", "terabytes"),
        unit("dB", "decibelio", "decibelios"),
    ],
    per: "por",
    articles: &[],
    fractions: &[
        (2, "medio", "medios"),
        (3, "tercio", "tercios"),
        (4, "cuarto", "cuartos"),
        (5, "quinto", "quintos"),
        (8, "octavo", "octavos"),
        (10, "décimo", "décimos"),
    ],
    abbreviations: &[
        short("Sr.", "Señor", Inside),
        short("Sra.", "Señora", Inside),
        short("Srta.", "Señorita", Inside),
        short("Dr.", "Doctor", Inside),
        short("Dra.", "Doctora", Inside),
        short("D.", "Don", Title),
        short("Dña.", "Doña", Inside),
        short("Ud.", "usted", Anywhere),
        short("Uds.", "ustedes", Anywhere),
        short("etc.", "etcétera", Anywhere),
        short("p. ej.", "por ejemplo", Inside),
        short("EE. UU.", "Estados Unidos", Anywhere),
        short("EE.UU.", "Estados Unidos", Anywhere),
        short("Av.", "Avenida", Inside),
        short("Avda.", "Avenida", Inside),
        short("C/", "Calle", Inside),
        short("aprox.", "aproximadamente", Inside),
        short("n.º", "número", Number),
        short("nº", "número", Number),
        short("núm.", "número", Inside),
        short("pág.", "página", Inside),
        short("p.", "página", Number),
        short("cap.", "capítulo", Number),
        short("vol.", "volumen", Number),
        short("tel.", "teléfono", Inside),
        short("a. C.", "antes de Cristo", Anywhere),
        short("d. C.", "después de Cristo", Anywhere),
        short("a.m.", "de la mañana", Anywhere),
        short("p.m.", "de la tarde", Anywhere),
        short("Sto.", "Santo", Title),
        short("Sta.", "Santa", Title),
        short("máx.", "máximo", Inside),
        short("mín.", "mínimo", Inside),
        short("dpto.", "departamento", Inside),
    ],
    starters: &[
        "El", "La", "Los", "Las", "Un", "Una", "Él", "Ella", "Ellos", "Nosotros", "Yo", "Tú", "Y",
        "Pero", "Luego", "En", "Con", "Este", "Esta", "Esto", "Cuando", "Si", "Después", "Aquí",
        "Se", "No", "Sí",
    ],
    rulers: &[
        "Felipe",
        "Carlos",
        "Alfonso",
        "Fernando",
        "Isabel",
        "Juan",
        "Enrique",
        "Luis",
        "Papa",
        "Pablo",
        "Pío",
        "Benedicto",
    ],
    ruler,
    numbered: &[
        "capítulo",
        "tomo",
        "guerra",
        "mundial",
        "acto",
        "escena",
        "parte",
        "artículo",
        "siglo",
    ],
    is_word: looks_like_a_word,
    read_as_words: &[
        "NASA", "OTAN", "ONU", "SIDA", "OVNI", "COVID", "UNESCO", "RENFE", "OK", "EL", "LA", "DE",
        "NO",
    ],
    symbols: &[
        ('+', "más"),
        ('=', "igual a"),
        ('<', "menor que"),
        ('>', "mayor que"),
        ('@', "arroba"),
        ('*', "por"),
        ('×', "por"),
        ('÷', "entre"),
        ('±', "más menos"),
        ('→', "a"),
        ('§', "sección"),
        ('²', "al cuadrado"),
        ('³', "al cubo"),
        ('π', "pi"),
    ],
    and: "y",
    number_sign: "número",
    hash: "hashtag",
    about: "unos",
    web: [
        "punto",
        "barra",
        "guion",
        "guion bajo",
        "arroba",
        "dos puntos",
    ],
};
