//! CTranslate2 `model.bin`: named variables, then aliases.

use super::{
    Format, Result, StoredType, Value,
    container::{Container, Data},
    cursor::Cursor,
};
use bytes::Bytes;
use std::path::Path;

/// Binary versions that are read. 3 added aliases, 4 explicit types.
pub(super) const VERSIONS: std::ops::RangeInclusive<u32> = 2..=6;

/// Reads a whole file in memory. Weights that are stored as whole numbers with a scale a row
/// (`<name>_scale`) appear as f32. Metadata: `spec`, `revision`, `binary_version` and `aliases`
/// (alias to variable; both names find the tensor).
pub(super) fn read(path: &Path, data: &Bytes) -> Result<Container> {
    let mut cursor = Cursor::new(path, Format::CTranslate2, data);
    let version = cursor.u32("binary version")?;
    if !VERSIONS.contains(&version) {
        return Err(cursor.invalid(format!(
            "binary version {version}; versions 2 to 6 are read"
        )));
    }
    let spec = string(&mut cursor, "specification name")?;
    let revision = cursor.u32("specification revision")?;
    let count = cursor.u32("variable count")?;
    let mut container = Container::new(path, Format::CTranslate2);
    for _ in 0..count {
        variable(&mut cursor, version, &mut container)?;
    }
    container.apply_scales();
    let aliases = if version >= 3 {
        aliases(&mut cursor, &mut container)?
    } else {
        Value::map()
    };
    container.metadata = Value::Map(vec![
        ("spec".into(), spec.into()),
        ("revision".into(), Value::Int(revision.into())),
        ("binary_version".into(), Value::Int(version.into())),
        ("aliases".into(), aliases),
    ]);
    Ok(container)
}

fn variable(cursor: &mut Cursor<'_>, version: u32, container: &mut Container) -> Result<()> {
    let name = string(cursor, "variable name")?;
    let rank = cursor.u8(format_args!("rank of `{name}`"))?;
    let mut shape = Vec::new();
    for _ in 0..rank {
        shape.push(cursor.u32(format_args!("dimensions of `{name}`"))? as usize);
    }
    let (dtype, size) = if version >= 4 {
        let kind = cursor.u8(format_args!("type of `{name}`"))?;
        let size = cursor.u32(format_args!("size of `{name}`"))?;
        (stored_type(kind), u64::from(size))
    } else {
        // Before types were stored, the size of an item told them apart.
        let item = cursor.u8(format_args!("item size of `{name}`"))?;
        let items = cursor.u32(format_args!("item count of `{name}`"))?;
        let dtype = match item {
            4 => Some(StoredType::F32),
            2 => Some(StoredType::I16),
            1 => Some(StoredType::I8),
            _ => None,
        };
        (dtype, u64::from(item) * u64::from(items))
    };
    let dtype =
        dtype.ok_or_else(|| cursor.invalid(format!("variable `{name}` has an unknown type")))?;
    let bytes = cursor.take(size, format_args!("data of variable `{name}`"))?;
    container.push(name, dtype, shape, Data::Plain(bytes))
}

fn stored_type(kind: u8) -> Option<StoredType> {
    Some(match kind {
        0 => StoredType::F32,
        1 => StoredType::I8,
        2 => StoredType::I16,
        3 => StoredType::I32,
        4 => StoredType::F16,
        5 => StoredType::BF16,
        _ => return None,
    })
}

fn aliases(cursor: &mut Cursor<'_>, container: &mut Container) -> Result<Value> {
    let count = cursor.u32("alias count")?;
    let mut entries = Vec::new();
    for _ in 0..count {
        let alias = string(cursor, "alias")?;
        let target = string(cursor, "alias target")?;
        if !container.alias(alias.clone(), &target) {
            return Err(cursor.invalid(format!(
                "alias `{alias}` of `{target}`: no such variable, or the name is taken"
            )));
        }
        entries.push((Value::Text(alias), Value::Text(target)));
    }
    Ok(Value::Map(entries))
}

/// A length, then that many bytes of which the last is NUL.
fn string(cursor: &mut Cursor<'_>, what: &str) -> Result<String> {
    let n = cursor.u16(what)?;
    let mut text = cursor.text(n.into(), what)?;
    if text.pop() != Some('\0') {
        return Err(cursor.invalid(format!(
            "{what} before offset {} does not end in NUL",
            cursor.pos
        )));
    }
    Ok(text)
}
