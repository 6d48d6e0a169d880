//! From protobuf messages to the graph and the tensors of a container.

use super::{
    super::{
        Error, Format, Result, StoredType,
        container::{Container, Data},
        map::map,
    },
    Attribute, Graph, Node, Port, proto,
};
use bytes::Bytes;
use std::{
    collections::HashMap,
    path::{Component, Path},
};

/// `data_location` of data in another file.
const EXTERNAL: i32 = 1;

pub(super) struct Reader<'a> {
    path: &'a Path,
    pub container: Container,
    /// Mapped external data files by their location.
    external: HashMap<String, Bytes>,
}

impl<'a> Reader<'a> {
    pub fn new(path: &'a Path, container: Container) -> Self {
        Reader {
            path,
            container,
            external: HashMap::new(),
        }
    }

    /// Takes the tensors out of `graph`; `scope` names the branch it is, empty at the top.
    pub fn graph(&mut self, graph: proto::Graph, scope: &str) -> Result<Graph> {
        let mut out = Graph {
            name: graph.name,
            inputs: graph.input.into_iter().map(port).collect(),
            outputs: graph.output.into_iter().map(port).collect(),
            ..Graph::default()
        };
        for mut tensor in graph.initializer {
            let value = std::mem::take(&mut tensor.name);
            if let Some(name) = self.tensor(&value, scope, tensor)? {
                out.constants.push((value, name));
            }
        }
        for node in graph.node {
            let node = self.node(node, scope, &mut out.constants)?;
            out.nodes.push(node);
        }
        Ok(out)
    }

    fn node(
        &mut self,
        node: proto::Node,
        scope: &str,
        constants: &mut Vec<(String, String)>,
    ) -> Result<Node> {
        let output = node.output.first().cloned().unwrap_or_default();
        let is_constant = node.op_type == "Constant";
        let mut attributes = Vec::new();
        for attribute in node.attribute {
            let name = attribute.name.clone();
            let value = if is_constant {
                output.clone()
            } else {
                format!("{output}.{name}")
            };
            let branch = format!("{scope}{value}/");
            let attribute = self.attribute(attribute, &value, scope, &branch, is_constant)?;
            if let (true, Attribute::Tensor(tensor)) = (is_constant, &attribute) {
                constants.push((output.clone(), tensor.clone()));
            }
            attributes.push((name, attribute));
        }
        Ok(Node {
            name: node.name,
            op: node.op_type,
            domain: node.domain,
            inputs: node.input,
            outputs: node.output,
            attributes,
        })
    }

    fn attribute(
        &mut self,
        a: proto::Attribute,
        value: &str,
        scope: &str,
        branch: &str,
        is_constant: bool,
    ) -> Result<Attribute> {
        let text = |s: &Bytes| String::from_utf8_lossy(s).into_owned();
        // The numbers are those of AttributeProto.AttributeType.
        let attribute = match (a.kind, a.t, a.g) {
            (4, Some(tensor), _) => match self.tensor(value, scope, tensor)? {
                Some(name) => Attribute::Tensor(name),
                None => Attribute::Other(4),
            },
            (5, _, Some(graph)) => Attribute::Graph(self.graph(graph, branch)?),
            (1, ..) => Attribute::Float(a.f),
            (2, ..) => Attribute::Int(a.i),
            (3, ..) => Attribute::Text(text(&a.s)),
            (6, ..) => Attribute::Floats(a.floats),
            (7, ..) => Attribute::Ints(a.ints),
            (8, ..) => Attribute::Texts(a.strings.iter().map(text).collect()),
            (kind, ..) => Attribute::Other(kind),
        };
        if !is_constant {
            return Ok(attribute);
        }
        // `Constant` may give plain numbers instead of a tensor.
        let (dtype, shape, bytes) = match &attribute {
            Attribute::Float(f) => (StoredType::F32, vec![], f.to_le_bytes().to_vec()),
            Attribute::Int(i) => (StoredType::I64, vec![], i.to_le_bytes().to_vec()),
            Attribute::Floats(v) => (StoredType::F32, vec![v.len()], little(v, f32::to_le_bytes)),
            Attribute::Ints(v) => (StoredType::I64, vec![v.len()], little(v, i64::to_le_bytes)),
            _ => return Ok(attribute),
        };
        let name = self.free_name(value, scope);
        self.container
            .push(name.clone(), dtype, shape, Data::Plain(bytes.into()))?;
        Ok(Attribute::Tensor(name))
    }

    /// Adds a tensor and gives the name it got; `None` for a tensor of strings.
    fn tensor(
        &mut self,
        value: &str,
        scope: &str,
        tensor: proto::Tensor,
    ) -> Result<Option<String>> {
        let Some(dtype) = stored_type(tensor.data_type) else {
            tracing::debug!(
                value,
                kind = tensor.data_type,
                "tensor of a type that is no weight"
            );
            return Ok(None);
        };
        let name = self.free_name(value, scope);
        let shape: Option<Vec<usize>> = tensor
            .dims
            .iter()
            .map(|&d| usize::try_from(d).ok())
            .collect();
        let Some(shape) = shape else {
            let dims = tensor.dims;
            return Err(self.invalid(format!("tensor `{name}` has the shape {dims:?}")));
        };
        let bytes = if tensor.data_location == EXTERNAL {
            let size = dtype.nbytes(&shape).unwrap_or(0) as u64;
            self.external(&name, &tensor.external_data, size)?
        } else {
            match tensor.raw_data {
                Some(raw) => raw,
                None => typed_data(dtype, &tensor).into(),
            }
        };
        self.container
            .push(name.clone(), dtype, shape, Data::Plain(bytes))?;
        Ok(Some(name))
    }

    /// Branches of one `If` often use the same names: all but the first get their scope's.
    fn free_name(&self, value: &str, scope: &str) -> String {
        if scope.is_empty() || !self.container.contains(value) {
            value.to_owned()
        } else {
            format!("{scope}{value}")
        }
    }

    /// Data in a file beside the model: entries `location`, `offset`, `length`.
    fn external(&mut self, name: &str, entries: &[proto::Entry], size: u64) -> Result<Bytes> {
        let get = |key| {
            entries
                .iter()
                .find(|e| e.key == key)
                .map(|e| e.value.as_str())
        };
        let location = get("location").unwrap_or("");
        let number = |key, default| get(key).map_or(Some(default), |v| v.parse::<u64>().ok());
        let (Some(offset), Some(length)) = (number("offset", 0), number("length", size)) else {
            return Err(self.invalid(format!(
                "external data of `{name}` has a bad offset or length"
            )));
        };
        let inside = Path::new(location)
            .components()
            .all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
        if location.is_empty() || !inside {
            return Err(self.invalid(format!(
                "tensor `{name}` wants the external file `{location}`, which is not inside the model's folder"
            )));
        }
        let file = self.path.with_file_name(location);
        let data = match self.external.get(location) {
            Some(data) => data.clone(),
            None => {
                let data = map(&file)?;
                self.external.insert(location.to_owned(), data.clone());
                data
            }
        };
        let end = offset
            .checked_add(length)
            .filter(|&end| end <= data.len() as u64);
        let Some(end) = end else {
            return Err(Error::Truncated {
                path: file,
                what: format!("data of tensor `{name}`"),
                offset: usize::try_from(offset).unwrap_or(usize::MAX),
                wanted: length,
                left: (data.len() as u64).saturating_sub(offset) as usize,
            });
        };
        Ok(data.slice(offset as usize..end as usize))
    }

    fn invalid(&self, detail: String) -> Error {
        Error::Invalid {
            path: self.path.to_owned(),
            format: Format::Onnx,
            detail,
        }
    }
}

/// Number of TensorProto.DataType to type; `None` for strings and sub-byte types.
fn stored_type(number: i32) -> Option<StoredType> {
    Some(match number {
        1 => StoredType::F32,
        2 => StoredType::U8,
        3 => StoredType::I8,
        4 => StoredType::U16,
        5 => StoredType::I16,
        6 => StoredType::I32,
        7 => StoredType::I64,
        9 => StoredType::Bool,
        10 => StoredType::F16,
        11 => StoredType::F64,
        12 => StoredType::U32,
        13 => StoredType::U64,
        14 => StoredType::C64,
        15 => StoredType::C128,
        16 => StoredType::BF16,
        17 => StoredType::F8E4M3,
        19 => StoredType::F8E5M2,
        _ => return None,
    })
}

fn little<T: Copy, const N: usize>(values: &[T], to_bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|&v| to_bytes(v)).collect()
}

/// Values from the typed fields, which small types share: everything of 32 bits or less that is
/// no `float` sits in `int32_data`, the bits of f16 too.
fn typed_data(dtype: StoredType, t: &proto::Tensor) -> Vec<u8> {
    match dtype {
        StoredType::F32 | StoredType::C64 => little(&t.float_data, f32::to_le_bytes),
        StoredType::F64 | StoredType::C128 => little(&t.double_data, f64::to_le_bytes),
        StoredType::I64 => little(&t.int64_data, i64::to_le_bytes),
        StoredType::U64 => little(&t.uint64_data, u64::to_le_bytes),
        StoredType::U32 => little(&t.uint64_data, |v| (v as u32).to_le_bytes()),
        _ => match dtype.block_bytes() {
            1 => little(&t.int32_data, |v| [v as u8]),
            2 => little(&t.int32_data, |v| (v as u16).to_le_bytes()),
            _ => little(&t.int32_data, i32::to_le_bytes),
        },
    }
}

fn port(info: proto::ValueInfo) -> Port {
    let tensor = info.kind.and_then(|kind| kind.tensor);
    let dtype = tensor.as_ref().and_then(|t| stored_type(t.elem_type));
    let dims = tensor.and_then(|t| t.shape).map_or(Vec::new(), |s| s.dim);
    Port {
        name: info.name,
        dtype,
        shape: dims
            .into_iter()
            .map(|d| d.value.and_then(|v| usize::try_from(v).ok()))
            .collect(),
    }
}
