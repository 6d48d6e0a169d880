//! Support of the operator tests: seeded arrays, layouts, and the comparison of a graph with a
//! reference on every device that is loaded.
//!
//! Plugins named by `AUDIOCPP_BACKEND_PATH` (files, separated as in `PATH`) are loaded beside the
//! CPU's, so the same tests serve a GPU:
//! `AUDIOCPP_BACKEND_PATH=.../libggml-cuda.so cargo test --test graph_ops`.

pub mod array;
pub mod reference;

pub use array::{Array, Random};

use std::{
    collections::BTreeSet,
    sync::{LazyLock, Mutex, PoisonError},
};

use audiocpp::backend::{BackendType, Inventory};
use audiocpp::graph::{
    BufferBuilder, DType, Device, DeviceOptions, DeviceTensor, Element, Graph, GraphError, Scope,
    Tensor,
};
use half::{bf16, f16};

/// Every device, the CPU's first with two threads; then the CPU with one.
pub static DEVICES: LazyLock<Vec<Device>> = LazyLock::new(|| {
    let cpu = Device::cpu(2).expect("the CPU plugin is built beside the tests");
    let named = std::env::var_os("AUDIOCPP_BACKEND_PATH").unwrap_or_default();
    for path in std::env::split_paths(&named).filter(|p| p.is_file()) {
        match ggml_sys::plugins::load(&path) {
            Ok(name) => println!("loaded {name} from {}", path.display()),
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
    let mut all = vec![cpu];
    let kinds: Vec<BackendType> = BackendType::all().collect();
    for info in Inventory::discover(&kinds).devices {
        if info.backend != BackendType::Cpu {
            let device = Device::open(&info, &DeviceOptions::default()).unwrap();
            println!("device {}: {}", device.name(), device.description());
            all.push(device);
        }
    }
    all.push(Device::cpu(1).unwrap());
    all
});

/// How an input lies in memory: the graph undoes the change before the operator sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// As it is.
    Packed,
    /// Written with the last two axes exchanged, transposed back by the graph.
    Transposed,
    /// Written with two more entries along the last axis, cut off by the graph.
    Cut,
    /// Written with one more entry along the first axis, cut off by the graph.
    Late,
}

impl Layout {
    /// The layouts to try an array of this shape in: all that it can have, fewer where it is long.
    pub fn all(shape: &[usize]) -> &'static [Layout] {
        use Layout::*;
        let long = shape.iter().product::<usize>() > 20_000;
        match shape.len() {
            0 => &[Packed],
            1 => &[Packed, Cut],
            _ if long => &[Packed, Cut],
            _ => &[Packed, Transposed, Cut, Late],
        }
    }

    fn written(self, x: &Array) -> Array {
        let last = x.rank().wrapping_sub(1);
        match self {
            Layout::Packed => x.clone(),
            Layout::Transposed => x.swap(last, last - 1),
            Layout::Cut => x.pad(last, 1, 1, 9.0),
            Layout::Late => x.pad(0, 1, 0, -9.0),
        }
    }

    fn restore<'g>(self, x: Tensor<'g>, shape: &[usize]) -> Tensor<'g> {
        match self {
            Layout::Packed => x,
            Layout::Transposed => x.transpose(),
            Layout::Cut => x.slice(-1, 1, shape[shape.len() - 1]),
            Layout::Late => x.slice(0, 1, shape[0]),
        }
    }
}

/// One side of an operator under test.
#[derive(Clone, Debug)]
pub struct Side {
    pub values: Array,
    pub dtype: DType,
    pub layout: Layout,
    /// Stored on the device, with these bytes, instead of written before the run.
    pub stored: Option<Vec<u8>>,
}

impl Side {
    /// An input of this type; the values are rounded to it.
    pub fn new(values: &Array, dtype: DType) -> Side {
        Side {
            values: values.round_to(dtype),
            dtype,
            layout: Layout::Packed,
            stored: None,
        }
    }

    pub fn f32(values: &Array) -> Side {
        Side::new(values, DType::F32)
    }

    pub fn lying(mut self, layout: Layout) -> Side {
        self.layout = layout;
        self
    }

    /// A tensor on the device; it lies packed.
    pub fn stored(values: &Array, dtype: DType) -> Side {
        Side {
            stored: Some(values.bytes(dtype)),
            ..Side::new(values, dtype)
        }
    }
}

/// What a case compares: the graph's result must be within `tolerance` of `wanted`, relative to
/// the largest magnitude of `wanted`.
pub struct Case<'a> {
    pub op: &'a str,
    pub tolerance: f64,
    pub sides: &'a [Side],
    pub wanted: &'a Array,
}

/// Operators that some device left to the CPU, as `device: operator`, printed once each.
static ON_CPU: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// What a device may be off by where the CPU may be off by `tolerance`. The functions of GPUs are
/// rounded less carefully (CUDA's sine: 3.5e-6), long sums are taken in another order, and 8-bit
/// blocks have scales in half precision (1.2e-2); what must be exact stays so.
pub fn allowed(tolerance: f64, device: &Device) -> f64 {
    match tolerance {
        exact if device.is_cpu() || exact == 0.0 => exact,
        quantised if quantised >= 1e-2 => 2.0 * quantised,
        // Vulkan rounds what it multiplies to half precision.
        rounded if device.name().starts_with("Vulkan") => rounded.max(1e-3),
        rounded => rounded.max(1e-5),
    }
}

impl Case<'_> {
    /// Runs the graph that `describe` makes of the sides, twice on every device, and compares.
    /// The second argument holds the stored sides, in their order.
    pub fn check<F>(&self, describe: F)
    where
        F: for<'g> Fn(&'g Scope, &[Tensor<'g>], &[DeviceTensor]) -> Tensor<'g>,
    {
        self.check_on(|device| allowed(self.tolerance, device), describe);
    }

    /// As [`Case::check`], with a tolerance for each device.
    pub fn check_on<F>(&self, tolerance: impl Fn(&Device) -> f64, describe: F)
    where
        F: for<'g> Fn(&'g Scope, &[Tensor<'g>], &[DeviceTensor]) -> Tensor<'g>,
    {
        for device in DEVICES.iter() {
            let got = self
                .run(device, &describe)
                .unwrap_or_else(|error| panic!("{}: {error}", self.title(device)));
            let tolerance = tolerance(device);
            Case { tolerance, ..*self }.compare(device, &got);
        }
    }

    fn run<F>(&self, device: &Device, describe: &F) -> Result<Array, GraphError>
    where
        F: for<'g> Fn(&'g Scope, &[Tensor<'g>], &[DeviceTensor]) -> Tensor<'g>,
    {
        let stored = store(device, self.sides)?;
        let mut graph = Graph::build_exact(device, |g| {
            let mut next = stored.iter();
            let sides: Vec<Tensor> = (0..)
                .zip(self.sides)
                .map(|(i, side)| {
                    let x = if side.stored.is_some() {
                        g.stored(next.next().expect("one for each stored side"))
                    } else {
                        let written = side.layout.written(&side.values);
                        g.input(&format!("x{i}"), side.dtype, written.shape())
                    };
                    side.layout.restore(x, side.values.shape())
                })
                .collect();
            g.output("y", describe(g, &sides, &stored));
            Ok(())
        })?;
        for op in graph.on_cpu() {
            let line = format!("{}: {op} runs on the CPU", device.name());
            let mut seen = ON_CPU.lock().unwrap_or_else(PoisonError::into_inner);
            if seen.insert(line.clone()) {
                println!("{line}");
            }
        }
        let mut first: Option<Array> = None;
        for _ in 0..2 {
            for (i, side) in self
                .sides
                .iter()
                .enumerate()
                .filter(|(_, s)| s.stored.is_none())
            {
                write(&mut graph, &format!("x{i}"), side)?;
            }
            graph.compute()?;
            let got = read(&graph, self)?;
            if let Some(first) = first.replace(got.clone()) {
                assert_eq!(first, got, "{}: runs differ", self.title(device));
            }
        }
        Ok(first.expect("two runs"))
    }

    fn compare(&self, device: &Device, got: &Array) {
        assert_eq!(got.shape(), self.wanted.shape(), "{}", self.title(device));
        let largest = self
            .wanted
            .values()
            .iter()
            .fold(0.0f64, |m, v| m.max(v.abs()));
        let limit = self.tolerance * largest.max(1e-30);
        for (i, (&g, &w)) in got.values().iter().zip(self.wanted.values()).enumerate() {
            let same = g == w || (g.is_nan() && w.is_nan()) || (g - w).abs() <= limit;
            assert!(
                same,
                "{}: {g} for {w} at {:?}; off by {:.1e} of {largest:.1e}, {:.1e} allowed",
                self.title(device),
                self.wanted.place(i),
                (g - w).abs() / largest,
                self.tolerance
            );
        }
    }

    fn title(&self, device: &Device) -> String {
        let sides: Vec<String> = self
            .sides
            .iter()
            .map(|s| format!("{} {:?} {:?}", s.dtype, s.values.shape(), s.layout))
            .collect();
        format!("{} on {} of {}", self.op, device.name(), sides.join(", "))
    }
}

fn store(device: &Device, sides: &[Side]) -> Result<Vec<DeviceTensor>, GraphError> {
    let mut buffer = BufferBuilder::weights(device, sides.len());
    let mut tensors = Vec::new();
    for (side, bytes) in sides.iter().filter_map(|s| Some((s, s.stored.as_ref()?))) {
        let tensor = buffer.declare("stored", side.dtype, side.values.shape())?;
        tensors.push((tensor, bytes));
    }
    buffer.allocate()?;
    for (tensor, bytes) in &tensors {
        tensor.write_bytes(bytes)?;
    }
    Ok(tensors.into_iter().map(|(tensor, _)| tensor).collect())
}

fn write(graph: &mut Graph, name: &str, side: &Side) -> Result<(), GraphError> {
    fn put<T: Element>(
        graph: &mut Graph,
        name: &str,
        values: &[f64],
        make: impl Fn(f64) -> T,
    ) -> Result<(), GraphError> {
        let values: Vec<T> = values.iter().map(|&v| make(v)).collect();
        graph.write(name, &values)
    }
    let written = side.layout.written(&side.values);
    let values = written.values();
    match side.dtype {
        DType::F32 => put(graph, name, values, |v| v as f32),
        DType::F16 => put(graph, name, values, f16::from_f64),
        DType::BF16 => put(graph, name, values, bf16::from_f64),
        DType::I32 => put(graph, name, values, |v| v as i32),
        DType::I64 => put(graph, name, values, |v| v as i64),
        other => panic!("{other} is no input type"),
    }
}

/// The output as numbers, whatever its type.
fn read(graph: &Graph, case: &Case) -> Result<Array, GraphError> {
    let shape = graph.shape("y")?;
    let values = match graph.read::<f32>("y") {
        Ok(values) => values.into_iter().map(f64::from).collect(),
        Err(GraphError::Type { found, .. }) => match found {
            DType::F16 => graph.read::<f16>("y")?.into_iter().map(f64::from).collect(),
            DType::BF16 => graph
                .read::<bf16>("y")?
                .into_iter()
                .map(f64::from)
                .collect(),
            DType::I32 => graph.read::<i32>("y")?.into_iter().map(f64::from).collect(),
            other => panic!("{} gives {other}", case.op),
        },
        Err(error) => return Err(error),
    };
    Ok(Array::new(&shape, values))
}
