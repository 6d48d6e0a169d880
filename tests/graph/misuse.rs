//! Graphs, inputs, outputs and stored tensors used in ways that do not fit them.

use audiocpp::graph::{BufferBuilder, Conv1d, DType, Device, Graph, GraphError, Kernel, Scope};

use DType::{F16, F32, I32, I64};

fn error(describe: impl for<'g> Fn(&'g Scope) -> Result<(), GraphError>) -> GraphError {
    match Graph::build(&Device::cpu(1).unwrap(), describe) {
        Ok(_) => panic!("the graph was built"),
        Err(error) => error,
    }
}

/// The error names this tensor.
fn names(error: GraphError, wanted: &str) {
    match error {
        GraphError::Tensor { name, problem } => assert_eq!(name, wanted, "{problem}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn inputs_and_outputs_of_a_description() {
    for shape in [
        &[0][..],
        &[2, 0],
        &[1; 5],
        &[usize::MAX],
        &[1 << 40, 1 << 40],
    ] {
        names(
            error(|g| {
                g.input("x", F32, shape);
                Ok(())
            }),
            "x",
        );
    }
    for dtype in [DType::Q8_0, DType::F64, DType::I8, DType::IQ2_XXS] {
        names(
            error(|g| {
                g.input("x", dtype, &[256]);
                Ok(())
            }),
            "x",
        );
    }
    names(
        error(|g| {
            g.input("twice", F32, &[2]);
            g.input("twice", F32, &[2]);
            Ok(())
        }),
        "twice",
    );
    names(
        error(|g| {
            let x = g.input("x", F32, &[2]);
            g.output("twice", x * 2.0);
            g.output("twice", x * 3.0);
            Ok(())
        }),
        "twice",
    );
    assert_eq!(error(|_| Ok(())), GraphError::NoResult);
    assert_eq!(
        error(|g| {
            let _ = g.input("x", F32, &[2]) * 2.0;
            Ok(())
        }),
        GraphError::NoResult
    );
    // The description's own error comes through, unless an operator failed before it.
    let own = GraphError::Tensor {
        name: "own".into(),
        problem: "words".into(),
    };
    assert_eq!(error(|_| Err(own.clone())), own);
    names(
        error(|g| {
            g.input("first", F32, &[0]);
            Err(own.clone())
        }),
        "first",
    );
}

#[test]
fn stored_tensors_of_elsewhere() {
    let (here, there) = (Device::cpu(1).unwrap(), Device::cpu(1).unwrap());
    let mut state = BufferBuilder::new(&there, 2);
    let early = state.declare("early", F32, &[4]).unwrap();
    let unallocated = Graph::build(&there, |g| {
        g.output("y", g.stored(&early));
        Ok(())
    });
    names(unallocated.map(drop).unwrap_err(), "early");
    assert!(matches!(
        early.write(&[0.0f32; 4]),
        Err(GraphError::Tensor { .. })
    ));
    assert!(matches!(
        early.read::<f32>(),
        Err(GraphError::Tensor { .. })
    ));
    state.allocate().unwrap();
    let elsewhere = Graph::build(&here, |g| {
        g.output("y", g.stored(&early));
        Ok(())
    });
    names(elsewhere.map(drop).unwrap_err(), "early");
    let clone = there.clone();
    let same = Graph::build(&clone, |g| {
        g.output("y", g.stored(&early));
        Ok(())
    });
    assert!(same.is_ok());
    assert!(matches!(
        early.write(&[0.0f32; 5]),
        Err(GraphError::Tensor { .. })
    ));
    assert!(matches!(
        early.write(&[0i32; 4]),
        Err(GraphError::Type { .. })
    ));
    assert!(matches!(
        early.write_at(2, &[0.0f32; 3]),
        Err(GraphError::Tensor { .. })
    ));
    assert!(matches!(
        early.write_at(usize::MAX, &[0.0f32]),
        Err(GraphError::Tensor { .. })
    ));
    assert!(matches!(
        early.write_bytes_at(usize::MAX, &[1]),
        Err(GraphError::Tensor { .. })
    ));
    assert!(matches!(early.read::<i32>(), Err(GraphError::Type { .. })));
}

#[test]
fn declarations() {
    let device = Device::cpu(1).unwrap();
    let mut state = BufferBuilder::new(&device, 3);
    for shape in [&[0][..], &[1; 5], &[usize::MAX, 2]] {
        names(state.declare("bad", F32, shape).unwrap_err(), "bad");
    }
    names(
        state.declare("blocks", DType::Q8_0, &[33]).unwrap_err(),
        "blocks",
    );
    names(
        state.declare("blocks", DType::Q4_K, &[]).unwrap_err(),
        "blocks",
    );
    for name in ["", "nul\0", &"long".repeat(100)] {
        state.declare(name, F32, &[1]).unwrap();
    }
    names(state.declare("fourth", F32, &[1]).unwrap_err(), "fourth");
    assert!(BufferBuilder::new(&device, 0).allocate().is_ok());
    drop(BufferBuilder::new(&device, 1));
}

#[test]
fn runs() {
    let device = Device::cpu(1).unwrap();
    let mut graph = Graph::build(&device, |g| {
        let x = g.input("x", F32, &[2]);
        g.input("unused", F32, &[2]);
        g.output("y", x * 2.0);
        Ok(())
    })
    .unwrap();
    names(graph.read::<f32>("y").unwrap_err(), "y");
    names(graph.compute().unwrap_err(), "x");
    names(graph.write("z", &[1.0f32; 2]).unwrap_err(), "z");
    names(graph.write("x", &[1.0f32; 3]).unwrap_err(), "x");
    names(graph.shape("x").unwrap_err(), "x");
    assert!(matches!(
        graph.write("x", &[1i64; 2]),
        Err(GraphError::Type { .. })
    ));
    graph.write("x", &[1.0f32; 2]).unwrap();
    names(graph.compute().unwrap_err(), "unused");
    graph.write("unused", &[1.0f32; 2]).unwrap();
    graph.compute().unwrap();
    assert_eq!(graph.read::<f32>("y").unwrap(), [2.0; 2]);
    assert!(matches!(
        graph.read::<i32>("y"),
        Err(GraphError::Type { .. })
    ));
    names(graph.read_into("y", &mut [0.0f32; 3]).unwrap_err(), "y");
    names(graph.read::<f32>("x").unwrap_err(), "x");
    for name in ["x", "unused"] {
        graph.write(name, &[1.0f32; 2]).unwrap();
    }
    device.cancel(true);
    assert_eq!(graph.compute(), Err(GraphError::Cancelled));
    device.cancel(false);
    graph.compute().unwrap();
}

/// Backends abort, or read out of bounds, at a row number outside its table.
#[test]
fn row_numbers_are_checked_when_they_are_written() {
    let device = Device::cpu(1).unwrap();
    let mut state = BufferBuilder::new(&device, 1);
    let cache = state.declare("cache", F32, &[3, 2]).unwrap();
    state.allocate().unwrap();
    let mut graph = Graph::build(&device, |g| {
        let table = g.input("table", F32, &[5, 2]);
        let (a, b) = (g.input("a", I32, &[4]), g.input("b", I32, &[2]));
        let free = g.input("free", I32, &[1]);
        // `a` selects of five rows, and some of it of the first two.
        g.output("y", a.reshape(&[2, 2]).reshape(&[4]).look_up(table));
        g.output(
            "z",
            a.slice(0, 1, 2).concat(b, 0).look_up(table.slice(0, 0, 2)),
        );
        let at = g.input("at", I64, &[1]);
        g.output("cache", g.write_rows(&cache, table.slice(0, 0, 1), at));
        g.output("free", free);
        Ok(())
    })
    .unwrap();
    for bad in [-1, 2, 5, i32::MIN, i32::MAX] {
        names(graph.write("a", &[0, bad, 0, 0]).unwrap_err(), "a");
        names(graph.write("b", &[0, bad]).unwrap_err(), "b");
    }
    for bad in [-1, 3, 1 << 40, i64::MIN] {
        names(graph.write("at", &[bad]).unwrap_err(), "at");
    }
    graph.write("free", &[-7]).unwrap();
    graph
        .write(
            "table",
            &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 0.0],
        )
        .unwrap();
    names(graph.compute().unwrap_err(), "a");
    graph.write("a", &[0, 1, 1, 0]).unwrap();
    graph.write("b", &[1, 0]).unwrap();
    graph.write("at", &[2i64]).unwrap();
    graph.compute().unwrap();
    assert_eq!(graph.read::<i32>("free").unwrap(), [-7]);
    assert_eq!(
        graph.read::<f32>("z").unwrap(),
        [3.0, 4.0, 3.0, 4.0, 3.0, 4.0, 1.0, 2.0]
    );
    assert_eq!(
        graph.read::<f32>("cache").unwrap(),
        [0.0, 0.0, 0.0, 0.0, 1.0, 2.0]
    );
}

/// Weights and inputs may hold anything: the result is NaN or any number, the process lives.
#[test]
fn not_a_number_everywhere() {
    let device = Device::cpu(2).unwrap();
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
        let mut weights = BufferBuilder::weights(&device, 2);
        let w = weights.declare("w", F32, &[6, 12]).unwrap();
        let row = weights.declare("row", F16, &[4]).unwrap();
        weights.allocate().unwrap();
        w.write(&[value; 72]).unwrap();
        row.write(&[half::f16::from_f32(value); 4]).unwrap();
        let mut graph = Graph::build(&device, |g| {
            let x = g.input("x", F32, &[2, 5, 4]);
            let y = x.layer_norm(&row, &row, 1e-5);
            let y = y.conv1d(&w, None, Conv1d::same(3)); // [2, 5, 6]
            g.output("conv", y);
            let heads = y.reshape(&[2, 5, 2, 3]);
            for (name, kernel) in [("flash", Kernel::Flash), ("plain", Kernel::Plain)] {
                let mask = g.input(name, F16, &[5, 5]);
                for (kv, dtype) in [(format!("{name} f32"), F32), (format!("{name} f16"), F16)] {
                    let k = heads.cast(dtype);
                    g.output(&kv, heads.attention(k, k, Some(mask), value, kernel));
                }
            }
            g.output("best", y.reshape(&[10, 6]).argmax());
            g.output("row", y.reshape(&[10, 6]).argmax().look_up(g.stored(&w)));
            g.output("norm", y.rms_norm(0.0) + y.norm(0.0) + y.group_norm(5, 0.0));
            let acts = [
                y.gelu(),
                y.gelu_tanh(),
                y.silu(),
                y.elu(),
                y.softplus(),
                y.sin(),
                y.cos(),
            ];
            let acts = acts
                .into_iter()
                .fold(y.sigmoid() + y.tanh() + y.exp(), |a, b| a + b);
            g.output("acts", acts);
            g.output(
                "clamp",
                y.clamp(f32::NEG_INFINITY, 0.0) + y.sum_last() + y.cumsum(),
            );
            Ok(())
        })
        .unwrap();
        let mask = [half::f16::from_f32(value); 25];
        for _ in 0..2 {
            graph.write("x", &[value; 40]).unwrap();
            graph.write("flash", &mask).unwrap();
            graph.write("plain", &mask).unwrap();
            graph.compute().unwrap();
            let best = graph.read::<i32>("best").unwrap();
            assert!(best.iter().all(|&i| (0..6).contains(&i)), "{best:?}");
        }
    }
}

/// Blocks of quantised weights may come from a damaged file.
#[test]
fn quantised_weights_of_any_bytes() {
    let device = Device::cpu(2).unwrap();
    for &dtype in DType::ALL.iter().filter(|t| t.is_quantized()) {
        for byte in [0x00, 0x7f, 0x80, 0xff] {
            let mut weights = BufferBuilder::weights(&device, 1);
            let w = weights.declare("w", dtype, &[7, 512]).unwrap();
            weights.allocate().unwrap();
            w.write_bytes(&vec![byte; w.bytes()]).unwrap();
            let graph = Graph::build(&device, |g| {
                let at = g.input("at", I32, &[2]);
                let w = g.stored(&w);
                let x = g.input("x", F32, &[3, 512]);
                g.output("product", x.matmul_t(w));
                g.output("vector", x.slice(0, 0, 1).matmul_t(w));
                g.output("rows", at.look_up(w));
                g.output("all", w.cast(F32));
                Ok(())
            });
            let mut graph = match graph {
                Ok(graph) => graph,
                Err(GraphError::Shape { op: "matmul_t", .. }) if dtype == DType::Q8_1 => continue,
                Err(error) => panic!("{dtype}: {error}"),
            };
            graph.write("at", &[6, 0]).unwrap();
            graph.write("x", &[0.5f32; 3 * 512]).unwrap();
            graph.compute().unwrap();
            assert_eq!(graph.read::<f32>("product").unwrap().len(), 21);
        }
    }
}
