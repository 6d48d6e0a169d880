//! From a weight file to tensors on a device: fetched by name, checked by shape, converted by
//! policy, uploaded together.

use std::{
    cell::{Cell, RefCell},
    str::FromStr,
};

use ggml_sys::quantize;
use rayon::prelude::*;

use super::{Error, Format, Result, Source, StoredType, TensorInfo, missing};
use crate::graph::{Buffer, BufferBuilder, DType, Device, DeviceTensor, GraphError};

/// The type that matrices are kept in; vectors (norms, biases) always become f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// As the file has them, where ggml can compute with that; else f32.
    #[default]
    Native,
    /// 32 bits: exact.
    F32,
    /// 16 bits.
    F16,
    /// 16 bits with the range of f32.
    BF16,
    /// 8.5 bits; rows that are no multiple of 32 values stay f16.
    Q8_0,
    /// 4.5 bits; rows that are no multiple of 256 values become q8_0 or f16.
    Q4K,
}

impl Policy {
    /// Every policy with its name on the command line.
    pub const ALL: [(Policy, &'static str); 6] = [
        (Policy::Native, "native"),
        (Policy::F32, "f32"),
        (Policy::F16, "f16"),
        (Policy::BF16, "bf16"),
        (Policy::Q8_0, "q8_0"),
        (Policy::Q4K, "q4_K"),
    ];

    /// The type of a matrix with rows of `row` values that the file stores as `stored`.
    pub fn matrix(self, stored: StoredType, row: usize) -> DType {
        let whole = |t: DType| row.is_multiple_of(t.block_len()).then_some(t);
        match self {
            Policy::Native => match stored {
                StoredType::F32 | StoredType::F64 => DType::F32,
                _ => native(stored).and_then(whole).unwrap_or(DType::F32),
            },
            Policy::F32 => DType::F32,
            Policy::F16 => DType::F16,
            Policy::BF16 => DType::BF16,
            Policy::Q8_0 => whole(DType::Q8_0).unwrap_or(DType::F16),
            Policy::Q4K => whole(DType::Q4_K)
                .or_else(|| whole(DType::Q8_0))
                .unwrap_or(DType::F16),
        }
    }

    /// The type of a convolution kernel or a look-up table: plain, half under quantised policies.
    pub fn plain(self, stored: StoredType) -> DType {
        match self.matrix(stored, 1) {
            DType::F32 => DType::F32,
            DType::BF16 => DType::BF16,
            _ => DType::F16,
        }
    }
}

/// The ggml type of a float or quantised storage type.
fn native(stored: StoredType) -> Option<DType> {
    let float = matches!(stored, StoredType::F16 | StoredType::BF16 | StoredType::F32);
    let id = stored
        .ggml_id()
        .filter(|_| float || stored.is_quantized())?;
    DType::from_id(id)
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Policy::ALL
            .iter()
            .find(|(_, name)| name.eq_ignore_ascii_case(text));
        known.map(|(policy, _)| *policy).ok_or_else(|| {
            let names: Vec<&str> = Policy::ALL.iter().map(|(_, name)| *name).collect();
            format!(
                "unknown weight type `{text}`; known are {}",
                names.join(", ")
            )
        })
    }
}

/// A failure to load: of the file, or of the device.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The weights are not what the model expects.
    #[error(transparent)]
    Weights(#[from] Error),
    /// The device cannot hold them.
    #[error(transparent)]
    Device(#[from] GraphError),
}

/// One stored tensor, or a run of zeros, that becomes part of a device tensor.
enum Part {
    Stored(TensorInfo),
    Zeros(usize),
}

/// How the values of each row are rearranged on the way.
#[derive(Clone, Copy)]
enum Rows {
    AsStored,
    /// `[in, kernel]` to `[kernel, in]` within each row.
    TapsOutermost {
        kernel: usize,
    },
}

struct Job {
    target: DeviceTensor,
    parts: Vec<Part>,
    rows: Rows,
}

/// Collects what a model fetches, then allocates and uploads everything at once.
pub struct Loader<'s> {
    source: &'s dyn Source,
    policy: Policy,
    buffer: RefCell<BufferBuilder>,
    jobs: RefCell<Vec<Job>>,
    parameters: Cell<u64>,
}

impl<'s> Loader<'s> {
    /// For weights of `source` on `device`.
    pub fn new(source: &'s dyn Source, device: &Device, policy: Policy) -> Self {
        // Fusing makes fewer tensors than the file has; a few more are made of zeros.
        let capacity = 2 * source.tensors().len() + 16;
        Loader {
            source,
            policy,
            buffer: RefCell::new(BufferBuilder::weights(device, capacity)),
            jobs: RefCell::default(),
            parameters: Cell::new(0),
        }
    }

    /// Names from the root of the file.
    pub fn root(&self) -> Weights<'_> {
        Weights {
            loader: self,
            prefix: String::new(),
        }
    }

    /// The file.
    pub fn source(&self) -> &dyn Source {
        self.source
    }

    /// Number of values fetched so far.
    pub fn parameters(&self) -> u64 {
        self.parameters.get()
    }

    /// Allocates everything that was fetched and fills it.
    ///
    /// # Errors
    /// [`GraphError::OutOfMemory`]; [`Error::NonFinite`] and [`Error::Convert`] name the tensor.
    pub fn finish(self) -> Result<Buffer, LoadError> {
        let buffer = self.buffer.into_inner().allocate()?;
        let source = self.source;
        let jobs = self.jobs.into_inner();
        jobs.par_iter().try_for_each(|job| upload(source, job))?;
        Ok(buffer)
    }

    fn find(&self, name: &str, wanted: &[usize]) -> Result<TensorInfo> {
        let found = self
            .source
            .resolve(name, wanted)
            .ok_or_else(|| missing(self.source, name, wanted))?
            .into_owned();
        // Some containers keep vectors as [n, 1] or scalars as [1]; the order of values is the same.
        let squeeze =
            |shape: &[usize]| -> Vec<usize> { shape.iter().copied().filter(|&d| d != 1).collect() };
        if squeeze(&found.shape) == squeeze(wanted) {
            return Ok(found);
        }
        Err(Error::Shape {
            path: self.source.path().to_owned(),
            name: name.to_owned(),
            found: found.shape,
            wanted: wanted.to_vec(),
        })
    }

    fn declare(
        &self,
        name: &str,
        dtype: DType,
        shape: &[usize],
        parts: Vec<Part>,
        rows: Rows,
    ) -> Result<DeviceTensor, LoadError> {
        let target = self.buffer.borrow_mut().declare(name, dtype, shape)?;
        let count: usize = shape.iter().product();
        self.parameters.set(self.parameters.get() + count as u64);
        self.jobs.borrow_mut().push(Job {
            target: target.clone(),
            parts,
            rows,
        });
        Ok(target)
    }
}

/// A place in the file's tree of names.
#[derive(Clone)]
pub struct Weights<'l> {
    loader: &'l Loader<'l>,
    prefix: String,
}

impl<'l> Weights<'l> {
    /// The branch `name` of this one.
    pub fn pp(&self, name: impl std::fmt::Display) -> Weights<'l> {
        Weights {
            loader: self.loader,
            prefix: self.full(&name.to_string()),
        }
    }

    fn full(&self, name: &str) -> String {
        let joint = match self.loader.source.format() {
            Format::CTranslate2 => '/',
            _ => '.',
        };
        match self.prefix.as_str() {
            "" => name.to_owned(),
            prefix => format!("{prefix}{joint}{name}"),
        }
    }

    /// Whether the file has a tensor of this name.
    pub fn has(&self, name: &str) -> bool {
        self.loader.source.find(&self.full(name)).is_some()
    }

    /// A matrix in the type of the policy, or a vector in f32.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Shape`].
    pub fn get(&self, shape: &[usize], name: &str) -> Result<DeviceTensor, LoadError> {
        self.rows(shape, &[(Some(name), shape.first().copied().unwrap_or(1))])
    }

    /// As [`get`](Self::get), in f32 whatever the policy.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_f32(&self, shape: &[usize], name: &str) -> Result<DeviceTensor, LoadError> {
        let full = self.full(name);
        let found = self.loader.find(&full, shape)?;
        self.loader.declare(
            &full,
            DType::F32,
            shape,
            vec![Part::Stored(found)],
            Rows::AsStored,
        )
    }

    /// A table that rows are looked up in: in a plain type.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn table(&self, shape: &[usize], name: &str) -> Result<DeviceTensor, LoadError> {
        let full = self.full(name);
        let found = self.loader.find(&full, shape)?;
        let dtype = self.loader.policy.plain(found.dtype);
        self.loader.declare(
            &full,
            dtype,
            shape,
            vec![Part::Stored(found)],
            Rows::AsStored,
        )
    }

    /// Several tensors stacked along the first axis as one of `shape`: each with its number of
    /// rows; a part without a name is zeros.
    ///
    /// # Errors
    /// As [`get`](Self::get), for each part.
    pub fn rows(
        &self,
        shape: &[usize],
        parts: &[(Option<&str>, usize)],
    ) -> Result<DeviceTensor, LoadError> {
        let inner = shape.get(1..).unwrap_or_default();
        let width: usize = inner.iter().product();
        let mut found = Vec::with_capacity(parts.len());
        let mut stored = StoredType::F32;
        let mut label = None;
        for (name, rows) in parts {
            let Some(name) = name else {
                found.push(Part::Zeros(rows * width));
                continue;
            };
            let full = self.full(name);
            let wanted: Vec<usize> = [*rows].into_iter().chain(inner.iter().copied()).collect();
            let info = self.loader.find(&full, &wanted)?;
            stored = info.dtype;
            label.get_or_insert(full);
            found.push(Part::Stored(info));
        }
        let vector = shape.iter().filter(|&&d| d != 1).count() < 2;
        let dtype = if vector {
            DType::F32
        } else {
            self.loader
                .policy
                .matrix(stored, shape.last().copied().unwrap_or(1))
        };
        let label = label.unwrap_or_else(|| self.full("zeros"));
        self.loader
            .declare(&label, dtype, shape, found, Rows::AsStored)
    }

    /// The kernel of a one-dimensional convolution, stored `[out, in, kernel]` as PyTorch does,
    /// as `[out, kernel * in]` with the taps outermost.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn conv1d(
        &self,
        out: usize,
        inputs: usize,
        kernel: usize,
        name: &str,
    ) -> Result<DeviceTensor, LoadError> {
        let full = self.full(name);
        let found = self.loader.find(&full, &[out, inputs, kernel])?;
        let dtype = self.loader.policy.plain(found.dtype);
        let rows = Rows::TapsOutermost { kernel };
        self.loader.declare(
            &full,
            dtype,
            &[out, kernel * inputs],
            vec![Part::Stored(found)],
            rows,
        )
    }
}

/// Values converted at a time: bounds the memory that a conversion takes.
const CHUNK: usize = 1 << 18;

fn upload(source: &dyn Source, job: &Job) -> Result<(), LoadError> {
    let to = job.target.dtype();
    let row = job.target.shape().last().copied().unwrap_or(1);
    let mut offset = 0;
    for part in &job.parts {
        match part {
            Part::Zeros(count) => {
                let bytes = quantize::quantize(to.id(), &vec![0.0; *count], row.min(*count))
                    .map_err(|_| GraphError::Tensor {
                        name: job.target.name().to_owned(),
                        problem: format!("{count} zeros do not fill whole rows of {to}"),
                    })?;
                job.target.write_bytes_at(offset, &bytes)?;
                offset += bytes.len();
            }
            Part::Stored(info) => {
                let bytes = source.bytes(info)?;
                let same = native(info.dtype) == Some(to) && matches!(job.rows, Rows::AsStored);
                if same {
                    check_finite(source, info, &bytes)?;
                    job.target.write_bytes_at(offset, &bytes)?;
                    offset += bytes.len();
                } else {
                    offset = convert(source, info, &bytes, job, row, offset)?;
                }
            }
        }
    }
    Ok(())
}

/// Converts the rows of one stored tensor chunk by chunk; returns the offset behind them.
fn convert(
    source: &dyn Source,
    info: &TensorInfo,
    bytes: &[u8],
    job: &Job,
    row: usize,
    mut offset: usize,
) -> Result<usize, LoadError> {
    let to = job.target.dtype();
    let count: usize = info.shape.iter().product();
    let row = row.min(count.max(1));
    let unsupported = |why: &'static str| Error::Convert {
        path: source.path().to_owned(),
        name: info.name.clone(),
        from: info.dtype,
        to: StoredType::from_ggml_id(to.id()).unwrap_or(StoredType::F32),
        why,
    };
    let rows_at_once = (CHUNK / row).max(1);
    let stored_row = info
        .dtype
        .nbytes(&[row])
        .ok_or_else(|| unsupported("its rows are not whole blocks"))?;
    let mut values = Vec::new();
    for (i, chunk) in bytes.chunks(rows_at_once * stored_row).enumerate() {
        values.resize(chunk.len() / stored_row * row, 0.0);
        read_values(info.dtype, chunk, &mut values)
            .ok_or_else(|| unsupported("it holds no real numbers"))?;
        if let Some(at) = values.iter().position(|v| !v.is_finite()) {
            return Err(non_finite(source, info, i * rows_at_once * row + at).into());
        }
        if let Rows::TapsOutermost { kernel } = job.rows {
            turn_rows(&mut values, row, kernel);
        }
        let packed = quantize::quantize(to.id(), &values, row)
            .map_err(|_| unsupported("its rows are not whole blocks"))?;
        job.target.write_bytes_at(offset, &packed)?;
        offset += packed.len();
    }
    Ok(offset)
}

/// Turns each row from `[in, kernel]` to `[kernel, in]`.
fn turn_rows(values: &mut [f32], row: usize, kernel: usize) {
    let inputs = row / kernel.max(1);
    let mut turned = vec![0.0; row];
    for values in values.chunks_exact_mut(row) {
        for input in 0..inputs {
            for tap in 0..kernel {
                turned[tap * inputs + input] = values[input * kernel + tap];
            }
        }
        values.copy_from_slice(&turned);
    }
}

/// Stored bytes as f32; `None` for types that are no real numbers.
fn read_values(from: StoredType, bytes: &[u8], out: &mut [f32]) -> Option<()> {
    if let Some(dtype) = native(from) {
        return quantize::dequantize(dtype.id(), bytes, out).ok();
    }
    macro_rules! plain {
        ($t:ty) => {
            for (value, raw) in out
                .iter_mut()
                .zip(bytes.as_chunks::<{ size_of::<$t>() }>().0)
            {
                *value = <$t>::from_le_bytes(*raw) as f32;
            }
        };
    }
    match from {
        StoredType::F64 => plain!(f64),
        StoredType::I8 => plain!(i8),
        StoredType::U8 | StoredType::Bool => plain!(u8),
        StoredType::I16 => plain!(i16),
        StoredType::I32 => plain!(i32),
        StoredType::I64 => plain!(i64),
        _ => return None,
    }
    Some(())
}

fn non_finite(source: &dyn Source, info: &TensorInfo, index: usize) -> Error {
    Error::NonFinite {
        path: source.path().to_owned(),
        name: info.name.clone(),
        index,
    }
}

/// Looks for NaN and infinities in the bits of the plain float types.
fn check_finite(source: &dyn Source, info: &TensorInfo, bytes: &[u8]) -> Result<()> {
    let sixteen = |mask: u16| {
        bytes
            .as_chunks::<2>()
            .0
            .iter()
            .position(|b| u16::from_le_bytes(*b) & mask == mask)
    };
    let bad = match info.dtype {
        StoredType::F16 => sixteen(0x7c00),
        StoredType::BF16 => sixteen(0x7f80),
        StoredType::F32 => {
            let mask = 0x7f80_0000;
            bytes
                .as_chunks::<4>()
                .0
                .iter()
                .position(|b| u32::from_le_bytes(*b) & mask == mask)
        }
        _ => None,
    };
    bad.map_or(Ok(()), |index| Err(non_finite(source, info, index)))
}
