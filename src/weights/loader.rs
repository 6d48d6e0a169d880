//! From a weight file to tensors on a device: fetched by name, checked by shape, converted by
//! policy, uploaded together.

use super::{
    Error, Format, HostTensor, Policy, Result, Source, StoredType, TensorInfo, missing,
    upload::{Content, Input, Job, Part, Rows, host},
};
use crate::graph::{Buffer, BufferBuilder, DType, Device, DeviceTensor, GraphError};
use rayon::prelude::*;
use std::{
    cell::{Cell, RefCell},
    collections::HashSet,
    ops::Range,
};

/// Device tensors that a model may make beyond twice those of the file, by splitting for example.
const SPARE_TENSORS: usize = 4096;

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

/// Collects what a model fetches, then allocates and uploads everything at once.
pub struct Loader<'s> {
    source: &'s dyn Source,
    policy: Policy,
    buffer: RefCell<BufferBuilder>,
    jobs: RefCell<Vec<Job>>,
    /// Names that were fetched.
    used: RefCell<HashSet<String>>,
    parameters: Cell<u64>,
}

impl<'s> Loader<'s> {
    /// For weights of `source` on `device`.
    pub fn new(source: &'s dyn Source, device: &Device, policy: Policy) -> Self {
        let capacity = 2 * source.tensors().len() + SPARE_TENSORS;
        Loader {
            source,
            policy,
            buffer: RefCell::new(BufferBuilder::weights(device, capacity)),
            jobs: RefCell::default(),
            used: RefCell::default(),
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

    /// Names in the file that were not fetched so far.
    pub fn unused(&self) -> Vec<&str> {
        let used = self.used.borrow();
        let names = self.source.tensors().iter().map(|t| t.name.as_str());
        names.filter(|name| !used.contains(*name)).collect()
    }

    /// Allocates everything that was fetched and fills it.
    ///
    /// # Errors
    /// [`GraphError::OutOfMemory`]; [`Error::NonFinite`], [`Error::OutOfRange`] and
    /// [`Error::Convert`] name the tensor.
    pub fn finish(self) -> Result<Buffer, LoadError> {
        let (path, unused) = (self.source.path().display(), self.unused());
        tracing::debug!(%path, parameters = self.parameters(), ?unused, "loading weights");
        let buffer = self.buffer.into_inner().allocate()?;
        let source = self.source;
        let jobs = self.jobs.into_inner();
        jobs.par_iter().try_for_each(|job| job.run(source))?;
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
            self.used.borrow_mut().insert(found.name.clone());
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
        content: Content,
    ) -> Result<DeviceTensor, LoadError> {
        let target = self.buffer.borrow_mut().declare(name, dtype, shape)?;
        let count: usize = shape.iter().product();
        self.parameters.set(self.parameters.get() + count as u64);
        self.jobs.borrow_mut().push(Job {
            target: target.clone(),
            content,
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

    /// A tensor in the type of [`Policy::target`]: a vector in f32, a matrix as the policy says.
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
        self.get_as(DType::F32, shape, name)
    }

    /// As [`get`](Self::get), as `dtype` whatever the policy.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_as(
        &self,
        dtype: DType,
        shape: &[usize],
        name: &str,
    ) -> Result<DeviceTensor, LoadError> {
        let full = self.full(name);
        let found = self.loader.find(&full, shape)?;
        let content = Content::Stack(vec![Part::Stored(found)], Rows::AsStored);
        self.loader.declare(&full, dtype, shape, content)
    }

    /// As [`get`](Self::get), or `None` if the file has no tensor of this name.
    ///
    /// # Errors
    /// [`Error::Shape`].
    pub fn get_opt(&self, shape: &[usize], name: &str) -> Result<Option<DeviceTensor>, LoadError> {
        match self.loader.source.resolve(&self.full(name), shape) {
            Some(_) => self.get(shape, name).map(Some),
            None => Ok(None),
        }
    }

    /// A tensor of `shape`, called `name`, made from stored ones: `transform` is given the
    /// `inputs` (name and shape of each) as f32 in host memory and must return `shape`.
    ///
    /// # Errors
    /// As [`get`](Self::get), for each input.
    pub fn get_with<const N: usize>(
        &self,
        shape: &[usize],
        name: &str,
        inputs: [(&str, &[usize]); N],
        transform: impl Fn([HostTensor; N]) -> HostTensor + Send + Sync + 'static,
    ) -> Result<DeviceTensor, LoadError> {
        self.made(None, shape, name, inputs, transform)
    }

    /// As [`get_with`](Self::get_with), of whole numbers that are kept in 8 bits whatever the
    /// policy; others are an error while they are loaded.
    ///
    /// # Errors
    /// As [`get`](Self::get), for each input.
    pub fn get_bytes<const N: usize>(
        &self,
        shape: &[usize],
        name: &str,
        inputs: [(&str, &[usize]); N],
        transform: impl Fn([HostTensor; N]) -> HostTensor + Send + Sync + 'static,
    ) -> Result<DeviceTensor, LoadError> {
        self.made(Some(DType::I8), shape, name, inputs, transform)
    }

    fn made<const N: usize>(
        &self,
        dtype: Option<DType>,
        shape: &[usize],
        name: &str,
        inputs: [(&str, &[usize]); N],
        transform: impl Fn([HostTensor; N]) -> HostTensor + Send + Sync + 'static,
    ) -> Result<DeviceTensor, LoadError> {
        let inputs = inputs.map(|(name, shape)| self.input(shape, name));
        let inputs = inputs.into_iter().collect::<Result<Vec<_>>>()?;
        let stored = inputs.first().map_or(StoredType::F32, |i| i.info.dtype);
        let dtype = dtype.unwrap_or_else(|| self.loader.policy.target(stored, shape));
        let transform = move |inputs: Vec<HostTensor>| match <[HostTensor; N]>::try_from(inputs) {
            Ok(inputs) => transform(inputs),
            Err(_) => unreachable!("there are as many tensors as inputs"),
        };
        let content = Content::Made(inputs, Box::new(transform));
        self.loader.declare(&self.full(name), dtype, shape, content)
    }

    /// Rows `range` of the stored tensor `name` of `shape`.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn slice(
        &self,
        shape: &[usize],
        name: &str,
        range: Range<usize>,
    ) -> Result<DeviceTensor, LoadError> {
        let mut part = shape.to_vec();
        match part.first_mut() {
            Some(rows) if range.end <= *rows => *rows = range.len(),
            _ => {
                return Err(LoadError::Weights(Error::Shape {
                    path: self.loader.source.path().to_owned(),
                    name: self.full(name),
                    found: part,
                    wanted: vec![range.end],
                }));
            }
        }
        let label = format!("{name}[{}..{}]", range.start, range.end);
        self.get_with(&part, &label, [(name, shape)], move |[all]| {
            all.rows(range.clone())
        })
    }

    /// The tensor `name` as f32 in host memory, at once.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Shape`], [`Error::NonFinite`].
    pub fn host(&self, shape: &[usize], name: &str) -> Result<HostTensor> {
        host(self.loader.source, &self.input(shape, name)?)
    }

    fn input(&self, shape: &[usize], name: &str) -> Result<Input> {
        Ok(Input {
            info: self.loader.find(&self.full(name), shape)?,
            shape: shape.to_vec(),
        })
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
            Content::Stack(vec![Part::Stored(found)], Rows::AsStored),
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
        let dtype = self.loader.policy.target(stored, shape);
        let label = label.unwrap_or_else(|| self.full("zeros"));
        self.loader
            .declare(&label, dtype, shape, Content::Stack(found, Rows::AsStored))
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
            Content::Stack(vec![Part::Stored(found)], rows),
        )
    }
}
