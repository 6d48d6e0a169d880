//! Convolutions along time.

use audiocpp::graph::{Conv1d, Conv2d, DType};

use crate::graph::{Case, Layout, Random, Side, reference};

fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => 3e-6,
        DType::F16 => 2e-3,
        _ => 1e-2,
    }
}

struct Shape {
    batch: usize,
    time: usize,
    channels: usize,
    out: usize,
    conv: Conv1d,
}

impl Shape {
    fn check(&self, dtype: DType, layout: Layout, random: &mut Random) {
        let Conv1d {
            kernel,
            stride,
            dilation,
            padding,
        } = self.conv;
        let x = random.array(&[self.batch, self.time, self.channels], 1.0);
        let w = random.array(&[self.out, kernel * self.channels], 1.0);
        let bias = random.array(&[self.out], 1.0);
        let sides = [
            Side::f32(&x).lying(layout),
            Side::stored(&w, dtype),
            Side::stored(&bias, DType::F32),
        ];
        let weight = sides[1].values.reshape(&[self.out, kernel, self.channels]);
        let conv = |bias: &[f64]| {
            reference::conv1d(&sides[0].values, &weight, bias, stride, dilation, padding)
        };
        let wanted = &conv(sides[2].values.values());
        assert_eq!(Some(wanted.shape()[1]), self.conv.output_len(self.time));
        let case = Case {
            op: "conv1d",
            tolerance: tolerance(dtype),
            sides: &sides,
            wanted,
        };
        case.check(|_, x, w| x[0].conv1d(&w[0], Some(&w[1]), self.conv));
        let wanted = &conv(&vec![0.0; self.out]);
        Case { wanted, ..case }.check(|_, x, w| x[0].conv1d(&w[0], None, self.conv));
    }
}

#[test]
fn geometries() {
    let conv = |kernel, stride, dilation, padding| Conv1d {
        kernel,
        stride,
        dilation,
        padding,
    };
    let shapes = [
        (1, 1, 1, 1, conv(1, 1, 1, (0, 0))),
        (1, 9, 3, 2, conv(3, 1, 1, (1, 1))),
        (1, 9, 3, 2, conv(3, 2, 1, (1, 1))),
        (2, 9, 3, 2, conv(3, 1, 1, (1, 1))),
        (2, 10, 5, 7, conv(3, 2, 1, (0, 1))),
        (3, 11, 4, 3, conv(4, 3, 1, (2, 0))),
        (2, 17, 3, 5, conv(3, 1, 4, (4, 4))),
        (2, 17, 3, 5, conv(5, 2, 3, (6, 5))),
        (1, 3, 2, 7, conv(3, 1, 1, (0, 0))),
        (1, 3, 2, 7, conv(3, 7, 1, (0, 0))),
        (2, 3, 2, 7, conv(2, 5, 2, (0, 0))),
        (2, 8, 3, 4, conv(1, 1, 1, (0, 0))),
        (2, 8, 3, 4, conv(1, 3, 1, (2, 0))),
        (1, 6, 1, 1, conv(7, 1, 1, (3, 3))),
        (1, 41, 33, 65, conv(7, 1, 3, (9, 9))),
        (9, 4, 13, 24, conv(3, 2, 1, (1, 1))),
    ];
    let mut random = Random::new(40);
    for (batch, time, channels, out, conv) in shapes {
        let shape = Shape {
            batch,
            time,
            channels,
            out,
            conv,
        };
        for dtype in [DType::F32, DType::F16] {
            for &layout in Layout::all(&[batch, time, channels]) {
                shape.check(dtype, layout, &mut random);
            }
        }
    }
}

#[test]
fn quantised_kernels() {
    let mut random = Random::new(41);
    for (kernel, stride, dilation) in [(1, 1, 1), (3, 1, 1), (3, 2, 1), (3, 1, 2)] {
        let conv = Conv1d {
            kernel,
            stride,
            dilation,
            padding: (1, 1),
        };
        let shape = Shape {
            batch: 2,
            time: 13,
            channels: 64,
            out: 9,
            conv,
        };
        shape.check(DType::Q8_0, Layout::Packed, &mut random);
        shape.check(DType::BF16, Layout::Packed, &mut random);
    }
}

#[test]
fn a_long_time_axis() {
    let mut random = Random::new(42);
    for (channels, conv) in [
        (3, Conv1d::same(7)),
        (
            1,
            Conv1d {
                stride: 5,
                padding: (0, 0),
                ..Conv1d::same(10)
            },
        ),
        (
            2,
            Conv1d {
                dilation: 9,
                padding: (9, 9),
                ..Conv1d::same(3)
            },
        ),
    ] {
        let shape = Shape {
            batch: 1,
            time: 100_003,
            channels,
            out: 2,
            conv,
        };
        for dtype in [DType::F32, DType::F16] {
            shape.check(dtype, Layout::Packed, &mut random);
        }
    }
}

#[test]
fn transposed() {
    let mut random = Random::new(43);
    for (time, channels, out, kernel, stride, crop) in [
        (1, 1, 1, 1, 1, 0),
        (5, 3, 2, 4, 2, 0),
        (5, 3, 2, 4, 2, 1),
        (5, 3, 2, 3, 5, 1),
        (7, 4, 3, 16, 8, 4),
        (9, 64, 5, 7, 3, 2),
        (20_001, 2, 1, 10, 5, 3),
    ] {
        let x = random.array(&[time, channels], 1.0);
        let w = random.array(&[out * kernel, channels], 1.0);
        for dtype in [DType::F32, DType::F16, DType::Q8_0] {
            if !channels.is_multiple_of(dtype.block_len()) {
                continue;
            }
            for &layout in Layout::all(&[time, channels]) {
                let sides = [Side::f32(&x).lying(layout), Side::stored(&w, dtype)];
                let weight = sides[1].values.reshape(&[out, kernel, channels]);
                let wanted = &reference::conv_transpose1d(&sides[0].values, &weight, stride, crop);
                let tolerance = tolerance(dtype);
                Case {
                    op: "conv_transpose1d",
                    tolerance,
                    sides: &sides,
                    wanted,
                }
                .check(|_, x, w| x[0].conv_transpose1d(&w[0], out, stride, crop));
            }
        }
    }
}

#[test]
fn over_a_plane() {
    let conv = |kernel, stride, dilation, padding| Conv2d {
        kernel,
        stride,
        dilation,
        padding,
    };
    let shapes = [
        (
            [1, 6, 9],
            3,
            5,
            conv([5, 5], [2, 2], [1, 1], [(1, 2), (1, 2)]),
        ),
        (
            [2, 9, 4],
            4,
            3,
            conv([8, 1], [4, 1], [1, 1], [(2, 2), (0, 0)]),
        ),
        (
            [1, 7, 8],
            1,
            2,
            conv([4, 4], [1, 1], [2, 2], [(3, 3), (3, 3)]),
        ),
        (
            [2, 5, 6],
            5,
            33,
            conv([3, 3], [1, 1], [1, 1], [(1, 1), (1, 1)]),
        ),
        (
            [1, 4, 5],
            6,
            7,
            conv([1, 1], [1, 1], [1, 1], [(0, 0), (0, 0)]),
        ),
        (
            [3, 8, 3],
            2,
            4,
            conv([2, 3], [3, 1], [1, 1], [(0, 1), (2, 0)]),
        ),
        (
            [1, 40, 50],
            8,
            65,
            conv([3, 3], [1, 2], [2, 1], [(2, 2), (0, 1)]),
        ),
    ];
    let mut random = Random::new(43);
    for ([batch, height, width], inputs, out, conv) in shapes {
        let [down, across] = conv.kernel;
        let x = random.array(&[batch, height, width, inputs], 1.0);
        let w = random.array(&[out, down * across * inputs], 1.0);
        let bias = random.array(&[out], 1.0);
        for dtype in [DType::F32, DType::F16] {
            let sides = [
                Side::f32(&x),
                Side::stored(&w, dtype),
                Side::stored(&bias, DType::F32),
            ];
            let weight = sides[1].values.reshape(&[out, down, across, inputs]);
            let bias = sides[2].values.values();
            let wanted = &reference::conv2d(&sides[0].values, &weight, bias, conv);
            let case = Case {
                op: "conv2d",
                tolerance: tolerance(dtype),
                sides: &sides,
                wanted,
            };
            case.check(|_, x, w| x[0].conv2d(&w[0], Some(&w[1]), conv));
        }
    }
}
