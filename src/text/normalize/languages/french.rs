//! French.

use super::{looks_like_a_word, money, money_f, short, unit, unit_f};
use crate::text::normalize::{
    language::{Clock, Date, Dates, Language, Place},
    numbers::{Cardinals, Gender, Scale},
};

const ONES: [&str; 20] = [
    "zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "onze",
    "douze", "treize", "quatorze", "quinze", "seize", "dix-sept", "dix-huit", "dix-neuf",
];
const TENS: [&str; 10] = [
    "",
    "",
    "vingt",
    "trente",
    "quarante",
    "cinquante",
    "soixante",
    "soixante",
    "quatre-vingt",
    "quatre-vingt",
];

fn below_hundred(n: u64) -> String {
    let ten = TENS[(n / 10 % 10) as usize];
    match n {
        0..20 => ONES[n as usize].to_owned(),
        80 => "quatre-vingts".to_owned(),
        71 => "soixante et onze".to_owned(),
        // Seventies and nineties go on counting behind sixty and eighty.
        70..80 | 90..100 => format!("{ten}-{}", ONES[(n % 20) as usize]),
        81 => format!("{ten}-un"),
        _ if n.is_multiple_of(10) => ten.to_owned(),
        _ if n % 10 == 1 => format!("{ten} et un"),
        _ => format!("{ten}-{}", ONES[(n % 10) as usize]),
    }
}

fn agree(words: &str, gender: Gender) -> String {
    let one = words == "un" || words.ends_with(" un") || words.ends_with("-un");
    match gender {
        Gender::Feminine if one => format!("{words}e"),
        _ => words.to_owned(),
    }
}

fn ordinal(n: u64, gender: Gender) -> Option<String> {
    if n == 1 {
        return Some(
            if gender == Gender::Feminine {
                "première"
            } else {
                "premier"
            }
            .to_owned(),
        );
    }
    let words = FRENCH.count(n);
    let stem = words.trim_end_matches('s').trim_end_matches('e');
    let stem = match (words.as_str(), stem) {
        (all, _) if all.ends_with("trois") => all,
        (all, _) if all.ends_with("cinq") => return Some(format!("{all}uième")),
        (all, _) if all.ends_with("neuf") => {
            return Some(format!("{}vième", &all[..all.len() - 1]));
        }
        (_, stem) => stem,
    };
    Some(format!("{stem}ième"))
}

fn date(language: &Language, date: &Date) -> String {
    let day = |n| language.day(n, "premier");
    let year = |n| format!(" {}", language.count(n));
    language.day_first(date, day, [" au ", " "], year)
}

fn time(language: &Language, clock: Clock) -> String {
    let hour = language.count_of(clock.hour, ["heure", "heures"], Gender::Feminine);
    let minute = if clock.minute > 0 {
        format!(" {}", language.count(clock.minute))
    } else {
        String::new()
    };
    let second = clock.second.map_or(String::new(), |second| {
        format!(
            " et {}",
            language.count_of(second, ["seconde", "secondes"], Gender::Feminine)
        )
    });
    format!("{hour}{minute}{second}")
}

fn ruler(language: &Language, n: u64) -> String {
    if n == 1 {
        "premier".to_owned()
    } else {
        language.count(n)
    }
}

use Place::{Anywhere, Inside, Number, Title};

/// The language.
pub static FRENCH: Language = Language {
    code: "fr",
    cardinals: Cardinals {
        below_hundred,
        hundreds: [
            "",
            "cent",
            "deux cent",
            "trois cent",
            "quatre cent",
            "cinq cent",
            "six cent",
            "sept cent",
            "huit cent",
            "neuf cent",
        ],
        hundreds_end: "s",
        hundred_alone: "cent",
        hundred_join: " ",
        scales: &[
            Scale {
                one: "mille",
                many: "mille",
                glued: false,
            },
            Scale {
                one: "un million",
                many: "millions",
                glued: false,
            },
            Scale {
                one: "un milliard",
                many: "milliards",
                glued: false,
            },
            Scale {
                one: "un billion",
                many: "billions",
                glued: false,
            },
        ],
        last_join: " ",
        agree,
    },
    ordinal,
    ordinal_marks: &[
        ("er", Gender::Masculine),
        ("re", Gender::Feminine),
        ("ère", Gender::Feminine),
        ("e", Gender::Masculine),
        ("ème", Gender::Masculine),
        ("nd", Gender::Masculine),
        ("nde", Gender::Feminine),
    ],
    ordinal_point: false,
    decimal: ',',
    point: "virgule",
    whole_fraction: true,
    minus: "moins",
    to: "à",
    over: "sur",
    ratio: "à",
    ten_to: "fois dix puissance {}",
    year: |language, year| language.count(year),
    decade: None,
    dates: Dates {
        months: [
            "janvier",
            "février",
            "mars",
            "avril",
            "mai",
            "juin",
            "juillet",
            "août",
            "septembre",
            "octobre",
            "novembre",
            "décembre",
        ],
        short: [
            "janv", "févr", "", "avr", "", "", "juil", "", "sept", "oct", "nov", "déc",
        ],
        month_first: false,
        fillers: &[],
        say: date,
    },
    time,
    clock_word: "",
    hour_letter: true,
    money: &[
        money(&["€", "EUR"], ["euro", "euros"], ["centime", "centimes"]),
        money(
            &["$", "US$", "USD"],
            ["dollar", "dollars"],
            ["cent", "cents"],
        ),
        money_f(&["£", "GBP"], ["livre", "livres"], ["penny", "pence"]),
        money(
            &["CHF"],
            ["franc suisse", "francs suisses"],
            ["centime", "centimes"],
        ),
        money(&["¥", "JPY"], ["yen", "yens"], ["", ""]),
    ],
    money_join: " et ",
    money_of: " d'",
    magnitudes: &[
        ("million", "million"),
        ("millions", "millions"),
        ("milliard", "milliard"),
        ("milliards", "milliards"),
        ("Md", "milliards"),
        ("mille", "mille"),
    ],
    units: &[
        unit("%", "pour cent", "pour cent"),
        unit("‰", "pour mille", "pour mille"),
        unit("°", "degré", "degrés"),
        unit("°C", "degré Celsius", "degrés Celsius"),
        unit("°F", "degré Fahrenheit", "degrés Fahrenheit"),
        unit("km", "kilomètre", "kilomètres"),
        unit("m", "mètre", "mètres"),
        unit("cm", "centimètre", "centimètres"),
        unit("mm", "millimètre", "millimètres"),
        unit("m²", "mètre carré", "mètres carrés"),
        unit("km²", "kilomètre carré", "kilomètres carrés"),
        unit("m³", "mètre cube", "mètres cubes"),
        unit("ha", "hectare", "hectares"),
        unit("kg", "kilogramme", "kilogrammes"),
        unit("g", "gramme", "grammes"),
        unit("mg", "milligramme", "milligrammes"),
        unit_f("t", "tonne", "tonnes"),
        unit("l", "litre", "litres"),
        unit("L", "litre", "litres"),
        unit("ml", "millilitre", "millilitres"),
        unit_f("min", "minute", "minutes"),
        unit_f("s", "seconde", "secondes"),
        unit("km/h", "kilomètre à l'heure", "kilomètres à l'heure"),
        unit("Hz", "hertz", "hertz"),
        unit("MHz", "mégahertz", "mégahertz"),
        unit("GHz", "gigahertz", "gigahertz"),
        unit("W", "watt", "watts"),
        unit("kW", "kilowatt", "kilowatts"),
        unit("kWh", "kilowattheure", "kilowattheures"),
        unit("V", "volt", "volts"),
        unit("Mo", "mégaoctet", "mégaoctets"),
        unit("Go", "gigaoctet", "gigaoctets"),
        unit("To", "téraoctet", "téraoctets"),
        unit("dB", "décibel", "décibels"),
    ],
    per: "par",
    articles: &[],
    fractions: &[
        (2, "demi", "demis"),
        (3, "tiers", "tiers"),
        (4, "quart", "quarts"),
        (5, "cinquième", "cinquièmes"),
        (8, "huitième", "huitièmes"),
        (10, "dixième", "dixièmes"),
    ],
    abbreviations: &[
        short("M.", "Monsieur", Title),
        short("MM.", "Messieurs", Title),
        short("Mme", "Madame", Inside),
        short("Mmes", "Mesdames", Inside),
        short("Mlle", "Mademoiselle", Inside),
        short("Dr", "Docteur", Title),
        short("Dr.", "Docteur", Title),
        short("Pr", "Professeur", Title),
        short("Me", "Maître", Title),
        short("St", "Saint", Title),
        short("Ste", "Sainte", Title),
        short("etc.", "et cetera", Anywhere),
        short("p. ex.", "par exemple", Inside),
        short("c.-à-d.", "c'est-à-dire", Inside),
        short("av.", "avenue", Title),
        short("bd", "boulevard", Title),
        short("env.", "environ", Inside),
        short("n°", "numéro", Number),
        short("N°", "numéro", Number),
        short("no", "numéro", Number),
        short("p.", "page", Number),
        short("chap.", "chapitre", Number),
        short("vol.", "volume", Number),
        short("tél.", "téléphone", Inside),
        short("max.", "maximum", Inside),
        short("min.", "minimum", Inside),
        short("av. J.-C.", "avant Jésus-Christ", Anywhere),
        short("apr. J.-C.", "après Jésus-Christ", Anywhere),
        short("janv.", "janvier", Inside),
        short("févr.", "février", Inside),
        short("juil.", "juillet", Inside),
        short("sept.", "septembre", Inside),
        short("oct.", "octobre", Inside),
        short("nov.", "novembre", Inside),
        short("déc.", "décembre", Inside),
    ],
    starters: &[
        "Le", "La", "Les", "Un", "Une", "Il", "Elle", "Ils", "Elles", "Nous", "Vous", "Je", "Tu",
        "On", "Et", "Mais", "Puis", "Dans", "En", "Ce", "Cette", "Ces", "Quand", "Si", "Alors",
        "Ici",
    ],
    rulers: &[
        "Louis",
        "Henri",
        "Charles",
        "François",
        "Napoléon",
        "Philippe",
        "Jean",
        "Élisabeth",
        "Pie",
        "Benoît",
    ],
    ruler,
    numbered: &[
        "chapitre", "tome", "guerre", "acte", "scène", "partie", "article", "classe",
    ],
    is_word: looks_like_a_word,
    read_as_words: &[
        "NASA", "OTAN", "ONU", "SIDA", "OVNI", "INSEE", "COVID", "UNESCO", "OK", "ET", "LE", "LA",
        "LES",
    ],
    symbols: &[
        ('+', "plus"),
        ('=', "égale"),
        ('<', "inférieur à"),
        ('>', "supérieur à"),
        ('@', "arobase"),
        ('*', "fois"),
        ('×', "fois"),
        ('÷', "divisé par"),
        ('±', "plus ou moins"),
        ('→', "vers"),
        ('§', "paragraphe"),
        ('²', "au carré"),
        ('³', "au cube"),
        ('π', "pi"),
        ('∞', "l'infini"),
    ],
    and: "et",
    number_sign: "numéro",
    hash: "hashtag",
    about: "environ",
    web: [
        "point",
        "slash",
        "tiret",
        "tiret bas",
        "arobase",
        "deux-points",
    ],
};
