//! Element types as files store them: plain numbers and every block type that ggml knows.

use crate::graph::DType;
use std::fmt;

/// Type of a stored tensor's elements.
///
/// Plain types hold one element a block; the quantised ones (`Q4_0` and on) hold a fixed
/// number of elements of one row in a fixed number of bytes.
#[allow(missing_docs, non_camel_case_types)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoredType {
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F8E4M3,
    F8E5M2,
    F16,
    BF16,
    F32,
    F64,
    C64,
    C128,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q8_1,
    Q2_K,
    Q3_K,
    Q4_K,
    Q5_K,
    Q6_K,
    Q8_K,
    IQ2_XXS,
    IQ2_XS,
    IQ3_XXS,
    IQ1_S,
    IQ4_NL,
    IQ3_S,
    IQ2_S,
    IQ4_XS,
    IQ1_M,
    TQ1_0,
    TQ2_0,
    MXFP4,
    NVFP4,
    Q1_0,
    Q2_0,
}

use StoredType::*;

struct Row {
    dtype: StoredType,
    name: &'static str,
    /// ggml's number for the type, where it has one.
    ggml: Option<u32>,
    /// Elements and bytes of a block.
    block: (usize, usize),
}

const fn row(
    dtype: StoredType,
    name: &'static str,
    ggml: Option<u32>,
    block: (usize, usize),
) -> Row {
    Row {
        dtype,
        name,
        ggml,
        block,
    }
}

/// In the order of the enum, so that a type indexes its own row.
static TABLE: [Row; 44] = [
    row(Bool, "bool", None, (1, 1)),
    row(U8, "u8", None, (1, 1)),
    row(I8, "i8", Some(24), (1, 1)),
    row(U16, "u16", None, (1, 2)),
    row(I16, "i16", Some(25), (1, 2)),
    row(U32, "u32", None, (1, 4)),
    row(I32, "i32", Some(26), (1, 4)),
    row(U64, "u64", None, (1, 8)),
    row(I64, "i64", Some(27), (1, 8)),
    row(F8E4M3, "f8_e4m3", None, (1, 1)),
    row(F8E5M2, "f8_e5m2", None, (1, 1)),
    row(F16, "f16", Some(1), (1, 2)),
    row(BF16, "bf16", Some(30), (1, 2)),
    row(F32, "f32", Some(0), (1, 4)),
    row(F64, "f64", Some(28), (1, 8)),
    row(C64, "complex64", None, (1, 8)),
    row(C128, "complex128", None, (1, 16)),
    row(Q4_0, "q4_0", Some(2), (32, 18)),
    row(Q4_1, "q4_1", Some(3), (32, 20)),
    row(Q5_0, "q5_0", Some(6), (32, 22)),
    row(Q5_1, "q5_1", Some(7), (32, 24)),
    row(Q8_0, "q8_0", Some(8), (32, 34)),
    row(Q8_1, "q8_1", Some(9), (32, 36)),
    row(Q2_K, "q2_K", Some(10), (256, 84)),
    row(Q3_K, "q3_K", Some(11), (256, 110)),
    row(Q4_K, "q4_K", Some(12), (256, 144)),
    row(Q5_K, "q5_K", Some(13), (256, 176)),
    row(Q6_K, "q6_K", Some(14), (256, 210)),
    row(Q8_K, "q8_K", Some(15), (256, 292)),
    row(IQ2_XXS, "iq2_xxs", Some(16), (256, 66)),
    row(IQ2_XS, "iq2_xs", Some(17), (256, 74)),
    row(IQ3_XXS, "iq3_xxs", Some(18), (256, 98)),
    row(IQ1_S, "iq1_s", Some(19), (256, 50)),
    row(IQ4_NL, "iq4_nl", Some(20), (32, 18)),
    row(IQ3_S, "iq3_s", Some(21), (256, 110)),
    row(IQ2_S, "iq2_s", Some(22), (256, 82)),
    row(IQ4_XS, "iq4_xs", Some(23), (256, 136)),
    row(IQ1_M, "iq1_m", Some(29), (256, 56)),
    row(TQ1_0, "tq1_0", Some(34), (256, 54)),
    row(TQ2_0, "tq2_0", Some(35), (256, 66)),
    row(MXFP4, "mxfp4", Some(39), (32, 17)),
    row(NVFP4, "nvfp4", Some(40), (64, 36)),
    row(Q1_0, "q1_0", Some(41), (128, 18)),
    row(Q2_0, "q2_0", Some(42), (64, 18)),
];

impl StoredType {
    fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// Every type, plain ones first.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.dtype)
    }

    /// Lower-case name as ggml and PyTorch users write it, e.g. `f16`, `q4_K`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// ggml's number for the type, or `None` where ggml lacks it.
    pub fn ggml_id(self) -> Option<u32> {
        self.row().ggml
    }

    /// The type with this ggml number, or `None` for a number that is unknown or retired.
    pub fn from_ggml_id(id: u32) -> Option<Self> {
        TABLE
            .iter()
            .find(|row| row.ggml == Some(id))
            .map(|row| row.dtype)
    }

    /// The type on a device that holds these elements as they are, if there is one.
    pub fn dtype(self) -> Option<DType> {
        self.ggml_id().and_then(DType::from_id)
    }

    /// Elements in a block: 1 for plain types.
    pub fn block_elements(self) -> usize {
        self.row().block.0
    }

    /// Bytes in a block.
    pub fn block_bytes(self) -> usize {
        self.row().block.1
    }

    /// Whether elements are packed in blocks by quantisation.
    pub fn is_quantized(self) -> bool {
        self as usize >= Q4_0 as usize
    }

    /// Whether this is a plain real floating-point type.
    pub fn is_float(self) -> bool {
        matches!(self, F8E4M3 | F8E5M2 | F16 | BF16 | F32 | F64)
    }

    /// Whether this is a whole-number type or bool.
    pub fn is_integer(self) -> bool {
        matches!(self, Bool | U8 | I8 | U16 | I16 | U32 | I32 | U64 | I64)
    }

    /// Bytes of a tensor of `shape` (reader's order, the last dimension is a row);
    /// `None` if the count overflows or rows are not whole blocks.
    pub fn nbytes(self, shape: &[usize]) -> Option<usize> {
        let (elements, bytes) = self.row().block;
        let row = shape.last().copied().unwrap_or(1);
        if row % elements != 0 {
            return None;
        }
        element_count(shape)?
            .checked_div(elements)?
            .checked_mul(bytes)
    }
}

/// Product of the dimensions, or `None` on overflow.
pub fn element_count(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d))
}

impl From<DType> for StoredType {
    fn from(dtype: DType) -> Self {
        // Every `DType` has a row; a test goes through all of them.
        StoredType::from_ggml_id(dtype.id()).unwrap_or(F32)
    }
}

impl fmt::Display for StoredType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_stands_in_its_own_row() {
        for (i, row) in TABLE.iter().enumerate() {
            assert_eq!(row.dtype as usize, i, "{}", row.name);
        }
        assert!(!C128.is_quantized() && Q4_0.is_quantized() && Q2_0.is_quantized());
    }

    #[test]
    fn bytes_count_whole_blocks_of_the_last_dimension() {
        assert_eq!(F16.nbytes(&[3, 5]), Some(30));
        assert_eq!(Q8_0.nbytes(&[3, 64]), Some(3 * 2 * 34));
        assert_eq!(Q8_0.nbytes(&[64, 3]), None);
        assert_eq!(F32.nbytes(&[]), Some(4));
        assert_eq!(F32.nbytes(&[usize::MAX, 2]), None);
        assert_eq!(F32.nbytes(&[usize::MAX, 2, 0]), Some(0));
    }
}
