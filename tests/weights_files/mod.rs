//! Small files of every weight format: written here, or read from `tests/data/weights`.
#![allow(dead_code)]

use std::path::{Path, PathBuf};

/// The folder of the files that `tests/reference/weights_fixtures.py` writes.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/weights")
}

/// Values 0, 0.25, 0.5, … as f32 bytes.
pub fn quarters(count: usize) -> Vec<u8> {
    (0..count)
        .flat_map(|i| (i as f32 / 4.0).to_le_bytes())
        .collect()
}

/// A safetensors file: header entries and data.
pub fn safetensors(tensors: &[(&str, &str, &[usize], &[u8])]) -> Vec<u8> {
    let mut header = serde_json::json!({ "__metadata__": { "format": "pt" } });
    let mut data = Vec::new();
    for (name, dtype, shape, bytes) in tensors {
        let start = data.len();
        data.extend_from_slice(bytes);
        header[*name] = serde_json::json!({
            "dtype": dtype, "shape": shape, "data_offsets": [start, data.len()],
        });
    }
    let header = header.to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(&data);
    file
}

/// The safetensors file that most tests use.
pub fn small_safetensors() -> Vec<u8> {
    safetensors(&[
        ("layer.weight", "F32", &[2, 3], &quarters(6)),
        ("layer.bias", "F16", &[2], &[0, 0x3c, 0, 0xc0]),
        ("empty", "I64", &[0, 4], &[]),
    ])
}

/// Appends little-endian fields.
#[derive(Default)]
pub struct Fields(pub Vec<u8>);

impl Fields {
    pub fn u8(mut self, v: u8) -> Self {
        self.0.push(v);
        self
    }
    pub fn u16(self, v: u16) -> Self {
        self.raw(&v.to_le_bytes())
    }
    pub fn u32(self, v: u32) -> Self {
        self.raw(&v.to_le_bytes())
    }
    pub fn u64(self, v: u64) -> Self {
        self.raw(&v.to_le_bytes())
    }
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }
    /// GGUF text: a 64-bit length, then the bytes.
    pub fn text(self, text: &str) -> Self {
        self.u64(text.len() as u64).raw(text.as_bytes())
    }
    /// CTranslate2 text: a 16-bit length, then the bytes and a NUL.
    pub fn name(self, text: &str) -> Self {
        self.u16(text.len() as u16 + 1).raw(text.as_bytes()).u8(0)
    }
    fn align(mut self, to: usize) -> Self {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
        self
    }
}

/// Bytes of one q8_0 block: scale 0.5, quants 0 to 31.
pub fn q8_0_block() -> Vec<u8> {
    Fields::default()
        .u16(0x3800)
        .raw(&std::array::from_fn::<u8, 32, _>(|i| i as u8))
        .0
}

/// A GGUF file with one value of each kind, an f32 `[2, 3]` and a q8_0 `[1, 32]`.
pub fn gguf() -> Vec<u8> {
    let block = q8_0_block();
    let file = Fields::default().raw(b"GGUF").u32(3).u64(2).u64(7);
    let file = file.text("general.architecture").u32(8).text("demo");
    let file = file.text("general.alignment").u32(4).u32(64);
    let file = file.text("demo.eps").u32(6).u32(1e-5f32.to_bits());
    let file = file.text("demo.flag").u32(7).u8(1);
    let file = file.text("demo.wide").u32(10).u64(u64::MAX);
    let file = file
        .text("tokens")
        .u32(9)
        .u32(8)
        .u64(2)
        .text("<s>")
        .u64(1)
        .u8(0xff);
    let file = file
        .text("scores")
        .u32(9)
        .u32(6)
        .u64(2)
        .u32(0)
        .u32(1f32.to_bits());
    // Dimensions run from the innermost.
    let file = file.text("a.weight").u32(2).u64(3).u64(2).u32(0).u64(0);
    let file = file.text("b.weight").u32(2).u64(32).u64(1).u32(8).u64(64);
    file.align(64).raw(&quarters(6)).align(64).raw(&block).0
}

/// A whisper.cpp file with two mel bands, three tokens, a conv kernel and a q8_0 matrix.
pub fn whisper_cpp() -> Vec<u8> {
    let mut file = Fields::default().u32(0x6767_6d6c);
    for hparam in [51864, 1500, 384, 6, 4, 448, 384, 6, 4, 80, 2007] {
        file = file.u32(hparam);
    }
    file = file.u32(2).u32(3).raw(&quarters(6));
    file = file.u32(3).u32(2).raw(b"ab").u32(0).u32(1).u8(0xff);
    let name = "encoder.conv1.weight";
    file = file.u32(3).u32(name.len() as u32).u32(0);
    file = file
        .u32(3)
        .u32(2)
        .u32(1)
        .raw(name.as_bytes())
        .raw(&quarters(6));
    let name = "encoder.mlp.weight";
    file = file.u32(2).u32(name.len() as u32).u32(8);
    file.u32(32)
        .u32(1)
        .raw(name.as_bytes())
        .raw(&q8_0_block())
        .0
}

/// A CTranslate2 file with an f32 matrix, an int8 matrix with row scales, and an alias.
pub fn ct2() -> Vec<u8> {
    let file = Fields::default().u32(6).name("DemoSpec").u32(3).u32(4);
    let file = file
        .name("a/weight")
        .u8(2)
        .u32(2)
        .u32(3)
        .u8(0)
        .u32(24)
        .raw(&quarters(6));
    let file = file
        .name("b/weight")
        .u8(2)
        .u32(2)
        .u32(2)
        .u8(1)
        .u32(4)
        .raw(&[1, 0xfe, 127, 0]);
    let scales = Fields::default()
        .u32(2f32.to_bits())
        .u32(0.5f32.to_bits())
        .0;
    let file = file
        .name("b/weight_scale")
        .u8(1)
        .u32(2)
        .u8(0)
        .u32(8)
        .raw(&scales);
    let file = file.name("heads").u8(0).u8(1).u32(1).u8(6);
    file.u32(1).name("tied/weight").name("a/weight").0
}

/// One valid file of each kind that `weights::open` reads, by a name that fits its content.
pub fn one_of_each() -> Vec<(String, Vec<u8>)> {
    let mut files = vec![
        ("small.safetensors".to_owned(), small_safetensors()),
        ("small.gguf".to_owned(), gguf()),
        ("ggml-small.bin".to_owned(), whisper_cpp()),
        ("model.bin".to_owned(), ct2()),
    ];
    for name in [
        "zip.pt",
        "deflated.pt",
        "legacy.pt",
        "arrays.ckpt",
        "arrays.pkl",
        "arrays.npz",
        "graph.onnx",
    ] {
        let bytes = std::fs::read(fixtures().join(name)).expect("the fixture is in the repository");
        files.push((name.to_owned(), bytes));
    }
    files
}
