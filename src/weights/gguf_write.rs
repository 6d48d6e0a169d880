//! Writing GGUF (version 3): texts as values, and the tensors of any source, converted one by one.

use std::{
    io::{self, Seek, Write},
    path::Path,
};

use super::{Error, Result, Source, TensorInfo, convert};
use crate::graph::DType;

/// Where tensors begin; what readers suppose if nothing is said.
const ALIGNMENT: usize = 32;
const VERSION: u32 = 3;
/// The number of the value type "text".
const TEXT: u32 = 8;

/// Writes the tensors of `source` to `out` as one GGUF file, each in the type that `dtype` gives it,
/// under the names and shapes that it has; `texts` are keys and values beside them. `path` is where
/// `out` leads to, for messages.
///
/// # Errors
/// [`Error::Io`]; a tensor that cannot have the type it is to have, or is damaged; a shape of more
/// than four axes.
pub fn write_gguf<W: Write + Seek>(
    out: &mut W,
    path: &Path,
    source: &dyn Source,
    texts: &[(String, String)],
    dtype: impl Fn(&TensorInfo) -> DType,
) -> Result<()> {
    let tensors: Vec<(&TensorInfo, DType, usize)> = source
        .tensors()
        .iter()
        .map(|info| {
            let dtype = dtype(info);
            Ok((info, dtype, size(source, info, dtype)?))
        })
        .collect::<Result<_>>()?;
    let io = |source: io::Error| Error::Io {
        path: path.to_owned(),
        source,
    };
    let mut head = Vec::new();
    head.extend(b"GGUF");
    head.extend(VERSION.to_le_bytes());
    head.extend((tensors.len() as u64).to_le_bytes());
    head.extend((texts.len() as u64).to_le_bytes());
    for (key, value) in texts {
        put_text(&mut head, key);
        head.extend(TEXT.to_le_bytes());
        put_text(&mut head, value);
    }
    let mut offset = 0;
    for (info, dtype, size) in &tensors {
        put_text(&mut head, &info.name);
        head.extend((info.shape.len() as u32).to_le_bytes());
        // Innermost first.
        let axes = info.shape.iter().rev();
        axes.for_each(|&n| head.extend((n as u64).to_le_bytes()));
        head.extend(dtype.id().to_le_bytes());
        head.extend((offset as u64).to_le_bytes());
        offset += size.next_multiple_of(ALIGNMENT);
    }
    head.resize(head.len().next_multiple_of(ALIGNMENT), 0);
    out.write_all(&head).map_err(io)?;
    for (info, dtype, size) in tensors {
        let bytes = source.bytes(info)?;
        let converted = convert(&bytes, info.dtype, dtype, row(info));
        let converted = converted.map_err(|_| unfit(source, info, dtype))?;
        out.write_all(&converted).map_err(io)?;
        let padding = size.next_multiple_of(ALIGNMENT) - size;
        out.write_all(&[0; ALIGNMENT][..padding]).map_err(io)?;
    }
    out.flush().map_err(io)
}

fn row(info: &TensorInfo) -> usize {
    info.shape.last().copied().unwrap_or(1)
}

/// Bytes of a tensor as `dtype`.
fn size(source: &dyn Source, info: &TensorInfo, dtype: DType) -> Result<usize> {
    let row = row(info);
    let count: usize = info.shape.iter().product();
    let bytes = dtype
        .row_bytes(row)
        .and_then(|bytes| bytes.checked_mul(count.checked_div(row)?));
    match bytes.filter(|_| info.shape.len() <= 4) {
        Some(bytes) => Ok(bytes),
        None => Err(unfit(source, info, dtype)),
    }
}

fn unfit(source: &dyn Source, info: &TensorInfo, dtype: DType) -> Error {
    Error::Invalid {
        path: source.path().to_owned(),
        format: source.format(),
        detail: format!(
            "tensor `{}` ({} {:?}) cannot be written as {dtype}: its values do not fit, or are \
             damaged",
            info.name, info.dtype, info.shape
        ),
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::weights::{Policy, StoredType, open, to_f32};

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("a.npz");
        let values: Vec<f32> = (0..64 * 256).map(|i| (i as f32 * 0.7).sin()).collect();
        let matrix = values
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect::<Vec<u8>>();
        let header = "{\"m\":{\"dtype\":\"F32\",\"shape\":[64,256],\"data_offsets\":[0,65536]},\
                      \"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[65536,65540]}}";
        let from = from.with_extension("safetensors");
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.as_bytes());
        file.extend(matrix);
        file.extend(2.5f32.to_le_bytes());
        std::fs::write(&from, file).unwrap();
        let source = open(&from).unwrap();
        let texts = [(
            "audiocpp.file.config.json".to_owned(),
            "{\"ä\": 1}".to_owned(),
        )];
        for (policy, stored, most) in [
            (Policy::F16, StoredType::F16, 1e-3),
            (Policy::Q8_0, StoredType::Q8_0, 1e-2),
            (Policy::Q4K, StoredType::Q4_K, 0.2),
        ] {
            let path = folder.path().join("b.gguf");
            let mut out = Cursor::new(Vec::new());
            write_gguf(&mut out, &path, &*source, &texts, |info| {
                policy.target(info.dtype, &info.shape)
            })
            .unwrap();
            std::fs::write(&path, out.into_inner()).unwrap();
            let read = open(&path).unwrap();
            let text = read.metadata().get("audiocpp.file.config.json");
            assert_eq!(text.and_then(|t| t.as_str()), Some("{\"ä\": 1}"));
            let info = read.find("m").unwrap();
            assert_eq!((info.dtype, &info.shape[..]), (stored, &[64, 256][..]));
            let found = to_f32(&read.bytes(info).unwrap(), info.dtype).unwrap();
            let worst = found.iter().zip(&values).map(|(a, b)| (a - b).abs());
            assert!(worst.fold(0.0, f32::max) < most, "{policy}");
            let scalar = read.find("s").unwrap();
            let scalar = to_f32(&read.bytes(scalar).unwrap(), scalar.dtype).unwrap();
            assert_eq!(scalar, [2.5]);
        }
    }
}
