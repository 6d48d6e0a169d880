//! Voices: for each, one style for every number of phonemes.

use std::{collections::BTreeMap, path::Path};

use audiocpp::{
    engine::{Error, Result, hint},
    weights::{self, Source},
};

use crate::LoadError;

/// The voices of a package.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Styles {
    /// Rows of `width` values.
    voices: BTreeMap<String, Vec<f32>>,
    width: usize,
}

/// A voice, or several in one: rows of a style's width.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Style {
    rows: Vec<f32>,
    width: usize,
}

impl Style {
    /// The style for a chunk of `phonemes`, not counting the marks at its ends.
    pub fn of(&self, phonemes: usize) -> &[f32] {
        let last = (self.rows.len() / self.width.max(1)).saturating_sub(1);
        let row = phonemes.saturating_sub(1).min(last);
        &self.rows[row * self.width..(row + 1) * self.width]
    }
}

impl Styles {
    /// Reads `files`: archives of voices by name, or one voice each, named as the file; every one
    /// `[lengths, 1, width]`.
    ///
    /// # Errors
    /// Files that hold something else; no voices at all.
    pub fn read(
        files: &[std::path::PathBuf],
        width: usize,
        package: &Path,
    ) -> std::result::Result<Styles, LoadError> {
        let mut styles = Styles {
            voices: BTreeMap::new(),
            width,
        };
        for path in files {
            let source = weights::open(path)?;
            let single = source.tensors().len() == 1 && path.extension().is_none_or(|e| e != "npz");
            for info in source.tensors() {
                let name = match single {
                    true => path
                        .file_stem()
                        .unwrap_or_default()
                        .to_string_lossy()
                        .into_owned(),
                    false => info.name.clone(),
                };
                let rows = styles.rows(&*source, info, path)?;
                styles.voices.insert(name, rows);
            }
        }
        match styles.voices.is_empty() {
            false => Ok(styles),
            true => Err(LoadError::package(
                package,
                "there are no voices (`voices/*.pt`, or an `.npz` of them)",
            )),
        }
    }

    fn rows(
        &self,
        source: &dyn Source,
        info: &weights::TensorInfo,
        path: &Path,
    ) -> std::result::Result<Vec<f32>, LoadError> {
        let wrong = |problem: String| LoadError::package(path, problem);
        let fits = info.shape.last() == Some(&self.width) && info.shape.iter().all(|&n| n > 0);
        if !fits {
            let problem = format!(
                "the voice `{}` has the shape {:?}; styles of {} values are wanted",
                info.name, info.shape, self.width
            );
            return Err(wrong(problem));
        }
        let bytes = source.bytes(info)?;
        weights::to_f32(&bytes, info.dtype)
            .ok()
            .filter(|values| values.iter().all(|x| x.is_finite()))
            .ok_or_else(|| {
                wrong(format!(
                    "the voice `{}` has values that are no numbers",
                    info.name
                ))
            })
    }

    /// Names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.voices.keys().map(String::as_str)
    }

    /// The voice that `wanted` describes: a name, or several with their shares, as in
    /// `bella(2)+sky(1)`.
    ///
    /// # Errors
    /// Unknown names, shares that are no positive numbers.
    pub fn mix(&self, wanted: &str) -> Result<Style> {
        let mut parts = Vec::new();
        for part in wanted.split(['+', ',']) {
            let (name, share) = share_of(part.trim())?;
            let rows = self.voices.get(name).ok_or_else(|| {
                let hint = hint(name, self.names());
                Error::not_found(format!("there is no voice `{name}`{hint}"))
            })?;
            parts.push((rows, share));
        }
        let total: f32 = parts.iter().map(|part| part.1).sum();
        let shortest = parts.iter().map(|part| part.0.len()).min().unwrap_or(0);
        let mut rows = vec![0.0; shortest];
        for (voice, share) in parts {
            // A single voice keeps its values bit for bit.
            let share = share / total;
            rows.iter_mut()
                .zip(voice)
                .for_each(|(sum, x)| *sum += share * x);
        }
        Ok(Style {
            rows,
            width: self.width,
        })
    }
}

/// `bella(2)` as a name and a share; the share may be left out.
fn share_of(part: &str) -> Result<(&str, f32)> {
    let Some((name, rest)) = part.split_once('(') else {
        return Ok((part, 1.0));
    };
    let share = rest
        .strip_suffix(')')
        .and_then(|number| number.trim().parse().ok());
    match share.filter(|share: &f32| share.is_finite() && *share > 0.0) {
        Some(share) => Ok((name.trim(), share)),
        None => Err(Error::bad_input(format!(
            "`{part}` is no voice with a share; write name(2)+other(1)"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn styles() -> Styles {
        let voice = |from: f32| (0..6).map(|i| from + i as f32).collect();
        Styles {
            voices: [
                ("bella".to_owned(), voice(0.0)),
                ("sky".to_owned(), voice(30.0)),
            ]
            .into(),
            width: 2,
        }
    }

    #[test]
    fn voices_are_mixed_by_their_shares() {
        let styles = styles();
        assert_eq!(styles.mix("sky").unwrap().rows, styles.voices["sky"]);
        let mixed = styles.mix("bella(2)+sky(1)").unwrap();
        for (i, value) in mixed.rows.iter().enumerate() {
            assert!((value - (10.0 + i as f32)).abs() < 1e-5, "{value}");
        }
        assert_eq!(styles.mix("bella,sky").unwrap().rows[0], 15.0);
        for wrong in ["bela", "bella(0)", "bella(x)", "bella(1", "", "bella+"] {
            assert!(styles.mix(wrong).is_err(), "{wrong}");
        }
        assert!(styles.mix("bela").unwrap_err().message.contains("bella"));
    }

    #[test]
    fn the_number_of_phonemes_chooses_the_row() {
        let style = styles().mix("bella").unwrap();
        assert_eq!(style.of(0), [0.0, 1.0]);
        assert_eq!(style.of(1), [0.0, 1.0]);
        assert_eq!(style.of(3), [4.0, 5.0]);
        assert_eq!(style.of(100), [4.0, 5.0]);
    }
}
