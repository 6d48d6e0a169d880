//! Which tensor is which. Exporters give matrices names of their own, and onnxruntime's dynamic
//! quantisation puts whole numbers, a scale and a zero point in the place of each; what a product
//! is follows from the bias that is added to it, which kept its name.

use std::{borrow::Cow, collections::HashMap, path::Path};

use audiocpp::weights::{
    Error, Format, Result, Source, StoredType, TensorInfo, Value,
    onnx::{Attribute, Graph, Node},
    to_f32,
};

/// How a matrix is made from what the file holds, where it lies inputs first.
#[derive(Debug, Clone, PartialEq)]
struct Product {
    /// Values, or whole numbers.
    values: String,
    /// What is subtracted from whole numbers.
    zero: Option<String>,
    /// What they are multiplied with then.
    scale: Option<String>,
}

/// A published file under the names of the original modules.
pub struct Named {
    source: Box<dyn Source>,
    products: HashMap<String, Product>,
    tensors: Vec<TensorInfo>,
    index: HashMap<String, usize>,
}

impl Named {
    /// Finds out the names of `source`.
    pub fn new(source: Box<dyn Source>) -> Named {
        let mut tensors = source.tensors().to_vec();
        let mut products = HashMap::new();
        if let Some(graph) = source.onnx() {
            for (name, product) in Links::new(graph).products() {
                let found = source.find(&product.values).map(|info| &info.shape[..]);
                // A block that is run several times reads its weights as often.
                if let Some(&[inputs, outputs]) = found
                    && !products.contains_key(&name)
                {
                    tensors.push(TensorInfo {
                        name: name.clone(),
                        dtype: StoredType::F32,
                        shape: vec![outputs, inputs],
                    });
                    products.insert(name, product);
                }
            }
        }
        let names = tensors.iter().map(|info| info.name.clone()).zip(0..);
        Named {
            index: names.collect(),
            source,
            products,
            tensors,
        }
    }

    /// Whether this is a network of the kind.
    pub fn is_hibari(&self) -> bool {
        ["m.dec_in.weight", "m.head.weight", "pn.pro_out.weight"]
            .iter()
            .all(|name| self.find(name).is_some())
    }

    /// How often the value `name` is read by a node of the kind `op`.
    pub fn uses(&self, name: &str, op: &str) -> usize {
        self.readers(name, op).count()
    }

    /// Steps between the taps of the convolution with the kernel `name`.
    pub fn dilation(&self, name: &str) -> usize {
        let node = self.readers(name, "Conv").next();
        match node.and_then(|node| node.attribute("dilations")) {
            Some(Attribute::Ints(steps)) => steps
                .first()
                .and_then(|n| usize::try_from(*n).ok())
                .unwrap_or(1),
            _ => 1,
        }
    }

    fn readers<'a>(&'a self, name: &'a str, op: &'a str) -> impl Iterator<Item = &'a Node> {
        let nodes = self.source.onnx().map_or(&[][..], |graph| &graph.nodes);
        nodes
            .iter()
            .filter(move |node| node.op == op && node.inputs.iter().any(|input| input == name))
    }

    fn values(&self, name: &str) -> Result<Vec<f32>> {
        let info = self.source.find(name).ok_or_else(|| Error::Missing {
            path: self.source.path().to_owned(),
            name: name.to_owned(),
            wanted: Vec::new(),
            nearest: Vec::new(),
        })?;
        let bytes = self.source.bytes(info)?;
        Ok(to_f32(&bytes, info.dtype).unwrap_or_default())
    }

    /// The matrix, outputs first.
    fn product(&self, product: &Product, shape: &[usize]) -> Result<Vec<f32>> {
        let part = |name: &Option<String>| match name {
            Some(name) => self.values(name),
            None => Ok(Vec::new()),
        };
        let (values, zero, scale) = (
            self.values(&product.values)?,
            part(&product.zero)?,
            part(&product.scale)?,
        );
        // One number for the whole matrix, or one for each output.
        let of = |list: &[f32], output: usize, otherwise: f32| {
            let at = if list.len() == 1 { 0 } else { output };
            list.get(at).copied().unwrap_or(otherwise)
        };
        let (outputs, inputs) = (shape[0], shape[1]);
        let mut made = Vec::with_capacity(values.len());
        for output in 0..outputs {
            let (zero, scale) = (of(&zero, output, 0.0), of(&scale, output, 1.0));
            let column = (0..inputs).filter_map(|input| values.get(input * outputs + output));
            made.extend(column.map(|x| (x - zero) * scale));
        }
        Ok(made)
    }
}

impl Source for Named {
    fn path(&self) -> &Path {
        self.source.path()
    }
    fn format(&self) -> Format {
        self.source.format()
    }
    fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }
    fn find(&self, name: &str) -> Option<&TensorInfo> {
        self.index.get(name).map(|&at| &self.tensors[at])
    }
    fn bytes(&self, info: &TensorInfo) -> Result<Cow<'_, [u8]>> {
        match self.products.get(&info.name) {
            None => self.source.bytes(info),
            Some(product) => {
                let values = self.product(product, &info.shape)?;
                let bytes = values.iter().flat_map(|x| x.to_le_bytes());
                Ok(Cow::Owned(bytes.collect()))
            }
        }
    }
    fn metadata(&self) -> &Value {
        self.source.metadata()
    }
    fn onnx(&self) -> Option<&Graph> {
        self.source.onnx()
    }
}

/// Who makes and who reads the values of a graph.
struct Links<'g> {
    graph: &'g Graph,
    makers: HashMap<&'g str, &'g Node>,
    readers: HashMap<&'g str, Vec<&'g Node>>,
}

impl<'g> Links<'g> {
    fn new(graph: &'g Graph) -> Links<'g> {
        let (mut makers, mut readers) = (HashMap::new(), HashMap::<&str, Vec<&Node>>::new());
        for node in &graph.nodes {
            for output in &node.outputs {
                makers.insert(output.as_str(), node);
            }
            for input in &node.inputs {
                readers.entry(input).or_default().push(node);
            }
        }
        Links {
            graph,
            makers,
            readers,
        }
    }

    /// Every product with a bias, by the name that its matrix had.
    fn products(&self) -> Vec<(String, Product)> {
        let nodes = self.graph.nodes.iter();
        nodes.filter_map(|node| self.product(node)).collect()
    }

    fn product(&self, node: &Node) -> Option<(String, Product)> {
        let values = self.constant(node, 1)?;
        let (sum, zero, scale) = match node.op.as_str() {
            "MatMul" => (node.outputs.first()?, None, None),
            "MatMulInteger" => {
                let float = self
                    .reader(node.outputs.first()?, "Cast")?
                    .outputs
                    .first()?;
                let scaled = self.reader(float, "Mul")?;
                // The product of both sides' scales.
                let scales = scaled.inputs.iter().find(|input| *input != float)?;
                let scales = self.makers.get(scales.as_str())?;
                let scale = (0..2).find_map(|i| self.constant(scales, i))?;
                let zero = self.constant(node, 3).map(str::to_owned);
                (scaled.outputs.first()?, zero, Some(scale.to_owned()))
            }
            _ => return None,
        };
        let add = self.reader(sum, "Add")?;
        let bias = add.inputs.iter().find(|input| *input != sum)?;
        let name = bias.strip_suffix("bias")?;
        let product = Product {
            values: values.to_owned(),
            zero,
            scale,
        };
        Some((format!("{name}weight"), product))
    }

    fn constant(&self, node: &Node, input: usize) -> Option<&'g str> {
        self.graph.constant(node.inputs.get(input)?)
    }

    fn reader(&self, value: &str, op: &str) -> Option<&'g Node> {
        let readers = self.readers.get(value)?;
        readers.iter().copied().find(|node| node.op == op)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(op: &str, inputs: &[&str], output: &str) -> Node {
        Node {
            name: String::new(),
            op: op.into(),
            domain: String::new(),
            inputs: inputs.iter().map(|s| (*s).to_owned()).collect(),
            outputs: vec![output.into()],
            attributes: Vec::new(),
        }
    }

    #[test]
    fn products_are_named_after_their_biases() {
        let constants = ["q", "z", "s", "w", "m.a.bias", "m.b.in_proj_bias"];
        let graph = Graph {
            nodes: vec![
                node("MatMulInteger", &["x", "q", "xz", "z"], "i"),
                node("Mul", &["xs", "s"], "both"),
                node("Cast", &["i"], "f"),
                node("Mul", &["f", "both"], "y"),
                node("Add", &["m.a.bias", "y"], "out"),
                node("MatMul", &["out", "w"], "p"),
                node("Add", &["p", "m.b.in_proj_bias"], "end"),
                node("MatMul", &["end", "end"], "attention"),
            ],
            constants: constants.map(|n| (n.to_owned(), n.to_owned())).to_vec(),
            ..Graph::default()
        };
        let text = |s: &str| Some(s.to_owned());
        let quantised = Product {
            values: "q".into(),
            zero: text("z"),
            scale: text("s"),
        };
        let plain = Product {
            values: "w".into(),
            zero: None,
            scale: None,
        };
        let wanted = [
            ("m.a.weight".to_owned(), quantised),
            ("m.b.in_proj_weight".to_owned(), plain),
        ];
        assert_eq!(Links::new(&graph).products(), wanted);
    }
}
