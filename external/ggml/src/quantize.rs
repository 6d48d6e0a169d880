//! Conversion between f32 and ggml's storage types, without `unsafe` for the caller.
use crate::bindings as ggml;

/// What does not fit in a conversion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConvertError {
    /// ggml has no such type, or cannot convert it to or from f32.
    Type(u32),
    /// Rows of this many values do not fill whole blocks of the type.
    Row(usize),
    /// The buffers' sizes do not belong together.
    Size,
}

impl std::fmt::Display for ConvertError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ConvertError::Type(id) => write!(f, "ggml type {id} cannot be converted"),
            ConvertError::Row(n) => write!(f, "rows of {n} values do not fill whole blocks"),
            ConvertError::Size => f.write_str("the buffers' sizes do not belong together"),
        }
    }
}

impl std::error::Error for ConvertError {}

/// Values in a block, and bytes a block takes; none for a number that ggml does not define.
fn block(id: u32) -> Option<(usize, usize)> {
    if id >= ggml::GGML_TYPE_COUNT {
        return None;
    }
    // SAFETY: `id` indexes ggml's constant table; retired numbers have a block length of 0.
    let (len, bytes) = unsafe { (ggml::ggml_blck_size(id), ggml::ggml_type_size(id)) };
    (len > 0 && bytes > 0).then_some((len as usize, bytes))
}

/// Writes the values of `bytes`, stored as ggml type `id`, to `out`.
pub fn dequantize(id: u32, bytes: &[u8], out: &mut [f32]) -> Result<(), ConvertError> {
    let (len, size) = block(id).ok_or(ConvertError::Type(id))?;
    if !out.len().is_multiple_of(len) {
        return Err(ConvertError::Row(out.len()));
    }
    if out.len() / len * size != bytes.len() {
        return Err(ConvertError::Size);
    }
    if id == ggml::GGML_TYPE_F32 {
        for (value, four) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *value = f32::from_le_bytes(*four);
        }
        return Ok(());
    }
    // SAFETY: `id` is a type that ggml defines (checked by `block`).
    let convert = unsafe { (*ggml::ggml_get_type_traits(id)).to_float };
    let convert = convert.ok_or(ConvertError::Type(id))?;
    // ggml's block types want the alignment of their widest field.
    let mut aligned = Vec::new();
    let source = if bytes.as_ptr().align_offset(8) == 0 {
        bytes
    } else {
        aligned = aligned_copy(bytes);
        let words: &[u64] = &aligned;
        // SAFETY: a u64 buffer of at least `bytes.len()` initialised bytes.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), bytes.len()) }
    };
    // SAFETY: `source` holds exactly the blocks of `out.len()` values.
    unsafe { convert(source.as_ptr().cast(), out.as_mut_ptr(), out.len() as i64) };
    drop(aligned);
    Ok(())
}

fn aligned_copy(bytes: &[u8]) -> Vec<u64> {
    bytes
        .chunks(8)
        .map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        })
        .collect()
}

/// Stores `values`, rows of `row` values, as ggml type `id`; returns the bytes.
pub fn quantize(id: u32, values: &[f32], row: usize) -> Result<Vec<u8>, ConvertError> {
    let (len, size) = block(id).ok_or(ConvertError::Type(id))?;
    if row == 0 || !row.is_multiple_of(len) || !values.len().is_multiple_of(row) {
        return Err(ConvertError::Row(row));
    }
    if id == ggml::GGML_TYPE_F32 {
        return Ok(values.iter().flat_map(|v| v.to_le_bytes()).collect());
    }
    // SAFETY: as above.
    let known = unsafe {
        (*ggml::ggml_get_type_traits(id)).from_float_ref.is_some()
            && !ggml::ggml_quantize_requires_imatrix(id)
    };
    if !known {
        return Err(ConvertError::Type(id));
    }
    let bytes = values.len() / len * size;
    let mut words = vec![0u64; bytes.div_ceil(8)];
    // SAFETY: `words` has room for all blocks and the alignment they want; the values are whole
    // rows of whole blocks.
    let written = unsafe {
        ggml::ggml_quantize_chunk(
            id,
            values.as_ptr(),
            words.as_mut_ptr().cast(),
            0,
            (values.len() / row) as i64,
            row as i64,
            std::ptr::null(),
        )
    };
    if written != bytes {
        return Err(ConvertError::Type(id));
    }
    let mut out: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    out.truncate(bytes);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_within_each_type_s_precision() {
        let values: Vec<f32> = (0..512).map(|i| (i as f32 * 0.37).sin()).collect();
        for (id, tolerance) in [
            (ggml::GGML_TYPE_F32, 0.0),
            (ggml::GGML_TYPE_F16, 5e-4),
            (ggml::GGML_TYPE_BF16, 4e-3),
            (ggml::GGML_TYPE_Q8_0, 5e-3),
            (ggml::GGML_TYPE_Q4_K, 0.1),
        ] {
            let bytes = quantize(id, &values, 256).unwrap();
            let mut back = vec![0.0; values.len()];
            dequantize(id, &bytes, &mut back).unwrap();
            for (a, b) in values.iter().zip(&back) {
                assert!((a - b).abs() <= tolerance, "type {id}: {a} became {b}");
            }
        }
    }

    #[test]
    fn misaligned_input_and_wrong_sizes() {
        let bytes = quantize(ggml::GGML_TYPE_Q8_0, &[1.0; 32], 32).unwrap();
        let mut shifted = vec![0];
        shifted.extend(&bytes);
        let mut back = [0.0; 32];
        dequantize(ggml::GGML_TYPE_Q8_0, &shifted[1..], &mut back).unwrap();
        assert!(back.iter().all(|v| (v - 1.0).abs() < 1e-2));
        let short = &bytes[1..];
        assert_eq!(
            dequantize(ggml::GGML_TYPE_Q8_0, short, &mut back),
            Err(ConvertError::Size)
        );
        assert_eq!(
            quantize(ggml::GGML_TYPE_Q8_0, &[0.0; 33], 33),
            Err(ConvertError::Row(33))
        );
        assert_eq!(quantize(4, &[0.0; 32], 32), Err(ConvertError::Type(4)));
        assert_eq!(quantize(999, &[0.0; 32], 32), Err(ConvertError::Type(999)));
    }
}
