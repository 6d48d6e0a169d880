//! Many graphs on one device, and graphs of many values: both have a bound.

use audiocpp::graph::{DType, Device, Graph, GraphError};

/// y = (x * factor)², z = x + factor.
fn graph(device: &Device, factor: f32) -> Graph {
    Graph::build(device, |g| {
        let x = g.input("x", DType::F32, &[3, 5]);
        g.output("y", (x * factor).sqr());
        g.output("z", x + factor);
        Ok(())
    })
    .unwrap()
}

fn run(graph: &mut Graph, value: f32) -> Result<(), GraphError> {
    graph.write("x", &[value; 15])?;
    graph.compute()
}

/// Builds more graphs than the device keeps, uses them in changing order, and reads results of
/// graphs that were parked between their run and the reading.
pub fn few_stay_alive(device: &Device) {
    let policy = device.graph_policy();
    let count = policy.max_live + 3;
    let mut graphs: Vec<Graph> = (0..count).map(|i| graph(device, i as f32)).collect();
    assert_eq!(device.live_graphs(), policy.max_live);
    assert_eq!(graphs[0].bytes(), 0);
    assert!(graphs[count - 1].bytes() > 0);
    for round in 0..3 {
        let value = round as f32 + 0.5;
        for i in (0..count).map(|i| (i * 13 + round) % count) {
            run(&mut graphs[i], value).unwrap();
            assert!(graphs[i].bytes() > 0);
        }
        assert_eq!(device.live_graphs(), policy.max_live);
        // Every result is there, also those of graphs that were parked since.
        for (i, graph) in graphs.iter().enumerate() {
            let factor = i as f32;
            let y = graph.read::<f32>("y").unwrap();
            assert_eq!(y, [(value * factor).powi(2); 15], "graph {i}");
            assert_eq!(graph.read::<f32>("z").unwrap(), [value + factor; 15]);
        }
    }
    // A graph with an input that waits for its run is not parked.
    graphs[1].write("x", &[2.0f32; 15]).unwrap();
    for graph in graphs.iter_mut().skip(2) {
        run(graph, 1.0).unwrap();
    }
    assert!(graphs[1].bytes() > 0);
    graphs[1].compute().unwrap();
    assert_eq!(graphs[1].read::<f32>("y").unwrap(), [4.0; 15]);

    // The last request of all that overlap gives the memory back, where the device wants it.
    let (first, second) = (device.request(), device.request());
    drop(first);
    assert_eq!(device.live_graphs(), policy.max_live);
    drop(second);
    let left = if policy.release_after_request {
        0
    } else {
        policy.max_live
    };
    assert_eq!(device.live_graphs(), left);
    assert_eq!(graphs[1].read::<f32>("y").unwrap(), [4.0; 15]);
    run(&mut graphs[0], 3.0).unwrap();
    assert_eq!(graphs[0].read::<f32>("z").unwrap(), [3.0; 15]);
    drop(graphs);
    assert_eq!(device.live_graphs(), 0);
}

/// `count` inputs that are read in an order that leaves every second one alive: the free memory
/// lies in `count / 2` pieces.
pub fn scattered(device: &Device, count: usize) -> Result<Graph, GraphError> {
    Graph::build(device, |g| {
        // Larger and larger, so that no result fits where an input was.
        let inputs: Vec<_> = (0..count)
            .map(|i| g.input(&format!("x{i}"), DType::F32, &[16 + 16 * i]))
            .collect();
        let sum = |start: usize| {
            let picked = inputs.iter().skip(start).step_by(2);
            let sums = picked.map(|x| x.sqr().sum_last());
            sums.reduce(|a, b| a + b).expect("there are inputs")
        };
        let even = sum(0);
        g.output("even", even);
        g.output("odd", sum(1));
        Ok(())
    })
}

pub fn sums_of_scattered(device: &Device, count: usize) {
    let mut graph = scattered(device, count).unwrap();
    for _ in 0..2 {
        for i in 0..count {
            let values = vec![1.0f32; 16 + 16 * i];
            graph.write(&format!("x{i}"), &values).unwrap();
        }
        graph.compute().unwrap();
        for (name, start) in [("even", 0), ("odd", 1)] {
            let wanted: usize = (start..count).step_by(2).map(|i| 16 + 16 * i).sum();
            assert_eq!(graph.read::<f32>(name).unwrap(), [wanted as f32], "{count}");
        }
    }
}

#[test]
fn the_cpu_keeps_some_graphs() {
    few_stay_alive(&Device::cpu(1).unwrap());
}

/// ggml's own planner ends the process at more than 256 separate pieces.
#[test]
fn free_memory_in_many_pieces() {
    let device = Device::cpu(1).unwrap();
    for count in [10, 240, 249, 252, 500, 520, 700] {
        sums_of_scattered(&device, count);
    }
    // Parked and planned again without sharing memory.
    let graphs: Vec<Graph> = (0..40).map(|_| scattered(&device, 300).unwrap()).collect();
    assert_eq!(device.live_graphs(), device.graph_policy().max_live);
    drop(graphs);
}
