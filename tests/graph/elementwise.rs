//! Arithmetic, activations and what works along the last axis.

use audiocpp::graph::{DType, Glu, Tensor};

use crate::graph::{Array, Case, Layout, Random, Side, reference};

/// Shapes of every rank: one element, odd sizes, a long time axis.
const SHAPES: &[&[usize]] = &[
    &[],
    &[1],
    &[7],
    &[1, 1],
    &[5, 1],
    &[1, 5],
    &[3, 257],
    &[2, 3, 17],
    &[2, 1, 3, 33],
];

const LONG: &[usize] = &[100_003, 3];

fn each_layout(shape: &[usize], test: impl Fn(Layout)) {
    Layout::all(shape).iter().for_each(|&layout| test(layout));
}

/// One operator over all shapes and layouts, its inputs in `-scale..scale` moved by `shift`.
fn unary<O, W>(op: &str, tolerance: f64, (scale, shift): (f64, f64), make: O, wanted: W)
where
    O: for<'g> Fn(Tensor<'g>) -> Tensor<'g> + Copy,
    W: Fn(&Array) -> Array,
{
    let mut random = Random::new(1);
    for shape in SHAPES.iter().copied().chain([LONG]) {
        let x = random
            .array(shape, scale)
            .map(|v| v + shift)
            .round_to(DType::F32);
        each_layout(shape, |layout| {
            Case {
                op,
                tolerance,
                sides: &[Side::f32(&x).lying(layout)],
                wanted: &wanted(&x),
            }
            .check(|_, x, _| make(x[0]));
        });
    }
}

fn by_value(
    op: &str,
    tolerance: f64,
    range: (f64, f64),
    make: for<'g> fn(Tensor<'g>) -> Tensor<'g>,
    f: fn(f64) -> f64,
) {
    unary(op, tolerance, range, make, |x| x.map(f));
}

#[test]
fn activations_and_functions() {
    by_value("sqr", 1e-6, (3.0, 0.0), |x| x.sqr(), |v| v * v);
    by_value("sqrt", 1e-6, (2.0, 2.0), |x| x.sqrt(), f64::sqrt);
    by_value("log", 1e-6, (2.0, 2.001), |x| x.log(), f64::ln);
    by_value("exp", 2e-6, (9.0, 0.0), |x| x.exp(), f64::exp);
    by_value("sin", 2e-6, (30.0, 0.0), |x| x.sin(), f64::sin);
    by_value("cos", 2e-6, (30.0, 0.0), |x| x.cos(), f64::cos);
    by_value("abs", 0.0, (3.0, 0.0), |x| x.abs(), f64::abs);
    by_value("tanh", 1e-6, (6.0, 0.0), |x| x.tanh(), f64::tanh);
    by_value(
        "sigmoid",
        1e-6,
        (9.0, 0.0),
        |x| x.sigmoid(),
        reference::sigmoid,
    );
    by_value("relu", 0.0, (3.0, 0.0), |x| x.relu(), |v| v.max(0.0));
    by_value(
        "elu",
        1e-6,
        (3.0, 0.0),
        |x| x.elu(),
        |v| if v > 0.0 { v } else { v.exp_m1() },
    );
    by_value("silu", 1e-6, (9.0, 0.0), |x| x.silu(), reference::silu);
    by_value("gelu", 1e-6, (5.0, 0.0), |x| x.gelu(), reference::gelu);
    by_value(
        "softplus",
        1e-6,
        (9.0, 0.0),
        |x| x.softplus(),
        |v| v.exp().ln_1p(),
    );
    by_value(
        "scale",
        1e-6,
        (3.0, 0.0),
        |x| x * -1.7,
        |v| v * f64::from(-1.7f32),
    );
    by_value(
        "offset",
        1e-6,
        (3.0, 0.0),
        |x| x + 0.3,
        |v| v + f64::from(0.3f32),
    );
    by_value(
        "scale_add",
        1e-6,
        (3.0, 0.0),
        |x| x.scale_add(2.5, -0.5),
        |v| v * 2.5 - 0.5,
    );
    by_value("neg", 0.0, (3.0, 0.0), |x| -x, |v| -v);
    by_value(
        "clamp",
        0.0,
        (3.0, 0.0),
        |x| x.clamp(-0.5, 1.25),
        |v| v.clamp(-0.5, 1.25),
    );
    by_value(
        "leaky_relu",
        1e-6,
        (3.0, 0.0),
        |x| x.leaky_relu(0.1),
        |v| if v > 0.0 { v } else { v * f64::from(0.1f32) },
    );
    // ggml's CPU code looks f16 values up in a table.
    by_value(
        "gelu_tanh",
        1e-3,
        (5.0, 0.0),
        |x| x.gelu_tanh(),
        reference::gelu_tanh,
    );
}

#[test]
fn values_beyond_the_range_of_the_tables() {
    let x = Array::new(
        &[9],
        vec![-1e30, -100.0, -11.0, -0.0, 1e-30, 11.0, 100.0, 1e4, 1e30],
    );
    let case = |op, wanted: fn(f64) -> f64, make: for<'g> fn(Tensor<'g>) -> Tensor<'g>| {
        Case {
            op,
            tolerance: 1e-6,
            sides: &[Side::f32(&x)],
            wanted: &x.round_to(DType::F32).map(wanted),
        }
        .check(|_, x, _| make(x[0]));
    };
    case("gelu", reference::gelu, |x| x.gelu());
    case("gelu_tanh", reference::gelu_tanh, |x| x.gelu_tanh());
    case(
        "silu",
        |v| if v < -700.0 { 0.0 } else { reference::silu(v) },
        |x| x.silu(),
    );
    case("tanh", f64::tanh, |x| x.tanh());
    case("sigmoid", reference::sigmoid, |x| x.sigmoid());
    case("clamp", |v| v.clamp(-5.0, 5.0), |x| x.clamp(-5.0, 5.0));
}

#[test]
fn along_the_last_axis() {
    let total = |row: &[f64]| row.iter().sum::<f64>();
    unary(
        "sum_last",
        1e-5,
        (1.0, 0.5),
        |x| x.sum_last(),
        |x| x.map_rows(|r| vec![total(r)]),
    );
    unary(
        "mean_last",
        1e-5,
        (1.0, 0.5),
        |x| x.mean_last(),
        |x| x.map_rows(|r| vec![total(r) / r.len() as f64]),
    );
    unary(
        "cumsum",
        1e-5,
        (1.0, 0.5),
        |x| x.cumsum(),
        |x| {
            x.map_rows(|r| {
                let mut sum = 0.0;
                r.iter()
                    .map(|v| {
                        sum += v;
                        sum
                    })
                    .collect()
            })
        },
    );
    unary(
        "softmax",
        2e-6,
        (4.0, 0.0),
        |x| x.softmax(1.5, None),
        |x| x.map_rows(|r| reference::softmax_row(r, 1.5, |_| 0.0)),
    );
    unary(
        "norm",
        5e-6,
        (1.0, 0.3),
        |x| x.norm(1e-2),
        |x| x.map_rows(|r| reference::norm_row(r, f64::from(1e-2f32))),
    );
    unary(
        "rms_norm",
        2e-6,
        (1.0, 0.3),
        |x| x.rms_norm(1e-2),
        |x| x.map_rows(|r| reference::rms_norm_row(r, f64::from(1e-2f32))),
    );
}

/// The whole signal is one row: sums of 300 009 values.
#[test]
fn one_long_row() {
    let x = Random::new(2).array(&[300_009], 1.0).round_to(DType::F32);
    let mean = x.values().iter().sum::<f64>() / 300_009.0;
    let case = |op, tolerance, wanted: &Array, make: for<'g> fn(Tensor<'g>) -> Tensor<'g>| {
        Case {
            op,
            tolerance,
            sides: &[Side::f32(&x)],
            wanted,
        }
        .check(|_, x, _| make(x[0]));
    };
    case("mean_last", 1e-3, &Array::new(&[1], vec![mean]), |x| {
        x.mean_last()
    });
    let normed = x.map_rows(|r| reference::norm_row(r, f64::from(1e-5f32)));
    case("norm", 2e-5, &normed, |x| x.norm(1e-5));
    let normed = x.map_rows(|r| reference::rms_norm_row(r, f64::from(1e-5f32)));
    case("rms_norm", 2e-5, &normed, |x| x.rms_norm(1e-5));
}

type Op = for<'g> fn(Tensor<'g>, Tensor<'g>) -> Tensor<'g>;

/// What an operator does to two numbers.
type Exact = fn(f64, f64) -> f64;

const ARITHMETIC: [(&str, Op, Exact); 4] = [
    ("add", |a, b| a + b, |a, b| a + b),
    ("sub", |a, b| a - b, |a, b| a - b),
    ("mul", |a, b| a * b, |a, b| a * b),
    ("div", |a, b| a / b, |a, b| a / b),
];

#[test]
fn arithmetic_broadcasts_like_numpy() {
    let pairs: &[(&[usize], &[usize])] = &[
        (&[], &[]),
        (&[7], &[7]),
        (&[7], &[]),
        (&[3, 5], &[5]),
        (&[3, 5], &[3, 1]),
        (&[2, 3, 5], &[3, 1]),
        (&[2, 3, 5], &[2, 1, 5]),
        (&[2, 3, 5], &[1, 1, 1]),
        (&[2, 3, 4, 5], &[2, 1, 4, 1]),
        (&[2, 3, 4, 5], &[2, 3, 4, 5]),
        (&[100_003, 3], &[3]),
        (&[100_003, 3], &[100_003, 1]),
    ];
    let mut random = Random::new(3);
    for &(large, small) in pairs {
        let a = random
            .array(large, 2.0)
            .map(|v| v + 3.0)
            .round_to(DType::F32);
        let b = random
            .array(small, 2.0)
            .map(|v| v + 3.0)
            .round_to(DType::F32);
        for (op, make, f) in ARITHMETIC {
            each_layout(large, |la| {
                each_layout(small, |lb| {
                    let sides = [Side::f32(&a).lying(la), Side::f32(&b).lying(lb)];
                    let case = Case {
                        op,
                        tolerance: 1e-6,
                        sides: &sides,
                        wanted: &a.zip(&b, f),
                    };
                    case.check(|_, x, _| make(x[0], x[1]));
                    if op != "div" {
                        let wanted = &a.zip(&b, |x, y| f(y, x));
                        let case = Case { wanted, ..case };
                        case.check(|_, x, _| make(x[1], x[0]));
                    }
                });
            });
        }
    }
}

/// Equal types stay; different ones become f32.
#[test]
fn arithmetic_of_other_types() {
    use DType::{BF16, F16, F32};
    let mut random = Random::new(4);
    let (a, b) = (
        random.array(&[3, 9], 2.0),
        random.array(&[9], 2.0).map(|v| v + 3.0),
    );
    for (ta, tb, tolerance) in [
        (F16, F16, 1e-3),
        (BF16, BF16, 8e-3),
        (F32, F16, 1e-6),
        (F16, F32, 1e-6),
        (F32, BF16, 1e-6),
        (BF16, F32, 1e-6),
        (BF16, F16, 1e-6),
    ] {
        for (op, make, f) in ARITHMETIC {
            for layout in [Layout::Packed, Layout::Transposed] {
                let sides = [Side::new(&a, ta).lying(layout), Side::new(&b, tb)];
                let wanted = &sides[0].values.zip(&sides[1].values, f);
                Case {
                    op,
                    tolerance,
                    sides: &sides,
                    wanted,
                }
                .check(|_, x, _| make(x[0], x[1]));
            }
        }
    }
}

#[test]
fn stored_gain_and_bias() {
    let mut random = Random::new(5);
    let x = random.array(&[2, 7, 12], 2.0).round_to(DType::F32);
    let (gain, bias) = (random.array(&[12], 1.0), random.array(&[12], 1.0));
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let sides = [
            Side::f32(&x),
            Side::stored(&gain, dtype),
            Side::stored(&bias, dtype),
        ];
        let eps = f64::from(1e-5f32);
        let normed = x.map_rows(|r| reference::norm_row(r, eps));
        let scaled = normed.zip(&sides[1].values, |a, b| a * b);
        let wanted = &scaled.zip(&sides[2].values, |a, b| a + b);
        Case {
            op: "layer_norm",
            tolerance: 2e-6,
            sides: &sides,
            wanted,
        }
        .check(|_, x, w| x[0].layer_norm(&w[0], &w[1], 1e-5));
        let wanted = &x
            .zip(&sides[1].values, |a, b| a * b)
            .zip(&sides[2].values, |a, b| a + b);
        Case {
            op: "gain and bias",
            tolerance: 1e-6,
            sides: &sides,
            wanted,
        }
        .check(|_, x, w| x[0] * &w[0] + &w[1]);
    }
}

/// The CPU runs rms_norm and a following product as one.
#[test]
fn rms_norm_with_gain() {
    let mut random = Random::new(6);
    for gain in [&[12][..], &[7, 1], &[2, 1, 12], &[2, 7, 12]] {
        let (x, gain) = (random.array(&[2, 7, 12], 2.0), random.array(gain, 1.0));
        let sides = [Side::f32(&x), Side::f32(&gain)];
        let normed = sides[0]
            .values
            .map_rows(|r| reference::rms_norm_row(r, f64::from(1e-5f32)));
        let wanted = &normed.zip(&sides[1].values, |a, b| a * b);
        Case {
            op: "rms_norm, mul",
            tolerance: 2e-6,
            sides: &sides,
            wanted,
        }
        .check(|_, x, _| x[0].rms_norm(1e-5) * x[1]);
    }
}

#[test]
fn group_norm() {
    let mut random = Random::new(7);
    for (shape, groups) in [
        (&[2, 6, 35][..], 3),
        (&[1, 4, 1], 4),
        (&[3, 4, 7], 1),
        (&[8, 5], 2),
        (&[1, 2, 50_001], 2),
    ] {
        let x = random
            .array(shape, 2.0)
            .map(|v| v + 0.4)
            .round_to(DType::F32);
        let three = match *shape {
            [c, t] => [1, c, t],
            _ => [shape[0], shape[1], shape[2]],
        };
        let eps = f64::from(1e-5f32);
        let wanted = &reference::group_norm(&x.reshape(&three), groups, eps).reshape(shape);
        each_layout(shape, |layout| {
            let sides = [Side::f32(&x).lying(layout)];
            Case {
                op: "group_norm",
                tolerance: 1e-5,
                sides: &sides,
                wanted,
            }
            .check(|_, x, _| x[0].group_norm(groups, 1e-5));
        });
    }
}

#[test]
fn gated_units() {
    let mut random = Random::new(8);
    for shape in [&[2][..], &[5, 6], &[2, 3, 34]] {
        let x = random.array(shape, 3.0).round_to(DType::F32);
        let half = x.last() / 2;
        for (kind, gate) in [
            (
                Glu::Sigmoid,
                (|a, b| a * reference::sigmoid(b)) as fn(f64, f64) -> f64,
            ),
            (Glu::Silu, |a, b| reference::silu(a) * b),
            (Glu::Gelu, |a, b| reference::gelu(a) * b),
        ] {
            let wanted = &x.map_rows(|r| (0..half).map(|i| gate(r[i], r[half + i])).collect());
            each_layout(shape, |layout| {
                let sides = [Side::f32(&x).lying(layout)];
                Case {
                    op: "glu",
                    tolerance: 1e-6,
                    sides: &sides,
                    wanted,
                }
                .check(|_, x, _| x[0].glu(kind));
            });
        }
    }
}

#[test]
fn masked_softmax() {
    let mut random = Random::new(9);
    for (shape, mask_shape) in [
        (&[3, 5][..], &[3, 5][..]),
        (&[2, 3, 5], &[3, 5]),
        (&[2, 4, 3, 5], &[2, 1, 3, 5]),
        (&[2, 4, 1, 1], &[1, 1]),
        (&[6, 1500], &[6, 1500]),
    ] {
        let x = random.array(shape, 4.0).round_to(DType::F32);
        // Minus infinity takes a key away; the first one always stays.
        let mut mask = random.array(mask_shape, 2.0);
        mask = Array::from_fn(mask_shape, |at| match mask.at(at) {
            v if v > 1.0 && at[at.len() - 1] > 0 => f64::NEG_INFINITY,
            v => v,
        });
        for dtype in [DType::F16, DType::F32] {
            each_layout(mask_shape, |layout| {
                let sides = [Side::f32(&x), Side::new(&mask, dtype).lying(layout)];
                let added = x.map(|v| 0.5 * v).zip(&sides[1].values, |a, b| a + b);
                let wanted = &added.map_rows(|r| reference::softmax_row(r, 1.0, |_| 0.0));
                Case {
                    op: "softmax",
                    tolerance: 2e-6,
                    sides: &sides,
                    wanted,
                }
                .check(|_, x, _| x[0].softmax(0.5, Some(x[1])));
            });
        }
    }
}
