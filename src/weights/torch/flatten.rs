//! From the unpickled object tree to named tensors and plain values.

use super::{
    super::{
        Format, Result, Value,
        container::{Container, Data, latin1_bytes},
        numpy::column_strides,
    },
    Array, Storage, Tensor, invalid,
    pickle::{Id, Node, Pickle},
};
use bytes::Bytes;
use std::path::Path;

/// Deeper trees are no checkpoints; Rust would also drop them recursively.
const MAX_DEPTH: usize = 64;
/// A shared object is copied wherever it stands. The copies together may take this many times
/// the pickle's size; a small pickle can otherwise describe an astronomically large tree.
const MAX_GROWTH: usize = 16;
const MAX_NAME: usize = 4096;
const MAX_SAME_NAME: usize = 100;
const BASE_BUDGET: usize = 1 << 16;

/// Name of the tensor where the file is nothing but one.
const ROOT_TENSOR: &str = "tensor";

/// Names every tensor of `pickle` by the keys that lead to it; `storage` gives storage bytes.
pub(super) fn container(
    path: &Path,
    pickle: Pickle,
    storage: impl FnMut(&Storage) -> Result<Bytes>,
) -> Result<Container> {
    let mut flatten = Flatten {
        path,
        nodes: &pickle.nodes,
        storage,
        budget: pickle.end.saturating_mul(MAX_GROWTH) + BASE_BUDGET,
        container: Container::new(path, Format::Torch),
    };
    let tree = flatten.value(pickle.root, "", 0)?;
    let mut container = flatten.container;
    container.metadata = match tree {
        tree @ (Value::Map(_) | Value::Object { .. }) => tree,
        other => Value::Map(vec![("root".into(), other)]),
    };
    Ok(container)
}

struct Flatten<'a, F> {
    path: &'a Path,
    nodes: &'a [Node],
    storage: F,
    budget: usize,
    container: Container,
}

impl<F: FnMut(&Storage) -> Result<Bytes>> Flatten<'_, F> {
    fn value(&mut self, id: Id, name: &str, depth: usize) -> Result<Value> {
        if depth > MAX_DEPTH {
            let detail = format!("objects nest more than {MAX_DEPTH} deep at `{name}`");
            return Err(invalid(self.path, detail));
        }
        let nodes = self.nodes;
        let node = &nodes[id];
        if name.len() > MAX_NAME {
            let detail = format!("a tensor name of more than {MAX_NAME} bytes");
            return Err(invalid(self.path, detail));
        }
        self.spend(1 + text_size(node))?;
        Ok(match node {
            Node::Null => Value::Null,
            Node::Bool(b) => Value::Bool(*b),
            Node::Int(i) => Value::Int(*i),
            Node::Float(f) => Value::Float(*f),
            Node::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
            Node::Raw(bytes) => Value::Bytes(bytes.to_vec()),
            Node::Latin1(text) => Value::Bytes(latin1_bytes(text)),
            Node::Class(class) => Value::Class(class.clone()),
            Node::Dtype(dtype) => Value::Text(dtype.code.clone()),
            Node::Storage(storage) => Value::Text(format!("storage {}", storage.key)),
            Node::List(items) | Node::Tuple(items) => Value::List(self.list(items, name, depth)?),
            Node::Dict(entries) => Value::Map(self.entries(entries, name, depth)?),
            Node::Object {
                class,
                args,
                fields,
            } => Value::Object {
                class: class.clone(),
                args: self.list(args, name, depth)?,
                fields: self.entries(fields, name, depth)?,
            },
            Node::Tensor(tensor) => self.tensor(tensor, name)?,
            Node::Array(array) => self.array(array, name)?,
        })
    }

    fn spend(&mut self, cost: usize) -> Result<()> {
        match self.budget.checked_sub(cost) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => Err(invalid(
                self.path,
                "its objects refer to each other so often that the tree would be far larger than the file".into(),
            )),
        }
    }

    fn list(&mut self, items: &[Id], name: &str, depth: usize) -> Result<Vec<Value>> {
        let mut out = Vec::new();
        for (i, &item) in items.iter().enumerate() {
            out.push(self.value(item, &join(name, &i.to_string()), depth + 1)?);
        }
        Ok(out)
    }

    fn entries(
        &mut self,
        entries: &[(Id, Id)],
        name: &str,
        depth: usize,
    ) -> Result<Vec<(Value, Value)>> {
        let mut out = Vec::new();
        for &(key, value) in entries {
            let key = self.value(key, "", depth + 1)?;
            let full = join(name, &key.key());
            out.push((key, self.value(value, &full, depth + 1)?));
        }
        Ok(out)
    }

    fn tensor(&mut self, tensor: &Tensor, name: &str) -> Result<Value> {
        self.spend(name.len())?;
        let name = self.free_name(name)?;
        let bytes = (self.storage)(&tensor.storage)?;
        let size = tensor.storage.dtype.block_bytes();
        // Views of older files start inside the stored run.
        let span = tensor.storage.first.checked_mul(size).and_then(|start| {
            let length = tensor.storage.count.checked_mul(size)?;
            Some((start, start.checked_add(length)?))
        });
        let view = span.filter(|&(_, end)| end <= bytes.len());
        let offset = tensor.offset.checked_mul(tensor.dtype.block_bytes());
        let (Some((start, end)), Some(offset)) = (view, offset) else {
            return Err(invalid(
                self.path,
                format!(
                    "tensor `{name}` views {} elements of storage `{}`, which has {} bytes",
                    tensor.storage.count,
                    tensor.storage.key,
                    bytes.len()
                ),
            ));
        };
        let data = Data::Strided {
            storage: bytes.slice(start..end),
            offset,
            strides: tensor.strides.clone(),
        };
        self.container
            .push(name.clone(), tensor.dtype, tensor.shape.clone(), data)?;
        Ok(Value::Tensor(name))
    }

    fn array(&mut self, array: &Array, name: &str) -> Result<Value> {
        self.spend(name.len())?;
        let name = self.free_name(name)?;
        let Some(dtype) = array.dtype else {
            return Err(invalid(self.path, format!("array `{name}` has no data")));
        };
        let (bytes, is_text) = array.data.clone();
        let data = match (is_text, array.columns_first) {
            (true, false) => Data::Latin1(bytes),
            (false, false) => Data::Plain(bytes),
            (is_text, true) => Data::Strided {
                storage: if is_text {
                    latin1_bytes(&bytes).into()
                } else {
                    bytes
                },
                offset: 0,
                strides: column_strides(&array.shape),
            },
        };
        self.container
            .push(name.clone(), dtype, array.shape.clone(), data)?;
        Ok(Value::Tensor(name))
    }

    /// Different keys can join to one name (`{"a.b": …, "a": {"b": …}}`): later ones are numbered.
    fn free_name(&self, name: &str) -> Result<String> {
        let name = if name.is_empty() { ROOT_TENSOR } else { name };
        if !self.container.contains(name) {
            return Ok(name.to_owned());
        }
        (2..MAX_SAME_NAME)
            .map(|n| format!("{name}#{n}"))
            .find(|n| !self.container.contains(n))
            .ok_or_else(|| invalid(self.path, format!("too many tensors are named `{name}`")))
    }
}

fn text_size(node: &Node) -> usize {
    match node {
        Node::Text(b) | Node::Raw(b) | Node::Latin1(b) => b.len(),
        Node::Class(c) | Node::Object { class: c, .. } => c.len(),
        Node::Dtype(t) => t.code.len(),
        Node::Storage(s) => s.key.len(),
        Node::Tensor(t) => 16 * t.shape.len(),
        Node::Array(a) => 16 * a.shape.len(),
        _ => 0,
    }
}

fn join(name: &str, key: &str) -> String {
    if name.is_empty() {
        key.to_owned()
    } else {
        format!("{name}.{key}")
    }
}
