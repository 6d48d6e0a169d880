//! Word error rate.

/// How far a transcript is from the words that were said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordErrors {
    /// Words to replace, leave out or add.
    pub errors: usize,
    /// Words of the reference.
    pub words: usize,
}

impl WordErrors {
    /// Errors a word of the reference; 0 is perfect, and more than 1 is possible.
    pub fn rate(self) -> f64 {
        self.errors as f64 / self.words.max(1) as f64
    }
}

impl std::ops::Add for WordErrors {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            errors: self.errors + other.errors,
            words: self.words + other.words,
        }
    }
}

/// The words of a text: lower case; apostrophes dropped, all other punctuation parts words; "mr" and
/// "mrs" written out. Numbers stay as they are written.
pub fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace(['\'', '\u{2019}'], "");
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| match word {
            "mr" => "mister".into(),
            "mrs" => "missus".into(),
            _ => word.into(),
        })
        .collect()
}

/// The fewest replaced, missing and added words that lead from `reference` to `hypothesis`.
pub fn word_errors(reference: &str, hypothesis: &str) -> WordErrors {
    let (reference, hypothesis) = (words(reference), words(hypothesis));
    // Levenshtein distance, one row at a time: row[j] compares the words so far with j others.
    let mut row: Vec<usize> = (0..=hypothesis.len()).collect();
    for (i, said) in reference.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, heard) in hypothesis.iter().enumerate() {
            let replaced = diagonal + usize::from(said != heard);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    WordErrors {
        errors: row[hypothesis.len()],
        words: reference.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_punctuation_and_titles_do_not_count() {
        let errors = word_errors(
            "mister john didnt ill disposed",
            "Mr. John didn't, ill-disposed.",
        );
        assert_eq!(
            errors,
            WordErrors {
                errors: 0,
                words: 5
            }
        );
    }

    #[test]
    fn each_kind_of_error_counts_once() {
        let said = "ask not what your country can do";
        assert_eq!(
            word_errors(said, "ask not what your county can do").errors,
            1
        );
        assert_eq!(word_errors(said, "ask what your country can do").errors, 1);
        assert_eq!(
            word_errors(said, "ask not what what your country can do").errors,
            1
        );
        assert_eq!(word_errors(said, "what not ask").errors, 6);
        assert_eq!(word_errors(said, "").rate(), 1.0);
        assert_eq!(
            word_errors("", "two words"),
            WordErrors {
                errors: 2,
                words: 0
            }
        );
    }

    #[test]
    fn rates_are_those_of_jiwer() {
        let rate = |said, heard| word_errors(said, heard).rate();
        assert_eq!(
            rate("ask not what your country can do", "what not ask"),
            6.0 / 7.0
        );
        let said = "had he married a more a amiable woman he might";
        assert_eq!(
            rate(said, "had he married a more amiable woman he might have"),
            0.2
        );
    }

    #[test]
    fn clips_add_up() {
        let sum = word_errors("a b", "a c") + word_errors("d e f", "d e f");
        assert_eq!(
            sum,
            WordErrors {
                errors: 1,
                words: 5
            }
        );
        assert_eq!(sum.rate(), 0.2);
    }
}
