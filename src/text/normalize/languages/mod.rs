//! The data of the languages.

mod english;

use super::language::Language;

/// All languages with data.
pub static ALL: [&Language; 1] = [&english::ENGLISH];
