//! Faults of a GPU, made by the stand-in plugins. A plugin reads its environment when it is
//! loaded, so each case runs in a process of its own.
#![cfg(all(unix, not(feature = "static")))]

use std::{path::Path, process::Command};

use audiocpp::graph::{
    BufferBuilder, Conv1d, DType, Device, DeviceOptions, Graph, GraphError, Kernel, Scope,
};

use crate::live;

const CASE: &str = "GRAPH_FAULT_CASE";

type Case = (&'static str, &'static str, fn());

/// Name, environment of the plugin, and what its process does.
const CASES: &[Case] = &[
    ("convolves", "", convolve),
    ("reads from anywhere", "", || {
        assert!(!copies_a_part(&open(true).unwrap()));
    }),
    ("Vulkan reads from aligned places", "", || {
        assert!(copies_a_part(
            &open_plugin("vulkan", "Vulkan", true).unwrap()
        ));
    }),
    ("cannot pad", "STAND_IN_UNSUPPORTED=PAD", convolve),
    ("cannot pack", "STAND_IN_UNSUPPORTED=CONT", convolve),
    ("cannot multiply", "STAND_IN_UNSUPPORTED=MUL_MAT", convolve),
    ("works", "", || {
        assert_eq!(doubled(&open(true).unwrap()), Ok(vec![2.0, 4.0, 6.0, 8.0]))
    }),
    ("refuses to open", "STAND_IN_FAULT=open", || {
        assert!(matches!(open(false), Err(GraphError::Device { device, .. }) if device == "ROCm0"));
    }),
    ("fails at once", "STAND_IN_FAULT=compute", || {
        let device = open(false).unwrap();
        let failed = doubled(&device);
        assert!(
            matches!(&failed, Err(GraphError::Compute { device, .. }) if device == "ROCm0"),
            "{failed:?}"
        );
        assert_eq!(failed, doubled(&device), "and again");
    }),
    ("fails later", "STAND_IN_FAULT=compute:3", || {
        let device = open(false).unwrap();
        assert!(doubled(&device).is_ok() && doubled(&device).is_ok());
        assert!(matches!(doubled(&device), Err(GraphError::Compute { .. })));
    }),
    ("gives NaN", "STAND_IN_FAULT=nan", || {
        let result = doubled(&open(false).unwrap()).unwrap();
        assert!(result.iter().any(|v| v.is_nan()), "{result:?}");
    }),
    ("has no memory", "STAND_IN_LIMIT=4096", || {
        let device = open(false).unwrap();
        let mut buffer = BufferBuilder::weights(&device, 1);
        buffer.declare("w", DType::F32, &[1 << 20]).unwrap();
        let error = buffer.allocate().map(drop).unwrap_err();
        let said = GraphError::OutOfMemory {
            device: "ROCm0".into(),
            what: "the weights".into(),
            mib: 4,
        };
        assert_eq!(error, said);
        let graph = Graph::build(&device, |g| {
            g.output("y", g.input("x", DType::F32, &[1 << 20]) * 2.0);
            Ok(())
        });
        assert!(matches!(
            graph.map(drop),
            Err(GraphError::OutOfMemory { .. })
        ));
        assert_eq!(
            doubled(&device),
            Ok(vec![2.0, 4.0, 6.0, 8.0]),
            "what fits still runs"
        );
    }),
    (
        "lacks operators",
        "STAND_IN_UNSUPPORTED=FLASH_ATTN_EXT,SOFT_MAX",
        || {
            match Graph::build(&open(true).unwrap(), attend).map(drop) {
                Err(GraphError::MissingOp { device, ops }) => {
                    assert_eq!(
                        (&device[..], &ops[..]),
                        ("ROCm0", "FLASH_ATTN_EXT, SOFT_MAX")
                    );
                }
                other => panic!("{other:?}"),
            }
            let mut graph = Graph::build(&open(false).unwrap(), attend).unwrap();
            assert_eq!(graph.on_cpu(), ["FLASH_ATTN_EXT", "SOFT_MAX"]);
            graph.write("x", &[0.5f32; 48]).unwrap();
            graph.compute().unwrap();
            assert_eq!(graph.read::<f32>("y").unwrap(), [1.0; 48]);
        },
    ),
    (
        "cannot write rows",
        "STAND_IN_UNSUPPORTED=SET_ROWS,CPY",
        || {
            for strict in [false, true] {
                let device = open(strict).unwrap();
                let mut state = BufferBuilder::new(&device, 1);
                let cache = state.declare("cache", DType::F16, &[4, 2]).unwrap();
                state.allocate().unwrap();
                let rows = Graph::build(&device, |g| {
                    let at = g.input("at", DType::I32, &[1]);
                    g.write_rows(&cache, g.input("rows", DType::F32, &[1, 2]), at);
                    Ok(())
                });
                let store = Graph::build(&device, |g| {
                    g.store(&cache, g.input("all", DType::F32, &[4, 2]));
                    Ok(())
                });
                for (graph, wanted) in [(rows, "SET_ROWS"), (store, "CPY")] {
                    match graph.map(drop) {
                        Err(GraphError::MissingWrite { device, tensor, op }) => {
                            assert_eq!([&device[..], &tensor, &op], ["ROCm0", "cache", wanted]);
                        }
                        other => panic!("{other:?}"),
                    }
                }
            }
        },
    ),
    ("keeps eight graphs", "", || {
        let device = open(false).unwrap();
        assert_eq!(device.graph_policy().max_live, 8);
        live::few_stay_alive(&device);
    }),
    ("shares its memory", "STAND_IN_TYPE=igpu", || {
        let device = open(false).unwrap();
        let policy = device.graph_policy();
        assert!(policy.max_live == 2 && policy.release_after_request);
        live::few_stay_alive(&device);
    }),
    (
        "parks graphs when memory runs out",
        "STAND_IN_LIMIT=4000000",
        || {
            let device = open(false).unwrap();
            let build = || {
                Graph::build(&device, |g| {
                    let x = g.input("x", DType::F32, &[1 << 18]);
                    g.output("y", x.sqr().sum_last());
                    Ok(())
                })
            };
            let mut graphs: Vec<Graph> = (0..6).map(|_| build().unwrap()).collect();
            assert!(device.live_graphs() < 4, "{}", device.live_graphs());
            for graph in &mut graphs {
                graph.write("x", &vec![2.0f32; 1 << 18]).unwrap();
                graph.compute().unwrap();
                assert_eq!(graph.read::<f32>("y").unwrap(), [(1 << 20) as f32]);
            }
        },
    ),
    ("lays out many values", "", || {
        let device = open(true).unwrap();
        for count in [200, 300, 600] {
            live::sums_of_scattered(&device, count);
        }
    }),
    (
        "cannot lay out many values",
        "STAND_IN_UNSUPPORTED=SQR",
        || {
            let device = open(false).unwrap();
            live::sums_of_scattered(&device, 100);
            match live::scattered(&device, 600).map(drop) {
                Err(GraphError::TooManyAlive {
                    device, alive, ops, ..
                }) => {
                    assert_eq!((&device[..], &ops[..]), ("ROCm0", "SQR"));
                    assert!((600..700).contains(&alive), "{alive}");
                }
                other => panic!("{other:?}"),
            }
        },
    ),
    ("pads more rows than a launch has blocks", "", || {
        // Along time the rows become one; along the last axis there are too many of them.
        for (axis, on_cpu) in [(0, vec![]), (1, vec!["PAD"])] {
            let mut graph = Graph::build(&open(false).unwrap(), |g| {
                let x = g.input("x", DType::F32, &[70_001, 2]);
                g.output("y", (x * 1.0).pad(axis, 1, 2).sum_last());
                Ok(())
            })
            .unwrap();
            assert_eq!(graph.on_cpu(), on_cpu);
            graph.write("x", &[1.0f32; 140_002]).unwrap();
            graph.compute().unwrap();
            let sums = graph.read::<f32>("y").unwrap();
            assert_eq!(sums.iter().sum::<f32>(), 140_002.0);
            assert_eq!(sums.first(), Some(&if axis == 0 { 0.0 } else { 2.0 }));
        }
    }),
    (
        "runs what it was given and nothing else",
        "STAND_IN_FAULT=nan",
        || {
            let device = open_plugin("vulkan", "Vulkan", false).unwrap();
            let mut weights = BufferBuilder::weights(&device, 1);
            let q6_k = weights.declare("w", DType::Q6_K, &[2, 256]).unwrap();
            weights.allocate().unwrap();
            q6_k.write_bytes(&vec![0u8; q6_k.bytes()]).unwrap();
            for more in [false, true] {
                let mut graph = Graph::build(&device, |g| {
                    let x = g.stored(&q6_k).cast(DType::F32);
                    g.output("y", if more { x.sqrt() } else { x });
                    Ok(())
                })
                .unwrap();
                assert_eq!(graph.on_cpu(), ["CPY"]);
                graph.compute().unwrap();
                let spoilt = graph.read::<f32>("y").unwrap().iter().any(|v| v.is_nan());
                assert_eq!(spoilt, more, "the device spoils all that it computes");
            }
            // Rows 3 to 5 of blocks of 34 bytes begin between the places that Vulkan reads from.
            let mut weights = BufferBuilder::weights(&device, 1);
            let q8_0 = weights.declare("w", DType::Q8_0, &[9, 64]).unwrap();
            weights.allocate().unwrap();
            q8_0.write_bytes(&vec![0u8; q8_0.bytes()]).unwrap();
            let graph = Graph::build(&device, |g| {
                let x = g.input("x", DType::F32, &[1, 64]);
                g.output("y", x.matmul_t(g.stored(&q8_0).slice(0, 3, 3)));
                Ok(())
            });
            assert_eq!(graph.unwrap().on_cpu(), ["CONT"]);
        },
    ),
    ("is not where the weights are", "", || {
        let (gpu, cpu) = (open(false).unwrap(), Device::cpu(1).unwrap());
        for (stored, run) in [(&gpu, &cpu), (&cpu, &gpu)] {
            let mut weights = BufferBuilder::weights(stored, 1);
            let w = weights.declare("w", DType::F32, &[2]).unwrap();
            weights.allocate().unwrap();
            let graph = Graph::build(run, |g| {
                g.output("y", g.input("x", DType::F32, &[2]) * &w);
                Ok(())
            });
            assert!(matches!(graph.map(drop), Err(GraphError::Tensor { name, .. }) if name == "w"));
        }
    }),
];

/// The rows of a convolution overlap, which must not keep it from running in pieces.
fn convolve() {
    let device = open(false).unwrap();
    for (dtype, dilation) in [(DType::F32, 1), (DType::F16, 1), (DType::F16, 2)] {
        let mut weights = BufferBuilder::weights(&device, 1);
        let ones = weights.declare("ones", dtype, &[1, 6]).unwrap();
        weights.allocate().unwrap();
        match dtype {
            DType::F32 => ones.write(&[1.0f32; 6]).unwrap(),
            _ => ones.write(&[half::f16::ONE; 6]).unwrap(),
        }
        for pad in [0, 2] {
            let shape = Conv1d {
                kernel: 3,
                stride: 2,
                dilation,
                padding: (pad, 0),
            };
            let mut graph = Graph::build(&device, |g| {
                let x = g.input("x", DType::F32, &[1, 7, 2]);
                g.output("y", x.conv1d(&ones, None, shape));
                Ok(())
            })
            .unwrap();
            let x: Vec<f32> = (0..7).flat_map(|t| [t as f32, 10.0 * t as f32]).collect();
            graph.write("x", &x).unwrap();
            graph.compute().unwrap();
            let steps = shape.output_len(7).unwrap();
            let at = |t: usize| {
                (0..7)
                    .contains(&t.wrapping_sub(pad))
                    .then(|| 11 * (t - pad))
            };
            let wanted: Vec<f32> = (0..steps)
                .map(|i| {
                    (0..3)
                        .filter_map(|k| at(2 * i + k * dilation))
                        .sum::<usize>() as f32
                })
                .collect();
            assert_eq!(graph.read::<f32>("y").unwrap(), wanted, "{dtype} {shape:?}");
        }
    }
}

fn attend(g: &Scope) -> Result<(), GraphError> {
    let x = g.input("x", DType::F32, &[1, 3, 2, 8]);
    let fused = x.attention(x, x, None, 1.0, Kernel::Flash);
    let plain = x.attention(x, x, None, 1.0, Kernel::Plain);
    g.output("y", fused + plain);
    Ok(())
}

/// Whether a part of a tensor is copied for an operator that reads it.
fn copies_a_part(device: &Device) -> bool {
    let graph = Graph::build(device, |g| {
        let x = g.input("x", DType::F32, &[3, 4]);
        g.output("y", x.slice(0, 1, 2).softmax(1.0, None));
        Ok(())
    });
    graph.unwrap().operators().contains(&"CONT")
}

fn open(strict: bool) -> Result<Device, GraphError> {
    open_plugin("hip", "ROCm", strict)
}

fn open_plugin(file: &str, registry: &str, strict: bool) -> Result<Device, GraphError> {
    Device::cpu(1)?; // loads its plugin
    let plugin = format!("stand_in/libggml-{file}.so");
    let plugin = Path::new(ggml_sys::BUILD_LIB_DIR).join(plugin);
    ggml_sys::plugins::load(&plugin).unwrap();
    let inventory = audiocpp::backend::Inventory::discover(&[]);
    let gpu = inventory
        .devices
        .iter()
        .find(|d| d.registry == registry)
        .unwrap();
    let options = DeviceOptions {
        threads: 1,
        strict,
        ..DeviceOptions::default()
    };
    // The faults are what is tested here, not the canary that would refuse such a device.
    Device::open_unchecked(gpu, &options)
}

fn doubled(device: &Device) -> Result<Vec<f32>, GraphError> {
    let mut graph = Graph::build(device, |g| {
        g.output("y", g.input("x", DType::F32, &[4]) * 2.0);
        Ok(())
    })?;
    graph.write("x", &[1.0f32, 2.0, 3.0, 4.0])?;
    graph.compute()?;
    graph.read("y")
}

#[test]
fn child_process() {
    // Run as an ordinary test it has nothing to do: the test below starts the processes.
    if let Ok(wanted) = std::env::var(CASE) {
        let (_, _, run) = CASES.iter().find(|(name, ..)| *name == wanted).unwrap();
        run();
    }
}

#[test]
fn each_fault_is_a_typed_error() {
    for (name, environment, _) in CASES {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child
            .args(["--exact", "devices::child_process", "--nocapture"])
            .env(CASE, name)
            .env("GGML_NO_BACKTRACE", "1");
        if let Some((key, value)) = environment.split_once('=') {
            child.env(key, value);
        }
        let output = child.output().unwrap();
        assert!(
            output.status.success(),
            "{name}: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
