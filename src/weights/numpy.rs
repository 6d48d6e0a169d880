//! numpy's `.npy` arrays and `.npz` archives of them.

use super::{
    Error, Format, Result, StoredType,
    archive::Archive,
    container::{Container, Data},
    cursor::Cursor,
};
use bytes::Bytes;
use std::path::Path;

pub(super) const MAGIC: &[u8] = b"\x93NUMPY";
/// Name of the tensor of a file that is a single array.
const SINGLE: &str = "tensor";
const ENDING: &str = ".npy";

/// Reads an `.npz` archive: a tensor an entry, named without `.npy`. Entries that are no
/// arrays are left out.
pub(super) fn read_archive(path: &Path, data: &Bytes) -> Result<Container> {
    let mut archive = Archive::open(path, Format::Numpy, data)?;
    let names: Vec<String> = archive
        .names()
        .filter_map(|name| name.strip_suffix(ENDING))
        .map(str::to_owned)
        .collect();
    if names.is_empty() {
        return Err(Error::Unsupported {
            path: path.to_owned(),
            found: "is a zip archive without torch's `data.pkl` or numpy's `.npy` entries".into(),
        });
    }
    let mut container = Container::new(path, Format::Numpy);
    for name in names {
        let array = archive.entry(&format!("{name}{ENDING}"))?;
        push(&mut container, path, name, &array)?;
    }
    Ok(container)
}

/// Reads a single `.npy` array; its tensor is called `tensor`.
pub(super) fn read(path: &Path, data: &Bytes) -> Result<Container> {
    let mut container = Container::new(path, Format::Numpy);
    push(&mut container, path, SINGLE.to_owned(), data)?;
    Ok(container)
}

fn push(container: &mut Container, path: &Path, name: String, data: &Bytes) -> Result<()> {
    let mut cursor = Cursor::new(path, Format::Numpy, data);
    let magic = cursor.take(MAGIC.len() as u64, format_args!("array `{name}`"))?;
    if magic != MAGIC {
        return Err(cursor.invalid(format!("array `{name}` starts with {magic:?}")));
    }
    let version = cursor.u8("version")?;
    cursor.u8("version")?;
    let length = match version {
        1 => cursor.u16("header length")?.into(),
        2 | 3 => cursor.u32("header length")?,
        v => return Err(cursor.invalid(format!("array `{name}` has the version {v}"))),
    };
    let header = cursor.text(length.into(), format_args!("header of array `{name}`"))?;
    let Some((code, columns_first, shape)) = parse(&header) else {
        return Err(cursor.invalid(format!("header of array `{name}`: {header:?}")));
    };
    let dtype = stored_type(&code).filter(|t| !code.starts_with('>') || t.block_bytes() == 1);
    let Some(dtype) = dtype else {
        return Err(cursor.invalid(format!(
            "array `{name}` has the type {code}, which is not read"
        )));
    };
    let body = data.slice(cursor.pos..);
    let data = if columns_first {
        Data::Strided {
            storage: body,
            offset: 0,
            strides: column_strides(&shape),
        }
    } else {
        Data::Plain(body)
    };
    container.push(name, dtype, shape, data)
}

/// Type code, column order and shape from the header, a Python dictionary of fixed form.
fn parse(header: &str) -> Option<(String, bool, Vec<usize>)> {
    let after = |key: &str| {
        let (_, rest) = header.split_once(key)?;
        Some(rest.trim_start().strip_prefix(':')?.trim_start())
    };
    let code = after("'descr'")?.strip_prefix('\'')?.split_once('\'')?.0;
    let columns_first = match after("'fortran_order'")? {
        rest if rest.starts_with("True") => true,
        rest if rest.starts_with("False") => false,
        _ => return None,
    };
    let shape = after("'shape'")?.strip_prefix('(')?.split_once(')')?.0;
    let shape = shape
        .split(',')
        .map(str::trim)
        .filter(|d| !d.is_empty())
        .map(|d| d.parse().ok())
        .collect::<Option<_>>()?;
    Some((code.to_owned(), columns_first, shape))
}

/// Type of a numpy code such as `<f4`, whatever its byte order.
pub(super) fn stored_type(code: &str) -> Option<StoredType> {
    Some(match code.trim_start_matches(['<', '>', '=', '|']) {
        "f2" => StoredType::F16,
        "f4" => StoredType::F32,
        "f8" => StoredType::F64,
        "i1" => StoredType::I8,
        "u1" => StoredType::U8,
        "b1" => StoredType::Bool,
        "i2" => StoredType::I16,
        "u2" => StoredType::U16,
        "i4" => StoredType::I32,
        "u4" => StoredType::U32,
        "i8" => StoredType::I64,
        "u8" => StoredType::U64,
        "c8" => StoredType::C64,
        "c16" => StoredType::C128,
        _ => return None,
    })
}

/// Strides of an array whose first dimension varies fastest.
pub(super) fn column_strides(shape: &[usize]) -> Vec<usize> {
    let mut step = 1usize;
    shape
        .iter()
        .map(|&d| {
            let stride = step;
            step = step.saturating_mul(d);
            stride
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_every_rank_are_parsed() {
        let header = |shape: &str| {
            format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}   \n")
        };
        let shape = |text| parse(&header(text)).unwrap().2;
        assert!(shape("()").is_empty());
        assert_eq!(shape("(510,)"), [510]);
        assert_eq!(shape("(510, 1, 256)"), [510, 1, 256]);
        assert!(parse(&header("(1, -2)")).is_none());
        assert!(parse("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': ()}").is_none());
    }
}
