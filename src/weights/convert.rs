//! From stored types to the types that a device computes with.

use super::StoredType;
use crate::graph::DType;
use ggml_sys::quantize;
use half::{bf16, f16, slice::HalfFloatSliceExt};
use rayon::prelude::*;
use std::borrow::Cow;

/// Elements that one task converts, at least.
const CHUNK: usize = 1 << 16;

/// Why values could not be converted; indices count elements in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub enum ConvertFault {
    /// A value is NaN or infinite.
    NonFinite {
        /// Element.
        index: usize,
    },
    /// A value leaves the range of the wanted type.
    OutOfRange {
        /// Element.
        index: usize,
        /// The value.
        value: f32,
    },
    /// These types are not converted into each other.
    Types(&'static str),
}

impl ConvertFault {
    /// The same fault where the values began at element `first`.
    pub(super) fn shifted(self, first: usize) -> Self {
        match self {
            ConvertFault::NonFinite { index } => ConvertFault::NonFinite {
                index: first + index,
            },
            ConvertFault::OutOfRange { index, value } => ConvertFault::OutOfRange {
                index: first + index,
                value,
            },
            types => types,
        }
    }
}

/// Converts row-major `bytes` of type `from` to `to`, rows of `row` elements, in parallel.
///
/// Values are checked on the way: NaN and infinities are faults even where the type stays.
/// Bytes that need no change are borrowed.
pub fn convert<'a>(
    bytes: &'a [u8],
    from: StoredType,
    to: DType,
    row: usize,
) -> Result<Cow<'a, [u8]>, ConvertFault> {
    convert_rows(bytes, from, to, row, None)
}

/// A rearrangement of the values of whole rows.
pub(super) type Turn = dyn Fn(&mut [f32]) + Sync;

/// As [`convert`]; `turn` rearranges the values of whole rows on the way.
pub(super) fn convert_rows<'a>(
    bytes: &'a [u8],
    from: StoredType,
    to: DType,
    row: usize,
    turn: Option<&Turn>,
) -> Result<Cow<'a, [u8]>, ConvertFault> {
    let count = bytes.len() / from.block_bytes() * from.block_elements();
    let blocks = [from.block_elements(), to.block_len()];
    if row == 0 || !count.is_multiple_of(row) || !blocks.iter().all(|&b| row.is_multiple_of(b)) {
        return Err(ConvertFault::Types("rows do not fill whole blocks"));
    }
    if !bytes.len().is_multiple_of(from.block_bytes()) {
        return Err(ConvertFault::Types("the bytes are not whole blocks"));
    }
    if is_whole(to) && turn.is_none() {
        return convert_integers(bytes, from, to);
    }
    let rows = CHUNK.div_ceil(row);
    let source_bytes = rows * row / from.block_elements() * from.block_bytes();
    if from.dtype() == Some(to) && turn.is_none() {
        check(bytes, from, rows * row, source_bytes)?;
        return Ok(Cow::Borrowed(bytes));
    }
    let target_bytes = rows * row / to.block_len() * to.block_bytes();
    let mut out = vec![0u8; count / to.block_len() * to.block_bytes()];
    out.par_chunks_mut(target_bytes)
        .zip(bytes.par_chunks(source_bytes))
        .enumerate()
        .try_for_each(|(i, (out, source))| {
            let mut values = finite_floats(source, from, i * rows * row)?;
            if let Some(turn) = turn {
                turn(&mut values);
            }
            encode(&values, to, row, i * rows * row, out)
        })?;
    Ok(Cow::Owned(out))
}

fn check(
    bytes: &[u8],
    from: StoredType,
    chunk: usize,
    chunk_bytes: usize,
) -> Result<(), ConvertFault> {
    bytes
        .par_chunks(chunk_bytes)
        .enumerate()
        .try_for_each(|(i, source)| match is_finite(source, from) {
            Some(true) => Ok(()),
            _ => finite_floats(source, from, i * chunk).map(drop),
        })
}

/// Whether all values are finite, for types where their bits tell; `None` for others.
fn is_finite(bytes: &[u8], from: StoredType) -> Option<bool> {
    let halves = |exponent: u16| {
        let (words, _) = bytes.as_chunks::<2>();
        let special = |w: &[u8; 2]| u16::from_le_bytes(*w) & exponent == exponent;
        // Not `any`: without early exits this is vector code.
        !words.iter().fold(false, |found, w| found | special(w))
    };
    match from {
        StoredType::F16 => Some(halves(0x7c00)),
        StoredType::BF16 => Some(halves(0x7f80)),
        StoredType::F32 => {
            let (words, _) = bytes.as_chunks::<4>();
            let special = |w: &[u8; 4]| u32::from_le_bytes(*w) & 0x7f80_0000 == 0x7f80_0000;
            Some(!words.iter().fold(false, |found, w| found | special(w)))
        }
        _ => None,
    }
}

fn finite_floats(bytes: &[u8], from: StoredType, first: usize) -> Result<Vec<f32>, ConvertFault> {
    let values = to_f32(bytes, from)?;
    match values.iter().position(|v| !v.is_finite()) {
        Some(i) => Err(ConvertFault::NonFinite { index: first + i }),
        None => Ok(values),
    }
}

/// Decodes `bytes` of any real or whole type to f32, unchecked.
pub fn to_f32(bytes: &[u8], from: StoredType) -> Result<Vec<f32>, ConvertFault> {
    macro_rules! plain {
        ($t:ty, $convert:expr) => {{
            let (words, _) = bytes.as_chunks::<{ size_of::<$t>() }>();
            words
                .iter()
                .map(|w| $convert(<$t>::from_le_bytes(*w)))
                .collect()
        }};
    }
    Ok(match from {
        StoredType::F32 => plain!(f32, |v| v),
        StoredType::F64 => plain!(f64, |v| v as f32),
        StoredType::F16 => {
            let halves: Vec<f16> = plain!(f16, |v| v);
            let mut out = vec![0.0; halves.len()];
            halves.convert_to_f32_slice(&mut out);
            out
        }
        StoredType::BF16 => plain!(u16, |v: u16| f32::from_bits(u32::from(v) << 16)),
        StoredType::F8E5M2 => plain!(u8, |v: u8| f16::from_bits(u16::from(v) << 8).to_f32()),
        StoredType::F8E4M3 => plain!(u8, f8_e4m3),
        StoredType::Bool => plain!(u8, |v| f32::from(v != 0)),
        StoredType::U8 => plain!(u8, f32::from),
        StoredType::I8 => plain!(i8, f32::from),
        StoredType::U16 => plain!(u16, f32::from),
        StoredType::I16 => plain!(i16, f32::from),
        StoredType::U32 => plain!(u32, |v| v as f32),
        StoredType::I32 => plain!(i32, |v| v as f32),
        StoredType::U64 => plain!(u64, |v| v as f32),
        StoredType::I64 => plain!(i64, |v| v as f32),
        StoredType::C64 | StoredType::C128 => {
            return Err(ConvertFault::Types("complex numbers are not weights"));
        }
        quantized => {
            let blocks = bytes.len() / quantized.block_bytes();
            let mut out = vec![0.0; blocks * quantized.block_elements()];
            let id = quantized.ggml_id().unwrap_or(u32::MAX);
            quantize::dequantize(id, bytes, &mut out)
                .map_err(|_| ConvertFault::Types("ggml cannot unpack the stored type"))?;
            out
        }
    })
}

/// One sign, four exponent bits of bias 7, three of fraction; no infinities, one NaN.
fn f8_e4m3(bits: u8) -> f32 {
    let sign = if bits & 0x80 != 0 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 3 & 15), f32::from(bits & 7) / 8.0);
    match (exponent, bits & 7) {
        (15, 7) => f32::NAN,
        (0, _) => sign * fraction * 2f32.powi(-6),
        _ => sign * (1.0 + fraction) * 2f32.powi(exponent - 7),
    }
}

/// Writes finite `values` as `to`; `first` is the number of the first one.
fn encode(
    values: &[f32],
    to: DType,
    row: usize,
    first: usize,
    out: &mut [u8],
) -> Result<(), ConvertFault> {
    let beyond = |limit: f32| match values.iter().position(|v| v.abs() > limit) {
        Some(i) => Err(ConvertFault::OutOfRange {
            index: first + i,
            value: values[i],
        }),
        None => Ok(()),
    };
    match to {
        DType::F32 => copy_words(out, values, f32::to_le_bytes),
        DType::F64 => copy_words(out, values, |v| f64::from(v).to_le_bytes()),
        DType::F16 => {
            beyond(f16::MAX.to_f32())?;
            let mut halves = vec![f16::ZERO; values.len()];
            halves.convert_from_f32_slice(values);
            copy_words(out, &halves, f16::to_le_bytes);
        }
        DType::BF16 => {
            beyond(bf16::MAX.to_f32())?;
            copy_words(out, values, |v| bf16::from_f32(v).to_le_bytes());
        }
        _ => {
            // Blocks carry a scale in f16.
            beyond(f16::MAX.to_f32())?;
            let blocks = quantize::quantize(to.id(), values, row)
                .map_err(|_| ConvertFault::Types("ggml cannot quantise to it at load"))?;
            out.copy_from_slice(&blocks);
        }
    }
    Ok(())
}

fn copy_words<T: Copy, const N: usize>(out: &mut [u8], values: &[T], bytes: impl Fn(T) -> [u8; N]) {
    for (word, &value) in out.as_chunks_mut::<N>().0.iter_mut().zip(values) {
        *word = bytes(value);
    }
}

fn is_whole(dtype: DType) -> bool {
    matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64)
}

fn convert_integers<'a>(
    bytes: &'a [u8],
    from: StoredType,
    to: DType,
) -> Result<Cow<'a, [u8]>, ConvertFault> {
    if from.dtype() == Some(to) {
        return Ok(Cow::Borrowed(bytes));
    }
    macro_rules! wide {
        ($t:ty) => {{
            let (words, _) = bytes.as_chunks::<{ size_of::<$t>() }>();
            words
                .iter()
                .map(|w| i128::from(<$t>::from_le_bytes(*w)))
                .collect()
        }};
    }
    let values: Vec<i128> = match from {
        StoredType::Bool | StoredType::U8 => wide!(u8),
        StoredType::I8 => wide!(i8),
        StoredType::U16 => wide!(u16),
        StoredType::I16 => wide!(i16),
        StoredType::U32 => wide!(u32),
        StoredType::I32 => wide!(i32),
        StoredType::U64 => wide!(u64),
        StoredType::I64 => wide!(i64),
        _ => {
            return Err(ConvertFault::Types(
                "real numbers are not rounded to whole ones",
            ));
        }
    };
    let size = to.block_bytes();
    let limit = 1i128 << (8 * size - 1);
    let mut out = Vec::with_capacity(values.len() * size);
    for (index, value) in values.into_iter().enumerate() {
        if value >= limit || value < -limit {
            let value = value as f32;
            return Err(ConvertFault::OutOfRange { index, value });
        }
        out.extend_from_slice(&value.to_le_bytes()[..size]);
    }
    Ok(Cow::Owned(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    #[test]
    fn block_sizes_agree_with_ggml() {
        let mut known = 0;
        for stored in StoredType::all() {
            if let Some(dtype) = stored.dtype() {
                known += 1;
                assert_eq!(stored.ggml_id(), Some(dtype.id()), "{stored}");
                assert_eq!(stored.block_elements(), dtype.block_len(), "{stored}");
                assert_eq!(stored.block_bytes(), dtype.block_bytes(), "{stored}");
                assert_eq!(stored.name(), dtype.name());
                assert_eq!(StoredType::from(dtype), stored);
            }
        }
        assert_eq!(known, DType::ALL.len());
    }

    #[test]
    fn values_survive_each_type_within_its_precision() {
        let row = 512;
        let values: Vec<f32> = (0..row * 300)
            .map(|i| (i as f32 * 0.731).sin() * 3.0)
            .collect();
        let bytes = f32s(&values);
        // Largest relative (floats) or absolute (blocks, of a range of 6) error.
        for (to, tolerance) in [
            (DType::F32, 0.0),
            (DType::F64, 0.0),
            (DType::F16, 2e-3),
            (DType::BF16, 8e-3),
            (DType::Q8_0, 0.013),
            (DType::Q4_K, 0.3),
        ] {
            let stored = convert(&bytes, StoredType::F32, to, row).unwrap();
            let back = convert(&stored, to.into(), DType::F32, row).unwrap();
            let back = to_f32(&back, StoredType::F32).unwrap();
            assert_eq!(back.len(), values.len());
            let worst = values
                .iter()
                .zip(&back)
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f32::max);
            assert!(worst <= tolerance, "{to}: {worst}");
        }
    }

    #[test]
    fn values_that_are_no_numbers_are_found_by_position() {
        let mut values = vec![1.0f32; 200_000];
        values[150_001] = f32::NAN;
        let fault = ConvertFault::NonFinite { index: 150_001 };
        for to in [DType::F32, DType::F16, DType::Q8_0] {
            assert_eq!(
                convert(&f32s(&values), StoredType::F32, to, 64),
                Err(fault.clone())
            );
        }
        values[150_001] = 70_000.0;
        assert!(convert(&f32s(&values), StoredType::F32, DType::BF16, 64).is_ok());
        assert_eq!(
            convert(&f32s(&values), StoredType::F32, DType::F16, 64),
            Err(ConvertFault::OutOfRange {
                index: 150_001,
                value: 70_000.0
            })
        );
    }

    #[test]
    fn small_floats_decode_to_their_tabulated_values() {
        assert_eq!(
            to_f32(&[0x38, 0xc0, 0x01, 0x7e], StoredType::F8E4M3).unwrap(),
            [1.0, -2.0, 2f32.powi(-9), 448.0]
        );
        assert!(f8_e4m3(0x7f).is_nan());
        assert_eq!(
            to_f32(&[0x3c, 0xc0], StoredType::F8E5M2).unwrap(),
            [1.0, -2.0]
        );
    }

    #[test]
    fn whole_numbers_stay_whole() {
        let wide: Vec<u8> = [7i64, -3].iter().flat_map(|v| v.to_le_bytes()).collect();
        let narrow = convert(&wide, StoredType::I64, DType::I32, 2).unwrap();
        assert_eq!(narrow[..], [7, 0, 0, 0, 253, 255, 255, 255]);
        let big = (1i64 << 40).to_le_bytes();
        assert!(matches!(
            convert(&big, StoredType::I64, DType::I32, 1),
            Err(ConvertFault::OutOfRange { index: 0, .. })
        ));
        assert!(convert(&f32s(&[1.0]), StoredType::F32, DType::I32, 1).is_err());
    }
}
