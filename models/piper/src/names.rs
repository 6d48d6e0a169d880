//! Which tensor is which: Piper's ONNX files and Hugging Face checkpoints under the names of the
//! VITS paper's code.

use std::{borrow::Cow, collections::HashMap, path::Path};

use audiocpp::weights::{
    Format, Result, Source, TensorInfo, Value,
    onnx::{Attribute, Graph, Node},
};

/// A weight file seen under the names of the original code (`enc_p`, `dp`, `flow`, `dec`).
pub struct Named {
    source: Box<dyn Source>,
    /// Original name to the name in the file.
    names: HashMap<String, String>,
}

impl Named {
    /// Finds out the names of `source`.
    pub fn new(source: Box<dyn Source>) -> Named {
        let mut names = HashMap::new();
        match source.onnx() {
            Some(graph) => from_graph(graph, &mut names),
            None => names.extend(
                source
                    .tensors()
                    .iter()
                    .map(|tensor| (original(&tensor.name), tensor.name.clone())),
            ),
        }
        Named { source, names }
    }

    /// Whether this is a network of the kind.
    pub fn is_vits(&self) -> bool {
        [
            "enc_p.emb.weight",
            "enc_p.proj.weight",
            "dec.conv_pre.weight",
        ]
        .iter()
        .all(|name| self.find(name).is_some())
    }

    /// The numbers below 1000 for which `name(number)` is a tensor, in order.
    pub fn numbers(&self, name: impl Fn(usize) -> String) -> Vec<usize> {
        (0..1000)
            .filter(|&i| self.find(&name(i)).is_some())
            .collect()
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
        self.source.tensors()
    }
    fn find(&self, name: &str) -> Option<&TensorInfo> {
        let stored = self.names.get(name).map_or(name, String::as_str);
        self.source.find(stored)
    }
    fn bytes(&self, info: &TensorInfo) -> Result<Cow<'_, [u8]>> {
        self.source.bytes(info)
    }
    fn metadata(&self) -> &Value {
        self.source.metadata()
    }
    fn onnx(&self) -> Option<&Graph> {
        self.source.onnx()
    }
}

/// The module that a node comes from: by its name (`/dec/ups.0/ConvTranspose`), else by the name
/// of a weight that kept its own.
pub fn module(node: &Node) -> Option<String> {
    let scoped = node
        .name
        .strip_prefix('/')
        .and_then(|name| name.rsplit_once('/'));
    if let Some((path, _)) = scoped {
        return Some(path.replace('/', "."));
    }
    let own = |name: &String| {
        let path = name
            .strip_suffix(".weight")
            .or(name.strip_suffix(".bias"))?;
        Some(path.to_owned())
    };
    node.inputs.iter().find_map(own)
}

/// A node's list of whole numbers.
pub fn ints<'n>(node: &'n Node, name: &str) -> &'n [i64] {
    match node.attribute(name) {
        Some(Attribute::Ints(values)) => values,
        _ => &[],
    }
}

/// Exporters fold weight normalisation into tensors with numbers for names, and may give one name
/// to several equal tensors; what a tensor is follows from the node that reads it.
fn from_graph(graph: &Graph, names: &mut HashMap<String, String>) {
    for (value, tensor) in &graph.constants {
        names.insert(value.clone(), tensor.clone());
    }
    for node in &graph.nodes {
        let parts: &[(&str, usize)] = match node.op.as_str() {
            "Conv" | "ConvTranspose" => &[("weight", 1), ("bias", 2)],
            "Gather" => &[("weight", 0)],
            _ => continue,
        };
        let Some(module) = module(node) else { continue };
        for (part, input) in parts {
            let tensor = node
                .inputs
                .get(*input)
                .and_then(|name| graph.constant(name));
            if let Some(tensor) = tensor {
                names.insert(format!("{module}.{part}"), tensor.to_owned());
            }
        }
    }
    if let Some(scale) = folded_scale(graph) {
        names.insert("dp.flows.0.scale".into(), scale.to_owned());
    }
}

/// The last step of the durations is `(x - m) exp(-logs)`; the factor is folded to a constant.
fn folded_scale(graph: &Graph) -> Option<&str> {
    let reads = |node: &&Node, op: &str, name: &str| {
        node.op == op && node.inputs.iter().any(|input| input == name)
    };
    let difference = graph
        .nodes
        .iter()
        .find(|node| reads(node, "Sub", "dp.flows.0.m"))?;
    let difference = difference.outputs.first()?;
    let product = graph
        .nodes
        .iter()
        .find(|node| reads(node, "Mul", difference))?;
    let factor = product.inputs.iter().find(|input| *input != difference)?;
    graph.constant(factor)
}

/// Pieces of Hugging Face names, and what the original code calls them.
const PIECES: [(&str, &str); 22] = [
    ("text_encoder.embed_tokens.", "enc_p.emb."),
    ("text_encoder.project.", "enc_p.proj."),
    ("text_encoder.encoder.", "enc_p.encoder."),
    ("duration_predictor.", "dp."),
    ("decoder.", "dec."),
    ("embed_speaker.", "emb_g."),
    ("dec.upsampler.", "dec.ups."),
    (".attention.q_proj.", ".conv_q."),
    (".attention.k_proj.", ".conv_k."),
    (".attention.v_proj.", ".conv_v."),
    (".attention.out_proj.", ".conv_o."),
    (".attention.emb_rel_", ".emb_rel_"),
    (".feed_forward.", "."),
    (".conv_dds.", ".convs."),
    (".convs_dilated.", ".convs_sep."),
    (".convs_pointwise.", ".convs_1x1."),
    (".translate", ".m"),
    (".log_scale", ".logs"),
    (".wavenet.", ".enc."),
    ("norm_1.weight", "norm_1.gamma"),
    ("norm_2.weight", "norm_2.gamma"),
    ("norm_1.bias", "norm_1.beta"),
];

/// More of them, in flows and duration predictors only.
const FLOW_PIECES: [(&str, &str); 4] = [
    (".conv_pre.", ".pre."),
    (".conv_proj.", ".proj."),
    (".conv_post.", ".post."),
    ("norm_2.bias", "norm_2.beta"),
];

/// The original name of the tensor that Hugging Face calls `name`.
fn original(name: &str) -> String {
    let mut name = name.to_owned();
    for (theirs, ours) in PIECES {
        name = name.replacen(theirs, ours, 1);
    }
    if name.starts_with("dp.") || name.starts_with("flow.") {
        for (theirs, ours) in FLOW_PIECES {
            name = name.replacen(theirs, ours, 1);
        }
    }
    if name.contains(".norms_") {
        name = name
            .replacen(".weight", ".gamma", 1)
            .replacen(".bias", ".beta", 1);
    }
    encoder_layer(&name)
        .or_else(|| flow_number(&name))
        .unwrap_or(name)
}

/// `enc_p.encoder.layers.3.conv_q.weight` -> `enc_p.encoder.attn_layers.3.conv_q.weight`.
fn encoder_layer(name: &str) -> Option<String> {
    let rest = name.strip_prefix("enc_p.encoder.layers.")?;
    let (number, part) = rest.split_once('.')?;
    let (room, part) = match part.split_once('.') {
        Some(("layer_norm", part)) => ("norm_layers_1", norm(part)),
        Some(("final_layer_norm", part)) => ("norm_layers_2", norm(part)),
        Some(("conv_1" | "conv_2", _)) => ("ffn_layers", part),
        _ => ("attn_layers", part),
    };
    Some(format!("enc_p.encoder.{room}.{number}.{part}"))
}

fn norm(part: &str) -> &str {
    match part {
        "weight" => "gamma",
        _ => "beta",
    }
}

/// The original code counts the reversals between flows too.
fn flow_number(name: &str) -> Option<String> {
    let count: fn(usize) -> usize = match name.split_once('.')?.0 {
        "flow" => |n| 2 * n,
        "dp" => |n| (2 * n).saturating_sub(1),
        _ => return None,
    };
    let (room, rest) = name.split_once(".flows.")?;
    let (number, part) = rest.split_once('.')?;
    let number = count(number.parse().ok()?);
    Some(format!("{room}.flows.{number}.{part}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hugging_face_names_become_the_original_ones() {
        let pairs = [
            ("text_encoder.embed_tokens.weight", "enc_p.emb.weight"),
            (
                "text_encoder.encoder.layers.3.attention.q_proj.bias",
                "enc_p.encoder.attn_layers.3.conv_q.bias",
            ),
            (
                "text_encoder.encoder.layers.0.attention.emb_rel_k",
                "enc_p.encoder.attn_layers.0.emb_rel_k",
            ),
            (
                "text_encoder.encoder.layers.1.final_layer_norm.weight",
                "enc_p.encoder.norm_layers_2.1.gamma",
            ),
            (
                "text_encoder.encoder.layers.1.feed_forward.conv_2.bias",
                "enc_p.encoder.ffn_layers.1.conv_2.bias",
            ),
            ("duration_predictor.conv_pre.weight", "dp.pre.weight"),
            (
                "duration_predictor.conv_dds.norms_1.2.bias",
                "dp.convs.norms_1.2.beta",
            ),
            ("duration_predictor.flows.0.translate", "dp.flows.0.m"),
            (
                "duration_predictor.flows.4.conv_dds.convs_dilated.1.weight",
                "dp.flows.7.convs.convs_sep.1.weight",
            ),
            (
                "duration_predictor.flows.2.conv_pre.bias",
                "dp.flows.3.pre.bias",
            ),
            ("duration_predictor.norm_1.weight", "dp.norm_1.gamma"),
            (
                "flow.flows.3.wavenet.in_layers.1.parametrizations.weight.original0",
                "flow.flows.6.enc.in_layers.1.parametrizations.weight.original0",
            ),
            ("flow.flows.1.conv_post.weight", "flow.flows.2.post.weight"),
            ("decoder.upsampler.2.weight", "dec.ups.2.weight"),
            (
                "decoder.resblocks.4.convs1.2.bias",
                "dec.resblocks.4.convs1.2.bias",
            ),
            ("decoder.conv_post.weight", "dec.conv_post.weight"),
            ("decoder.cond.weight", "dec.cond.weight"),
            ("embed_speaker.weight", "emb_g.weight"),
        ];
        for (theirs, ours) in pairs {
            assert_eq!(original(theirs), ours);
        }
    }

    #[test]
    fn modules_are_known_by_node_or_by_weight() {
        let node = |name: &str, inputs: &[&str]| Node {
            name: name.into(),
            op: "Conv".into(),
            domain: String::new(),
            inputs: inputs.iter().map(|i| i.to_string()).collect(),
            outputs: vec![],
            attributes: vec![],
        };
        let scoped = node(
            "/flow/flows.6/enc/in_layers.0/Conv",
            &["x", "onnx::Conv_1", "b"],
        );
        assert_eq!(
            module(&scoped).as_deref(),
            Some("flow.flows.6.enc.in_layers.0")
        );
        let old = node("Conv_17", &["x", "onnx::Conv_1", "dec.ups.0.bias"]);
        assert_eq!(module(&old).as_deref(), Some("dec.ups.0"));
        assert_eq!(module(&node("Conv_18", &["x", "1234"])), None);
    }
}
