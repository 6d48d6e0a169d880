//! English.

use crate::text::normalize::{
    language::{Abbreviation, Clock, Date, Dates, Language, Money, Place, Unit},
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
        (20, 0..10) => language.count(year),
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

const fn money(
    signs: &'static [&'static str],
    names: [&'static str; 2],
    parts: [&'static str; 2],
) -> Money {
    Money {
        signs,
        names,
        gender: Gender::Counted,
        parts,
    }
}

const fn unit(sign: &'static str, one: &'static str, many: &'static str) -> Unit {
    Unit {
        sign,
        names: [one, many],
        gender: Gender::Counted,
    }
}

const fn short(short: &'static str, long: &'static str, place: Place) -> Abbreviation {
    Abbreviation { short, long, place }
}

use Place::{AfterName, Anywhere, Inside, Number, Title};

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
    units: &[
        unit("%", "percent", "percent"),
        unit("‰", "per mille", "per mille"),
        unit("°", "degree", "degrees"),
        unit("°C", "degree Celsius", "degrees Celsius"),
        unit("° C", "degree Celsius", "degrees Celsius"),
        unit("°F", "degree Fahrenheit", "degrees Fahrenheit"),
        unit("° F", "degree Fahrenheit", "degrees Fahrenheit"),
        unit("℃", "degree Celsius", "degrees Celsius"),
        unit("℉", "degree Fahrenheit", "degrees Fahrenheit"),
        unit("km", "kilometer", "kilometers"),
        unit("m", "meter", "meters"),
        unit("cm", "centimeter", "centimeters"),
        unit("mm", "millimeter", "millimeters"),
        unit("µm", "micrometer", "micrometers"),
        unit("nm", "nanometer", "nanometers"),
        unit("mi", "mile", "miles"),
        unit("mi.", "mile", "miles"),
        unit("ft", "foot", "feet"),
        unit("ft.", "foot", "feet"),
        unit("in.", "inch", "inches"),
        unit("\"", "inch", "inches"),
        unit("″", "inch", "inches"),
        unit("yd", "yard", "yards"),
        unit("km²", "square kilometer", "square kilometers"),
        unit("km2", "square kilometer", "square kilometers"),
        unit("m²", "square meter", "square meters"),
        unit("m2", "square meter", "square meters"),
        unit("m³", "cubic meter", "cubic meters"),
        unit("m3", "cubic meter", "cubic meters"),
        unit("sq ft", "square foot", "square feet"),
        unit("sq. ft.", "square foot", "square feet"),
        unit("kg", "kilogram", "kilograms"),
        unit("g", "gram", "grams"),
        unit("mg", "milligram", "milligrams"),
        unit("lb", "pound", "pounds"),
        unit("lb.", "pound", "pounds"),
        unit("lbs", "pound", "pounds"),
        unit("lbs.", "pound", "pounds"),
        unit("oz", "ounce", "ounces"),
        unit("oz.", "ounce", "ounces"),
        unit("l", "liter", "liters"),
        unit("L", "liter", "liters"),
        unit("ml", "milliliter", "milliliters"),
        unit("mL", "milliliter", "milliliters"),
        unit("gal", "gallon", "gallons"),
        unit("h", "hour", "hours"),
        unit("hr", "hour", "hours"),
        unit("hrs", "hour", "hours"),
        unit("min", "minute", "minutes"),
        unit("s", "second", "seconds"),
        unit("sec", "second", "seconds"),
        unit("ms", "millisecond", "milliseconds"),
        unit("mph", "mile per hour", "miles per hour"),
        unit("kph", "kilometer per hour", "kilometers per hour"),
        unit("km/h", "kilometer per hour", "kilometers per hour"),
        unit("rpm", "revolution per minute", "revolutions per minute"),
        unit("Hz", "hertz", "hertz"),
        unit("kHz", "kilohertz", "kilohertz"),
        unit("MHz", "megahertz", "megahertz"),
        unit("GHz", "gigahertz", "gigahertz"),
        unit("W", "watt", "watts"),
        unit("kW", "kilowatt", "kilowatts"),
        unit("MW", "megawatt", "megawatts"),
        unit("GW", "gigawatt", "gigawatts"),
        unit("kWh", "kilowatt hour", "kilowatt hours"),
        unit("V", "volt", "volts"),
        unit("mAh", "milliamp hour", "milliamp hours"),
        unit("Ω", "ohm", "ohms"),
        unit("B", "byte", "bytes"),
        unit("kB", "kilobyte", "kilobytes"),
        unit("KB", "kilobyte", "kilobytes"),
        unit("MB", "megabyte", "megabytes"),
        unit("GB", "gigabyte", "gigabytes"),
        unit("TB", "terabyte", "terabytes"),
        unit("Mbps", "megabit per second", "megabits per second"),
        unit("Gbps", "gigabit per second", "gigabits per second"),
        unit("kbps", "kilobit per second", "kilobits per second"),
        unit("fps", "frame per second", "frames per second"),
        unit("dB", "decibel", "decibels"),
        unit("px", "pixel", "pixels"),
        unit("kcal", "kilocalorie", "kilocalories"),
        unit("psi", "P S I", "P S I"),
        unit("hp", "horsepower", "horsepower"),
    ],
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
    abbreviations: &[
        short("Mr.", "Mister", Inside),
        short("Mrs.", "Missus", Inside),
        short("Ms.", "Miz", Inside),
        short("Mr", "Mister", Title),
        short("Mrs", "Missus", Title),
        short("Ms", "Miz", Title),
        short("Dr.", "Doctor", Title),
        short("Dr", "Doctor", Title),
        short("Dr.", "Drive", AfterName),
        short("Prof.", "Professor", Inside),
        short("St.", "Saint", Title),
        short("St.", "Street", AfterName),
        short("Ave.", "Avenue", AfterName),
        short("Blvd.", "Boulevard", AfterName),
        short("Rd.", "Road", AfterName),
        short("Ln.", "Lane", AfterName),
        short("Hwy.", "Highway", Anywhere),
        short("Mt.", "Mount", Title),
        short("Ft.", "Fort", Title),
        short("Gen.", "General", Title),
        short("Col.", "Colonel", Title),
        short("Sgt.", "Sergeant", Title),
        short("Capt.", "Captain", Title),
        short("Lt.", "Lieutenant", Title),
        short("Cmdr.", "Commander", Title),
        short("Maj.", "Major", Title),
        short("Rev.", "Reverend", Title),
        short("Hon.", "Honorable", Title),
        short("Sen.", "Senator", Title),
        short("Rep.", "Representative", Title),
        short("Gov.", "Governor", Title),
        short("Pres.", "President", Title),
        short("Fr.", "Father", Title),
        short("Jr.", "Junior", AfterName),
        short("Sr.", "Senior", AfterName),
        short("Esq.", "Esquire", AfterName),
        short("Inc.", "Incorporated", AfterName),
        short("Ltd.", "Limited", AfterName),
        short("Corp.", "Corporation", AfterName),
        short("Co.", "Company", AfterName),
        short("Bros.", "Brothers", AfterName),
        short("Univ.", "University", Inside),
        short("etc.", "et cetera", Anywhere),
        short("e. g.", "for example", Inside),
        short("e.g", "for example", Inside),
        short("i. e.", "that is", Inside),
        short("vs.", "versus", Inside),
        short("vs", "versus", Inside),
        short("cf.", "compare", Inside),
        short("viz.", "namely", Inside),
        short("et al.", "and others", Anywhere),
        short("approx.", "approximately", Inside),
        short("ca.", "circa", Number),
        short("c.", "circa", Number),
        short("dept.", "department", Inside),
        short("est.", "established", Number),
        short("est.", "estimated", Inside),
        short("min.", "minimum", Inside),
        short("max.", "maximum", Inside),
        short("misc.", "miscellaneous", Inside),
        short("no.", "number", Number),
        short("nos.", "numbers", Number),
        short("№", "number", Number),
        short("vol.", "volume", Number),
        short("ch.", "chapter", Number),
        short("sec.", "section", Number),
        short("fig.", "figure", Number),
        short("p.", "page", Number),
        short("pp.", "pages", Number),
        short("ed.", "edition", Inside),
        short("eq.", "equation", Number),
        short("tel.", "telephone", Inside),
        short("ext.", "extension", Number),
        short("apt.", "apartment", Number),
        short("govt.", "government", Inside),
        short("w/o", "without", Inside),
        short("w/", "with", Inside),
        short("P.S.", "P S", Inside),
        short("Ph.D.", "P H D", Anywhere),
        short("PhD", "P H D", Anywhere),
        short("M.D.", "M D", Anywhere),
        short("B.Sc.", "B S C", Anywhere),
        short("a.m.", "A M", Anywhere),
        short("p.m.", "P M", Anywhere),
        short("A.D.", "A D", Anywhere),
        short("B.C.", "B C", Anywhere),
        short("Jan.", "January", Anywhere),
        short("Feb.", "February", Anywhere),
        short("Mar.", "March", Number),
        short("Apr.", "April", Anywhere),
        short("Jun.", "June", Number),
        short("Jul.", "July", Number),
        short("Aug.", "August", Anywhere),
        short("Sept.", "September", Anywhere),
        short("Sep.", "September", Anywhere),
        short("Oct.", "October", Anywhere),
        short("Nov.", "November", Anywhere),
        short("Dec.", "December", Anywhere),
        short("Mon.", "Monday", Inside),
        short("Tue.", "Tuesday", Inside),
        short("Tues.", "Tuesday", Inside),
        short("Wed.", "Wednesday", Inside),
        short("Thu.", "Thursday", Inside),
        short("Thurs.", "Thursday", Inside),
        short("Fri.", "Friday", Inside),
        short("Sat.", "Saturday", Title),
        short("wi-fi", "why fy", Anywhere),
    ],
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
    read_as_words: &[
        "NASA", "NATO", "UNESCO", "UNICEF", "OPEC", "AIDS", "COVID", "LASER", "RADAR", "SCUBA",
        "NAFTA", "ASEAN", "FIFA", "UEFA", "NASDAQ", "PIN", "SIM", "RAM", "ROM", "GIF", "JPEG",
        "CAPTCHA", "LIDAR", "SONAR", "SWAT", "OK", "ASCII", "YOLO", "AM", "PM", "BASIC", "JSON",
        "RIP", "NOT", "AND", "THE", "ALL", "NO", "YES", "OR", "IN", "ON", "IS", "TO", "AS", "AT",
        "BE", "BY", "DO", "GO", "HE", "IF", "ME", "MY", "OF", "SO", "UP", "WE", "YOU", "ARE",
        "WAS", "CAN", "NOW", "NEW", "OUT", "HOW", "WHY", "WHO", "GET", "ONE", "TWO", "OFF", "TOP",
        "BUT", "FOR", "HER", "HIS", "SHE", "HAS", "HAD", "DAY", "BIG", "OLD", "STOP", "WOW", "HEY",
        "OH", "AH",
    ],
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
