//! Numbers of phonemes, as a network's tables have them.

use std::collections::HashMap;

/// Why a list of symbols is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VocabularyError {
    /// A symbol of no or several characters.
    #[error("the symbol `{0}` is no character")]
    Symbol(String),
    /// A number that is no row of the tables.
    #[error("`{symbol}` has the number {number}; the network knows {rows}")]
    Number {
        /// The symbol.
        symbol: String,
        /// Its number.
        number: i64,
        /// Rows of the smallest table.
        rows: usize,
    },
}

/// Symbols of one character with their numbers, each below `rows`.
///
/// # Errors
/// The first symbol that is no character, or whose number is outside.
pub fn vocabulary<S: AsRef<str>>(
    symbols: impl IntoIterator<Item = (S, i64)>,
    rows: usize,
) -> Result<HashMap<char, i32>, VocabularyError> {
    let one = |(symbol, number): (S, i64)| {
        let symbol = symbol.as_ref();
        let mut chars = symbol.chars();
        let (Some(char), None) = (chars.next(), chars.next()) else {
            return Err(VocabularyError::Symbol(symbol.to_owned()));
        };
        let row = i32::try_from(number).ok();
        let row = row.filter(|&row| usize::try_from(row).is_ok_and(|row| row < rows));
        row.map(|row| (char, row)).ok_or(VocabularyError::Number {
            symbol: symbol.to_owned(),
            number,
            rows,
        })
    };
    symbols.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_is_a_character_with_a_row() {
        let known = vocabulary([("a", 0), ("ʧ", 9)], 10).unwrap();
        assert_eq!(known, HashMap::from([('a', 0), ('ʧ', 9)]));
        for number in [10, -1, 1 << 40] {
            let wrong = VocabularyError::Number {
                symbol: "a".into(),
                number,
                rows: 10,
            };
            assert_eq!(vocabulary([("a", number)], 10), Err(wrong));
        }
        for symbol in ["", "aː"] {
            let wrong = VocabularyError::Symbol(symbol.into());
            assert_eq!(vocabulary([(symbol, 1)], 10), Err(wrong));
        }
    }
}
