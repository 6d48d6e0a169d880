//! Portuguese, with the words of Brazil.

use super::{looks_like_a_word, money, money_f, short, unit, unit_f};
use crate::text::normalize::{
    language::{Clock, Date, Dates, Language, Place},
    numbers::{Cardinals, Gender, Scale},
};

const ONES: [&str; 20] = [
    "zero",
    "um",
    "dois",
    "três",
    "quatro",
    "cinco",
    "seis",
    "sete",
    "oito",
    "nove",
    "dez",
    "onze",
    "doze",
    "treze",
    "quatorze",
    "quinze",
    "dezesseis",
    "dezessete",
    "dezoito",
    "dezenove",
];
const TENS: [&str; 10] = [
    "",
    "",
    "vinte",
    "trinta",
    "quarenta",
    "cinquenta",
    "sessenta",
    "setenta",
    "oitenta",
    "noventa",
];
const FIRST: [&str; 11] = [
    "", "primeiro", "segundo", "terceiro", "quarto", "quinto", "sexto", "sétimo", "oitavo", "nono",
    "décimo",
];
const TENTHS: [&str; 10] = [
    "",
    "décimo",
    "vigésimo",
    "trigésimo",
    "quadragésimo",
    "quinquagésimo",
    "sexagésimo",
    "septuagésimo",
    "octogésimo",
    "nonagésimo",
];

fn below_hundred(n: u64) -> String {
    match n {
        0..20 => ONES[n as usize].to_owned(),
        _ if n.is_multiple_of(10) => TENS[(n / 10 % 10) as usize].to_owned(),
        _ => format!(
            "{} e {}",
            TENS[(n / 10 % 10) as usize],
            ONES[(n % 10) as usize]
        ),
    }
}

fn agree(words: &str, gender: Gender) -> String {
    if gender != Gender::Feminine {
        return words.to_owned();
    }
    let words = words.replace("entos", "entas");
    for (masculine, feminine) in [("um", "uma"), ("dois", "duas")] {
        if let Some(stem) = words
            .strip_suffix(masculine)
            .filter(|stem| stem.is_empty() || stem.ends_with(' '))
        {
            return format!("{stem}{feminine}");
        }
    }
    words
}

fn ordinal(n: u64, gender: Gender) -> Option<String> {
    let words = match n {
        1..=10 => FIRST[n as usize].to_owned(),
        11..100 if n.is_multiple_of(10) => TENTHS[(n / 10) as usize].to_owned(),
        11..100 => format!("{} {}", TENTHS[(n / 10) as usize], FIRST[(n % 10) as usize]),
        _ => return Some(PORTUGUESE.count(n)),
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
    let day = |n| language.day(n, "primeiro");
    let year = |n| format!(" de {}", language.count(n));
    language.day_first(date, day, [" a ", " de "], year)
}

fn time(language: &Language, clock: Clock) -> String {
    let hour = language.count_of(clock.hour, ["hora", "horas"], Gender::Feminine);
    let minute = if clock.minute > 0 {
        format!(" e {}", language.count(clock.minute))
    } else {
        String::new()
    };
    let second = clock.second.map_or(String::new(), |second| {
        format!(
            " e {}",
            language.count_of(second, ["segundo", "segundos"], Gender::Masculine)
        )
    });
    format!("{hour}{minute}{second}")
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
pub static PORTUGUESE: Language = Language {
    code: "pt",
    cardinals: Cardinals {
        below_hundred,
        hundreds: [
            "",
            "cento",
            "duzentos",
            "trezentos",
            "quatrocentos",
            "quinhentos",
            "seiscentos",
            "setecentos",
            "oitocentos",
            "novecentos",
        ],
        hundreds_end: "",
        hundred_alone: "cem",
        hundred_join: " e ",
        scales: &[
            Scale {
                one: "mil",
                many: "mil",
                glued: false,
            },
            Scale {
                one: "um milhão",
                many: "milhões",
                glued: false,
            },
            Scale {
                one: "um bilhão",
                many: "bilhões",
                glued: false,
            },
            Scale {
                one: "um trilhão",
                many: "trilhões",
                glued: false,
            },
        ],
        last_join: " e ",
        agree,
    },
    ordinal,
    ordinal_marks: &[
        ("º", Gender::Masculine),
        (".º", Gender::Masculine),
        ("ª", Gender::Feminine),
        (".ª", Gender::Feminine),
        ("°", Gender::Masculine),
    ],
    ordinal_point: false,
    decimal: ',',
    point: "vírgula",
    whole_fraction: true,
    minus: "menos",
    to: "a",
    over: "sobre",
    ratio: "a",
    ten_to: "vezes dez elevado a {}",
    year: |language, year| language.count(year),
    decade: None,
    dates: Dates {
        months: [
            "janeiro",
            "fevereiro",
            "março",
            "abril",
            "maio",
            "junho",
            "julho",
            "agosto",
            "setembro",
            "outubro",
            "novembro",
            "dezembro",
        ],
        short: [
            "jan", "fev", "mar", "abr", "", "jun", "jul", "ago", "set", "out", "nov", "dez",
        ],
        month_first: false,
        fillers: &["de", "do"],
        say: date,
    },
    time,
    clock_word: "",
    hour_letter: true,
    money: &[
        money(&["R$", "BRL"], ["real", "reais"], ["centavo", "centavos"]),
        money(&["€", "EUR"], ["euro", "euros"], ["cêntimo", "cêntimos"]),
        money(
            &["$", "US$", "USD"],
            ["dólar", "dólares"],
            ["centavo", "centavos"],
        ),
        money_f(&["£", "GBP"], ["libra", "libras"], ["pêni", "pence"]),
        money(&["¥", "JPY"], ["iene", "ienes"], ["", ""]),
    ],
    money_join: " e ",
    money_of: " de ",
    magnitudes: &[
        ("milhão", "milhão"),
        ("milhões", "milhões"),
        ("bilhão", "bilhão"),
        ("bilhões", "bilhões"),
        ("mil", "mil"),
        ("mi", "milhões"),
        ("bi", "bilhões"),
    ],
    units: &[
        unit("%", "por cento", "por cento"),
        unit("‰", "por mil", "por mil"),
        unit("°", "grau", "graus"),
        unit("°C", "grau Celsius", "graus Celsius"),
        unit("ºC", "grau Celsius", "graus Celsius"),
        unit("°F", "grau Fahrenheit", "graus Fahrenheit"),
        unit("km", "quilômetro", "quilômetros"),
        unit("m", "metro", "metros"),
        unit("cm", "centímetro", "centímetros"),
        unit("mm", "milímetro", "milímetros"),
        unit("m²", "metro quadrado", "metros quadrados"),
        unit("km²", "quilômetro quadrado", "quilômetros quadrados"),
        unit("m³", "metro cúbico", "metros cúbicos"),
        unit("ha", "hectare", "hectares"),
        unit("kg", "quilograma", "quilogramas"),
        unit("g", "grama", "gramas"),
        unit("mg", "miligrama", "miligramas"),
        unit_f("t", "tonelada", "toneladas"),
        unit("l", "litro", "litros"),
        unit("L", "litro", "litros"),
        unit("ml", "mililitro", "mililitros"),
        unit("min", "minuto", "minutos"),
        unit("s", "segundo", "segundos"),
        unit("km/h", "quilômetro por hora", "quilômetros por hora"),
        unit("Hz", "hertz", "hertz"),
        unit("MHz", "mega-hertz", "mega-hertz"),
        unit("GHz", "giga-hertz", "giga-hertz"),
        unit("W", "watt", "watts"),
        unit("kW", "quilowatt", "quilowatts"),
        unit("kWh", "quilowatt-hora", "quilowatts-hora"),
        unit("V", "volt", "volts"),
        unit("MB", "megabyte", "megabytes"),
        unit("GB", "gigabyte", "gigabytes"),
        unit("TB", "terabyte", "terabytes"),
    ],
    per: "por",
    articles: &[],
    fractions: &[
        (2, "meio", "meios"),
        (3, "terço", "terços"),
        (4, "quarto", "quartos"),
        (5, "quinto", "quintos"),
        (8, "oitavo", "oitavos"),
        (10, "décimo", "décimos"),
    ],
    abbreviations: &[
        short("Sr.", "Senhor", Inside),
        short("Sra.", "Senhora", Inside),
        short("Srta.", "Senhorita", Inside),
        short("Dr.", "Doutor", Inside),
        short("Dra.", "Doutora", Inside),
        short("Prof.", "Professor", Inside),
        short("Profa.", "Professora", Inside),
        short("D.", "Dom", Title),
        short("Sto.", "Santo", Title),
        short("Sta.", "Santa", Title),
        short("etc.", "et cetera", Anywhere),
        short("p. ex.", "por exemplo", Inside),
        short("Av.", "Avenida", Inside),
        short("R.", "Rua", Title),
        short("aprox.", "aproximadamente", Inside),
        short("n.º", "número", Number),
        short("nº", "número", Number),
        short("pág.", "página", Inside),
        short("p.", "página", Number),
        short("cap.", "capítulo", Number),
        short("vol.", "volume", Number),
        short("tel.", "telefone", Inside),
        short("a.C.", "antes de Cristo", Anywhere),
        short("d.C.", "depois de Cristo", Anywhere),
        short("máx.", "máximo", Inside),
        short("mín.", "mínimo", Inside),
        short("Ltda.", "Limitada", Anywhere),
    ],
    starters: &[
        "O", "A", "Os", "As", "Um", "Uma", "Ele", "Ela", "Eles", "Elas", "Nós", "Eu", "Você", "E",
        "Mas", "Depois", "Em", "Com", "Este", "Esta", "Isso", "Quando", "Se", "Aqui", "Não", "Sim",
    ],
    rulers: &[
        "Pedro", "João", "Afonso", "Manuel", "Henrique", "Luís", "Carlos", "Filipe", "Papa",
        "Paulo", "Pio", "Bento",
    ],
    ruler,
    numbered: &[
        "capítulo",
        "tomo",
        "guerra",
        "mundial",
        "ato",
        "cena",
        "parte",
        "artigo",
        "século",
        "volume",
    ],
    is_word: looks_like_a_word,
    read_as_words: &[
        "NASA", "OTAN", "ONU", "AIDS", "COVID", "UNESCO", "OVNI", "OK", "DE", "DO", "DA", "NÃO",
    ],
    symbols: &[
        ('+', "mais"),
        ('=', "igual a"),
        ('<', "menor que"),
        ('>', "maior que"),
        ('@', "arroba"),
        ('*', "vezes"),
        ('×', "vezes"),
        ('÷', "dividido por"),
        ('±', "mais ou menos"),
        ('→', "para"),
        ('§', "parágrafo"),
        ('²', "ao quadrado"),
        ('³', "ao cubo"),
        ('π', "pi"),
    ],
    and: "e",
    number_sign: "número",
    hash: "hashtag",
    about: "cerca de",
    web: [
        "ponto",
        "barra",
        "hífen",
        "sublinhado",
        "arroba",
        "dois pontos",
    ],
};
