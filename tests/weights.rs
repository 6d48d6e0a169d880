//! Weight files from the outside: every format's tensors, values and errors.

mod weights_files;

use audiocpp::weights::{Error, Format, Source, StoredType, Value, onnx, open, torch};
use std::path::Path;
use weights_files::{self as files, fixtures};

fn opened(name: &str, bytes: &[u8]) -> Result<Box<dyn Source>, Error> {
    audiocpp::weights::open_bytes(name, bytes.to_vec().into())
}

/// Shape, type and f32 values of a tensor.
fn tensor(source: &dyn Source, name: &str) -> (Vec<usize>, StoredType, Vec<f32>) {
    let info = source
        .find(name)
        .unwrap_or_else(|| panic!("no tensor `{name}`"));
    let bytes = source.bytes(info).unwrap();
    let values = audiocpp::weights::to_f32(&bytes, info.dtype).unwrap();
    (info.shape.clone(), info.dtype, values)
}

const QUARTERS: [f32; 6] = [0.0, 0.25, 0.5, 0.75, 1.0, 1.25];

#[test]
fn safetensors_have_names_shapes_and_metadata() {
    let file = opened("a.safetensors", &files::small_safetensors()).unwrap();
    assert_eq!(file.format(), Format::Safetensors);
    assert_eq!(file.tensors().len(), 3);
    assert_eq!(
        file.metadata().get("format").and_then(Value::as_str),
        Some("pt")
    );
    let weight = tensor(&*file, "layer.weight");
    assert_eq!(weight, (vec![2, 3], StoredType::F32, QUARTERS.to_vec()));
    assert_eq!(tensor(&*file, "layer.bias").2, [1.0, -2.0]);
    assert_eq!(tensor(&*file, "empty").0, [0, 4]);
}

#[test]
fn a_folder_is_opened_by_its_shard_index() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let shard = |name| files::safetensors(&[(name, "F32", &[1, 2], &files::quarters(2))]);
    put("model-1.safetensors", &shard("a"));
    put("model-2.safetensors", &shard("b"));
    let index = |map: &str| format!("{{\"metadata\":{{}},\"weight_map\":{map}}}");
    let name = "model.safetensors.index.json";
    put(
        name,
        index(r#"{"a":"model-1.safetensors","b":"model-2.safetensors"}"#).as_bytes(),
    );
    let model = open(folder.path()).unwrap();
    assert_eq!(
        model.tensors().iter().map(|t| &t.name).collect::<Vec<_>>(),
        ["a", "b"]
    );
    assert_eq!(tensor(&*model, "b").2, [0.0, 0.25]);

    put(name, index(r#"{"c":"model-1.safetensors"}"#).as_bytes());
    assert!(
        open(folder.path())
            .err()
            .unwrap()
            .to_string()
            .contains("tensor `c`")
    );
    put(name, index(r#"{"a":"../model-1.safetensors"}"#).as_bytes());
    assert!(
        open(folder.path())
            .err()
            .unwrap()
            .to_string()
            .contains("outside its folder")
    );
}

#[test]
fn a_folder_with_one_weight_file_needs_no_name() {
    let folder = tempfile::tempdir().unwrap();
    let error = open(folder.path()).err().unwrap().to_string();
    assert!(error.contains("no weight file"), "{error}");
    std::fs::write(folder.path().join("config.json"), "{}").unwrap();
    std::fs::write(folder.path().join("voice.gguf"), files::gguf()).unwrap();
    assert_eq!(open(folder.path()).unwrap().format(), Format::Gguf);
    std::fs::write(folder.path().join("other.gguf"), files::gguf()).unwrap();
    let error = open(folder.path()).err().unwrap().to_string();
    assert!(error.contains("other.gguf, voice.gguf"), "{error}");
}

#[test]
fn gguf_has_values_and_reversed_shapes() {
    let file = opened("a.gguf", &files::gguf()).unwrap();
    assert_eq!(file.format(), Format::Gguf);
    let get = |key| file.metadata().get(key).unwrap();
    assert_eq!(get("general.architecture").as_str(), Some("demo"));
    assert_eq!(get("demo.eps").as_f64(), Some(f64::from(1e-5f32)));
    assert_eq!(get("demo.flag").as_bool(), Some(true));
    assert_eq!(get("demo.wide"), &Value::Int(u64::MAX.into()));
    assert_eq!(
        get("tokens").as_list().unwrap(),
        [Value::from("<s>"), Value::Bytes(vec![0xff])]
    );
    assert_eq!(get("scores").as_floats(), Some(&[0.0, 1.0][..]));
    assert_eq!(
        tensor(&*file, "a.weight"),
        (vec![2, 3], StoredType::F32, QUARTERS.to_vec())
    );
    let (shape, dtype, values) = tensor(&*file, "b.weight");
    assert_eq!((shape, dtype), (vec![1, 32], StoredType::Q8_0));
    assert!(values.iter().enumerate().all(|(i, v)| *v == i as f32 / 2.0));
}

#[test]
fn gguf_parts_are_joined() {
    let folder = tempfile::tempdir().unwrap();
    let part = |number: u32, name: &str| {
        let file = files::Fields::default().raw(b"GGUF").u32(3).u64(1).u64(3);
        let file = file.text("split.no").u32(4).u32(number);
        let file = file.text("split.count").u32(4).u32(2);
        let file = file.text("general.alignment").u32(4).u32(1);
        let file = file.text(name).u32(1).u64(2).u32(0).u64(0);
        file.raw(&files::quarters(2)).0
    };
    let path = |n: u32| folder.path().join(format!("m-{n:05}-of-00002.gguf"));
    std::fs::write(path(1), part(0, "a")).unwrap();
    let error = open(path(1)).err().unwrap();
    assert!(matches!(&error, Error::Io { path, .. } if path.ends_with("m-00002-of-00002.gguf")));
    std::fs::write(path(2), part(1, "b")).unwrap();
    assert_eq!(tensor(&*open(path(1)).unwrap(), "b").2, [0.0, 0.25]);
    assert!(
        open(path(2))
            .err()
            .unwrap()
            .to_string()
            .contains("open the first")
    );
}

#[test]
fn whisper_cpp_has_hparams_filters_and_vocabulary() {
    let file = opened("ggml-a.bin", &files::whisper_cpp()).unwrap();
    assert_eq!(file.format(), Format::WhisperCpp);
    let hparam = |name| file.metadata().at(&["hparams", name]).unwrap().as_i64();
    assert_eq!(hparam("n_vocab"), Some(51864));
    assert_eq!(hparam("n_mels"), Some(80));
    assert_eq!(hparam("ftype"), Some(7));
    assert_eq!(hparam("quantization_version"), Some(2));
    let filters = file.metadata().at(&["mel_filters", "data"]).unwrap();
    assert_eq!(filters.as_floats(), Some(&QUARTERS[..]));
    let words: Vec<_> = file
        .metadata()
        .get("vocab")
        .unwrap()
        .as_list()
        .unwrap()
        .iter()
        .map(|w| w.as_bytes().unwrap())
        .collect();
    assert_eq!(words, [&b"ab"[..], b"", b"\xff"]);
    assert_eq!(tensor(&*file, "encoder.conv1.weight").0, [1, 2, 3]);
    assert_eq!(tensor(&*file, "encoder.mlp.weight").2[31], 15.5);
}

#[test]
fn ct2_has_aliases_and_undoes_int8_scales() {
    let file = opened("model.bin", &files::ct2()).unwrap();
    assert_eq!(file.format(), Format::CTranslate2);
    assert_eq!(
        file.metadata().get("spec").unwrap().as_str(),
        Some("DemoSpec")
    );
    assert_eq!(file.metadata().get("revision").unwrap().as_i64(), Some(3));
    assert_eq!(file.find("tied/weight"), file.find("a/weight"));
    let (shape, dtype, values) = tensor(&*file, "b/weight");
    assert_eq!((shape, dtype), (vec![2, 2], StoredType::F32));
    assert_eq!(values, [0.5, -1.0, 254.0, 0.0]);
    assert_eq!(tensor(&*file, "heads"), (vec![], StoredType::I8, vec![6.0]));
}

#[test]
fn torch_files_of_every_layout_hold_the_same() {
    for name in ["zip.pt", "deflated.pt", "legacy.pt"] {
        let file = open(fixtures().join(name)).unwrap();
        assert_eq!(file.format(), Format::Torch);
        let values = |name: &str| tensor(&*file, name).2;
        assert_eq!(tensor(&*file, "state.weight").0, [2, 3], "{name}");
        assert_eq!(
            values("state.weight"),
            [-1.0, -0.75, -0.5, -0.25, 0.0, 0.25]
        );
        assert_eq!(
            values("state.turned"),
            [-1.0, -0.25, -0.75, 0.0, -0.5, 0.25]
        );
        assert_eq!(values("state.tail"), [0.5, 0.75, 1.0, 1.25, 1.5, 1.75]);
        assert_eq!(values("state.half"), [0.5, -0.5]);
        assert_eq!(values("state.brain"), [-2.0, 0.25]);
        assert_eq!(
            tensor(&*file, "state.steps"),
            (vec![2], StoredType::I64, vec![7.0, -7.0])
        );
        assert_eq!(
            tensor(&*file, "list.0"),
            (vec![], StoredType::I64, vec![-7.0])
        );
        assert_eq!(file.tensors().len(), 7);
        let tree = file.metadata();
        assert_eq!(tree.get("epoch").unwrap().as_i64(), Some(3));
        assert_eq!(
            tree.at(&["kwargs", "channels"]).unwrap().as_usize(),
            Some(48)
        );
        assert_eq!(tree.at(&["kwargs", "big"]), Some(&Value::Int(1 << 70)));
        assert_eq!(
            tree.at(&["state", "half"]),
            Some(&Value::Tensor("state.half".into()))
        );
        assert_eq!(tree.to_json()["kwargs"]["sources"][1], "bass");
    }
}

#[test]
fn numpy_arrays_are_read_from_pickles_and_archives() {
    for name in ["arrays.ckpt", "arrays.pkl", "arrays.npz"] {
        let file = open(fixtures().join(name)).unwrap();
        let weight = (
            vec![2, 3],
            StoredType::F32,
            vec![0.0, 0.5, 1.0, 1.5, 2.0, 2.5],
        );
        assert_eq!(tensor(&*file, "conv.weight"), weight, "{name}");
        assert_eq!(tensor(&*file, "columns"), weight, "{name}");
        let (shape, dtype, values) = tensor(&*file, "bytes");
        assert_eq!((shape, dtype), (vec![256], StoredType::U8));
        assert!(values.iter().enumerate().all(|(i, v)| *v == i as f32));
        if name == "arrays.npz" {
            assert_eq!(file.format(), Format::Numpy);
            assert_eq!(tensor(&*file, "scalar").2, [0.25]);
        } else {
            assert_eq!(file.metadata().get("scalar"), Some(&Value::Float(0.25)));
            assert_eq!(file.metadata().get("step"), Some(&Value::Int(-5)));
        }
    }
}

#[test]
fn a_class_in_a_pickle_is_refused_by_name_or_read_as_a_record() {
    let path = fixtures().join("class.pt");
    let error = open(&path).err().unwrap();
    assert!(matches!(&error, Error::UnknownClass { class, .. } if class == "demo.Model"));
    for allowed in ["demo.Model", "demo.*"] {
        let file = torch::open(&path, &[allowed]).unwrap();
        let tree = file.metadata();
        assert_eq!(tree.get("klass"), Some(&Value::Class("demo.Model".into())));
        assert_eq!(tree.at(&["model", "width"]).unwrap().as_i64(), Some(64));
    }
    // `os.system` stands on no list.
    let attack = opened("a.pt", b"\x80\x02cos\nsystem\nX\x02\0\0\0id\x85R.")
        .err()
        .unwrap();
    assert!(attack.to_string().contains("`os.system`"), "{attack}");
}

#[test]
fn small_pickles_of_huge_trees_are_refused() {
    // Each list holds the one before it twice: 2^40 leaves.
    let mut doubled = b"\x80\x02]q\x00".to_vec();
    for _ in 0..40 {
        doubled.extend_from_slice(b"h\x00h\x00\x86q\x00");
    }
    doubled.push(b'.');
    // A million lists in each other would overflow the stack when dropped.
    let mut deep = b"\x80\x02".to_vec();
    deep.extend_from_slice(&b"(".repeat(1_000_000));
    deep.extend_from_slice(&b"l".repeat(1_000_000));
    deep.push(b'.');
    // A list that holds itself.
    let endless = b"\x80\x02]q\x00h\x00a.".to_vec();
    for (file, what) in [(doubled, "so often"), (deep, "deep"), (endless, "deep")] {
        let error = opened("a.pt", &file).err().unwrap().to_string();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn onnx_has_initialisers_constants_and_nodes() {
    let model = onnx::Model::open(fixtures().join("graph.onnx")).unwrap();
    let values = |name: &str| tensor(&model, name).2;
    assert_eq!(
        tensor(&model, "raw"),
        (vec![2, 2], StoredType::F32, vec![1.0, 2.0, 3.0, 4.0])
    );
    assert_eq!(values("floats"), [0.5, -0.5, 1.0]);
    assert_eq!(
        tensor(&model, "halves"),
        (vec![2], StoredType::F16, vec![1.5, -2.0])
    );
    assert_eq!(
        tensor(&model, "bytes"),
        (vec![3], StoredType::I8, vec![-1.0, 0.0, 127.0])
    );
    assert_eq!(values("unsigned"), [0.0, 255.0]);
    assert_eq!(values("longs"), [2f32.powi(40), -1.0]);
    assert_eq!(values("doubles"), [0.1]);
    assert_eq!(values("outside"), [11.0, 12.0, 13.0, 14.0]);
    assert_eq!(values("constant"), [2.0, 4.0, 6.0, 8.0]);
    assert_eq!(
        tensor(&model, "axes"),
        (vec![2], StoredType::I64, vec![0.0, 2.0])
    );
    assert!(model.find("words").is_none());

    let graph = model.graph();
    let ops: Vec<_> = graph.nodes.iter().map(|n| n.op.as_str()).collect();
    assert_eq!(ops, ["Constant", "Constant", "If", "Conv"]);
    let conv = &graph.nodes[3];
    assert_eq!(conv.inputs, ["x", "raw"]);
    assert_eq!(
        conv.attribute("kernel_shape"),
        Some(&onnx::Attribute::Ints(vec![3]))
    );
    assert_eq!(
        conv.attribute("auto_pad"),
        Some(&onnx::Attribute::Text("VALID".into()))
    );
    assert_eq!(conv.attribute("alpha"), Some(&onnx::Attribute::Float(0.5)));
    assert_eq!(graph.inputs[0].shape, [None, Some(2)]);

    // Both branches call their constant `inner`.
    let branch = |name| match graph.nodes[2].attribute(name) {
        Some(onnx::Attribute::Graph(branch)) => branch.constant("inner").unwrap().to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(values(&branch("then_branch")), [1.0]);
    assert_eq!(values(&branch("else_branch")), [2.0]);

    let metadata = model.metadata();
    assert_eq!(metadata.at(&["opset", ""]).unwrap().as_i64(), Some(17));
    assert_eq!(
        metadata.at(&["props", "sample_rate"]).unwrap().as_str(),
        Some("16000")
    );
}

#[test]
fn what_is_not_read_is_described() {
    let says = |name: &str, bytes: &[u8], what: &str| {
        let error = opened(name, bytes).err().unwrap().to_string();
        assert!(error.contains(name) && error.contains(what), "{error}");
    };
    says(
        "a.safetensors",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
        "Git LFS pointer",
    );
    says("a.gguf", b"<!DOCTYPE html><html>", "web page");
    says("a.onnx", b"", "empty");
    says("a.bin", b"\x01\x02\x03nothing", "01, 02, 03");
    says("a.gguf", b"GGUF\x00\x00\x00\x03", "big-endian");
    says("a.gguf", b"GGUF\x01\x00\x00\x00", "version 1");
}

#[test]
fn a_file_cut_short_says_where() {
    let whole = files::whisper_cpp();
    let error = opened("ggml-a.bin", &whole[..whole.len() - 1])
        .err()
        .unwrap();
    let Error::Truncated {
        what,
        offset,
        wanted,
        left,
        ..
    } = error
    else {
        panic!("{error}");
    };
    assert!(what.contains("encoder.mlp.weight"), "{what}");
    assert_eq!((offset, wanted, left), (whole.len() - 34, 34, 33));

    let whole = files::small_safetensors();
    let error = opened("a.safetensors", &whole[..whole.len() - 1])
        .err()
        .unwrap();
    assert!(
        matches!(&error, Error::Truncated { what, .. } if what.contains("layer.bias")),
        "{error}"
    );
    let error = open(Path::new("/no/such/file.gguf")).err().unwrap();
    assert!(error.to_string().contains("/no/such/file.gguf"));
}
