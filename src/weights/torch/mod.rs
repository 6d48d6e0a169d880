//! torch checkpoints: zip archives, the older stream of pickles, and plain pickles of numpy
//! arrays. Only data is read: a class outside the allow-list is an error that names it.

pub(super) mod archive;
mod build;
mod flatten;
mod pickle;

use super::{Error, Format, Result, StoredType, container::Container};
use build::Allow;
use bytes::Bytes;
use pickle::Node;
use std::{collections::HashMap, path::Path};

/// First bytes of a pickle of protocol 2 or later.
pub(super) const PICKLE: u8 = 0x80;
/// The number that opens an older torch file, as a pickle.
const MAGIC: i128 = 0x1950_a86a_20f9_469c_fc6c;
const PROTOCOL: i128 = 1001;

/// A run of numbers that tensors view.
#[derive(Clone, Debug)]
struct Storage {
    dtype: StoredType,
    key: String,
    /// Elements of `dtype`, and where they begin in the stored run.
    count: usize,
    first: usize,
}

/// A view into a storage; offset and strides in elements of `dtype`.
#[derive(Clone, Debug)]
struct Tensor {
    dtype: StoredType,
    storage: Storage,
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<usize>,
}

#[derive(Clone, Debug)]
struct NumpyType {
    code: String,
    dtype: Option<StoredType>,
    big_endian: bool,
}

/// A numpy array; `data.1` tells that the bytes are written as Latin-1 text.
#[derive(Clone, Debug, Default)]
struct Array {
    dtype: Option<StoredType>,
    shape: Vec<usize>,
    columns_first: bool,
    data: (Bytes, bool),
}

/// Opens a torch file whose pickle names classes that the model knows: `allowed` lists them as
/// `module.Name` or `module.*`. They become [`super::Value::Object`] records; no code is run.
///
/// Metadata is the whole object tree with each tensor replaced by its name.
pub fn open(path: impl AsRef<Path>, allowed: &[&str]) -> Result<Container> {
    let path = path.as_ref();
    read(path, &super::map::map(path)?, allowed)
}

/// Reads a whole file in memory, see [`open`].
pub(super) fn read(path: &Path, data: &Bytes, allowed: &[&str]) -> Result<Container> {
    let allow = Allow::new(allowed);
    if data.starts_with(super::archive::ZIP) {
        return archive::read(path, data, &allow);
    }
    let first = pickle::read(path, data, &allow)?;
    match first.nodes[first.root] {
        Node::Int(MAGIC) => read_stream(path, data, first.end, &allow),
        // Not by torch: a pickle of numpy arrays.
        _ => flatten::container(path, first, |storage| {
            Err(invalid(
                path,
                format!("storage `{}` is not in the file", storage.key),
            ))
        }),
    }
}

/// The older layout: magic, protocol and system pickles, the object, the list of storage keys,
/// then each storage as a count and its bytes.
fn read_stream(path: &Path, data: &Bytes, start: usize, allow: &Allow) -> Result<Container> {
    let mut at = start;
    let mut next = || {
        let pickle = pickle::read(path, &data.slice(at..), allow)?;
        at += pickle.end;
        Ok::<_, Error>(pickle)
    };
    let protocol = next()?;
    if !matches!(protocol.nodes[protocol.root], Node::Int(PROTOCOL)) {
        return Err(invalid(
            path,
            "unknown protocol of the older torch format".into(),
        ));
    }
    let _system = next()?;
    let object = next()?;
    let keys = next()?;
    let storages = stream_storages(path, data, at, &object, &keys)?;
    flatten::container(path, object, |storage| {
        storages.get(&storage.key).cloned().ok_or_else(|| {
            invalid(
                path,
                format!("storage `{}` is not in the file", storage.key),
            )
        })
    })
}

fn stream_storages(
    path: &Path,
    data: &Bytes,
    start: usize,
    object: &pickle::Pickle,
    keys: &pickle::Pickle,
) -> Result<HashMap<String, Bytes>> {
    let mut types = HashMap::new();
    for node in &object.nodes {
        if let Node::Storage(storage) = node {
            types.insert(storage.key.as_str(), storage.dtype);
        }
    }
    let (Node::List(ids) | Node::Tuple(ids)) = &keys.nodes[keys.root] else {
        return Err(invalid(path, "the storage keys are not a list".into()));
    };
    let mut cursor = super::cursor::Cursor::new(path, Format::Torch, data);
    cursor.pos = start;
    let mut storages = HashMap::new();
    for &id in ids {
        let Node::Text(key) = &keys.nodes[id] else {
            return Err(invalid(path, "a storage key is not text".into()));
        };
        let key = String::from_utf8_lossy(key).into_owned();
        let Some(dtype) = types.get(key.as_str()) else {
            return Err(invalid(
                path,
                format!("storage `{key}` belongs to no tensor"),
            ));
        };
        let count = cursor.u64(format_args!("size of storage `{key}`"))?;
        let size = count.saturating_mul(dtype.block_bytes() as u64);
        let bytes = cursor.take(size, format_args!("storage `{key}`"))?;
        storages.insert(key, bytes);
    }
    Ok(storages)
}

fn invalid(path: &Path, detail: String) -> Error {
    Error::Invalid {
        path: path.to_owned(),
        format: Format::Torch,
        detail,
    }
}
