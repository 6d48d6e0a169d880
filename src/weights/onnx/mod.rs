//! ONNX as a weight container: initialisers and constants as tensors, plus a light node list,
//! since exporters rename some weights (`onnx::MatMul_123`) and only their place in the graph
//! tells what they are.

mod proto;
mod tensor;

use super::{Error, Format, Result, Source, StoredType, TensorInfo, Value, container::Container};
use bytes::Bytes;
use prost::Message;
use std::{borrow::Cow, path::Path};

/// An ONNX file: a [`Source`] of its tensors, and its graph.
///
/// Metadata: `ir_version`, `opset` (domain to version), `producer`, `props` (the file's own
/// key/values).
pub struct Model {
    container: Container,
    graph: Graph,
}

/// Nodes of a graph or of a branch, in the file's (topological) order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// Name given by the exporter.
    pub name: String,
    /// Operations.
    pub nodes: Vec<Node>,
    /// Declared inputs; older files list initialisers here too.
    pub inputs: Vec<Port>,
    /// Declared outputs.
    pub outputs: Vec<Port>,
    /// Constant values of this graph: the value's name in the graph, the tensor's in the
    /// source. They differ only when two branches use one name for different tensors.
    pub constants: Vec<(String, String)>,
}

/// One operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Name given by the exporter, may be empty.
    pub name: String,
    /// Operation, e.g. `Conv`.
    pub op: String,
    /// Operator set; empty for the standard one.
    pub domain: String,
    /// Values read; an omitted optional one is empty.
    pub inputs: Vec<String>,
    /// Values made.
    pub outputs: Vec<String>,
    /// Attributes by name.
    pub attributes: Vec<(String, Attribute)>,
}

/// A node's attribute.
#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    Int(i64),
    Ints(Vec<i64>),
    Float(f32),
    Floats(Vec<f32>),
    Text(String),
    Texts(Vec<String>),
    /// Name of the tensor in the source.
    Tensor(String),
    /// Branch of an `If`, body of a `Loop`.
    Graph(Graph),
    /// A kind that weights have no use for, by ONNX's number.
    Other(i32),
}

/// A declared input or output.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// Value name.
    pub name: String,
    /// Element type, if it is a tensor of numbers.
    pub dtype: Option<StoredType>,
    /// Dimensions; `None` where the size is open.
    pub shape: Vec<Option<usize>>,
}

impl Model {
    /// Opens the ONNX file at `path`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::read(path, &super::map::map(path)?)
    }

    /// Reads a whole file in memory; external data is looked for beside `path`.
    pub(super) fn read(path: &Path, data: &Bytes) -> Result<Self> {
        let mut container = Container::new(path, Format::Onnx);
        let model = proto::Model::decode(data.clone()).map_err(|e| Error::Invalid {
            path: path.to_owned(),
            format: Format::Onnx,
            detail: format!("not a whole protobuf message ({e}); download it again"),
        })?;
        let Some(graph) = model.graph else {
            return Err(container.invalid("it has no graph"));
        };
        let opset = model
            .opset_import
            .into_iter()
            .map(|set| (Value::Text(set.domain), Value::Int(set.version.into())))
            .collect();
        let props = model
            .metadata_props
            .into_iter()
            .map(|entry| (Value::Text(entry.key), Value::Text(entry.value)))
            .collect();
        container.metadata = Value::Map(vec![
            ("ir_version".into(), Value::Int(model.ir_version.into())),
            ("opset".into(), Value::Map(opset)),
            (
                "producer".into(),
                format!("{} {}", model.producer_name, model.producer_version)
                    .trim()
                    .into(),
            ),
            ("props".into(), Value::Map(props)),
        ]);
        let mut reader = tensor::Reader::new(path, container);
        let graph = reader.graph(graph, "")?;
        Ok(Model {
            container: reader.container,
            graph,
        })
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
}

impl Graph {
    /// The tensor in the source that backs the graph's value `name`.
    pub fn constant(&self, name: &str) -> Option<&str> {
        self.constants
            .iter()
            .find(|(value, _)| value == name)
            .map(|(_, tensor)| tensor.as_str())
    }
}

impl Node {
    /// The attribute called `name`.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, attribute)| attribute)
    }
}

impl Source for Model {
    fn path(&self) -> &Path {
        self.container.path()
    }
    fn format(&self) -> Format {
        Format::Onnx
    }
    fn tensors(&self) -> &[TensorInfo] {
        self.container.tensors()
    }
    fn find(&self, name: &str) -> Option<&TensorInfo> {
        self.container.find(name)
    }
    fn bytes(&self, info: &TensorInfo) -> Result<Cow<'_, [u8]>> {
        self.container.bytes(info)
    }
    fn metadata(&self) -> &Value {
        self.container.metadata()
    }
    fn onnx(&self) -> Option<&Graph> {
        Some(&self.graph)
    }
}
