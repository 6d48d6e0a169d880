//! Formula weights: each tensor is a function of its name and shape, the same here and in
//! `tests/reference/formula_weights.py`, so that a test needs only the expected outputs on disk.

use safetensors::{Dtype, serialize_to_file, tensor::TensorView};
use std::{collections::BTreeMap, io, path::Path};

/// Name endings of tensors that stay near 1 at any rank.
const POSITIVE: &[&str] = &[
    "weight_g",
    "original0",
    "running_var",
    "alpha",
    "layer_scale",
    "gamma_1",
    "gamma_2",
];
/// Name endings of vectors and scalars that scale their input, so stay near 1.
const GAINS: &[&str] = &["weight", "gamma", "scale", ".g"];

/// 64-bit FNV-1a of the name.
fn key(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// `count` values in [-1, 1) for the tensor `name`; splitmix64 numbers, 24 bits of each.
pub fn unit(name: &str, count: usize) -> Vec<f32> {
    let key = key(name);
    (1..=count as u64)
        .map(|step| {
            let mut x = key.wrapping_add(step.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            x ^= x >> 31;
            (x >> 40) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}

/// The tensor `name` of `shape` (outermost dimension first), row-major: biases within 0.1 of 0,
/// gains within 0.1 of 1, matrices with the variance 1 / fan-in.
pub fn tensor(name: &str, shape: &[usize]) -> Vec<f32> {
    let mut values = unit(name, shape.iter().product());
    let ends_in = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    let vector = shape.len() < 2;
    let (offset, scale) = if ends_in(POSITIVE) || (vector && ends_in(GAINS)) {
        (1.0, 0.1)
    } else if vector {
        (0.0, 0.1)
    } else {
        let fan_in: usize = shape[1..].iter().product();
        (0.0, (3.0 / fan_in as f64).sqrt() as f32)
    };
    for value in &mut values {
        *value = offset + scale * *value;
    }
    values
}

/// Writes a safetensors checkpoint of f32 formula weights with the names and shapes of `layout`, a
/// JSON file `{"name": [dimensions]}`.
pub fn write_checkpoint(layout: &Path, checkpoint: &Path) -> io::Result<()> {
    let layout: BTreeMap<String, Vec<usize>> = serde_json::from_slice(&std::fs::read(layout)?)?;
    let bytes: Vec<(String, Vec<usize>, Vec<u8>)> = layout
        .into_iter()
        .map(|(name, shape)| {
            let values = tensor(&name, &shape);
            let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            (name, shape, bytes)
        })
        .collect();
    let views = bytes.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(Dtype::F32, shape.clone(), bytes);
        (name, view.expect("the bytes were made for this shape"))
    });
    serialize_to_file(views, None, checkpoint).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    // The numbers are what the Python twin gives.

    #[test]
    fn names_hash_as_fnv1a() {
        assert_eq!(key("a"), 0xAF63_DC4C_8601_EC8C);
    }

    #[test]
    fn values_equal_the_python_twin() {
        assert_eq!(unit("encoder.conv1.weight", 4), UNIT);
        assert_eq!(tensor("encoder.conv1.weight", &[2, 3]), MATRIX);
        assert_eq!(tensor("norm.weight", &[3]), GAIN);
        assert_eq!(tensor("norm.bias", &[3]), BIAS);
    }

    const UNIT: [f32; 4] = [0.933756, 0.5681273, -0.14451921, -0.3249191];
    const MATRIX: [f32; 6] = [
        0.933756,
        0.5681273,
        -0.14451921,
        -0.3249191,
        -0.051212788,
        -0.895357,
    ];
    const GAIN: [f32; 3] = [0.9525895, 0.90538293, 1.0141046];
    const BIAS: [f32; 3] = [0.06941906, 0.032867897, 0.08692175];
}
