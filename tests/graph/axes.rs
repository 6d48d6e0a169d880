//! Operators that move, join, cut and convert.

use audiocpp::graph::{DType, Tensor};

use crate::graph::{Array, Case, Layout, Random, Side};

fn exact(op: &str, side: Side, wanted: &Array, make: impl for<'g> Fn(Tensor<'g>) -> Tensor<'g>) {
    let sides = &[side];
    Case {
        op,
        tolerance: 0.0,
        sides,
        wanted,
    }
    .check(|_, x, _| make(x[0]));
}

fn numbers(shape: &[usize]) -> Array {
    let mut next = 0.0;
    Array::from_fn(shape, |_| {
        next += 1.0;
        next
    })
}

const TYPES: [DType; 4] = [DType::F32, DType::F16, DType::BF16, DType::I32];

/// Both the moved tensor itself and arithmetic on it, since an operator may read it where it lies.
fn moved(op: &str, x: &Array, wanted: &Array, make: impl for<'g> Fn(Tensor<'g>) -> Tensor<'g>) {
    for &layout in Layout::all(x.shape()) {
        for dtype in TYPES {
            // bf16 holds whole numbers to 256 only.
            let x = x.map(|v| v % 200.0);
            let wanted = &wanted.map(|v| v % 200.0);
            exact(op, Side::new(&x, dtype).lying(layout), wanted, &make);
        }
        let doubled = &wanted.map(|v| 2.0 * v);
        exact(op, Side::f32(x).lying(layout), doubled, |x| {
            make(x) + make(x)
        });
    }
}

#[test]
fn permutations() {
    let orders: &[(&[usize], &[usize])] = &[
        (&[1, 1], &[1, 0]),
        (&[1, 5], &[1, 0]),
        (&[5, 1], &[1, 0]),
        (&[3, 5], &[1, 0]),
        (&[2, 3, 5], &[2, 0, 1]),
        (&[2, 3, 5], &[1, 2, 0]),
        (&[2, 1, 5], &[2, 1, 0]),
        (&[2, 3, 4, 5], &[3, 1, 0, 2]),
        (&[2, 3, 4, 5], &[0, 2, 1, 3]),
        (&[1, 3, 1, 5], &[3, 2, 1, 0]),
        (&[100_003, 3], &[1, 0]),
    ];
    for (shape, order) in orders {
        let x = numbers(shape);
        moved("permute", &x, &x.permute(order), |x| x.permute(order));
    }
    let x = numbers(&[2, 3, 5]);
    moved("transpose", &x, &x.swap(1, 2), |x| x.transpose());
    moved("contiguous", &x, &x.swap(1, 2), |x| {
        x.transpose().contiguous()
    });
}

#[test]
fn other_shapes() {
    let cases: &[(&[usize], &[usize])] = &[
        (&[], &[1, 1]),
        (&[1], &[]),
        (&[12], &[3, 4]),
        (&[3, 4], &[2, 6]),
        (&[2, 3, 4], &[24]),
        (&[2, 3, 4], &[4, 1, 3, 2]),
    ];
    for (from, to) in cases {
        let x = numbers(from);
        moved("reshape", &x, &x.reshape(to), |x| x.reshape(to));
    }
    for (shape, parts) in [
        (&[12][..], 3),
        (&[5, 12], 4),
        (&[2, 3, 12], 12),
        (&[2, 3, 12], 1),
    ] {
        let x = numbers(shape);
        let mut wanted = shape.to_vec();
        wanted.splice(shape.len() - 1.., [parts, x.last() / parts]);
        for &layout in [Layout::Packed, Layout::Cut].iter() {
            let side = Side::f32(&x).lying(layout);
            exact("split_last", side, &x.reshape(&wanted), |x| {
                x.split_last(parts)
            });
        }
    }
}

#[test]
fn slices() {
    for (shape, axis, start, len) in [
        (&[7][..], 0, 2, 3),
        (&[7], 0, 6, 1),
        (&[5, 6], 0, 4, 1),
        (&[5, 6], 1, 1, 5),
        (&[2, 5, 6], 1, 2, 2),
        (&[2, 3, 5, 6], 0, 1, 1),
        (&[2, 3, 5, 6], 3, 5, 1),
    ] {
        let x = numbers(shape);
        let wanted = x.slice(axis, start, len);
        moved("slice", &x, &wanted, |x| x.slice(axis as isize, start, len));
        let back = axis as isize - shape.len() as isize;
        moved("slice", &x, &wanted, |x| x.slice(back, start, len));
    }
    let x = numbers(&[4, 9]);
    for i in 0..3 {
        moved("split", &x, &x.slice(1, i * 3, 3), |x| x.split::<3>(-1)[i]);
    }
}

#[test]
fn joined() {
    for (a, b, axis) in [
        (&[3][..], &[4][..], 0),
        (&[2, 3], &[2, 5], 1),
        (&[2, 3], &[1, 3], 0),
        (&[2, 3, 4], &[2, 1, 4], 1),
        (&[2, 3, 4, 5], &[1, 3, 4, 5], 0),
        (&[2, 3, 4, 5], &[2, 3, 4, 2], 3),
        (&[100_003, 3], &[2, 3], 0),
    ] {
        let (a, b) = (numbers(a).map(|v| v % 200.0), numbers(b).map(|v| -v));
        let wanted = &a.concat(&b, axis);
        for dtype in TYPES {
            for layout in [Layout::Packed, Layout::Cut] {
                let sides = &[Side::new(&a, dtype).lying(layout), Side::new(&b, dtype)];
                Case {
                    op: "concat",
                    tolerance: 0.0,
                    sides,
                    wanted,
                }
                .check(|_, x, _| x[0].concat(x[1], axis as isize));
            }
        }
    }
}

#[test]
fn padded() {
    for (shape, axis, before, after) in [
        (&[5][..], 0, 2, 3),
        (&[3, 4], 0, 1, 0),
        (&[3, 4], 1, 0, 2),
        (&[2, 3, 4], 1, 4, 5),
        (&[2, 3, 4, 5], 0, 1, 1),
        (&[1, 100_003, 3], 1, 3, 3),
    ] {
        let x = numbers(shape);
        let wanted = x.pad(axis, before, after, 0.0);
        for &layout in Layout::all(x.shape()) {
            let side = Side::f32(&x).lying(layout);
            exact("pad", side, &wanted, |x| {
                x.pad(axis as isize, before, after)
            });
        }
    }
    for (shape, before, after) in [
        (&[5][..], 4, 4),
        (&[2, 3], 0, 2),
        (&[2, 3, 100], 99, 1),
        (&[1, 100_003], 200, 200),
    ] {
        let x = numbers(shape);
        let n = x.last() as isize;
        let wanted = x.map_rows(|r| {
            (-(before as isize)..n + after as isize)
                .map(|i| {
                    r[(if i < 0 {
                        -i
                    } else if i >= n {
                        2 * n - 2 - i
                    } else {
                        i
                    }) as usize]
                })
                .collect()
        });
        for &layout in Layout::all(x.shape()) {
            let side = Side::f32(&x).lying(layout);
            exact("pad_reflect", side, &wanted, |x| {
                x.pad_reflect(before, after)
            });
        }
    }
}

#[test]
fn repeated() {
    for (from, to) in [
        (&[][..], &[3][..]),
        (&[1], &[5]),
        (&[4], &[3, 4]),
        (&[3, 1], &[3, 4]),
        (&[1, 3], &[2, 2, 3]),
        (&[2, 1, 4, 1], &[2, 3, 4, 5]),
        (&[2, 3], &[2, 3]),
        (&[3], &[100_003, 3]),
    ] {
        let x = numbers(from);
        moved("broadcast", &x, &x.broadcast(to), |x| x.broadcast(to));
    }
}

#[test]
fn converted() {
    use DType::{BF16, F16, F32, Q4_K, Q8_0};
    let mut random = Random::new(20);
    let x = random.array(&[3, 2, 512], 2.0);
    for from in [F32, F16, BF16] {
        for to in [F32, F16, BF16] {
            for &layout in Layout::all(x.shape()) {
                let side = Side::new(&x, from).lying(layout);
                let wanted = side.values.round_to(to);
                exact("cast", side, &wanted, |x| x.cast(to));
            }
        }
    }
    for from in [Q8_0, Q4_K, DType::Q5_0, DType::Q6_K] {
        for to in [F32, F16, BF16] {
            let side = Side::stored(&x, from);
            let wanted = side.values.round_to(to);
            exact("cast", side.clone(), &wanted, |x| x.cast(to));
            let wanted = side.values.swap(0, 1).round_to(to);
            exact("cast", side.clone(), &wanted, |x| {
                x.permute(&[1, 0, 2]).cast(to)
            });
            let wanted = side.values.slice(0, 1, 2).round_to(to);
            exact("cast", side, &wanted, |x| x.slice(0, 1, 2).cast(to));
        }
    }
}

#[test]
fn counted() {
    for (start, n) in [(0, 1), (3, 7), (0, 100_003), ((1 << 24) - 5, 5)] {
        let wanted = &Array::from_fn(&[n], |at| (start + at[0]) as f64);
        Case {
            op: "arange",
            tolerance: 0.0,
            sides: &[],
            wanted,
        }
        .check(|g, _, _| g.arange(start, n));
    }
}
