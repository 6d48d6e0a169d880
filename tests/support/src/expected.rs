//! Expected tensors from the reference scripts, and how far a result is from them.

use safetensors::{Dtype, SafeTensors};
use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

/// The tensors of one `.safetensors` file of expected values.
pub struct Expected {
    tensors: BTreeMap<String, (Vec<usize>, Vec<u8>, Dtype)>,
    /// What the script noted beside the tensors, such as `text`.
    pub notes: HashMap<String, String>,
}

impl Expected {
    /// Reads the file.
    ///
    /// # Panics
    /// Panics when it cannot be read, as every function here does on what a test did not foresee.
    pub fn read(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let file = SafeTensors::deserialize(&bytes).expect("a safetensors file");
        let (_, header) = SafeTensors::read_metadata(&bytes).expect("a safetensors header");
        let tensors = file
            .tensors()
            .into_iter()
            .map(|(name, view)| {
                (
                    name,
                    (view.shape().to_vec(), view.data().to_vec(), view.dtype()),
                )
            })
            .collect();
        Self {
            tensors,
            notes: header.metadata().clone().unwrap_or_default(),
        }
    }

    /// Dimensions of the tensor `name`, outermost first.
    pub fn shape(&self, name: &str) -> &[usize] {
        &self.get(name).0
    }

    /// Values of the f32 tensor `name`, row-major.
    pub fn f32(&self, name: &str) -> Vec<f32> {
        self.words(name, Dtype::F32)
            .map(f32::from_le_bytes)
            .collect()
    }

    /// Values of the i32 tensor `name`, row-major.
    pub fn i32(&self, name: &str) -> Vec<i32> {
        self.words(name, Dtype::I32)
            .map(i32::from_le_bytes)
            .collect()
    }

    /// Values of the i64 tensor `name`, row-major.
    pub fn i64(&self, name: &str) -> Vec<i64> {
        let (_, bytes, dtype) = self.get(name);
        assert_eq!(*dtype, Dtype::I64, "type of `{name}`");
        let (words, _) = bytes.as_chunks::<8>();
        words.iter().map(|word| i64::from_le_bytes(*word)).collect()
    }

    /// Names of all tensors.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    fn words(&self, name: &str, wanted: Dtype) -> impl Iterator<Item = [u8; 4]> {
        let (_, bytes, dtype) = self.get(name);
        assert_eq!(*dtype, wanted, "type of `{name}`");
        bytes
            .chunks_exact(4)
            .map(|word| word.try_into().expect("four bytes"))
    }

    fn get(&self, name: &str) -> &(Vec<usize>, Vec<u8>, Dtype) {
        self.tensors.get(name).unwrap_or_else(|| {
            let known: Vec<_> = self.tensors.keys().collect();
            panic!("no expected tensor `{name}`; there are {known:?}")
        })
    }
}

/// Largest absolute difference between two equally long slices; NaN when either holds one.
pub fn max_difference(found: &[f32], wanted: &[f32]) -> f32 {
    assert_eq!(found.len(), wanted.len(), "number of values");
    let differences = found.iter().zip(wanted).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, |worst, d| {
        if d.is_nan() || worst.is_nan() {
            f32::NAN
        } else {
            d.max(worst)
        }
    })
}

/// L2 norm of the difference over the norm of `wanted`.
pub fn relative_error(found: &[f32], wanted: &[f32]) -> f64 {
    assert_eq!(found.len(), wanted.len(), "number of values");
    let squares = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>();
    let pairs = found.iter().zip(wanted);
    let off = squares(&mut pairs.map(|(a, b)| f64::from(*a) - f64::from(*b)));
    (off / squares(&mut wanted.iter().map(|v| f64::from(*v)))).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_tensors_have_their_shapes_and_notes() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/whisper");
        let formula = Expected::read(data.join("formula/expected.safetensors"));
        assert_eq!(formula.shape("encoder"), [30, 64]);
        assert_eq!(formula.i32("tokens")[..3], [501, 7, 42]);
        let jfk = Expected::read(data.join("tiny.en/jfk.safetensors"));
        assert!(jfk.notes["text"].contains("fellow Americans"));
        assert_eq!(jfk.shape("mel"), [80, 300]);
    }

    #[test]
    fn differences_are_measured() {
        assert_eq!(max_difference(&[1.0, 2.0], &[1.0, 2.5]), 0.5);
        assert!(max_difference(&[f32::NAN, 9.0], &[1.0, 2.5]).is_nan());
        assert_eq!(relative_error(&[3.0, 5.0], &[3.0, 4.0]), 0.2);
    }
}
