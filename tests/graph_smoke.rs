//! The graph layer from the outside: build once, run many times, refuse mistakes.
use audiocpp::graph::{BufferBuilder, Conv1d, DType, Device, Graph, GraphError};

#[test]
fn runs_many_times_and_needs_its_inputs() {
    let device = Device::cpu(2).unwrap();
    let mut graph = Graph::build(&device, |g| {
        let x = g.input("x", DType::F32, &[2, 3]);
        g.output("y", x.scale(2.0) + 1.0);
        Ok(())
    })
    .unwrap();
    for k in 0..3 {
        let k = k as f32;
        graph.write("x", &[k; 6]).unwrap();
        graph.compute().unwrap();
        assert_eq!(graph.read::<f32>("y").unwrap(), [2.0 * k + 1.0; 6]);
    }
    assert!(matches!(graph.compute(), Err(GraphError::Tensor { name, .. }) if name == "x"));
    assert!(matches!(
        graph.write("x", &[1.0f32; 5]),
        Err(GraphError::Tensor { .. })
    ));
    assert!(matches!(
        graph.write("x", &[1i32; 6]),
        Err(GraphError::Type { .. })
    ));
    assert!(matches!(
        graph.read::<f32>("z"),
        Err(GraphError::Tensor { .. })
    ));
}

#[test]
fn the_first_mistake_is_the_one_reported() {
    let device = Device::cpu(1).unwrap();
    let error = Graph::build(&device, |g| {
        let x = g.input("x", DType::F32, &[2, 3]);
        let y = g.input("y", DType::F32, &[4, 5]);
        g.output("z", (x.matmul_t(y) + x).reshape(&[7]));
        Ok(())
    })
    .err();
    assert!(
        matches!(error, Some(GraphError::Shape { op: "matmul_t", .. })),
        "{error:?}"
    );
}

#[test]
fn writes_rows_before_they_are_read() {
    let device = Device::cpu(1).unwrap();
    let mut state = BufferBuilder::new(&device, 1);
    let cache = state.declare("cache", DType::F16, &[4, 2]).unwrap();
    assert!(cache.clear().is_err(), "it has no memory yet");
    state.allocate().unwrap();
    let mut graph = Graph::build(&device, |g| {
        let rows = g.input("rows", DType::F32, &[1, 2]);
        let at = g.input("at", DType::I32, &[1]);
        let cache = g.write_rows(&cache, rows, at);
        g.output("all", cache.cast(DType::F32));
        Ok(())
    })
    .unwrap();
    for (at, value) in [(2, 5.0f32), (0, 7.0)] {
        graph.write("rows", &[value, -value]).unwrap();
        graph.write("at", &[at]).unwrap();
        graph.compute().unwrap();
    }
    assert_eq!(
        graph.read::<f32>("all").unwrap(),
        [7.0, -7.0, 0.0, 0.0, 5.0, -5.0, 0.0, 0.0]
    );
}

#[test]
fn convolution_by_overlapping_rows() {
    let device = Device::cpu(1).unwrap();
    let mut weights = BufferBuilder::weights(&device, 1);
    let w = weights.declare("w", DType::F16, &[1, 6]).unwrap();
    weights.allocate().unwrap();
    // One output, three taps, two channels: the sum of both channels' neighbours.
    w.write(&[half::f16::ONE; 6]).unwrap();
    let mut graph = Graph::build(&device, |g| {
        let x = g.input("x", DType::F32, &[1, 4, 2]);
        g.output(
            "y",
            x.conv1d(
                &w,
                None,
                Conv1d {
                    stride: 2,
                    ..Conv1d::same(3)
                },
            ),
        );
        Ok(())
    })
    .unwrap();
    graph
        .write("x", &[1.0f32, 10.0, 2.0, 20.0, 3.0, 30.0, 4.0, 40.0])
        .unwrap();
    graph.compute().unwrap();
    assert_eq!(graph.shape("y").unwrap(), [1, 2, 1]);
    assert_eq!(graph.read::<f32>("y").unwrap(), [33.0, 99.0]);
}
