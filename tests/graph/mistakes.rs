//! Operators given what does not fit them: each names itself in the error.

use audiocpp::graph::{
    BufferBuilder, Conv1d, DType, Device, DeviceTensor, Glu, Graph, GraphError, Kernel, Scope,
    Tensor,
};

use DType::{BF16, F16, F32, I32, I64};

struct Stored {
    f32: DeviceTensor,
    q8: DeviceTensor,
    q81: DeviceTensor,
    iq2: DeviceTensor,
    i32: DeviceTensor,
    i16: DeviceTensor,
}

/// `[4, 256]` of several types.
fn stored(device: &Device) -> Stored {
    let mut state = BufferBuilder::new(device, 6);
    let mut declare = |dtype: DType| state.declare(dtype.name(), dtype, &[4, 256]).unwrap();
    let made = Stored {
        f32: declare(F32),
        q8: declare(DType::Q8_0),
        q81: declare(DType::Q8_1),
        iq2: declare(DType::IQ2_XXS),
        i32: declare(I32),
        i16: declare(DType::I16),
    };
    state.allocate().unwrap();
    made
}

/// Inputs of all sorts.
struct Inputs<'g, 's> {
    g: &'g Scope,
    s: &'s Stored,
    /// f32 `[2, 6]`
    x: Tensor<'g>,
    /// f32 `[3, 5]`
    y: Tensor<'g>,
    /// f32 `[2, 4, 6, 8]`
    deep: Tensor<'g>,
    /// f16 `[2, 6]`
    half: Tensor<'g>,
    /// bf16 `[2, 6]`
    brain: Tensor<'g>,
    /// i32 `[6]`
    at: Tensor<'g>,
    /// i64 `[6]`
    wide: Tensor<'g>,
}

type Make = for<'g, 's> fn(&Inputs<'g, 's>) -> Tensor<'g>;

fn build(device: &Device, stored: &Stored, make: Make) -> Result<(), GraphError> {
    Graph::build(device, |g| {
        let inputs = Inputs {
            g,
            s: stored,
            x: g.input("x", F32, &[2, 6]),
            y: g.input("y", F32, &[3, 5]),
            deep: g.input("deep", F32, &[2, 4, 6, 8]),
            half: g.input("half", F16, &[2, 6]),
            brain: g.input("brain", BF16, &[2, 6]),
            at: g.input("at", I32, &[6]),
            wide: g.input("wide", I64, &[6]),
        };
        g.output("result", make(&inputs));
        Ok(())
    })
    .map(drop)
}

fn refused(cases: &[(&str, Make)]) {
    let device = Device::cpu(1).unwrap();
    let stored = stored(&device);
    for (i, (wanted, make)) in cases.iter().enumerate() {
        match build(&device, &stored, *make) {
            Err(GraphError::Shape { op, problem }) => {
                assert_eq!(op, *wanted, "case {i}: {problem}");
                assert!(!problem.is_empty());
            }
            other => panic!("case {i}, {wanted}: {other:?}"),
        }
    }
}

#[test]
fn arithmetic() {
    refused(&[
        ("add", |i| i.x + i.y),
        ("sub", |i| i.x - i.y),
        ("mul", |i| i.x * i.deep),
        ("div", |i| i.x.slice(0, 0, 1) / i.x),
        ("add", |i| i.x + i.at),
        ("mul", |i| i.at * i.at),
        ("mul", |i| i.g.stored(&i.s.f32) * &i.s.q8),
        ("add", |i| i.g.stored(&i.s.q8) + i.g.stored(&i.s.q8)),
        ("add", |i| i.g.stored(&i.s.i16) + i.g.stored(&i.s.i16)),
        ("scale_add", |i| i.half * 2.0),
        ("scale_add", |i| i.brain + 2.0),
        ("scale_add", |i| -i.at),
        ("clamp", |i| i.x.clamp(1.0, 0.0)),
        ("clamp", |i| i.x.clamp(f32::NAN, 0.0)),
        ("clamp", |i| i.half.clamp(0.0, 1.0)),
        ("exp", |i| i.half.exp()),
        ("gelu", |i| i.half.gelu()),
        ("gelu_tanh", |i| i.brain.gelu_tanh()),
        ("tanh", |i| i.g.stored(&i.s.q8).tanh()),
        ("sigmoid", |i| i.at.sigmoid()),
    ]);
}

#[test]
fn along_the_last_axis() {
    refused(&[
        ("sum_last", |i| i.half.sum_last()),
        ("cumsum", |i| i.g.stored(&i.s.q8).cumsum()),
        ("norm", |i| i.half.norm(1e-5)),
        ("norm", |i| i.x.norm(-1.0)),
        ("norm", |i| i.x.norm(f32::NAN)),
        ("rms_norm", |i| i.at.rms_norm(1e-5)),
        ("rms_norm", |i| i.x.rms_norm(f32::INFINITY)),
        ("group_norm", |i| i.x.group_norm(0, 1e-5)),
        ("group_norm", |i| i.x.group_norm(4, 1e-5)),
        ("group_norm", |i| i.deep.group_norm(2, 1e-5)),
        ("softmax", |i| i.half.softmax(1.0, None)),
        ("softmax", |i| i.x.softmax(1.0, Some(i.y))),
        ("softmax", |i| i.x.softmax(1.0, Some(i.brain))),
        ("softmax", |i| i.x.softmax(1.0, Some(i.x.slice(0, 0, 1)))),
        ("argmax", |i| i.deep.argmax()),
        ("argmax", |i| i.half.argmax()),
        ("argmax", |i| {
            i.g.input("long", F32, &[1, (1 << 24) + 1]).argmax()
        }),
        ("glu", |i| i.y.glu(Glu::Silu)),
        ("sigmoid", |i| i.half.glu(Glu::Sigmoid)),
    ]);
}

#[test]
fn axes() {
    refused(&[
        ("dims", |i| {
            let [_, _, _] = i.x.dims();
            i.x
        }),
        ("dim", |i| {
            i.x.dim(2);
            i.x
        }),
        ("dim", |i| {
            i.x.dim(isize::MIN);
            i.x
        }),
        ("reshape", |i| i.x.reshape(&[5])),
        ("reshape", |i| i.x.reshape(&[0])),
        ("reshape", |i| i.x.reshape(&[12, 1, 1, 1, 1])),
        ("reshape", |i| i.x.reshape(&[usize::MAX, 2])),
        ("reshape", |i| i.g.stored(&i.s.q8).reshape(&[64, 16])),
        ("permute", |i| i.x.permute(&[0])),
        ("permute", |i| i.x.permute(&[0, 0])),
        ("permute", |i| i.x.permute(&[0, 2])),
        ("permute", |i| i.g.stored(&i.s.q8).transpose()),
        ("transpose", |i| i.at.transpose()),
        ("slice", |i| i.x.slice(0, 1, 2)),
        ("slice", |i| i.x.slice(0, 0, 0)),
        ("slice", |i| i.x.slice(2, 0, 1)),
        ("slice", |i| i.x.slice(-3, 0, 1)),
        ("slice", |i| i.x.slice(0, usize::MAX, 2)),
        ("slice", |i| i.g.stored(&i.s.q8).slice(1, 0, 32)),
        ("split_last", |i| i.x.split_last(4)),
        ("split_last", |i| i.x.split_last(0)),
        ("split_last", |i| i.deep.split_last(2)),
        ("split_last", |i| i.x.transpose().split_last(2)),
        ("split", |i| i.x.split::<4>(1)[0]),
        ("concat", |i| i.x.concat(i.y, 0)),
        ("concat", |i| i.x.concat(i.half, 0)),
        ("concat", |i| i.x.concat(i.at, 0)),
        ("concat", |i| i.x.concat(i.x, 2)),
        ("concat", |i| {
            i.g.stored(&i.s.q8).concat(i.g.stored(&i.s.q8), 1)
        }),
        ("pad", |i| i.half.pad(0, 1, 1)),
        ("pad", |i| i.x.pad(2, 1, 1)),
        ("pad", |i| i.x.pad(0, usize::MAX, 1)),
        ("pad", |i| i.x.pad(0, 0, 1 << 31)),
        ("pad_reflect", |i| i.x.pad_reflect(6, 0)),
        ("pad_reflect", |i| i.x.pad_reflect(0, usize::MAX)),
        ("pad_reflect", |i| i.half.pad_reflect(1, 1)),
        ("broadcast", |i| i.x.broadcast(&[6])),
        ("broadcast", |i| i.x.broadcast(&[4, 6])),
        ("broadcast", |i| i.x.broadcast(&[2, 2, 2, 2, 6])),
        ("broadcast", |i| i.wide.broadcast(&[2, 6])),
        ("broadcast", |i| i.g.stored(&i.s.q8).broadcast(&[2, 4, 256])),
        ("cast", |i| i.at.cast(F32)),
        ("cast", |i| i.x.cast(I32)),
        ("cast", |i| i.x.cast(DType::Q8_0)),
        ("cast", |i| i.g.stored(&i.s.q81).cast(F32)),
        ("cast", |i| i.g.stored(&i.s.i16).cast(F32)),
        ("arange", |i| i.g.arange(0, 0)),
        ("arange", |i| i.g.arange(usize::MAX, 1)),
        ("arange", |i| i.g.arange(1 << 24, 1)),
    ]);
}

#[test]
fn products_and_attention() {
    refused(&[
        ("matmul_t", |i| i.x.matmul_t(i.y)),
        ("matmul_t", |i| i.half.matmul_t(i.x)),
        ("matmul_t", |i| i.x.matmul_t(i.at)),
        ("matmul_t", |i| i.at.matmul_t(i.at)),
        ("matmul_t", |i| i.x.matmul_t(i.deep)),
        ("matmul_t", |i| {
            i.g.stored(&i.s.f32).matmul_t(i.g.stored(&i.s.q81))
        }),
        ("matmul_t", |i| {
            i.g.stored(&i.s.f32).matmul_t(i.g.stored(&i.s.i16))
        }),
        ("matmul_t", |i| {
            let tall = i.g.input("tall", F32, &[1 << 31, 1]);
            tall.matmul_t(tall)
        }),
        ("transpose", |i| i.x.matmul(i.at)),
        ("matmul_t", |i| i.x.matmul(i.x)),
        ("matmul_t", |i| i.x.linear(&i.s.f32, None)),
        ("dims", |i| {
            i.x.attention(i.deep, i.deep, None, 1.0, Kernel::Flash)
        }),
        ("attention", |i| {
            let k = i.deep.slice(-1, 0, 4);
            i.deep.attention(k, i.deep, None, 1.0, Kernel::Flash)
        }),
        ("attention", |i| {
            let (q, k) = (i.deep, i.deep.slice(2, 0, 4));
            q.attention(k, k, None, 1.0, Kernel::Plain)
        }),
        ("attention", |i| {
            let v = i.deep.cast(F16);
            i.deep.attention(i.deep, v, None, 1.0, Kernel::Flash)
        }),
        ("attention", |i| {
            let kv = i.deep.cast(BF16);
            i.deep.attention(kv, kv, None, 1.0, Kernel::Flash)
        }),
        ("attention", |i| {
            let mask = i.g.input("mask", F32, &[4, 4]);
            i.deep
                .attention(i.deep, i.deep, Some(mask), 1.0, Kernel::Flash)
        }),
        ("attention", |i| {
            let mask = i.g.input("mask", F16, &[4, 5]);
            i.deep
                .attention(i.deep, i.deep, Some(mask), 1.0, Kernel::Plain)
        }),
        ("permute", |i| i.x.attention_weights(i.x, None, 1.0)),
        ("matmul_t", |i| {
            i.deep.attention_weights(i.deep.slice(-1, 0, 4), None, 1.0)
        }),
    ]);
}

const UNIT: Conv1d = Conv1d {
    kernel: 1,
    stride: 1,
    dilation: 1,
    padding: (0, 0),
};

#[test]
fn convolutions() {
    refused(&[
        ("dims", |i| i.x.conv1d(&i.s.f32, None, UNIT)),
        ("conv1d", |i| {
            i.x.reshape(&[1, 2, 6]).conv1d(&i.s.f32, None, UNIT)
        }),
        ("conv1d", |i| {
            long(i).conv1d(&i.s.f32, None, Conv1d { stride: 0, ..UNIT })
        }),
        ("conv1d", |i| {
            long(i).conv1d(&i.s.f32, None, Conv1d { kernel: 0, ..UNIT })
        }),
        ("conv1d", |i| {
            long(i).conv1d(
                &i.s.f32,
                None,
                Conv1d {
                    kernel: usize::MAX,
                    ..UNIT
                },
            )
        }),
        ("conv1d", |i| {
            // A kernel of 256 over one channel, longer than the input.
            let x = i.g.input("mono", F32, &[1, 255, 1]);
            x.conv1d(
                &i.s.f32,
                None,
                Conv1d {
                    kernel: 256,
                    ..UNIT
                },
            )
        }),
        ("conv1d", |i| {
            let x = i.g.input("mono", F32, &[1, 300, 1]);
            let shape = Conv1d {
                kernel: 256,
                dilation: usize::MAX,
                ..UNIT
            };
            x.conv1d(&i.s.f32, None, shape)
        }),
        ("conv1d", |i| {
            let padding = (usize::MAX, 1);
            long(i).conv1d(&i.s.f32, None, Conv1d { padding, ..UNIT })
        }),
        ("pad", |i| {
            let padding = (1 << 40, 1);
            long(i).conv1d(&i.s.f32, None, Conv1d { padding, ..UNIT })
        }),
        ("conv1d", |i| long(i).cast(F16).conv1d(&i.s.f32, None, UNIT)),
        ("matmul_t", |i| long(i).conv1d(&i.s.q81, None, UNIT)),
        ("conv_transpose1d", |i| {
            i.x.conv_transpose1d(&i.s.f32, 2, 1, 0)
        }),
        ("conv_transpose1d", |i| {
            mono(i).conv_transpose1d(&i.s.f32, 3, 1, 0)
        }),
        ("conv_transpose1d", |i| {
            mono(i).conv_transpose1d(&i.s.f32, 0, 1, 0)
        }),
        ("conv_transpose1d", |i| {
            mono(i).conv_transpose1d(&i.s.f32, 2, 0, 0)
        }),
        ("conv_transpose1d", |i| {
            mono(i).conv_transpose1d(&i.s.f32, 2, 1, 3)
        }),
        ("conv_transpose1d", |i| {
            mono(i).conv_transpose1d(&i.s.f32, 2, usize::MAX, 0)
        }),
        ("conv_transpose1d", |i| {
            mono(i).conv_transpose1d(&i.s.f32, 2, 1 << 40, 0)
        }),
        ("conv_transpose1d", |i| {
            mono(i).conv_transpose1d(&i.s.f32, 2, 1, usize::MAX)
        }),
    ]);
}

/// f32 `[1, 3, 256]`
fn long<'g>(i: &Inputs<'g, '_>) -> Tensor<'g> {
    i.g.input("signal", F32, &[1, 3, 256])
}

/// f32 `[3, 256]`
fn mono<'g>(i: &Inputs<'g, '_>) -> Tensor<'g> {
    i.g.input("frames", F32, &[3, 256])
}

#[test]
fn rows_by_number() {
    refused(&[
        ("look_up", |i| i.x.look_up(i.y)),
        ("look_up", |i| i.wide.look_up(i.y)),
        ("look_up", |i| i.at.look_up(i.deep)),
        ("look_up", |i| i.at.reshape(&[2, 3]).look_up(i.y)),
        ("look_up", |i| i.at.look_up(i.g.stored(&i.s.q81))),
        ("look_up", |i| i.at.look_up(i.g.stored(&i.s.i16))),
        ("look_up", |i| i.at.look_up(i.g.stored(&i.s.i32))),
        // Nobody knows what a stored tensor will hold.
        ("look_up", |i| {
            i.g.stored(&i.s.i32).reshape(&[1024]).look_up(i.y)
        }),
        ("look_up", |i| {
            let kept = i.g.stored(&i.s.i32).reshape(&[1024]);
            i.at.concat(kept, 0).slice(0, 0, 6).look_up(i.y)
        }),
        // Six positions, three rows.
        ("look_up", |i| i.x.argmax().look_up(i.y)),
        ("write_rows", |i| i.g.write_rows(&i.s.f32, i.x, i.at)),
        ("write_rows", |i| i.g.write_rows(&i.s.f32, row(i), i.at)),
        ("write_rows", |i| i.g.write_rows(&i.s.f32, row(i), i.x)),
        ("write_rows", |i| i.g.write_rows(&i.s.i32, row(i), one(i))),
        ("write_rows", |i| i.g.write_rows(&i.s.iq2, row(i), one(i))),
        ("write_rows", |i| {
            i.g.write_rows(&i.s.f32, row(i).cast(BF16), one(i))
        }),
        ("write_rows", |i| {
            let at =
                i.g.stored(&i.s.i32)
                    .slice(0, 0, 1)
                    .slice(1, 0, 1)
                    .reshape(&[1]);
            i.g.write_rows(&i.s.f32, row(i), at)
        }),
        ("store", |i| {
            i.g.store(&i.s.f32, i.x);
            i.x
        }),
        ("store", |i| {
            i.g.store(&i.s.i32, i.g.stored(&i.s.f32));
            i.x
        }),
        ("store", |i| {
            i.g.store(&i.s.f32, i.g.stored(&i.s.i32));
            i.x
        }),
        ("store", |i| {
            i.g.store(&i.s.f32, i.g.stored(&i.s.q8));
            i.x
        }),
        ("store", |i| {
            i.g.store(&i.s.iq2, i.g.stored(&i.s.f32));
            i.x
        }),
    ]);
}

/// f32 `[1, 256]`
fn row<'g>(i: &Inputs<'g, '_>) -> Tensor<'g> {
    i.g.input("row", F32, &[1, 256])
}

/// i32 `[1]`
fn one<'g>(i: &Inputs<'g, '_>) -> Tensor<'g> {
    i.g.input("one", I32, &[1])
}

/// An operator of one graph given a tensor of another.
#[test]
fn tensors_of_another_graph() {
    let device = Device::cpu(1).unwrap();
    let stored = stored(&device);
    type Mix = for<'g> fn(&'g Scope, Tensor<'g>, Tensor<'g>, &Stored) -> Tensor<'g>;
    let mixes: &[Mix] = &[
        |_, a, b, _| a + b,
        |_, a, b, _| b + a,
        |_, a, b, _| a * b.transpose().transpose(),
        |_, a, b, _| a.concat(b, 0),
        |_, a, b, _| a.matmul_t(b),
        |_, a, b, _| a.softmax(1.0, Some(b)),
        |_, a, b, _| a.slice(1, 0, 4).argmax().look_up(b),
        |_, _, b, _| b,
        |_, _, b, _| b.gelu(),
        |g, _, b, s| g.write_rows(&s.f32, b.slice(0, 0, 1), g.input("at", I32, &[1])),
        |g, a, b, s| {
            g.store(&s.f32, b);
            a
        },
        |g, a, b, s| {
            // Brought into the other graph, which need not outlive this one.
            a + b.scope().stored(&s.f32) + g.stored(&s.f32)
        },
    ];
    for (i, mix) in mixes.iter().enumerate() {
        Graph::build(&device, |outer| {
            let b = outer.input("b", F32, &[4, 256]);
            let inner = Graph::build(&device, |g| {
                let a = g.input("a", F32, &[4, 256]);
                g.output("y", mix(g, a, b, &stored));
                Ok(())
            });
            match inner.map(drop) {
                Err(GraphError::Shape { problem, .. } | GraphError::Tensor { problem, .. }) => {
                    assert!(problem.contains("another graph"), "mix {i}: {problem}");
                }
                other => panic!("mix {i}: {other:?}"),
            }
            outer.output("b", b);
            Ok(())
        })
        .map(drop)
        .unwrap_or_else(|e| assert!(e.to_string().contains("another graph"), "mix {i}: {e}"));
    }
}
