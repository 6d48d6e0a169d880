//! Rows by number, and tensors that a graph writes.

use audiocpp::graph::{BufferBuilder, DType, Graph};

use crate::graph::{Array, Case, DEVICES, Layout, Random, Side};

use DType::{BF16, F16, F32, I32, I64, Q4_K, Q8_0};

fn picked(table: &Array, at: &Array) -> Array {
    Array::from_fn(&[at.values().len(), table.last()], |place| {
        table.at(&[at.values()[place[0]] as usize, place[1]])
    })
}

#[test]
fn look_up() {
    let mut random = Random::new(60);
    for dtype in [F32, F16, BF16, Q8_0, Q4_K] {
        for (rows, width, count) in [
            (1usize, 1usize, 1usize),
            (7, 3, 5),
            (51, 64, 11),
            (9, 512, 3),
            (3, 256, 1000),
        ] {
            if !width.is_multiple_of(dtype.block_len()) {
                continue;
            }
            let table = Side::stored(&random.array(&[rows, width], 1.0), dtype);
            let at = random.indices(count, rows);
            let wanted = &picked(&table.values, &at);
            for layout in [Layout::Packed, Layout::Cut] {
                // The cut entries must be row numbers too.
                if layout == Layout::Cut && rows <= 9 {
                    continue;
                }
                let sides = &[table.clone(), Side::new(&at, I32).lying(layout)];
                Case {
                    op: "look_up",
                    tolerance: 0.0,
                    sides,
                    wanted,
                }
                .check(|_, x, _| x[1].look_up(x[0]));
            }
        }
    }
}

/// Rows of something the graph computes, at positions that come in several pieces.
#[test]
fn look_up_in_a_result() {
    let mut random = Random::new(61);
    let x = random.array(&[6, 5], 1.0);
    let (a, b) = (random.indices(3, 5), random.indices(4, 5));
    let wanted = &picked(
        &x.round_to(F32).map(|v| 2.0 * v).swap(0, 1),
        &a.concat(&b, 0),
    );
    let sides = &[
        Side::f32(&x),
        Side::new(&a, I32),
        Side::new(&b.reshape(&[2, 2]), I32),
    ];
    Case {
        op: "look_up",
        tolerance: 0.0,
        sides,
        wanted,
    }
    .check(|_, x, _| {
        let at = x[1].concat(x[2].reshape(&[4]), 0);
        at.look_up((x[0] * 2.0).transpose())
    });
}

#[test]
fn argmax() {
    let mut random = Random::new(62);
    for shape in [[1, 1], [1, 51_865], [7, 3], [3, 1000], [100_003, 3]] {
        let x = random.array(&shape, 1.0).round_to(F32);
        let largest: Vec<f64> = (x.rows())
            .map(|r| (0..r.len()).max_by(|&i, &j| r[i].total_cmp(&r[j])).unwrap() as f64)
            .collect();
        let wanted = &Array::new(&[shape[0]], largest);
        for &layout in Layout::all(&shape) {
            let sides = &[Side::f32(&x).lying(layout)];
            Case {
                op: "argmax",
                tolerance: 0.0,
                sides,
                wanted,
            }
            .check(|_, x, _| x[0].argmax());
        }
    }
}

/// The nearest entries of a table, and nothing out of bounds where there is none.
#[test]
fn argmax_then_look_up() {
    let mut random = Random::new(63);
    let mut scores = random.array(&[4, 9], 1.0);
    scores = Array::from_fn(&[4, 9], |at| match at[0] {
        2 => f64::NAN,
        _ => scores.at(at),
    });
    let table = Array::new(&[9, 1], vec![5.0; 9]);
    let sides = &[Side::f32(&scores), Side::stored(&table, F32)];
    let wanted = &Array::new(&[4, 1], vec![5.0; 4]);
    Case {
        op: "argmax, look_up",
        tolerance: 0.0,
        sides,
        wanted,
    }
    .check(|_, x, _| x[0].argmax().look_up(x[1]));
}

/// Rows of f32 and f16 into caches of several types, several caches deep, twice.
fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most, v| most.max(v.abs()))
}

#[test]
fn write_rows() {
    let mut random = Random::new(64);
    for (target, leading) in [
        (F32, None),
        (F16, Some(3)),
        (BF16, None),
        (Q8_0, Some(2)),
        (F16, None),
    ] {
        for (rows_type, index_type) in [(F32, I32), (F16, I64), (F16, I32), (F32, I64)] {
            let shape = |rows| {
                leading
                    .into_iter()
                    .chain([rows, 32])
                    .collect::<Vec<usize>>()
            };
            let rows = random.array(&shape(3), 1.0).round_to(rows_type);
            let wanted_rows = rows.round_to(target);
            for device in DEVICES.iter() {
                let mut state = BufferBuilder::new(device, 1);
                let cache = state.declare("cache", target, &shape(7)).unwrap();
                state.allocate().unwrap();
                let mut graph = Graph::build(device, |g| {
                    let rows = g.input("rows", rows_type, &shape(3));
                    let at = g.input("at", index_type, &[3]);
                    // Something before it that wants as many threads as there are.
                    let busy = g.input("busy", F32, &[64, 64]).softmax(1.0, None);
                    g.output("busy", busy);
                    g.output("all", g.write_rows(&cache, rows, at).cast(F32));
                    Ok(())
                })
                .unwrap();
                let mut wanted = Array::new(&shape(7), vec![0.0; shape(7).iter().product()]);
                for at in [[5, 0, 2], [6, 2, 1]] {
                    graph.write("busy", &[0.5f32; 4096]).unwrap();
                    let values: Vec<f32> = rows.values().iter().map(|&v| v as f32).collect();
                    match rows_type {
                        F32 => graph.write("rows", &values).unwrap(),
                        _ => {
                            let values: Vec<half::f16> =
                                values.into_iter().map(half::f16::from_f32).collect();
                            graph.write("rows", &values).unwrap();
                        }
                    }
                    match index_type {
                        I32 => graph.write("at", &at).unwrap(),
                        _ => graph.write("at", &at.map(i64::from)).unwrap(),
                    }
                    graph.compute().unwrap();
                    wanted = Array::from_fn(&shape(7), |place| {
                        let row = place[place.len() - 2] as i32;
                        match at.iter().position(|&a| a == row) {
                            Some(i) => {
                                let mut from = place.to_vec();
                                from[place.len() - 2] = i;
                                wanted_rows.at(&from)
                            }
                            None => wanted.at(place),
                        }
                    });
                    let got: Vec<f64> = graph
                        .read::<f32>("all")
                        .unwrap()
                        .into_iter()
                        .map(f64::from)
                        .collect();
                    // Backends break a tie between two 8-bit values in their own way.
                    let step = match target {
                        DType::Q8_0 if !device.is_cpu() => 1.01 * largest(wanted.values()) / 127.0,
                        _ => 0.0,
                    };
                    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= step;
                    let all = got.len() == wanted.values().len()
                        && got.iter().zip(wanted.values()).all(near);
                    assert!(all, "{target} {rows_type} on {device:?}: {got:?}");
                }
            }
        }
    }
}

#[test]
fn store() {
    let mut random = Random::new(65);
    let x = random.array(&[5, 64], 1.0).round_to(F32);
    let values: Vec<f32> = x.values().iter().map(|&v| v as f32).collect();
    for target in [F32, F16, BF16, Q8_0] {
        for turned in [false, true] {
            let shape = if turned { [64, 5] } else { [5, 64] };
            if turned && target == Q8_0 {
                continue;
            }
            for device in DEVICES.iter() {
                let mut state = BufferBuilder::new(device, 1);
                let kept = state.declare("kept", target, &shape).unwrap();
                state.allocate().unwrap();
                let mut graph = Graph::build(device, |g| {
                    let x = g.input("x", F32, &[5, 64]);
                    g.store(&kept, if turned { x.transpose() } else { x });
                    Ok(())
                })
                .unwrap();
                graph.write("x", &values).unwrap();
                graph.compute().unwrap();
                let mut read = Graph::build(device, |g| {
                    g.output("y", g.stored(&kept).cast(F32));
                    Ok(())
                })
                .unwrap();
                read.compute().unwrap();
                let wanted = if turned { x.swap(0, 1) } else { x.clone() }.round_to(target);
                let got: Vec<f64> = read
                    .read::<f32>("y")
                    .unwrap()
                    .into_iter()
                    .map(f64::from)
                    .collect();
                assert_eq!(got, wanted.values(), "{target} on {device:?}");
            }
        }
    }
}

/// A stored tensor read above a write holds what it held before the run, below it what was
/// written; so a streaming convolution can keep its past.
#[test]
fn reads_and_writes_keep_the_order_of_the_description() {
    for device in DEVICES.iter() {
        let mut state = BufferBuilder::new(device, 1);
        let past = state.declare("past", F32, &[2]).unwrap();
        state.allocate().unwrap();
        let mut graph = Graph::build(device, |g| {
            let x = g.input("x", F32, &[2]);
            let before = g.stored(&past) * 10.0;
            g.store(&past, x + 1.0);
            let between = g.stored(&past) * 10.0;
            g.store(&past, x + 2.0);
            g.output("after", g.stored(&past) * 10.0);
            g.output("between", between);
            g.output("before", before);
            Ok(())
        })
        .unwrap();
        for (x, was) in [(1.0f32, 0.0f32), (5.0, 3.0)] {
            graph.write("x", &[x; 2]).unwrap();
            graph.compute().unwrap();
            assert_eq!(graph.read::<f32>("before").unwrap(), [was * 10.0; 2]);
            assert_eq!(graph.read::<f32>("between").unwrap(), [(x + 1.0) * 10.0; 2]);
            assert_eq!(graph.read::<f32>("after").unwrap(), [(x + 2.0) * 10.0; 2]);
        }
    }
}

/// Outputs keep their contents while the planner gives away the memory of what nobody needs any
/// more, also where an output is a view of something else, an input or a stored tensor.
#[test]
fn outputs_survive_the_run() {
    for device in DEVICES.iter() {
        let mut state = BufferBuilder::new(device, 1);
        let kept = state.declare("kept", F32, &[64]).unwrap();
        state.allocate().unwrap();
        kept.write(&[7.0f32; 64]).unwrap();
        let mut graph = Graph::build(device, |g| {
            let x = g.input("x", F32, &[64]);
            g.output("x", x);
            g.output("shaped", x.reshape(&[8, 8]));
            g.output("kept", g.stored(&kept));
            g.output("row", g.stored(&kept).reshape(&[8, 8]).slice(0, 1, 1));
            let viewed = (x * 2.0).reshape(&[8, 8]);
            g.output("viewed", viewed);
            g.output("cut", (x * 3.0).slice(0, 8, 8));
            // Long enough to go through every free place.
            let mut y = viewed;
            for _ in 0..8 {
                y = (y + 1.0).transpose().contiguous();
            }
            g.output("y", y);
            g.store(&kept, x * 4.0);
            Ok(())
        })
        .unwrap();
        let x: Vec<f32> = (0..64).map(|i| i as f32).collect();
        graph.write("x", &x).unwrap();
        graph.compute().unwrap();
        let times = |f: f32| x.iter().map(|v| v * f).collect::<Vec<f32>>();
        assert_eq!(graph.read::<f32>("x").unwrap(), x);
        assert_eq!(graph.read::<f32>("shaped").unwrap(), x);
        assert_eq!(graph.read::<f32>("kept").unwrap(), [7.0; 64]);
        assert_eq!(graph.read::<f32>("row").unwrap(), [7.0; 8]);
        assert_eq!(graph.read::<f32>("viewed").unwrap(), times(2.0));
        assert_eq!(graph.read::<f32>("cut").unwrap(), times(3.0)[8..16]);
        assert_eq!(
            graph.read::<f32>("y").unwrap(),
            times(2.0).iter().map(|v| v + 8.0).collect::<Vec<f32>>()
        );
        assert_eq!(kept.read::<f32>().unwrap(), times(4.0));
    }
}
