//! whisper.cpp `.bin`: hyper-parameters, mel filters, vocabulary, then tensors to the end.

use super::{
    Format, Result, StoredType, Value,
    container::{Container, Data},
    cursor::Cursor,
};
use bytes::Bytes;
use std::path::Path;

/// The letters "ggml" as a little-endian number.
pub(super) const MAGIC: [u8; 4] = 0x6767_6d6cu32.to_le_bytes();

const HPARAMS: [&str; 11] = [
    "n_vocab",
    "n_audio_ctx",
    "n_audio_state",
    "n_audio_head",
    "n_audio_layer",
    "n_text_ctx",
    "n_text_state",
    "n_text_head",
    "n_text_layer",
    "n_mels",
    "ftype",
];

/// Reads a whole file in memory.
///
/// Metadata: `hparams` (the eleven numbers by name; `ftype` without the quantisation version
/// times 1000, which stands in `quantization_version`), `mel_filters` (`n_mel`, `n_fft` and
/// `data`, row-major `[n_mel, n_fft]`), `vocab` (byte strings by token number; shorter than
/// `n_vocab`, the special tokens are not stored).
pub(super) fn read(path: &Path, data: &Bytes) -> Result<Container> {
    let mut cursor = Cursor::new(path, Format::WhisperCpp, data);
    let magic = cursor.take(4, "magic")?;
    if magic != MAGIC[..] {
        return Err(cursor.invalid(format!("starts with {magic:?}, not with 0x67676d6c")));
    }
    let mut container = Container::new(path, Format::WhisperCpp);
    let hparams = hparams(&mut cursor)?;
    let mel = mel_filters(&mut cursor)?;
    let vocab = vocabulary(&mut cursor)?;
    container.metadata = Value::Map(vec![
        ("hparams".into(), hparams),
        ("mel_filters".into(), mel),
        ("vocab".into(), vocab),
    ]);
    while !cursor.at_end() {
        tensor(&mut cursor, &mut container)?;
    }
    Ok(container)
}

fn hparams(cursor: &mut Cursor<'_>) -> Result<Value> {
    let mut entries = Vec::new();
    for name in HPARAMS {
        let mut value = cursor.i32(format_args!("hyper-parameter {name}"))?;
        if name == "ftype" {
            let version = i128::from(value / 1000);
            entries.push(("quantization_version".into(), Value::Int(version)));
            value %= 1000;
        }
        if value < 0 {
            return Err(cursor.invalid(format!("hyper-parameter {name} is {value}")));
        }
        entries.push((name.into(), Value::Int(value.into())));
    }
    Ok(Value::Map(entries))
}

fn mel_filters(cursor: &mut Cursor<'_>) -> Result<Value> {
    let n_mel = cursor.u32("mel filter count")?;
    let n_fft = cursor.u32("mel filter width")?;
    let size = u64::from(n_mel)
        .saturating_mul(u64::from(n_fft))
        .saturating_mul(4);
    let data = cursor
        .take(size, "mel filters")?
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    Ok(Value::Map(vec![
        ("n_mel".into(), Value::Int(n_mel.into())),
        ("n_fft".into(), Value::Int(n_fft.into())),
        ("data".into(), Value::Floats(data)),
    ]))
}

fn vocabulary(cursor: &mut Cursor<'_>) -> Result<Value> {
    let n = cursor.u32("vocabulary size")?;
    let n = cursor.count(n.into(), 4, "vocabulary entries")?;
    let mut words = Vec::new();
    for i in 0..n {
        let length = cursor.u32(format_args!("length of token {i}"))?;
        let word = cursor.take(length.into(), format_args!("token {i}"))?;
        words.push(Value::Bytes(word.to_vec()));
    }
    Ok(Value::List(words))
}

fn tensor(cursor: &mut Cursor<'_>, container: &mut Container) -> Result<()> {
    let start = cursor.pos;
    let dims = cursor.u32("tensor dimension count")?;
    let name_length = cursor.u32("tensor name length")?;
    let kind = cursor.u32("tensor type")?;
    if dims > 4 {
        return Err(cursor.invalid(format!(
            "tensor at offset {start} has {dims} dimensions, at most 4 are possible"
        )));
    }
    let mut shape = Vec::new();
    for _ in 0..dims {
        shape.push(cursor.u32("tensor dimensions")? as usize);
    }
    shape.reverse();
    let name = cursor.text(name_length.into(), "tensor name")?;
    let dtype = StoredType::from_ggml_id(kind).ok_or_else(|| {
        cursor.invalid(format!("tensor `{name}` has the unknown ggml type {kind}"))
    })?;
    let size = dtype.nbytes(&shape).ok_or_else(|| {
        cursor.invalid(format!(
            "tensor `{name}`: shape {shape:?} is impossible for {dtype}"
        ))
    })?;
    let bytes = cursor.take(size as u64, format_args!("data of tensor `{name}`"))?;
    container.push(name, dtype, shape, Data::Plain(bytes))
}
