//! Random chains of operators over random shapes, types and layouts: each either builds or is
//! refused with a typed error, and what builds runs. A panic fails the case; an abort of ggml ends
//! the test binary, which fails too.

use std::sync::LazyLock;

use audiocpp::graph::{
    BufferBuilder, Conv1d, DType, Device, DeviceTensor, Glu, Graph, GraphError, Kernel, Scope,
    Tensor,
};
use proptest::prelude::*;

static DEVICE: LazyLock<Device> = LazyLock::new(|| Device::cpu(2).unwrap());

/// Stored tensors: sizes that often fit, and one of each storage type.
static STORED: LazyLock<Vec<DeviceTensor>> = LazyLock::new(|| {
    let shapes: &[&[usize]] = &[
        &[],
        &[3],
        &[4, 3],
        &[3, 3],
        &[6, 9],
        &[2, 3, 3],
        &[32, 32],
        &[5, 256],
    ];
    let mut buffer = BufferBuilder::new(&DEVICE, shapes.len() * DType::ALL.len());
    let mut all = Vec::new();
    for shape in shapes {
        for &dtype in DType::ALL {
            all.extend(buffer.declare(&format!("{dtype} {shape:?}"), dtype, shape));
        }
    }
    buffer.allocate().unwrap();
    all
});

/// One step: which operator, which of the values so far, and numbers to fill its arguments.
type Step = (u8, [prop::sample::Index; 3], [u8; 4], f32);

fn small() -> impl Strategy<Value = u8> {
    prop_oneof![8 => 0u8..5, 1 => Just(9), 1 => any::<u8>()]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let number = prop_oneof![4 => -2.0f32..2.0, 1 => Just(0.0), 1 => Just(f32::NAN), 1 => Just(f32::INFINITY)];
    let step = (
        0u8..56,
        any::<[prop::sample::Index; 3]>(),
        [small(), small(), small(), small()],
        number,
    );
    prop::collection::vec(step, 1..24)
}

fn inputs() -> impl Strategy<Value = Vec<(DType, Vec<usize>)>> {
    use DType::{BF16, F16, F32, I32, I64};
    let dtype = prop_oneof![6 => Just(F32), 1 => Just(F16), 1 => Just(BF16), 2 => Just(I32), 1 => Just(I64)];
    let extent = prop_oneof![6 => 1usize..5, 1 => Just(9usize), 1 => Just(32usize)];
    prop::collection::vec((dtype, prop::collection::vec(extent, 0..5)), 1..5)
}

/// The new value of a step, if it makes one.
fn apply<'g>(g: &'g Scope, values: &[Tensor<'g>], step: &Step) -> Option<Tensor<'g>> {
    let (op, picks, n, f) = step;
    let [a, b, c] = picks.map(|p| *p.get(values));
    let stored = |i: usize| picks[i].get(&STORED);
    let [i, j, k, l] = n.map(usize::from);
    let axis = i as isize - 2;
    let conv = Conv1d {
        kernel: i,
        stride: j,
        dilation: k,
        padding: (l, i),
    };
    let dtype = picks[2].get(DType::ALL);
    let shape = [i, j, k, l];
    let kernel = if i % 2 == 0 {
        Kernel::Flash
    } else {
        Kernel::Plain
    };
    let mask = (j % 2 == 0).then_some(c);
    Some(match op {
        0 => a + b,
        1 => a - b,
        2 => a * b,
        3 => a / b,
        4 => a.scale_add(*f, 1.0),
        5 => a.clamp(-1.0, *f),
        6 => a.leaky_relu(*f),
        7 => [a.sqr(), a.sqrt(), a.log(), a.exp()][i % 4],
        8 => [a.sin(), a.cos(), a.abs(), a.tanh()][i % 4],
        9 => [a.sigmoid(), a.relu(), a.elu(), a.silu()][i % 4],
        10 => [a.gelu(), a.gelu_tanh(), a.softplus(), a.cumsum()][i % 4],
        11 => [a.sum_last(), a.mean_last()][i % 2],
        12 => a.softmax(*f, mask),
        13 => a.norm(*f),
        14 => a.rms_norm(*f),
        15 => a.group_norm(i, 1e-5),
        16 => a.layer_norm(stored(1), stored(2), 1e-5),
        17 => a.argmax(),
        18 => a.matmul_t(b),
        19 => a.matmul(b),
        20 => a.linear(stored(1), mask.map(|_| stored(2))),
        21 | 22 => a.look_up(b),
        23 => a.glu([Glu::Sigmoid, Glu::Silu, Glu::Gelu][i % 3]),
        24 => a.conv1d(stored(1), mask.map(|_| stored(2)), conv),
        25 => a.conv_transpose1d(stored(1), i, j, k),
        26 | 27 => a.attention(b, c, None, *f, kernel),
        28 => a.attention(b, b, mask, *f, kernel),
        29 => a.attention_weights(b, mask, *f),
        30 | 31 => a.permute(&shape[..a.rank()]),
        32 | 33 => a.transpose(),
        34 => a.reshape(&shape),
        35 => a.reshape(&[a.shape().iter().product()]),
        36 | 37 => a.slice(axis, j, k),
        38 => a.split_last(i),
        39 => a.split::<2>(axis)[1],
        40 | 41 => a.concat(b, axis),
        42 => a.pad(axis, j, k),
        43 => a.pad_reflect(i, j),
        44 => a.broadcast(&shape),
        45 => a.broadcast(&b.shape()),
        46 | 47 => a.cast(*dtype),
        48 => a.contiguous(),
        49 | 50 => g.stored(stored(0)),
        51 => g.write_rows(stored(0), a, b),
        52 => {
            g.store(stored(0), a);
            return None;
        }
        53 => {
            g.output(&format!("y{i}"), a);
            return None;
        }
        54 => g.arange(i, j),
        _ => a.reshape(&b.shape()),
    })
}

fn describe(g: &Scope, inputs: &[(DType, Vec<usize>)], steps: &[Step]) -> Result<(), GraphError> {
    let mut values: Vec<Tensor> = (0..)
        .zip(inputs)
        .map(|(i, (dtype, shape))| g.input(&format!("x{i}"), *dtype, shape))
        .collect();
    for step in steps {
        values.extend(apply(g, &values, step));
    }
    g.output("last", values[values.len() - 1]);
    Ok(())
}

/// The longest run of steps that builds, with the rest left out: a chain of 20 random steps would
/// nearly always be refused.
fn accepted(inputs: &[(DType, Vec<usize>)], steps: &[Step]) -> Vec<Step> {
    let mut kept: Vec<Step> = Vec::new();
    for step in steps {
        kept.push(*step);
        match Graph::build(&DEVICE, |g| describe(g, inputs, &kept)) {
            Ok(_) => {}
            Err(
                GraphError::OutOfMemory { .. }
                | GraphError::Shape { .. }
                | GraphError::Tensor { .. },
            ) => {
                kept.pop();
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    kept
}

fn write(graph: &mut Graph, name: &str, dtype: DType, count: usize) {
    let values = (0..count).map(|i| (i as f32 * 0.37).sin());
    let written = match dtype {
        DType::F32 => graph.write(name, &values.collect::<Vec<f32>>()),
        DType::F16 => graph.write(name, &values.map(half::f16::from_f32).collect::<Vec<_>>()),
        DType::BF16 => graph.write(name, &values.map(half::bf16::from_f32).collect::<Vec<_>>()),
        DType::I32 => graph.write(name, &vec![0i32; count]),
        _ => graph.write(name, &vec![0i64; count]),
    };
    written.unwrap();
}

proptest! {
    #[test]
    fn builds_and_runs_or_says_why_not(inputs in inputs(), steps in steps()) {
        let kept = accepted(&inputs, &steps);
        let graph = Graph::build(&DEVICE, |g| describe(g, &inputs, &kept));
        if let Ok(mut graph) = graph {
            for (i, (dtype, shape)) in inputs.iter().enumerate() {
                write(&mut graph, &format!("x{i}"), *dtype, shape.iter().product());
            }
            graph.compute().unwrap();
            let shape = graph.shape("last").unwrap();
            if let Ok(values) = graph.read::<f32>("last") {
                prop_assert_eq!(values.len(), shape.iter().product::<usize>());
            }
        }
    }
}
