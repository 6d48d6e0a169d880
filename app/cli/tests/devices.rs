//! The real program on a machine with a GPU: a stand-in that computes on the CPU and fails on
//! demand. What a user sees of each fault is one row of a table.
#![cfg(all(unix, not(feature = "static")))]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use audiocpp::backend::Search;
use serde_json::Value;

/// The folder of stand-in plugins that the build made.
fn stand_in() -> PathBuf {
    let places = Search::standard().places;
    let build = places.last().expect("the build has a folder of plugins");
    build.join("stand_in")
}

/// A folder with one plugin in it.
struct Plugins {
    dir: tempfile::TempDir,
}

impl Plugins {
    /// The stand-in for HIP; `file` is relative to the stand-ins' folder.
    fn hip(file: &str) -> Plugins {
        let dir = tempfile::tempdir().unwrap();
        fs::copy(stand_in().join(file), dir.path().join("libggml-hip.so")).unwrap();
        Plugins { dir }
    }

    fn cli(&self, args: &[&str], variables: &[(&str, &str)]) -> Run {
        let begun = Instant::now();
        let output = Command::new(env!("CARGO_BIN_EXE_audiocpp_cli"))
            .args(args)
            .env("AUDIOCPP_BACKEND_PATH", self.dir.path())
            .env("AUDIOCPP_SYSFS_ROOT", self.dir.path().join("root"))
            .env_remove("AUDIOCPP_DEVICE")
            .env_remove("RUST_LOG")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .output()
            .expect("the program starts");
        Run {
            output,
            took: begun.elapsed(),
        }
    }
}

struct Run {
    output: Output,
    took: Duration,
}

impl Run {
    fn code(&self) -> Option<i32> {
        self.output.status.code()
    }

    /// Both streams.
    fn text(&self) -> String {
        let stream = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        stream(&self.output.stdout) + &stream(&self.output.stderr)
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.output.stdout).unwrap_or_else(|_| panic!("{}", self.text()))
    }
}

/// One fault and what the user sees of it.
struct Case {
    plugin: &'static str,
    variables: &'static [(&'static str, &'static str)],
    args: &'static [&'static str],
    code: i32,
    says: &'static [&'static str],
}

const OPEN: &[&str] = &["fast-paths", "--device", "hip"];
const AUTO: &[&str] = &["fast-paths", "--device", "auto"];
const FALLBACK: &[&str] = &["fast-paths", "--device", "rocm:0", "--fallback", "cpu"];
const DOCTOR: &[&str] = &["doctor", "--trial-limit", "120"];
/// Long enough to get to the step that hangs.
const DOCTOR_OF_HANGS: &[&str] = &["doctor", "--trial-limit", "15"];
const PLUGIN: &str = "libggml-hip.so";

const fn case(
    variables: &'static [(&'static str, &'static str)],
    args: &'static [&'static str],
    code: i32,
    says: &'static [&'static str],
) -> Case {
    Case {
        plugin: PLUGIN,
        variables,
        args,
        code,
        says,
    }
}

macro_rules! fault {
    ($fault:literal) => {
        &[("STAND_IN_FAULT", $fault)]
    };
}

/// Explicit devices never fall back; `auto` does, with the reason.
static CASES: [Case; 27] = [
    case(&[], OPEN, 0, &["hip:0", "flash-attention"]),
    case(&[("STAND_IN_TYPE", "igpu")], OPEN, 0, &["hip:0"]),
    case(&[("STAND_IN_TYPE", "igpu")], AUTO, 0, &["hip:0"]),
    case(
        fault!("score"),
        OPEN,
        2,
        &["no device hip", "score 0", "cpu ("],
    ),
    case(fault!("registry"), OPEN, 2, &["returned null"]),
    case(fault!("abi"), OPEN, 2, &["plugin interface version"]),
    Case {
        plugin: "missing/libggml-hip.so",
        ..case(
            &[],
            OPEN,
            2,
            &["libamdhip64.so.99: cannot open shared object file"],
        )
    },
    Case {
        plugin: "missing/libggml-hip.so",
        ..case(&[], AUTO, 0, &["cpu"])
    },
    Case {
        plugin: "no_entry/libggml-hip.so",
        ..case(&[], OPEN, 2, &["ggml_backend_init"])
    },
    case(&[("STAND_IN_DEVICES", "0")], OPEN, 2, &["finds no device"]),
    case(
        &[("STAND_IN_DEVICES", "2")],
        &["fast-paths", "--device", "hip:2"],
        2,
        &["hip:2", "hip:0", "hip:1 (", "0000:04:00.0"],
    ),
    case(
        &[("STAND_IN_DEVICES", "2")],
        &["fast-paths", "--device", "rocm:pci=0000:04:00.0"],
        0,
        &["hip:1"],
    ),
    case(
        fault!("open"),
        OPEN,
        2,
        &["hip:0 failed", "did not start", "--fallback cpu"],
    ),
    case(fault!("open"), FALLBACK, 0, &["cpu", "hip:0: cannot open"]),
    case(fault!("open"), AUTO, 0, &["cpu", "hip:0: cannot open"]),
    case(fault!("compute"), OPEN, 2, &["failed while computing"]),
    case(fault!("compute:2"), OPEN, 2, &["failed while computing"]),
    case(fault!("zeros"), OPEN, 2, &["wrong numbers"]),
    case(fault!("nan"), OPEN, 2, &["wrong numbers"]),
    case(fault!("perturb:0.5"), OPEN, 2, &["wrong numbers"]),
    case(fault!("perturb:0.0001"), OPEN, 0, &["hip:0"]),
    case(fault!("stale"), OPEN, 2, &["wrong numbers"]),
    case(fault!("nan"), AUTO, 0, &["cpu", "wrong numbers"]),
    case(&[("STAND_IN_LIMIT", "1000")], OPEN, 2, &["out of memory"]),
    case(
        &[("STAND_IN_LIMIT", "1000")],
        AUTO,
        0,
        &["cpu", "out of memory"],
    ),
    case(
        &[("STAND_IN_UNSUPPORTED", "FLASH_ATTN_EXT")],
        OPEN,
        0,
        &["the device lacks FLASH_ATTN_EXT"],
    ),
    case(fault!("hang-exit"), OPEN, 0, &["hip:0"]),
];

#[test]
fn every_fault_has_a_clear_end() {
    for case in &CASES {
        let run = Plugins::hip(case.plugin).cli(case.args, case.variables);
        let text = run.text();
        let what = format!("{:?} {:?}:\n{text}", case.variables, case.args);
        assert_eq!(run.code(), Some(case.code), "{what}");
        for words in case.says {
            assert!(text.contains(words), "`{words}` is missing in {what}");
        }
        // A hang would take for ever; the slowest machine opens a stand-in sooner than this.
        assert!(run.took < Duration::from_secs(60), "{what}");
    }
}

#[test]
fn doctor_survives_and_names_the_step() {
    for (fault, says) in [
        ("abort-load", "loading it ends the process"),
        ("abort-open", "in step open"),
        ("abort-compute", "in step product"),
        ("abort-compute:3", "in step graph"),
        ("hang-compute", "hung in step"),
        ("zeros", "product: cannot open device"),
        ("open", "open: cannot open device"),
        ("stale", "wrong numbers"),
        ("hang-exit", "every step passed"),
    ] {
        let hangs = fault.starts_with("hang");
        let args = if hangs { DOCTOR_OF_HANGS } else { DOCTOR };
        let run = Plugins::hip(PLUGIN).cli(args, &[("STAND_IN_FAULT", fault)]);
        let text = run.text();
        assert!(
            text.contains(says),
            "{fault}: `{says}` is missing in\n{text}"
        );
        let code = match fault {
            "hang-exit" => 0,
            // No AMD GPU is on the bus, so a plugin that does not load is only a warning.
            "abort-load" => 1,
            _ => 2,
        };
        assert_eq!(run.code(), Some(code), "{fault}:\n{text}");
    }
}

#[test]
fn devices_lists_what_there_is() {
    let plugins = Plugins::hip(PLUGIN);
    let two = [("STAND_IN_DEVICES", "2"), ("STAND_IN_MEMORY", "0")];
    let found = plugins.cli(&["devices", "--json"], &two).json();
    let devices = found["devices"].as_array().unwrap();
    let names: Vec<&str> = devices
        .iter()
        .filter_map(|d| d["device"].as_str())
        .collect();
    assert_eq!(names, ["cpu", "hip:0", "hip:1"]);
    assert_eq!(devices[1]["pci"], "0000:03:00.0");
    assert_eq!(devices[1]["registry"], "ROCm");
    assert_eq!(devices[1]["memory"]["total"]["bytes"], Value::Null);
    assert_eq!(devices[1]["gemm"], "hipBLASLt stand-in, then hipBLAS");
    let auto: Vec<bool> = devices.iter().filter_map(|d| d["auto"].as_bool()).collect();
    assert_eq!(auto, [false, true, false]);
    let text = plugins.cli(&["devices"], &[]).text();
    assert!(
        text.contains("hip:0") && text.contains("usable (auto)"),
        "{text}"
    );
    // A backend that ends the process is left out; the others are still listed.
    let dead = plugins.cli(&["devices"], &[("STAND_IN_FAULT", "abort-load")]);
    assert_eq!(dead.code(), Some(0), "{}", dead.text());
    assert!(dead.text().contains("cpu") && !dead.text().contains("hip:0"));
}

/// The files of a machine with an RX 7900 in the stand-in's slot.
fn write_rx7900(root: &Path) {
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let node = "location_id 768\nsimd_count 192\ngfx_target_version 110000\ndrm_render_minor 128\nunique_id 1\n";
    write("sys/class/kfd/kfd/topology/nodes/1/properties", node);
    for (file, text) in [
        ("class", "0x030000"),
        ("vendor", "0x1002"),
        ("device", "0x744c"),
        ("mem_info_vram_total", "25753026560"),
        ("mem_info_vram_used", "1048576"),
    ] {
        write(&format!("sys/bus/pci/devices/0000:03:00.0/{file}"), text);
    }
}

fn write_pack(dir: &Path, target: &str) {
    fs::write(
        dir.join("pack.json"),
        format!(
            r#"{{"name":"rocm_v7","backend":"hip","ggml":"0.26.0","api_version":3,"rocm":"7.2.4","gfx_targets":["{target}"]}}"#
        ),
    )
    .unwrap();
}

#[test]
fn a_pack_is_compared_with_the_gpu_before_anything_is_loaded_onto_it() {
    let plugins = Plugins::hip(PLUGIN);
    write_rx7900(&plugins.dir.path().join("root"));
    write_pack(plugins.dir.path(), "gfx1151");
    let refused = plugins.cli(OPEN, &[]);
    assert_eq!(refused.code(), Some(2));
    let text = refused.text();
    for words in ["gfx1100", "gfx1151", "rocm_v7"] {
        assert!(text.contains(words), "{text}");
    }
    let auto = plugins.cli(AUTO, &[]);
    assert!(auto.text().starts_with("cpu"), "{}", auto.text());
    write_pack(plugins.dir.path(), "gfx1100");
    let text = plugins.cli(&["devices"], &[]).text();
    assert!(
        text.contains("gfx1100") && text.contains("usable (auto)"),
        "{text}"
    );
    // Without the GPU's files its instruction set is unknown: not under auto, but by name.
    fs::remove_dir_all(plugins.dir.path().join("root")).unwrap();
    assert!(plugins.cli(AUTO, &[]).text().starts_with("cpu"));
    assert_eq!(plugins.cli(OPEN, &[]).code(), Some(0));
    // The vendor's runtime may say it instead.
    let runtime = [("STAND_IN_ARCH", "gfx1100:sramecc-")];
    assert!(plugins.cli(AUTO, &runtime).text().starts_with("hip:0"));
    let other = [("STAND_IN_ARCH", "gfx1101")];
    assert_eq!(plugins.cli(OPEN, &other).code(), Some(2));
}

#[test]
fn one_line_says_what_runs() {
    let run = Plugins::hip(PLUGIN).cli(&["fast-paths", "--device", "hip", "-v"], &[]);
    let text = run.text();
    let line = text
        .lines()
        .find(|line| line.contains("backend=ROCm"))
        .unwrap();
    for part in [
        "device=0",
        "pci=0000:03:00.0",
        "gfx=-",
        "name=\"stand-in",
        "gemm=\"hipBLASLt stand-in",
        "graphs=",
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
}

#[test]
fn devices_that_no_backend_offers_are_listed_with_the_reason() {
    let plugins = Plugins::hip("missing/libggml-hip.so");
    write_rx7900(&plugins.dir.path().join("root"));
    let found = plugins.cli(&["devices", "--json"], &[]).json();
    assert_eq!(found["unused"][0]["gfx"], "gfx1100");
    let reason = found["unused"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("libamdhip64.so.99"), "{reason}");
    let doctor = plugins.cli(&["doctor", "--json", "--no-trial"], &[]);
    assert_eq!(doctor.code(), Some(2));
    let findings = doctor.json()["findings"].as_array().unwrap().clone();
    let find = |id: &str| findings.iter().find(|f| f["id"] == id).unwrap().clone();
    assert_eq!(find("amdgpu")["outcome"], "fail");
    assert!(find("plugins")["fix"].as_str().unwrap().contains("ROCm 99"));
}

#[test]
fn flags_force_fast_paths_and_win_over_the_environment() {
    let plugins = Plugins::hip(PLUGIN);
    let variables = [(
        "AUDIOCPP_FAST_PATH",
        "flash-attention=off,mapped-weights=on",
    )];
    let args = [
        "fast-paths",
        "--json",
        "--device",
        "cpu",
        "--fast-path",
        "mapped-weights=off",
    ];
    let found = plugins.cli(&args, &variables).json();
    let row = |name: &str| {
        let rows = found["fast_paths"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap().clone()
    };
    assert_eq!(row("flash-attention")["on"], false);
    assert_eq!(row("flash-attention")["forced"], true);
    assert_eq!(row("mapped-weights")["on"], false);
    assert_eq!(row("packed-projection")["on"], true);
    let uses = |name: &str, family: &str| {
        let families = row(name)["families"].clone();
        families.as_array().unwrap().iter().any(|f| f == family)
    };
    assert!(uses("flash-attention", "whisper") && !uses("fused-snake", "whisper"));
    let bad = plugins.cli(&["fast-paths", "--fast-path", "flash=on"], &[]);
    assert_eq!(bad.code(), Some(2));
}

#[test]
fn gpu_graphs_are_switched_off_before_the_program_runs() {
    let plugins = Plugins::hip(PLUGIN);
    // The program starts itself again; what it prints and how it ends stay the same.
    let run = plugins.cli(&["fast-paths", "--device", "hip", "--no-gpu-graphs"], &[]);
    assert_eq!(run.code(), Some(0), "{}", run.text());
    assert!(run.text().contains("hip:0"));
    let bad = plugins.cli(&["fast-paths", "--device", "hip:7", "--no-gpu-graphs"], &[]);
    assert_eq!(bad.code(), Some(2));
}
