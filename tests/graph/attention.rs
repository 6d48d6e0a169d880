//! Scaled dot-product attention.

use audiocpp::graph::{DType, Device, Kernel};

use crate::graph::{Array, Case, Layout, Random, Side, allowed, reference};

/// Batch, query, key, heads, key heads, width, width of the values.
type Shape = (usize, usize, usize, usize, usize, usize, usize);

/// f32 keys: exact graphs use f32 products everywhere; GPUs add in another order. f16 keys: the
/// query is rounded to f16. ggml's CPU code also sums the values in f16 where there are few
/// queries; CUDA's and HIP's tensor core kernels round the sum to f16 after every 16 keys, which
/// grows with the root of their number.
fn tolerance(dtype: DType, keys: usize, device: &Device) -> f64 {
    match (dtype, device.is_cpu()) {
        (DType::F32, true) => 5e-6,
        (DType::F32, false) => allowed(2e-5, device),
        (_, true) => 2e-2,
        (_, false) => 2e-2f64.max((keys as f64 / 16.0).sqrt() / 1024.0),
    }
}

/// Some keys are hidden from some queries, never the first.
fn mask(query: usize, key: usize, random: &mut Random) -> Array {
    Array::from_fn(&[query, key], |at| match random.next() {
        v if v > 0.3 && at[1] > 0 => f64::NEG_INFINITY,
        v => v,
    })
}

fn check(shape: Shape, dtype: DType, masked: bool, layout: Layout, random: &mut Random) {
    let (batch, query, key, heads, kv_heads, width, value) = shape;
    let mut sides = vec![
        Side::f32(&random.array(&[batch, query, heads, width], 1.0)).lying(layout),
        Side::new(&random.array(&[batch, key, kv_heads, width], 1.0), dtype).lying(layout),
        Side::new(&random.array(&[batch, key, kv_heads, value], 1.0), dtype).lying(layout),
    ];
    if masked {
        let mask = mask(query, key, random);
        sides.push(Side::new(&mask, DType::F16).lying(layout));
    }
    let [q, k, v] = [0, 1, 2].map(|i| &sides[i].values);
    let mask = sides.get(3).map(|s| &s.values);
    let scale = 0.7f32;
    let wanted = &reference::attention(q, k, v, mask, f64::from(scale));
    let tolerance = |device: &Device| tolerance(dtype, key, device);
    for kernel in [Kernel::Flash, Kernel::Plain] {
        let op = &format!("attention {kernel:?} {shape:?}");
        Case {
            op,
            tolerance: 0.0,
            sides: &sides,
            wanted,
        }
        .check_on(tolerance, |_, x, _| {
            x[0].attention(x[1], x[2], x.get(3).copied(), scale, kernel)
        });
    }
    let wanted = &reference::attention_weights(q, k, mask, f64::from(scale));
    Case {
        op: "attention_weights",
        tolerance: 0.0,
        sides: &sides,
        wanted,
    }
    .check_on(tolerance, |_, x, _| {
        x[0].attention_weights(x[1], x.get(3).copied(), scale)
    });
}

#[test]
fn shapes_types_and_masks() {
    let shapes: &[Shape] = &[
        (1, 1, 1, 1, 1, 1, 1),
        (1, 1, 5, 2, 2, 8, 8),
        (1, 3, 5, 2, 2, 16, 16),
        (2, 3, 5, 4, 2, 32, 32),
        (2, 7, 9, 6, 1, 64, 64),
        (1, 5, 3, 3, 3, 33, 33),
        (2, 4, 6, 2, 1, 16, 24),
        (1, 65, 130, 2, 1, 64, 64),
        (1, 1, 700, 4, 2, 64, 64),
        (2, 1, 513, 2, 2, 32, 32),
    ];
    let mut random = Random::new(50);
    for &shape in shapes {
        for dtype in [DType::F32, DType::F16] {
            for masked in [false, true] {
                for &layout in Layout::all(&[shape.0, shape.1, shape.3, shape.5]) {
                    check(shape, dtype, masked, layout, &mut random);
                }
            }
        }
    }
}

/// Thirty seconds of speech attending to itself.
#[test]
fn a_long_time_axis() {
    let mut random = Random::new(51);
    check(
        (1, 1500, 1500, 2, 2, 64, 64),
        DType::F16,
        false,
        Layout::Packed,
        &mut random,
    );
}

/// A single query over a long cache takes another path, split over threads.
#[test]
fn one_query_over_a_long_cache() {
    let mut random = Random::new(52);
    for dtype in [DType::F32, DType::F16] {
        check(
            (1, 1, 20_003, 4, 4, 64, 64),
            dtype,
            true,
            Layout::Packed,
            &mut random,
        );
    }
}

/// No key left: the fused kernel gives zeros.
#[test]
fn a_query_without_keys() {
    let mut random = Random::new(53);
    // Exact graphs over f32 keys are not fused on GPUs.
    let sizes = [(3, DType::F32), (5, DType::F16), (5, DType::F16)];
    let [q, k, v] = sizes.map(|(t, dtype)| Side::new(&random.array(&[1, t, 2, 16], 1.0), dtype));
    let hide = |hidden: f64| Array::from_fn(&[3, 5], |at| if at[0] == 1 { hidden } else { 0.0 });
    let (finite, nothing) = (hide(0.0), hide(f64::NEG_INFINITY));
    let all = reference::attention(&q.values, &k.values, &v.values, Some(&finite), 0.5);
    let wanted = &Array::from_fn(all.shape(), |at| if at[1] == 1 { 0.0 } else { all.at(at) });
    let sides = &[q, k, v, Side::new(&nothing, DType::F16)];
    Case {
        op: "attention",
        tolerance: 2e-2,
        sides,
        wanted,
    }
    .check(|_, x, _| x[0].attention(x[1], x[2], Some(x[3]), 0.5, Kernel::Flash));
}
