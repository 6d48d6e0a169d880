//! Matrix products.

use audiocpp::graph::{DType, DeviceTensor, Tensor};

use crate::graph::{Case, Layout, Random, Side, reference};

use DType::{BF16, F16, F32, Q4_K, Q5_0, Q8_0};

/// What the storage type of the right side allows: the left side is rounded to f16 or bf16 along
/// with it, or quantised to 8 bits.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        F32 => 3e-6,
        F16 => 1e-3,
        BF16 => 8e-3,
        _ => 1e-2,
    }
}

#[test]
fn shapes_and_layouts() {
    let cases: &[(&[usize], &[usize])] = &[
        (&[1, 1], &[1, 1]),
        (&[1, 7], &[1, 7]),
        (&[3, 5], &[4, 5]),
        (&[5], &[5]),
        (&[1, 384], &[51, 384]),
        (&[17, 33], &[9, 33]),
        (&[2, 3, 5], &[4, 5]),
        (&[2, 3, 5], &[2, 4, 5]),
        (&[2, 6, 3, 5], &[1, 1, 4, 5]),
        (&[2, 6, 3, 5], &[2, 3, 4, 5]),
        (&[2, 6, 3, 5], &[2, 4, 5]),
        (&[129, 64], &[65, 64]),
        (&[100_003, 3], &[2, 3]),
    ];
    let mut random = Random::new(30);
    for (left, right) in cases {
        // [2, 6, ..] by [2, 4, 5]: each right matrix serves three neighbours.
        let (a, b) = (random.array(left, 1.0), random.array(right, 1.0));
        for dtype in [F32, F16, BF16] {
            for &la in Layout::all(a.shape()) {
                for &lb in Layout::all(b.shape()) {
                    let sides = [Side::f32(&a).lying(la), Side::new(&b, dtype).lying(lb)];
                    let wanted = &reference::matmul_t(&sides[0].values, &sides[1].values);
                    Case {
                        op: "matmul_t",
                        tolerance: tolerance(dtype),
                        sides: &sides,
                        wanted,
                    }
                    .check(|_, x, _| x[0].matmul_t(x[1]));
                }
            }
        }
    }
}

#[test]
fn quantised_weights() {
    let mut random = Random::new(31);
    for dtype in [
        F32,
        F16,
        BF16,
        Q8_0,
        Q5_0,
        DType::Q4_0,
        DType::Q4_1,
        Q4_K,
        DType::Q6_K,
    ] {
        let block = dtype.block_len().max(64);
        for (m, n, blocks) in [(1, 5, 1), (1, 51, 2), (7, 33, 1), (130, 17, 2)] {
            let k = blocks * block;
            let (a, b) = (random.array(&[m, k], 1.0), random.array(&[n, k], 1.0));
            for layout in [Layout::Packed, Layout::Cut, Layout::Transposed] {
                let sides = [Side::f32(&a).lying(layout), Side::stored(&b, dtype)];
                let wanted = &reference::matmul_t(&sides[0].values, &sides[1].values);
                Case {
                    op: "matmul_t",
                    tolerance: tolerance(dtype),
                    sides: &sides,
                    wanted,
                }
                .check(|_, x, _| x[0].matmul_t(x[1]));
            }
        }
        // Batches share one matrix, or have their own.
        for right in [&[3, 5, block][..], &[5, block]] {
            let (a, b) = (random.array(&[3, 2, block], 1.0), random.array(right, 1.0));
            let sides = [Side::f32(&a), Side::stored(&b, dtype)];
            let wanted = &reference::matmul_t(&sides[0].values, &sides[1].values);
            Case {
                op: "matmul_t",
                tolerance: tolerance(dtype),
                sides: &sides,
                wanted,
            }
            .check(|_, x, _| x[0].matmul_t(x[1]));
        }
        // Some rows of a fused weight.
        let (a, b) = (
            random.array(&[4, block], 1.0),
            random.array(&[9, block], 1.0),
        );
        let sides = [Side::f32(&a), Side::stored(&b, dtype)];
        let wanted = &reference::matmul_t(&sides[0].values, &sides[1].values.slice(0, 3, 3));
        Case {
            op: "matmul_t",
            tolerance: tolerance(dtype),
            sides: &sides,
            wanted,
        }
        .check(|_, x, _| x[0].matmul_t(x[1].slice(0, 3, 3)));
    }
}

#[test]
fn untransposed() {
    let mut random = Random::new(32);
    for (left, right) in [
        (&[3, 5][..], &[5, 4][..]),
        (&[2, 3, 5], &[5, 4]),
        (&[2, 3, 5], &[2, 5, 1]),
        (&[1, 1], &[1, 1]),
    ] {
        let (a, b) = (random.array(left, 1.0), random.array(right, 1.0));
        for &layout in Layout::all(right) {
            let sides = [Side::f32(&a), Side::f32(&b).lying(layout)];
            let turned = sides[1].values.swap(right.len() - 2, right.len() - 1);
            let wanted = &reference::matmul_t(&sides[0].values, &turned);
            Case {
                op: "matmul",
                tolerance: 3e-6,
                sides: &sides,
                wanted,
            }
            .check(|_, x, _| x[0].matmul(x[1]));
        }
    }
}

#[test]
fn linear_layers() {
    let mut random = Random::new(33);
    for shape in [&[64][..], &[7, 64], &[2, 7, 64], &[2, 3, 2, 64]] {
        for dtype in [F32, F16, Q8_0] {
            let (x, w) = (random.array(shape, 1.0), random.array(&[10, 64], 1.0));
            let bias = random.array(&[10], 1.0);
            let sides = [
                Side::f32(&x),
                Side::stored(&w, dtype),
                Side::stored(&bias, F32),
            ];
            let mut made = shape.to_vec();
            *made.last_mut().unwrap() = 10;
            let product = reference::matmul_t(&sides[0].values, &sides[1].values).reshape(&made);
            let tolerance = tolerance(dtype);
            let case = Case {
                op: "linear",
                tolerance,
                sides: &sides,
                wanted: &product,
            };
            case.check(|_, x, w| x[0].linear(&w[0], None));
            let wanted = &product.zip(&sides[2].values, |a, b| a + b);
            Case { wanted, ..case }.check(|_, x, w| x[0].linear(&w[0], Some(&w[1])));
        }
    }
}

/// Layers of many rows: product, bias and activation in one pass where the CPU does them so.
#[test]
fn linear_layers_with_gelu() {
    let mut random = Random::new(33);
    for dtype in [F32, F16, BF16] {
        for (left, n) in [
            (&[24, 1][..], 1),
            (&[25, 7], 33),
            (&[3, 31, 40], 65),
            (&[1, 300, 70], 129),
            (&[2, 24, 513], 2100),
        ] {
            let k = left[left.len() - 1];
            let a = random.array(left, 1.0);
            let (w, b) = (random.array(&[n, k], 1.0), random.array(&[n], 1.0));
            for layout in [Layout::Packed, Layout::Transposed, Layout::Cut] {
                let sides = [
                    Side::f32(&a).lying(layout),
                    Side::stored(&w, dtype),
                    Side::stored(&b, F32),
                ];
                let product = reference::matmul_t(&sides[0].values, &sides[1].values);
                let with_bias =
                    product.zip(&sides[2].values.broadcast(product.shape()), |y, b| y + b);
                let check = |op, wanted: &_, describe: Layer| {
                    Case {
                        op,
                        tolerance: tolerance(dtype),
                        sides: &sides,
                        wanted,
                    }
                    .check(|_, x, w| describe(x[0], &w[0], &w[1]));
                };
                check("linear", &with_bias, |x, w, b| x.linear(w, Some(b)));
                let activated = with_bias.map(reference::gelu);
                check("linear, gelu", &activated, |x, w, b| {
                    x.linear(w, Some(b)).gelu()
                });
                let plain = product.map(reference::gelu);
                check("product, gelu", &plain, |x, w, _| x.linear(w, None).gelu());
                let both = with_bias.zip(&activated, |y, g| y + g);
                check("linear and gelu of it", &both, |x, w, b| {
                    let y = x.linear(w, Some(b));
                    y + y.gelu()
                });
            }
        }
    }
}

type Layer = for<'g> fn(Tensor<'g>, &DeviceTensor, &DeviceTensor) -> Tensor<'g>;
