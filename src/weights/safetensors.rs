//! safetensors: a JSON header, then the tensors end to end; one file or shards with an index.

use super::{
    Error, Format, Result, StoredType, Value,
    container::{Container, Data},
    cursor::Cursor,
    map::map,
};
use ::safetensors::{Dtype, tensor::TensorInfo as Entry};
use bytes::Bytes;
use std::{
    collections::BTreeSet,
    path::{Component, Path},
};

pub(super) const INDEX_SUFFIX: &str = ".index.json";

/// Reads a whole file in memory.
pub(super) fn read(path: &Path, data: &Bytes) -> Result<Container> {
    let mut cursor = Cursor::new(path, Format::Safetensors, data);
    let length = cursor.u64("header length")?;
    let header = cursor.take(length, "header")?;
    let body = data.slice(cursor.pos..);
    let header: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&header)
        .map_err(|e| cursor.invalid(format!("header is not a JSON object: {e}")))?;

    let mut container = Container::new(path, Format::Safetensors);
    let mut entries = Vec::new();
    for (name, value) in header {
        if name == "__metadata__" {
            container.metadata = metadata(value);
            continue;
        }
        let entry: Entry = serde_json::from_value(value)
            .map_err(|e| cursor.invalid(format!("header of tensor `{name}`: {e}")))?;
        entries.push((name, entry));
    }
    entries.sort_by_key(|(_, entry)| entry.data_offsets);
    for (name, entry) in entries {
        let (start, end) = entry.data_offsets;
        let dtype = stored_type(entry.dtype).ok_or_else(|| {
            cursor.invalid(format!(
                "tensor `{name}` has type {:?}, which is not read; convert it to bf16",
                entry.dtype
            ))
        })?;
        if start > end || end > body.len() {
            return Err(Error::Truncated {
                path: path.to_owned(),
                what: format!("data of tensor `{name}`"),
                offset: cursor.pos.saturating_add(start),
                wanted: end.saturating_sub(start) as u64,
                left: body.len().saturating_sub(start),
            });
        }
        container.push(
            name,
            dtype,
            entry.shape,
            Data::Plain(body.slice(start..end)),
        )?;
    }
    Ok(container)
}

fn metadata(value: serde_json::Value) -> Value {
    match value {
        serde_json::Value::Object(map) => Value::Map(
            map.into_iter()
                .map(|(k, v)| match v {
                    serde_json::Value::String(text) => (k.into(), text.into()),
                    other => (k.into(), other.to_string().into()),
                })
                .collect(),
        ),
        _ => Value::map(),
    }
}

fn stored_type(dtype: Dtype) -> Option<StoredType> {
    Some(match dtype {
        Dtype::BOOL => StoredType::Bool,
        Dtype::U8 => StoredType::U8,
        Dtype::I8 => StoredType::I8,
        Dtype::F8_E4M3 => StoredType::F8E4M3,
        Dtype::F8_E5M2 => StoredType::F8E5M2,
        Dtype::U16 => StoredType::U16,
        Dtype::I16 => StoredType::I16,
        Dtype::F16 => StoredType::F16,
        Dtype::BF16 => StoredType::BF16,
        Dtype::U32 => StoredType::U32,
        Dtype::I32 => StoredType::I32,
        Dtype::F32 => StoredType::F32,
        Dtype::U64 => StoredType::U64,
        Dtype::I64 => StoredType::I64,
        Dtype::F64 => StoredType::F64,
        Dtype::C64 => StoredType::C64,
        _ => return None,
    })
}

/// Reads the files that the `weight_map` of an index lists, in the index's folder; `read_one`
/// opens each.
pub(super) fn read_sharded(
    index: &Path,
    read_one: impl Fn(&Path, &Bytes) -> Result<Container>,
) -> Result<Container> {
    let folder = index.parent().unwrap_or(Path::new(""));
    let mut container = Container::new(folder, Format::Safetensors);
    let json: serde_json::Value = serde_json::from_slice(&map(index)?)
        .map_err(|e| container.invalid(format!("index {}: {e}", index.display())))?;
    let Some(names) = json.get("weight_map").and_then(|m| m.as_object()) else {
        let what = format!("index {} has no weight_map", index.display());
        return Err(container.invalid(what));
    };
    let shards: BTreeSet<&str> = names.values().filter_map(|v| v.as_str()).collect();
    for shard in shards {
        // An index may only name files beside it.
        if !matches!(
            Path::new(shard).components().collect::<Vec<_>>()[..],
            [Component::Normal(_)]
        ) {
            return Err(container.invalid(format!(
                "index names the shard `{shard}` outside its folder"
            )));
        }
        let path = folder.join(shard);
        let mut part = read_one(&path, &map(&path)?)?;
        let metadata = std::mem::replace(&mut part.metadata, Value::Null);
        if container.metadata.entries().is_empty() {
            container.metadata = metadata;
        }
        container.append(part)?;
    }
    for name in names.keys() {
        if !container.contains(name) {
            let what = format!("the index lists tensor `{name}`, no shard has it");
            return Err(container.invalid(what));
        }
    }
    Ok(container)
}
