//! Filling declared tensors from the file: read, check, convert, write, in bounded pieces.

use super::{
    ConvertFault, Error, HostTensor, LoadError, Result, Source, StoredType, TensorInfo,
    convert::{Turn, convert, convert_rows, to_f32},
    map::release,
};
use crate::graph::{DType, DeviceTensor};

/// Values converted between two writes: bounds the memory that a conversion takes.
const PIECE: usize = 1 << 22;

/// A stored tensor and the shape that the model sees it in.
pub(super) struct Input {
    pub info: TensorInfo,
    pub shape: Vec<usize>,
}

/// One stored tensor, or a run of zeros, that becomes part of a device tensor.
pub(super) enum Part {
    Stored(TensorInfo),
    Zeros(usize),
}

/// How the values of each row are rearranged on the way.
#[derive(Clone, Copy)]
pub(super) enum Rows {
    AsStored,
    /// `[in, kernel]` to `[kernel, in]` within each row.
    TapsOutermost {
        kernel: usize,
    },
}

pub(super) type Transform = dyn Fn(Vec<HostTensor>) -> HostTensor + Send + Sync;

/// How a declared tensor's contents are made.
pub(super) enum Content {
    /// Parts end to end.
    Stack(Vec<Part>, Rows),
    /// A function of stored tensors.
    Made(Vec<Input>, Box<Transform>),
}

/// A declared tensor to be filled.
pub(super) struct Job {
    pub target: DeviceTensor,
    pub content: Content,
}

impl Job {
    pub fn run(&self, source: &dyn Source) -> Result<(), LoadError> {
        match &self.content {
            Content::Stack(parts, rows) => {
                let mut offset = 0;
                for part in parts {
                    offset = match part {
                        Part::Stored(info) => self.write_stored(source, info, *rows, offset)?,
                        Part::Zeros(count) => self.write_zeros(source, *count, offset)?,
                    };
                }
                Ok(())
            }
            Content::Made(inputs, transform) => self.write_made(source, inputs, transform),
        }
    }

    /// Elements of a row of the target, of which a part of `count` elements has less if it is
    /// a piece of a vector.
    fn row(&self, count: usize) -> usize {
        let row = self.target.shape().last().copied().unwrap_or(1);
        row.min(count).max(1)
    }

    fn write_zeros(
        &self,
        source: &dyn Source,
        count: usize,
        offset: usize,
    ) -> Result<usize, LoadError> {
        let (name, to) = (self.target.name(), self.target.dtype());
        let zeros = vec![0; 4 * count];
        let bytes = convert(&zeros, StoredType::F32, to, self.row(count))
            .map_err(|fault| named(fault, source, name, StoredType::F32, to))?;
        self.target.write_bytes_at(offset, &bytes)?;
        Ok(offset + bytes.len())
    }

    fn write_stored(
        &self,
        source: &dyn Source,
        info: &TensorInfo,
        rows: Rows,
        mut offset: usize,
    ) -> Result<usize, LoadError> {
        let to = self.target.dtype();
        let bytes = source.bytes(info)?;
        let fault = |fault| named(fault, source, &info.name, info.dtype, to);
        let row = self.row(super::element_count(&info.shape).unwrap_or(0));
        let row_bytes = info
            .dtype
            .nbytes(&[row])
            .ok_or_else(|| fault(ConvertFault::Types("the model's rows are not whole blocks")))?;
        let turn = match rows {
            Rows::AsStored => None,
            Rows::TapsOutermost { kernel } => {
                Some(move |values: &mut [f32]| turn_rows(values, row, kernel))
            }
        };
        let turn = turn.as_ref().map(|turn| turn as &Turn);
        let at_once = (PIECE / row).max(1);
        for (i, piece) in bytes.chunks(at_once * row_bytes).enumerate() {
            let converted = convert_rows(piece, info.dtype, to, row, turn)
                .map_err(|f| fault(f.shifted(i * at_once * row)))?;
            self.target.write_bytes_at(offset, &converted)?;
            offset += converted.len();
            release(piece);
        }
        Ok(offset)
    }

    fn write_made(
        &self,
        source: &dyn Source,
        inputs: &[Input],
        transform: &Transform,
    ) -> Result<(), LoadError> {
        let inputs = inputs.iter().map(|input| host(source, input));
        let made = transform(inputs.collect::<Result<_>>()?);
        let (name, to, shape) = (self.target.name(), self.target.dtype(), self.target.shape());
        if made.shape != shape {
            return Err(LoadError::Weights(Error::Shape {
                path: source.path().to_owned(),
                name: name.to_owned(),
                found: made.shape,
                wanted: shape.to_vec(),
            }));
        }
        let fault = |fault| named(fault, source, name, StoredType::F32, to);
        if to == DType::I8 {
            return Ok(self
                .target
                .write_bytes(&bytes_of(&made.data).map_err(fault)?)?);
        }
        let bytes: &[u8] = bytemuck::cast_slice(&made.data);
        let converted =
            convert(bytes, StoredType::F32, to, self.row(made.data.len())).map_err(fault)?;
        Ok(self.target.write_bytes(&converted)?)
    }
}

/// Whole numbers as signed bytes.
fn bytes_of(values: &[f32]) -> std::result::Result<Vec<u8>, ConvertFault> {
    let byte = |(index, &value): (usize, &f32)| match f32::from(value as i8) == value {
        true => Ok((value as i8).cast_unsigned()),
        false => Err(ConvertFault::OutOfRange { index, value }),
    };
    values.iter().enumerate().map(byte).collect()
}

/// A stored tensor as finite f32 values.
pub(super) fn host(source: &dyn Source, input: &Input) -> Result<HostTensor> {
    let Input { info, shape } = input;
    let bytes = source.bytes(info)?;
    let fault = |fault| named(fault, source, &info.name, info.dtype, DType::F32);
    let data = to_f32(&bytes, info.dtype).map_err(fault)?;
    release(&bytes);
    if let Some(index) = data.iter().position(|v| !v.is_finite()) {
        return Err(fault(ConvertFault::NonFinite { index }));
    }
    Ok(HostTensor {
        shape: shape.clone(),
        data,
    })
}

/// The error for a fault in the tensor `name` of `source`.
fn named(
    fault: ConvertFault,
    source: &dyn Source,
    name: &str,
    from: StoredType,
    to: DType,
) -> Error {
    let (path, name) = (source.path().to_owned(), name.to_owned());
    match fault {
        ConvertFault::NonFinite { index } => Error::NonFinite { path, name, index },
        ConvertFault::OutOfRange { index, value } => Error::OutOfRange {
            path,
            name,
            index,
            value,
            to,
        },
        ConvertFault::Types(why) => Error::Convert {
            path,
            name,
            from,
            to,
            why,
        },
    }
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
