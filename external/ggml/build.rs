//! Builds ggml from its pinned source with CMake and tells Cargo what to link.
use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// The crate that carries ggml's source (see Cargo.toml).
const CARRIER: &str = "llama-cpp-sys-2";

fn main() {
    let source = source_dir();
    assert!(
        source.join("include/ggml.h").is_file(),
        "no ggml source at {}; set GGML_SOURCE_DIR to a folder that has include/ggml.h",
        source.display()
    );
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let statically = env::var_os("CARGO_FEATURE_STATIC").is_some();
    // One target folder may serve several checkouts; CMake refuses another checkout's cache.
    let build = out.join(format!("build-{:016x}", hash(&here)));

    configure(&source, &here.join("cmake"), &build, statically);
    let jobs = env::var("NUM_JOBS").unwrap_or_else(|_| "2".into());
    run(Command::new("cmake")
        .arg("--build")
        .arg(&build)
        .args(["-j", &jobs]));

    let lib = build.join("lib");
    link(&lib, statically);
    // Read by dependents as DEP_GGML_LIB and DEP_GGML_INCLUDE.
    println!("cargo:lib={}", lib.display());
    println!("cargo:include={}", source.join("include").display());
    println!("cargo:rustc-env=GGML_BUILD_LIB_DIR={}", lib.display());
    println!(
        "cargo:rustc-env=GGML_SOURCE_INCLUDE={}",
        source.join("include").display()
    );
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=cmake");
    println!("cargo:rerun-if-changed=blaslt");
    // Sources outside this crate that the build takes in where they are present.
    let stand_in = here.join("../../tests/stand_in");
    if stand_in.is_dir() {
        println!("cargo:rerun-if-changed={}", stand_in.display());
    }
}

/// `GGML_SOURCE_DIR`, else `llama.cpp/ggml` inside the carrier crate, found through
/// `cargo metadata` so that fetched, vendored and offline builds all work.
fn source_dir() -> PathBuf {
    println!("cargo:rerun-if-env-changed=GGML_SOURCE_DIR");
    if let Some(dir) = env::var_os("GGML_SOURCE_DIR") {
        return dir.into();
    }
    let manifest =
        Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("Cargo.toml");
    let metadata = |extra: &[&str]| {
        Command::new(env::var_os("CARGO").expect("cargo sets it"))
            .args([
                "metadata",
                "--format-version=1",
                "--locked",
                "--manifest-path",
            ])
            .arg(&manifest)
            .args(extra)
            .output()
            .expect("cargo runs")
    };
    // Offline first: after `cargo fetch` or `cargo vendor` the crate is already unpacked.
    let offline = metadata(&["--offline"]);
    let found = if offline.status.success() {
        offline
    } else {
        metadata(&[])
    };
    assert!(
        found.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&found.stderr)
    );
    let graph: serde_json::Value =
        serde_json::from_slice(&found.stdout).expect("cargo metadata prints JSON");
    let carrier = graph["packages"]
        .as_array()
        .and_then(|all| all.iter().find(|p| p["name"] == CARRIER))
        .and_then(|p| p["manifest_path"].as_str())
        .unwrap_or_else(|| panic!("{CARRIER} is not in the dependency graph"));
    Path::new(carrier)
        .parent()
        .expect("a manifest lies in a folder")
        .join("llama.cpp/ggml")
}

fn hash(path: &Path) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

fn configure(source: &Path, lists: &Path, build: &Path, statically: bool) {
    println!("cargo:rerun-if-env-changed=AUDIOCPP_CPU");
    // native: this machine's instruction set; all: every x86-64 variant, chosen at run time;
    // anything else is not a name we know.
    let cpu = env::var("AUDIOCPP_CPU").unwrap_or_else(|_| "native".into());
    let cross = env::var("HOST") != env::var("TARGET");
    let (features, all) = match (cpu.as_str(), statically, cross) {
        ("native", _, false) => (native_features(), false),
        // ggml's own default: AVX2, FMA, F16C and BMI2 on x86-64.
        ("native", _, true) | ("baseline", _, _) => (Vec::new(), false),
        ("all", false, _) => (Vec::new(), true),
        ("all", true, _) => {
            panic!("AUDIOCPP_CPU=all needs plugins: build without feature `static`")
        }
        _ => panic!("AUDIOCPP_CPU={cpu}: expected native, baseline or all"),
    };
    let on = |yes: bool| if yes { "ON" } else { "OFF" };
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(lists).arg("-B").arg(build);
    if Command::new("ninja").arg("--version").output().is_ok() {
        cmake.arg("-GNinja");
    }
    for (key, value) in [
        ("GGML_SOURCE_DIR", source.to_string_lossy().as_ref()),
        ("CMAKE_BUILD_TYPE", "Release"),
        ("BUILD_SHARED_LIBS", on(!statically)),
        ("GGML_BACKEND_DL", on(!statically)),
        // Refused by ggml for plugins; `native_features` names the instruction sets instead.
        ("GGML_NATIVE", "OFF"),
        ("GGML_CPU_ALL_VARIANTS", on(all)),
        // Off outside llama.cpp by default; doubles the speed of f16 and f32 products.
        ("GGML_LLAMAFILE", "ON"),
        // ggml's own thread pool: no libgomp at run time, no spinning against other threads.
        ("GGML_OPENMP", "OFF"),
        ("GGML_CCACHE", "ON"),
        ("CMAKE_POSITION_INDEPENDENT_CODE", "ON"),
        ("CMAKE_BUILD_WITH_INSTALL_RPATH", "ON"),
        ("CMAKE_INSTALL_RPATH", "$ORIGIN"),
    ] {
        cmake.arg(format!("-D{key}={value}"));
    }
    for (key, present) in features {
        cmake.arg(format!("-D{key}={}", on(present)));
    }
    run(&mut cmake);
}

/// ggml's switch for each x86-64 instruction set, and whether the building machine has it.
fn native_features() -> Vec<(&'static str, bool)> {
    #[cfg(target_arch = "x86_64")]
    {
        let avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        vec![
            ("GGML_SSE42", is_x86_feature_detected!("sse4.2")),
            ("GGML_AVX", is_x86_feature_detected!("avx")),
            ("GGML_F16C", is_x86_feature_detected!("f16c")),
            ("GGML_FMA", is_x86_feature_detected!("fma")),
            ("GGML_BMI2", is_x86_feature_detected!("bmi2")),
            ("GGML_AVX2", is_x86_feature_detected!("avx2")),
            ("GGML_AVX_VNNI", is_x86_feature_detected!("avxvnni")),
            ("GGML_AVX512", avx512),
            (
                "GGML_AVX512_VBMI",
                avx512 && is_x86_feature_detected!("avx512vbmi"),
            ),
            (
                "GGML_AVX512_VNNI",
                avx512 && is_x86_feature_detected!("avx512vnni"),
            ),
            (
                "GGML_AVX512_BF16",
                avx512 && is_x86_feature_detected!("avx512bf16"),
            ),
        ]
    }
    #[cfg(not(target_arch = "x86_64"))]
    Vec::new()
}

fn link(lib: &Path, statically: bool) {
    println!("cargo:rustc-link-search=native={}", lib.display());
    if !statically {
        println!("cargo:rustc-link-lib=dylib=ggml");
        println!("cargo:rustc-link-lib=dylib=ggml-base");
        return;
    }
    for name in ["ggml", "ggml-cpu", "ggml-base"] {
        println!("cargo:rustc-link-lib=static={name}");
    }
    match env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("macos") => {
            println!("cargo:rustc-link-lib=dylib=c++");
            println!("cargo:rustc-link-lib=framework=Accelerate");
        }
        Ok("windows") => {}
        _ => {
            println!("cargo:rustc-link-lib=dylib=stdc++");
            println!("cargo:rustc-link-lib=dylib=m");
        }
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|e| {
        panic!("cannot run {command:?}: {e}; `cargo xtask demo` installs what is missing")
    });
    assert!(
        output.status.success(),
        "{command:?} failed: {}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
