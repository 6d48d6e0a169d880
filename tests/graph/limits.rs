//! Sizes beyond what a machine, a context or a number can hold.

use audiocpp::graph::{BufferBuilder, DType, Device, Graph, GraphError};

use DType::F32;

fn out_of_memory<T>(result: Result<T, GraphError>, at_least_mib: usize) {
    match result {
        Err(GraphError::OutOfMemory { device, mib, .. }) => {
            assert_eq!(device, "CPU");
            assert!(mib >= at_least_mib, "{mib}");
        }
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it was allocated"),
    }
}

/// From more than this machine has to more than an address has room for, in one tensor and as a
/// sum of several that would wrap around.
#[test]
fn buffers() {
    let device = Device::cpu(1).unwrap();
    for (side, count) in [
        (1 << 23, 1),
        (1 << 24, 1),
        (1 << 28, 1),
        (1 << 29, 3),
        (1 << 29, 16),
    ] {
        for weights in [false, true] {
            let mut buffer = match weights {
                true => BufferBuilder::weights(&device, count),
                false => BufferBuilder::new(&device, count),
            };
            for i in 0..count {
                buffer.declare(&i.to_string(), F32, &[side, side]).unwrap();
            }
            out_of_memory(buffer.allocate(), side / 1024 * side / 1024);
        }
    }
    let mut buffer = BufferBuilder::new(&device, 1);
    let x = buffer.declare("x", F32, &[4]).unwrap();
    buffer.allocate().unwrap();
    assert_eq!(x.read::<f32>().unwrap(), [0.0; 4]);
}

#[test]
fn graphs() {
    let device = Device::cpu(1).unwrap();
    for (side, count) in [(1 << 23, 1), (1 << 26, 1), (1 << 29, 1), (1 << 29, 16)] {
        let input = Graph::build(&device, |g| {
            for i in 0..count {
                let x = g.input(&format!("x{i}"), F32, &[side, side]);
                g.output(&format!("y{i}"), x.sqr());
            }
            Ok(())
        });
        out_of_memory(input, 0);
        let product = Graph::build(&device, |g| {
            for i in 0..count {
                let x = g.input(&format!("x{i}"), F32, &[side, 1]);
                g.output(&format!("y{i}"), x.matmul_t(x));
            }
            Ok(())
        });
        out_of_memory(product, 0);
    }
    let mut graph = Graph::build(&device, |g| {
        g.output("y", g.input("x", F32, &[2]).sqr());
        Ok(())
    })
    .unwrap();
    graph.write("x", &[3.0f32; 2]).unwrap();
    graph.compute().unwrap();
    assert_eq!(graph.read::<f32>("y").unwrap(), [9.0; 2]);
}

#[test]
fn operators_without_end() {
    let device = Device::cpu(1).unwrap();
    let endless = Graph::build(&device, |g| {
        let mut x = g.input("x", F32, &[1]);
        for _ in 0..1 << 19 {
            x = x + 1.0;
        }
        g.output("y", x);
        Ok(())
    });
    assert!(matches!(
        endless.map(drop),
        Err(GraphError::TooManyNodes(_))
    ));
}

/// Far more operators, inputs, outputs and stored tensors than the first attempt has room for.
#[test]
fn large_graphs() {
    let device = Device::cpu(1).unwrap();
    let mut weights = BufferBuilder::weights(&device, 5000);
    let all: Vec<_> = (0..5000)
        .map(|i| weights.declare(&format!("w{i}"), F32, &[1]).unwrap())
        .collect();
    weights.allocate().unwrap();
    for w in &all {
        w.write(&[1.0f32]).unwrap();
    }
    let mut graph = Graph::build(&device, |g| {
        let sum = all
            .chunks(2)
            .map(|w| g.stored(&w[0]) + &w[1])
            .reduce(|a, b| a + b);
        g.output("sum", sum.unwrap());
        for i in 0..700 {
            let x = g.input(&format!("x{i}"), F32, &[1]);
            g.output(&format!("y{i}"), x * 2.0);
        }
        Ok(())
    })
    .unwrap();
    for i in 0..700 {
        graph.write(&format!("x{i}"), &[i as f32]).unwrap();
    }
    graph.compute().unwrap();
    assert_eq!(graph.read::<f32>("sum").unwrap(), [5000.0]);
    assert_eq!(graph.read::<f32>("y699").unwrap(), [1398.0]);
    // Nothing but stored tensors.
    let mut graph = Graph::build(&device, |g| {
        for (i, w) in all.iter().enumerate() {
            g.output(&format!("y{i}"), g.stored(w));
        }
        Ok(())
    })
    .unwrap();
    graph.compute().unwrap();
    assert_eq!(graph.read::<f32>("y4999").unwrap(), [1.0]);
}
