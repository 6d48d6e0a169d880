//! A small computation with a known answer, run when a GPU is opened.
//!
//! Some combinations of GPU, driver and library give wrong numbers without any error: finite,
//! plausible and wrong. The only defence is to compare with the CPU. The canary does that with the
//! operators that every model is made of, twice with different input, because one known fault is
//! computing on the input of the run before.

use super::{BufferBuilder, Conv1d, DType, Device, Graph, GraphError, Kernel};

/// Largest accepted difference, relative to the size of the result. Half-precision products stay
/// below a hundredth; faults seen in the field are far above a tenth.
pub const TOLERANCE: f64 = 0.03;

const TIME: usize = 96;
const WIDTH: usize = 64;
const HEADS: usize = 2;

/// How far a device's results were from the CPU's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Canary {
    /// The larger of the two runs' |device - cpu| / |cpu|, Euclidean norms.
    pub error: f64,
}

/// Numbers between -1 and 1 that look random and are the same everywhere.
fn numbers(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_769).wrapping_add(1);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// Convolution, normalisation, projection and attention on `device`, for two inputs.
fn run(device: &Device) -> Result<[Vec<f32>; 2], GraphError> {
    let mut weights = BufferBuilder::weights(device, 2);
    let taps = weights.declare("canary.conv", DType::F16, &[WIDTH, 3 * WIDTH])?;
    let qkv = weights.declare("canary.qkv", DType::F16, &[3 * WIDTH, WIDTH])?;
    weights.allocate()?;
    for (tensor, seed) in [(&taps, 1), (&qkv, 2)] {
        let n = tensor.shape().iter().product();
        let values: Vec<half::f16> = numbers(n, seed)
            .iter()
            .map(|v| half::f16::from_f32(v / 8.0))
            .collect();
        tensor.write(&values)?;
    }
    let mut graph = Graph::build(device, |g| {
        let x = g.input("x", DType::F32, &[1, TIME, WIDTH]);
        let x = x.conv1d(&taps, None, Conv1d::same(3)).norm(1e-5);
        let [q, k, v] = x.linear(&qkv, None).split::<3>(-1);
        let heads = [1, TIME, HEADS, WIDTH / HEADS];
        let [q, k, v] = [q, k, v].map(|t| t.contiguous().reshape(&heads));
        let scale = 1.0 / ((WIDTH / HEADS) as f32).sqrt();
        g.output("y", q.attention(k, v, None, scale, Kernel::Plain) + x);
        Ok(())
    })?;
    let mut once = |seed| {
        graph.write("x", &numbers(TIME * WIDTH, seed))?;
        graph.compute()?;
        graph.read::<f32>("y")
    };
    Ok([once(3)?, once(4)?])
}

/// |found - wanted| / |wanted|; infinite if a number is not finite.
fn distance(found: &[f32], wanted: &[f32]) -> f64 {
    let square = |v: f64| v * v;
    let difference: f64 = found
        .iter()
        .zip(wanted)
        .map(|(f, w)| square(f64::from(*f) - f64::from(*w)))
        .sum();
    let size: f64 = wanted.iter().map(|w| square(f64::from(*w))).sum();
    let distance = (difference / size).sqrt();
    if distance.is_finite() {
        distance
    } else {
        f64::INFINITY
    }
}

/// Runs the canary on `device` and on the CPU. About 10 ms of work.
///
/// # Errors
/// [`GraphError::Device`] if the results differ by more than [`TOLERANCE`], and whatever the
/// device reports.
pub fn canary(device: &Device) -> Result<Canary, GraphError> {
    let found = run(device)?;
    let wanted = run(&Device::cpu(1)?)?;
    let errors = [0, 1].map(|i| distance(&found[i], &wanted[i]));
    let error = errors[0].max(errors[1]);
    if error <= TOLERANCE {
        return Ok(Canary { error });
    }
    let stale = distance(&found[1], &wanted[0]) <= TOLERANCE;
    let what = if stale {
        "it computed on the input of the run before".to_owned()
    } else {
        format!(
            "results differ from the CPU's by {error:.2} of their size, at most {TOLERANCE} is allowed"
        )
    };
    Err(GraphError::Device {
        device: device.name().to_owned(),
        problem: format!("it computes wrong numbers: {what}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_agrees_with_itself() {
        let canary = canary(&Device::cpu(2).unwrap()).unwrap();
        assert!(canary.error < 1e-3, "{canary:?}");
    }

    #[test]
    fn the_two_inputs_have_different_answers() {
        let [first, second] = run(&Device::cpu(1).unwrap()).unwrap();
        assert!(distance(&first, &second) > 10.0 * TOLERANCE);
        let size = first.iter().map(|v| v.abs()).fold(0.0, f32::max);
        assert!(size > 0.1 && size < 100.0, "{size}");
    }

    #[test]
    fn distances() {
        assert_eq!(distance(&[3.0, 4.0], &[3.0, 4.0]), 0.0);
        assert_eq!(distance(&[0.0, 0.0], &[3.0, 4.0]), 1.0);
        assert_eq!(distance(&[f32::NAN, 4.0], &[3.0, 4.0]), f64::INFINITY);
        assert_eq!(distance(&[1.0], &[0.0]), f64::INFINITY);
    }
}
