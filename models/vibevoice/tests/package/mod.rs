//! A tiny package of formula weights, as `tests/reference/vibevoice_reference.py` describes it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use audiocpp_testing::formula;
use safetensors::{Dtype, serialize_to_file, tensor::TensorView};
use tempfile::TempDir;

/// A file of the tests' data; `kind` is `original` or `hf`.
pub fn data(kind: &str, file: &str) -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/vibevoice");
    data.join(kind).join(file)
}

fn json<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// A folder with config.json, the weights in two shards and their index, and a tokenizer of single
/// bytes with the four tokens.
pub fn write(kind: &str) -> TempDir {
    write_changed(kind, |_, _| ())
}

/// As [`write`], with the tensors as `change` leaves them.
pub fn write_changed(kind: &str, change: impl Fn(&str, &mut Vec<f32>)) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |file: &str| folder.path().join(file);
    fs::copy(data(kind, "config.json"), at("config.json")).unwrap();
    let layout: BTreeMap<String, Vec<usize>> = json(&data(kind, "layout.json"));
    let scalars: BTreeMap<String, f32> = json(&data(kind, "overrides.json"));
    let values = |name: &str, shape: &[usize]| match scalars.get(name) {
        Some(value) => vec![*value],
        None => formula::tensor(name, shape),
    };
    let all: Vec<(String, Vec<usize>, Vec<u8>)> = layout
        .into_iter()
        .chain(scalars.keys().map(|name| (name.clone(), Vec::new())))
        .map(|(name, shape)| {
            let mut values = values(&name, &shape);
            change(&name, &mut values);
            let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            (name, shape, bytes)
        })
        .collect();
    let mut places = serde_json::Map::new();
    for (i, part) in all.chunks(all.len().div_ceil(2)).enumerate() {
        let shard = format!("model-{}-of-2.safetensors", i + 1);
        let views: BTreeMap<&str, TensorView> = part
            .iter()
            .map(|(name, shape, bytes)| {
                let view = TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap();
                (name.as_str(), view)
            })
            .collect();
        serialize_to_file(views, None, &at(&shard)).unwrap();
        let here = part
            .iter()
            .map(|(name, ..)| (name.clone(), shard.clone().into()));
        places.extend(here);
    }
    let index = serde_json::json!({ "weight_map": places });
    fs::write(at("model.safetensors.index.json"), index.to_string()).unwrap();
    fs::write(at("tokenizer.json"), tokenizer().to_string()).unwrap();
    folder
}

/// Byte-level, without merges, in the form of Qwen's.
fn tokenizer() -> serde_json::Value {
    // GPT-2's alphabet: printable bytes stand for themselves, the others come after them.
    let printable = |b: u32| matches!(b, 33..=126 | 161..=172 | 174..=255);
    let mut next = 256;
    let bytes = (0..256u32).map(|b| {
        let c = if printable(b) { b } else { next };
        next += u32::from(!printable(b));
        (char::from_u32(c).unwrap().to_string(), b.into())
    });
    // Added tokens count from the end of the vocabulary.
    let unused = (256..500u32).map(|id| (format!("unused {id}"), id.into()));
    let vocab: serde_json::Map<String, serde_json::Value> = bytes.chain(unused).collect();
    let added = [
        (500, "<|endoftext|>"),
        (501, "<|vision_start|>"),
        (502, "<|vision_end|>"),
        (503, "<|vision_pad|>"),
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
