//! The objects that pickled checkpoints are made of: torch storages and tensors, numpy arrays,
//! plain containers. Everything else is refused by name unless the caller allows it.

use super::{
    super::{Result, StoredType, numpy},
    Array, NumpyType, Storage, Tensor,
    pickle::{Id, Machine, Node},
};
use bytes::Bytes;

/// Which classes a pickle may name.
#[derive(Clone, Debug, Default)]
pub(super) struct Allow(Vec<String>);

/// Classes and functions that the reader itself gives a meaning, and a few harmless records.
const KNOWN: [&str; 46] = [
    "collections.OrderedDict",
    "collections.defaultdict",
    "collections.Counter",
    "builtins.dict",
    "builtins.list",
    "builtins.tuple",
    "builtins.set",
    "builtins.frozenset",
    "builtins.bytes",
    "builtins.bytearray",
    "builtins.int",
    "builtins.float",
    "builtins.bool",
    "builtins.str",
    "builtins.object",
    "copyreg._reconstructor",
    "_codecs.encode",
    "fractions.Fraction",
    "pathlib.PosixPath",
    "pathlib.WindowsPath",
    "argparse.Namespace",
    "types.SimpleNamespace",
    "torch.Size",
    "torch.device",
    "torch.Tensor",
    "torch.nn.parameter.Parameter",
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch._tensor._rebuild_from_type_v2",
    "torch.jit._pickle.build_intlist",
    "torch.jit._pickle.build_doublelist",
    "torch.jit._pickle.build_boollist",
    "torch.jit._pickle.build_tensorlist",
    "torch.jit._pickle.restore_type_tag",
    "numpy.ndarray",
    "numpy.dtype",
    "numpy.core.multiarray._reconstruct",
    "numpy.core.multiarray.scalar",
    "numpy.core.numeric._frombuffer",
    "numpy._core.multiarray._reconstruct",
    "numpy._core.multiarray.scalar",
    "numpy._core.numeric._frombuffer",
    "torch.storage.UntypedStorage",
];

impl Allow {
    /// Beyond the usual ones, the classes in `extra`: `module.Name`, or `module.*` for
    /// everything below a module.
    pub fn new(extra: &[&str]) -> Self {
        Allow(extra.iter().map(|s| (*s).to_owned()).collect())
    }

    /// The class's full name under its modern module name, or the refused name.
    pub fn check(&self, module: &str, name: &str) -> Result<String, String> {
        let module = match module {
            "__builtin__" => "builtins",
            "copy_reg" => "copyreg",
            other => other,
        };
        let class = format!("{module}.{name}");
        let by_caller = self
            .0
            .iter()
            .any(|allowed| match allowed.strip_suffix('*') {
                Some(prefix) => class.starts_with(prefix),
                None => *allowed == class,
            });
        // TorchScript modules are records by nature; their code lies elsewhere in the archive.
        let is_script = module.starts_with("__torch__");
        let is_torch_type = module == "torch" && torch_type(name).is_some();
        if by_caller || is_script || is_torch_type || KNOWN.contains(&class.as_str()) {
            Ok(class)
        } else {
            Err(class)
        }
    }
}

/// Element type of `FloatStorage`, `float32` and the like.
fn torch_type(name: &str) -> Option<StoredType> {
    Some(match name {
        "FloatStorage" | "float32" | "float" => StoredType::F32,
        "DoubleStorage" | "float64" | "double" => StoredType::F64,
        "HalfStorage" | "float16" | "half" => StoredType::F16,
        "BFloat16Storage" | "bfloat16" => StoredType::BF16,
        "CharStorage" | "int8" => StoredType::I8,
        "ByteStorage" | "uint8" => StoredType::U8,
        "ShortStorage" | "int16" => StoredType::I16,
        "IntStorage" | "int32" => StoredType::I32,
        "LongStorage" | "int64" => StoredType::I64,
        "BoolStorage" | "bool" => StoredType::Bool,
        "ComplexFloatStorage" | "complex64" => StoredType::C64,
        "ComplexDoubleStorage" | "complex128" => StoredType::C128,
        "uint16" => StoredType::U16,
        "uint32" => StoredType::U32,
        "uint64" => StoredType::U64,
        "float8_e4m3fn" => StoredType::F8E4M3,
        "float8_e5m2" => StoredType::F8E5M2,
        _ => return None,
    })
}

impl Machine<'_> {
    /// A storage from its persistent id `("storage", type, key, location, count[, view])`.
    pub fn storage(&mut self, id: Id) -> Result<Storage> {
        let parts = self.items(id)?;
        let [kind, class, key, _location, count, rest @ ..] = &parts[..] else {
            return Err(self.error("bad storage reference"));
        };
        let kind = self.text(*kind)?;
        if kind != "storage" {
            return Err(self.error(format!("refers to a stored {kind}, only storages are read")));
        }
        let class = self.class(*class)?;
        // Untyped storages count bytes; the tensor then tells its type.
        let dtype = class
            .strip_prefix("torch.")
            .and_then(torch_type)
            .unwrap_or(StoredType::U8);
        let mut storage = Storage {
            dtype,
            key: self.text(*key)?,
            count: self.size(*count)?,
            first: 0,
        };
        // Old files: a view (key, offset, count) into the storage.
        if let Some(&view) = rest.first()
            && !matches!(self.nodes[view], Node::Null)
        {
            let view = self.items(view)?;
            let [_key, offset, count] = &view[..] else {
                return Err(self.error("bad storage view"));
            };
            (storage.first, storage.count) = (self.size(*offset)?, self.size(*count)?);
        }
        Ok(storage)
    }

    fn class(&self, id: Id) -> Result<&str> {
        match &self.nodes[id] {
            Node::Class(name) => Ok(name),
            _ => Err(self.error("expected a class")),
        }
    }

    /// What calling `class` with `args` gives.
    pub fn call(&mut self, class: &str, args: Vec<Id>) -> Result<Id> {
        let node = match class {
            "collections.OrderedDict" | "collections.Counter" | "builtins.dict" => {
                Node::Dict(self.pairs(args.first())?)
            }
            "collections.defaultdict" => Node::Dict(Vec::new()),
            "builtins.list" | "builtins.set" | "builtins.frozenset" => {
                Node::List(self.first_items(&args)?)
            }
            "builtins.tuple" | "torch.Size" => Node::Tuple(self.first_items(&args)?),
            "builtins.bytes" | "builtins.bytearray" | "_codecs.encode" => self.encoded(&args)?,
            "torch._utils._rebuild_tensor"
            | "torch._utils._rebuild_tensor_v2"
            | "torch._utils._rebuild_tensor_v3" => self.tensor(&args)?,
            "torch._tensor._rebuild_from_type_v2" => {
                let [function, _type, args, ..] = args[..] else {
                    return Err(self.error("bad tensor subclass"));
                };
                let function = self.class(function)?.to_owned();
                if function == class {
                    return Err(self.error("a tensor subclass of itself"));
                }
                let args = self.items(args)?;
                return self.call(&function, args);
            }
            "numpy.dtype" => self.numpy_type(&args)?,
            c if c.starts_with("numpy.") && c.ends_with("._reconstruct") => {
                Node::Array(Array::default())
            }
            c if c.starts_with("numpy.") && c.ends_with(".scalar") => self.numpy_scalar(&args)?,
            c if c.starts_with("numpy.") && c.ends_with("._frombuffer") => {
                self.numpy_buffer(&args)?
            }
            "torch._utils._rebuild_parameter"
            | "torch._utils._rebuild_parameter_with_state"
            | "torch.nn.parameter.Parameter" => return self.first(&args),
            c if c.starts_with("torch.jit._pickle.") => return self.first(&args),
            "copyreg._reconstructor" => {
                let class = self.class(self.first(&args)?)?.to_owned();
                return self.call(&class, Vec::new());
            }
            other => Node::Object {
                class: other.to_owned(),
                args,
                fields: Vec::new(),
            },
        };
        Ok(self.new_node(node))
    }

    fn first(&self, args: &[Id]) -> Result<Id> {
        args.first()
            .copied()
            .ok_or_else(|| self.error("a call lacks its argument"))
    }

    fn first_items(&self, args: &[Id]) -> Result<Vec<Id>> {
        args.first().map_or(Ok(Vec::new()), |&id| self.items(id))
    }

    /// Entries of a dictionary given as a list of pairs or as a dictionary.
    fn pairs(&self, from: Option<&Id>) -> Result<Vec<(Id, Id)>> {
        let Some(&from) = from else {
            return Ok(Vec::new());
        };
        if let Node::Dict(entries) = &self.nodes[from] {
            return Ok(entries.clone());
        }
        let mut pairs = Vec::new();
        for item in self.items(from)? {
            match self.items(item)?[..] {
                [key, value] => pairs.push((key, value)),
                _ => return Err(self.error("expected pairs")),
            }
        }
        Ok(pairs)
    }

    /// `bytes(...)`: nothing, bytes, or text with an encoding that must be Latin-1.
    fn encoded(&self, args: &[Id]) -> Result<Node> {
        match *args {
            [] => Ok(Node::Raw(Bytes::new())),
            [bytes] => match &self.nodes[bytes] {
                Node::Raw(bytes) => Ok(Node::Raw(bytes.clone())),
                _ => Err(self.error("expected bytes")),
            },
            [text, encoding, ..] => match &self.nodes[text] {
                Node::Text(text)
                    if matches!(&*self.text(encoding)?, "latin1" | "latin-1" | "iso-8859-1") =>
                {
                    Ok(Node::Latin1(text.clone()))
                }
                _ => Err(self.error("only Latin-1 text is turned into bytes")),
            },
        }
    }

    /// `(storage, offset, size, stride, …)`; version 3 ends in `…, hooks, dtype`.
    fn tensor(&self, args: &[Id]) -> Result<Node> {
        let [storage, offset, shape, strides, rest @ ..] = args else {
            return Err(self.error("a tensor lacks arguments"));
        };
        let Node::Storage(storage) = &self.nodes[*storage] else {
            return Err(self.error("a tensor without a storage"));
        };
        let mut dtype = storage.dtype;
        if let Some(&id) = rest.get(2)
            && let Node::Class(class) = &self.nodes[id]
        {
            let named = class.strip_prefix("torch.").and_then(torch_type);
            dtype = named.ok_or_else(|| self.error(format!("tensors of {class} are not read")))?;
        }
        Ok(Node::Tensor(Tensor {
            dtype,
            storage: storage.clone(),
            offset: self.size(*offset)?,
            shape: self.sizes(*shape)?,
            strides: self.sizes(*strides)?,
        }))
    }

    fn numpy_type(&self, args: &[Id]) -> Result<Node> {
        let code = self.text(self.first(args)?)?;
        Ok(Node::Dtype(NumpyType {
            big_endian: code.starts_with('>'),
            dtype: numpy::stored_type(&code),
            code,
        }))
    }

    fn known_type(&self, id: Id) -> Result<StoredType> {
        match &self.nodes[id] {
            Node::Dtype(NumpyType {
                dtype: Some(dtype),
                big_endian,
                code,
            }) => {
                if *big_endian && dtype.block_bytes() > 1 {
                    return Err(self.error(format!("big-endian numpy data ({code})")));
                }
                Ok(*dtype)
            }
            Node::Dtype(t) => Err(self.error(format!("numpy type {} is not read", t.code))),
            _ => Err(self.error("expected a numpy type")),
        }
    }

    /// `(dtype, bytes)`: one number.
    fn numpy_scalar(&self, args: &[Id]) -> Result<Node> {
        let [dtype, bytes] = *args else {
            return Err(self.error("bad numpy number"));
        };
        let dtype = self.known_type(dtype)?;
        let (data, is_text) = self.buffer(bytes)?;
        let bytes = if is_text {
            super::super::container::latin1_bytes(&data)
        } else {
            data.to_vec()
        };
        number(dtype, &bytes).ok_or_else(|| self.error(format!("bad numpy number of type {dtype}")))
    }

    /// `(buffer, dtype, shape, order)`.
    fn numpy_buffer(&self, args: &[Id]) -> Result<Node> {
        let [data, dtype, shape, order, ..] = *args else {
            return Err(self.error("bad numpy array"));
        };
        Ok(Node::Array(Array {
            dtype: Some(self.known_type(dtype)?),
            shape: self.sizes(shape)?,
            columns_first: self.text(order)? == "F",
            data: self.buffer(data)?,
        }))
    }

    fn buffer(&self, id: Id) -> Result<(Bytes, bool)> {
        match &self.nodes[id] {
            Node::Raw(bytes) => Ok((bytes.clone(), false)),
            Node::Latin1(text) => Ok((text.clone(), true)),
            _ => Err(self.error("numpy data must be bytes; arrays of objects are not read")),
        }
    }

    /// What `__setstate__` would do.
    pub fn set_state(&mut self, target: Id, state: Id) -> Result<()> {
        match &self.nodes[target] {
            Node::Array(_) => {
                let array = self.array_state(state)?;
                self.nodes[target] = Node::Array(array);
            }
            Node::Dtype(dtype) => {
                let mut dtype = dtype.clone();
                let state = self.items(state)?;
                if let Some(&order) = state.get(1)
                    && let Ok(order) = self.text(order)
                {
                    dtype.big_endian = order == ">";
                }
                self.nodes[target] = Node::Dtype(dtype);
            }
            Node::Object { .. } => self.object_state(target, state)?,
            // An ordered dictionary's `_metadata`, a tensor's hooks: nothing to load.
            _ => {}
        }
        Ok(())
    }

    /// `(version, shape, dtype, is_fortran, data)`.
    fn array_state(&self, state: Id) -> Result<Array> {
        let [_version, shape, dtype, fortran, data] = self.items(state)?[..] else {
            return Err(self.error("bad numpy array state"));
        };
        Ok(Array {
            dtype: Some(self.known_type(dtype)?),
            shape: self.sizes(shape)?,
            columns_first: matches!(self.nodes[fortran], Node::Bool(true) | Node::Int(1)),
            data: self.buffer(data)?,
        })
    }

    /// Attributes as a dictionary, or a pair of dictionaries (the second for slots).
    fn object_state(&mut self, target: Id, state: Id) -> Result<()> {
        let mut pairs = match &self.nodes[state] {
            Node::Dict(entries) => entries.clone(),
            Node::Tuple(parts) => parts
                .iter()
                .filter_map(|&part| match &self.nodes[part] {
                    Node::Dict(entries) => Some(entries.clone()),
                    _ => None,
                })
                .flatten()
                .collect(),
            Node::Null => Vec::new(),
            _ => {
                let key = self.new_node(Node::Text(Bytes::from_static(b"state")));
                vec![(key, state)]
            }
        };
        if let Node::Object { fields, .. } = &mut self.nodes[target] {
            fields.append(&mut pairs);
        }
        Ok(())
    }
}

/// The number that `bytes` hold.
fn number(dtype: StoredType, bytes: &[u8]) -> Option<Node> {
    macro_rules! int {
        ($t:ty) => {
            Node::Int(<$t>::from_le_bytes(bytes.try_into().ok()?).into())
        };
    }
    Some(match dtype {
        StoredType::Bool => Node::Bool(*bytes.first()? != 0),
        StoredType::I8 => int!(i8),
        StoredType::U8 => int!(u8),
        StoredType::I16 => int!(i16),
        StoredType::U16 => int!(u16),
        StoredType::I32 => int!(i32),
        StoredType::U32 => int!(u32),
        StoredType::I64 => int!(i64),
        StoredType::U64 => int!(u64),
        StoredType::F16 => Node::Float(half::f16::from_le_bytes(bytes.try_into().ok()?).into()),
        StoredType::F32 => Node::Float(f32::from_le_bytes(bytes.try_into().ok()?).into()),
        StoredType::F64 => Node::Float(f64::from_le_bytes(bytes.try_into().ok()?)),
        _ => return None,
    })
}
