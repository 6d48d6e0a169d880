//! Tiny packages of formula weights in the form of published ones.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use safetensors::{Dtype, serialize_to_file, tensor::TensorView};

use crate::formula;

/// A file of the tests' data.
pub fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../data")
        .join(path)
}

fn json<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Writes a package into `folder`: the `config.json` of the tests' data folder `kind`, formula weights
/// of its `layout.json` and the scalars of its `overrides.json`, each as `change` leaves it, in two
/// shards with an index, and a tokenizer of single bytes with Qwen's tokens from 500 on.
///
/// # Panics
/// Panics when a file cannot be read or written.
pub fn write(kind: &str, folder: &Path, change: impl Fn(&str, &mut Vec<f32>)) {
    let data = data(kind);
    let at = |file: &str| folder.join(file);
    fs::copy(data.join("config.json"), at("config.json")).expect("a copy of config.json");
    let layout: BTreeMap<String, Vec<usize>> = json(&data.join("layout.json"));
    let scalars: BTreeMap<String, f32> = json(&data.join("overrides.json"));
    let formula = layout.into_iter().map(|(name, shape)| {
        let values = formula::tensor(&name, &shape);
        (name, (shape, values))
    });
    let scalars = scalars.into_iter();
    let scalars = scalars.map(|(name, value)| (name, (Vec::new(), vec![value])));
    // A scalar that the layout has, too, takes its place.
    let tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)> = formula.chain(scalars).collect();
    let all: Vec<(String, Vec<usize>, Vec<u8>)> = tensors
        .into_iter()
        .map(|(name, (shape, mut values))| {
            change(&name, &mut values);
            let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            (name, shape, bytes)
        })
        .collect();
    let mut places = serde_json::Map::new();
    for (i, part) in all.chunks(all.len().div_ceil(2).max(1)).enumerate() {
        let shard = format!("model-{}-of-2.safetensors", i + 1);
        let views = part.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F32, shape.clone(), bytes);
            (
                name.as_str(),
                view.expect("the bytes were made for this shape"),
            )
        });
        serialize_to_file(views, None, &at(&shard)).expect("a shard");
        let here = part
            .iter()
            .map(|(name, ..)| (name.clone(), shard.clone().into()));
        places.extend(here);
    }
    let index = serde_json::json!({ "weight_map": places });
    fs::write(at("model.safetensors.index.json"), index.to_string()).expect("the index");
    fs::write(at("tokenizer.json"), tokenizer().to_string()).expect("the tokenizer");
}

/// Byte-level, without merges, in the form of Qwen's.
fn tokenizer() -> serde_json::Value {
    // GPT-2's alphabet: printable bytes stand for themselves, the others come after them.
    let printable = |b: u32| matches!(b, 33..=126 | 161..=172 | 174..=255);
    let mut next = 256;
    let bytes = (0..256u32).map(|b| {
        let c = if printable(b) { b } else { next };
        next += u32::from(!printable(b));
        (
            char::from_u32(c).expect("a character").to_string(),
            b.into(),
        )
    });
    // Added tokens count from the end of the vocabulary.
    let unused = (256..500u32).map(|id| (format!("unused {id}"), id.into()));
    let vocab: serde_json::Map<String, serde_json::Value> = bytes.chain(unused).collect();
    let added = [
        (500, "<|endoftext|>"),
        (501, "<|vision_start|>"),
        (502, "<|vision_end|>"),
        (503, "<|vision_pad|>"),
        (504, "<|im_start|>"),
        (505, "<|im_end|>"),
    ];
    let added = added.map(|(id, content)| {
        serde_json::json!({
            "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true
        })
    });
    serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {
            "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true
        },
        "post_processor": null,
        "decoder": {
            "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true
        },
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
            "end_of_word_suffix": "", "fuse_unk": false, "byte_fallback": false, "vocab": vocab,
            "merges": []
        }
    })
}
