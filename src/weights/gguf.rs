//! GGUF: typed key/values, tensor headers, aligned data; versions 2 and 3, also split files.

use super::{
    Error, Format, Result, StoredType, Value,
    container::{Container, Data},
    cursor::Cursor,
    map::map,
};
use bytes::Bytes;
use std::path::Path;

pub(super) const MAGIC: &[u8] = b"GGUF";
/// ggml's own limit.
const MAX_DIMS: u32 = 4;
/// A key, a type and the smallest value.
const LEAST_KEY_VALUE: u64 = 8 + 4 + 1;
/// A name, dimension count, type and offset.
const LEAST_TENSOR: u64 = 8 + 4 + 4 + 8;
/// Arrays may hold arrays; deeper than this is not a real file.
const MAX_NESTING: usize = 4;

/// Reads a whole file in memory, and its other parts if it is the first of a split model.
pub(super) fn read(path: &Path, data: &Bytes) -> Result<Container> {
    let mut container = read_one(path, data)?;
    let key = |name| container.metadata.get(name).and_then(Value::as_usize);
    let (count, number) = (key("split.count"), key("split.no"));
    if let Some(count @ 2..) = count {
        if number != Some(0) {
            return Err(container.invalid("this is a later part of a split model: open the first"));
        }
        append_parts(&mut container, path, count)?;
    }
    Ok(container)
}

/// Parts are named `<name>-00001-of-00003.gguf`.
fn append_parts(container: &mut Container, path: &Path, count: usize) -> Result<()> {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
    let first = format!("-00001-of-{count:05}.gguf");
    let Some(stem) = name.strip_suffix(&first) else {
        return Err(container.invalid(format!(
            "the first of {count} parts must be named `…{first}`, not `{name}`"
        )));
    };
    for number in 2..=count {
        let part = path.with_file_name(format!("{stem}-{number:05}-of-{count:05}.gguf"));
        container.append(read_one(&part, &map(&part)?)?)?;
    }
    Ok(())
}

fn read_one(path: &Path, data: &Bytes) -> Result<Container> {
    let mut cursor = Cursor::new(path, Format::Gguf, data);
    let magic = cursor.take(4, "magic")?;
    if magic != MAGIC {
        return Err(cursor.invalid(format!("starts with {magic:?}, not GGUF")));
    }
    let version = cursor.u32("version")?;
    match version {
        2 | 3 => {}
        v if matches!(v.swap_bytes(), 1..=3) => {
            return Err(cursor.invalid("is big-endian; convert it to little-endian"));
        }
        v => return Err(cursor.invalid(format!("version {v}; versions 2 and 3 are read"))),
    }
    let tensors = cursor.u64("tensor count")?;
    let pairs = cursor.u64("key/value count")?;
    let mut container = Container::new(path, Format::Gguf);
    let pairs = cursor.count(pairs, LEAST_KEY_VALUE, "key/values")?;
    let mut entries = Vec::new();
    for _ in 0..pairs {
        let key = string(&mut cursor, "key")?;
        let kind = cursor.u32(format_args!("type of `{key}`"))?;
        let value = value(&mut cursor, kind, &key, 0)?;
        entries.push((Value::Text(key), value));
    }
    container.metadata = Value::Map(entries);
    read_tensors(&mut cursor, tensors, &mut container)?;
    Ok(container)
}

struct Header {
    name: String,
    dtype: StoredType,
    shape: Vec<usize>,
    offset: u64,
}

fn read_tensors(cursor: &mut Cursor<'_>, tensors: u64, container: &mut Container) -> Result<()> {
    let tensors = cursor.count(tensors, LEAST_TENSOR, "tensor headers")?;
    let mut headers = Vec::new();
    for _ in 0..tensors {
        headers.push(tensor_header(cursor)?);
    }
    let alignment = match container.metadata.get("general.alignment") {
        None => 32,
        Some(v) => match v.as_usize() {
            Some(n) if n.is_power_of_two() && n <= 1 << 20 => n,
            _ => return Err(cursor.invalid(format!("general.alignment is {v:?}"))),
        },
    };
    let start = cursor.pos.next_multiple_of(alignment);
    for header in headers {
        let Header {
            name,
            dtype,
            shape,
            offset,
        } = header;
        let size = dtype.nbytes(&shape).ok_or_else(|| {
            cursor.invalid(format!(
                "tensor `{name}`: shape {shape:?} is impossible for {dtype}"
            ))
        })?;
        let at = usize::try_from(offset)
            .ok()
            .and_then(|o| o.checked_add(start));
        cursor.pos = match at {
            Some(at) if at <= cursor.data.len() => at,
            _ if size == 0 => cursor.data.len(),
            _ => {
                return Err(Error::Truncated {
                    path: cursor.path.to_owned(),
                    what: format!("data of tensor `{name}`"),
                    offset: start.saturating_add(offset as usize),
                    wanted: size as u64,
                    left: 0,
                });
            }
        };
        let bytes = cursor.take(size as u64, format_args!("data of tensor `{name}`"))?;
        container.push(name, dtype, shape, Data::Plain(bytes))?;
    }
    Ok(())
}

fn tensor_header(cursor: &mut Cursor<'_>) -> Result<Header> {
    let name = string(cursor, "tensor name")?;
    let dims = cursor.u32(format_args!("dimension count of `{name}`"))?;
    if dims > MAX_DIMS {
        return Err(cursor.invalid(format!(
            "tensor `{name}` has {dims} dimensions, at most {MAX_DIMS} are possible"
        )));
    }
    let mut shape = Vec::new();
    for _ in 0..dims {
        let dim = cursor.u64(format_args!("dimensions of `{name}`"))?;
        shape
            .push(usize::try_from(dim).map_err(|_| {
                cursor.invalid(format!("tensor `{name}` has a dimension of {dim}"))
            })?);
    }
    shape.reverse();
    let kind = cursor.u32(format_args!("type of `{name}`"))?;
    let dtype = StoredType::from_ggml_id(kind).ok_or_else(|| {
        cursor.invalid(format!(
            "tensor `{name}` has the unknown or retired ggml type {kind}"
        ))
    })?;
    let offset = cursor.u64(format_args!("offset of `{name}`"))?;
    Ok(Header {
        name,
        dtype,
        shape,
        offset,
    })
}

fn string(cursor: &mut Cursor<'_>, what: &str) -> Result<String> {
    let n = cursor.u64(what)?;
    cursor.text(n, what)
}

/// Bytes of a fixed-size value type, 0 for the others.
fn scalar_size(kind: u32) -> u64 {
    match kind {
        0 | 1 | 7 => 1,
        2 | 3 => 2,
        4..=6 => 4,
        10..=12 => 8,
        _ => 0,
    }
}

fn value(cursor: &mut Cursor<'_>, kind: u32, key: &str, nesting: usize) -> Result<Value> {
    let what = format_args!("value of `{key}`");
    Ok(match kind {
        0 => Value::Int(cursor.u8(what)?.into()),
        1 => Value::Int((cursor.u8(what)? as i8).into()),
        2 => Value::Int(cursor.u16(what)?.into()),
        3 => Value::Int((cursor.u16(what)? as i16).into()),
        4 => Value::Int(cursor.u32(what)?.into()),
        5 => Value::Int(cursor.i32(what)?.into()),
        6 => Value::Float(f32::from_bits(cursor.u32(what)?).into()),
        7 => Value::Bool(cursor.u8(what)? != 0),
        8 => text_or_bytes(cursor, key)?,
        9 => array(cursor, key, nesting)?,
        10 => Value::Int(cursor.u64(what)?.into()),
        11 => Value::Int(cursor.i64(what)?.into()),
        12 => Value::Float(f64::from_bits(cursor.u64(what)?)),
        other => return Err(cursor.invalid(format!("`{key}` has the unknown value type {other}"))),
    })
}

/// Vocabularies hold tokens that are pieces of a character.
fn text_or_bytes(cursor: &mut Cursor<'_>, key: &str) -> Result<Value> {
    let what = format_args!("value of `{key}`");
    let n = cursor.u64(what)?;
    let bytes = cursor.take(n, what)?;
    Ok(match std::str::from_utf8(&bytes) {
        Ok(text) => Value::Text(text.to_owned()),
        Err(_) => Value::Bytes(bytes.to_vec()),
    })
}

fn array(cursor: &mut Cursor<'_>, key: &str, nesting: usize) -> Result<Value> {
    if nesting == MAX_NESTING {
        return Err(cursor.invalid(format!("`{key}` nests arrays more than {MAX_NESTING} deep")));
    }
    let what = format_args!("array of `{key}`");
    let kind = cursor.u32(what)?;
    let n = cursor.u64(what)?;
    // Strings and arrays start with a length, of 8 bytes or more.
    let least = scalar_size(kind).max(if kind == 8 || kind == 9 { 8 } else { 1 });
    let n = cursor.count(n, least, format_args!("items of `{key}`"))?;
    Ok(match kind {
        0 => Value::Bytes(cursor.take(n as u64, what)?.to_vec()),
        6 => Value::Floats(
            cursor
                .take(4 * n as u64, what)?
                .chunks_exact(4)
                .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                .collect(),
        ),
        _ => {
            let mut items = Vec::new();
            for _ in 0..n {
                items.push(value(cursor, kind, key, nesting + 1)?);
            }
            Value::List(items)
        }
    })
}
