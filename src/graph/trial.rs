//! Trying a device step by step, for a child process whose death must name the step.

use super::{BufferBuilder, DType, Device, DeviceOptions, Graph, GraphError, canary};
use crate::backend::DeviceInfo;

/// Bytes that the memory step moves to the device and back.
const MEMORY: usize = 16 << 20;
const SIDE: usize = 256;
/// Runs of one graph: backends that capture graphs replay them from the third on.
const RUNS: usize = 4;

/// Opens `info` and uses it: stream, memory, a product, the same graph again and again, and the
/// canary. `said` is told of each step when it is done: its name and what was seen.
///
/// # Errors
/// The first step that failed, by name, and why.
pub fn trial(
    info: &DeviceInfo,
    options: &DeviceOptions,
    mut said: impl FnMut(&'static str, String),
) -> Result<(), (&'static str, GraphError)> {
    let mut step = |name, result: Result<String, GraphError>| match result {
        Ok(detail) => {
            said(name, detail);
            Ok(())
        }
        Err(error) => Err((name, error)),
    };
    let device = Device::open_unchecked(info, options).map_err(|error| ("open", error))?;
    step("open", Ok(device.description().to_owned()))?;
    step("memory", memory(&device))?;
    let mut product = Product::new(&device).map_err(|error| ("product", error))?;
    step("product", product.run(1.0))?;
    let replays = (0..RUNS).try_for_each(|i| product.run(i as f32).map(drop));
    step("graph", replays.map(|()| format!("{RUNS} runs")))?;
    let checked = canary(&device);
    step(
        "canary",
        checked.map(|canary| format!("difference from the CPU {:.1e}", canary.error)),
    )
}

fn wrong(device: &Device, what: &str) -> GraphError {
    GraphError::Device {
        device: device.name().to_owned(),
        problem: format!("it computes wrong numbers: {what}"),
    }
}

fn memory(device: &Device) -> Result<String, GraphError> {
    let mut buffer = BufferBuilder::new(device, 1);
    let tensor = buffer.declare("trial", DType::F32, &[MEMORY / 4])?;
    buffer.allocate()?;
    let values: Vec<f32> = (0..MEMORY / 4).map(|i| i as f32).collect();
    tensor.write(&values)?;
    if tensor.read::<f32>()? != values {
        return Err(wrong(device, "memory does not hold what was written"));
    }
    Ok(format!("{} MiB written and read", MEMORY >> 20))
}

/// A product of a matrix of ones with an input of one value.
struct Product {
    device: Device,
    graph: Graph,
}

impl Product {
    fn new(device: &Device) -> Result<Product, GraphError> {
        let mut weights = BufferBuilder::weights(device, 1);
        let ones = weights.declare("ones", DType::F16, &[SIDE, SIDE])?;
        weights.allocate()?;
        ones.write(&vec![half::f16::ONE; SIDE * SIDE])?;
        let graph = Graph::build(device, |g| {
            let x = g.input("x", DType::F32, &[SIDE, SIDE]);
            g.output("y", x.linear(&ones, None));
            Ok(())
        })?;
        Ok(Product {
            device: device.clone(),
            graph,
        })
    }

    fn run(&mut self, value: f32) -> Result<String, GraphError> {
        self.graph.write("x", &vec![value; SIDE * SIDE])?;
        self.graph.compute()?;
        let wanted = value * SIDE as f32;
        let found = self.graph.read::<f32>("y")?;
        // Small whole numbers: exact in every type.
        match found.iter().find(|y| **y != wanted) {
            None => Ok(format!("{SIDE} x {SIDE}")),
            Some(y) => Err(wrong(
                &self.device,
                &format!("a product gave {y} instead of {wanted}"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{BackendType, Inventory, probe::child::STEPS};

    #[test]
    fn the_cpu_takes_every_step_in_order() {
        let inventory = Inventory::discover(&[BackendType::Cpu]);
        let mut steps = Vec::new();
        trial(
            &inventory.devices[0],
            &DeviceOptions::default(),
            |name, _| {
                steps.push(name);
            },
        )
        .unwrap();
        // Loading is the caller's step.
        assert_eq!(steps, STEPS[1..]);
    }
}
