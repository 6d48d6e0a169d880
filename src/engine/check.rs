//! Comparing what a model computes on one device with what it computes on another.

use std::path::Path;

use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::error::{Error, ErrorClass, Result};

/// What one stage of a model makes of a fixed input.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// `mel`, `encoder`, ...; stages come in the order of the computation.
    pub name: String,
    /// Every value, row-major.
    pub values: Vec<f32>,
}

/// How far a stage is from its reference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The stage.
    pub stage: String,
    /// Number of values.
    pub count: usize,
    /// Largest absolute difference.
    pub max_abs: f64,
    /// Root mean square of the differences.
    pub rms: f64,
    /// Norm of the differences over the norm of the reference.
    pub relative: f64,
    /// Cosine between the two.
    pub cosine: f64,
    /// Whether all values are finite and `relative` is within the limit.
    pub passed: bool,
}

/// Compares stage by stage; `limit` bounds the relative difference.
///
/// # Errors
/// `Internal` if the two do not have the same stages with the same numbers of values.
pub fn compare(found: &[Stage], reference: &[Stage], limit: f64) -> Result<Vec<Difference>> {
    let outline = |stages: &[Stage]| -> Vec<String> {
        stages
            .iter()
            .map(|s| format!("{} [{}]", s.name, s.values.len()))
            .collect()
    };
    if outline(found) != outline(reference) {
        return Err(Error::internal(format!(
            "the stages differ: found {}, the reference has {}",
            outline(found).join(", "),
            outline(reference).join(", ")
        )));
    }
    let pairs = found.iter().zip(reference);
    Ok(pairs.map(|(a, b)| difference(a, b, limit)).collect())
}

fn difference(found: &Stage, reference: &Stage, limit: f64) -> Difference {
    let pairs = || {
        let values = found.values.iter().zip(&reference.values);
        values.map(|(a, b)| (f64::from(*a), f64::from(*b)))
    };
    let sum = |of: &dyn Fn(f64, f64) -> f64| pairs().map(|(a, b)| of(a, b)).sum::<f64>();
    let squares = sum(&|a, b| (a - b).powi(2));
    let (norm_a, norm_b) = (sum(&|a, _| a * a).sqrt(), sum(&|_, b| b * b).sqrt());
    let count = found.values.len();
    let relative = if squares == 0.0 {
        0.0
    } else {
        squares.sqrt() / norm_b
    };
    let finite = found.values.iter().all(|v| v.is_finite());
    Difference {
        stage: found.name.clone(),
        count,
        max_abs: pairs().map(|(a, b)| (a - b).abs()).fold(0.0, f64::max),
        rms: (squares / count.max(1) as f64).sqrt(),
        relative,
        cosine: sum(&|a, b| a * b) / (norm_a * norm_b),
        passed: finite && relative <= limit,
    }
}

/// Sha256 over all names and values: equal only for runs that agree in every bit.
pub fn digest(stages: &[Stage]) -> String {
    let mut hash = Sha256::new();
    for stage in stages {
        hash.update(stage.name.as_bytes());
        hash.update([0]);
        for value in &stage.values {
            hash.update(value.to_le_bytes());
        }
    }
    hash.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Keeps stages as a safetensors file, to be compared with later.
///
/// # Errors
/// `Internal` if the file cannot be written.
pub fn write_goldens(path: &Path, stages: &[Stage]) -> Result<()> {
    let bytes: Vec<Vec<u8>> = stages
        .iter()
        .map(|s| s.values.iter().flat_map(|v| v.to_le_bytes()).collect())
        .collect();
    let failed = |e: &dyn std::fmt::Display| Error::internal(format!("{}: {e}", path.display()));
    let views: Vec<(String, TensorView)> = stages
        .iter()
        .zip(&bytes)
        .enumerate()
        .map(|(i, (stage, bytes))| {
            let view = TensorView::new(Dtype::F32, vec![stage.values.len()], bytes);
            // The file sorts by name; the number keeps the order of the computation.
            view.map(|view| (format!("{i:02}.{}", stage.name), view))
        })
        .collect::<std::result::Result<_, _>>()
        .map_err(|e| failed(&e))?;
    safetensors::serialize_to_file(views, None, path).map_err(|e| failed(&e))
}

/// Reads what [`write_goldens`] wrote.
///
/// # Errors
/// `BadInput` if there is no such file or it holds something else.
pub fn read_goldens(path: &Path) -> Result<Vec<Stage>> {
    let bytes = std::fs::read(path).map_err(|e| Error::file(path, &e))?;
    let bad = |e: &dyn std::fmt::Display| {
        Error::new(
            ErrorClass::BadInput,
            format!("{}: no goldens: {e}", path.display()),
        )
    };
    let file = SafeTensors::deserialize(&bytes).map_err(|e| bad(&e))?;
    let mut named = file.tensors();
    named.sort_by(|a, b| a.0.cmp(&b.0));
    named
        .into_iter()
        .map(|(name, view)| {
            if view.dtype() != Dtype::F32 {
                return Err(bad(&format!(
                    "`{name}` holds {:?}, expected F32",
                    view.dtype()
                )));
            }
            let words = view.data().as_chunks::<4>().0;
            Ok(Stage {
                name: name
                    .split_once('.')
                    .map_or(name.as_str(), |(_, name)| name)
                    .to_owned(),
                values: words.iter().map(|word| f32::from_le_bytes(*word)).collect(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(name: &str, values: &[f32]) -> Stage {
        Stage {
            name: name.into(),
            values: values.to_vec(),
        }
    }

    #[test]
    fn differences_are_measured_and_judged() {
        let reference = [stage("mel", &[3.0, 4.0]), stage("encoder", &[1.0, 0.0])];
        let found = [stage("mel", &[3.0, 4.5]), stage("encoder", &[1.0, 0.0])];
        let report = compare(&found, &reference, 0.05).unwrap();
        assert_eq!(report[0].max_abs, 0.5);
        assert!((report[0].relative - 0.1).abs() < 1e-12);
        assert!((report[0].rms - (0.125f64).sqrt()).abs() < 1e-12);
        assert_eq!((report[0].passed, report[1].passed), (false, true));
        let nan = [stage("mel", &[f32::NAN, 4.0]), reference[1].clone()];
        assert!(!compare(&nan, &reference, 1e9).unwrap()[0].passed);
        assert!(compare(&found[..1], &reference, 1.0).is_err());
    }

    #[test]
    fn goldens_keep_order_and_every_bit() {
        let stages = [stage("z", &[1.5, -0.0]), stage("a", &[f32::MIN_POSITIVE])];
        let file = tempfile::NamedTempFile::new().unwrap();
        write_goldens(file.path(), &stages).unwrap();
        let back = read_goldens(file.path()).unwrap();
        assert_eq!(digest(&back), digest(&stages));
        assert_ne!(digest(&back[..1]), digest(&stages));
        assert!(read_goldens(Path::new("nowhere.safetensors")).is_err());
    }
}
