//! Weights of ONNX exports that were quantised to 8 bits for products of whole numbers
//! (onnxruntime's dynamic quantisation): which module each belongs to, and its values in f32.

use std::collections::HashMap;

use audiocpp::weights::{
    Result, Source, TensorInfo,
    onnx::{Graph, Node},
    to_f32,
};

use crate::names::info;

/// How a tensor is made from what the file holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Recipe {
    /// It is there.
    Stored(String),
    /// It is there with rows and columns exchanged.
    Transposed(String),
    /// Whole numbers, less a zero point, times a scale: of the tensor, or of each column.
    Scaled(Quantised, Order),
    /// Only the numbers, less their zero point.
    Numbers(Quantised, Order),
    /// Only the scales, one for each row.
    Scale(Quantised),
    /// The weights of one direction of an LSTM, `[directions, inputs, gates]`.
    Lstm(Quantised, usize),
    /// Only the numbers of such weights, less their zero point.
    LstmNumbers(Quantised, usize),
    /// Only the scale of such weights, for each row.
    LstmScale(Quantised, usize),
    /// One of the two biases of one direction of an LSTM, `[directions, 2, gates]`.
    LstmBias(String, [usize; 2]),
}

/// Names of the parts of a quantised tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantised {
    numbers: String,
    scale: String,
    zero: String,
}

/// How a matrix lies in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As PyTorch keeps it.
    Plain,
    /// Inputs before outputs.
    Transposed,
}

/// ONNX keeps the gates as input, output, forget, cell; PyTorch as input, forget, cell, output.
const GATES: [usize; 4] = [0, 2, 3, 1];

impl Recipe {
    /// The values, row by row, of a tensor of `shape`.
    pub fn values(&self, source: &dyn Source, shape: &[usize]) -> Result<Vec<f32>> {
        match self {
            Recipe::Stored(name) => read(source, name),
            Recipe::Transposed(name) => Ok(transposed(&read(source, name)?, shape)),
            Recipe::Scaled(parts, order) => {
                let scale = read(source, &parts.scale)?;
                Ok(order.rows(parts.values(source, &scale)?, shape))
            }
            Recipe::Numbers(parts, order) => Ok(order.rows(parts.values(source, &[])?, shape)),
            Recipe::Scale(parts) => {
                let scale = read(source, &parts.scale)?;
                Ok((0..shape[0]).map(|row| of(&scale, row, 1.0)).collect())
            }
            Recipe::Lstm(parts, direction) => {
                let scale = of(&read(source, &parts.scale)?, *direction, 1.0);
                parts.direction(source, *direction, scale, shape)
            }
            Recipe::LstmNumbers(parts, direction) => {
                parts.direction(source, *direction, 1.0, shape)
            }
            Recipe::LstmScale(parts, direction) => {
                let scale = of(&read(source, &parts.scale)?, *direction, 1.0);
                Ok(vec![scale; shape[0]])
            }
            Recipe::LstmBias(name, [direction, which]) => {
                let values = read(source, name)?;
                let quarter = values.len() / 4;
                let at = quarter * (2 * direction + which);
                Ok(gates(&values[at..at + quarter]))
            }
        }
    }
}

impl Quantised {
    /// The numbers less the zero point, times `scale`: 1 where that is empty.
    fn values(&self, source: &dyn Source, scale: &[f32]) -> Result<Vec<f32>> {
        let width = shape_of(source, &self.numbers).last().copied();
        let zero = read(source, &self.zero)?;
        let mut values = read(source, &self.numbers)?;
        for row in values.chunks_mut(width.unwrap_or(1).max(1)) {
            for (column, x) in row.iter_mut().enumerate() {
                *x = (*x - of(&zero, column, 0.0)) * of(scale, column, 1.0);
            }
        }
        Ok(values)
    }

    /// The weights `[gates, inputs]` of one direction of an LSTM, times `scale`.
    fn direction(
        &self,
        source: &dyn Source,
        direction: usize,
        scale: f32,
        shape: &[usize],
    ) -> Result<Vec<f32>> {
        let numbers = read(source, &self.numbers)?;
        let half = numbers.len() / 2;
        let numbers = &numbers[half * direction..half * (direction + 1)];
        let zero = of(&read(source, &self.zero)?, direction, 0.0);
        let values: Vec<f32> = numbers.iter().map(|x| (x - zero) * scale).collect();
        Ok(gates(&transposed(&values, shape)))
    }
}

impl Order {
    /// The values of a matrix in this order, row by row.
    fn rows(self, values: Vec<f32>, shape: &[usize]) -> Vec<f32> {
        match self {
            Order::Plain => values,
            Order::Transposed => transposed(&values, shape),
        }
    }
}

/// The value of a column, where there is one for each or one for all.
fn of(values: &[f32], column: usize, otherwise: f32) -> f32 {
    let at = if values.len() == 1 { 0 } else { column };
    values.get(at).copied().unwrap_or(otherwise)
}

/// Four gates from ONNX's order to PyTorch's.
fn gates(values: &[f32]) -> Vec<f32> {
    let each = values.len() / 4;
    let gate = |i: usize| &values[GATES[i] * each..(GATES[i] + 1) * each];
    (0..4).flat_map(gate).copied().collect()
}

/// A matrix that becomes one of `shape`, `[rows, columns]` or `[rows, columns, 1]`.
fn transposed(values: &[f32], shape: &[usize]) -> Vec<f32> {
    let (rows, columns) = (shape[0], shape[1]);
    let row = |r: usize| (0..columns).map(move |c| c * rows + r);
    (0..rows)
        .flat_map(row)
        .filter_map(|at| values.get(at).copied())
        .collect()
}

fn read(source: &dyn Source, name: &str) -> Result<Vec<f32>> {
    match source.find(name) {
        // A zero point may be left out: there are no values.
        None => Ok(Vec::new()),
        Some(info) => {
            let bytes = source.bytes(info)?;
            Ok(to_f32(&bytes, info.dtype).unwrap_or_default())
        }
    }
}

fn shape_of<'s>(source: &'s dyn Source, name: &str) -> &'s [usize] {
    source.find(name).map_or(&[], |info| &info.shape)
}

/// Every weight of the graph under its original name.
pub fn recipes(source: &dyn Source, graph: &Graph) -> Vec<(TensorInfo, Recipe)> {
    let links = Links::new(source, graph);
    let mut found: HashMap<String, (TensorInfo, Recipe)> = HashMap::new();
    for (value, tensor) in &graph.constants {
        let own = value
            .strip_prefix("encoder.")
            .or(value.strip_prefix("decoder."));
        if let (Some(own), Some(stored)) = (own, source.find(tensor)) {
            let seen = TensorInfo {
                name: own.to_owned(),
                ..stored.clone()
            };
            found.insert(own.to_owned(), (seen, Recipe::Stored(tensor.clone())));
        }
    }
    for node in &graph.nodes {
        let Some(module) = module(&node.name) else {
            continue;
        };
        for (part, shape, recipe) in links.of_node(node) {
            let name = format!("{module}.{part}");
            found
                .entry(name.clone())
                .or_insert((info(name, &shape), recipe));
        }
    }
    let mut all: Vec<_> = found.into_values().collect();
    all.sort_by(|a, b| a.0.name.cmp(&b.0.name));
    all
}

/// The original module of a node (`/encoder/F0.1/conv1/Conv_quant` is `predictor.F0.1.conv1`).
fn module(node: &str) -> Option<String> {
    let (path, _) = node.strip_prefix('/')?.rsplit_once('/')?;
    let path = path
        .strip_prefix("encoder/")
        .or(path.strip_prefix("decoder/"))?;
    let parts: Vec<&str> = path.split('/').collect();
    let mut kept: Vec<&str> = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        // The members of a list are written with its name, and so is the list.
        let repeated = parts.get(i + 1).is_some_and(|next| {
            next.strip_prefix(part)
                .is_some_and(|rest| rest.starts_with('.'))
        });
        if !repeated {
            kept.push(part);
        }
    }
    let first = kept.first()?;
    let called_from_outside = ["F0.", "N.", "F0_proj", "N_proj", "shared"];
    let predictor = called_from_outside
        .iter()
        .any(|start| first.starts_with(start));
    let prefix = if predictor { "predictor." } else { "" };
    Some(format!("{prefix}{}", kept.join(".")))
}

type Part = (&'static str, Vec<usize>, Recipe);

/// Who makes and who reads the values of a graph.
struct Links<'g> {
    source: &'g dyn Source,
    constants: HashMap<&'g str, &'g str>,
    makers: HashMap<&'g str, &'g Node>,
    readers: HashMap<&'g str, Vec<&'g Node>>,
}

impl<'g> Links<'g> {
    fn new(source: &'g dyn Source, graph: &'g Graph) -> Links<'g> {
        let mut links = Links {
            source,
            constants: HashMap::new(),
            makers: HashMap::new(),
            readers: HashMap::new(),
        };
        for (value, tensor) in &graph.constants {
            links.constants.insert(value, tensor);
        }
        for node in &graph.nodes {
            for output in &node.outputs {
                links.makers.insert(output, node);
            }
            for input in &node.inputs {
                links.readers.entry(input).or_default().push(node);
            }
        }
        links
    }

    fn constant(&self, node: &Node, input: usize) -> Option<&'g str> {
        self.constants
            .get(node.inputs.get(input)?.as_str())
            .copied()
    }

    fn reader(&self, value: &str, op: &str) -> Option<&'g Node> {
        self.readers
            .get(value)?
            .iter()
            .copied()
            .find(|node| node.op == op)
    }

    /// The weights that a node reads: part, shape and recipe.
    fn of_node(&self, node: &Node) -> Vec<Part> {
        let weight = match node.op.as_str() {
            "MatMulInteger" => self.product(node, Order::Transposed),
            "ConvInteger" => self.product(node, Order::Plain),
            "Gather" => self.table(node),
            "MatMul" => self.constant(node, 1).map(|name| {
                let shape: Vec<usize> = shape_of(self.source, name).iter().rev().copied().collect();
                (shape, Recipe::Transposed(name.to_owned()))
            }),
            "Conv" | "ConvTranspose" => self.constant(node, 1).map(|name| {
                let shape = shape_of(self.source, name).to_vec();
                (shape, Recipe::Stored(name.to_owned()))
            }),
            "DynamicQuantizeLSTM" => return self.lstm(node).unwrap_or_default(),
            _ => None,
        };
        let Some((shape, recipe)) = weight.filter(|(shape, _)| shape.len() >= 2) else {
            return Vec::new();
        };
        let mut parts = Vec::new();
        // Rows of a table are read as they are wanted, and so are their values.
        if let (Recipe::Scaled(numbers, order), true) = (&recipe, node.op != "Gather") {
            let scale = Recipe::Scale(numbers.clone());
            parts.push(("weight_scale", vec![shape[0]], scale));
            let numbers = Recipe::Numbers(numbers.clone(), *order);
            parts.push(("weight_numbers", shape.clone(), numbers));
        }
        parts.push(("weight", shape, recipe));
        parts
    }

    /// A product of whole numbers is scaled by the product of both sides' scales.
    fn product(&self, node: &Node, order: Order) -> Option<(Vec<usize>, Recipe)> {
        let numbers = self.constant(node, 1)?;
        let sum = node.outputs.first()?;
        // A bias may be added while the sums are whole numbers.
        let sum = self
            .reader(sum, "Add")
            .map_or(Some(sum), |add| add.outputs.first())?;
        let float = self.reader(sum, "Cast")?.outputs.first()?;
        let scaled = self.reader(float, "Mul")?;
        let scales = scaled.inputs.iter().find(|input| *input != float)?;
        let scales = self.makers.get(scales.as_str())?;
        let scale = (0..scales.inputs.len()).find_map(|i| self.constant(scales, i))?;
        let mut shape = shape_of(self.source, numbers).to_vec();
        if order == Order::Transposed {
            shape.reverse();
        }
        let zero = self.constant(node, 3).unwrap_or_default();
        Some((
            shape,
            Recipe::Scaled(quantised([numbers, scale, zero]), order),
        ))
    }

    /// Rows are looked up as whole numbers and scaled after that.
    fn table(&self, node: &Node) -> Option<(Vec<usize>, Recipe)> {
        let numbers = self.constant(node, 0)?;
        let rows = self.reader(node.outputs.first()?, "DequantizeLinear")?;
        let (scale, zero) = (
            self.constant(rows, 1)?,
            self.constant(rows, 2).unwrap_or_default(),
        );
        let recipe = Recipe::Scaled(quantised([numbers, scale, zero]), Order::Plain);
        Some((shape_of(self.source, numbers).to_vec(), recipe))
    }

    fn lstm(&self, node: &Node) -> Option<Vec<Part>> {
        let input = |i| self.constant(node, i);
        let weights = [
            (
                ["weight_ih_l0", "weight_ih_l0_reverse"],
                [input(1)?, input(8)?, input(9)?],
            ),
            (
                ["weight_hh_l0", "weight_hh_l0_reverse"],
                [input(2)?, input(10)?, input(11)?],
            ),
        ];
        let biases = [
            ["bias_ih_l0", "bias_ih_l0_reverse"],
            ["bias_hh_l0", "bias_hh_l0_reverse"],
        ];
        let mut parts = Vec::new();
        let whole = [
            ["weight_ih_l0_numbers", "weight_ih_l0_scale"],
            ["weight_ih_l0_reverse_numbers", "weight_ih_l0_reverse_scale"],
        ];
        let &[2, inputs, gates] = shape_of(self.source, input(1)?) else {
            return None;
        };
        for (direction, [numbers, scale]) in whole.into_iter().enumerate() {
            let of_input = quantised(weights[0].1);
            let recipe = Recipe::LstmScale(of_input.clone(), direction);
            parts.push((scale, vec![gates], recipe));
            let recipe = Recipe::LstmNumbers(of_input, direction);
            parts.push((numbers, vec![gates, inputs], recipe));
        }
        for (names, tensors) in weights {
            let &[2, inputs, gates] = shape_of(self.source, tensors[0]) else {
                return None;
            };
            for (direction, name) in names.into_iter().enumerate() {
                let recipe = Recipe::Lstm(quantised(tensors), direction);
                parts.push((name, vec![gates, inputs], recipe));
            }
        }
        let bias = input(3)?;
        let &[2, both] = shape_of(self.source, bias) else {
            return None;
        };
        for (which, names) in biases.into_iter().enumerate() {
            for (direction, name) in names.into_iter().enumerate() {
                let recipe = Recipe::LstmBias(bias.to_owned(), [direction, which]);
                parts.push((name, vec![both / 2], recipe));
            }
        }
        Some(parts)
    }
}

fn quantised(names: [&str; 3]) -> Quantised {
    let [numbers, scale, zero] = names.map(str::to_owned);
    Quantised {
        numbers,
        scale,
        zero,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_belong_to_their_modules() {
        let pairs = [
            ("/encoder/F0.1/conv1/Conv_quant", "predictor.F0.1.conv1"),
            ("/encoder/shared/LSTM_quant", "predictor.shared"),
            (
                "/encoder/text_encoder/cnn.0/cnn.0.0/Conv_quant",
                "text_encoder.cnn.0.0",
            ),
            (
                "/decoder/decoder/asr_res/asr_res.0/Conv_quant",
                "decoder.asr_res.0",
            ),
            (
                "/decoder/decoder/generator/resblocks.1/convs1.0/Conv_quant",
                "decoder.generator.resblocks.1.convs1.0",
            ),
            (
                "/encoder/predictor/text_encoder/lstms.1/fc/G",
                "predictor.text_encoder.lstms.1.fc",
            ),
        ];
        for (node, wanted) in pairs {
            assert_eq!(module(node).as_deref(), Some(wanted));
        }
        assert_eq!(module("Gather_12"), None);
    }

    #[test]
    fn gates_are_put_in_order() {
        assert_eq!(gates(&[1.0, 2.0, 3.0, 4.0]), [1.0, 3.0, 4.0, 2.0]);
        assert_eq!(
            transposed(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2]),
            [1., 4., 2., 5., 3., 6.]
        );
    }
}
