//! Value types that ggml stores.

use ggml_sys as sys;

macro_rules! dtypes {
    ($($(#[$doc:meta])* $name:ident = $ggml:ident, $text:literal;)*) => {
        /// A value type as ggml stores it; quantised types pack a block of values together.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, non_camel_case_types)]
        pub enum DType { $($(#[$doc])* $name,)* }

        impl DType {
            /// Every type, in ggml's order.
            pub const ALL: &'static [DType] = &[$(DType::$name,)*];

            /// ggml's number for this type, as GGUF files store it.
            pub fn id(self) -> u32 {
                match self { $(DType::$name => sys::$ggml,)* }
            }

            /// The type with this ggml number, if there is one.
            pub fn from_id(id: u32) -> Option<DType> {
                match id { $(sys::$ggml => Some(DType::$name),)* _ => None }
            }

            /// ggml's name: `f32`, `q8_0`, `q4_K`, ...
            pub fn name(self) -> &'static str {
                match self { $(DType::$name => $text,)* }
            }
        }
    };
}

dtypes! {
    F32 = GGML_TYPE_F32, "f32";
    F16 = GGML_TYPE_F16, "f16";
    Q4_0 = GGML_TYPE_Q4_0, "q4_0";
    Q4_1 = GGML_TYPE_Q4_1, "q4_1";
    Q5_0 = GGML_TYPE_Q5_0, "q5_0";
    Q5_1 = GGML_TYPE_Q5_1, "q5_1";
    Q8_0 = GGML_TYPE_Q8_0, "q8_0";
    Q8_1 = GGML_TYPE_Q8_1, "q8_1";
    Q2_K = GGML_TYPE_Q2_K, "q2_K";
    Q3_K = GGML_TYPE_Q3_K, "q3_K";
    Q4_K = GGML_TYPE_Q4_K, "q4_K";
    Q5_K = GGML_TYPE_Q5_K, "q5_K";
    Q6_K = GGML_TYPE_Q6_K, "q6_K";
    IQ2_XXS = GGML_TYPE_IQ2_XXS, "iq2_xxs";
    IQ2_XS = GGML_TYPE_IQ2_XS, "iq2_xs";
    IQ3_XXS = GGML_TYPE_IQ3_XXS, "iq3_xxs";
    IQ1_S = GGML_TYPE_IQ1_S, "iq1_s";
    IQ4_NL = GGML_TYPE_IQ4_NL, "iq4_nl";
    IQ3_S = GGML_TYPE_IQ3_S, "iq3_s";
    IQ2_S = GGML_TYPE_IQ2_S, "iq2_s";
    IQ4_XS = GGML_TYPE_IQ4_XS, "iq4_xs";
    I8 = GGML_TYPE_I8, "i8";
    I16 = GGML_TYPE_I16, "i16";
    I32 = GGML_TYPE_I32, "i32";
    I64 = GGML_TYPE_I64, "i64";
    F64 = GGML_TYPE_F64, "f64";
    IQ1_M = GGML_TYPE_IQ1_M, "iq1_m";
    BF16 = GGML_TYPE_BF16, "bf16";
    TQ1_0 = GGML_TYPE_TQ1_0, "tq1_0";
    TQ2_0 = GGML_TYPE_TQ2_0, "tq2_0";
    MXFP4 = GGML_TYPE_MXFP4, "mxfp4";
    NVFP4 = GGML_TYPE_NVFP4, "nvfp4";
    Q1_0 = GGML_TYPE_Q1_0, "q1_0";
    Q2_0 = GGML_TYPE_Q2_0, "q2_0";
}

impl DType {
    /// Values a block holds: 1 for plain types, 32 or 256 for quantised ones.
    pub fn block_len(self) -> usize {
        // SAFETY: reads ggml's constant table at an index it defines.
        unsafe { sys::ggml_blck_size(self.id()) as usize }
    }

    /// Bytes a block takes.
    pub fn block_bytes(self) -> usize {
        // SAFETY: as in `block_len`.
        unsafe { sys::ggml_type_size(self.id()) }
    }

    /// Bytes of a row of `len` values; `None` where `len` is no multiple of the block.
    pub fn row_bytes(self, len: usize) -> Option<usize> {
        if !len.is_multiple_of(self.block_len()) {
            return None;
        }
        (len / self.block_len()).checked_mul(self.block_bytes())
    }

    /// Whether values are packed in blocks.
    pub fn is_quantized(self) -> bool {
        self.block_len() > 1
    }

    /// The floats that element-wise operators take.
    pub(super) fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F16 | DType::BF16)
    }

    /// Whether ggml has code to turn it into f32; `Q8_1` is a format of its products only.
    pub(super) fn reads_as_f32(self) -> bool {
        self.is_float() || (self.is_quantized() && self != DType::Q8_1)
    }

    /// Whether ggml has code to make it from f32 while a graph runs; the finest formats need
    /// tables that only offline conversion has.
    pub(super) fn writes_from_f32(self) -> bool {
        let offline = matches!(
            self,
            DType::IQ1_S
                | DType::IQ1_M
                | DType::IQ2_XXS
                | DType::IQ2_XS
                | DType::IQ2_S
                | DType::IQ3_XXS
                | DType::IQ3_S
        );
        self.is_float() || (self.is_quantized() && !offline)
    }

    /// Whether it is the type of some [`Element`].
    pub(super) fn is_element(self) -> bool {
        self.is_float() || matches!(self, DType::I32 | DType::I64)
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A Rust type that can be written to and read from a tensor as it is.
pub trait Element: bytemuck::Pod {
    /// The tensor type it stands for.
    const DTYPE: DType;
}

impl Element for f32 {
    const DTYPE: DType = DType::F32;
}
impl Element for half::f16 {
    const DTYPE: DType = DType::F16;
}
impl Element for half::bf16 {
    const DTYPE: DType = DType::BF16;
}
impl Element for i32 {
    const DTYPE: DType = DType::I32;
}
impl Element for i64 {
    const DTYPE: DType = DType::I64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_agree_with_ggml() {
        for &t in DType::ALL {
            assert_eq!(DType::from_id(t.id()), Some(t));
            // SAFETY: returns a static string for a type that ggml defines.
            let name = unsafe { std::ffi::CStr::from_ptr(sys::ggml_type_name(t.id())) };
            assert_eq!(
                name.to_str().map(str::to_ascii_lowercase),
                Ok(t.name().to_ascii_lowercase())
            );
        }
        assert_eq!(DType::from_id(4), None);
    }

    #[test]
    fn block_sizes() {
        assert_eq!(DType::Q8_0.row_bytes(64), Some(68));
        assert_eq!(DType::Q4_K.row_bytes(512), Some(288));
        assert_eq!(DType::Q4_K.row_bytes(32), None);
        assert_eq!(DType::F16.row_bytes(3), Some(6));
    }
}
