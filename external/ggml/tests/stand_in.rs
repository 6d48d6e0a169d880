//! The stand-in plugins (tests/stand_in of the repository): each kind of fault comes out as the
//! error that a real driver's fault would be. A plugin reads its environment when it is loaded, so
//! each case runs in a process of its own.
#![cfg(all(unix, not(feature = "static")))]

use ggml_sys::{
    self as ggml,
    blaslt::{self, F32Mode},
    plugins,
};
use std::{
    path::Path,
    process::{Command, Output},
    time::{Duration, Instant},
};

const CASE: &str = "STAND_IN_TEST_PLUGIN";

/// Loads the CPU plugin and the stand-in named by the environment, then prints what it sees: the
/// registry or the error, the devices, and the sums of two graphs with different inputs.
#[test]
fn child_process() {
    let Ok(file) = std::env::var(CASE) else {
        return; // run as an ordinary test: `cases` starts the processes
    };
    let lib = Path::new(ggml::BUILD_LIB_DIR);
    let cpu = std::fs::read_dir(lib)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().contains("ggml-cpu"))
        .unwrap();
    plugins::load(&cpu).unwrap();
    match plugins::load(&lib.join("stand_in").join(file)) {
        Ok(name) => println!("loaded {name}"),
        Err(error) => return println!("refused: {error}"),
    }
    let stand_ins: Vec<_> = plugins::devices()
        .into_iter()
        .filter(|device| device.registry != "CPU")
        .collect();
    for device in &stand_ins {
        println!(
            "device {} {:?} {} of {} at {}",
            device.name,
            device.class,
            device.memory_free,
            device.memory_total,
            device.pci.as_deref().unwrap_or("?"),
        );
    }
    if let Some(device) = stand_ins.first() {
        println!(
            "computed {:?}",
            compute(
                plugins::handle(&device.registry, device.index)
                    .expect("a listed device")
                    .as_ptr()
            )
        );
        let registry = &device.registry;
        println!(
            "route {:?} {:?}",
            blaslt::library(registry),
            blaslt::stats(registry)
        );
        let modes = [F32Mode::Fast, F32Mode::Exact].map(|mode| blaslt::set_f32(registry, mode));
        println!("f32 {modes:?}");
    }
}

/// Doubles 1..=8, then 11..=18, in one buffer; the sums, or the step that failed.
fn compute(device: ggml::ggml_backend_dev_t) -> Result<[f32; 2], String> {
    // SAFETY: each pointer is checked or comes from the call before; sizes match the tensors.
    unsafe {
        let backend = ggml::ggml_backend_dev_init(device, std::ptr::null());
        if backend.is_null() {
            return Err("open".into());
        }
        let context = ggml::ggml_init(ggml::ggml_init_params {
            mem_size: 1 << 20,
            mem_buffer: std::ptr::null_mut(),
            no_alloc: true,
        });
        let x = ggml::ggml_new_tensor_1d(context, ggml::GGML_TYPE_F32, 8);
        let y = ggml::ggml_scale(context, x, 2.0);
        let graph = ggml::ggml_new_graph(context);
        ggml::ggml_build_forward_expand(graph, y);
        if ggml::ggml_backend_alloc_ctx_tensors(context, backend).is_null() {
            return Err("alloc".into());
        }
        let mut sums = [0.0; 2];
        for (sum, base) in sums.iter_mut().zip([1.0, 11.0]) {
            let input: [f32; 8] = std::array::from_fn(|i| base + i as f32);
            ggml::ggml_backend_tensor_set(x, input.as_ptr().cast(), 0, 32);
            let status = ggml::ggml_backend_graph_compute(backend, graph);
            if status != ggml::GGML_STATUS_SUCCESS {
                return Err(format!("compute {status}"));
            }
            let mut output = [0.0f32; 8];
            ggml::ggml_backend_tensor_get(y, output.as_mut_ptr().cast(), 0, 32);
            *sum = output.iter().sum();
        }
        ggml::ggml_backend_free(backend);
        Ok(sums)
    }
}

/// Runs one case; none if it did not end within `limit`.
fn run(file: &str, environment: &[(&str, &str)], limit: Duration) -> Option<Output> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_process", "--nocapture"])
        .env(CASE, file)
        // ggml starts a debugger to print a backtrace when it aborts.
        .env("GGML_NO_BACKTRACE", "1")
        .envs(environment.iter().copied())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > limit {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().ok()
}

/// Plugin file, environment, and what the child must print.
type Case = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

#[test]
fn each_fault_is_what_it_says() {
    let hip = "libggml-hip.so";
    let cases: &[Case] = &[
        (hip, &[], "computed Ok([72.0, 232.0])"),
        (
            hip,
            &[],
            "device ROCm0 Gpu 4294967296 of 4294967296 at 0000:03:00.0",
        ),
        ("libggml-cuda.so", &[], "device CUDA0 Gpu"),
        (
            hip,
            &[],
            "route Some(\"hipBLASLt stand-in\") [(\"lt_calls\", 2), (\"blas_calls\", 0)]",
        ),
        (hip, &[], "f32 [Some(Exact), Some(Fast)]"),
        ("libggml-cuda.so", &[], "route None []"),
        ("libggml-vulkan.so", &[], "device Vulkan0 Gpu"),
        (
            hip,
            &[("STAND_IN_DEVICES", "2")],
            "device ROCm1 Gpu 4294967296 of 4294967296 at 0000:04:00.0",
        ),
        (
            hip,
            &[("STAND_IN_TYPE", "igpu"), ("STAND_IN_MEMORY", "0")],
            "device ROCm0 IntegratedGpu 0 of 0",
        ),
        (hip, &[("STAND_IN_FAULT", "score")], "score 0"),
        (
            hip,
            &[("STAND_IN_FAULT", "registry")],
            "ggml_backend_init returned null",
        ),
        (hip, &[("STAND_IN_FAULT", "abi")], "interface version 2"),
        ("missing/libggml-hip.so", &[], "libamdhip64.so.99"),
        (
            "no_entry/libggml-hip.so",
            &[],
            "does not export ggml_backend_init",
        ),
        (hip, &[("STAND_IN_FAULT", "open")], "computed Err(\"open\")"),
        (hip, &[("STAND_IN_LIMIT", "16")], "computed Err(\"alloc\")"),
        (
            hip,
            &[("STAND_IN_FAULT", "compute:2")],
            "computed Err(\"compute -1\")",
        ),
        (
            hip,
            &[("STAND_IN_FAULT", "zeros:2")],
            "computed Ok([72.0, 0.0])",
        ),
        (hip, &[("STAND_IN_FAULT", "nan")], "computed Ok([NaN, NaN])"),
        (
            hip,
            &[("STAND_IN_FAULT", "stale")],
            "computed Ok([72.0, 72.0])",
        ),
    ];
    for (file, environment, wanted) in cases {
        let output = run(file, environment, Duration::from_secs(60)).expect("it ends");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{file} {environment:?}: {output:?}"
        );
        assert!(
            text.contains(wanted),
            "{file} {environment:?}: {wanted} not in {text}"
        );
    }
}

#[test]
fn faults_that_end_or_hang_the_process() {
    let run = |fault, seconds| {
        let environment = [("STAND_IN_FAULT", fault)];
        run("libggml-hip.so", &environment, Duration::from_secs(seconds))
    };
    for fault in ["abort-load", "abort-open", "abort-compute"] {
        let output = run(fault, 60).expect("it ends");
        assert_eq!(output.status.code(), None, "{fault}: a signal ended it");
    }
    // A misspelt fault must not pass for a device without one.
    assert_eq!(run("zeroes", 60).unwrap().status.code(), Some(96));
    for fault in ["hang-compute", "hang-exit"] {
        assert!(run(fault, 3).is_none(), "{fault} ended");
    }
}
