//! Which type a model's weights are kept in.

use super::StoredType;
use crate::graph::DType;
use std::{fmt, str::FromStr};

/// The type that matrices are kept in; vectors (norms, biases) always become f32.
///
/// The quantised policies apply to matrices of [`LEAST_QUANTIZED`] values or more whose rows are
/// whole blocks; the others, and convolution kernels and look-up tables, stay f16. A model may pin
/// the type of a tensor, which then holds under every policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Policy {
    /// As the file has them, where ggml can compute with that; else f32.
    #[default]
    Native,
    /// 32 bits: exact.
    F32,
    /// 16 bits; a weight beyond 65504 is an error.
    F16,
    /// 16 bits with the range of f32.
    BF16,
    /// 8.5 bits; rows that are no multiple of 32 values stay f16.
    Q8_0,
    /// 4.5 bits; rows that are no multiple of 256 values become q8_0 or f16.
    Q4K,
}

/// Smaller matrices save no memory worth their loss of precision.
pub const LEAST_QUANTIZED: usize = 4096;

impl Policy {
    /// Every policy with its name on the command line.
    pub const ALL: [(Policy, &'static str); 6] = [
        (Policy::Native, "native"),
        (Policy::F32, "f32"),
        (Policy::F16, "f16"),
        (Policy::BF16, "bf16"),
        (Policy::Q8_0, "q8_0"),
        (Policy::Q4K, "q4_K"),
    ];

    /// The type of a matrix with rows of `row` values that the file stores as `stored`.
    pub fn matrix(self, stored: StoredType, row: usize) -> DType {
        let whole = |t: DType| row.is_multiple_of(t.block_len()).then_some(t);
        match self {
            Policy::Native => match stored {
                StoredType::F16 | StoredType::BF16 => stored.dtype().unwrap_or(DType::F32),
                // Blocks may not lie across the model's rows.
                quantized if quantized.is_quantized() => {
                    quantized.dtype().and_then(whole).unwrap_or(DType::F32)
                }
                _ => DType::F32,
            },
            Policy::F32 => DType::F32,
            Policy::F16 => DType::F16,
            Policy::BF16 => DType::BF16,
            Policy::Q8_0 => whole(DType::Q8_0).unwrap_or(DType::F16),
            Policy::Q4K => whole(DType::Q4_K)
                .or_else(|| whole(DType::Q8_0))
                .unwrap_or(DType::F16),
        }
    }

    /// The type of a convolution kernel or a look-up table: plain, half under quantised policies.
    pub fn plain(self, stored: StoredType) -> DType {
        match self.matrix(stored, 1) {
            DType::F32 if self == Policy::Native && stored.is_quantized() => DType::F16,
            DType::F32 => DType::F32,
            DType::BF16 => DType::BF16,
            _ => DType::F16,
        }
    }

    /// The type of a tensor that the model sees as `shape`: f32 for one row or column,
    /// [`matrix`](Self::matrix) for two dimensions, [`plain`](Self::plain) for more; a file's own
    /// quantised matrices keep their type whatever their size.
    pub fn target(self, stored: StoredType, shape: &[usize]) -> DType {
        if shape.iter().filter(|&&d| d != 1).count() < 2 {
            return DType::F32;
        }
        match shape {
            [rows, row] if self == Policy::Native || rows * row >= LEAST_QUANTIZED => {
                self.matrix(stored, *row)
            }
            _ => self.plain(stored),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Policy::ALL.iter().find(|(policy, _)| policy == self);
        f.write_str(name.map_or("", |(_, name)| name))
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Policy::ALL
            .iter()
            .find(|(_, name)| name.eq_ignore_ascii_case(text));
        known.map(|(policy, _)| *policy).ok_or_else(|| {
            let names: Vec<&str> = Policy::ALL.iter().map(|(_, name)| *name).collect();
            format!(
                "unknown weight type `{text}`; known are {}",
                names.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_choose_by_stored_type_and_shape() {
        use StoredType::{BF16, F16, F32, F64, I8, Q4_K};
        assert_eq!(Policy::Native.target(F16, &[4, 4]), DType::F16);
        assert_eq!(Policy::Native.target(BF16, &[512]), DType::F32);
        assert_eq!(Policy::Native.target(F64, &[4, 4]), DType::F32);
        assert_eq!(Policy::Native.target(I8, &[4, 4]), DType::F32);
        assert_eq!(Policy::Native.target(Q4_K, &[2, 256]), DType::Q4_K);
        assert_eq!(Policy::Native.target(Q4_K, &[4, 128]), DType::F32);
        assert_eq!(Policy::Native.target(Q4_K, &[4, 2, 256]), DType::F16);
        assert_eq!(Policy::Q8_0.target(F32, &[64, 64]), DType::Q8_0);
        assert_eq!(Policy::Q8_0.target(F32, &[64, 65]), DType::F16);
        assert_eq!(Policy::Q8_0.target(F32, &[32, 64]), DType::F16);
        assert_eq!(Policy::Q8_0.target(F32, &[1, 8192]), DType::F32);
        assert_eq!(Policy::Q4K.target(F32, &[64, 256]), DType::Q4_K);
        assert_eq!(Policy::Q4K.target(F32, &[64, 96]), DType::Q8_0);
        assert_eq!(Policy::Q4K.target(F32, &[64, 16, 256]), DType::F16);
        assert_eq!(Policy::BF16.target(F16, &[3, 5, 7]), DType::BF16);
    }

    #[test]
    fn names_are_read_back() {
        for (policy, name) in Policy::ALL {
            assert_eq!(name.to_lowercase().parse(), Ok(policy));
            assert_eq!(policy.to_string(), name);
        }
        assert!("q3".parse::<Policy>().unwrap_err().contains("q8_0"));
    }
}
