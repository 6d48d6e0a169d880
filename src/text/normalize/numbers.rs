//! Numbers in words: one way of counting, with the words and habits of a language as data.

/// How a language counts. Numbers are read in groups of three digits.
#[derive(Debug)]
pub struct Cardinals {
    /// 0 to 99.
    pub below_hundred: fn(u64) -> String,
    /// Hundreds as they stand before more digits, by their first digit; the first is not used.
    pub hundreds: [&'static str; 10],
    /// What whole hundreds from two on end in, when nothing follows.
    pub hundreds_end: &'static str,
    /// Exactly one hundred.
    pub hundred_alone: &'static str,
    /// Between hundreds and the rest.
    pub hundred_join: &'static str,
    /// Thousand, million, ...
    pub scales: &'static [Scale],
    /// Between thousands and a last group that is below a hundred or made of whole hundreds.
    pub last_join: &'static str,
    /// Makes counted words agree with a noun of a gender, never [`Gender::Counted`].
    pub agree: fn(&str, Gender) -> String,
}

/// A power of a thousand.
#[derive(Debug)]
pub struct Scale {
    /// One of it, in full.
    pub one: &'static str,
    /// More of it, after their number.
    pub many: &'static str,
    /// Written as one word with the numbers before and after it.
    pub glued: bool,
}

/// The gender in which a number agrees with its noun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Gender {
    /// Counting, without a noun.
    #[default]
    Counted,
    /// Masculine, neuter or common.
    Masculine,
    /// Feminine.
    Feminine,
}

impl Cardinals {
    /// The words for `n`, as counted; beyond the scales, digit by digit.
    pub fn words(&self, n: u64) -> String {
        let mut groups = Vec::new();
        let mut rest = n;
        while rest > 0 || groups.is_empty() {
            groups.push(rest % 1000);
            rest /= 1000;
        }
        if groups.len() > self.scales.len() + 1 {
            return self.digits(&n.to_string());
        }
        let mut words = String::new();
        for (power, group) in groups.iter().enumerate().rev() {
            let scale = power.checked_sub(1).map(|i| &self.scales[i]);
            if *group == 0 && n > 0 {
                continue;
            }
            if !words.is_empty() {
                words.push_str(self.join(power, *group));
            }
            words.push_str(&match scale {
                None => self.below_thousand(*group),
                Some(scale) => self.scaled(*group, scale),
            });
        }
        words
    }

    /// Digit by digit; other characters are left out.
    pub fn digits(&self, digits: &str) -> String {
        let digits = digits.chars().filter_map(|digit| digit.to_digit(10));
        let words: Vec<String> = digits
            .map(|digit| (self.below_hundred)(digit.into()))
            .collect();
        words.join(" ")
    }

    /// The words for `n` before a noun.
    pub fn agreeing(&self, n: u64, gender: Gender) -> String {
        let words = self.words(n);
        match gender {
            Gender::Counted => words,
            _ => (self.agree)(&words, gender),
        }
    }

    fn join(&self, power: usize, group: u64) -> &'static str {
        let small = group < 100 || group.is_multiple_of(100);
        match power {
            0 if small => self.last_join,
            0 if self.scales[0].glued => "",
            _ => " ",
        }
    }

    fn scaled(&self, group: u64, scale: &Scale) -> String {
        match group {
            1 => scale.one.to_owned(),
            _ if scale.glued => format!("{}{}", self.below_thousand(group), scale.many),
            _ => {
                let number = (self.agree)(&self.below_thousand(group), Gender::Masculine);
                format!("{number} {}", scale.many)
            }
        }
    }

    fn below_thousand(&self, n: u64) -> String {
        let (hundreds, rest) = (n / 100, n % 100);
        match (hundreds, rest) {
            (0, _) => (self.below_hundred)(rest),
            (1, 0) => self.hundred_alone.to_owned(),
            (_, 0) => format!(
                "{}{}",
                self.hundreds[hundreds as usize % 10],
                self.hundreds_end
            ),
            _ => {
                let hundreds = self.hundreds[hundreds as usize % 10];
                format!(
                    "{hundreds}{}{}",
                    self.hundred_join,
                    (self.below_hundred)(rest)
                )
            }
        }
    }
}
