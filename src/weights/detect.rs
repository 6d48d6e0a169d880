//! Which format a file or folder is: the content decides.

use super::{
    Error, Format, Result, Source,
    archive::{Archive, ZIP},
    container::Container,
    ct2, gguf,
    map::map,
    numpy, onnx, safetensors, torch, whisper_cpp,
};
use bytes::Bytes;
use std::path::{Path, PathBuf};

/// Opens the weights at `path`: a file of any supported format, an index of shards, or a model
/// folder that holds one of these.
pub fn open(path: impl AsRef<Path>) -> Result<Box<dyn Source>> {
    let path = path.as_ref();
    let file = if path.is_dir() {
        in_folder(path)?
    } else {
        path.to_owned()
    };
    let name = file.file_name().and_then(|n| n.to_str()).unwrap_or("");
    if name.ends_with(safetensors::INDEX_SUFFIX) {
        let shards = safetensors::read_sharded(&file, read)?;
        return Ok(Box::new(shards));
    }
    let data = map(&file)?;
    open_bytes(&file, data)
}

/// Reads weights that are already in memory; `path` appears in messages only, but lets parts
/// of a split model be found beside it.
pub fn open_bytes(path: impl AsRef<Path>, data: Bytes) -> Result<Box<dyn Source>> {
    let path = path.as_ref();
    match detect(path, &data) {
        Some(Format::Onnx) => Ok(Box::new(onnx::Model::read(path, &data)?)),
        format => Ok(Box::new(read_as(format, path, &data)?)),
    }
}

/// Reads one shard of a model.
fn read(path: &Path, data: &Bytes) -> Result<Container> {
    read_as(detect(path, data), path, data)
}

fn read_as(format: Option<Format>, path: &Path, data: &Bytes) -> Result<Container> {
    match format {
        Some(Format::Gguf) => gguf::read(path, data),
        Some(Format::WhisperCpp) => whisper_cpp::read(path, data),
        Some(Format::Safetensors) => safetensors::read(path, data),
        Some(Format::CTranslate2) => ct2::read(path, data),
        Some(Format::Torch) => torch::read(path, data, &[]),
        Some(Format::Numpy) if data.starts_with(numpy::MAGIC) => numpy::read(path, data),
        Some(Format::Numpy) => numpy::read_archive(path, data),
        Some(Format::Onnx) | None => Err(Error::Unsupported {
            path: path.to_owned(),
            found: describe(data),
        }),
    }
}

/// Format of a whole file by its first bytes; a protobuf has no magic number, so a file that
/// is nothing else counts as ONNX if it starts as exporters start it or is called so.
fn detect(path: &Path, data: &Bytes) -> Option<Format> {
    let is_onnx_name = path.extension().is_some_and(|e| e == "onnx") && known_other(data).is_none();
    if data.starts_with(gguf::MAGIC) {
        Some(Format::Gguf)
    } else if data.starts_with(&whisper_cpp::MAGIC) {
        Some(Format::WhisperCpp)
    } else if looks_like_ct2(data) {
        Some(Format::CTranslate2)
    } else if looks_like_safetensors(data) {
        Some(Format::Safetensors)
    } else if data.starts_with(&[torch::PICKLE]) {
        Some(Format::Torch)
    } else if data.starts_with(ZIP) {
        Some(zip_format(path, data))
    } else if data.starts_with(numpy::MAGIC) {
        Some(Format::Numpy)
    } else if data.starts_with(&[ONNX_IR_VERSION]) || (is_onnx_name && !data.is_empty()) {
        Some(Format::Onnx)
    } else {
        None
    }
}

/// torch or numpy; an archive that cannot be opened is most likely a checkpoint cut off.
fn zip_format(path: &Path, data: &Bytes) -> Format {
    match Archive::open(path, Format::Torch, data) {
        Ok(archive) if torch::archive::pickle_name(&archive).is_none() => Format::Numpy,
        Err(_) if path.extension().is_some_and(|e| e == "npz") => Format::Numpy,
        _ => Format::Torch,
    }
}

/// Tag of the first field of an ONNX model.
const ONNX_IR_VERSION: u8 = 0x08;

/// A header length, not absurd, then a JSON object.
fn looks_like_safetensors(data: &[u8]) -> bool {
    data.len() > 8 && data[8] == b'{' && data[4..8] == [0; 4]
}

/// A small version, then a NUL-terminated name of letters and digits.
fn looks_like_ct2(data: &[u8]) -> bool {
    let [v0, v1, v2, v3, n0, n1, rest @ ..] = data else {
        return false;
    };
    let version = u32::from_le_bytes([*v0, *v1, *v2, *v3]);
    let length = usize::from(u16::from_le_bytes([*n0, *n1]));
    (1..=16).contains(&version)
        && (2..=128).contains(&length)
        && rest.len() >= length
        && rest[length - 1] == 0
        && rest[..length - 1].iter().all(|b| b.is_ascii_alphanumeric())
}

/// What a file that is not read looks like, for the error message.
fn known_other(data: &[u8]) -> Option<&'static str> {
    let known: [(usize, &[u8], &'static str); 11] = [
        (
            0,
            b"version https://git-lfs",
            "is a Git LFS pointer, not the file itself: fetch it with `git lfs pull` or download it from the model page",
        ),
        (
            0,
            b"<!DOCTYPE",
            "is a web page, probably an error or log-in page saved by a download",
        ),
        (
            0,
            b"<html",
            "is a web page, probably an error or log-in page saved by a download",
        ),
        (0, b"HAMAPK", "looks like a hama package"),
        (
            4,
            b"ORTM",
            "looks like an ONNX Runtime `.ort` file: use the `.onnx` file it was made from",
        ),
        (4, b"TFL3", "looks like a TensorFlow Lite model"),
        (0, b"\x89HDF", "looks like HDF5 (Keras)"),
        (0, b"\x1f\x8b", "is gzip-compressed: unpack it first"),
        (257, b"ustar", "is a tar archive: unpack it first"),
        (0, b"RIFF", "is a RIFF (sound) file, not weights"),
        (0, b"{", "is JSON: give the weight file or the folder"),
    ];
    known
        .into_iter()
        .find(|(at, magic, _)| data.get(*at..).is_some_and(|d| d.starts_with(magic)))
        .map(|(_, _, what)| what)
}

fn describe(data: &[u8]) -> String {
    if data.is_empty() {
        return "the file is empty".into();
    }
    if let Some(what) = known_other(data) {
        return what.into();
    }
    let first = &data[..data.len().min(16)];
    format!("unknown weight format, first bytes {first:02x?}")
}

/// Names that model folders use for their weights, the usual ones first.
const FOLDER_NAMES: [&str; 7] = [
    "model.safetensors",
    "model.safetensors.index.json",
    "diffusion_pytorch_model.safetensors",
    "diffusion_pytorch_model.safetensors.index.json",
    "model.bin",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
];
/// Endings by which a folder's only weight file is found.
const ENDINGS: [&str; 10] = [
    "safetensors",
    "gguf",
    "onnx",
    "bin",
    "pt",
    "pth",
    "th",
    "ckpt",
    "npz",
    "index.json",
];

/// The weight file of a model folder.
fn in_folder(folder: &Path) -> Result<PathBuf> {
    for name in FOLDER_NAMES {
        let file = folder.join(name);
        if file.is_file() {
            return Ok(file);
        }
    }
    let io = |source| Error::Io {
        path: folder.to_owned(),
        source,
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let name = entry.map_err(io)?.file_name();
        let name = name.to_string_lossy().into_owned();
        let is_weights = ENDINGS.iter().any(|end| {
            name.strip_suffix(end)
                .is_some_and(|stem| stem.ends_with('.'))
        });
        if is_weights && folder.join(&name).is_file() {
            found.push(name);
        }
    }
    found.sort();
    match &found[..] {
        [one] => Ok(folder.join(one)),
        [] => Err(Error::Unsupported {
            path: folder.to_owned(),
            found: format!(
                "the folder has no weight file (looked for {} and any single *.{})",
                FOLDER_NAMES.join(", "),
                ENDINGS.join(", *.")
            ),
        }),
        many => Err(Error::Unsupported {
            path: folder.to_owned(),
            found: format!(
                "the folder has several weight files, name one of them: {}",
                many.join(", ")
            ),
        }),
    }
}
