//! An opened weight file of any format: a list of tensors over shared bytes.

use super::{Error, Format, Result, Source, StoredType, TensorInfo, Value, element_count};
use bytes::Bytes;
use std::{
    borrow::Cow,
    collections::HashMap,
    path::{Path, PathBuf},
};

/// Where a tensor's row-major little-endian bytes come from.
pub(super) enum Data {
    /// A piece of the file as it is.
    Plain(Bytes),
    /// Bytes written as text: each code point U+0000 to U+00FF is one byte.
    Latin1(Bytes),
    /// A view into a storage: byte offset of the first element and a stride a dimension, in
    /// elements.
    Strided {
        storage: Bytes,
        offset: usize,
        strides: Vec<usize>,
    },
    /// Whole numbers (i8 or i16), each row to be divided by its f32 scale.
    Scaled { numbers: Bytes, scales: Bytes },
}

/// Tensors of one file or folder. Every reader of this module makes one.
pub struct Container {
    path: PathBuf,
    format: Format,
    tensors: Vec<TensorInfo>,
    data: Vec<Data>,
    index: HashMap<String, usize>,
    pub(super) metadata: Value,
}

impl Container {
    pub(super) fn new(path: &Path, format: Format) -> Self {
        Container {
            path: path.to_owned(),
            format,
            tensors: Vec::new(),
            data: Vec::new(),
            index: HashMap::new(),
            metadata: Value::map(),
        }
    }

    pub(super) fn invalid(&self, detail: impl Into<String>) -> Error {
        Error::Invalid {
            path: self.path.clone(),
            format: self.format,
            detail: detail.into(),
        }
    }

    /// Adds a tensor after checking that its name is new and its data has the size that type
    /// and shape demand.
    pub(super) fn push(
        &mut self,
        name: String,
        dtype: StoredType,
        shape: Vec<usize>,
        data: Data,
    ) -> Result<()> {
        let wanted = dtype.nbytes(&shape).ok_or_else(|| {
            self.invalid(format!(
                "tensor `{name}`: shape {shape:?} is impossible for {dtype}"
            ))
        })?;
        let found = match &data {
            Data::Plain(bytes) => Some(bytes.len()),
            Data::Latin1(text) => latin1_len(text),
            Data::Scaled { .. } => None,
            Data::Strided {
                storage,
                offset,
                strides,
            } => strided_end(&shape, strides, *offset, dtype.block_bytes())
                .filter(|end| *end <= storage.len() && wanted <= storage.len())
                .map(|_| wanted),
        };
        if found != Some(wanted) {
            let found = found.map_or("other".into(), |n| n.to_string());
            return Err(self.invalid(format!(
                "tensor `{name}` {shape:?} {dtype} needs {wanted} bytes, its data has {found}"
            )));
        }
        if self.index.contains_key(&name) {
            return Err(self.invalid(format!("two tensors are named `{name}`")));
        }
        self.index.insert(name.clone(), self.tensors.len());
        self.tensors.push(TensorInfo { name, dtype, shape });
        self.data.push(data);
        Ok(())
    }

    /// Turns every whole-number tensor that has a partner `<name>_scale`, one f32 a row or one
    /// in all, into the f32 tensor that they stand for.
    pub(super) fn apply_scales(&mut self) {
        for i in 0..self.tensors.len() {
            let info = &self.tensors[i];
            let Some(&scale) = self.index.get(&format!("{}_scale", info.name)) else {
                continue;
            };
            let count = element_count(&self.tensors[scale].shape).unwrap_or(0);
            let rows = info.shape.first().copied().unwrap_or(1);
            let fits = matches!(info.dtype, StoredType::I8 | StoredType::I16)
                && self.tensors[scale].dtype == StoredType::F32
                && (count == 1 || count == rows);
            if let (true, Data::Plain(numbers), Data::Plain(scales)) =
                (fits, &self.data[i], &self.data[scale])
            {
                let (numbers, scales) = (numbers.clone(), scales.clone());
                self.data[i] = Data::Scaled { numbers, scales };
                self.tensors[i].dtype = StoredType::F32;
            }
        }
    }

    /// Gives the tensor `target` a second name; `false` if there is no such tensor or the
    /// name is taken.
    pub(super) fn alias(&mut self, alias: String, target: &str) -> bool {
        let Some(&i) = self.index.get(target) else {
            return false;
        };
        if self.index.contains_key(&alias) {
            return false;
        }
        self.index.insert(alias, i);
        true
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.index.contains_key(name)
    }

    /// Moves the tensors of `other`, another file of the same model, in here.
    pub(super) fn append(&mut self, other: Container) -> Result<()> {
        self.format = other.format;
        for (info, data) in other.tensors.into_iter().zip(other.data) {
            self.push(info.name, info.dtype, info.shape, data)?;
        }
        Ok(())
    }
}

impl Source for Container {
    fn path(&self) -> &Path {
        &self.path
    }

    fn format(&self) -> Format {
        self.format
    }

    fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    fn find(&self, name: &str) -> Option<&TensorInfo> {
        self.index.get(name).map(|&i| &self.tensors[i])
    }

    fn bytes(&self, info: &TensorInfo) -> Result<Cow<'_, [u8]>> {
        let Some(&i) = self.index.get(&info.name) else {
            return Err(super::missing(self, &info.name, &info.shape));
        };
        let info = &self.tensors[i];
        Ok(match &self.data[i] {
            Data::Plain(bytes) => Cow::Borrowed(bytes),
            Data::Latin1(text) => Cow::Owned(latin1_bytes(text)),
            Data::Scaled { numbers, scales } => Cow::Owned(unscale(info, numbers, scales)),
            Data::Strided {
                storage,
                offset,
                strides,
            } => gather(info, storage, *offset, strides),
        })
    }

    fn metadata(&self) -> &Value {
        &self.metadata
    }
}

/// Bytes that the text stands for, or `None` if a code point is above U+00FF.
fn latin1_len(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?;
    // U+0080 to U+00FF start with 0xC2 or 0xC3; a second byte is no character of its own.
    let above = text.iter().any(|&b| b > 0xc3);
    let continued = text.iter().filter(|&&b| b & 0xc0 == 0x80).count();
    (!above).then(|| text.len() - continued)
}

/// Bytes that a text of code points up to U+00FF stands for.
pub(super) fn latin1_bytes(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut high = 0;
    for &b in text {
        match b {
            0xc0.. => high = b << 6,
            0x80.. => out.push(high | (b & 0x3f)),
            _ => out.push(b),
        }
    }
    out
}

/// f32 bytes of scaled whole numbers.
fn unscale(info: &TensorInfo, numbers: &[u8], scales: &[u8]) -> Vec<u8> {
    let count = element_count(&info.shape).unwrap_or(0);
    let (scales, _) = scales.as_chunks::<4>();
    let width = (count / scales.len().max(1)).max(1);
    let wide = numbers.len() == 2 * count;
    let mut out = Vec::with_capacity(4 * numbers.len());
    for i in 0..count {
        let number = if wide {
            f32::from(i16::from_le_bytes([numbers[2 * i], numbers[2 * i + 1]]))
        } else {
            f32::from(numbers[i] as i8)
        };
        let scale = scales
            .get(i / width)
            .map_or(1.0, |s| f32::from_le_bytes(*s));
        out.extend_from_slice(&(number / scale).to_le_bytes());
    }
    out
}

/// Byte just past the last element that the view touches; `None` on overflow.
fn strided_end(shape: &[usize], strides: &[usize], offset: usize, element: usize) -> Option<usize> {
    if shape.len() != strides.len() {
        return None;
    }
    if element_count(shape)? == 0 {
        return Some(offset);
    }
    let mut last = 0usize;
    for (&d, &s) in shape.iter().zip(strides) {
        last = last.checked_add((d - 1).checked_mul(s)?)?;
    }
    last.checked_add(1)?
        .checked_mul(element)?
        .checked_add(offset)
}

/// Row-major bytes of a view: borrowed where the view already is row-major.
fn gather<'a>(
    info: &TensorInfo,
    storage: &'a Bytes,
    offset: usize,
    strides: &[usize],
) -> Cow<'a, [u8]> {
    let size = info.dtype.block_bytes();
    let count = element_count(&info.shape).unwrap_or(0);
    if is_row_major(&info.shape, strides) {
        return Cow::Borrowed(&storage[offset..offset + count * size]);
    }
    let mut out = Vec::with_capacity(count * size);
    let mut at = vec![0usize; info.shape.len()];
    for _ in 0..count {
        let element: usize = at.iter().zip(strides).map(|(i, s)| i * s).sum();
        let start = offset + element * size;
        out.extend_from_slice(&storage[start..start + size]);
        for axis in (0..at.len()).rev() {
            at[axis] += 1;
            if at[axis] < info.shape[axis] {
                break;
            }
            at[axis] = 0;
        }
    }
    Cow::Owned(out)
}

fn is_row_major(shape: &[usize], strides: &[usize]) -> bool {
    let mut expected = 1;
    for (&d, &s) in shape.iter().zip(strides).rev() {
        if d > 1 && s != expected {
            return false;
        }
        expected *= d.max(1);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strided(
        shape: &[usize],
        strides: &[usize],
        offset: usize,
        storage: &[u8],
    ) -> Result<Vec<u8>> {
        let mut c = Container::new(Path::new("x"), Format::Torch);
        c.push(
            "t".into(),
            StoredType::U8,
            shape.to_vec(),
            Data::Strided {
                storage: Bytes::copy_from_slice(storage),
                offset,
                strides: strides.to_vec(),
            },
        )?;
        Ok(c.bytes(&c.tensors()[0])?.into_owned())
    }

    #[test]
    fn views_are_gathered_row_by_row() {
        let data = [0, 1, 2, 3, 4, 5, 6];
        assert_eq!(
            strided(&[2, 3], &[3, 1], 1, &data).unwrap(),
            [1, 2, 3, 4, 5, 6]
        );
        assert_eq!(
            strided(&[3, 2], &[1, 3], 1, &data).unwrap(),
            [1, 4, 2, 5, 3, 6]
        );
        assert_eq!(strided(&[2, 2], &[0, 1], 0, &data).unwrap(), [0, 1, 0, 1]);
        assert!(strided(&[0, 2], &[9, 9], 0, &data).unwrap().is_empty());
    }

    #[test]
    fn views_beyond_their_storage_are_refused() {
        let data = [0; 6];
        assert!(strided(&[2, 3], &[3, 1], 1, &data).is_err());
        assert!(strided(&[2, 3], &[usize::MAX, 1], 0, &data).is_err());
        // An expanded view may not be larger than what backs it.
        assert!(strided(&[1 << 40], &[0], 0, &data).is_err());
        assert!(strided(&[2, 3], &[1], 0, &data).is_err());
    }

    #[test]
    fn text_bytes_count_code_points() {
        let text = "a\u{80}\u{ff}".as_bytes();
        assert_eq!(latin1_len(text), Some(3));
        assert_eq!(latin1_bytes(text), [b'a', 0x80, 0xff]);
        assert_eq!(latin1_len("\u{100}".as_bytes()), None);
        assert_eq!(latin1_len(&[0xff]), None);
    }
}
